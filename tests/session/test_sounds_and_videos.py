"""Skills that ask the session's model about sounds and videos; the sandbox decodes them, the model is outside."""

from __future__ import annotations

import io
import math
import subprocess
import wave
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import handiwork
from handiwork.agents.codeact.prompt import prompt_messages
from handiwork.agents.codeact.toolbox import TOOLS
from handiwork.agents.protocols import NATIVE
from handiwork.events.observation import IPythonRunCellObservation
from handiwork.events.record import CompletionEvent
from handiwork.llm.types import Capabilities
from handiwork.sandbox.bundle import bundle_root, host_command
from tests.agents.states import state_of, task
from tests.session.bench import Bench, call, finish

pytestmark = pytest.mark.slow

VIDEO = Path(__file__).with_name("media") / "three_colours.webm"
"""A second of red, one of green and one of blue, with a tone of 400 Hz; VP8 and Opus."""

SENSES = Capabilities(vision=True, hearing=True)


def tone(seconds: float = 0.5) -> bytes:
    """A tone of 400 Hz as WAV."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8_000)
        samples = (int(9_000 * math.sin(math.tau * 400 * n / 8_000)) for n in range(int(8_000 * seconds)))
        sound.writeframes(b"".join(sample.to_bytes(2, "little", signed=True) for sample in samples))
    return file.getvalue()


def cell(code: str) -> Any:
    return call("ipython", code=code, timeout=120)


def outputs(bench: Bench) -> list[IPythonRunCellObservation]:
    return [event for event in bench.events if isinstance(event, IPythonRunCellObservation)]


@pytest.mark.parametrize(("data", "kind"), [(tone(), "audio/wav"), (b"ID3" + bytes(99), "audio/mpeg")])
async def test_a_small_sound_goes_to_the_model_as_it_is(bench: Bench, data: bytes, kind: str) -> None:
    (bench.workspace / "a.snd").write_bytes(data)
    session = await bench.session([cell("parse_audio('a.snd')"), "A beep.", finish()], capabilities=SENSES)
    state = await session.run("listen")
    assert outputs(bench)[0].content == "A beep.\n"
    (question,) = bench.llm.requests[1]
    text, sound = question.content
    assert (text.text, sound.media_type) == ("Write down what is said.", kind)
    assert await bench.store.blobs.get(sound.blob or "") == data
    assert [event.response["content"] for event in bench.events if isinstance(event, CompletionEvent)][1] == "A beep."
    assert state.usage.total == sum(e.usage.total for e in bench.events if isinstance(e, CompletionEvent))


async def test_a_model_that_takes_no_sounds_is_not_asked_and_its_prompt_has_no_such_skill(bench: Bench) -> None:
    (bench.workspace / "a.wav").write_bytes(tone())
    session = await bench.session([cell("parse_audio('a.wav')"), finish()], capabilities=Capabilities(vision=True))
    await session.run("listen")
    assert outputs(bench)[0].content == "ERROR: The model scripted takes no sounds.\n"
    for capabilities, names in (
        (Capabilities(), set[str]()),
        (Capabilities(vision=True), {"parse_image", "parse_video"}),
        (Capabilities(hearing=True), {"parse_audio"}),
    ):
        (prompt,) = prompt_messages(NATIVE, False, state_of(task()), TOOLS, capabilities)
        text = prompt.content[0].text or ""
        assert {name for name in ("parse_audio", "parse_image", "parse_video") if f"- {name}(" in text} == names


async def test_without_a_browser_what_must_be_decoded_is_refused_with_a_remedy(bench: Bench) -> None:
    (bench.workspace / "a.webm").write_bytes(VIDEO.read_bytes())
    (bench.workspace / "riff.webp").write_bytes(b"RIFF\0\0\0\0WEBPVP8 ")
    codes = ["parse_video('a.webm')", "parse_audio('a.webm')", "parse_audio('riff.webp')", "parse_video('missing')"]
    session = await bench.session([*map(cell, codes), finish()], capabilities=SENSES)
    await session.run("look")
    *refused, missing = [output.content for output in outputs(bench)]
    assert all("decoded with the sandbox's browser, which is not here. Parts of a sound" in text for text in refused)
    assert missing.endswith("missing is no file.\n")


def colour_of(picture: bytes) -> str:
    """The colour that a JPEG has most of."""
    code = "import sys; sys.path.append(sys.argv[1]); from PIL import Image; "
    code += "print(*Image.open(sys.stdin.buffer).convert('RGB').resize((1, 1)).getpixel((0, 0)))"
    python = [*host_command("python3"), "-I", "-S", "-c"]
    libraries = str(bundle_root() / "lib/python3/dist-packages")
    done = subprocess.run([*python, code, libraries], input=picture, check=True, stdout=subprocess.PIPE)
    levels = [int(level) for level in done.stdout.split()]
    return ("red", "green", "blue")[levels.index(max(levels))]


@pytest.mark.browser
@pytest.mark.usefixtures("new_user")
def test_the_sandboxs_browser_decodes_videos_and_sounds(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.webm").write_bytes(VIDEO.read_bytes())
    (project / "long.wav").write_bytes(tone(200))
    (project / "cut.webm").write_bytes(VIDEO.read_bytes()[:200])
    codes = [
        "parse_video('a.webm', 'Which colour?')",
        "parse_video('a.webm', frame_interval=75)",
        "parse_audio('a.webm')",
        "parse_audio('long.wav')",
        "parse_video('cut.webm')",
    ]
    answers = iter([3, 1, 1, 3, 0])
    replies: list[Any] = []
    for number, code in enumerate(codes):
        replies += [cell(code), *(f"answer {number}.{part}" for part in range(next(answers)))]
    model = handiwork.ScriptedLLM([*replies, finish()], capabilities=SENSES)
    result = handiwork.run("look", workspace=project, model=model, data=tmp_path / "data")
    assert result.outcome == "finished", result.state.last_error
    shown = [o.content for _, o in result.state.history if isinstance(o, IPythonRunCellObservation)]
    assert shown[0] == "[0:00 of 0:03] answer 0.0\n[0:01 of 0:03] answer 0.1\n[0:02 of 0:03] answer 0.2\n"
    assert shown[1] == "[0:00 of 0:03] answer 1.0\n"
    assert shown[2] == "[from 0:00]\nanswer 2.0\n"
    assert shown[3] == "[from 0:00]\nanswer 3.0\n[from 1:30]\nanswer 3.1\n[from 3:00]\nanswer 3.2\n"
    assert "cut.webm cannot be decoded: " in shown[4]

    asked = [part.blob for request in model.requests for part in request[-1].content if part.blob]
    data = [(tmp_path / "data/blobs" / blob[:2] / blob).read_bytes() for blob in asked]
    assert [colour_of(picture) for picture in data[:3]] == ["red", "green", "blue"]
    with wave.open(io.BytesIO(data[4])) as sound:
        assert (sound.getnchannels(), sound.getframerate()) == (1, 16_000)
        frames = sound.readframes(sound.getnframes())
    samples = [int.from_bytes(frames[n : n + 2], "little", signed=True) for n in range(0, len(frames), 2)]
    crossings = sum(before < 0 <= after for before, after in pairwise(samples[8_000:24_000]))
    assert 390 <= crossings <= 410
    with wave.open(io.BytesIO(data[7])) as last:
        assert last.getnframes() == 20 * 16_000

"""The local model as its users see it: the real model in a real process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from handiwork.agents.codeact.toolbox import TOOLS
from handiwork.agents.protocols import BOUND_TEXT, JSON, NATIVE, ReplyProtocol, protocol_of
from handiwork.agents.protocols.ask import read
from handiwork.llm.errors import ModelNotFoundError
from handiwork.llm.local.model import LocalLLM, server_folder_of
from handiwork.llm.local.server import SLOTS, ServerFolder
from handiwork.llm.local.weights import QWEN_CODER, fetch
from handiwork.llm.types import Message, Tool
from handiwork.paths import cache_dir
from tests.llm_local.tiny_gguf import write_gguf

# A model shares the cores with whatever else runs.
pytestmark = pytest.mark.timeout(600)

IDLE = 2.0
ASK = [Message.text("system", "Answer with one word."), Message.text("user", "What is the capital of France?")]


@pytest.fixture(scope="module")
def model() -> Path:
    return asyncio.run(fetch(QWEN_CODER, cache_dir() / "models", lambda done, total: None))


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Servers of our own: those of the user's sessions are not seen."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield


@pytest.fixture
async def place(model: Path, runtime: None) -> AsyncIterator[ServerFolder]:
    """The server's folder; the test ends when the server has."""
    place = server_folder_of(model)
    yield place
    await end_of(place)


@pytest.fixture
async def connect(model: Path, place: ServerFolder) -> AsyncIterator[Callable[..., LocalLLM]]:
    """Makes clients, and closes them at the test's end, without which the server would not end."""
    clients: list[LocalLLM] = []

    def connect(said: list[str] | None = None) -> LocalLLM:
        clients.append(client(model, said))
        return clients[-1]

    yield connect
    for llm in clients:
        await llm.close()


@pytest.fixture
def llm(connect: Callable[..., LocalLLM]) -> LocalLLM:
    return connect()


def client(model: Path, said: list[str] | None = None) -> LocalLLM:
    return LocalLLM(str(model), status=(said if said is not None else []).append, idle=IDLE)


async def end_of(place: ServerFolder) -> None:
    async with asyncio.timeout(60):
        while place.alive():
            await asyncio.sleep(0.05)


def server_pid(place: ServerFolder) -> int:
    address = place.address()
    assert address is not None
    return address.pid


@pytest.mark.slow
async def test_it_answers_and_costs_nothing(llm: LocalLLM) -> None:
    completion = await llm.complete(ASK)
    assert "Paris" in completion.content
    assert (completion.cost, completion.cost_source) == (0.0, "local")
    assert completion.usage.output > 0


@pytest.mark.slow
async def test_a_schema_is_enforced(llm: LocalLLM) -> None:
    schema = {
        "type": "object",
        "properties": {"mood": {"enum": ["blue", "green"]}, "count": {"enum": [1, 2, 3]}},
        "required": ["mood", "count"],
        "additionalProperties": False,
    }
    completion = await llm.complete([Message.text("user", "Write a poem about the sea.")], form=schema)
    answer = json.loads(completion.content)
    assert answer.keys() == {"mood", "count"}
    assert answer["mood"] in ("blue", "green")


@pytest.mark.slow
@pytest.mark.parametrize("task", ["Write a README with an example in a shell block.", "Count *.py."])
async def test_a_reply_bound_to_the_grammar_of_the_tools_calls_one(llm: LocalLLM, task: str) -> None:
    await llm.open()
    assert protocol_of(llm.capabilities) is BOUND_TEXT
    tools = [tool for tool in TOOLS if tool.name in ("bash", "write", "ipython", "finish")]  # a short prompt is faster
    system = Message.text("system", BOUND_TEXT.instructions(tools, compact=True))
    _, form = BOUND_TEXT.request(tools)
    completion = await llm.complete([system, Message.text("user", task)], form=form)
    (action,) = read(BOUND_TEXT, completion, tools)
    assert action.thought


@pytest.mark.slow
async def test_a_repeated_prefix_is_read_from_the_cache(llm: LocalLLM) -> None:
    system = Message.text("system", "You know these numbers: " + " ".join(map(str, range(150))))
    first = await llm.complete([system, Message.text("user", "Which is the first? Only the number.")])
    again = await llm.complete([system, Message.text("user", "And which is the last? Only the number.")])
    assert first.usage.cache_read == 0
    assert again.usage.cache_read > again.usage.input


@pytest.mark.slow
async def test_starters_at_the_same_time_share_one_server(
    connect: Callable[..., LocalLLM], place: ServerFolder
) -> None:
    said: list[str] = []
    clients = [connect(said) for _ in range(3)]
    await asyncio.gather(*(llm.start() for llm in clients))
    pid = server_pid(place)
    await asyncio.gather(*(llm.complete(ASK) for llm in clients))
    assert server_pid(place) == pid
    assert sum(line.startswith("loading the model") for line in said) == 1


@pytest.mark.slow
async def test_the_server_wants_a_key_that_only_the_user_can_read(llm: LocalLLM, place: ServerFolder) -> None:
    await llm.start()
    address = place.address()
    assert address is not None
    assert address.url.startswith("http://127.0.0.1:")
    async with httpx2.AsyncClient() as stranger:
        answer = await stranger.post(f"{address.url}/v1/chat/completions", json={"messages": []})
    assert answer.status_code == 401
    assert stat.S_IMODE((place.folder / "endpoint.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(place.folder.stat().st_mode) == 0o700


@pytest.mark.slow
async def test_it_ends_after_its_last_client_and_a_new_call_starts_another(
    connect: Callable[..., LocalLLM], place: ServerFolder
) -> None:
    one, other = connect(), connect()
    await one.start()
    await other.start()
    pid = server_pid(place)
    await one.close()
    # Longer than it outlives its last client, of which one is left.
    await asyncio.sleep(2 * IDLE)
    assert server_pid(place) == pid
    await other.close()
    await end_of(place)
    assert place.address() is None
    assert "Paris" in (await one.complete(ASK)).content
    assert server_pid(place) != pid


HOLD = """
import asyncio, sys
from handiwork.llm.local.model import LocalLLM
async def hold():
    await LocalLLM(sys.argv[1], idle=float(sys.argv[2])).start()
    print("ready", flush=True)
    await asyncio.Event().wait()
asyncio.run(hold())
"""


@pytest.mark.slow
async def test_it_outlives_the_client_that_started_it_and_forgets_killed_clients(
    model: Path, connect: Callable[..., LocalLLM], place: ServerFolder
) -> None:
    command = [sys.executable, "-c", HOLD, str(model), str(IDLE)]
    holder = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert holder.stdout is not None
    assert await holder.stdout.readline() == b"ready\n"
    pid = server_pid(place)
    llm = connect()
    await llm.start()
    holder.send_signal(signal.SIGKILL)
    await holder.communicate()
    assert "Paris" in (await llm.complete(ASK)).content
    assert server_pid(place) == pid
    await llm.close()
    await end_of(place)


@pytest.mark.slow
async def test_a_killed_server_is_started_again_by_the_next_call(llm: LocalLLM, place: ServerFolder) -> None:
    await llm.complete(ASK)
    killed = server_pid(place)
    os.kill(killed, signal.SIGKILL)
    await end_of(place)
    assert "Paris" in (await llm.complete(ASK)).content
    assert server_pid(place) != killed


@pytest.mark.slow
async def test_a_server_killed_in_mid_answer_costs_one_attempt(llm: LocalLLM, place: ServerFolder) -> None:
    await llm.start()
    killed = server_pid(place)
    pieces: list[str] = []

    def kill_at_first_piece(piece: str) -> None:
        if not pieces:
            os.kill(killed, signal.SIGKILL)
        pieces.append(piece)

    ask = [Message.text("user", "Count from one to ten in words.")]
    completion = await llm.complete(ask, on_delta=kill_at_first_piece)
    assert "ten" in completion.content.lower()
    assert len(completion.failed_attempts) == 1


@pytest.mark.slow
async def test_who_has_to_wait_is_told(connect: Callable[..., LocalLLM]) -> None:
    said: list[str] = []
    *callers, last = (connect(said) for _ in range(SLOTS + 1))
    long = [Message.text("user", "Count from one to thirty in words.")]
    busy = [asyncio.Event() for _ in callers]
    await last.start()
    calls = [
        asyncio.create_task(llm.complete(long, on_delta=lambda _, begun=begun: begun.set()))
        for llm, begun in zip(callers, busy, strict=True)
    ]
    for begun in busy:
        await begun.wait()
    assert "Paris" in (await last.complete(ASK)).content
    assert "waiting for the local model: it is busy with other calls" in said
    await asyncio.gather(*calls)


@pytest.mark.slow
async def test_a_call_can_be_cancelled(llm: LocalLLM) -> None:
    begun = asyncio.Event()
    long = [Message.text("user", "Count from one to a hundred in words.")]
    call = asyncio.create_task(llm.complete(long, on_delta=lambda _: begun.set()))
    await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert "Paris" in (await llm.complete(ASK)).content


PLAIN = "{% for message in messages %}{{ message.content }}{% endfor %}"
TOOL = Tool("run", "Run it.", {"type": "object", "properties": {}})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("template", "protocol"), [("{% if tools %}{{ tools | tojson }}{% endif %}" + PLAIN, NATIVE), (PLAIN, JSON)]
)
async def test_the_chat_template_of_a_file_decides_whether_it_gets_native_calls(
    runtime: None, tmp_path: Path, template: str, protocol: ReplyProtocol
) -> None:
    pytest.importorskip("xllamacpp")
    path = tmp_path / "tiny.gguf"
    write_gguf(path, template)
    llm = client(path)
    await llm.open()
    assert protocol_of(llm.capabilities) is protocol
    completion = await llm.complete([Message.text("user", "go")], [TOOL] if protocol is NATIVE else ())
    assert completion.usage.input > (100 if protocol is NATIVE else 0)  # the template has written the tool
    await llm.close()
    await end_of(server_folder_of(path))


async def test_a_file_that_is_no_model_is_one_clear_error(runtime: None, tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"not a model" * 100)
    llm = client(path)
    with pytest.raises(ModelNotFoundError, match=r"broken\.gguf did not start: .*failed to load model.*log\.txt"):
        await llm.complete(ASK)
    await llm.close()


async def test_a_folder_that_others_can_enter_is_refused(runtime: None, tmp_path: Path) -> None:
    path = tmp_path / "some.gguf"
    path.touch()
    folder = server_folder_of(path).folder
    folder.chmod(0o755)
    with pytest.raises(ModelNotFoundError, match="open to other users"):
        server_folder_of(path)

"""The notebook as the platform sees it: which Python it is, pictures as blobs, and an agent's own tools."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from examples.custom_tool import CountingAgent
from handiwork.errors import SandboxError
from handiwork.events.action import IPythonRunCellAction
from handiwork.events.base import Part
from handiwork.events.observation import IPythonRunCellObservation
from handiwork.llm.types import Capabilities
from handiwork.log.store import Store
from handiwork.sandbox.base import Sandbox
from handiwork.sandbox.host import HostSandbox
from tests.hostile.lying_sandbox import said, server
from tests.notebook.cells import png, showing
from tests.sandbox.helpers import Blobs, Box, new_box, output
from tests.session.bench import Bench, call, finish


@pytest.fixture(autouse=True)
def short_runtime_dir(monkeypatch: pytest.MonkeyPatch) -> object:
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        monkeypatch.setenv("PATH", "/usr/bin:/bin")
        yield


@pytest.fixture
async def box(tmp_path: Path) -> AsyncIterator[Box]:
    async with new_box(tmp_path) as made:
        yield made


async def cell(sandbox: Sandbox, code: str) -> IPythonRunCellObservation:
    observation = await sandbox.execute(IPythonRunCellAction(code=code, timeout=60))
    assert isinstance(observation, IPythonRunCellObservation), observation
    return observation


async def test_a_cell_streams_and_its_pictures_are_blobs(box: Box) -> None:
    sandbox = box.make()
    await sandbox.start()
    seen: list[str] = []
    observation = await sandbox.execute(IPythonRunCellAction(code=showing(png(3, 2))), seen.append)
    assert isinstance(observation, IPythonRunCellObservation)
    (image,) = observation.images
    assert image.media_type == "image/png"
    assert box.blobs.kept[image.blob or ""] == png(3, 2)
    assert "".join(seen) == observation.content == "a picture\n"
    assert await output(sandbox, "ls $TMPDIR/handiwork-spool-* 2>/dev/null | wc -l") == "0"


async def test_the_projects_own_python_runs_the_cells_with_its_packages(box: Box) -> None:
    environment = box.project / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    (packages,) = environment.glob("lib/python3*/site-packages")
    (packages / "of_the_project.py").write_text("word = 'found'")
    sandbox = box.make(mounts=[".venv"])
    await sandbox.start()
    code = "import of_the_project, sys\nprint(sys.executable, of_the_project.word)"
    assert (await cell(sandbox, code)).content == f"{environment}/bin/python found\n"


async def test_where_the_project_has_no_python_for_it_the_bundles_runs_the_cells(box: Box) -> None:
    (box.project / "venv/bin").mkdir(parents=True)
    (box.project / "venv/bin/python").symlink_to("/bin/false")
    sandbox = box.make()
    await sandbox.start()
    found = await cell(sandbox, "import sys; print(sys.executable)")
    host_has_new_python = subprocess.run(
        ["/usr/bin/python3", "-c", "import sys; sys.exit(sys.version_info < (3, 11))"], check=False
    )
    expected = "/usr/bin/python3" if host_has_new_python.returncode == 0 else "/opt/handiwork/bin/python3"
    assert found.content == f"{expected}\n"


async def test_without_a_sandbox_there_is_a_notebook_too(tmp_path: Path) -> None:
    sandbox = HostSandbox(tmp_path, Blobs().save)
    await sandbox.start()
    try:
        assert (await cell(sandbox, "import os; print(os.getuid())")).content == f"{os.getuid()}\n"
    finally:
        await sandbox.close()


@pytest.mark.slow
async def test_pip_says_in_its_own_words_that_there_is_no_network(box: Box) -> None:
    sandbox = box.make()
    await sandbox.start()
    observation = await cell(sandbox, "%pip install --disable-pip-version-check no-such-package")
    assert "No matching distribution found for no-such-package" in observation.content


@pytest.mark.slow
async def test_pip_installs_into_the_agents_home(box: Box) -> None:
    (box.project / "mine/setup").mkdir(parents=True)
    (box.project / "mine/pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        '[project]\nname = "mine"\nversion = "1"\n'
    )
    (box.project / "mine/backend.py").write_text(BACKEND)
    sandbox = box.make()
    await sandbox.start()
    observation = await cell(sandbox, "%pip install --no-index ./mine")
    assert "Successfully installed mine-1" in observation.content
    assert (await cell(sandbox, "import mine; print(mine.__file__)")).content.startswith("/home/agent/.local/")


BACKEND = """
import os, zipfile
def build_wheel(directory, settings=None, metadata=None):
    with zipfile.ZipFile(os.path.join(directory, "mine-1-py3-none-any.whl"), "w") as wheel:
        wheel.writestr("mine.py", "word = 1")
        wheel.writestr("mine-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: mine\\nVersion: 1\\n")
        wheel.writestr("mine-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("mine-1.dist-info/RECORD", "")
    return "mine-1-py3-none-any.whl"
"""

ANSWER = '{"observation": {"type": "IPythonRunCellObservation", "code": "x", "images": %s}}\n'


@pytest.mark.parametrize(
    "images", ['"x"', "[5]", '[{"spool": "../health"}]', "[" + ",".join(['{"spool": "a"}'] * 17) + "]"]
)
async def test_pictures_that_are_not_of_the_protocol_are_an_error(tmp_path: Path, images: str) -> None:
    async with server(tmp_path, said((ANSWER % images).encode())) as client:
        with pytest.raises(SandboxError):
            await client.execute(IPythonRunCellAction(code="x"))


@pytest.mark.parametrize(
    ("media_type", "data"),
    [
        ("image/png", b"no picture"),
        ("text/html", png()),
        ("image/png", png() + b"x" * 4_000_000),
        ("image/png", png(8001, 1)),
        ("image/jpeg", b"\xff\xd8\xff\xe0\0\x10" + bytes(14) + b"\xff\xc0\0\x11\x08\0\x01\x1f\x41"),
    ],
)
async def test_what_is_no_picture_is_left_out(tmp_path: Path, media_type: str, data: bytes) -> None:
    named = f'[{{"spool": "a", "media_type": "{media_type}", "blob": "{"0" * 64}"}}]'

    async def answer(path: str) -> AsyncIterator[bytes]:
        yield data if path.startswith("/spool") else (ANSWER % named).encode()

    blobs = Blobs()
    async with server(tmp_path, answer, blobs=blobs) as client:
        observation = await client.execute(IPythonRunCellAction(code="x"))
    assert isinstance(observation, IPythonRunCellObservation)
    assert (observation.images, blobs.kept) == ((), {})
    assert re.search("a picture is left out", observation.content)


async def test_an_agents_own_tool_runs_in_the_sandboxs_notebook(box: Box, tmp_path: Path) -> None:
    async with Store.open(tmp_path / "data") as store:
        (box.project / "poem").write_text("a rose is a rose\n")
        bench = Bench(store, box.project, box.stack)
        replies = [
            call("count_words", path="poem", at_least=2),
            call("count_words", path="poem", at_least="often"),
            call("ipython", code="exit()"),
            call("count_words", path="it's not there"),
            finish(),
        ]
        session = await bench.session(replies, agent=CountingAgent, sandbox=box.make())
        state = await session.run("count the words")
    assert state.agent_state == "finished"
    answers = [message.content[0].text or "" for message in bench.llm.requests[-1] if message.role == "tool"]
    assert answers[0] == "{'a': 2, 'rose': 2}"
    assert answers[1].startswith("The arguments of count_words do not fit: at_least:")
    assert "All variables are gone" in answers[2]
    assert 'FileNotFoundError: [Errno 2] No such file or directory: "it\'s not there"' in answers[3]


async def test_a_model_with_eyes_sees_the_pictures(box: Box, tmp_path: Path) -> None:
    async with Store.open(tmp_path / "data") as store:
        bench = Bench(store, box.project, box.stack)
        replies = [call("ipython", code=showing(png())), finish()]
        session = await bench.session(replies, sandbox=box.make(), capabilities=Capabilities(vision=True))
        state = await session.run("look")
    observation = state.history[1][1]
    assert isinstance(observation, IPythonRunCellObservation)
    (answer,) = [message for message in bench.llm.requests[-1] if message.role == "tool"]
    assert answer.content == (Part(text="a picture\n[1 picture]"), *observation.images)

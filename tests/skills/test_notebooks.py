"""The skills in the notebooks of real sandboxes, run by the bundle's Python and by a project's own."""

from __future__ import annotations

import struct
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from handiwork.events.action import FileWriteAction, IPythonRunCellAction
from handiwork.events.base import Part
from handiwork.events.observation import FileWriteObservation, IPythonRunCellObservation
from handiwork.sandbox.base import Sandbox
from handiwork.sandbox.bundle import bundle_root, host_command
from handiwork.sandbox.host import HostSandbox
from handiwork.sandbox.questions import QuestionError
from handiwork.skills import SKILLS
from tests.sandbox.helpers import Blobs, Box, new_box


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


EDIT = """
create_file("made.py")
append_file("made.py", "def double(n):\\n    return n * 2\\n")
edit_file("made.py", 2, 2, "    return m * 2")
print("not reached")
"""


async def test_every_notebook_has_the_skills_and_loads_them_when_used(box: Box) -> None:
    sandbox = box.make()
    await sandbox.start()
    code = f"import sys\nprint(all(callable(globals()[n]) for n in {SKILLS!r}), 'handiwork_skills.edit' in sys.modules)"
    assert (await cell(sandbox, code)).content == "True False\n"
    refused = await cell(sandbox, EDIT)
    assert refused.error == "SkillError"
    assert "- line 2: undefined name 'm'" in refused.content
    assert "Traceback" not in refused.content
    assert "not reached" not in refused.content
    assert (await cell(sandbox, "print(open('made.py').read())")).content == "def double(n):\n    return n * 2\n\n"
    shown = await cell(sandbox, "search_dir('double')\nprint(edit_file.__doc__.split('\\n')[0])\nedit_file")
    assert "made.py (Line 1): def double(n):" in shown.content
    assert "Replace the lines" in shown.content
    assert "<skill edit_file(file_name, start, end, content)>" in shown.content


@pytest.mark.slow
async def test_a_projects_own_python_has_them_too(box: Box) -> None:
    environment = box.project / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    sandbox = box.make(mounts=[".venv"])
    await sandbox.start()
    refused = await cell(sandbox, f"import sys\nassert sys.executable == {str(environment / 'bin/python')!r}\n{EDIT}")
    assert refused.error == "SkillError"
    assert "- line 2: undefined name 'm'" in refused.content


async def test_a_file_that_may_not_be_written_is_refused(box: Box) -> None:
    sandbox = box.make()
    await sandbox.start()
    await cell(sandbox, "import os\ncreate_file('a.txt')\nos.chmod('a.txt', 0o444)")
    refused = await cell(sandbox, "append_file('a.txt', 'x')")
    assert refused.content.endswith("a.txt is read-only; change its mode first.\n")
    await cell(sandbox, "import os\ncreate_file('b.txt')\nappend_file('b.txt', 'old')\nos.chmod('b.txt', 0o000)")
    for call in (
        "open_file('b.txt')",
        "search_file('old', 'b.txt')",
        "append_file('b.txt', 'x')",
        "edit_file('b.txt', 1, 1, 'x')",
        "edit_file_by_replace('b.txt', 'old', 'x')",
        "insert_content_at_line('b.txt', 1, 'x')",
        "parse_latex('b.txt')",
        "parse_audio('b.txt')",
    ):
        refused = await cell(sandbox, call)
        assert (refused.error, "Permission denied" in refused.content) == ("SkillError", True), (call, refused.content)
    assert "No matches found" in (await cell(sandbox, "search_dir('old')")).content
    assert (await cell(sandbox, "os.chmod('b.txt', 0o600)\nprint(open('b.txt').read())")).content == "old\n\n"
    for path in ("/etc/made", "/proc/made"):
        assert (await cell(sandbox, f"create_file('{path}')")).error == "SkillError"


async def test_a_written_file_is_checked_by_the_bundles_grammars_and_the_projects_python(box: Box) -> None:
    sandbox = box.make()
    await sandbox.start()
    for path, content, error in [
        ("a.rs", "fn main() {\n    let x = (1;\n}\n", "line 2: ')' is missing"),
        ("a.py", "x = f'{d['a']}'\ntype X = int\n", ""),
        ("b.py", "x = (\n", "line 1: '(' was never closed"),
    ]:
        written = await sandbox.execute(FileWriteAction(path=path, content=content))
        assert isinstance(written, FileWriteObservation)
        assert written.syntax_error == error


async def test_without_a_sandbox_they_are_there_too(tmp_path: Path) -> None:
    sandbox = HostSandbox(tmp_path, Blobs().save)
    await sandbox.start()
    try:
        refused = await cell(sandbox, EDIT)
        assert "- line 2: undefined name 'm'" in refused.content
        assert "made.py (Line 1)" in (await cell(sandbox, "search_dir('double')")).content
        assert "parse_pdf" in (await cell(sandbox, "parse_pdf")).content
    finally:
        await sandbox.close()


OWN = '''
"""Skills of a user."""
import json
COUNT = []

def greet(name: str = "you") -> None:
    """Greet a person."""
    COUNT.append(name)
    print(f"Hello, {name}, number {len(COUNT)}")

async def later() -> str:
    """Answer later."""
    return json.dumps(COUNT)

def fails() -> None:
    """Fail."""
    raise KeyError("of a user")
'''


async def test_a_users_own_skills_join_them_in_every_kernel(box: Box) -> None:
    own = {"name": "mine", "source": OWN, "functions": ["greet", "later", "fails"]}
    sandbox = box.make(skills=[own])
    await sandbox.start()
    assert (await cell(sandbox, "import sys\n'mine' in sys.modules")).content == "False\n"
    assert (await cell(sandbox, "greet()\ngreet('Ann')")).content == "Hello, you, number 1\nHello, Ann, number 2\n"
    assert (await cell(sandbox, "await later()")).content == '\'["you", "Ann"]\'\n'
    failed = await cell(sandbox, "fails()")
    assert failed.error == "KeyError"
    assert 'raise KeyError("of a user")' in failed.content
    await cell(sandbox, "exit()")
    assert (await cell(sandbox, "greet()\ngreet")).content == ("Hello, you, number 1\n<skill greet(name='you')>\n")


async def test_a_picture_is_made_ready_in_the_sandbox_and_asked_about_outside(box: Box) -> None:
    (box.project / "wide.gif").write_bytes(gif(2000, 10))
    sandbox, asked = box.make(), list[tuple[str, Part]]()
    await sandbox.start()

    async def ask(prompt: str, image: Part) -> str:
        asked.append((prompt, image))
        if prompt == "fail":
            raise QuestionError("it does not know")
        return f"answer {len(asked)}"

    code = "for task in 'one', 'two', 'fail':\n    parse_image('wide.gif', task)"
    observation = await sandbox.execute(IPythonRunCellAction(code=code, timeout=60), ask=ask)
    assert observation.content == "answer 1\nanswer 2\nERROR: It does not know.\n"
    picture = box.blobs.kept[asked[0][1].blob or ""]
    assert struct.unpack(">II", picture[16:24]) == (1568, 8)
    alone = await cell(sandbox, "parse_image('wide.gif')")
    assert alone.content == "ERROR: There is no session whose model could answer.\n"


def gif(width: int, height: int) -> bytes:
    """A black picture, in the fewest bytes that every reader takes."""
    code = "import sys; sys.path.append(sys.argv[1]); from PIL import Image; "
    code += f"Image.new('P', ({width}, {height})).save(sys.stdout.buffer, 'GIF')"
    libraries = str(bundle_root() / "lib/python3/dist-packages")
    python = [*host_command("python3"), "-I", "-S", "-c"]
    return subprocess.run([*python, code, libraries], check=True, stdout=subprocess.PIPE).stdout

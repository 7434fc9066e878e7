"""The shipped tools by themselves: windows, guarded edits that touch nothing else, searches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handiwork.agents.swe_agent.bundles import SHIPPED

pytestmark = pytest.mark.slow


class Tools:
    """Runs the tools in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        libs = [str(SHIPPED / name / "lib") for name in ("registry", "windowed", "windowed_edit_linting", "search")]
        self._environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(libs),
            "PYTHONDONTWRITEBYTECODE": "1",
            "SWE_AGENT_ENV_FILE": str(folder / ".env"),
        }

    def __call__(self, tool: str, *arguments: str, text: bytes = b"") -> tuple[str, int]:
        (path,) = SHIPPED.glob(f"*/bin/{tool}")
        command = [sys.executable, "-S", str(path), *arguments]
        done = subprocess.run(command, cwd=self.folder, env=self._environment, input=text, capture_output=True)
        return done.stdout.decode() + done.stderr.decode(), done.returncode


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    return Tools(tmp_path)


CHARACTERS = st.characters(codec="ascii", exclude_characters="\r\n")
ASCII = st.lists(st.text(CHARACTERS, max_size=4).map(str.encode), max_size=5)
LINES = st.lists(st.binary(max_size=4).map(lambda b: b.replace(b"\n", b"").replace(b"\r", b"")), max_size=5)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("area.py", "\nFiles with a similar name: lib/area.py, src/area.py."),
        ("lib/Area.py", "\nFiles with a similar name: lib/area.py, src/area.py."),
        ("lib/areas.py", "\nFiles with a similar name: lib/area.py, src/area.py."),
        ("half.py", ""),
    ],
)
def test_a_missing_file_is_told_with_those_of_a_similar_name(name: str, told: str, tools: Tools) -> None:
    for folder in ("lib", "src", ".git", "node_modules/a"):
        (tools.folder / folder).mkdir(parents=True)
        (tools.folder / folder / "area.py").touch()
    assert tools("open", name) == (f"Error: there is no file {name}.{told}\n", 1)


@settings(max_examples=15)
@given(lines=LINES, end=st.sampled_from([b"\n", b"\r\n"]), final=st.booleans(), new=ASCII, data=st.data())
def test_an_edit_touches_nothing_outside_of_its_range(
    lines: list[bytes], end: bytes, final: bool, new: list[bytes], data: st.DataObject
) -> None:
    content = end.join(lines) + (end if final and lines else b"")
    count = len(content.split(b"\n")) - (not content or content.endswith(b"\n"))
    first = data.draw(st.integers(1, max(1, count)))
    last = data.draw(st.integers(first, max(first, count)))
    kept = content.split(b"\n")
    before = b"".join(line + b"\n" for line in kept[: first - 1])
    after = b"\n".join(kept[last:])
    eol = b"\r\n" if end == b"\r\n" and b"\n" in content else b"\n"
    middle = b"".join(line + eol for line in new)
    if last >= count and content and not content.endswith(b"\n"):
        middle = middle.removesuffix(eol)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "data.txt")
        file.write_bytes(content)
        Path(folder, ".env").write_text(json.dumps({"CURRENT_FILE": str(file.resolve())}))
        text = b"".join(line + b"\n" for line in new) + b"end_of_edit\n"
        output, code = Tools(Path(folder))("edit", f"{first}:{last}", text=text)
        assert code == 0, output
        assert file.read_bytes() == before + middle + after


def test_text_of_another_encoding_is_never_put_into_a_file(tools: Tools) -> None:
    file = tools.folder / "a.txt"
    latin = "caf\xe9\ntea\n".encode("latin-1")
    file.write_bytes(latin)
    assert "1:caf\ufffd\n" in tools("open", "a.txt")[0]
    for seen in ("caf\ufffd noir\n", "caf\xe9 noir\n"):
        output, code = tools("edit", "1:1", text=seen.encode())
        assert (code, "not in UTF-8" in output) == (1, True)
        assert file.read_bytes() == latin
    assert tools("edit", "2:2", text=b"milk\n")[1] == 0
    assert file.read_bytes() == "caf\xe9\nmilk\n".encode("latin-1")


def test_a_window_and_its_moves(tools: Tools) -> None:
    (tools.folder / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 301)))
    shown, _ = tools("open", "a.txt")
    assert shown.splitlines()[0] == f"[File: {tools.folder}/a.txt (300 lines total)]"
    assert shown.splitlines()[1] == "1:line 1"
    assert shown.splitlines()[-2:] == ["100:line 100", "(200 more lines below)"]
    shown, _ = tools("scroll_down")
    assert shown.splitlines()[1:3] == ["(98 more lines above)", "99:line 99"]
    shown, _ = tools("goto", "250")
    assert "(200 more lines above)\n201:line 201\n" in shown
    assert shown.endswith("300:line 300\n")
    shown, _ = tools("scroll_up")
    assert "(102 more lines above)" in shown
    shown, _ = tools("open", "a.txt", "1000")
    assert shown.startswith("Warning: the file has 300 lines, so line 300 is shown.\n")
    for arguments, problem in (
        (("open", "none"), "there is no file none"),
        (("open", "."), "is a directory"),
        (("goto", "301"), "has 300 lines"),
        (("goto", "x"), "is not a line number"),
        (("create", "a.txt"), "exists already"),
        (("edit", "0:1"), "no range"),
        (("edit", "5:301"), "no range"),
        (("edit", "x"), "Usage: edit"),
    ):
        output, code = tools(*arguments)
        assert (code, problem in output) == (1, True), output
    assert tools("create", "new/b.py")[0].endswith("(1 lines total)]\n1:\n")
    state = json.loads(tools("_state")[0])
    assert state == {"open_file": f"{tools.folder}/new/b.py", "working_dir": str(tools.folder)}


GUARDED = [
    ("a.py", "def f():\n    return 1\n", "2:2", "return 1\n", "IndentationError"),
    ("a.py", "x = 1\n", "1:1", "x = (1\n", "never closed"),
    ("a.py", "x = 1\n", "1:1", "x = y\n", "undefined name 'y'"),
    ("a.json", '{"a": 1}\n', "1:1", '{"a": }\n', "Expecting value"),
    ("a.sh", "if true; then\n  ls\nfi\n", "3:3", "", "syntax error"),
]


@pytest.mark.parametrize(("name", "text", "lines", "new", "problem"), GUARDED)
def test_an_edit_that_adds_errors_is_refused(
    tools: Tools, name: str, text: str, lines: str, new: str, problem: str
) -> None:
    (tools.folder / name).write_text(text)
    tools("open", name)
    output, code = tools("edit", lines, text=new.encode())
    assert code == 1
    assert problem in output
    assert "NOT been applied" in output
    assert (tools.folder / name).read_text() == text


def test_an_edit_is_not_blamed_for_errors_that_were_there(tools: Tools) -> None:
    file = tools.folder / "a.py"
    file.write_text("a = b\nc = 1\nd = e\nf = (\n")
    tools("open", "a.py")
    assert tools("edit", "2:2", text=b"c = 2\nc = 3\n")[1] == 0
    assert tools("edit", "5:5", text=b"f = 1\n")[1] == 0, "names that the syntax error hid are none of its own"
    assert tools("edit", "2:2", text=b"c = g\n")[1] == 1
    file.write_text("from os import *\nprint(getcwd(), x)\n")
    assert tools("edit", "2:2", text=b"print(other)\n")[1] == 0, "a star may define any name"


def test_the_uses_of_an_undefined_name_can_be_repaired_one_by_one(tools: Tools) -> None:
    file = tools.folder / "a.py"
    file.write_text("a = unicode(1)\nb = unicode(2)\n")
    tools("open", "a.py")
    assert tools("edit", "1:1", text=b"a = str(1)\n")[1] == 0
    assert file.read_text() == "a = str(1)\nb = unicode(2)\n"
    assert tools("edit", "1:1", text=b"a = unicode(1)\n")[1] == 0, "it may be a builtin, like gettext's _"


def test_searches_end_at_fifty(tools: Tools) -> None:
    (tools.folder / "many.txt").write_text("some word\n" * 60)
    (tools.folder / ".hidden").write_text("some word\n")
    (tools.folder / "image").write_bytes(b"\0 some word\n")
    (tools.folder / "one.py").write_text("a = 'rare'\n")
    output, _ = tools("search_dir", "word")
    assert output.startswith('Found 60 matches for "word" in .:\nmany.txt:1: some word\n')
    assert output.count("some word") == 50
    assert output.endswith("Narrow your search: a more specific term, or a subdirectory.\n")
    assert "one.py:1: a = 'rare'" in tools("search_dir", "rare", str(tools.folder))[0]
    assert tools("search_dir", "absent")[0] == 'No matches found for "absent" in ..\n'
    assert tools("search_file", "rare", "one.py")[0].splitlines()[1] == "1: a = 'rare'"
    assert "No file is open" in tools("search_file", "rare")[0]
    assert tools("find_file", "*.py")[0].splitlines()[1] == "one.py"
    assert "there is no directory none" in tools("search_dir", "x", "none")[0]

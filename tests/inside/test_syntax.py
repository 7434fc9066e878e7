"""The observation of a written or edited file tells of its syntax error; the file is written all the same."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.sandbox.bundle import bundle_root
from handiwork.sandbox.inside.syntax.check import LIMIT, first_new_problem, language_of, syntax_problems
from tests.inside.inside_client import Client, start_server, stop_server

LIBRARIES = str(bundle_root() / "lib/python3/dist-packages")


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    client = await start_server(tmp_path, HANDIWORK_INSIDE_LIBRARIES=LIBRARIES)
    yield client
    await stop_server(client)


async def test_a_write_tells_of_the_first_error(client: Client) -> None:
    for path, content, error in [
        ("a.py", "def f(:\n    pass\n", "line 1: invalid syntax"),
        ("b.py", "x = [1,\n", "line 1: '[' was never closed"),
        ("b2.py", "def f():\n    return '\n'.join([])\n", "line 2: unterminated string literal (detected at line 2)"),
        (
            "c.py",
            "if x:\npass\n",
            "line 2: IndentationError: expected an indented block after 'if' statement on line 1",
        ),
        ("d.js", "function f() {\n  return (1;\n}\n", "line 2: ')' is missing"),
        ("e.json", '{"a": 1\n "b": 2}', """line 2: Expecting ',' delimiter, not '"b": 2}'"""),
        ("l.toml", "a = 1\nb = [1, 2\n", "line 2: Unclosed array"),
        ("m.toml", "[a]\nb 1\n", "line 2: Expected '=' after a key in a key/value pair"),
        ("f.sh", "if true; then\n  echo\n", "line 3: syntax error: unexpected end of file"),
        ("g.py", "x = 1\nprint(undefined)\n", ""),
        ("h.py", "type X = int\nclass A[T]: pass\n", ""),
        ("i.txt", "(", ""),
        ("j.py", "", ""),
        ("k.py", f"x = (\n{'#' * LIMIT}", ""),
    ]:
        observation = await client.execute("FileWriteAction", path=path, content=content)
        assert (observation["created"], observation["syntax_error"]) == (True, error), path
        assert (client.workspace / path).read_text() == content


async def test_an_edit_that_breaks_a_file_stands_and_one_that_mends_it_is_silent(client: Client) -> None:
    (client.workspace / "a.go").write_text("package a\n\nfunc f() int {\n\treturn 1\n}\n")
    broken = await client.execute("FileEditAction", path="a.go", old="return 1", new="return (1")
    assert broken["syntax_error"] == "line 4: ')' is missing"
    assert "+\treturn (1" in broken["content"]
    mended = await client.execute("FileEditAction", path="a.go", old="(1", new="2")
    assert mended["syntax_error"] == ""


async def test_what_a_grammar_never_understood_is_not_told_again(client: Client) -> None:
    macros = "BEGIN_DECLS int f(void) { return MAYBE(1) 2; }\n"
    (client.workspace / "a.c").write_text(macros)
    edited = await client.execute("FileEditAction", path="a.c", old="2;", new="3;")
    assert edited["syntax_error"] == ""


async def test_a_changed_file_tells_of_new_undefined_names(client: Client) -> None:
    for path, content, names in [
        (
            "a.py",
            "import os\nprint(path)\nprint(other, path)\n",
            ["line 2: undefined name 'path'", "line 3: undefined name 'other'"],
        ),
        (
            "a.py",
            "import os\n\nprint(path)\nprint(other, third)\n",
            ["line 3: undefined name 'path'", "line 4: undefined name 'other'", "line 4: undefined name 'third'"],
        ),
        ("a.py", "print(path)\nprint(other)\n", ["line 1: undefined name 'path'", "line 2: undefined name 'other'"]),
        ("a.py", "path = 1\nprint(path)\n", []),
        ("b.py", "def f():\n    print(x)\n    x = 1\n", ["line 2: undefined name 'x'"]),
        ("c.py", "print(x)  # noqa\nfrom a import *\n", []),
        ("d.py", "print(x\n", []),
        ("d.py", "print(x)\n", []),  # the names of the broken version are unknown
        ("e.js", "print(x)\n", []),
        ("g.py", "a = 1\rprint(b)\r", ["line 2: undefined name 'b'"]),
        ("f.py", f"print(x)\n{'#' * LIMIT}", []),
    ]:
        observation = await client.execute("FileWriteAction", path=path, content=content)
        assert observation["undefined_names"] == names, (path, content)
    (client.workspace / "old.py").write_text("print(x)\nprint(1)\n")
    edited = await client.execute("FileEditAction", path="old.py", old="1", new="2")
    assert edited["undefined_names"] == []
    edited = await client.execute("FileEditAction", path="old.py", old="2", new="os")
    assert edited["undefined_names"] == ["line 2: undefined name 'os'"]


@pytest.mark.parametrize(
    ("path", "source", "language"),
    [
        ("a.PY", b"", "python"),
        ("tool", b"#!/usr/bin/env python3\n", "python"),
        ("tool", b"#!/bin/sh\n", "bash"),
        ("tool", b"#!/usr/bin/perl\n", ""),
        ("tool", b"", ""),
        (".vscode/settings.json", b"", ""),
        ("x/tsconfig.base.json", b"", ""),
        ("package.json", b"", "json"),
        ("{{name}}.py", b"", ""),
        ("a.md", b"", ""),
    ],
)
def test_the_language_is_known_by_name_or_first_line(path: str, source: bytes, language: str) -> None:
    assert language_of(path, source) == language


@given(st.binary(max_size=300), st.sampled_from(["a.py", "a.json", "a.toml", "a.txt"]))
def test_no_file_breaks_the_check(source: bytes, path: str) -> None:
    assert all(problem.line >= 0 for problem in syntax_problems(path, source))


@pytest.mark.parametrize("source", [b"(" * 100_000, b"-" * 100_000, b"x" + b".y" * 50_000, b"[" * 99 + b"]" * 99])
def test_deep_nesting_is_survived(source: bytes) -> None:
    assert isinstance(first_new_problem("a.py", None, source), str)
    assert isinstance(first_new_problem("a.json", None, source), str)


def test_a_newer_interpreter_of_the_project_has_the_last_word(tmp_path: Path) -> None:
    newer = tmp_path / "python"
    newer.write_text("#!/bin/sh\necho right\n")
    newer.chmod(0o755)
    source = b"x = future syntax of Python\n"
    assert first_new_problem("a.py", None, source) == "line 1: invalid syntax"
    assert first_new_problem("a.py", None, source, lambda: ((str(newer),),)) == ""
    assert "IndentationError" in first_new_problem("a.py", None, b"if x:\npass", lambda: ((str(newer),),))


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    f()\n",
        "def f(a=1, b): pass",
        "x = 'C:\\Users'",
        "raise E, 'x'",
        "try: f()\nexcept E, e: print(e)",
        "try: f()\nexcept A, B as e: pass",
        "x = 0777",
        "x = b'\u00e9'",
        "del f()",
        "x = 'a' b'b'",
        "x = 1\u00a0+ 2",
        "x = 10L",
        "def f(**k, a): pass",
        "def f((a, b)): pass",
        "x = f'{a!x}'",
    ],
)
def test_what_no_python_accepts_is_not_taken_for_newer_syntax(source: str) -> None:
    assert first_new_problem("a.py", None, source.encode()).startswith("line ")


@pytest.mark.parametrize(
    "source",
    [
        "match a:\n    case [1, *x]: pass",
        "try: f()\nexcept* E: pass",
        "try: f()\nexcept A, b.B: pass",
        "from socket import timeout\ntry: f()\nexcept OSError, timeout: pass",
        "def f[T: int](x: T) -> T: return x",
        "type X[T] = list[T]",
        "x = f'{a['b']}{a['0777']}{a['1b']}{a['\u00a0']}{'\\n'.join(a)}'",
        "x = t'{a!r}'",
        "x = [*a for a in b]",
    ],
)
def test_the_syntax_of_newer_pythons_is_right(source: str) -> None:
    assert first_new_problem("a.py", None, source.encode()) == ""

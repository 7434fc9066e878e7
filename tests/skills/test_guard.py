"""The guard: an edit that adds errors is refused with both versions, and the file stays as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from handiwork.skills import append_file, edit_file, edit_file_by_replace
from handiwork.skills.tools import SkillError

GOOD = {
    "a.py": "import os\n\n\ndef f(a):\n    return os.path.join(a)\n",
    "a.js": "function f(a) {\n  return a;\n}\n",
    "a.ts": "function f(a: number): number {\n  return a;\n}\n",
    "a.tsx": "export const A = (p: { n: number }) => <b>{p.n}</b>;\nconst b = 1;\n",
    "a.java": "class A {\n  int f() {\n    return 1;\n  }\n}\n",
    "a.go": "package a\n\nfunc f() int {\n\treturn 1\n}\n",
    "a.rs": "fn f() -> i32 {\n    return 1;\n}\n",
    "a.c": "int f(void) {\n  return 1;\n}\n",
    "a.cpp": "class A {\n  int f() { return 1; }\n};\n",
    "a.rb": "def f\n  return 1\nend\n",
    "a.php": "<?php\nfunction f() {\n  return 1;\n}\n",
    "a.cs": "class A {\n  int F() {\n    return 1;\n  }\n}\n",
    "a.sh": "#!/bin/bash\nif true; then\n  echo 1\nfi\n",
    "a.json": '{\n  "a": [1, 2],\n  "b": 1\n}\n',
    "a.toml": "[a]\nb = [1, 2]\n",
}


@pytest.mark.parametrize("name", GOOD)
def test_a_bracket_left_open_is_refused_in_every_language(folder: Path, name: str) -> None:
    (folder / name).write_text(GOOD[name])
    list_left_open = ("[1, 2]", "[1, 2")
    special = {"a.sh": ("\nfi\n", "\n"), "a.rb": ("\nend\n", "\n"), "a.json": list_left_open, "a.toml": list_left_open}
    old, new = special.get(name, ("1" if "1" in GOOD[name] else "return ", "(1" if "1" in GOOD[name] else "return ("))
    with pytest.raises(SkillError, match="was left as it was"):
        edit_file_by_replace(name, old, new)
    assert (folder / name).read_text() == GOOD[name]
    append_file(name, "\n")
    assert (folder / name).read_text() == GOOD[name] + "\n"


def test_the_refusal_has_the_errors_and_both_versions(folder: Path) -> None:
    (folder / "a.py").write_text(GOOD["a.py"])
    with pytest.raises(SkillError) as error:
        edit_file("a.py", 5, 5, "    return b + c")
    assert str(error.value) == (
        f"The edit would add errors, so {folder}/a.py was left as it was:\n"
        "- line 5: undefined name 'b'\n- line 5: undefined name 'c'\n"
        "With the edit it would have been:\n1|import os\n2|\n3|\n4|def f(a):\n5|    return b + c\n"
        "It still is:\n1|import os\n2|\n3|\n4|def f(a):\n5|    return os.path.join(a)\n"
        "Do not run the same edit again: correct it."
    )


@pytest.mark.parametrize(
    ("before", "old", "new", "error"),
    [
        ("x = 1\n", "x = 1", "x = = 1", "invalid syntax"),
        ("def f():\n    pass\n", "    pass", "pass", "IndentationError"),
        ("x = 1\n", "x = 1", "return 1", "'return' outside function"),
        ("import a\nprint(a)\n", "import a\n", "", "undefined name 'a'"),
        ("def f(a, b): pass\n", "b)", "a)", "duplicate argument"),
        ("__all__ = ['f']\ndef f(): pass\n", "def f", "def g", "undefined name 'f' in __all__"),
    ],
)
def test_errors_of_python(folder: Path, before: str, old: str, new: str, error: str) -> None:
    (folder / "a.py").write_text(before)
    with pytest.raises(SkillError, match=error):
        edit_file_by_replace("a.py", old, new)
    assert (folder / "a.py").read_text() == before


@pytest.mark.parametrize(
    ("name", "before", "old", "new"),
    [
        ("a.py", "print(unknown)\nx = 1\n", "x = 1", "x = unknown"),
        ("a.py", "x = (\ny = 1\n", "y = 1", "y = [1"),
        ("a.py", "x = (\ny = unknown\n", "(", "1"),
        ("a.py", "x = 1\n", "1", "unknown  # noqa: F821"),
        ("a.py", "x = 1\n", "x = 1", "type X = int"),
        ("a.py", "x = 1\n", "x = 1", "def f[T](x: T) -> T: return x"),
        ("a.py", "x = {}\n", "x = {}", "x = {'a': 1}\nprint(f'{x['a']}')"),
        ("a.c", "int f( { return 1; }\n", "1", "2"),
        ("tsconfig.json", '{"a": 1}\n', "1}", "1, // one\n}"),
        ("a.txt", "(\n", "(", "(("),
        ("a.toml", "a = \nb = 1\n", "1", "2"),
        ("a.py", "x = 1\n", "x = 1", ""),
    ],
)
def test_what_was_broken_may_stay_so_and_new_syntax_is_right(
    folder: Path, name: str, before: str, old: str, new: str
) -> None:
    (folder / name).write_text(before)
    edit_file_by_replace(name, old, new)
    assert (folder / name).read_text() == before.replace(old, new)


@pytest.mark.parametrize(
    ("name", "before", "new"),
    [
        ("a.c", "int f(va_list ap) {\n  ;\n}\n", "return *va_arg(ap, char *) == '{';"),
        ("a.c", "void f(void) {\n  ;\n}\n", "/* ( */ list_for_each_entry(p, &list, node) g(p);"),
        ("a.h", "class A : public QObject {\n  ;\n};\n", "public slots: void g(); signals: void h();"),
        ("a.cpp", 'auto a = R"x(\n(\n)x";\nint b = 1\'0;\n;\n', "FOREACH(x, y) g(x);"),
        ("a.ts", "const a = `(`;\n;\n", 'export type * from "./b";'),
    ],
)
def test_what_only_a_grammar_does_not_understand_is_written_with_a_remark(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, before: str, new: str
) -> None:
    (folder / name).write_text(before)
    line = before.split("\n").index("  ;" if "  ;" in before else ";") + 1
    edit_file(name, line, line, new)
    assert new in (folder / name).read_text()
    assert f"look whether it is right: line {line}: " in capsys.readouterr().out
    with pytest.raises(SkillError, match="was left as it was"):
        edit_file(name, line, line, f"{new} f(g(")


def test_an_extended_pattern_of_bash_is_right(folder: Path) -> None:
    (folder / "a.sh").write_text("shopt -s extglob\n")
    append_file("a.sh", "rm -f !(a|b)")
    with pytest.raises(SkillError, match="syntax error"):
        append_file("a.sh", "if (")


def test_a_program_without_a_suffix_is_checked_by_its_first_line(folder: Path) -> None:
    for first in ("#!/usr/bin/env python3", "#!/bin/sh"):
        (folder / "tool").write_text(f"{first}\ntrue\n" if "sh" in first else f"{first}\nprint(1)\n")
        with pytest.raises(SkillError):
            append_file("tool", "if (")

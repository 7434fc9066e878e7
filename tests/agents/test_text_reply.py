"""What a block of plain text writes: whole files with fences of their own, at paths of any system."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handiwork.agents.base import MalformedReplyError
from handiwork.agents.codeact.toolbox import TOOLS
from handiwork.agents.protocols import BOUND_TEXT, TEXT
from handiwork.agents.protocols.ask import read
from handiwork.events.action import FileEditAction, FileWriteAction
from handiwork.llm.types import Completion

DIFF = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2"
WITHOUT_EDIT = [tool for tool in TOOLS if tool.name != "edit"]


def written(text: str) -> FileWriteAction:
    (write,) = read(TEXT, Completion(text), WITHOUT_EDIT)
    assert isinstance(write, FileWriteAction)
    return write


@pytest.mark.parametrize(
    "change",
    [
        DIFF,
        f"diff --git a/a.py b/a.py\nindex 1..2 100644\n{DIFF}",
        "<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE",
    ],
)
def test_a_change_of_a_file_is_not_written_as_its_text(change: str) -> None:
    with pytest.raises(MalformedReplyError, match="this is only a change of it"):
        written(f"```write a.py\n{change}\n```")


@pytest.mark.parametrize("heading", ["Usage\n=====", "Install\n======="])
def test_the_underline_of_a_heading_does_not_divide_a_replacement(heading: str) -> None:
    old, new = f"{heading}\n\nRun a.", f"{heading}\n\nRun b."
    change = f"<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE"
    assert [
        (action.old, action.new)
        for action in read(TEXT, Completion(f"```edit README.rst\n{change}\n{change}\n```"), TOOLS)
        if isinstance(action, FileEditAction)
    ] == [(old, new)] * 2


@pytest.mark.parametrize("path", ["a.diff", "fixes/a.patch"])
def test_a_patch_may_be_written(path: str) -> None:
    assert written(f"```write {path}\n{DIFF}\n```").content == f"{DIFF}\n"


@pytest.mark.parametrize("indent", ["", "  "])
def test_a_fence_in_a_docstring_belongs_to_the_file(indent: str) -> None:
    lines = ["def add(a, b):", '    """Add.', "", "    ```", "    add(1, 2)", "    ```", '    """', "    return a + b"]
    reply = "\n".join(f"{indent}{line}" for line in ["```write a.py", *lines, "```"])
    assert written(reply).content == "\n".join(lines) + "\n"


def test_a_deep_fence_closes_a_block_that_no_other_closes() -> None:
    assert written("```write a.py\nx = 1\n    ```").content == "x = 1\n"


@pytest.mark.parametrize("path", [r"src\shop\till.py", r'"src\shop\till.py"', "src/shop/till.py"])
def test_the_path_may_have_the_backslashes_of_windows(path: str) -> None:
    assert written(f"```write {path}\nx = 1\n```").path == "src/shop/till.py"


@pytest.mark.parametrize(
    ("written_as", "path"),
    [
        (r"app/\(shop\)/page.tsx", "app/(shop)/page.tsx"),
        (r"app/users/\[id\]/page.tsx", "app/users/[id]/page.tsx"),
        (r"routes/users.\$id.tsx", "routes/users.$id.tsx"),
        (r"my\ notes.txt", "my notes.txt"),
    ],
)
def test_the_path_may_have_the_escapes_of_a_shell(written_as: str, path: str) -> None:
    assert written(f"```write {written_as}\nx = 1\n```").path == path


def test_a_bound_list_of_texts_is_json() -> None:
    rules = str(BOUND_TEXT.request([tool for tool in TOOLS if tool.name == "fork"])[1]).splitlines()
    assert r'tool-0 ::= "```fork" "\n{" "\"tasks\": " list "}\n```"' in rules
    assert r'list ::= "[" string ( ", " string )* "]"' in rules


def test_a_bound_path_does_not_begin_with_the_word_that_stands_for_it() -> None:
    rules = str(BOUND_TEXT.request([tool for tool in TOOLS if tool.name == "read"])[1]).splitlines()
    (rule,) = (line for line in rules if line.startswith("tool-0"))
    bare, letter = r"bare*", r"""[^{} \t\n`"']"""
    last = f'"T" ( {letter.format("H")} {bare} )?'
    third = f'"A" ( {letter.format("T")} {bare} | {last} )?'
    second = f'"P" ( {letter.format("A")} {bare} | {third} )?'
    assert f'"```read" " " ( {letter.format("P")} {bare} | {second} | quoted )' in rule


@pytest.mark.parametrize(
    ("block", "arguments"),
    [
        ("search_code trigsimp exponential", {"query": "trigsimp exponential"}),
        ("search_code type: CLASS AND name: Parser*", {"query": "type: CLASS AND name: Parser*"}),
        ("search_code 'max pool'", {"query": "max pool"}),
        ("search_code\ntrigsimp exponential", {"query": "trigsimp exponential"}),
        ("read a.py 100 180", {"path": "a.py", "start": 100, "end": 180}),
        ("read a.py:100-180", {"path": "a.py", "start": 100, "end": 180}),
        ("read a.py:100:", {"path": "a.py", "start": 100}),
        ("read a.py start=100 end=180", {"path": "a.py", "start": 100, "end": 180}),
        ("read\na.py", {"path": "a.py"}),
    ],
)
def test_no_word_of_a_short_argument_is_lost(block: str, arguments: dict[str, Any]) -> None:
    (call,) = TEXT.read(f"I look.\n\n```{block}\n```", (), TOOLS).calls
    assert json.loads(call.arguments) == arguments

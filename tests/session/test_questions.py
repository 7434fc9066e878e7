"""For a question no file changes: what the platform does unasked only reads."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from handiwork.events.action import CmdRunAction
from handiwork.llm.scripted.script import Reply
from handiwork.llm.types import Capabilities
from tests.session.bench import Bench, calls

LOOK, END = ("bash", {"command": "grep -c def *.py"}), ("finish", {"message": "One."})
QUESTION, ANSWER, COUNTING, SKIP, RUN = (
    json.dumps({"answer": word}) for word in ("question", "answer", "counting", "skip", "run")
)
TOOLLESS = Capabilities(tools=False, schema=False)


def written(protocol: str, *acts: tuple[str, dict[str, Any]]) -> Reply | str:
    """Return a reply with these calls; in JSON there is one."""
    if protocol == "native":
        return calls(*acts)
    if protocol == "json":
        ((name, arguments),) = acts
        return json.dumps({"thought": "", "action": name, **arguments})
    return "\n".join(f"```{name}\n{body}\n```" for name, arguments in acts for body in arguments.values())


def tree(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return the mode, the time of the last change in ns and the bytes of every file and folder, git's too."""
    found = {str(path.relative_to(folder)): path for path in [folder, *sorted(folder.rglob("*"))]}
    stats = {name: path.stat() for name, path in found.items()}
    return {
        name: (stats[name].st_mode, stats[name].st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for name, path in found.items()
    }


def project(folder: Path) -> None:
    """Make a project whose check writes files, as most do."""
    (folder / "Makefile").write_text("test:\n\tpython3 -m unittest && touch tested\n")
    (folder / "two.py").write_text("def two():\n    return 2\n")
    (folder / "test_two.py").write_text("import unittest, two\n")
    for command in ("init -q", "add two.py", "-c user.name=A -c user.email=a@b commit -qm one"):
        subprocess.run(["git", *command.split()], cwd=folder, check=True)


@pytest.mark.parametrize(
    ("capabilities", "replies"),
    [
        pytest.param(Capabilities(), [written("native", LOOK), written("native", END), SKIP], id="native"),
        pytest.param(Capabilities(), [written("native", LOOK, END), SKIP], id="native, at once"),
        pytest.param(
            Capabilities(tools=False), [QUESTION, written("json", LOOK), written("json", END), SKIP], id="json"
        ),
        pytest.param(TOOLLESS, [QUESTION, written("text", LOOK), written("text", END), SKIP], id="text"),
        pytest.param(TOOLLESS, [QUESTION, written("text", LOOK, END), SKIP], id="text, at once"),
        pytest.param(
            Capabilities(tools=False, window=16_384),
            [QUESTION, ANSWER, COUNTING, written("json", LOOK), written("json", END), QUESTION],
            id="small",
        ),
    ],
)
async def test_a_question_leaves_the_tree_as_it_was_to_the_byte(
    bench: Bench, capabilities: Capabilities, replies: list[Reply | str]
) -> None:
    """Without a sandbox there is no copy, and no snapshot tells whether a command has changed files."""
    project(bench.workspace)
    before = tree(bench.workspace)
    session = await bench.session(replies, capabilities=capabilities)
    state = await session.run("How many functions are there? They are tested by `make test`.")
    assert state.outputs == {"message": "One."}
    assert tree(bench.workspace) == before
    assert [event.command for event in bench.events if isinstance(event, CmdRunAction)] == [LOOK[1]["command"]]


@pytest.mark.parametrize(
    ("task", "answer", "runs"),
    [
        ("Rename two to zwei. The tests are run by `make test`.", RUN, True),
        ("Rename two to zwei. Do not run `make test`, it empties the database.", SKIP, False),
    ],
)
async def test_a_check_that_the_task_forbids_does_not_run_unasked(
    bench: Bench, task: str, answer: str, runs: bool
) -> None:
    project(bench.workspace)
    write = calls(("write", {"path": "two.py", "content": "def zwei():\n    return 2\n"}))
    state = await (await bench.session([write, calls(END), answer])).run(task)
    assert state.outputs == {"message": "One."}
    assert (bench.workspace / "tested").exists() is runs

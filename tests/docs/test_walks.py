"""The three walks of CONTRIBUTING pass the files that a task passes."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from handiwork.llm.scripted.script import Reply
from tests.cli.program import Program, Terminal, bash, finish
from tests.docs.blocks import CHECKOUT
from tests.llm.standin import StandIn, serving

PACKAGE = CHECKOUT / "handiwork"
LOOP, INSIDE = "session/loop.py", "sandbox/inside/"
TEXT = (CHECKOUT / "CONTRIBUTING.md").read_text().partition("## Three walks")[2]
WALKS = [re.findall(r"`([\w/]+\.py)`", walk) for walk in re.split(r"\n\*\*", TEXT)[1:]]
WRAPPERS = re.findall(r"(?<!`)\b[\w/]+\.py\b(?!`)", TEXT)


def test_the_walks_are_as_short_as_they_say_and_their_files_are_there() -> None:
    assert [len(set(walk)) for walk in WALKS] == [len(walk) for walk in WALKS] == [6, 25, 10]
    assert len(WRAPPERS) == 6
    assert [path for walk in (*WALKS, WRAPPERS) for path in walk if not (PACKAGE / path).exists()] == []


@pytest.mark.slow
async def test_a_task_passes_the_files_of_the_walks(tmp_path: Path) -> None:
    loop, task, approval = map(set, WALKS)
    trace = await traced(tmp_path)
    stacks = {name: set(stack) for name, stack in trace["stacks"].items()}
    assert set(stacks) == {"reply", "action", "observation", "question", "answer", "approval"}
    for name in ("reply", "action", "observation"):
        assert stacks[name] - task == stacks[name] & set(WRAPPERS), name
    assert set(WRAPPERS) <= set[str]().union(*stacks.values())
    for name in ("question", "answer", "approval"):
        stack = trace["stacks"][name]
        below = set(stack[stack.index(LOOP) :] if LOOP in stack else stack)
        assert below - approval == below & set(WRAPPERS), name
    called = {path for path in loop | task | approval if not path.startswith(INSIDE)}
    assert called - set(trace["entered"]) == set()


async def traced(folder: Path) -> dict[str, Any]:
    """Run a task whose only command needs an approval; return the output of traced_program.py."""
    out, program = folder / "trace.json", Program(folder, folder / "cache")
    replies = [Reply.model_validate(reply) for reply in (bash("rm greeting.txt"), finish())]
    environment = {key: value for key, value in program.environment.items() if key != "PYTHONPYCACHEPREFIX"}

    def run(base_url: str) -> None:
        arguments = ["run", "tidy up", "--model", "m", "--base-url", base_url, "--confirm", "always"]
        command = [sys.executable, "-m", "tests.docs.traced_program", str(out), *arguments]
        with Terminal(command, program.workspace, {**environment, "PYTHONPATH": str(CHECKOUT)}) as terminal:
            terminal.until("allow?")
            terminal.write("y\n")
            assert terminal.exit_code() == 0, terminal.seen

    async with serving(StandIn(replies)) as model:
        await asyncio.to_thread(run, model.base_url)
    return json.loads(out.read_text())

"""Defects found in other systems by running them, by their numbers in the inventory: none of them is here.

Those with a place of their own are tested there: F1 in test_limits.py and test_delegation.py, F2 in test_delegation.py,
F6 also in test_approvals.py, F7 in test_stuck.py and test_steering.py, F11 in test_interrupts.py, F13 in
test_micro_agents.py.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import handiwork
from handiwork.events.observation import CmdOutputObservation, ErrorObservation, FileEditObservation
from handiwork.llm.create import create
from handiwork.llm.scripted.script import Reply
from handiwork.sandbox.host import HostSandbox
from tests.llm.standin import StandIn, answer, serving
from tests.session.bench import Bench, bash, call, finish

pytestmark = pytest.mark.slow


async def test_f3_a_command_that_takes_longer_is_left_running_and_can_be_waited_for(bench: Bench) -> None:
    def watch(item: Any) -> None:
        bench.watched.append(item)
        if isinstance(item, CmdOutputObservation) and item.status == "running":
            (bench.workspace / "go").write_text("now\n")

    sandbox = HostSandbox(bench.workspace, bench.store.blobs.put, soft_timeout=0.3)
    replies = [bash("mkfifo go"), bash("echo begun; read line < go; echo $line"), bash(""), finish()]
    state = await (await bench.session(replies, sandbox=sandbox, watch=watch)).run("go")
    outputs = [o for _, o in state.history if isinstance(o, CmdOutputObservation)][1:]
    assert [(o.status, o.exit_code, o.content) for o in outputs] == [("running", None, "begun\n"), ("done", 0, "now\n")]


EDITS: dict[str, tuple[str, str, str, str | None]] = {
    "the end of a line": ("x = 1; y = 2\n", "y = 2", "y = 9", "x = 1; y = 9\n"),
    "its middle": ("    return a\n", "return", "yield", "    yield a\n"),
    "two places": ("a = 1\nb = 1\n", "= 1", "= 2", None),
    "only nearly": ("def f( a ):\n", "def f(a):", "def g(a):", None),
}


async def test_f4_an_edit_replaces_the_text_and_nothing_else(bench: Bench) -> None:
    for name, (before, _, _, _) in EDITS.items():
        (bench.workspace / name).write_text(before)
    edits = [call("edit", path=name, old=old, new=new) for name, (_, old, new, _) in EDITS.items()]
    state = await (await bench.session([*edits, finish()])).run("go")
    for (name, (before, _, _, after)), (_, found) in zip(EDITS.items(), state.history[1:], strict=False):
        assert isinstance(found, ErrorObservation if after is None else FileEditObservation), name
        assert (bench.workspace / name).read_text() == (after or before)


async def test_f5_the_task_is_the_same_text_before_and_after_the_end(bench: Bench) -> None:
    session = await bench.session(["which?", finish()])
    assert (await session.run("do it")).task == "do it"
    assert (await session.run("that one")).task == "do it"


def test_f8_nothing_is_pickled() -> None:
    unsafe = {"pickle", "shelve", "dill", "cloudpickle"}
    for file in Path(handiwork.__file__).parent.rglob("*.py"):
        if file.parent.name == "harness":
            continue  # Tests and solutions exchange values inside the sandbox; what is unpickled names no class.
        for node in ast.walk(ast.parse(file.read_text())):
            names = [name.name for name in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            assert not unsafe & {name.split(".")[0] for name in [*names, module]}, f"{file}:{node}"


async def test_f9_closing_a_session_leaves_the_others_alone(bench: Bench) -> None:
    one = await bench.session([bash("A=1"), finish()])
    other = await bench.session([bash("B=kept; sleep 1000 & echo $!"), finish(), bash("kill %1 && echo $B"), finish()])
    await one.run("go")
    await other.run("go")
    await one.close()
    state = await other.run("and?")
    assert [o.content for _, o in state.history if isinstance(o, CmdOutputObservation)][1].startswith("kept\n")


async def test_f10_costs_are_counted_once_and_an_unknown_one_does_not_end_the_counting(bench: Bench) -> None:
    async with serving(StandIn()) as server:
        priced = [Reply.model_validate({**bash("true").model_dump(), "cost": cost}) for cost in (0.0, 0.5, 0.0, 0.25)]
        server.planned += [answer(reply, number) for number, reply in enumerate([*priced, finish()])]
        llm = create("standin-1", base_url=server.base_url)
        state = await (await bench.session([], llm=llm)).run("go")
    assert (state.cost, state.unpriced, state.local_cost) == (0.75, 3, 0.75)

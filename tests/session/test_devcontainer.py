"""The environment of an accepted devcontainer.json is in every shell of its session; its commands run once."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from handiwork.context.discovery import everything
from handiwork.context.trust import Trust
from handiwork.events.observation import CmdOutputObservation
from handiwork.log.store import Store
from handiwork.session.open import create, reopen
from handiwork.session.user_events import accepted_plan
from tests.session.bench import call, calls, finish
from tests.snapshots.workbench import Workbench

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("new_user")]

CONTAINER = {"containerEnv": {"COLOUR": "dark red"}, "postCreateCommand": "echo made >> made.txt"}
SHOW = "echo $COLOUR; cat made.txt"


@pytest.fixture
async def bench(tmp_path: Path, new_user: None) -> AsyncIterator[Workbench]:
    """A project whose devcontainer.json the user has accepted."""
    async with Store.open(tmp_path / "data") as store:
        bench = Workbench(tmp_path, store)
        (bench.project / ".devcontainer.json").write_text(json.dumps(CONTAINER))
        trust = Trust(bench.data)
        waiting = [one for one in everything(bench.project, tmp_path / "config", trust) if one.waits_for_user]
        trust.answer(bench.project, [one.convention for one in waiting], accept=True)
        yield bench


async def test_a_new_process_sets_the_environment_again_and_does_not_run_the_commands_again(bench: Workbench) -> None:
    log = await bench.ran(SHOW)
    await bench.resumed(log, "Once more.", "true", SHOW)
    outputs = [event for event in await log.read() if isinstance(event, CmdOutputObservation)]
    shown = [event.content for event in outputs if event.command == SHOW]
    assert shown == ["dark red\nmade\n"] * 2


async def test_children_that_work_side_by_side_have_the_environment(bench: Workbench) -> None:
    child = calls(("bash", {"command": SHOW}), ("finish", {"message": "child"}))
    replies = [call("fork", tasks=["one", "two"]), child, child, finish()]
    log = await bench.ran(*(reply.model_dump(mode="json") for reply in replies))
    outputs = [event for event in await log.read() if isinstance(event, CmdOutputObservation)]
    assert [event.content for event in outputs if event.subtask] == ["dark red\nmade\n"] * 2


async def test_children_have_the_environment_if_a_new_process_resumes_their_fork(bench: Workbench) -> None:
    fork = call("fork", tasks=["one", "two"]).model_dump(mode="json")
    config = bench.config(fork, {"error": "gone"}, {"error": "gone"})
    first = await create(bench.store, bench.data, config, lambda _: None, "a task")
    assert (await first.run("do it")).agent_state == "error"
    await first.close()
    child = calls(("bash", {"command": SHOW}), ("finish", {"message": "child"})).model_dump(mode="json")
    model = bench.config(child, child).model
    second = await reopen(bench.store, bench.data, first.log.id, lambda _: None, model=model)
    assert (await second.run()).agent_state == "finished"
    await second.close()
    outputs = [event for event in await first.log.read() if isinstance(event, CmdOutputObservation)]
    assert [event.content for event in outputs if event.subtask] == ["dark red\nmade\n"] * 2


async def test_the_project_is_set_up_once_a_plan_is_accepted(bench: Workbench) -> None:
    plan = call("finish", message="a plan").model_dump(mode="json")
    config = bench.config(plan, SHOW, plan_mode=True)
    session = await create(bench.store, bench.data, config, lambda _: None, "a task")
    state = await session.run("do it")
    assert state.agent_state == "awaiting_user_input"
    await session.log.append(*accepted_plan(state))
    await session.run()
    await session.close()
    outputs = [event for event in await session.log.read() if isinstance(event, CmdOutputObservation)]
    assert [event.content for event in outputs if event.command == SHOW] == ["dark red\nmade\n"]

"""Several attempts for one task: from the same files, under one budget, the best by the test and by its size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handiwork.errors import WorkspaceError
from handiwork.events.record import Limits
from handiwork.llm.scripted.script import Reply
from handiwork.log.eventlog import EventLog
from handiwork.session.config import SessionError
from handiwork.session.open import changes
from handiwork.session.time_travel.best_of import AT_ONCE, Attempt, BestOfRequest, Progress, run_attempts
from handiwork.workspace.changes import Change
from tests.llm.standin import StandIn, answer, serving
from tests.snapshots.workbench import Workbench, bash

TEST = "grep -q fixed src/main.py"
FIX, LONG, NOTHING = "echo fixed > src/main.py", "printf 'fixed\nand more\n' > src/main.py", "echo fixed > src/other.py"

pytestmark = pytest.mark.slow


def contest(bench: Workbench, *commands: Any, test: str = TEST, **config: Any) -> BestOfRequest:
    """One attempt for each of the commands, as its model's only one."""
    setups = [bench.config(command, **config) for command in commands]
    return BestOfRequest("fix it", test, len(setups), [(one.model, None) for one in setups], setups[0])


async def held(bench: Workbench, asked: BestOfRequest) -> list[Attempt]:
    _, attempts = await run_attempts(bench.store, bench.data, asked, lambda _: None)
    return attempts


def models(asked: BestOfRequest, attempts: list[Attempt]) -> list[int]:
    return [[model for model, _ in asked.models].index(one.model) for one in attempts]


async def test_who_passes_with_the_fewest_changed_lines_is_the_best(bench: Workbench) -> None:
    asked = contest(bench, NOTHING, LONG, FIX)
    attempts = await held(bench, asked)
    assert models(asked, attempts) == [2, 1, 0]
    assert [(one.passed, one.lines) for one in attempts] == [(True, 2), (True, 3), (False, 2)]


async def test_each_is_a_session_of_its_own_on_files_that_nobody_else_changes(bench: Workbench) -> None:
    asked = contest(bench, "echo one > src/one", "ls src; echo two > src/two", test="ls src")
    first, second = sorted(await held(bench, asked), key=lambda one: models(asked, [one]))
    assert (first.output.split(), second.output.split()) == (
        ["main.py", "one", "other.py"],
        ["main.py", "other.py", "two"],
    )
    log = await bench.store.log(second.session)
    assert (await bench.output(log, "cat src/two; ls src")).split() == ["two", "main.py", "other.py", "two"]
    assert sorted(path.name for path in bench.project.rglob("*") if path.is_file()) == ["README", "main.py", "other.py"]


async def test_what_the_test_writes_and_the_agents_shell_are_no_part_of_it(bench: Workbench) -> None:
    asked = contest(bench, "ls() { echo always fine; }; cd src", test="touch dropped; pwd; ls")
    (one,) = await held(bench, asked)
    assert one.output.split() == [str(bench.project), "README", "dropped", "src"]
    assert "dropped" not in await bench.output(await bench.store.log(one.session), "command ls -R .")


async def test_a_test_that_does_not_end_well_is_told(bench: Workbench) -> None:
    (one,) = await held(bench, contest(bench, FIX, test="echo no good; exit 3"))
    assert (one.passed, one.exit_code, one.output.splitlines()[0]) == (False, 3, "no good")


async def test_the_budget_is_one_for_all_and_what_one_leaves_is_for_the_next(bench: Workbench) -> None:
    costly = {**bash(FIX), "usage": {"input": 60, "output": 40}}
    asked = contest(bench, *[costly] * 12, limits=Limits(tokens=450))
    attempts = await held(bench, asked)
    # Whoever is at work may exceed its own share by its last call.
    assert 450 <= sum(one.state.usage.total for one in attempts) <= 450 + 100 * AT_ONCE
    assert any("the other attempts have used up" in one.output for one in attempts)


async def test_every_call_is_at_least_as_warm_as_asked(bench: Workbench) -> None:
    async with serving(StandIn()) as server:
        server.planned += [answer(Reply.model_validate(bash(FIX)), 0), answer(Reply(content="done"), 1)]
        config = bench.config(temperature=0.8, limits=Limits(iterations=2))
        config = config.model_copy(update={"model": "standin-1", "base_url": server.base_url})
        await held(bench, BestOfRequest("fix it", TEST, 1, [("standin-1", server.base_url)], config))
    assert {request["temperature"] for request in server.requests} == {0.8}


async def test_progress_is_told_for_each(bench: Workbench) -> None:
    told: list[Progress] = []
    await run_attempts(bench.store, bench.data, contest(bench, FIX, NOTHING), told.append)
    for number in (1, 2):
        phases = [one.phase for one in told if one.number == number]
        assert list(dict.fromkeys(phases)) == ["working", "testing", "done"]


async def test_the_session_they_come_from_says_what_came_of_them(bench: Workbench) -> None:
    asked = contest(bench, NOTHING, FIX)
    origin, attempts = await run_attempts(bench.store, bench.data, asked, lambda _: None)
    last = (await (await bench.store.log(origin)).read())[-1]
    assert f"1 of 2 attempts pass `{TEST}`; the best is session {attempts[0].session}" in str(last)
    rows = {info.id: info for info in await bench.store.sessions()}
    assert {rows[one.session].parent for one in attempts} == {origin}
    assert {rows[one.session].model for one in attempts} == {model for model, _ in asked.models}


async def test_an_attempt_whose_changes_cannot_be_read_ends_no_other_and_comes_after_those_that_fail(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged: list[str] = []

    async def read(data: Path, log: EventLog) -> list[Change]:
        if not damaged:
            damaged.append(log.id)
            raise WorkspaceError("the copy is damaged")
        return await changes(data, log)

    monkeypatch.setattr("handiwork.session.time_travel.best_of.changes", read)
    attempts = await held(bench, contest(bench, FIX, FIX, test="false"))
    assert [(one.exit_code, one.lines) for one in attempts] == [(1, 2), (None, 0)]
    assert (attempts[1].session, attempts[1].output) == (
        damaged[0],
        "its changes cannot be read: the copy is damaged",
    )


async def test_where_files_are_not_copied_there_are_no_candidates(bench: Workbench) -> None:
    with pytest.raises(SessionError, match="copies"):
        await held(bench, contest(bench, FIX, sandbox="none"))

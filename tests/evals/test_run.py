"""Runs that can be believed: every instance once, what fails in its own column, nothing lost."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from handiwork.evals import plan
from handiwork.evals.benchmark import DataError
from handiwork.evals.plan import Choice
from handiwork.evals.results import FILE
from handiwork.evals.run import Caps, RunStoppedError
from handiwork.events.action import MessageAction
from handiwork.events.codec import from_json
from tests.cli.program import bash, finish
from tests.evals.adding import Adding
from tests.evals.runs import by_id, finished, planned, script, sums


async def test_every_instance_has_a_result_and_its_trajectory(tmp_path: Path) -> None:
    work = await planned(sums(tmp_path / "data", "a", "b/1", "b_1"), script(tmp_path / "script"))
    found = by_id((await finished(tmp_path / "out", work)).values())
    assert [(one.outcome, one.score, one.answer, one.steps) for one in found.values()] == [
        ("submitted", 1.0, "4", 2)
    ] * 3
    assert len({one.trajectory for one in found.values()}) == 3
    events = [from_json(line) for line in (tmp_path / "out" / found["b/1"].trajectory).read_text().splitlines()]
    assert [event.kind for event in events if event.kind.endswith("Action")] == [
        "MessageAction",
        "CmdRunAction",
        "AgentFinishAction",
    ]
    assert not (tmp_path / "out/work").exists()


async def test_the_simulated_user_answers_until_it_has_nothing_to_say(tmp_path: Path) -> None:
    model = script(tmp_path / "script", finish("5"), finish("4"), finish("6"))
    found = by_id((await finished(tmp_path / "out", await planned(sums(tmp_path / "data", "again"), model))).values())
    assert (found["again"].score, found["again"].answer) == (1.0, "4")


async def test_a_broken_scorer_is_not_the_agents_failure(tmp_path: Path) -> None:
    work = await planned(sums(tmp_path / "data", "ungradable", "b"), script(tmp_path / "script"))
    found = by_id((await finished(tmp_path / "out", work)).values())
    assert (found["ungradable"].outcome, found["ungradable"].score) == ("grader", None)
    assert "ZeroDivisionError: the scorer is broken" in found["ungradable"].why
    assert found["b"].score == 1.0


@pytest.mark.slow
async def test_a_sandbox_or_a_model_that_fails_is_tried_again_and_told_apart(tmp_path: Path) -> None:
    work = await planned(sums(tmp_path / "data", "dies", "b"), script(tmp_path / "script"))
    found = by_id((await finished(tmp_path / "out", work)).values())
    assert [(one.outcome, one.score, one.attempts) for one in found.values()] == [
        ("submitted", 1.0, 1),
        ("sandbox", None, 3),
    ]
    failing = script(tmp_path / "script", {"error": "out of order", "cost": 0.5})
    found = by_id((await finished(tmp_path / "out2", await planned(sums(tmp_path / "data", "b"), failing))).values())
    assert (found["b"].outcome, found["b"].attempts) == ("model", 3)
    assert "out of order" in found["b"].why


async def test_an_agent_that_does_not_come_to_an_end_reaches_a_limit(tmp_path: Path) -> None:
    model = script(tmp_path / "script", *(bash(f"echo {number}") for number in range(5)))
    work = await planned(sums(tmp_path / "data", "a"), model, iterations=3)
    found = by_id((await finished(tmp_path / "out", work)).values())
    assert (found["a"].outcome, found["a"].score, found["a"].steps) == ("limit", 0.0, 3)


class WithFixedSteps(Adding):
    fixed_steps = True


async def test_where_the_steps_are_part_of_the_rule_who_has_used_them_up_is_scored(tmp_path: Path) -> None:
    model = script(tmp_path / "script", *(bash(f"echo {number}") for number in range(5)))
    work = replace(await planned(sums(tmp_path / "data", "a"), model, iterations=3), benchmark=WithFixedSteps())
    found = by_id((await finished(tmp_path / "out", work)).values())
    assert (found["a"].outcome, found["a"].score, found["a"].why) == ("submitted", 0.0, "its 3 steps were up")


async def test_a_task_that_is_at_its_end_ends_the_agent_before_its_next_step(tmp_path: Path) -> None:
    work = await planned(sums(tmp_path / "data", "done at once", "unknowable"), script(tmp_path / "script"))
    found = by_id((await finished(tmp_path / "out", work)).values())
    done = found["done at once"]
    assert (done.outcome, done.steps, done.answer) == ("submitted", 1, "")
    assert (found["unknowable"].outcome, found["unknowable"].score) == ("grader", None)
    assert "nobody knows how it stands" in found["unknowable"].why


async def test_a_benchmark_says_the_task_to_each_trial(tmp_path: Path) -> None:
    work = await planned(sums(tmp_path / "data", "a"), script(tmp_path / "script"), trials=2)
    for one in (await finished(tmp_path / "out", work)).values():
        events = [from_json(line) for line in (tmp_path / "out" / one.trajectory).read_text().splitlines()]
        told = next(event.content for event in events if isinstance(event, MessageAction))
        assert told.endswith(f"You are CodeActAgent, and this is trial {one.trial}.")


async def test_going_on_runs_what_is_missing_and_nothing_else(tmp_path: Path) -> None:
    data, out = sums(tmp_path / "data", "a", "b", "c"), tmp_path / "out"
    await finished(out, await planned(data, script(tmp_path / "script"), trials=2))
    lines = (out / FILE).read_text().splitlines()
    (out / FILE).write_text("\n".join(lines[:4]) + "\n" + lines[4][:20])  # killed while it wrote
    found = await finished(out, await plan.begun(out))
    assert set(found) == {(one, trial) for one in "abc" for trial in (1, 2)}
    after = (out / FILE).read_text().splitlines()
    assert after[:4] == lines[:4]
    assert len(after) == 6


async def test_a_cap_of_cost_stops_the_run_and_a_higher_one_goes_on(tmp_path: Path) -> None:
    model = script(tmp_path / "script", bash("cat sum.txt", cost=0.4), {**finish("4"), "cost": 0.4})
    work, out = await planned(sums(tmp_path / "data", *"abc"), model), tmp_path / "out"
    with pytest.raises(RunStoppedError, match=r"has spent 1\.20 USD, its --max-cost; go on with"):
        await finished(out, work, Caps(cost=1.0), workers=1)
    outcomes = [json.loads(line)["outcome"] for line in (out / FILE).read_text().splitlines()]
    assert outcomes == ["submitted", "stopped"]
    found = by_id((await finished(out, work, Caps(cost=4.0), workers=1)).values())
    assert [found[one].outcome for one in "abc"] == ["submitted"] * 3


async def test_a_run_is_planned_from_what_can_be_run(tmp_path: Path) -> None:
    data, model = sums(tmp_path / "data", "skipped 1", "a", "b", "c"), script(tmp_path / "script")
    chosen = (await planned(data, model, Choice(limit=2))).manifest
    assert (chosen.instances, chosen.skipped) == (("a", "b"), {"skipped 1": "it has no sum"})
    assert (await planned(data, model, Choice(ids=["c"]))).manifest.instances == ("c",)
    with pytest.raises(DataError, match="no instance z: its ids are like skipped 1, a, b"):
        await planned(data, model, Choice(ids=["z"]))
    with pytest.raises(DataError, match="no instance of adding, test, can be run here: it has no sum"):
        await planned(data, model, Choice(ids=["skipped 1"]))


async def test_a_run_does_not_go_on_with_other_data(tmp_path: Path) -> None:
    data, out = sums(tmp_path / "data", "a"), tmp_path / "out"
    await finished(out, await planned(data, script(tmp_path / "script")))
    sums(data, "a", "b")
    with pytest.raises(DataError, match="not those that the run began with"):
        await plan.begun(out)

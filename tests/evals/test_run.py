"""Runs that can be believed: every instance once, what fails in its own column, nothing lost."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import cast

import pytest

from handiwork.agents.base import Agent, Step
from handiwork.agents.state import State
from handiwork.evals.benchmark import Benchmark, DataError, Rollout, Score
from handiwork.evals.benchmarks.agentbench.benchmark import AgentBenchOS
from handiwork.evals.benchmarks.bird import Bird
from handiwork.evals.benchmarks.gaia import GAIA
from handiwork.evals.benchmarks.ml_bench import MLBench
from handiwork.evals.benchmarks.toolqa import ToolQA
from handiwork.evals.running import manifest, plan
from handiwork.evals.running.budget import SharedBudget
from handiwork.evals.running.plan import InstanceSelection
from handiwork.evals.running.results import FILE, Result, Results
from handiwork.evals.running.rollout import FinishedRollout, RolloutJob, outcome_of
from handiwork.evals.running.run import Caps, Engine, Execute, RunStoppedError
from handiwork.evals.scoring.data import digest
from handiwork.events.action import AgentFinishAction, CmdRunAction, MessageAction
from handiwork.events.base import Event
from handiwork.events.codec import from_json
from handiwork.events.observation import AgentStateChangedObservation, CmdOutputObservation, ErrorObservation
from handiwork.events.record import CompletionEvent, SessionStarted, Usage
from handiwork.llm.scripted.script import Reply
from tests.agents.states import state_of
from tests.cli.program import bash, finish
from tests.evals.adding import Adding
from tests.evals.runs import by_id, finished, no_status, planned, script, sums
from tests.llm.standin import StandIn, serving

pytestmark = pytest.mark.slow


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


LOOKS = (
    "pwd; env; id; hostname; ls -laR .; git log --all",
    "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr '\\0' '\\n'",
    "cut -d' ' -f4- /proc/self/mountinfo | tr ',' '\\n' | grep -e workspace -e handiwork-",
)


async def test_nothing_inside_tells_the_benchmark_the_instance_or_its_number(tmp_path: Path) -> None:
    """ProofWriter's ids have the label in them, and agents are told the path of their workspace."""
    model = script(tmp_path / "script", *map(bash, LOOKS), finish("4"))
    work, out = await planned(sums(tmp_path / "data", "Theory-Q1", "Theory-Q2"), model, trials=2), tmp_path / "sums"
    places = set[str]()
    for one in (await finished(out, work)).values():
        events = [from_json(line) for line in (out / one.trajectory).read_text().splitlines()]
        started = next(event for event in events if isinstance(event, SessionStarted))
        seen = [started.workspace, *(event.content for event in events if isinstance(event, CmdOutputObservation))]
        assert len(seen) == len(LOOKS) + 1
        for telltale in ("Theory", "Q1", "Q2", "adding", "sums", str(out)):
            assert telltale not in "\n".join(seen), telltale
        assert started.workspace in seen[-1]
        places.add(started.workspace)
    assert len(places) == 4


async def test_what_a_killed_process_left_is_removed_when_the_run_goes_on(tmp_path: Path) -> None:
    left, out = tmp_path / "left", tmp_path / "out"
    (left / "a rollout").mkdir(parents=True)
    out.mkdir()
    (out / "work").symlink_to(left)
    await finished(out, await planned(sums(tmp_path / "data", "a"), script(tmp_path / "script")))
    assert not left.exists()
    assert not (out / "work").is_symlink()


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


async def test_an_instance_that_shows_to_be_unfit_only_when_it_is_scored_is_unfit(tmp_path: Path) -> None:
    work = await planned(sums(tmp_path / "data", "unfit"), script(tmp_path / "script"))
    found = by_id((await finished(tmp_path / "out", work)).values())
    assert (found["unfit"].outcome, found["unfit"].why) == ("unfit", "sums cannot be checked here")


async def test_an_instance_that_one_trial_finds_unfit_is_not_tried_by_the_others(tmp_path: Path) -> None:
    work = await planned(sums(tmp_path / "data", "unfit"), script(tmp_path / "script"), trials=2)
    first, second = (await finished(tmp_path / "out", work, workers=1)).values()
    assert (first.outcome, first.steps) == ("unfit", 2)
    assert (second.outcome, second.why, second.steps) == ("unfit", first.why, 0)


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
    found = await finished(out, await plan.resume(out, no_status))
    assert set(found) == {(one, trial) for one in "abc" for trial in (1, 2)}
    after = (out / FILE).read_text().splitlines()
    assert after[:4] == lines[:4]
    assert len(after) == 6


async def test_a_run_that_failures_have_stopped_goes_on_with_what_it_has_not_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handiwork.evals.running.rollout.ATTEMPTS", 1)
    monkeypatch.setattr("handiwork.evals.running.run.FAILURES", 1)
    out = tmp_path / "out"
    work = await planned(sums(tmp_path / "data", "dies", "a"), script(tmp_path / "script"))
    with pytest.raises(RunStoppedError, match="failed for no fault of the agent"):
        await finished(out, work, workers=1)
    found = by_id((await finished(out, await plan.resume(out, no_status), workers=1)).values())
    assert [(name, one.score, one.attempts) for name, one in found.items()] == [("dies", None, 2), ("a", 1.0, 1)]


async def test_instances_that_lack_something_are_skipped_until_the_run_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handiwork.evals.running.run.FAILURES", 1)
    out = tmp_path / "out"
    work = await planned(sums(tmp_path / "data", "unbuilt", "a"), script(tmp_path / "script"))
    found = by_id((await finished(out, work, workers=1)).values())
    assert [(name, one.outcome, one.attempts) for name, one in found.items()] == [
        ("unbuilt", "skipped", 1),
        ("a", "submitted", 1),
    ]
    found = by_id((await finished(out, await plan.resume(out, no_status))).values())
    assert [one.attempts for one in found.values()] == [2, 1]


async def test_a_scorer_that_always_fails_stops_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handiwork.evals.running.run.FAILURES", 2)
    work = await planned(sums(tmp_path / "data", *(f"ungradable {n}" for n in range(4))), script(tmp_path / "script"))
    with pytest.raises(RunStoppedError, match="the last 2 rollouts failed for no fault of the agent"):
        await finished(tmp_path / "out", work, workers=1)
    assert len(Results(tmp_path / "out").by_key) == 2


async def test_a_cap_of_cost_stops_the_run_and_a_higher_one_goes_on(tmp_path: Path) -> None:
    model = script(tmp_path / "script", bash("cat sum.txt", cost=0.4), {**finish("4"), "cost": 0.4})
    work, out = await planned(sums(tmp_path / "data", *"abc"), model), tmp_path / "out"
    with pytest.raises(RunStoppedError, match=r"1\.20 USD, its --max-cost: raise it; continue.* --max-disk 2`$"):
        await finished(out, work, Caps(cost=1.0, disk=2_000_000_000), workers=1)
    outcomes = [json.loads(line)["outcome"] for line in (out / FILE).read_text().splitlines()]
    assert outcomes == ["submitted", "stopped"]
    found = by_id((await finished(out, work, Caps(cost=4.0), workers=1)).values())
    assert [found[one].outcome for one in "abc"] == ["submitted"] * 3


async def test_a_cap_of_disk_space_stops_the_run_and_without_it_the_run_goes_on(tmp_path: Path) -> None:
    work, out = await planned(sums(tmp_path / "data", *"ab"), script(tmp_path / "script")), tmp_path / "out"
    with pytest.raises(RunStoppedError, match=r"0\.0 GB, the run's --max-disk: raise it; continue.* --max-cost 5`$"):
        await finished(out, work, Caps(cost=5.0, disk=1), workers=1)
    assert len(await finished(out, work, Caps(cost=5.0))) == 2


async def test_a_cap_of_cost_binds_for_all_workers_together(tmp_path: Path) -> None:
    model = script(tmp_path / "script", bash("cat sum.txt", cost=0.4), {**finish("4"), "cost": 0.4})
    work, out = await planned(sums(tmp_path / "data", *"abcd"), model), tmp_path / "out"
    with pytest.raises(RunStoppedError, match=r"has spent 1\.20 USD, its --max-cost"):
        await finished(out, work, Caps(cost=1.0), workers=4)


async def test_an_instance_that_cannot_run_does_not_show_that_the_others_are_free(tmp_path: Path) -> None:
    """Until a rollout has shown its cost, one has the whole budget and no other starts beside it."""
    results = Results(tmp_path)
    budget = SharedBudget(5.0, results)
    lost = (Result(id="a", outcome="unfit"), Result(id="b", outcome="sandbox"))
    for one in (*lost, Result(id="a", outcome="interrupted", cost=0.5)):
        results.add(one)
        with budget.reserved() as share:
            assert share == 5.0 - one.cost
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(budget.ready(), 0.05)
    results.add(Result(id="c", outcome="submitted", score=1.0, cost=1.0))
    with budget.reserved() as share:
        assert share == 2.0
        assert await budget.ready()


async def test_a_rollout_whose_share_is_spent_is_done_again_while_the_run_has_money(tmp_path: Path) -> None:
    """The first costs nothing but a step, the others more than twice as much."""
    costs = [{**finish("4"), "cost": 0.1}]
    work, out = await planned(sums(tmp_path / "data", "a"), script(tmp_path / "script", *costs)), tmp_path / "out"
    await finished(out, work, Caps(cost=5.0))
    dear = script(tmp_path / "script", bash("a", cost=0.3), bash("b", cost=0.3), {**finish("4"), "cost": 0.3})
    work = await planned(sums(tmp_path / "data", *"abc"), dear)
    found = by_id((await finished(out, work, Caps(cost=5.0), workers=3)).values())
    assert [found[one].outcome for one in "abc"] == ["submitted"] * 3
    assert found["b"].attempts + found["c"].attempts > 2


def executing(execute: Execute) -> Engine:
    @asynccontextmanager
    async def engine(*_: object) -> AsyncGenerator[Execute]:
        yield execute

    return engine


async def test_a_rollout_whose_share_is_spent_waits_for_what_others_leave(tmp_path: Path) -> None:
    """While another holds its share the rest is no more than it had; the other then leaves half of that."""
    work = await planned(sums(tmp_path / "data", "first", "dear", "slow"), "none")
    slow_has_begun, dear_has_stopped = asyncio.Event(), asyncio.Event()

    async def execute(job: RolloutJob) -> FinishedRollout:
        name, budget = job.instance.id, job.budget or 0.0
        if name == "slow":
            slow_has_begun.set()
            await dear_has_stopped.wait()
            await asyncio.sleep(0.05)
        if name == "dear" and budget < 1.3:
            await slow_has_begun.wait()
            dear_has_stopped.set()
            return FinishedRollout(Result(id=name, outcome="stopped", cost=0.9), "")
        return FinishedRollout(Result(id=name, outcome="submitted", score=1.0, cost=1.3 if name == "dear" else 0.5), "")

    found = by_id((await finished(tmp_path / "out", work, Caps(cost=3.35), engine=executing(execute))).values())
    assert {name: one.outcome for name, one in found.items()} == dict.fromkeys(("first", "slow", "dear"), "submitted")


async def test_a_rollout_whose_blobs_are_being_stored_has_no_share_besides_its_cost(tmp_path: Path) -> None:
    work, out = await planned(sums(tmp_path / "data", "first", "stored", "beside", "next"), "none"), tmp_path / "out"
    beside_has_begun, budgets = asyncio.Event(), dict[str, float | None]()

    async def execute(job: RolloutJob) -> FinishedRollout:
        name = job.instance.id
        budgets[name] = job.budget
        if name == "stored":
            await beside_has_begun.wait()
        if name == "beside":
            beside_has_begun.set()
            while ("stored", 1) not in Results(out).by_key:
                await asyncio.sleep(0)
        blobs: dict[str, bytes] = {"digest": bytes(10_000_000)} if name == "stored" else {}
        return FinishedRollout(Result(id=name, outcome="submitted", score=1.0, cost=1.0), "", blobs)

    await finished(out, work, Caps(cost=6.0), engine=executing(execute))
    assert budgets == {"first": 6.0, "stored": 2.0, "beside": 2.0, "next": 2.0}


async def test_a_rollout_that_stops_before_its_share_is_exceeded_is_not_measured(tmp_path: Path) -> None:
    dear = script(tmp_path / "script", bash("a", cost=0.4), bash("b", cost=0.4), {**finish("4"), "cost": 0.4})
    work, out = await planned(sums(tmp_path / "data", "a"), dear), tmp_path / "out"
    with pytest.raises(RunStoppedError, match=r"its --max-cost allows no more: raise it; continue.* \S+/out`$"):
        await finished(out, work, Caps(cost=1.0))
    (stopped,) = Results(out).by_key.values()
    assert (stopped.outcome, stopped.score, stopped.cost) == ("stopped", None, 0.8)
    assert "another call would exceed the cost limit of $1" in stopped.why
    found = by_id((await finished(out, work, Caps(cost=3.0))).values())
    assert (found["a"].outcome, found["a"].score) == ("submitted", 1.0)


class SubmitsAtLimit(Agent):
    """Works until a limit, and then submits the work so far, as SWEAgent does."""

    def step(self, state: State) -> Step:
        self.llm.complete([])
        return CmdRunAction(command="true")

    def at_limit(self, state: State, limit: str) -> Step | None:
        return AgentFinishAction(outputs={"message": "3"})


async def test_what_an_agent_submits_when_its_share_of_the_budget_is_spent_is_not_measured(tmp_path: Path) -> None:
    model = script(tmp_path / "script", *(bash("", cost=0.4) for _ in range(9)))
    agent = f"{__name__}:{SubmitsAtLimit.__name__}"
    work, out = await planned(sums(tmp_path / "data", "a"), model, agent=agent), tmp_path / "out"
    with pytest.raises(RunStoppedError, match=r"has spent 0\.80 USD, and its --max-cost allows no more"):
        await finished(out, work, Caps(cost=1.0))
    (stopped,) = Results(out).by_key.values()
    assert (stopped.outcome, stopped.score) == ("stopped", None)
    own = await planned(sums(tmp_path / "data", "a"), model, agent=agent, cost=1.0)
    found = by_id((await finished(tmp_path / "own", own, Caps(cost=5.0))).values())
    assert (found["a"].outcome, found["a"].score) == ("submitted", 0.0)


async def test_what_an_agent_submits_at_the_time_limit_is_measured_and_says_so(tmp_path: Path) -> None:
    agent = f"{__name__}:{SubmitsAtLimit.__name__}"
    work = await planned(sums(tmp_path / "data", "a"), script(tmp_path / "script", bash("")), agent=agent, time=0.01)
    found = by_id((await finished(tmp_path / "out", work)).values())
    assert (found["a"].outcome, found["a"].score, found["a"].why) == ("submitted", 0.0, "its time was up")


async def test_a_cap_of_cost_does_not_turn_a_limit_of_steps_into_a_stop(tmp_path: Path) -> None:
    model = script(tmp_path / "script", *(bash(f"echo {number}", cost=0.4) for number in range(3)))
    work = await planned(sums(tmp_path / "data", "a"), model, iterations=2)
    found = by_id((await finished(tmp_path / "out", work, Caps(cost=1.0))).values())
    assert (found["a"].outcome, found["a"].score, found["a"].cost) == ("limit", 0.0, 0.8)


async def stopped_without_prices(folder: Path, base_url: str) -> Result:
    """Run two instances with a cap and a model of unknown price; return the only result of the run that it stops."""
    work, out = await planned(sums(folder / "data", *"ab"), "openai:of-no-price"), folder / "out"
    conditions = work.manifest.conditions.model_copy(update={"base_url": base_url})
    work = replace(work, manifest=work.manifest.model_copy(update={"conditions": conditions}))
    with pytest.raises(RunStoppedError, match="cost of some calls is not known, so --max-cost cannot be kept"):
        await finished(out, work, Caps(cost=1.0), workers=1)
    (result,) = Results(out).by_key.values()
    return result


async def test_a_cap_of_cost_that_cannot_be_kept_ends_the_run(tmp_path: Path) -> None:
    async with serving(StandIn([Reply.model_validate(bash(f"echo {number}")) for number in range(3)])) as server:
        stopped = await stopped_without_prices(tmp_path, server.base_url)
    assert (stopped.outcome, stopped.calls) == ("stopped", 1)


async def test_a_cap_of_cost_that_cannot_be_kept_ends_the_run_also_after_rollouts_of_one_call(tmp_path: Path) -> None:
    """The session never asks for a second call, at which it would stop; nor does it see what the judge costs."""
    async with serving(StandIn([Reply.model_validate(finish("4"))] * 2)) as server:
        measured = await stopped_without_prices(tmp_path, server.base_url)
    assert (measured.outcome, measured.score, measured.unpriced) == ("submitted", 1.0, 1)


async def test_the_attempts_of_a_rollout_share_its_budget(tmp_path: Path) -> None:
    failing = script(tmp_path / "script", {**bash("a", cost=0.2), "usage": {"input": 7}}, {"error": "out of order"})
    work, out = await planned(sums(tmp_path / "data", "a"), failing), tmp_path / "out"
    with pytest.raises(RunStoppedError, match=r"has spent 0\.40 USD"):
        await finished(out, work, Caps(cost=0.5))
    (stopped,) = Results(out).by_key.values()
    assert (stopped.outcome, stopped.attempts, stopped.cost, stopped.usage.input) == ("stopped", 2, 0.4, 14)


def test_the_cost_of_a_rollout_that_was_done_again_is_that_of_all_its_attempts(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.add(Result(id="a", outcome="model", cost=0.5, usage=Usage(input=7), attempts=3, seconds=2))
    results.add(Result(id="a", outcome="submitted", score=1.0, cost=0.25, usage=Usage(input=5), seconds=1))
    for found in (results, Results(tmp_path)):
        again = found.by_key["a", 1]
        assert (again.cost, again.usage.input, again.attempts, again.seconds) == (0.75, 12, 4, 3)
        assert (again.outcome, again.score, found.spent, found.dearest) == ("submitted", 1.0, 0.75, 0.5)


class WithOddScores(Adding):
    async def score(self, rollout: Rollout) -> Score:
        return Score(
            1.0, "half a character: \ud83d", {"half": "\ud83d", "times": {(1, 2): date(2026, 1, 31)}, "right": 4}
        )


async def test_a_score_that_json_cannot_hold_is_kept_as_text_and_the_run_goes_on(tmp_path: Path) -> None:
    work = replace(
        await planned(sums(tmp_path / "data", *"ab"), script(tmp_path / "script")), benchmark=WithOddScores()
    )
    await finished(tmp_path / "out", work, workers=1)
    found = list(Results(tmp_path / "out").by_key.values())
    assert [(one.outcome, one.score, one.answer) for one in found] == [
        ("submitted", 1.0, "half a character: \ufffd")
    ] * 2
    details = {"half": "\ufffd", "times": "{(1, 2): datetime.date(2026, 1, 31)}", "right": 4}
    assert [one.details for one in found] == [details] * 2


class WithWrongScores(Adding):
    scores = {"above": Score(1.5), "below": Score(-0.1), "nan": Score(math.nan), "none": cast("Score", None)}
    answers = {"no answer": cast("str", None), "a number": cast("str", 7)}

    async def score(self, rollout: Rollout) -> Score:
        name = rollout.instance.id
        return Score(1.0, self.answers[name]) if name in self.answers else self.scores[name]


async def test_a_score_that_is_none_is_the_scorers_fault_and_every_answer_is_text(tmp_path: Path) -> None:
    wrong = WithWrongScores()
    work = await planned(sums(tmp_path / "data", *wrong.scores, *wrong.answers), script(tmp_path / "script"))
    await finished(tmp_path / "out", replace(work, benchmark=wrong))
    found = by_id(Results(tmp_path / "out").by_key.values())
    assert {(found[one].outcome, found[one].score) for one in wrong.scores} == {("grader", None)}
    assert "the score is nan: a Score has a value from 0 to 1" in found["nan"].why
    assert [(found[one].score, found[one].answer) for one in wrong.answers] == [(1.0, ""), (1.0, "7")]


def replied(*replies: str, reason: str = "stuck") -> State:
    """A session that was ended after malformed replies, and commands."""
    events: list[Event] = [MessageAction(content="The task.", source="user")]
    for number, reply in enumerate(replies):
        if reply == "malformed":
            completion = CompletionEvent(model="m", response={"content": "?", "tool_calls": []})
            events += [completion, ErrorObservation(content="?", error_id=reply).with_fields(cause=len(events) + 1)]
        else:
            command = CmdRunAction(command=f"echo {number}")
            events += [
                command,
                CmdOutputObservation(command="echo", content="", exit_code=0).with_fields(cause=len(events) + 1),
            ]
    return state_of(*events, AgentStateChangedObservation(agent_state="paused", reason=reason))  # pyright: ignore


@pytest.mark.parametrize(
    ("replies", "outcome"),
    [(["malformed"] * 3, "format"), (["command", *["malformed"] * 3], "format"), (["command"] * 3, "repeat")],
)
def test_malformed_replies_are_a_failure_of_form_and_no_repetition(replies: list[str], outcome: str) -> None:
    assert outcome_of(replied(*replies), [])[0] == outcome


@pytest.mark.parametrize(
    ("benchmark", "split", "file"),
    [
        (Bird(), "dev", "dev_databases/a/a.sqlite"),
        (ToolQA(), "easy", "external_corpus/coffee/coffee.csv"),
        (AgentBenchOS(), "std", "scripts/4/init/words.sh"),
        (GAIA(), "validation", "2023/validation/attached.csv"),
    ],
)
async def test_the_hash_of_the_data_covers_all_that_instances_use(
    benchmark: Benchmark, split: str, file: str, tmp_path: Path
) -> None:
    hashes = {await digest(benchmark, split, tmp_path)}
    (tmp_path / file).parent.mkdir(parents=True)
    for text in ("one", "another"):
        (tmp_path / file).write_text(text)
        hashes.add(await digest(benchmark, split, tmp_path))
    assert len(hashes) == 3


async def test_git_commands_in_a_clone_do_not_change_the_hash_of_the_data(tmp_path: Path) -> None:
    clone = tmp_path / "repos/tiny"
    (clone / ".git").mkdir(parents=True)
    (clone / "train.py").write_text("")
    before = await digest(MLBench(), "full", tmp_path)
    (clone / ".git/FETCH_HEAD").write_text("as git fetch leaves it")
    assert await digest(MLBench(), "full", tmp_path) == before
    (clone / "train.py").write_text("print()")
    assert await digest(MLBench(), "full", tmp_path) != before


async def test_a_run_is_planned_from_what_can_be_run(tmp_path: Path) -> None:
    data, model = sums(tmp_path / "data", "skipped 1", "a", "b", "c"), script(tmp_path / "script")
    chosen = (await planned(data, model, InstanceSelection(limit=2))).manifest
    assert (chosen.instances, chosen.skipped) == (("a", "b"), {"skipped 1": "it has no sum"})
    assert (await planned(data, model, InstanceSelection(ids=["c"]))).manifest.instances == ("c",)
    with pytest.raises(DataError, match="no instance z: its ids are like skipped 1, a, b"):
        await planned(data, model, InstanceSelection(ids=["z"]))
    with pytest.raises(DataError, match="no instance of adding, test, can be run here: it has no sum"):
        await planned(data, model, InstanceSelection(ids=["skipped 1"]))


async def test_a_run_does_not_go_on_with_an_agent_whose_files_have_changed(tmp_path: Path) -> None:
    agent, out, said = tmp_path / "own.md", tmp_path / "out", list[str]()
    agent.write_text("---\nname: Own\ndescription: Adds.\ntools: [bash]\n---\nAdd the numbers.\n")
    work = await planned(sums(tmp_path / "data", "a"), script(tmp_path / "script"), agent=str(agent))
    await finished(out, work)
    manifest.write(out, work.manifest.model_copy(update={"code": "of another version"}))
    await plan.resume(out, said.append)
    assert said == ["Handiwork's code differs from the run's beginning"]
    agent.write_text(agent.read_text().replace("Add the", "Multiply the"))
    with pytest.raises(DataError, match="not those that the run began with: begin another run"):
        await plan.resume(out, no_status)


@pytest.mark.parametrize(("code", "told"), [("of another file", ["the benchmark's code"]), ("", [])])
async def test_a_manifest_without_the_benchmarks_code_tells_no_difference(
    tmp_path: Path, code: str, told: list[str]
) -> None:
    work = await planned(sums(tmp_path / "data", "a"), script(tmp_path / "script"))
    assert work.manifest.benchmark_code
    assert manifest.differences(work.manifest.model_copy(update={"benchmark_code": code}), work.manifest) == told


async def test_a_run_does_not_go_on_with_other_data(tmp_path: Path) -> None:
    data, out = sums(tmp_path / "data", "a"), tmp_path / "out"
    await finished(out, await planned(data, script(tmp_path / "script")))
    sums(data, "a", "b")
    with pytest.raises(DataError, match="not those that the run began with"):
        await plan.resume(out, no_status)

"""Training of SwarmAgent by rollouts, with a model that plays a team of which some mislead the others."""

from __future__ import annotations

import asyncio
import json
import xml.etree.ElementTree as ET
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from handiwork.agents.swarm.graph import DECISION, Strategy, Swarm, build, load, save
from handiwork.agents.swarm.reinforce import draw, learn
from handiwork.agents.swarm.svg import draw_graph, draw_learning_curve
from handiwork.cli.commands.eval.commands import EvalRequest
from handiwork.cli.commands.swarm.commands import TrainingRequest, train
from handiwork.errors import Exit
from handiwork.evals import registry
from handiwork.evals.benchmark import Rollout, Score
from handiwork.evals.running import plan
from handiwork.evals.running.conditions import Conditions
from handiwork.evals.running.plan import InstanceSelection, RunPlan
from handiwork.evals.running.run import RunStoppedError
from handiwork.evals.training.edges import graph_rollouts, train_edges
from handiwork.evals.training.instructions import improve_instructions
from handiwork.settings import SettingsError
from tests.evals import swarm_family
from tests.evals.swarm_family import TEAM, TeamServer
from tests.llm.standin import serving

FILE = swarm_family.__file__


@pytest.fixture
async def server() -> AsyncIterator[TeamServer]:
    team = TeamServer()
    async with serving(team):
        yield team


async def planned(server: TeamServer, folder: Path, letters: str = "ABC", **fields: object) -> RunPlan:
    folder.mkdir(exist_ok=True)
    (folder / "letters.json").write_text(json.dumps(list(letters)))
    conditions = Conditions.model_validate(
        {
            "benchmark": FILE,
            "split": "test",
            "data": str(folder),
            "agent": "SwarmAgent",
            "sandbox": "none",
            "model": "team",
            "base_url": server.base_url,
            "user_model": "team",
            **fields,
        }
    )
    return await plan.new(registry.find(FILE), conditions, InstanceSelection(), 1, lambda _: None)


async def trained(swarm: Swarm, run_plan: RunPlan, iterations: int) -> Swarm:
    async with graph_rollouts(run_plan, 2, None) as rollouts:
        return [one async for one in train_edges(swarm, rollouts, iterations, 2, seed=1)][-1]


@pytest.mark.slow
async def test_a_training_that_is_resumed_is_the_one_that_never_stopped(server: TeamServer, tmp_path: Path) -> None:
    run_plan = await planned(server, tmp_path / "data")
    swarm = build(["io", "adversarial"], "references")
    whole = await trained(swarm, run_plan, 2)
    save(await trained(swarm, run_plan, 1), tmp_path / "swarm.json")
    resumed = await trained(load(tmp_path / "swarm.json"), run_plan, 2)
    assert len(resumed.training.iterations) == 2
    assert resumed.training.momentum != (0.0,) * len(swarm.edges)
    for one, other in ((resumed.edges, whole.edges), (resumed.training.iterations, whole.training.iterations)):
        assert [a.model_dump(exclude={"cost"}) for a in one] == [b.model_dump(exclude={"cost"}) for b in other]


@pytest.mark.slow
async def test_a_training_without_a_measured_rollout_stops_and_says_why(server: TeamServer, tmp_path: Path) -> None:
    run_plan = await planned(server, tmp_path / "data", "!")
    with pytest.raises(
        RunStoppedError, match="no rollout was measured: !: grader: ValueError: '!' is no letter"
    ) as stopped:
        await trained(build(["io"], "references"), run_plan, 1)
    assert stopped.value.failed


@pytest.mark.slow
@pytest.mark.usefixtures("new_user")
async def test_a_training_some_of_whose_rollouts_were_not_measured_says_so_and_is_no_success(
    server: TeamServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await planned(server, tmp_path / "data", "A!")
    request = EvalRequest(FILE, None, tmp_path / "data", None, None, 1, None, None, None, 60.0, None)
    flags = {"agent": "SwarmAgent", "model": "team", "base_url": server.base_url, "sandbox": "none"}
    training = TrainingRequest(tmp_path / "swarm.json", ["io"], "references", 1, 2, False, 0, 2, None)
    code = await asyncio.to_thread(train, request, {**flags, "max_iterations": None}, training)
    assert code is Exit.INFRASTRUCTURE
    assert "1 of the rollouts failed through no fault of the agent, and did not count\n" in capsys.readouterr().err
    assert [one.scores for one in load(training.out).training.iterations] == [(1.0,)]


@pytest.mark.slow
async def test_a_training_stops_at_its_budget(tmp_path: Path, server: TeamServer) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"content": "A", "cost": 0.2}) + "\n")
    run_plan = await planned(server, tmp_path / "data", model=f"scripted:{script}", base_url=None)
    async with graph_rollouts(run_plan, 1, 1.3) as rollouts:
        training = train_edges(build(["io"], "majority_vote"), rollouts, 9, 2, seed=1)
        swarm = [await anext(training) for _ in range(2)][-1]
        assert [one.cost for one in swarm.training.iterations] == [0.4, 0.4]
        with pytest.raises(RunStoppedError, match=r"has spent 1\.20 USD, and its --max-cost allows no") as stopped:
            await anext(training)
    assert not stopped.value.failed
    async with graph_rollouts(run_plan, 1, 0.8) as rollouts:  # resumed: the budget is that of both
        with pytest.raises(RunStoppedError, match=r"has spent 0\.80 USD, and its --max-cost allows no"):
            await anext(train_edges(swarm, rollouts, 9, 2, seed=1))
    run_plan = await planned(server, tmp_path / "data")
    async with graph_rollouts(run_plan, 1, 5.0) as rollouts:
        with pytest.raises(RunStoppedError, match="the cost of team is not known"):
            await rollouts.run([(build(["io"], "references").most_probable(), rollouts.instances[0])])


@pytest.mark.slow
async def test_a_rollout_whose_share_is_spent_is_done_again_with_all_that_is_left(tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text(3 * (json.dumps({"content": "A", "cost": 0.1}) + "\n"))
    run_plan = await planned(TeamServer(), tmp_path / "data", model=f"scripted:{script}", base_url=None)
    graphs = [build(["io"] * calls, "majority_vote").most_probable() for calls in (1, 3)]
    async with graph_rollouts(run_plan, 4, 1.0) as rollouts:
        done = await rollouts.run(list(zip(graphs, rollouts.instances[:2], strict=True)))
        assert [one.result.outcome for one in done] == ["submitted"] * 2
        assert round(rollouts.spent, 2) == 0.6  # 0.2, twice the cost of the first, for the one that was stopped


@pytest.mark.slow
async def test_the_budget_of_a_training_binds_for_all_workers_together(tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text(2 * (json.dumps({"content": "A", "cost": 0.4}) + "\n"))
    run_plan = await planned(TeamServer(), tmp_path / "data", "ABCD", model=f"scripted:{script}", base_url=None)
    graph = build(["io"] * 2, "majority_vote").most_probable()
    async with graph_rollouts(run_plan, 4, 1.0) as rollouts:
        with pytest.raises(RunStoppedError, match=r"has spent 1\.20 USD, and its --max-cost allows no"):
            await rollouts.run([(graph, instance) for instance in rollouts.instances])


def forget(_: Swarm) -> None:
    """Keep nothing of the work on prompts."""


class Pupils(TeamServer):
    """A model that knows the letter only if its instruction says "Read the task", as its own rewriting says."""

    asked = 0

    def _answer(self, messages: list[swarm_family.Json], *, chat: bool) -> swarm_family.Refusal | swarm_family.Stream:
        texts = [str(message["content"]) for message in messages]
        self.asked += len(texts) == 1  # a critique or a rewriting has no instruction
        said = "Read the task." if len(texts) == 1 else "?"
        if len(texts) == 2 and "Read the task" in texts[0]:
            said = swarm_family.TASK.findall(texts[1])[-1]
        return swarm_family.answer(swarm_family.Reply(content=said), 0)


@pytest.mark.slow
@pytest.mark.usefixtures("new_user")
async def test_prompts_are_rewritten_after_failures_and_kept_if_they_help(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server, out = Pupils(), tmp_path / "swarm.json"
    await planned(server, tmp_path / "data", "AB")
    async with serving(server):
        request = EvalRequest(FILE, None, tmp_path / "data", None, None, 1, None, None, None, 60.0, None)
        flags = {"agent": "SwarmAgent", "model": "team", "base_url": server.base_url, "sandbox": "none"}
        improve = TrainingRequest(out, ["io"], "majority_vote", 0, 2, True, 0, 2, None)
        code = await asyncio.to_thread(train, request, {**flags, "max_iterations": None}, improve)
    assert code is Exit.FINISHED
    assert "io 1/answer: score 0.00, now 1.00\n" in capsys.readouterr().out
    before, after = build(["io"], "majority_vote"), load(out)
    assert after.node("io 1/answer").instruction == "Read the task."
    assert (after.edges, after.node(DECISION)) == (before.edges, before.node(DECISION))
    assert server.asked == 3  # two critiques, one rewriting


class Deciders(Pupils):
    """A model that knows the letter only as the decision, and only if its instruction says "Read the task"."""

    def _answer(self, messages: list[swarm_family.Json], *, chat: bool) -> swarm_family.Refusal | swarm_family.Stream:
        is_node = len(messages) == 2 and "Answer 1:" not in str(messages[1]["content"])
        return (
            swarm_family.answer(swarm_family.Reply(content="?"), 0) if is_node else super()._answer(messages, chat=chat)
        )


@pytest.mark.slow
async def test_the_prompt_of_a_decision_that_asks_the_model_is_rewritten_too(tmp_path: Path) -> None:
    server = Deciders()
    async with serving(server):
        run_plan = await planned(server, tmp_path / "data", "AB")
        async with graph_rollouts(run_plan, 2, None) as rollouts:
            improved = [one async for one in improve_instructions(build(["io"], "references"), rollouts, forget)]
    assert [(one.node, one.before, one.score) for one in improved] == [("io 1/answer", 0, 0), (DECISION, 0, 1)]
    assert improved[-1].swarm.node(DECISION).instruction == "Read the task."
    assert server.asked == 6  # for each of the two nodes: two critiques, one rewriting


@pytest.mark.slow
async def test_work_on_prompts_that_stops_after_each_pass_costs_no_call_more(tmp_path: Path) -> None:
    server, file = Deciders(), tmp_path / "swarm.json"
    save(build(["io"], "references"), file)

    def stop(swarm: Swarm) -> None:
        save(swarm, file)
        raise RunStoppedError("stopped", failed=False)

    async with serving(server):
        run_plan = await planned(server, tmp_path / "data", "A")
        async with graph_rollouts(run_plan, 2, None) as rollouts:
            for _ in range(6):  # three passes, two rewritings, and nothing left to do
                with suppress(RunStoppedError):
                    assert [one async for one in improve_instructions(load(file), rollouts, stop)] == []
    assert load(file).node(DECISION).instruction == "Read the task."
    assert (server.asked, len(server.requests)) == (4, 10)  # as without a stop: three rollouts of two nodes, and four


class Choosers(Pupils):
    """A model that knows A alone, and whose decision is always the first answer; ``decisions`` are its prompts."""

    def __init__(self) -> None:
        super().__init__()
        self.decisions = list[str]()

    def _answer(self, messages: list[swarm_family.Json], *, chat: bool) -> swarm_family.Refusal | swarm_family.Stream:
        texts = [str(message["content"]) for message in messages]
        if len(texts) == 1:
            return super()._answer(messages, chat=chat)
        if "Answer 1:" in texts[1]:
            self.decisions.append(texts[1])
            return swarm_family.answer(swarm_family.Reply(content="1"), 0)
        said = "A" if swarm_family.TASK.findall(texts[1])[-1] == "A" else "?"
        return swarm_family.answer(swarm_family.Reply(content=said), 0)


@pytest.mark.slow
async def test_a_decision_that_chooses_a_number_gets_no_answers_as_examples(tmp_path: Path) -> None:
    server = Choosers()
    async with serving(server):
        run_plan = await planned(server, tmp_path / "data", "AB")
        async with graph_rollouts(run_plan, 2, None) as rollouts:
            improved = [one async for one in improve_instructions(build(["io"], "select_best"), rollouts, forget)]
    assert [(one.node, one.score) for one in improved] == [("io 1/answer", 0.5), (DECISION, 0.5)]
    assert len(server.decisions) == 10  # the beginning, three other prompts of the answer, one of the decision
    assert not any("What you replied" in prompt for prompt in server.decisions)


@pytest.mark.slow
@pytest.mark.usefixtures("new_user")
async def test_a_budget_that_was_spent_on_prompts_is_not_spent_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await planned(TeamServer(), tmp_path / "data", "AB")
    script = tmp_path / "script.jsonl"
    script.write_text(9 * (json.dumps({"content": "?", "cost": 0.2}) + "\n"))
    request = EvalRequest(FILE, None, tmp_path / "data", None, None, 1, None, None, None, 60.0, None)
    flags = {"agent": "SwarmAgent", "model": f"scripted:{script}", "base_url": None, "sandbox": "none"}
    improve = TrainingRequest(tmp_path / "swarm.json", ["io"], "majority_vote", 0, 2, True, 0, 1, 0.9)
    for training in (improve, improve, replace(improve, iterations=1)):  # begun, and resumed twice
        code = await asyncio.to_thread(train, request, {**flags, "max_iterations": None}, training)
        assert code is Exit.LIMIT
        assert "has spent 1.00 USD, and its --max-cost allows no" in capsys.readouterr().err
        assert load(training.out).training.prompt_cost == pytest.approx(
            1.0
        )  # two rollouts, two critiques, one rewriting


@pytest.mark.slow
@pytest.mark.usefixtures("new_user")
async def test_a_budget_that_an_iteration_without_an_end_spent_is_not_spent_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await planned(TeamServer(), tmp_path / "data", "AB")
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"content": "A", "cost": 0.2}) + "\n")
    request = EvalRequest(FILE, None, tmp_path / "data", None, None, 1, None, None, None, 60.0, None)
    flags = {"agent": "SwarmAgent", "model": f"scripted:{script}", "base_url": None, "sandbox": "none"}
    begun = TrainingRequest(tmp_path / "swarm.json", ["io"], "majority_vote", 3, 2, False, 0, 1, 0.7)
    for training in (begun, replace(begun, agents=None, strategy=None)):  # resumed without the options
        code = await asyncio.to_thread(train, request, {**flags, "max_iterations": None}, training)
        assert code is Exit.LIMIT
        said = capsys.readouterr().err
        assert "has spent 0.80 USD, and its --max-cost allows no" in said
        trained = load(training.out).training
        assert [one.cost for one in trained.iterations] == [0.4]
        assert trained.lost_cost == pytest.approx(0.4)
    assert "it has had 1 of 3 iterations" in said


@pytest.mark.parametrize(("agents", "strategy"), [(["io", "io"], None), (["cot"], None), (None, "references")])
def test_a_training_is_not_resumed_with_other_agents_or_another_strategy(
    agents: list[str] | None, strategy: Strategy | None, tmp_path: Path
) -> None:
    swarm, out = build(["io"], "majority_vote"), tmp_path / "swarm.json"
    save(swarm, out)
    request = EvalRequest(FILE, None, tmp_path, None, None, 1, None, None, None, None, None)
    with pytest.raises(SettingsError, match="not the one of --agents and --strategy: leave them out, or name another"):
        train(request, {}, TrainingRequest(out, agents, strategy, 1, 2, False, 0, 1, None))
    assert load(out) == swarm


@pytest.mark.usefixtures("new_user")
async def test_the_folder_of_a_new_swarm_is_made(tmp_path: Path) -> None:
    await planned(TeamServer(), tmp_path / "data", model="scripted:none.jsonl", base_url=None)
    request = EvalRequest(FILE, None, tmp_path / "data", None, None, 1, None, None, None, 60.0, None)
    flags = {"agent": "SwarmAgent", "model": "scripted:none.jsonl", "base_url": None, "sandbox": "none"}
    new = TrainingRequest(tmp_path / "swarms/a.json", ["io"], None, 0, 2, False, 0, 1, None)
    assert await asyncio.to_thread(train, request, {**flags, "max_iterations": None}, new) is Exit.FINISHED
    assert load(new.out) == build(["io"], "references")


class Shouting(swarm_family.Letters):
    """Cannot score a shout."""

    async def score(self, rollout: Rollout) -> Score:
        if rollout.final_message == "!":
            raise ValueError("a shout")
        return await super().score(rollout)


class Shouters(Pupils):
    """A model that knows A, and shouts if its instruction says "Read the task" and it does not know the letter."""

    def _answer(self, messages: list[swarm_family.Json], *, chat: bool) -> swarm_family.Refusal | swarm_family.Stream:
        texts = [str(message["content"]) for message in messages]
        if len(texts) == 1:
            return super()._answer(messages, chat=chat)
        known = swarm_family.TASK.findall(texts[1])[-1] == "A"
        said = "A" if known else "!" if "Read the task" in texts[0] else "?"
        return swarm_family.answer(swarm_family.Reply(content=said), 0)


@pytest.mark.slow
async def test_a_prompt_is_not_better_because_fewer_instances_were_measured(tmp_path: Path) -> None:
    server = Shouters()
    async with serving(server):
        run_plan = replace(await planned(server, tmp_path / "data", "AB"), benchmark=Shouting())
        async with graph_rollouts(run_plan, 2, None) as rollouts:
            work = improve_instructions(build(["io"], "majority_vote"), rollouts, forget)
            (improved,) = [one async for one in work]
    assert server.asked == 2  # a critique, a rewriting
    assert (improved.before, improved.score) == (0.5, 0.5)
    assert improved.swarm == build(["io"], "majority_vote")


def test_pictures_are_xml_and_show_what_was_learned() -> None:
    random, swarm = Random(0), build([*TEAM, "tools"], "majority_vote")
    for _ in range(3):
        samples = [draw(swarm, random) for _ in range(2)]
        swarm = learn(swarm, [sample.choices for sample in samples], [random.random() for _ in samples])
    graph, curve = draw_graph(swarm), draw_learning_curve(swarm)
    texts = ["".join(element.itertext()) for element in ET.fromstring(graph)]
    for node in swarm.nodes:
        assert node.name.rpartition("/")[2] in texts
    for edge in swarm.edges:
        title = f"{edge.source} to {edge.target}: {100 * edge.probability:.0f} %"
        drawn = (edge.source, edge.target) in swarm.most_probable().links
        assert (title in texts) == (drawn or edge.target == DECISION)
    dots = [element for element in ET.fromstring(curve) if element.tag.endswith("circle")]
    assert len(dots) == 3
    assert ET.fromstring(draw_graph(Swarm(nodes=(swarm.node(DECISION),)))) is not None

"""MINT: answers are read as upstream reads them, and a wrong one may be mended once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from handiwork.evals.benchmark import Instance, Rollout
from handiwork.evals.benchmarks.mint import feedback
from handiwork.evals.benchmarks.mint.benchmark import CODE, PROPOSALS, STEPS, Mint, correct
from handiwork.evals.reporting import tables
from handiwork.evals.reporting.summary import summarise
from handiwork.evals.running import manifest, plan
from handiwork.evals.running.conditions import Conditions
from handiwork.evals.running.plan import InstanceSelection
from handiwork.evals.running.results import Result, Results
from handiwork.events.action import AgentFinishAction, CmdRunAction, MessageAction
from handiwork.events.codec import from_json
from handiwork.events.observation import CmdOutputObservation
from handiwork.events.overview import WorkspaceOverviewAction, WorkspaceOverviewObservation
from handiwork.events.record import StepStarted
from tests.agents.states import ran, state_of
from tests.cli.program import bash, finish
from tests.evals.rollouts import instances, needs_benchdata, nobody, rejected, rollout, sample, some_or_all
from tests.evals.runs import finished, no_status, script

MINT = Mint()

REASONING = [split for split in MINT.splits if split not in CODE]


def gold(instance: Instance) -> str:
    row = instance.row
    match row["set"]:
        case "mbpp":
            return row["code"].replace("\r\n", "\n")
        case "humaneval":
            return row["prompt"] + "\n" + row["canonical_solution"]
        case _:
            return str(row["reference"])


def answered(instance: Instance, answer: str) -> Rollout:
    return rollout(instance, f"I worked it out. <answer>{answer}</answer>")


@needs_benchdata
@pytest.mark.parametrize("split", REASONING)
async def test_the_reference_is_right_with_and_without_a_tag(split: str) -> None:
    for instance in instances(MINT, split):
        assert (await MINT.score(answered(instance, gold(instance)))).value == 1
        assert (await MINT.score(rollout(instance, gold(instance)))).value == 1


@needs_benchdata
@pytest.mark.parametrize("split", REASONING)
@pytest.mark.parametrize("said", ["", "<answer></answer>", "<answer>I do not know</answer>", "zzz"])
async def test_no_answer_is_wrong(split: str, said: str) -> None:
    for instance in instances(MINT, split):
        assert (await MINT.score(rollout(instance, said))).value == 0


@needs_benchdata
@pytest.mark.parametrize("split", CODE)
async def test_code_is_run_with_its_tests(split: str) -> None:
    instance = instances(MINT, split)[0]
    code = gold(instance)
    assert (await MINT.score(answered(instance, f"```python\n{code}\n```"))).value == 1
    leave = "import atexit, os\natexit.register(os._exit, 0)\n"
    for wrong in ("", f"import sys\nsys.exit(0)\n{code}", "import os\nos._exit(0)\n", leave):
        assert (await MINT.score(answered(instance, wrong))).value == 0, wrong


@needs_benchdata
@some_or_all
@pytest.mark.timeout(600)
@pytest.mark.parametrize("split", CODE)
async def test_every_reference_solution_passes(split: str, at_most: int) -> None:
    failed = [
        i.id for i in sample(instances(MINT, split), at_most) if (await MINT.score(answered(i, gold(i)))).value != 1
    ]
    assert not failed


@needs_benchdata
@pytest.mark.parametrize("split", [*REASONING, "humaneval"])
async def test_a_wrong_proposal_is_answered_once_and_a_right_one_not_at_all(split: str) -> None:
    instance = instances(MINT, split)[0]
    told = await MINT.reply(rollout(instance, "<answer>-12345.5</answer>"), 1)
    assert told is not None
    assert told.startswith("That answer is wrong. You have 5 steps left and can propose 1 more answer. Finish with")
    assert await MINT.reply(answered(instance, gold(instance)), 1) is None
    mended = rollout(instance, ["<answer>-12345.5</answer>", f"<answer>{gold(instance)}</answer>"])
    assert (await MINT.score(mended)).value == 1


def row(which: str, reference: object, prompt: str = "") -> dict[str, object]:
    return {"set": which, "reference": reference, "prompt": prompt}


@pytest.mark.parametrize(
    ("answer", "right"),
    [("100", True), ("104.9", True), ("105.1", False), ("1e2", True), ("100 hours", True), ("hundred", False)],
)
def test_a_number_may_be_five_percent_off_and_have_words_around_it(answer: str, right: bool) -> None:
    assert correct(row("gsm8k", "100"), answer) == right


def test_what_has_no_tag_must_be_the_answer_and_nothing_else() -> None:
    """Else every long text is right that happens to have the digit in it."""
    thinking = "There are 16 of them, and 36 more."
    assert correct(row("gsm8k", "6"), thinking)
    assert not correct(row("gsm8k", "6"), thinking, whole=True)
    assert correct(row("gsm8k", "6"), "6.0", whole=True)


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("C", True),
        ("(c)", True),
        ("C ) 30", True),
        ("The answer is c)", True),
        ("option C", True),
        ("The answer is C", True),
        ("The correct option is: C.", True),
        ("The answer is A", False),
        ("The answer is a number", False),
        ("30", True),
        ("a)", False),
        ("a) or c)", False),
        ("10 or 30", False),
        ("It cannot be decided because of the facts.", False),
    ],
)
def test_an_option_is_named_by_letter_or_text(answer: str, right: bool) -> None:
    question = row("mmlu", "c", "How many?\nOptions: A ) 10 , B ) 20 , C ) 30 , D ) 40")
    assert correct(question, answer) == right


async def test_a_refusal_names_no_option() -> None:
    question = Instance("mmlu/1", row("mmlu", "c", "How many?\nOptions: A ) 10 , B ) 20 , C ) 30 , D ) 40"))
    assert (await MINT.score(rollout(question, "c)"))).value == 1
    assert (await MINT.score(rejected(question, "c)"))).value == 0


async def test_upstreams_own_reading_of_an_option_is_reported_beside() -> None:
    question = Instance("mmlu/1", row("mmlu", "c", "How many?\nOptions: A ) 10 , B ) 20 , C ) 30 , D ) 40"))
    score = await MINT.score(answered(question, "It cannot be decided."))
    assert score.value == 0
    assert MINT.more([score]) == {"success rate as upstream's code has it": 1}


@pytest.mark.parametrize(
    ("reference", "answer", "right"),
    [
        (1.12, "1.12", True),
        (1.12, "v = 1.1 km", True),
        (1.12, "1.2", False),
        (11200.0, "1.12 x 10^4 m/s", False),
        (11200.0, "1.12 x 10^4", True),
        (6, "6.2", True),
        (6, "7", False),
        (1152, "1,152", True),
        (-1.5, "approximately -1.5", True),
        (0.2, "20%", False),
        (False, "False", True),
        (False, "no", True),
        (False, "True", False),
        (False, "0.5", False),
        ([0, 5], "[5, 0]", True),
        ([0, 5], "[0, 5, 6]", False),
        ([0, 5], "0", False),
        ([0, 5], "['a', 'b']", False),
        ("b", "(b)", True),
        ("b", "b", True),
        ("b", "a)", False),
        (2, "9**9**9**9", False),
        (2, "float('nan')", False),
        (3, "abs(-3)", True),
        (3, "7 // 2", True),
        (1, "7 % 2", True),
        (3.0, "3 + 0j", True),
        (2.0, "complex(2, 5)", True),
        (4, "(1 + 1j) * (1 - 1j) + 2", True),
        (0.5, "1j ** 2 + 1.5", True),
        (2, "max(1, 2)", False),
        (2, "[1, 2][1]", False),
        (2, "2 if True else 1", False),
    ],
)
def test_an_answer_to_theoremqa_is_computed_and_compared_by_its_type(
    reference: object, answer: str, right: bool
) -> None:
    assert correct(row("theoremqa", reference), answer) == right


@needs_benchdata
@pytest.mark.parametrize("split", MINT.splits)
def test_the_instruction_says_the_form_and_the_limits(split: str) -> None:
    told = MINT.instruction(instances(MINT, split)[0])
    assert "You have 5 steps" in told
    assert "2 times" in told
    assert "between <answer> and </answer>" in told
    assert '"""\nWrite' not in told


def a_sum(folder: Path) -> Path:
    (folder / "gsm8k").mkdir(parents=True)
    line = {"id": 1, "prompt": "Six rows of 4 eggs, 3 are broken. How many are whole?", "reference": "21"}
    (folder / "gsm8k/test_prompts.json").write_text(json.dumps(line) + "\n")
    return folder


async def result(place: Path, agent: str, critic: str) -> tuple[Result, str]:
    """The result of the task, and the trajectory."""
    data = str(a_sum(place / "data"))
    conditions = Conditions(
        benchmark="mint",
        split="gsm8k",
        data=data,
        agent="CodeActAgent",
        model=agent,
        user_model=agent,
        feedback_model=critic,
        limits=MINT.limits,
    )
    planned = await plan.new(MINT, conditions, InstanceSelection(), 1, no_status)
    (found,) = (await finished(place / "out", planned)).values()
    return found, (place / "out" / found.trajectory).read_text()


def messages(trajectory: str) -> list[str]:
    """What the simulated user said after the task."""
    events = map(from_json, trajectory.splitlines())
    return [event.content for event in events if isinstance(event, MessageAction) and event.source == "user"][1:]


@pytest.mark.slow
async def test_a_second_model_comments_on_each_step_that_does_not_solve_the_task(tmp_path: Path) -> None:
    agent = script(
        tmp_path / "agent",
        bash("echo $((6 * 4))"),
        finish("<answer>7</answer>"),
        bash("echo $((6 * 4 - 3))"),
        finish("<answer>21</answer>"),
    )
    comments = [
        {"content": f"Comment {number}.\nAssistant:\nI finish.", "usage": {"input": 100, "output": 10}, "cost": 0.25}
        for number in range(1, 5)
    ]
    found, trajectory = await result(tmp_path, agent, script(tmp_path / "critic", *comments))
    assert (found.score, found.steps) == (1, 4)
    assert (found.feedback_cost, found.feedback_usage.total, found.cost) == (0.75, 330, 0)
    manifest_of, results = manifest.read(tmp_path / "out"), list(Results(tmp_path / "out").by_key.values())
    summary = summarise(manifest_of.facts, results, {})
    assert tables.headline(summary).startswith(f"mint gsm8k with feedback from scripted:{tmp_path / 'critic'}: ")
    rows = {row[0]: row[2] for table in tables.of_run(summary) for row in table.rows if table.title == "What they took"}
    assert (rows["cost of the feedback, USD"], rows["tokens of the feedback"]) == ("0.7500", "330")
    form = "Finish with your answer between <answer> and </answer>: a number, and nothing else."
    assert messages(trajectory) == [
        f"Expert feedback:\nComment 1.\nYou have 4 steps left and can propose 2 more answers. {form}",
        "That answer is wrong.\nExpert feedback:\nComment 2.\nYou have 3 steps left and can propose 1 more answer. "
        f"{form}",
        f"Expert feedback:\nComment 3.\nYou have 2 steps left and can propose 1 more answer. {form}",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("critic", [False, True])
async def test_steps_and_proposals_are_as_many_with_feedback_as_without(critic: bool, tmp_path: Path) -> None:
    comments = script(tmp_path / "critic", *[{"content": "No."}] * 9) if critic else ""
    working = script(tmp_path / "working", *(bash(f"echo {number}") for number in range(9)))
    found, trajectory = await result(tmp_path / "working-place", working, comments)
    assert (found.score, found.steps, len(messages(trajectory))) == (0, STEPS, (STEPS - 1) * critic)
    guessing = script(tmp_path / "guessing", *(finish(f"<answer>{number}</answer>") for number in range(9)))
    found, trajectory = await result(tmp_path / "guessing-place", guessing, comments)
    assert (found.score, found.steps, len(messages(trajectory))) == (0, PROPOSALS, PROPOSALS - 1)


async def test_the_agents_look_at_the_workspace_is_not_commented_on() -> None:
    instance = Instance("1", row("gsm8k", "21"), "gsm8k")
    look = [StepStarted(), WorkspaceOverviewAction(budget=100, source="agent"), WorkspaceOverviewObservation()]
    step = [StepStarted(), *ran("echo 21", "21", 0)]
    stops = [
        await MINT.over(replace(rollout(instance), state=state_of(*events), feedback=nobody))
        for events in (look, [*look, *step], [*look, *step * STEPS])
    ]
    assert stops == [False, True, False]


def test_the_feedback_model_sees_the_conversation_and_the_reference_and_only_it_does() -> None:
    instance = Instance("1", row("gsm8k", "21", "How many eggs?"), "gsm8k")
    ran = CmdRunAction(command="echo 24", id=2, source="agent")
    state = state_of(
        MessageAction(content="A long instruction.", source="user"),
        ran,
        CmdOutputObservation(content="24\n", command="echo 24", exit_code=0, cause=2),
        AgentFinishAction(outputs={"message": "<answer>24</answer>"}),
    )
    prompt = feedback.prompt(instance, state, "That answer is wrong.")
    assert (
        "Task:\nHow many eggs?\nAssistant:\nrun echo 24\nObservation:\n24\nAssistant:\nfinish <answer>24</answer>\n"
        "Observation:\nThat answer is wrong.\n\nCorrect solution (please DO NOT disclose the correct solution to the "
        "assistant): 21\n"
    ) in prompt
    assert "A long instruction" not in prompt
    assert "21" not in MINT.instruction(instance)

"""The final decision's strategies, by table."""

from __future__ import annotations

from typing import Any

import pytest

from handiwork.agents.state import State
from handiwork.agents.swarm import SwarmAgent, SwarmNotes
from handiwork.agents.swarm.decision import vote_key
from handiwork.agents.swarm.graph import DECISION, Strategy, Swarm, build
from handiwork.events.action import AgentFinishAction
from handiwork.events.base import Action
from handiwork.llm.scripted.model import ScriptedLLM
from tests.agents.states import check_golden, shown, task


async def decide(strategy: Strategy, answers: list[str], *replies: str, seed: int = 0) -> tuple[str, ScriptedLLM]:
    """The final decision of a swarm whose agents gave these answers, with a model that gives these replies."""
    swarm = build(["io"] * len(answers), strategy).most_probable()
    outputs = {f"io {number}/answer": text for number, text in enumerate(answers, 1)}
    state: State[SwarmNotes] = State(data=SwarmNotes(graph=swarm, seed=seed, message=1, outputs=outputs))
    state.apply(task("What is 6 * 7?").with_fields(id=1))
    llm = ScriptedLLM(replies)
    action: Any = await SwarmAgent(llm).step(state)
    assert isinstance(action, AgentFinishAction)
    return str(action.outputs["message"]), llm


ANSWERS = ["6 * 7 is 42, so\nAnswer: 42", "It is\n41", "I count.\n**42.**", "Hm.\n7"]


@pytest.mark.parametrize(
    ("strategy", "replies", "expected"),
    [
        ("majority_vote", [], ANSWERS[0]),
        ("references", ["All considered:\n42"], "All considered:\n42"),
        ("self_consistency", ["3"], ANSWERS[2]),
        ("select_best", ["Answer 2 is the best."], ANSWERS[1]),
        ("select_best", ["None of them."], ANSWERS[0]),
        ("select_best", ["5"], ANSWERS[0]),
        ("self_consistency", ["0"], ANSWERS[0]),
    ],
)
async def test_a_strategy_decides(strategy: Strategy, replies: list[str], expected: str) -> None:
    message, llm = await decide(strategy, ANSWERS, *replies)
    assert (message, len(llm.requests)) == (expected, len(replies))


async def test_chance_decides_a_tie_and_a_random_choice_and_is_the_same_for_the_same_seed() -> None:
    drawn = [(await decide("random_choice", ANSWERS, seed=seed))[0] for seed in range(40)]
    assert set(drawn) == set(ANSWERS)
    assert drawn == [(await decide("random_choice", ANSWERS, seed=seed))[0] for seed in range(40)]
    tied = {(await decide("majority_vote", ["1", "2", "3", "2", "3"], seed=seed))[0] for seed in range(40)}
    assert tied == {"2", "3"}


async def test_answers_in_tags_on_lines_of_their_own_differ_and_empty_ones_have_no_vote() -> None:
    answers = [f"I count.\n<answer>\n{number}\n</answer>" for number in (41, 42, 42)]
    assert (await decide("majority_vote", answers))[0] == answers[1]
    assert (await decide("majority_vote", ["", "", "42"]))[0] == "42"
    assert (await decide("select_best", ["", "42"], "1"))[0] == "42"
    assert {(await decide("random_choice", ["", "42"], seed=seed))[0] for seed in range(10)} == {"42"}


@pytest.mark.parametrize(
    "strategy", ["references", "majority_vote", "random_choice", "self_consistency", "select_best"]
)
async def test_without_answers_the_model_answers(strategy: Strategy) -> None:
    swarm = Swarm(nodes=(build(["io"], strategy).node(DECISION),), strategy=strategy)
    state: State[SwarmNotes] = State(data=SwarmNotes(graph=swarm, message=1))
    state.apply(task("What is 6 * 7?").with_fields(id=1))
    action: Action | Any = await SwarmAgent(ScriptedLLM(["42"])).step(state)
    assert isinstance(action, AgentFinishAction)
    assert action.outputs == {"message": "42"}


async def test_the_prompts_are_the_golden_ones() -> None:
    prompts = [shown((await decide(s, ANSWERS, "1"))[1].requests[0]) for s in ("references", "select_best")]
    check_golden("swarm_decision", "\n".join(prompts))


@pytest.mark.parametrize(
    ("answer", "key"),
    [
        ("42", "42"),
        ("So I think.\n\nThe final answer is: 42.\n", "42"),
        ("Because.\n**Answer:** 42", "42"),
        ("Because.\n<answer>42</answer>", "42"),
        ("Because.\n<answer>\n42\n</answer>", "42"),
        ("<answer>\nSELECT a\nFROM t;\n</answer>", "select a from t;"),
        ("<answer>\n```python\nx = 1\n```\n</answer>", "x = 1"),
        ("So it is\n$$\n42\n$$", "42"),
        ("Two ways.\n  New   York ", "new york"),
        ("The answer\n$\\frac{1}{2}$", "\\frac{1}{2}"),
        ("-3.5", "-3.5"),
        ("This:\n```python\ndef f():\n    return 1  \n```", "def f():\n    return 1"),
        ("", ""),
    ],
)
def test_equal_conclusions_have_equal_keys(answer: str, key: str) -> None:
    assert vote_key(answer) == key

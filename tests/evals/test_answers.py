"""Answers are found in what an agent says, whatever stands around them."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.evals.benchmark import Instance
from handiwork.evals.benchmarks.mint.benchmark import Mint
from handiwork.evals.scoring.answers import LARGEST, fenced, read_answer, tagged
from handiwork.evals.scoring.arithmetic import value_of
from handiwork.events.action import AgentFinishAction, CmdRunAction, MessageAction
from handiwork.sandbox import create as sandboxes
from handiwork.workspace.layers import SandboxPaths
from tests.agents.states import state_of
from tests.evals.rollouts import no_blobs, rollout, said

words = st.text().filter(lambda text: "answer>" not in text)
lines = st.text(st.characters(exclude_characters="`\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029"))


@given(words, words, words)
def test_the_last_tag_holds_the_answer(before: str, answer: str, after: str) -> None:
    text = f"<answer>first</answer>{before}<answer>{answer}</answer>{after}"
    assert tagged(text) == answer.strip()


@given(words)
def test_without_a_tag_the_whole_text_is_the_answer(text: str) -> None:
    assert tagged(text) == text.strip()


def test_a_tag_that_is_not_closed_is_none() -> None:
    assert tagged("<answer>42") == "<answer>42"
    assert tagged("</answer> 42 <answer>") == "</answer> 42 <answer>"
    assert tagged("<answer>1</answer> or <answer>2") == "1"


@given(st.lists(lines), lines)
def test_the_last_block_of_a_language_is_taken(body: list[str], around: str) -> None:
    block = "".join(f"{line}\n" for line in body)
    text = f"{around}\n```sql\n-- first\n```\n{around}\n```sql\n{block}```\n{around}\n```python\npass\n```\n"
    assert fenced(text, "sql") == block


def test_a_block_without_a_language_is_asked_for_by_the_empty_one() -> None:
    text = "```\nplain\n```"
    assert fenced(text, "python") == ""
    assert fenced(text, "python", "") == "plain\n"
    assert fenced("```python\ncut off", "python") == "cut off"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_has_its_value(number: float) -> None:
    assert value_of(repr(number)) == number


@given(st.text())
def test_no_text_breaks_the_calculator(text: str) -> None:
    value_of(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.5*10**4", 15000.0),
        ("math.sqrt(2)/2", math.sqrt(2) / 2),
        ("[1, 2, -3]", [1, 2, -3]),
        ("(1, 2)", [1, 2]),
        ("True", True),
        ("9**9**9**9", None),
        ("9" * 400, None),
        ("__import__('os').getcwd()", None),
        ("[].__class__", None),
        ("1/0", None),
        ("", None),
    ],
)
def test_a_formula_is_computed_and_no_program_is_run(text: str, value: object) -> None:
    assert value_of(text) == value


def test_what_an_agent_said_last_is_what_is_scored() -> None:
    assert rollout(Instance("1", {}), ["one", "two"]).final_message == "two"
    assert said("one").agent_state == "finished"


async def test_an_agent_whose_finish_has_an_answer_instead_of_a_message_is_scored_on_it() -> None:
    """MathAgent finishes with ``answer``: a benchmark of mathematics must not read it as empty."""
    state = state_of(MessageAction(content="6 * 7?", source="user"), AgentFinishAction(outputs={"answer": "42"}))
    ended = replace(rollout(Instance("1", {"set": "math", "reference": "42"})), state=state)
    assert (await Mint().score(ended)).value == 1


async def test_a_file_is_read_as_text_up_to_a_size(tmp_path: Path) -> None:
    sandbox = sandboxes.create("none", SandboxPaths(tmp_path, tmp_path), no_blobs)
    (tmp_path / "answer.txt").write_bytes(b"caf\xe9\n")
    (tmp_path / "folder").mkdir()
    try:
        await sandbox.start()
        await sandbox.execute(CmdRunAction(command=f"head -c {2 * LARGEST} /dev/zero > large.txt"))
        assert await read_answer(sandbox, "answer.txt") == "caf\ufffd\n"
        assert len(await read_answer(sandbox, "large.txt")) == LARGEST
        assert await read_answer(sandbox, "folder") == ""
        assert await read_answer(sandbox, "none.txt") == ""
        os.mkfifo(tmp_path / "pipe")
        assert await read_answer(sandbox, "pipe") == ""
    finally:
        await sandbox.close()

"""Short questions with few answers: which answer a model's reply is."""

from __future__ import annotations

import pytest

from handiwork.agents.codeact.choice import KINDS, WANTS, choose
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.types import Capabilities


@pytest.mark.parametrize(
    ("reply", "answers", "expected"),
    [
        ("change", KINDS, "change"),
        ("It is a repair, not a change.", KINDS, "repair"),
        ('{"answer": "new"}', WANTS, "new"),
        ("Answer: new", WANTS, "new"),
        ("**Answer**: change", WANTS, "change"),
        ("**Answer:** change", WANTS, "change"),
        ("The answer is new.", WANTS, "new"),
        ("An answer in words.", WANTS, "answer"),
        ("unchanged", KINDS, "question"),
        ("Do not prune: skip it.", ("run", "skip"), "skip"),
        ("", KINDS, "question"),
    ],
)
async def test_the_first_word_that_is_an_answer_counts_and_without_one_the_first_answer(
    reply: str, answers: tuple[str, ...], expected: str
) -> None:
    llm = ScriptedLLM([reply], capabilities=Capabilities(tools=False, schema=False))
    answer, _ = await choose(llm, "Which one?", answers)
    assert answer == expected

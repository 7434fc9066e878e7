"""Short questions with few answers: which answer a model's reply is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handiwork.agents.codeact.choice import KINDS, WANTS, choose, kind_of
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.types import Capabilities
from tests.agents.small_model import Small


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


@pytest.mark.parametrize(
    ("reply", "kind"), [("request", "change"), ("A request to repair code.", "repair"), ("Hm.", "question")]
)
async def test_a_request_is_no_question(reply: str, kind: str) -> None:
    llm = ScriptedLLM([reply], capabilities=Capabilities(tools=False, schema=False))
    assert await kind_of(llm, "Please write it.") == (kind, 0)


async def test_a_server_that_binds_replies_to_grammars_alone_binds_a_choice() -> None:
    llm = Small('{"answer": "skip"}')
    llm.capabilities = replace(llm.capabilities, schema=False)
    assert (await choose(llm, "Which one?", ("run", "skip")))[0] == "skip"
    ((form, _),) = llm.asked
    assert form == ('root ::= "{\\"answer\\": \\"" ("run" | "skip") "\\"}"')

"""Short questions with few answers, which a small model answers more reliably than it plans."""

from __future__ import annotations

from collections.abc import Sequence

from handiwork.agents.base import AgentLLM
from handiwork.llm.strict_json import parse
from handiwork.llm.types import Completion, Message

Choice = tuple[str, int]
"""The answer, and the id of the completion that has it."""


async def choose(llm: AgentLLM, question: str, answers: Sequence[str]) -> Choice:
    """Ask the model; return the first of ``answers`` if its reply is none of them. Raises the errors of the model."""
    text = f"{question}\nAnswer with one of these words: {', '.join(answers)}."
    schema = None
    if llm.capabilities.schema:
        properties = {"answer": {"enum": list(answers)}}
        schema = {"type": "object", "properties": properties, "required": ["answer"], "additionalProperties": False}
    completion: Completion = await llm.complete([Message.text("user", text)], schema=schema)
    reply = completion.content.lower()
    if schema is not None:
        try:
            reply = str(parse(completion.content)["answer"])
        except (ValueError, KeyError, TypeError):
            reply = ""
    return min(answers, key=lambda answer: reply.find(answer) if answer in reply else len(reply) + 1), completion.event

"""Short questions with few answers, which a small model answers more reliably than it plans."""

from __future__ import annotations

from collections.abc import Sequence

from handiwork.agents.base import AgentLLM
from handiwork.llm.errors import UnsupportedError
from handiwork.llm.types import Completion, Message

Choice = tuple[str, int]
"""The answer, and the id of the completion that has it."""


async def choose(llm: AgentLLM, question: str, answers: Sequence[str]) -> Choice:
    """Ask the model; return the first of ``answers`` if its reply is none of them. Raises the errors of the model."""
    message = Message.text("user", f"{question}\nAnswer with one of these words: {', '.join(answers)}.")
    completion = await _reply(llm, message, answers)
    reply = completion.content.lower()
    return min(answers, key=lambda answer: reply.find(answer) if answer in reply else len(reply) + 1), completion.event


async def _reply(llm: AgentLLM, message: Message, answers: Sequence[str]) -> Completion:
    """Return the reply, bound to one of the answers if the server supports that."""
    if not llm.capabilities.schema:
        return await llm.complete([message])
    properties = {"answer": {"enum": list(answers)}}
    schema = {"type": "object", "properties": properties, "required": ["answer"], "additionalProperties": False}
    try:
        return await llm.complete([message], form=schema)
    except UnsupportedError:
        return await llm.complete([message])

"""Short questions with few answers, which a small model answers more reliably than it plans."""

from __future__ import annotations

from collections.abc import Sequence

from handiwork.agents.base import AgentLLM
from handiwork.agents.protocols.ask import ask_in_form
from handiwork.llm.types import Message

Choice = tuple[str, int]
"""The answer, and the id of the completion that has it."""

KINDS = ("question", "new", "change", "repair")
KIND = (
    "A user of a coding agent writes:\n\n<message>\n{message}\n</message>\n\nWhat kind of message is it: a question, a "
    "request for new code or files, a request for a change, or a request to repair code that fails its tests?"
)
"""Models choose among kinds more reliably than they answer whether a task is of one kind."""


async def kind_of(llm: AgentLLM, message: str) -> Choice:
    """Ask the model for the kind of a user's message, one of KINDS. Raises the errors of the model."""
    return await choose(llm, KIND.format(message=message), KINDS)


async def choose(llm: AgentLLM, question: str, answers: Sequence[str]) -> Choice:
    """Ask the model; return the first of ``answers`` if its reply is none of them. Raises the errors of the model."""
    message = Message.text("user", f"{question}\nAnswer with one of these words: {', '.join(answers)}.")
    properties = {"answer": {"enum": list(answers)}}
    form = {"type": "object", "properties": properties, "required": ["answer"], "additionalProperties": False}
    completion = await ask_in_form(llm, message, form)
    reply = completion.content.lower()
    return min(answers, key=lambda answer: reply.find(answer) if answer in reply else len(reply) + 1), completion.event

"""Short questions with few answers, which a small model answers more reliably than it plans."""

from __future__ import annotations

import re
from collections.abc import Sequence

from handiwork.agents.base import AgentLLM
from handiwork.agents.protocols.ask import ask_in_form
from handiwork.llm.types import Completion, Grammar, Message

Choice = tuple[str, int]
"""The answer, and the id of the completion that has it."""

KINDS = ("question", "new", "change", "repair")
KIND = (
    "A user of a coding agent writes:\n\n<message>\n{message}\n</message>\n\nWhat kind of message is it: a question, a "
    "request for new code or files, a request for a change, or a request to repair code that fails its tests?"
)
"""Models choose among kinds more reliably than they answer whether a task is of one kind."""

WANTS = ("answer", "new", "change", "repair")
WANT = (
    "A user of a coding agent writes:\n\n<message>\n{message}\n</message>\n\nWhat does the user want: an answer in "
    "words, new code or files, a change, or a repair of code that fails its tests?"
)
"""By KIND alone many polite requests ("Would you write ...?") are questions."""

WAYS = ("reading", "running", "git", "counting", "command")
WAY = (
    "A user of a coding agent asks:\n\n<message>\n{message}\n</message>\n\nHow does a developer find the answer: by "
    "reading the code, by running the program or its tests, by git log, by counting with wc, or by another command?"
)

WAYS_WITHOUT_FILES = ("knowing", "calculating", "command")
WAY_WITHOUT_FILES = (
    "A user of a coding agent asks:\n\n<message>\n{message}\n</message>\n\nHow does a developer find the answer: by "
    "knowing it, by calculating it, or by a command that looks at this computer?"
)

AIMS = ("add", "part", "whole")
AIM = (
    "A user of a coding agent writes:\n\n<message>\n{message}\n</message>\n\nWhat does it ask to do with {path}: to "
    "add to it, to change a part of it, or to rewrite or empty the whole file?"
)


_REQUEST = re.compile(r"\brequests?\b")
"""A word of KIND itself that models answer instead of one of KINDS; no question is one."""
_KEY = re.compile(r'"?\banswer\b["*]*\s*(?:is\b\s*:?|:)')
"""The key of a bound reply, or the word before an unbound one, which is one of WANTS itself."""


async def kind_of(llm: AgentLLM, message: str) -> Choice:
    """Ask the model for the kind of a user's message, one of KINDS. Raises the errors of the model."""
    return await choose(llm, KIND.format(message=message), KINDS, (_REQUEST, "change"))


async def want_of(llm: AgentLLM, message: str) -> str:
    """Ask the model what the user wants, one of WANTS. Raises the errors of the model."""
    want, _ = await choose(llm, WANT.format(message=message), WANTS)
    return want


async def way_of(llm: AgentLLM, question: str, *, has_files: bool) -> str:
    """Ask the model how a question is answered, one of WAYS, or of WAYS_WITHOUT_FILES. Raises the model's errors."""
    text, ways = (WAY, WAYS) if has_files else (WAY_WITHOUT_FILES, WAYS_WITHOUT_FILES)
    way, _ = await choose(llm, text.format(message=question), ways)
    return way


async def aim_of(llm: AgentLLM, message: str, path: str) -> str:
    """Ask the model what a user's message asks to do with a file, one of AIMS. Raises the errors of the model."""
    aim, _ = await choose(llm, AIM.format(message=message, path=path), AIMS)
    return aim


async def choose(
    llm: AgentLLM, question: str, answers: Sequence[str], other: tuple[re.Pattern[str], str] | None = None
) -> Choice:
    """Ask the model; return the first of ``answers`` if its reply has none of them.

    ``other`` is a pattern, and the answer that a reply means which has none of them and matches it. Raises the errors
    of the model.
    """
    message = Message.text("user", f"{question}\nAnswer with one of these words: {', '.join(answers)}.")
    if llm.capabilities.grammar and not llm.capabilities.schema:
        words = " | ".join(f'"{answer}"' for answer in answers)
        form = Grammar(f'root ::= "{{\\"answer\\": \\"" ({words}) "\\"}}"')
        completion: Completion = await llm.complete([message], form=form)
    else:
        properties = {"answer": {"enum": list(answers)}}
        schema = {"type": "object", "properties": properties, "required": ["answer"], "additionalProperties": False}
        completion = await ask_in_form(llm, message, schema)
    reply = _KEY.sub("", completion.content.lower())
    found = {answer: match.start() for answer in answers if (match := re.search(rf"\b{answer}\b", reply))}
    otherwise = other[1] if other and other[0].search(reply) else answers[0]
    return min(found, key=lambda answer: found[answer], default=otherwise), completion.event

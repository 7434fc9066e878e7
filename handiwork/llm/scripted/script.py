"""A script of replies: JSON lines in place of a model's answers."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import Field, JsonValue, ValidationError

from handiwork.events.base import Model
from handiwork.events.record import Usage
from handiwork.llm.errors import LLMError


class ScriptedCall(Model):
    """A tool call of a reply; ``arguments`` given as a string is passed on unchanged, even invalid JSON."""

    name: str
    arguments: dict[str, JsonValue] | str = Field(default_factory=dict)

    @property
    def text(self) -> str:
        """The arguments as JSON text."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


class Reply(Model):
    """One line of a script; with ``error`` the model fails with that message instead of answering.

    ``cost`` is in USD. ``delay`` is in seconds, spread over the pieces in which the content arrives.
    """

    content: str = ""
    tool_calls: tuple[ScriptedCall, ...] = ()
    usage: Usage = Usage()
    cost: float = Field(default=0.0, ge=0)
    delay: float = Field(default=0.0, ge=0)
    error: str | None = None

    @property
    def pieces(self) -> list[str]:
        """The pieces in which the content arrives: its lines."""
        return self.content.splitlines(keepends=True)


def read_script(path: Path) -> list[Reply]:
    """Return the replies of a file of JSON lines; empty lines are skipped.

    Raises LLMError for an unreadable file, or with its number for an invalid line.
    """
    try:
        lines = path.read_text().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise LLMError(f"cannot read the script {path}: {error}") from error
    replies: list[Reply] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            replies.append(Reply.model_validate_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(step) for step in first["loc"]) or "the line"
            raise LLMError(f"script {path}, line {number}: {field}: {first['msg']}") from error
    return replies


def position_after(replies: list[Reply], answered: int) -> int:
    """Return the position at which a new process continues a script whose model has answered ``answered`` times.

    It is after the last reply given and the errors that follow it, which were raised before.
    """
    position = 0
    while answered and position < len(replies):
        answered -= replies[position].error is None
        position += 1
    while 0 < position < len(replies) and replies[position].error is not None:
        position += 1
    return position

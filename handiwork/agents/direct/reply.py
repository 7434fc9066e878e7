"""The reply to a direct prompt: text, and at most one script in fenced blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_REFUSAL = re.compile(r"[*#\s]*I (?:cannot|can.t)\b", re.IGNORECASE)
_OPENING = re.compile(r"([ \t]*)(`{3,})[ \t]*(?:bash|sh|shell)[ \t]*$", re.IGNORECASE)
_HEREDOC = re.compile(r"(?<!<)<<(?!<)-?[ \t]*(?:'([^'\n]+)'|\"([^\"\n]+)\"|\\?([A-Za-z_]\w*))")


@dataclass(frozen=True, slots=True)
class DirectReply:
    """A reply's ``script``, "" without one, the ``text`` outside of it, and whether it refuses the task.

    A refusal begins with "I cannot" and has no script. The prompt does not mention refusals, which small models would
    then prefer to tasks they can do.
    """

    text: str
    script: str
    refused: bool


def parse(content: str) -> DirectReply:
    """Return the parts of a reply; the script consists of all blocks marked as bash, in their order."""
    lines = content.replace("\r\n", "\n").split("\n")
    words: list[str] = []
    script: list[str] = []
    while lines:
        line = lines.pop(0)
        if opening := _OPENING.match(line):
            end = _end(lines, opening[2])
            script += [line.removeprefix(opening[1]) for line in lines[:end]]
            del lines[: end + 1]
        else:
            words.append(line)
    text = "\n".join(words).strip()
    return DirectReply(text, "\n".join(script).strip(), not script and _REFUSAL.match(text) is not None)


def _end(lines: Sequence[str], fence: str) -> int:
    """Return the index of the line that closes a block; a fence in a here-document belongs to the document.

    If a here-document has no end, the first fence closes the block; without a fence it extends to the reply's end.
    """
    closing = [number for number, line in enumerate(lines) if line.strip() == fence]
    inside = set(_documents(lines))
    return next((number for number in closing if number not in inside), closing[0] if closing else len(lines))


def _documents(lines: Sequence[str]) -> Iterator[int]:
    """Yield the indices of the lines that belong to here-documents."""
    waiting: list[str] = []
    for number, line in enumerate(lines):
        if waiting:
            yield number
            if line.strip() == waiting[0]:
                waiting.pop(0)
        else:
            waiting = [next(filter(None, match)) for match in _HEREDOC.findall(line)]

"""History processors: they shorten a conversation before the model reads it.

The log keeps everything; a processor changes only the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

_WINDOW = re.compile(
    r"^\[File: (.*?) \(\d+ lines(?: total)?\)\]\n(?:(?:\(\d+ more lines above\)|\d+:.*|\(\d+ more lines below\))\n?)+",
    re.MULTILINE,
)


@dataclass(frozen=True)
class SWETurn:
    """A turn of the conversation: the ``command`` of the model's reply and the ``text`` that answers it.

    ``collapsed`` turns show that text in place of the output and its frame. ``failed``: malformed, blocked, or refused
    by a guard. ``tags`` are those of SWE-agent: "keep_output", "remove_output".
    """

    command: str
    text: str
    failed: bool = False
    collapsed: bool = False
    tags: frozenset[str] = field(default_factory=frozenset[str])

    @property
    def name(self) -> str:
        """The first word of the command."""
        return (self.command.split() or [""])[0]


class _Processor(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DefaultProcessor(_Processor):
    """Changes nothing."""

    type: Literal["default"]

    def process(self, turns: Sequence[SWETurn]) -> list[SWETurn]:
        """Return the turns."""
        return list(turns)


class LastNObservations(_Processor):
    """Collapses all outputs but the last ``n`` into a line.

    With ``polling`` it does so only every ``polling`` turns, so that the beginning of the prompt stays the same between
    them and providers can cache it.
    """

    type: Literal["last_n_observations"]
    n: int = Field(ge=1)
    polling: int = Field(default=1, ge=1)
    always_remove_output_for_tags: frozenset[str] = frozenset({"remove_output"})
    always_keep_output_for_tags: frozenset[str] = frozenset({"keep_output"})

    def process(self, turns: Sequence[SWETurn]) -> list[SWETurn]:
        """Return the turns, the old ones collapsed."""
        last = max(0, len(turns) // self.polling * self.polling - self.n)
        return [self._processed(turn, number < last) for number, turn in enumerate(turns)]

    def _processed(self, turn: SWETurn, is_old: bool) -> SWETurn:
        removed = turn.tags & self.always_remove_output_for_tags
        kept = turn.tags & self.always_keep_output_for_tags
        return _collapsed(turn) if removed or (is_old and not kept) else turn


class TagToolCallObservations(_Processor):
    """Gives the outputs of some tools tags, by which other processors keep or remove them."""

    type: Literal["tag_tool_call_observations"]
    tags: frozenset[str] = frozenset({"keep_output"})
    function_names: frozenset[str] = frozenset()

    def process(self, turns: Sequence[SWETurn]) -> list[SWETurn]:
        """Return the turns, tagged."""
        return [
            replace(turn, tags=turn.tags | self.tags) if turn.name in self.function_names else turn for turn in turns
        ]


class ClosedWindow(_Processor):
    """Keeps only the last view of each file."""

    type: Literal["closed_window"]

    def process(self, turns: Sequence[SWETurn]) -> list[SWETurn]:
        """Return the turns, earlier views replaced by a line."""
        seen: set[str] = set()
        processed: list[SWETurn] = []

        for turn in reversed(turns):
            views = list(_WINDOW.finditer(turn.text))
            text = turn.text
            for view in reversed(views):
                path = view[1]
                if path in seen:
                    note = f"[{path}: {view[0].count(chr(10))} lines left out; a later window shows the file]\n"
                    text = text[: view.start()] + note + text[view.end() :]
                seen.add(path)
            processed.append(replace(turn, text=text) if text != turn.text else turn)
        return processed[::-1]


class RemoveRegex(_Processor):
    """Removes matching text from all outputs but the last ``keep_last``."""

    type: Literal["remove_regex"]
    remove: tuple[Annotated[str, Field(min_length=1)], ...] = ("<diff>.*</diff>",)
    keep_last: int = Field(default=0, ge=0)

    def process(self, turns: Sequence[SWETurn]) -> list[SWETurn]:
        """Return the turns without the matching text."""
        last = len(turns) - self.keep_last
        return [replace(turn, text=self._without(turn.text)) if n < last else turn for n, turn in enumerate(turns)]

    def _without(self, text: str) -> str:
        for pattern in self.remove:
            text = re.sub(pattern, "", text, flags=re.DOTALL)
        return text


HistoryProcessor = DefaultProcessor | LastNObservations | TagToolCallObservations | ClosedWindow | RemoveRegex


def without_failures(turns: Sequence[SWETurn]) -> list[int]:
    """Return the indices of the turns to keep: a failed turn is dropped once a later attempt succeeds.

    For an edit that a guard refused, that is a later success of the same command; for a malformed reply, any success.
    """
    kept: list[int] = []
    succeeded: set[str] = set()
    for number in range(len(turns) - 1, -1, -1):
        turn = turns[number]
        if not turn.failed:
            succeeded |= {"", turn.name}
        if not turn.failed or turn.name not in succeeded:
            kept.append(number)
    return kept[::-1]


def _collapsed(turn: SWETurn) -> SWETurn:
    lines = turn.text.count("\n") + bool(turn.text and not turn.text.endswith("\n"))
    text = f"Old environment output: ({lines} line{'s' * (lines != 1)} omitted)"
    return replace(turn, text=text, collapsed=True)

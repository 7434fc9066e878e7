"""A session as JSON lines: its events on stdout, everything else on stderr."""

from __future__ import annotations

import re
import sys
from typing import Self

from handiwork.cli.terminal.sanitize import plain
from handiwork.events.base import Event
from handiwork.events.codec import to_json
from handiwork.events.record import StepStarted
from handiwork.session.steps.live import OutputDelta, Status, TextDelta

_UNSEEN = re.compile("[\x7f-\x9f]")


def write_json(line: str) -> None:
    """Write one line of JSON to stdout, in UTF-8 regardless of the locale, with terminal control characters escaped."""
    line = _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", line)
    # UTF-8 cannot encode lone surrogates; they become the equivalent JSON escape.
    sys.stdout.buffer.write(line.encode("utf-8", "backslashreplace") + b"\n")
    sys.stdout.buffer.flush()


class JsonLines:
    """Writes a session's events after the id ``after``; ``stepped`` is true once the agent took a step."""

    def __init__(self) -> None:
        self.after = 0
        self.stepped = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def open(self, session: str, after: int) -> None:
        """Print the session's id to stderr; skip its events up to ``after``."""
        self.after = after
        print(f"session {session}", file=sys.stderr, flush=True)  # noqa: T201

    def __call__(self, item: Event | TextDelta | OutputDelta | Status) -> None:
        """Write an event or a status; this is the session's Observer."""
        match item:
            case Event() if item.id > self.after:
                self.stepped = self.stepped or isinstance(item, StepStarted)
                write_json(to_json(item))
            case Status():
                print(plain(item.text), file=sys.stderr, flush=True)  # noqa: T201
            case _:
                pass

"""Lines of outputs: bounded in number and width, safe to print."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.text import Text

from handiwork.cli.terminal.sanitize import plain
from handiwork.events.base import Observation

LINES = 40
"""The number of lines shown of one output; the rest is counted."""
READ_LINES = 8
"""The number of lines shown of a file that the agent reads, and of an output in a subtask."""
WIDTH = 1000
"""The number of characters shown of one line."""


@dataclass
class OutputLines:
    """Shows outputs, whole if ``full``, else at most ``limit`` lines; ``session`` is the id named in hints."""

    session: str = ""
    full: bool = False
    limit: int = LINES

    def lines(
        self, text: str, style: str = "", prefix: str = "  ", limit: int = LINES, size: int = 0
    ) -> Iterator[Text]:
        """Yield the lines of an output; omit its middle if there are at least two more than ``limit``.

        ``size`` is the number of bytes of the whole output if the text is only a part of it, else 0.
        """
        limit = min(limit, self.limit)
        lines = plain(text).rstrip("\n").split("\n") if text.strip("\n") else []
        omitted = 0 if self.full or len(lines) == limit + 1 else max(0, len(lines) - limit)
        head = lines[: limit // 2] if omitted else lines
        for line in head:
            yield Text(prefix + self.cut(line), style)
        if omitted:
            rest = f"more lines, {size} bytes in all" if size else f"{omitted} more lines"
            yield Text(f"  ... {rest} (handiwork show {self.session} --full)", "dim italic")
            for line in lines[-(limit // 2) :]:
                yield Text(prefix + self.cut(line), style)

    def observation(self, event: Observation, style: str = "", limit: int = LINES) -> Iterator[Text]:
        """Yield the lines of an observation's text."""
        yield from self.lines(event.text, style, limit=limit, size=event.size if event.blob else 0)

    def subtask(self, first: str, text: str, style: str) -> Iterator[Text]:
        """Yield a subtask's task or outcome; the lines after the first are bounded."""
        line, _, rest = plain(text).partition("\n")
        yield Text(first + self.cut(line), style)
        yield from self.lines(rest, "dim", "     ", READ_LINES)

    def cut(self, line: str) -> str:
        """Return the line, shortened to WIDTH characters unless all is shown."""
        if self.full or len(line) <= WIDTH:
            return line
        return f"{line[:WIDTH]} ... {len(line) - WIDTH} more characters"


def coloured_diff_line(line: Text) -> Text:
    """Return a line of a unified diff in its colour; two blanks may stand before its marker."""
    text = line.plain.removeprefix("  ")
    if line.style:
        return line
    if text.startswith(("diff --git", "--- ", "+++ ")):
        style = "bold"
    elif text.startswith("@@"):
        style = "cyan"
    else:
        style = {"+": "green", "-": "red"}.get(text[:1], "")
    return Text(line.plain, style)


def prefix_lines(text: str, first: str, style: str, rest: str = "  ") -> Iterator[Text]:
    """Yield the lines of a text, the first after ``first``, the others after ``rest``."""
    for number, line in enumerate(text.split("\n")):
        yield Text((rest if number else first) + line, style)

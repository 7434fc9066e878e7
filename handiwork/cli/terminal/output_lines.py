"""Lines of outputs: bounded in number and width, safe to print."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rich.text import Text

from handiwork.cli.terminal.sanitize import coloured_lines, plain
from handiwork.events.base import Observation

LINES = 40
"""The number of lines shown of one output; the rest is counted."""
READ_LINES = 8
"""The number of lines shown of a file that the agent reads, and of an output in a subtask."""
CHOSEN = 5
"""The number of lines shown from the middle of a long output because they tell of an error."""
WIDTH = 1000
"""The number of characters shown of one line."""
STATUS = {
    "running": "still running",
    "input": "waiting for input",
    "exited": "the shell exited and was restarted",
    "interrupted": "interrupted",
    "time_limit": "stopped by the session's time limit",
    "timeout": "stopped by its timeout",
    "background": "running in the background",
}
"""The words for the states of a command, except "done"."""
_TELLS = re.compile(
    r"\b(?:\w*error|errors|\w*exception|fail(?:ed|ure|ures|s)?|fatal|panic(?:ked)?|traceback)\b", re.IGNORECASE
)


@dataclass
class OutputLines:
    """Shows outputs, whole if ``full``, else at most ``limit`` lines; ``session`` is the id named in hints.

    ``most`` is the limit of the task's own outputs. With ``coloured``, programs keep their colours. ``opens`` is the
    command that shows the whole output of event ``event``.
    """

    session: str = ""
    full: bool = False
    limit: int = LINES
    most: int = LINES
    coloured: bool = False
    opens: str = "handiwork show {session} --full"
    event: int = 0

    def lines(
        self, text: str, style: str = "", prefix: str = "  ", limit: int = LINES, size: int = 0
    ) -> Iterator[Text]:
        """Yield the lines of an output; omit its middle if there are at least two more than ``limit``.

        Of the middle, the first lines that tell of an error remain. ``size`` is the number of bytes of the whole
        output if the text is only a part of it, else 0.
        """
        limit = min(limit, self.limit)
        lines = self._lines(text) if text.strip("\n") else []
        omitted = 0 if self.full or len(lines) == limit + 1 else max(0, len(lines) - limit)
        head, tail = (limit // 2, len(lines) - limit // 2) if omitted else (len(lines), len(lines))
        chosen = [n for n in range(head, tail) if _TELLS.search(lines[n].plain)][:CHOSEN] if limit > READ_LINES else []
        hint = f"more lines, {size} bytes in all" if size else f"{omitted - len(chosen)} more lines"
        last = head - 1
        for number in [*range(head), *chosen, *range(tail, len(lines))]:
            if number > last + 1:
                opens = self.opens.format(session=self.session, event=self.event)
                yield Text(f"  ... {hint} ({opens})" if hint else "  ...", "dim italic")
                hint = ""
            last = number
            yield Text(prefix, style).append_text(self._cut(lines[number]))

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
        return self._cut(Text(line)).plain

    def _cut(self, line: Text) -> Text:
        if self.full or len(line) <= WIDTH:
            return line
        return line[:WIDTH].append(f" ... {len(line) - WIDTH} more characters")

    def _lines(self, text: str) -> list[Text]:
        """Return the lines without empty ones at the end."""
        coloured = self.coloured and "\x1b[" in text
        lines = coloured_lines(text) if coloured else [Text(line) for line in plain(text).split("\n")]
        while len(lines) > 1 and not lines[-1].plain:
            lines.pop()
        return lines


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

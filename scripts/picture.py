"""Draw a session, or the newest, as a moving SVG picture of the terminal: python scripts/picture.py FILE [SESSION].

That of the README is of the demo: make demo && HANDIWORK_DATA=build/demo/data .venv/bin/python scripts/picture.py
docs/run.svg

The lines and their order are those of the recorded run. Pauses are not: a wait for the model, which may take minutes,
lasts LONGEST seconds, and long outputs scroll by in pieces.
"""

from __future__ import annotations

import asyncio
import io
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

from handiwork.agents.state import State
from handiwork.cli.commands.changes import overview
from handiwork.cli.commands.sessions import find
from handiwork.cli.terminal.summary import summary
from handiwork.cli.terminal.transcript import Transcript
from handiwork.events.record import SessionStarted
from handiwork.log.store import Store
from handiwork.paths import data_dir
from handiwork.session.open import changes

WIDTH, ROWS, LINE_HEIGHT = 108, 22, 24.4
"""The terminal's columns and rows, and the height of a row in rich's pictures."""

PIXELS = 840
"""The width at which the picture shows; it is less than 400 pixels high then."""

SHORTEST, LONGEST, END = 0.4, 1.5, 8.0
"""Seconds between two frames, at least and at most, and the seconds of the last one."""

PIECE = 6
"""The most lines that a frame adds."""

DEMO = "/build/demo/"
"""The demo's folder in a checkout."""

Frame = tuple[float, int]
"""The second at which a frame begins, and the number of rows that have been printed by then."""

FORMAT = """<svg width="PIXELS" viewBox="0 0 {width} HEIGHT" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font: {char_height}px/{line_height}px ui-monospace, Menlo, Consolas, DejaVu Sans Mono }}
.{unique_id}-title {{ font: bold 18px arial }}
{styles}
.scroll {{ transform: translateY(LAST_SCROLLpx); animation: scroll SECONDSs step-end infinite }}
.cover {{ transform: translateY(LAST_COVERpx); animation: cover SECONDSs step-end infinite }}
@keyframes scroll {{ SCROLL }}
@keyframes cover {{ COVER }}
@media (prefers-reduced-motion) {{ .scroll, .cover {{ animation: none }} }}
</style>
<defs><clipPath id="window"><rect y="2" width="{terminal_width}" height="WINDOW"/></clipPath>
{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#window)"><g class="scroll">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g>
<rect class="cover" width="{terminal_width}" height="{terminal_height}" fill="#292929"/>
</g></g>
</svg>
"""


async def timed_lines(session: str | None) -> list[tuple[float, list[Text]]]:
    """Return the lines that a session's run printed, with the second of each event; None is the newest session."""
    async with Store.open(data_dir()) as store:
        log = await find(store, session)
        state, transcript = State(), Transcript(log.id)
        shown: list[tuple[float, list[Text]]] = []
        events = await log.read()
        checkout = next(event.workspace for event in events if isinstance(event, SessionStarted)).partition(DEMO)[0]
        for event in events:
            state.apply(event)
            shown.append((event.timestamp.timestamp(), transcript.lines(event)))
        found = await changes(data_dir(), log)
        end = [*overview(found, log.id), *summary(state, log.id, changed=bool(found))]
        shown.append((shown[-1][0], end))
    return [(second, [_at_home(line, checkout) for line in lines]) for second, lines in shown]


def _at_home(line: Text, checkout: str) -> Text:
    """Return a line in which ~/handiwork stands for the checkout."""
    return Text("~/handiwork", line.style).join(line.split(checkout, allow_blank=True))


def frames_of(shown: list[tuple[float, list[int]]]) -> list[Frame]:
    """Return the frames for events, each with its second and the heights of its lines in rows."""
    frames: list[Frame] = [(0.0, 0)]
    before = shown[0][0]
    for second, heights in shown:
        wait = second - before
        for start in range(0, len(heights), PIECE):
            rows = frames[-1][1] + sum(heights[start : start + PIECE])
            frames.append((frames[-1][0] + min(max(wait, SHORTEST), LONGEST), rows))
            wait, before = 0.0, second
    first = frames[1][0]
    return [(begin - first, rows) for begin, rows in frames[1:]]


def keyframes(frames: list[Frame], position: dict[int, float], seconds: float) -> str:
    """Return CSS keyframes that move to the position of each frame's rows."""
    return " ".join(
        f"{100 * second / seconds:.2f}% {{ transform: translateY({position[rows]:.1f}px) }}" for second, rows in frames
    )


def moving(console: Console, frames: list[Frame]) -> str:
    """Return the picture of what the console has recorded."""
    seconds = frames[-1][0] + END
    scroll = {rows: -max(0, rows - ROWS) * LINE_HEIGHT for _, rows in frames}
    cover = {rows: rows * LINE_HEIGHT for _, rows in frames}
    last = frames[-1][1]
    height = ROWS * LINE_HEIGHT + 52
    values = {
        "LAST_SCROLL": f"{scroll[last]:.1f}",
        "LAST_COVER": f"{cover[last]:.1f}",
        "SECONDS": f"{seconds:.1f}",
        "SCROLL": keyframes(frames, scroll, seconds),
        "COVER": keyframes(frames, cover, seconds),
        "PIXELS": str(PIXELS),
        "HEIGHT": f"{height:.0f}",
        "WINDOW": f"{ROWS * LINE_HEIGHT:.0f}",
    }
    names = re.compile("|".join(values))
    code_format = names.sub(lambda name: values[name[0]].replace("{", "{{").replace("}", "}}"), FORMAT)
    svg = console.export_svg(title="handiwork run", code_format=code_format)
    # The frame that rich draws has the height of all lines.
    return re.sub(r'(<rect fill="#292929" stroke[^>]* height=")[\d.]+', rf"\g<1>{height - 2:.0f}", svg, count=1)


def main() -> None:
    """Draw the picture that the arguments ask for."""
    file, *sessions = sys.argv[1:]
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, highlight=False)
    shown = asyncio.run(timed_lines(sessions[0] if sessions else None))
    heights = [(second, [len(console.render_lines(line)) for line in lines]) for second, lines in shown]
    for _, lines in shown:
        for line in lines:
            console.print(line)
    Path(file).write_text(moving(console, frames_of(heights)))


if __name__ == "__main__":
    main()

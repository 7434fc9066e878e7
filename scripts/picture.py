"""Draw a session, or else the newest, as an SVG picture of the terminal: python scripts/picture.py FILE.svg [SESSION].

That of the README is of the demo: make demo && HANDIWORK_DATA=build/demo/data .venv/bin/python scripts/picture.py
docs/run.svg
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
from handiwork.log.store import Store
from handiwork.paths import data_dir
from handiwork.session.open import changes

CHECKOUT = str(Path(__file__).resolve().parent.parent)
"""Stands in the picture as ~/handiwork."""

WIDTH = 108

HEAD, TAIL = 90, 40
"""Lines shown of the beginning and the end of a longer run."""


async def lines(session: str | None) -> list[Text]:
    """Return what the run of a session has shown at its end; None is the newest session."""
    async with Store.open(data_dir()) as store:
        log = await find(store, session)
        state, transcript = State(), Transcript(log.id)
        shown: list[Text] = []
        for event in await log.read():
            state.apply(event)
            shown += transcript.lines(event)
        found = await changes(data_dir(), log)
        shown += [*overview(found, log.id), *summary(state, log.id, changed=bool(found))]
    if (omitted := len(shown) - HEAD - TAIL) > 0:
        shown[HEAD:-TAIL] = [Text(f"... {omitted} more lines (handiwork show {log.id})", "dim italic")]
    return [Text("~/handiwork", line.style).join(line.split(CHECKOUT, allow_blank=True)) for line in shown]


def main() -> None:
    """Draw the picture that the arguments ask for."""
    file, *sessions = sys.argv[1:]
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, highlight=False)
    for line in asyncio.run(lines(sessions[0] if sessions else None)):
        console.print(line)
    svg = console.export_svg(title="handiwork run")
    # A picture that is looked at must fetch nothing: the fonts of the machine it is on will do.
    svg = re.sub(r"@font-face\s*\{.*?\}\s*|<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    svg = svg.replace("Fira Code", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono")
    Path(file).write_text(svg)


if __name__ == "__main__":
    main()

"""Draw a session as an SVG picture of the terminal: python scripts/picture.py SESSION FILE.svg [TITLE]."""

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

WIDTH = 108


async def lines(session: str) -> list[Text]:
    """Return what the run of a session has shown at its end."""
    async with Store.open(data_dir()) as store:
        log = await find(store, session)
        state, transcript = State(), Transcript(log.id)
        shown: list[Text] = []
        for event in await log.read():
            state.apply(event)
            shown += transcript.lines(event)
        found = await changes(data_dir(), log)
        return [*shown, *overview(found, log.id), *summary(state, log.id, changed=bool(found))]


def main() -> None:
    """Draw the picture that the arguments ask for."""
    session, file, *title = sys.argv[1:]
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, highlight=False)
    for line in asyncio.run(lines(session)):
        console.print(line)
    svg = console.export_svg(title=title[0] if title else "handiwork run")
    # A picture that is looked at must fetch nothing: the fonts of the machine it is on will do.
    svg = re.sub(r"@font-face\s*\{.*?\}\s*|<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    svg = svg.replace("Fira Code", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono")
    Path(file).write_text(svg)


if __name__ == "__main__":
    main()

"""A step in the browser, a click with what is seen afterwards and a picture of it, beside browsergym-core, in turn.

``python -m perf.browser [STEPS]`` takes so many steps on a form and on a list of 200, and fewer on a page of 5,000
nodes. Ours go the whole way through a sandbox, browsergym-core runs on the machine itself with the same Chromium
and without its fixed waits. Then eight of our browsers at once.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from handiwork.events.action import BrowseInteractiveAction, BrowserView
from handiwork.events.observation import BrowserOutputObservation
from handiwork.sandbox.base import Sandbox
from handiwork.sandbox.bundle import chromium_outside
from handiwork.sandbox.create import create
from handiwork.workspace.copy import make_copy
from handiwork.workspace.layers import SandboxPaths
from perf import report
from perf.environments import DRIVERS, UnavailableError, environment
from perf.table import Row, Target, Values, markdown

OURS, PEER = "Handiwork", "browsergym-core"
AT_ONCE, STEPS_AT_ONCE = 8, 10
BUTTON = "Press"
PRESS = f'<button onclick="n.textContent++">{BUTTON}</button> <p id="n">0</p>'
FIELDS = "".join(f"<p><label>Field {number} <input name=f{number} value=v{number}></label></p>" for number in range(12))
ITEMS = "".join(f"<li><a href='#{number}'>Item {number}</a> and what it is</li>" for number in range(200))
ROWS = "".join(
    f"<tr><td>{row}</td><td><a href='#{row}'>Item {row}</a></td><td><button>Buy {row}</button></td></tr>"
    for row in range(555)
)
PAGES = {
    "form": f"<title>Form</title>{PRESS}<form>{FIELDS}<input type=checkbox> <select><option>a<option>b</select></form>",
    "list of 200": f"<title>List</title>{PRESS}<ul>{ITEMS}</ul>",
    "5,000 nodes": f"<title>Large</title>{PRESS}<table>{ROWS}</table>",
}


@dataclass(frozen=True)
class Case:
    """A page, how ours shows it, how many times faster than the peer it has to be, and the share of the steps."""

    what: str
    page: str
    view: BrowserView
    faster: float | None
    share: int = 1


CASES = (
    Case("form", "form", "visible", 1.5),
    Case("list of 200", "list of 200", "visible", 1.5),
    Case("5,000 nodes", "5,000 nodes", "visible", 2.5, 2),
    Case("5,000 nodes, all of them in the text", "5,000 nodes", "full", None, 4),
)


class WrongError(Exception):
    """A step did not do what it should; the text says what it answered."""


class Ours:
    """A sandbox's browser."""

    def __init__(self, sandbox: Sandbox, pages: Path) -> None:
        self._sandbox, self._pages = sandbox, pages
        self._bid = ""

    async def open(self, page: str, view: BrowserView = "visible") -> None:
        """Show a page, and find out its button's bid."""
        self._view: BrowserView = view
        seen = await self._do(f"goto({(self._pages / file_of(page)).as_uri()!r})")
        self._bid = seen.content.split(f"] button {BUTTON!r}")[0].rpartition("[")[2]

    async def step(self) -> tuple[float, int]:
        """Click; return the seconds until all is known, and the length of the page's text. Raises WrongError."""
        began = time.perf_counter()
        seen = await self._do(f"click({self._bid!r})")
        return time.perf_counter() - began, seen.size or len(seen.content)

    async def _do(self, calls: str) -> BrowserOutputObservation:
        seen = await self._sandbox.execute(BrowseInteractiveAction(browser_actions=calls, view=self._view))
        if not isinstance(seen, BrowserOutputObservation):
            raise WrongError(seen.content)
        if seen.last_action_error or seen.screenshot is None:
            raise WrongError(seen.last_action_error or "no picture")
        return seen


class Peer:
    """browsergym-core, in a process and an environment of its own."""

    def __init__(self, pages: Path, scripts: Path) -> None:
        self._pages = pages
        driver = DRIVERS / "browsergym_core.py"
        command = [environment("browsergym_core", (3, 11)) / "python", driver, chromium_outside(scripts)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    async def open(self, page: str) -> None:
        """Show a page."""
        await asyncio.to_thread(self._ask, f"open {(self._pages / file_of(page)).as_uri()}")

    async def step(self) -> tuple[float, int]:
        """Click; return the seconds that its driver measured, and the length of the page's text. Raises WrongError."""
        answer = await asyncio.to_thread(self._ask, f"step {BUTTON}")
        if answer["error"]:
            raise WrongError(answer["error"])
        return answer["seconds"], answer["text"]

    def close(self) -> None:
        """End it."""
        self._process.communicate()

    def _ask(self, line: str) -> dict[str, Any]:
        pipe, answers = cast("tuple[IO[bytes], IO[bytes]]", (self._process.stdin, self._process.stdout))
        pipe.write(f"{line}\n".encode())
        pipe.flush()
        answer = answers.readline()
        if not answer:
            raise UnavailableError("browsergym-core ended")
        return json.loads(answer)


def file_of(page: str) -> str:
    """Return the name of a page's file."""
    return f"{page.replace(' ', '-').replace(',', '')}.html"


async def dropped(data: AsyncIterator[bytes]) -> str:
    """Take in a picture, as a session would to keep it."""
    digest = hashlib.sha256()
    async for piece in data:
        digest.update(piece)
    return digest.hexdigest()


@asynccontextmanager
async def ours(folder: Path, project: Path, number: int) -> AsyncGenerator[Ours]:
    """A sandbox of its own on a copy of the pages."""
    session = folder / f"sessions/{number}"
    session.mkdir(parents=True, mode=0o700)
    sandbox = create("bubblewrap", SandboxPaths(session, project, make_copy(project, session).base), dropped)
    try:
        await sandbox.start()
        yield Ours(sandbox, project)
    finally:
        await sandbox.close()


async def in_turn(mine: Ours, peer: Peer, steps: int) -> AsyncIterator[Row]:
    """Yield what a step takes in each of the cases, ours and the peer's step by step, and how much text it gives."""
    for case in CASES:
        await mine.open(case.page, case.view)
        await peer.open(case.page)
        took: dict[str, list[tuple[float, int]]] = {OURS: [], PEER: []}
        for number in range(steps // case.share + 1):
            for name, one in ((OURS, mine), (PEER, peer)):
                step = await one.step()
                if number:  # what is compiled and cached the first time is left out
                    took[name].append(step)
        medians = {name: 1000 * statistics.median(seconds for seconds, _ in them) for name, them in took.items()}
        target = _faster(case.faster) if case.faster else None
        yield Row("browser", f"{case.what}: click, what is seen, picture", "ms", medians, target)
        yield Row("browser", f"{case.what}: its text", "characters", {name: them[-1][1] for name, them in took.items()})


def _faster(times: float) -> Target:
    def holds(values: Values) -> bool:
        return values[PEER] / values[OURS] >= times

    return Target(f">= {times}x faster", holds)


async def at_once(folder: Path, project: Path) -> AsyncIterator[Row]:
    """Yield what steps take, and how many fail, in browsers that all work at the same time."""
    async with AsyncExitStack() as stack:
        browsers = [await stack.enter_async_context(ours(folder, project, 100 + number)) for number in range(AT_ONCE)]
        await asyncio.gather(*(browser.open("list of 200") for browser in browsers))
        began = time.perf_counter()
        results = await asyncio.gather(*(_steps(browser) for browser in browsers))
        took = time.perf_counter() - began
    steps = [1000 * seconds for one, _ in results for seconds in one]
    yield Row("browser", f"{AT_ONCE} browsers at once: a step", "ms", {OURS: statistics.median(steps)})
    yield Row("browser", f"{AT_ONCE} browsers at once: steps a second in all", "", {OURS: len(steps) / took})
    errors = float(sum(wrong for _, wrong in results))
    none = Target("0", lambda values: not values[OURS])
    yield Row(
        "browser", f"{AT_ONCE} browsers at once: errors in {AT_ONCE * STEPS_AT_ONCE} steps", "", {OURS: errors}, none
    )


async def _steps(browser: Ours) -> tuple[list[float], int]:
    took: list[float] = []
    for _ in range(STEPS_AT_ONCE):
        try:
            took.append((await browser.step())[0])
        except WrongError as wrong:
            print(wrong, file=sys.stderr)
    return took, STEPS_AT_ONCE - len(took)


async def measured(steps: int, folder: Path) -> None:
    """Print the table."""
    project = folder / "project"
    project.mkdir()
    for page, content in PAGES.items():
        (project / file_of(page)).write_text(content)
    before = os.getloadavg()[0]
    peer = Peer(project, folder)
    try:
        async with ours(folder, project, 0) as mine:
            rows = [row async for row in in_turn(mine, peer, steps)]
    finally:
        peer.close()
    rows += [row async for row in at_once(folder, project)]
    print(f"{report.machine()}, load {before:.1f} before, {os.getloadavg()[0]:.1f} after\n")
    print(markdown(rows, [OURS, PEER]))


def main(steps: int) -> None:
    """Measure in a folder that goes afterwards."""
    with tempfile.TemporaryDirectory(prefix="handiwork-perf-") as folder:
        asyncio.run(measured(steps, Path(folder)))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 16)

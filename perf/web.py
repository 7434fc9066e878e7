"""The web app on one long session: its first screen, scrolling, and the browser's memory while it follows.

``python -m perf.web [EVENTS]`` makes a log of 30,000 events unless told otherwise, serves it, and looks at it with the
Chromium of the browser bundle.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, expect

from handiwork.events.action import AgentFinishAction, CmdRunAction, MessageAction
from handiwork.events.base import Event
from handiwork.events.observation import CmdOutputObservation
from handiwork.events.record import CompletionEvent, SessionStarted, StepStarted, Usage
from handiwork.log.eventlog import EventLog
from handiwork.log.store import Store
from perf import report
from scripts.harness.serving import Api, Program
from scripts.harness.window import PATIENCE, chromium, window

EVENTS, MORE = 30_000, 5_000
STEP = 4
"""Events of a step."""
BATCH = 25
"""Steps that are appended at once."""
WHEELS = 150
"""Turns of the wheel, of 600 pixels each."""


def step(number: int, first: int) -> Iterator[Event]:
    """Yield the events of a step; the first of them gets the id ``first``."""
    yield StepStarted()
    usage = Usage(input=900, output=80, cache_read=8000)
    yield CompletionEvent(model="m", response={"content": f"I look at file {number}."}, usage=usage)
    command = f"sed -n 1,12p src/file_{number}.py"
    yield CmdRunAction(source="agent", command=command, completion=first + 1, thought=f"I look at **file {number}**.")
    lines = "".join(f"value_{line} = compute({number}, {line})\n" for line in range(12))
    yield CmdOutputObservation(cause=first + 2, command=command, content=lines, exit_code=0)


async def extend(log: EventLog, steps: int) -> None:
    """Append so many steps."""
    for begin in range(0, steps, BATCH):
        head = await log.head()
        count = min(BATCH, steps - begin)
        ids = range(head + 1, head + 1 + STEP * count, STEP)
        await log.append(*(event for first in ids for event in step(first // STEP, first)))


FINISHED = "() => [...document.querySelectorAll('article')].some((card) => card.innerText.startsWith('Finished'))"


async def seconds_to_screen(page: Page, address: str) -> float:
    """Return the seconds until the newest events are in the page."""
    began = time.perf_counter()
    await page.goto(address)
    # Looked for at every frame: Playwright's own expectations look at 0.1, 0.35, 0.85 seconds, which would be measured.
    await page.wait_for_function(FINISHED)
    return time.perf_counter() - began


async def longest_task(browser: Browser, page: Page) -> tuple[float, float]:
    """Scroll back through the conversation, once all panes are there.

    Return the longest task of the page's main thread and p99, in ms.
    """
    await expect(page.get_by_role("region", name="Terminal").get_by_text("sed -n").first).to_be_attached()
    await browser.start_tracing(page=page, categories=["disabled-by-default-devtools.timeline", "toplevel"])
    await page.get_by_role("group", name="Conversation").hover()
    for _ in range(WHEELS):
        await page.mouse.wheel(0, -600)
        await page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    traced: list[dict[str, Any]] = json.loads(await browser.stop_tracing())["traceEvents"]
    main = {
        (event["pid"], event["tid"])
        for event in traced
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    took = sorted(
        event["dur"] / 1000
        for event in traced
        if event["name"] in ("RunTask", "ThreadControllerImpl::RunTask")
        and "dur" in event
        and (event["pid"], event["tid"]) in main
    )
    return took[-1], took[int(len(took) * 0.99)]


async def heap(cdp: Any) -> float:
    """Return the megabytes that the page's scripts hold."""
    await cdp.send("HeapProfiler.collectGarbage")
    return (await cdp.send("Runtime.getHeapUsage"))["usedSize"] / 1e6


async def looked_at(api: Api, session: str, log: EventLog, folder: Path) -> None:
    """Measure, and print each figure."""
    expect.set_options(timeout=PATIENCE * 1000)
    async with chromium(folder) as browser, window(browser, api.url) as page:
        cold = await seconds_to_screen(page, f"/s/{session}?token={api.token}")
        print(f"first screen, nothing cached, session not read before: {cold:.2f} s")
        other = await page.context.new_page()
        warm = sorted([await seconds_to_screen(other, f"/s/{session}") for _ in range(5)])
        print(f"first screen, warm: {warm[2]:.2f} s (median of 5)")
        await other.close()
        longest, most = await longest_task(browser, page)
        first = await page.get_by_role("group", name="Conversation").get_by_role("article").first.inner_text()
        print(f"scrolled back to {' '.join(first.split())!r}: longest task {longest:.0f} ms, 99 % under {most:.1f} ms")

        page = await page.context.new_page()
        await seconds_to_screen(page, f"/s/{session}")
        cdp: Any = await page.context.new_cdp_session(page)  # what it answers has no types
        await cdp.send("HeapProfiler.enable")
        before = await heap(cdp)
        began = time.perf_counter()
        await extend(log, MORE // STEP)
        await log.append(AgentFinishAction(source="agent", outputs={"message": "Read even more."}))
        appended = time.perf_counter() - began
        await expect(page.get_by_text("Read even more.", exact=True)).to_be_visible()
        took = time.perf_counter() - began
        print(f"{MORE} events more: appended in {appended:.1f} s, all shown after {took:.1f} s")
        print(f"heap: {before:.1f} MB before, {await heap(cdp):.1f} MB after")


async def measured(folder: Path, events: int) -> None:
    """Make the session and look at it."""
    async with Store.open(folder / "data") as store:
        log = await store.create(agent="CodeActAgent", model="m", title="A long session")
        async with log.lease():
            await begun(log, folder, events)
            program = Program(folder)
            try:
                api = await asyncio.to_thread(program.start)
                print(f"{report.machine()}, load {os.getloadavg()[0]:.1f}; {await log.head():,} events")
                await looked_at(api, log.id, log, folder)
            finally:
                program.close()


async def begun(log: EventLog, folder: Path, events: int) -> None:
    """Fill the log."""
    await log.append(SessionStarted(agent="CodeActAgent", model="m", sandbox="bubblewrap", workspace=str(folder)))
    await log.append(MessageAction(source="user", content="Read every file."))
    await extend(log, events // STEP)
    await log.append(AgentFinishAction(source="agent", outputs={"message": "Read them all."}))


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measured(Path(folder), int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS))


if __name__ == "__main__":
    main()

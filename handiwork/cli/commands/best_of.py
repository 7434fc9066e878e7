"""``handiwork best-of``: runs several attempts at one task and shows the best."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.text import Text

from handiwork.cli.commands.changes import overview
from handiwork.cli.dialog.prompt import Signals
from handiwork.cli.errors import say
from handiwork.cli.terminal.jsonlines import write_json
from handiwork.cli.terminal.sanitize import plain
from handiwork.cli.terminal.summary import duration
from handiwork.cli.terminal.view import terminal_console
from handiwork.errors import Exit
from handiwork.events.describe import state_text
from handiwork.events.record import StepStarted
from handiwork.log.store import Store
from handiwork.paths import data_dir
from handiwork.session.config import SessionConfig
from handiwork.session.open import changes
from handiwork.session.time_travel.best_of import Attempt, BestOfRequest, Progress, run_attempts
from handiwork.settings import SettingsError, load, model_name

OUTPUT_LINES = 15
"""Lines of a failed test's output that are shown."""


def best_of(
    number: int,
    task: str,
    test: str,
    models: str,
    temperature: float,
    workspace: Path,
    as_json: bool,
    flags: Mapping[str, Any],
) -> Exit:
    """Run the attempts; print the changes of the best and a table, best first. Raises like ``run``."""
    if not task.strip() or not test.strip():
        raise SettingsError("the task or --test is empty: describe the task, and name the command that tests it")
    names = [name.strip() for name in models.split(",") if name.strip()]
    if models and not names:
        raise SettingsError("--models names no model: write their names with commas in between")
    all_settings = [load({**flags, "model": name}) for name in names] or [load(flags)]
    config = SessionConfig.of(all_settings[0], workspace).model_copy(update={"temperature": temperature})
    models_and_urls = [(model_name(settings.model), settings.base_url) for settings in all_settings]
    return asyncio.run(_run(BestOfRequest(task, test, number, models_and_urls, config), as_json))


async def _run(request: BestOfRequest, as_json: bool) -> Exit:
    console = terminal_console()
    bars = _AttemptBars(console, request, live=not as_json and console.is_terminal and not console.is_dumb_terminal)
    signals = Signals(cast("asyncio.Task[Any]", asyncio.current_task()).cancel)
    with signals.watched(), bars:
        try:
            async with Store.open(data_dir()) as store:
                origin, attempts = await run_attempts(store, data_dir(), request, _write_attempt if as_json else bars)
                best = attempts[0]
                file_changes = await changes(data_dir(), await store.log(best.session)) if best.passed else []
        except asyncio.CancelledError:
            say("stopped; `handiwork sessions` lists the attempts, `handiwork resume` continues one of them")
            return Exit.INTERRUPTED
    if as_json:
        write_json(json.dumps({"origin": origin, "best": best.session if best.passed else None}))
    else:
        for line in overview(file_changes, best.session) if best.passed else _failure_lines(best):
            console.print(line, soft_wrap=True)
        for line in [*_table(attempts), *_next(origin, best)]:
            console.print(line, soft_wrap=True)
    return Exit.FINISHED if best.passed else Exit.FAILED


def _write_attempt(progress: Progress) -> None:
    """Write a JSON line for each finished attempt."""
    if (one := progress.attempt) is not None:
        record = {"number": progress.number, "session": one.session, "model": one.model, "passed": one.passed}
        record |= {"exit_code": one.exit_code, "lines": one.lines, "output": one.output[-4000:]}
        record |= {"agent_state": one.state.agent_state, "steps": one.state.iteration, "cost": one.state.cost}
        write_json(json.dumps({**record, "tokens": one.state.usage.total, "seconds": round(one.state.time, 3)}))


class _AttemptBars:
    """Shows a progress bar for each attempt on a terminal, otherwise prints a line for each finished attempt."""

    def __init__(self, console: Console, request: BestOfRequest, live: bool) -> None:
        self._request, self._live, self._console = request, live, console
        columns = (TextColumn("{task.description}"), BarColumn(30), TextColumn("{task.fields[doing]}"))
        self._bars = Bars(*columns, TimeElapsedColumn(), console=console, transient=True)
        self._tasks: dict[int, TaskID] = {}
        self._steps: dict[int, int] = {}

    def __enter__(self) -> None:
        if self._live:
            self._bars.start()
            for number in range(1, self._request.number + 1):
                steps = self._request.config.limits.iterations
                self._tasks[number] = self._bars.add_task(
                    f"attempt {number}", start=False, total=steps, doing="waiting"
                )

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._bars.stop()

    def __call__(self, progress: Progress) -> None:
        number, one = progress.number, progress.attempt
        self._steps[number] = self._steps.get(number, 0) + isinstance(progress.event, StepStarted)
        doing = f"step {self._steps[number]}" if progress.phase == "working" else progress.phase
        if one is not None:
            doing = "passes" if one.passed else "fails"
        if self._live:
            self._bars.start_task(self._tasks[number])
            self._bars.update(self._tasks[number], completed=self._steps[number], doing=doing)
            if one is not None:
                self._bars.stop_task(self._tasks[number])
        elif one is not None:
            self._console.print(f"attempt {number}: {doing}, session {one.session}", soft_wrap=True)


def _table(attempts: Sequence[Attempt]) -> Iterator[Text]:
    header = ("", "session", "test", "lines", "steps", "tokens", "time", "cost", "agent", "model")
    rows = [header, *(_row(rank, one) for rank, one in enumerate(attempts, 1))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        right = ("", "lines", "steps", "tokens", "time", "cost")
        cells = [
            cell.rjust(width) if name in right else cell.ljust(width)
            for name, cell, width in zip(header, row, widths, strict=True)
        ]
        style = "dim" if number == 0 else "green" if attempts[number - 1].passed else "red"
        yield Text("  ".join(cells).rstrip(), style)


def _row(rank: int, one: Attempt) -> tuple[str, ...]:
    test = "passes" if one.passed else "fails" if one.exit_code is not None else "no end"
    free = one.state.totals.cost_sources <= {"local"}
    price = "free" if free else "unknown" if one.state.unpriced else f"${one.state.cost:.4f}"
    counts = (f"{one.lines:,}", str(one.state.iteration), f"{one.state.usage.total:,}", duration(one.state.time))
    agent = state_text(one.state.agent_state)
    return (str(rank), one.session, test, *counts, price, agent, plain(one.model))


def _failure_lines(best: Attempt) -> Iterator[Text]:
    yield Text("\nno attempt passes; the test output of the first one ends with", "bold yellow")
    for line in plain(best.output).rstrip().split("\n")[-OUTPUT_LINES:]:
        yield Text(f"  {line}", "dim")
    yield Text()


def _next(origin: str, best: Attempt) -> Iterator[Text]:
    yield Text()
    commands = [f"handiwork apply {best.session}"] if best.passed else []
    commands += [f"handiwork show {best.session}", f"handiwork tree {origin}"]
    for number, command in enumerate(commands):
        yield Text.assemble((f"{'' if number else 'next':9}", "dim"), command)

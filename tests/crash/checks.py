"""What holds after a kill and the start that follows it."""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

from handiwork.agents.state import State
from handiwork.events.action import CmdRunAction
from handiwork.events.base import Action, Event
from handiwork.events.observation import CmdOutputObservation, ErrorObservation
from handiwork.events.record import AgentDataEvent
from handiwork.log.store import Store
from handiwork.process import Process
from handiwork.sandbox.endpoint import sweep_stale
from handiwork.session.open import reopen
from tests.crash.bench import Bench, events_of, folded, handiwork, sessions, wait
from tests.crash.warm import orphans

PATIENCE = 5.0
"""Seconds that processes and control groups may take to end once they are told to."""


Told = list[dict[str, Any]]
"""What was acknowledged: the events that were shown, and what trials say themselves."""


def acknowledged(lines: Collection[str]) -> Told:
    """Return what the killed process had told, as the JSON objects it wrote."""
    return [json.loads(line) for line in lines if line.startswith("{")]


def check_events(data: Path, session: str, told: Told) -> tuple[list[Event], State]:
    """See that the log is whole, folds, and has every event that was shown; return both."""
    events = wait(events_of(data, session))
    assert [event.id for event in events] == list(range(1, len(events) + 1))
    kinds = {event.id: event.kind for event in events}
    for event in told:
        if "type" in event:
            assert kinds.get(event["id"]) == event["type"], f"event {event['id']} {event['type']} is lost"
    return events, folded(events)


def finish_all(bench: Bench, *flags: str, begun: bool = True) -> None:
    """Resume every session; each must come to its end, but for one that the log has no event of."""
    for info in wait(sessions(bench.data)):
        _, state = check_events(bench.data, info.id, [])
        if state.agent_state == "finished":
            continue
        code = handiwork("resume", info.id, "--json", *flags)
        if not begun and state.last_id == 0:
            assert code == 2, f"session {info.id}, which never began, is resumed with exit code {code}"
            continue
        _, state = check_events(bench.data, info.id, [])
        assert (code, state.agent_state) == (0, "finished"), f"resume of {info.id}: {code}, {state.change}"


async def close_all(bench: Bench) -> None:
    """Hold each session once more, as a start does that finds nothing to do."""
    async with Store.open(bench.data) as store:
        for info in await store.sessions(limit=1000):
            if info.head:
                opened = await reopen(store, bench.data, info.id, lambda _: None)
                async with opened.hold_lease():
                    pass


def check_commands(events: Collection[Event], tally: Collection[str]) -> None:
    """See that of the commands ``echo WORD >> FILE`` those that were answered with success were run once.

    ``tally`` has the lines of the file. What was under way when the process was killed may or may not have run.
    """
    answers = {event.cause: event for event in events if getattr(event, "cause", None) is not None}
    for action in events:
        if isinstance(action, CmdRunAction) and action.command.startswith("echo ") and ">>" in action.command:
            times, answer = list(tally).count(action.command.split()[1]), answers.get(action.id)
            if isinstance(answer, CmdOutputObservation) and answer.exit_code == 0:
                assert times == 1, f"{action.command!r} was answered and run {times} times"
            elif isinstance(answer, ErrorObservation) and answer.error_id == "crashed":
                assert times in (0, 1), f"{action.command!r} was cut and run {times} times"
            elif not isinstance(answer, CmdOutputObservation):
                assert times == 0, f"{action.command!r} was run {times} times, answer {answer}"


def check_counts(events: Collection[Event]) -> None:
    """See that the agents have counted the steps whose actions the log has; each step calls the model once."""
    steps = {(event.subtask, event.completion) for event in events if isinstance(event, Action) and event.completion}
    recorded = Counter(subtask for subtask, _ in steps)
    kept = {event.subtask: event.data["steps"] for event in events if isinstance(event, AgentDataEvent)}
    assert kept == recorded, f"the agents counted {kept}, the log has {recorded}"


def check_database(data: Path) -> None:
    """See that the database is whole and that nobody holds a session."""

    async def holders() -> list[tuple[str, Process | None]]:
        async with Store.open(data) as store:
            known = await store.sessions(limit=1000)
            return [(one.id, await (await store.log(one.id)).holder()) for one in known]

    held = [(session, holder) for session, holder in wait(holders()) if holder is not None]
    assert held == [], f"sessions are held: {held}"
    database = sqlite3.connect(data / "handiwork.db")
    try:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        database.close()


def unfinished_files(bench: Bench) -> list[str]:
    """Return what looks like the temporary files of something that was not brought to its end, after a ``gc``.

    A server without a sandbox removes its own once it has seen that its platform is gone.
    """
    assert handiwork("gc") == 0
    deadline = time.monotonic() + PATIENCE
    while any(bench.temporary.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.01)
    found = [path for name in ("part-*", "*.unfinished", "commits-*") for path in bench.data.rglob(name)]
    found += [*bench.project.rglob(".handiwork-*"), *bench.project.glob(".git/**/*.lock")]
    return [str(path) for path in (*found, *bench.temporary.iterdir())]


def groups_of(runtime: Path) -> list[Path]:
    """Return the control groups that the records of sandboxes name."""
    lines = [line for record in runtime.glob("hw/*.owner") for line in record.read_text().split("\n")[1:]]
    return [Path(line) for line in lines]


def check_nothing_runs(bench: Bench, groups: list[Path], mounts: str = "") -> None:
    """See that no process, mount, control group, socket or record is left once a start has swept.

    ``mounts`` are those that were there before.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        sweep_stale()
        left = [str(path) for path in (*bench.runtime.glob("hw/*"), *(one for one in groups if one.exists()))]
        if not left or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    running = orphans(PATIENCE)
    assert not running, f"processes run on: {running}"
    assert not left, f"left: {left}"
    mounted = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if line not in mounts]
    more = [line for line in mounted if str(bench.folder) in line]
    assert not more, f"mounts are left: {more}"

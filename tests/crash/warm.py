"""Children forked from a process that has imported everything: they run work to its end, or are killed on the way."""

from __future__ import annotations

import ctypes
import os
import random
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from handiwork.sandbox.limits.processes import family

LONGEST = 120.0
"""Seconds after which a child that neither ends nor writes is taken to hang."""

_PR_SET_CHILD_SUBREAPER = 36

Work = Callable[[], int]
"""What a child does; its exit code."""


@dataclass(frozen=True)
class Point:
    """The moment of a kill: ``delay`` seconds after the child has written ``lines`` lines."""

    lines: int
    delay: float

    def __str__(self) -> str:
        return f"{self.lines} lines + {self.delay * 1000:.1f} ms"


@dataclass(frozen=True)
class Outcome:
    """How a child ended: its exit code, None if it was killed, and its output. ``times`` are those of the lines."""

    code: int | None
    lines: list[str]
    errors: str
    times: list[float]

    @property
    def gaps(self) -> list[float]:
        """The seconds before the first line, between the lines, and after the last one."""
        return [after - before for before, after in zip([0.0, *self.times[:-1]], self.times, strict=True)]


def choose(chance: random.Random, profile: Outcome) -> Point:
    """Return a random moment of work that took its time as in ``profile``: any gap is as likely as another."""
    gaps = profile.gaps
    number = chance.randrange(len(gaps))
    return Point(number, chance.random() * gaps[number])


def adopt_orphans() -> None:
    """Make this process the parent of whatever its children leave running."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def orphans(patience: float) -> list[str]:
    """Return the commands of processes that ended children had started and that run on after ``patience`` seconds."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return []
        time.sleep(0.01)
    return [_command(one.pid) for one in family(os.getpid())[1:]]


def end_orphans() -> None:
    """End what ``orphans`` returns."""
    for one in family(os.getpid())[1:]:
        with suppress(ProcessLookupError):
            os.kill(one.pid, signal.SIGKILL)
    orphans(1)


def run(work: Work, killed_at: Point | None = None) -> Outcome:
    """Fork a child that does the work, with its output in pipes; kill it at the point unless it ends before."""
    out, into = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    with open(os.memfd_create("errors"), "w+b") as errors:
        began = time.monotonic()
        child = os.fork()
        if child == 0:
            _become(work, into, errors.fileno())
        os.close(into)
        reader = _Reader(out, began)
        killed = not reader.read(child, killed_at)
        if killed:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        reader.drain()
        os.close(out)
        errors.seek(0)
        text = errors.read().decode(errors="replace")
    assert not reader.hangs, f"it hangs after {reader.lines[-3:]}\n{text}"
    code = None if killed and os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)
    return Outcome(code, reader.lines, text, [*reader.times, time.monotonic() - began])


def done(work: Work, what: str) -> Outcome:
    """Run the work to its end. Raises AssertionError, with what it wrote, unless its exit code is 0."""
    outcome = run(work)
    assert outcome.code == 0, "\n".join(
        [f"{what}: exit code {outcome.code}", outcome.errors.strip(), *outcome.lines[-5:]]
    )
    return outcome


class _Reader:
    """Reads the lines that a child writes, and when they came."""

    def __init__(self, pipe: int, began: float) -> None:
        self.lines: list[str] = []
        self.times: list[float] = []
        self.hangs = False
        self._pipe, self._began, self._rest = pipe, began, b""

    def read(self, child: int, until: Point | None) -> bool:
        """Read until the child ends, then tell True; False when ``until`` has come, or the child hangs."""
        ended = os.pidfd_open(child)
        watched = [self._pipe, ended]
        deadline = self._deadline(until)
        try:
            while (left := deadline - time.monotonic()) > 0:
                readable, _, _ = select.select(watched, [], [], left)
                if self._pipe in readable:
                    before = len(self.lines)
                    if not self._take():
                        watched.remove(self._pipe)
                    if until is None or before < until.lines:
                        deadline = self._deadline(until)
                elif ended in readable:
                    return True
            self.hangs = until is None or len(self.lines) < until.lines
            return False
        finally:
            os.close(ended)

    def drain(self) -> None:
        """Read what the child had written before it ended; what it left running may hold the pipe open."""
        while select.select([self._pipe], [], [], 0)[0] and self._take():
            pass

    def _deadline(self, until: Point | None) -> float:
        reached = until is not None and len(self.lines) >= until.lines
        return time.monotonic() + (until.delay if reached and until is not None else LONGEST)

    def _take(self) -> bool:
        piece = os.read(self._pipe, 1 << 16)
        *whole, self._rest = (self._rest + piece).split(b"\n")
        self.lines += [line.decode() for line in whole]
        self.times += [time.monotonic() - self._began] * len(whole)
        return bool(piece)


def _become(work: Work, out: int, errors: int) -> None:
    """Do the work as the child, and end with its exit code."""
    code = 70
    try:
        os.dup2(out, 1)
        os.dup2(errors, 2)
        sys.stdout, sys.stderr = (os.fdopen(descriptor, "w", closefd=False) for descriptor in (1, 2))
        code = work()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 71
    except BaseException:  # noqa: BLE001 - the process that forked it is told
        traceback.print_exc()
    finally:
        with suppress(OSError):  # whoever reads it may be gone
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return str(pid)

"""Kills processes of every kind of work at random points, and checks what the next start makes of it.

    python -m tests.crash.campaign KILLS SEED [KIND...]

Every trial is forked from this process, which has imported everything and has a single thread. A tenth as many trials
as kills have a disk that becomes full. Progress goes to stderr; the exit code is 1 if anything did not hold.
"""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import handiwork
from tests.crash import full_disk
from tests.crash.bench import Bench
from tests.crash.checks import acknowledged, check_database, check_nothing_runs, groups_of, unfinished_files
from tests.crash.kinds import KINDS, ON_FULL_DISKS, Kind
from tests.crash.warm import Outcome, adopt_orphans, choose, done, end_orphans, run

TRIES = 20
"""Points that are tried for each kill: some work ends before its point comes."""

FULL = 10
"""Kills for each trial on a full disk."""

_NOT_IMPORTED = ("inside", "local", "ray_engine", "demo", "__main__", "launcher", "picture")
"""Modules that run elsewhere, or need what is not installed everywhere."""


class Campaign:
    """Trials of some kinds in one folder; ``trials`` and ``failed`` count them by kind."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.bench, self.seed = Bench(folder), seed
        self.trials: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()

    def warm_up(self) -> None:
        """Do once, in this process, what takes longer the first time, so that every child finds it in its memory."""
        for module in pkgutil.walk_packages(handiwork.__path__, "handiwork."):
            if not any(part in module.name for part in _NOT_IMPORTED):
                importlib.import_module(module.name)
        self.bench.environment()
        tempfile.tempdir = str(self.bench.temporary)
        with open(os.devnull, "w") as nobody, redirect_stdout(nobody), redirect_stderr(nobody):
            for kind in KINDS[:2]:
                kind.prepare(self.bench)
                assert kind.work(self.bench) == 0
        assert threading.active_count() == 1, "a process with threads cannot be forked"
        gc.collect()
        gc.freeze()

    def kill(self, kind: Kind, count: int) -> None:
        """Kill the kind's work so many times, each time at another point."""
        self.prepare(kind)
        self.bench.load(kind.name)
        profile = done(lambda: kind.work(self.bench), kind.name)
        for number in range(count):
            chance = random.Random(f"{self.seed} {kind.name} {number}")
            self._count(kind.name, number, count, lambda chance=chance: self.kill_once(kind, chance, profile))

    def kill_once(self, kind: Kind, chance: random.Random, profile: Outcome) -> str:
        """Kill the kind's work at a random point and check the next start; return what did not hold."""
        for _ in range(TRIES):
            self.bench.load(kind.name)
            point = choose(chance, profile)
            outcome = run(lambda: kind.work(self.bench), point)
            if outcome.code is None:
                break
        else:
            return f"it ended before each of {TRIES} points, the last time with {outcome.code}: {outcome.errors}"
        groups = groups_of(self.bench.runtime)
        try:
            done(lambda: self.recover(kind, outcome), "the next start")
            check_nothing_runs(self.bench, groups)
        except AssertionError as error:
            end_orphans()
            self.bench.forget()
            return f"killed after {point}: {error}"
        return ""

    def fill(self, kind: Kind, count: int) -> None:
        """Do the kind's work so many times on a disk that becomes full, each time at another byte."""
        most = full_disk.need(self.bench, kind)
        for number in range(count):
            room = full_disk.choose_room(random.Random(f"{self.seed} full {kind.name} {number}"), most)
            self._count(f"{kind.name} full", number, count, lambda room=room: self.fill_once(kind, room))

    def fill_once(self, kind: Kind, room: int) -> str:
        """Do the kind's work with so many bytes of disk and check the next start; return what did not hold."""
        try:
            full_disk.trial(self.bench, kind, room, lambda outcome: self.recover(kind, outcome))
        except AssertionError as error:
            return f"{error}"
        return ""

    def prepare(self, kind: Kind) -> None:
        """Make what the kind's trials begin from."""

        def work() -> int:
            kind.prepare(self.bench)
            return 0

        done(work, f"preparing {kind.name}")
        self.bench.keep(kind.name)

    def recover(self, kind: Kind, outcome: Outcome) -> int:
        """Do what the next start does. Raises AssertionError for what does not hold."""
        kind.recover(self.bench, acknowledged(outcome.lines))
        left = unfinished_files(self.bench)
        assert not left, f"unfinished files are left: {left}"
        check_database(self.bench.data)
        return 0

    def _count(self, name: str, number: int, count: int, trial: Callable[[], str]) -> None:
        problem = trial()
        self.trials[name] += 1
        if problem:
            self.failed[name] += 1
            tell(f"\rFAILED {name} {number} (seed {self.seed}): {problem}\n")
        tell(f"\r{name:14} {number + 1:4}/{count}" + (f", {self.failed[name]} failed" if self.failed[name] else ""))


def tell(text: str) -> None:
    """Write to the terminal at once."""
    sys.stderr.write(text)
    sys.stderr.flush()


def main(kills: int, seed: int, names: list[str]) -> int:
    """Run the campaign; return the exit code."""
    kinds = [kind for kind in KINDS if not names or kind.name in names]
    filled = [kind for kind in kinds if kind.name in ON_FULL_DISKS]
    started = time.monotonic()
    tell(f"seed {seed}: {kills} kills\n")
    adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="hwc-") as folder:
        campaign = Campaign(Path(folder), seed)
        campaign.warm_up()
        for place, kind in enumerate(kinds):
            campaign.kill(kind, _share(kills, place, len(kinds)))
            tell(f"  {time.monotonic() - started:.0f} s\n")
        if reason := full_disk.missing():
            tell(f"no full disks: {reason}\n")
        else:
            for place, kind in enumerate(filled):
                campaign.fill(kind, _share(kills // FULL, place, len(filled)))
                tell(f"  {time.monotonic() - started:.0f} s\n")
        campaign.bench.clear()
    tell(f"{campaign.trials.total()} trials, {campaign.failed.total()} failed\n")
    return int(campaign.failed.total() > 0)


def _share(total: int, place: int, places: int) -> int:
    return total * (place + 1) // places - total * place // places


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))

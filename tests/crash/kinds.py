"""The kinds of work that are killed, each with what it begins from and what must hold after the next start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.crash import served, tasks, trees
from tests.crash.bench import Bench
from tests.crash.checks import Told


@dataclass(frozen=True)
class Kind:
    """One kind of work on a bench: ``prepare`` makes the template, ``work`` is killed, ``recover`` is the next start.

    ``recover`` takes what was acknowledged, and raises AssertionError for what does not hold.
    """

    name: str
    prepare: Callable[[Bench], None]
    work: Callable[[Bench], int]
    recover: Callable[[Bench, Told], None]


KINDS = (
    Kind("run", tasks.prepare_run, tasks.work_run, tasks.recover_run),
    Kind("resume", tasks.prepare_resume, tasks.work_resume, tasks.recover_run),
    Kind("in-place", tasks.prepare_in_place, tasks.work_in_place, tasks.recover_in_place),
    Kind("delegate", tasks.prepare_delegate, tasks.work_delegate, tasks.recover_delegate),
    Kind("approval", tasks.prepare_approval, tasks.work_approval, tasks.recover_approval),
    Kind("server", served.prepare, served.work, served.recover),
    Kind("snapshot", trees.prepare_snapshot, trees.work_snapshot, trees.recover_snapshot),
    Kind("fork", trees.prepare_fork, trees.work_fork, trees.recover_fork),
    Kind("apply", trees.prepare_apply, trees.work_apply, trees.recover_apply),
    Kind("commits", trees.prepare_commits, trees.work_apply, trees.recover_commits),
)

ON_FULL_DISKS = ("run", "resume", "delegate", "fork", "apply")
"""The kinds whose work is also done on a disk that becomes full."""

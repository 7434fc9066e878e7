"""Work on a disk that becomes full: a file system of its own, of a random size, in a private mount namespace."""

from __future__ import annotations

import ctypes
import os
import random
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.crash.bench import Bench, say
from tests.crash.checks import acknowledged, check_nothing_runs
from tests.crash.kinds import Kind
from tests.crash.warm import Outcome, adopt_orphans, done, run

_CLONE_NEWNS = 0x00020000
_PLENTY = 256 << 20
_PAGE = 4096
_CLEAR = re.compile("space|full", re.IGNORECASE)


def missing() -> str:
    """Return why no disk of a chosen size can be made here, "" if one can."""
    if os.geteuid() != 0:
        return "only root mounts a file system of a chosen size"
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        return "this machine gives no mount namespaces"
    return ""


def need(bench: Bench, kind: Kind) -> int:
    """Return the bytes that the kind's work takes on the disk."""

    def work() -> int:
        _mount(bench, kind)
        before = _used(bench.here)
        code = kind.work(bench)
        say(need=_used(bench.here) - before)
        return code

    outcome = done(work, f"{kind.name} with space")
    return max(one["need"] for one in acknowledged(outcome.lines) if "need" in one)


def trial(bench: Bench, kind: Kind, room: int, recover: Callable[[Outcome], int]) -> None:
    """Do the kind's work with ``room`` bytes; then give it space, and see what the next start makes of it.

    Raises AssertionError for what does not hold.
    """
    done(lambda: _inside(bench, kind, room, recover), f"{kind.name} with {room} bytes of disk")


def choose_room(chance: random.Random, most: int) -> int:
    """Return a random number of bytes that is less than the work takes."""
    return chance.randrange(max(_PAGE, most)) // _PAGE * _PAGE


def _inside(bench: Bench, kind: Kind, room: int, recover: Callable[[Outcome], int]) -> int:
    adopt_orphans()
    _mount(bench, kind)
    mounts = Path("/proc/self/mountinfo").read_text()
    _resize(bench, _used(bench.here) + room)
    outcome = run(lambda: kind.work(bench))
    said = "\n".join([outcome.errors, *outcome.lines])
    assert "Traceback" not in said, said
    assert "internal error" not in said, said
    assert outcome.code == 0 or _CLEAR.search(said), f"exit code {outcome.code} without a reason: {said}"
    _resize(bench, _PLENTY)
    done(lambda: recover(outcome), f"the next start after exit code {outcome.code}, {outcome.errors}")
    check_nothing_runs(bench, [], mounts)
    return 0


def _mount(bench: Bench, kind: Kind) -> None:
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "unshare")
    _run("mount", "--make-rprivate", "/")
    bench.here.mkdir(exist_ok=True)
    _run("mount", "-t", "tmpfs", "-o", f"size={_PLENTY}", "none", str(bench.here))
    bench.load(kind.name)


def _resize(bench: Bench, size: int) -> None:
    _run("mount", "-o", f"remount,size={size}", str(bench.here))


def _used(folder: Path) -> int:
    found = os.statvfs(folder)
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def _run(*command: str) -> None:
    subprocess.run(command, check=True)

"""The folders of sessions, and the locks on them and on the snapshots."""

from __future__ import annotations

import fcntl
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from handiwork.paths import locked

UNLISTED = "unlisted"
"""The file that marks the folder of a session that is not in the log, before its creation or after its removal."""


def session_dir(data: Path, session_id: str) -> Path:
    """Return the folder of a session's files."""
    return data / "sessions" / session_id


@contextmanager
def claimed(folder: Path) -> Generator[None]:
    """Make the folder of a session that the log does not have yet, and keep it from being removed meanwhile.

    It has the mark UNLISTED until this ends: if this process is killed before, `gc` removes the folder.
    """
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    with locked(folder, fcntl.LOCK_SH):
        (folder / UNLISTED).touch(mode=0o600)
        yield
        (folder / UNLISTED).unlink(missing_ok=True)


@contextmanager
def snapshots_in_use(data: Path) -> Generator[None]:
    """Hold off the collection of snapshots: some are in the store and not in the log yet. Waits while it lasts."""
    with locked(_snapshots_lock(data), fcntl.LOCK_SH):
        yield


@contextmanager
def snapshots_alone(data: Path) -> Generator[bool]:
    """Tell whether no process uses the store of snapshots; if so, none begins to as long as this lasts."""
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(_snapshots_lock(data), fcntl.LOCK_EX | fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True


def _snapshots_lock(data: Path) -> Path:
    place = data / "snapshots.lock"
    place.touch(mode=0o600)
    return place

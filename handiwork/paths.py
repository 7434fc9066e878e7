"""The folders of Handiwork's files on this machine, private files, and locks on files.

The writer of a file creates its folder, except ``runtime_dir``.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

_RANDOM = re.compile(r"/tmp/hw-\w+")


def data_dir() -> Path:
    """Sessions, their logs and files: ``HANDIWORK_DATA``, else handiwork below the user's data folder."""
    if chosen := os.environ.get("HANDIWORK_DATA"):
        return Path(chosen).expanduser().absolute()
    return Path(os.environ.get("XDG_DATA_HOME") or _home() / ".local/share") / "handiwork"


def config_dir() -> Path:
    """The user's settings file and micro agents: handiwork below the user's settings folder."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or _home() / ".config") / "handiwork"


def cache_dir() -> Path:
    """Files that can be fetched or built again, like weights: ``HANDIWORK_CACHE``, else below the user's cache."""
    if chosen := os.environ.get("HANDIWORK_CACHE"):
        return Path(chosen).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or _home() / ".cache") / "handiwork"


def home_dir() -> Path | None:
    """The user's home; None for one without ``HOME`` whom the system does not know."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def _home() -> Path:
    home = home_dir()
    if home is None:
        problem = "this user has no home directory: set HOME to a folder that it can write to"
        raise FileNotFoundError(errno.ENOENT, problem, "HOME")
    return home


def runtime_dir() -> Path:
    """Sockets of running sandboxes and models: a short path, because a socket's may have 107 bytes.

    Only the user can enter it. It is created if it is missing; if another user owns its usual name, it gets a random
    one, which the cache records.
    """
    chosen = os.environ.get("XDG_RUNTIME_DIR")
    usual = Path(chosen) / "hw" if chosen and len(chosen) < 60 else Path(f"/tmp/hw-{os.getuid()}")
    with suppress(OSError):
        usual.mkdir(mode=0o700, parents=True, exist_ok=True)
    return usual if _is_private(usual) else _remembered_dir()


def lock(path: Path, how: int = fcntl.LOCK_EX, flags: int = os.O_RDONLY) -> int:
    """Return a locked descriptor of a file or directory; the kernel releases the lock once it is closed.

    With O_CREAT in ``flags``, a new file is private. Raises BlockingIOError for LOCK_NB if another process has it.
    """
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, how)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def locked(path: Path, how: int = fcntl.LOCK_EX, flags: int = os.O_RDONLY) -> Generator[int]:
    """Hold a ``lock`` and yield its descriptor."""
    descriptor = lock(path, how, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def private_dirs(folder: Path) -> None:
    """Create a directory and its missing parents, accessible only to the user."""
    if not folder.is_dir():
        private_dirs(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def write_private(file: Path, text: str) -> None:
    """Atomically write a file that only the user can read."""
    part = file.with_name(f"{file.name}.part")
    part.unlink(missing_ok=True)
    with open(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600), "w") as stream:
        stream.write(text)
    part.replace(file)


def _remembered_dir() -> Path:
    cache_dir().mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    with (
        locked(cache_dir() / f"runtime-{os.getuid()}", flags=flags) as descriptor,
        open(descriptor, "r+", closefd=False) as file,
    ):
        name = file.read()
        if not _RANDOM.fullmatch(name) or not _is_private(Path(name)):
            name = tempfile.mkdtemp(prefix="hw-", dir="/tmp")
            file.seek(0)
            file.truncate()
            file.write(name)
    return Path(name)


def _is_private(folder: Path) -> bool:
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077

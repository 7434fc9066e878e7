"""Temporary folders, like those with copies of a workspace's files; ``gc`` removes those of killed processes."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from handiwork.process import start_ticks

_NAME = re.compile(r"handiwork-files-(\d+)-(\d+)-(\d+)-\w+")
"""The process namespace, the process in it, and its start in clock ticks since boot."""


@contextmanager
def temporary_dir() -> Generator[Path]:
    """Yield a new folder that only this user can enter, in the system's folder for temporary files."""
    pid = os.getpid()
    with tempfile.TemporaryDirectory(prefix=f"handiwork-files-{_namespace()}-{pid}-{start_ticks(pid)}-") as name:
        yield Path(name)


def remove_abandoned() -> None:
    """Remove this user's folders whose process is gone; processes of other namespaces are not visible here."""
    for path in Path(tempfile.gettempdir()).glob("handiwork-files-*"):
        name = _NAME.fullmatch(path.name)
        if name is None or name[1] != _namespace() or start_ticks(int(name[2])) == name[3]:
            continue
        with suppress(FileNotFoundError):
            if path.lstat().st_uid == os.getuid():
                shutil.rmtree(path)


def _namespace() -> str:
    return re.sub(r"\D", "", os.readlink("/proc/self/ns/pid"))

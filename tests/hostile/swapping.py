"""A program that swaps files and directories of a project for links to a secret, as long as a test looks at them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

SECRET = b"a secret of the host\n"

_SWAPPER = """
import os, sys
project, secret = sys.argv[1:]
os.chdir(project)
names = {f"file{number}": secret + "/key" for number in range(0, 60, 3)} | {"folder": secret, "deep/folder": secret}
for name, target in names.items():
    os.symlink(target, name + ".link")
print("ready", flush=True)
while True:
    for name in names:
        os.rename(name, name + ".kept")
        os.rename(name + ".link", name)
    for name in names:
        os.rename(name, name + ".link")
        os.rename(name + ".kept", name)
"""


def make_project(root: Path) -> tuple[Path, Path]:
    """Make a project of plain files, and outside of it a folder with a secret; return both."""
    project, secret = root / "project", root / "secret"
    for folder in (project / "folder", project / "deep/folder", secret):
        folder.mkdir(parents=True)
    for number in range(60):
        (project / f"file{number}").write_bytes(b"public\n")
    for folder in (project / "folder", project / "deep/folder"):
        (folder / "key").write_bytes(b"public\n")
    (secret / "key").write_bytes(SECRET)
    return project, secret


@contextmanager
def swapped(project: Path, secret: Path) -> Generator[None]:
    """Swap files and directories of the project for links, without end."""
    command = [sys.executable, "-c", _SWAPPER, str(project), str(secret)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as swapper:
        assert swapper.stdout is not None
        assert swapper.stdout.readline() == b"ready\n"
        try:
            yield
        finally:
            swapper.kill()


def holders(root: Path) -> list[str]:
    """The regular files below that have the secret in them."""
    files = (path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    return [str(path.relative_to(root)) for path in files if SECRET.strip() in path.read_bytes()]

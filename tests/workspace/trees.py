from __future__ import annotations

import os
import subprocess
from pathlib import Path

from handiwork.workspace.changes import Change, changes_of_overlay
from handiwork.workspace.copy import Workspace, make_copy

Tree = dict[str, bytes | str]
"""Path to content: bytes are a file ("x:" in front of the path: executable), a str is a link's target."""


def git(cwd: Path, *arguments: str, stdin: bytes | None = None) -> str:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always"]
    done = subprocess.run(["git", *identity, *arguments], cwd=cwd, input=stdin, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def write_tree(root: Path, tree: Tree) -> Path:
    for name, content in tree.items():
        path = root / name.removeprefix("x:")
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            path.symlink_to(content)
        else:
            path.write_bytes(content)
            path.chmod(0o755 if name.startswith("x:") else 0o644)
    return root


def read_tree(root: Path) -> Tree:
    """All files and links below, without ``.git``."""
    tree: Tree = {}
    for here, directories, names in os.walk(root):
        directories[:] = [name for name in directories if name != ".git"]
        links = [name for name in directories if Path(here, name).is_symlink()]
        for name in [*names, *links]:
            path = Path(here, name)
            mark = "x:" if not path.is_symlink() and os.access(path, os.X_OK) and path.stat().st_mode & 0o100 else ""
            relative = mark + str(path.relative_to(root))
            tree[relative] = os.readlink(path) if path.is_symlink() else path.read_bytes()
    return tree


class Session:
    """A workspace with a real overlay above it: what is done in it runs as a shell script."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.source = source
        self.folder = folder
        self.workspace: Workspace = make_copy(source, folder / "session")
        self.upper = folder / "upper"
        for name in ("upper", "work", "merged"):
            (folder / name).mkdir()

    def run(self, script: str) -> list[Change]:
        """Run ``script`` in the overlay and return what it changed."""
        layers = f"lowerdir={self.workspace.base},upperdir=upper,workdir=work,userxattr"
        mount = f"mount -t overlay overlay -o {layers} merged && cd merged && set -e\n{script}"
        subprocess.run(["unshare", "-Urm", "bash", "-c", mount], cwd=self.folder, check=True)
        return changes_of_overlay(self.workspace, self.upper)


def found(changes: list[Change]) -> dict[str, str]:
    return {change.path: change.kind for change in changes}

"""A repository installed into its environment: built once in a sandbox, and put into every checkout of it."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from handiwork.evals.benchmark import UnfitError
from handiwork.evals.benchmarks.swebench import environments, repositories
from handiwork.evals.benchmarks.swebench.recipes import VENV, Recipe
from handiwork.evals.scoring.execution import command_in, new_sandbox, write_file
from handiwork.paths import cache_dir, locked

SECONDS = 1800.0
"""The time that an installation may take: C extensions are compiled."""

_FILES, _ABOUT = "files", "about.json"


@dataclass(frozen=True, slots=True)
class Subject:
    """The repository of an instance at its base commit, and its recipe."""

    source: Path
    tree: str
    recipe: Recipe

    @property
    def folder(self) -> Path:
        """The folder of the installation in the cache, which need not exist."""
        return cache_dir() / "installations" / self.recipe.installation(self.tree)


async def install(subject: Subject) -> None:
    """Install the repository in a sandbox without a network, unless that was done before.

    Raises UnfitError if an installing command fails, DataError, SkippedError, SandboxError.
    """
    if subject.folder.is_dir():
        return
    subject.folder.parent.mkdir(parents=True, exist_ok=True)
    mounts = environments.mounts(subject.recipe)
    with locked(subject.folder.with_name(f"{subject.folder.name}.lock"), flags=os.O_RDWR | os.O_CREAT):
        if subject.folder.is_dir():
            return
        async with new_sandbox("bubblewrap", read_only=mounts) as (sandbox, workspace):
            repositories.check_out(subject.source, subject.tree, workspace)
            environments.put_layer(subject.recipe, workspace)
            before = {path: _version(workspace / path) for path in _files(workspace)}
            await sandbox.start()
            log = "/tmp/installation.log"
            await write_file(sandbox, "/tmp/install.sh", script(subject.recipe).encode())
            command = f"bash /tmp/install.sh < /dev/null > {log} 2>&1 || {{ tail -c 1500 {log}; false; }}"
            done = await command_in(sandbox, f"({command})", SECONDS)
            await sandbox.close()
            if done.exit_code:
                raise UnfitError(f"the repository cannot be installed: {done.content.strip()}")
            _save(workspace, before, subject.folder)


def script(recipe: Recipe) -> str:
    """Return the script that installs a repository in its checkout."""
    lines = ["set -e", "export PYTHONDONTWRITEBYTECODE=1 PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1"]
    return "\n".join([*lines, *recipe.install])


def _save(workspace: Path, before: dict[str, tuple[int, int]], folder: Path) -> None:
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    for path in _files(workspace):
        if path.startswith(f"{VENV}/") or before.get(path) != _version(workspace / path):
            (part / _FILES / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(workspace / path, part / _FILES / path, follow_symlinks=False)
    (part / _ABOUT).write_text(json.dumps({"root": str(workspace)}))
    part.rename(folder)


def put(subject: Subject, workspace: Path) -> None:
    """Fill an empty folder with the repository, installed as ``install`` did, with the paths of this folder.

    git ignores the files of the installation.
    """
    repositories.check_out(subject.source, subject.tree, workspace)
    root = json.loads((subject.folder / _ABOUT).read_text())["root"].encode()
    paths = list(_files(subject.folder / _FILES))
    for path in paths:
        source, target = subject.folder / _FILES / path, workspace / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copy2(source, target, follow_symlinks=False)
        if not source.is_symlink() and root in (content := source.read_bytes()) and b"\0" not in content:
            target.write_bytes(content.replace(root, str(workspace).encode()))
    ignored = sorted({f"/{VENV}/", *(f"/{path}" for path in paths if not path.startswith(f"{VENV}/"))})
    (workspace / ".git/info/exclude").write_text("".join(f"{path}\n" for path in ignored))


def has_passed(subject: Subject, rule: str) -> bool:
    """Return whether ``mark_passed`` was called for this installation and rule, in any process."""
    return (subject.folder / f"passed-{rule}").exists()


def mark_passed(subject: Subject, rule: str) -> None:
    """Note that the reference solution was resolved with this installation by the rule of that name."""
    (subject.folder / f"passed-{rule}").touch()


def _files(root: Path) -> Iterator[str]:
    """Yield the paths of regular files and symbolic links below a folder, without git's and compiled bytecode."""
    for folder, folders, names in os.walk(root):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        folders[:] = [name for name in folders if name not in (".git", "__pycache__", *links)]
        for name in (*names, *links):
            path = Path(folder, name)
            if stat.S_ISREG(mode := path.lstat().st_mode) or stat.S_ISLNK(mode):
                yield str(path.relative_to(root))


def _version(path: Path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_size, status.st_mtime_ns

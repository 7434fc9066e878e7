"""The official images of instances: their repositories are copied out, and derived images lack the answers."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from handiwork.errors import SandboxError
from handiwork.evals.benchmark import DataError
from handiwork.evals.benchmarks.swebench.repositories import start_history
from handiwork.paths import cache_dir, locked
from handiwork.sandbox.docker.cli import OWNER, explained, owner

HOME = "/home"
"""The folder in an image with the repository, the patches and the scripts."""

_DERIVED = "handiwork/multi-swe-bench"
_BARE = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n[uploadpack]\n\tallowAnySHA1InWant = true\n"


def local_images() -> Mapping[str, str]:
    """Return the ids of the official images on this machine's Docker daemon, by their names. Raises SandboxError."""
    lines = _docker("image", "ls", "--no-trunc", "--format", "{{.Repository}}:{{.Tag}} {{.ID}}").splitlines()
    images = dict(line.split() for line in lines)
    return {name: image for name, image in images.items() if name.startswith("mswebench/")}


def without_answers(image: str) -> str:
    """Return the name of the image that ``derive`` makes of the image with an id."""
    return f"{_DERIVED}:{image.removeprefix('sha256:')[:20]}"


def derive(image: str, repository: str) -> None:
    """Make an image without the repository, its history, the patches and the scripts. Raises SandboxError."""
    name = without_answers(image)
    # The other contents of the folder may be tools.
    remove = f'cd {HOME} && rm -rf -- "$0" *.patch *.sh'
    lock = cache_dir() / "multi-swe-bench.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with locked(lock, flags=os.O_RDWR | os.O_CREAT):
        if _docker("image", "ls", "--quiet", name):
            return
        changed = _create("--entrypoint=/bin/sh", image, "-c", remove, repository)
        try:
            _docker("start", "--attach", changed)
            _docker("commit", changed, name)
        finally:
            _docker("rm", "--force", "--volumes", changed)


def copy_repository(image: str, repository: str, folder: Path) -> None:
    """Fill an empty folder with the repository of an image, installed as it is there, and with a history of one commit.

    Raises SandboxError, DataError.
    """
    stopped = _create(image, "true")
    try:
        _docker("cp", f"{stopped}:{HOME}/{repository}/.", str(folder))
    finally:
        _docker("rm", "--force", "--volumes", stopped)
    with tempfile.TemporaryDirectory(prefix="handiwork-clone-") as name:
        clone = Path(name, "clone.git")
        try:
            (folder / ".git").rename(clone)
        except OSError:  # the temporary folder is on another file system
            shutil.move(folder / ".git", clone)
        # The configuration may name programs.
        (clone / "config").write_text(_BARE)
        _remove_submodules(folder)
        start_history(folder, clone, "HEAD^{tree}", "--mixed")


def _remove_submodules(folder: Path) -> None:
    """Remove the links from submodules to their clones, which lay in the repository's clone."""
    for parent, folders, names in os.walk(folder):
        if ".git" in names:
            Path(parent, ".git").unlink()
        if ".git" in folders:
            shutil.rmtree(Path(parent, ".git"))
            folders.remove(".git")


def _create(*arguments: str) -> str:
    """Create a container, which later sandboxes remove if this process dies; return its id."""
    return _docker("create", "--network=none", f"--label={OWNER}={owner()}", *arguments)


def _docker(*arguments: str) -> str:
    """Run docker and return its output. Raises SandboxError if it fails, DataError if it is not installed."""
    try:
        done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise DataError(
            "there is no program `docker` on the PATH: install it (`sudo apt-get install docker.io`)"
        ) from None
    if done.returncode:
        raise SandboxError(explained(done.stderr or done.stdout))
    return done.stdout.strip()

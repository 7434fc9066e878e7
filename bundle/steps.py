"""What the build does in single steps: run programs, install Python libraries, compile them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PREFIX = "/opt/handiwork"
"""Where the bundle's tree is mounted."""

PYTHON = "python3.11"
HERE = Path(__file__).resolve().parent


class BuildError(Exception):
    """A wheel cannot be built here; the text says what to do."""


def run(command: Sequence[str | Path], cwd: Path | None = None) -> str:
    """Run a command and return its output. Raises BuildError with what it said."""
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise BuildError(f"the bundle's build needs the program {command[0]}: install it") from error
    if done.returncode:
        raise BuildError(f"{command[0]} failed while building the bundle:\n{done.stderr.strip()}")
    return done.stdout


def install(lock: str, target: Path) -> None:
    """Install exactly what the lock here says, checked by its hashes, into the directory ``target``."""
    platform = ["--python-version", "3.11", "--python-platform", "x86_64-manylinux_2_28"]
    checks = ["--require-hashes", "--only-binary", ":all:", "--no-deps", "--link-mode", "copy"]
    wanted = ["-r", HERE / lock, "--target", target]
    run(["uv", "-q", "pip", "install", "--python", sys.executable, *platform, *checks, *wanted])
    (target / ".lock").unlink(missing_ok=True)


def compile_bytecode(python: Sequence[str | Path], folder: Path, root: Path, prefix: str) -> None:
    """Compile what is below ``folder``, of a tree ``root`` that will be at ``prefix``.

    Unchecked, since installing a wheel changes the sources' times.
    """
    places = ["-s", root, "-p", prefix, "--invalidation-mode", "unchecked-hash", folder]
    run([*python, "-I", "-S", "-B", "-m", "compileall", "-q", "-f", "-j", "0", *places])


def copy_licences(stage: Path, root: Path) -> None:
    """Copy the copyright files of the packages in ``stage``."""
    for file in (stage / "usr/share/doc").glob("*/copyright"):
        target = root / "share/doc" / file.parent.name
        target.mkdir(parents=True)
        shutil.copy(file, target)

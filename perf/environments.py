"""Virtual environments for the peers, made once in the user's cache from pinned packages."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from handiwork.paths import cache_dir

UV = Path(sys.executable).with_name("uv")
DRIVERS = Path(__file__).parent / "drivers"


class UnavailableError(Exception):
    """A peer cannot run here; the text says why."""


def environment(peer: str, at_least: tuple[int, int]) -> Path:
    """Return the folder of the peer's programs, with the packages of drivers/PEER.txt. Raises UnavailableError."""
    requirements = DRIVERS / f"{peer}.txt"
    python = _python(at_least)
    version = hashlib.sha256(f"{python}\n{requirements.read_text()}".encode()).hexdigest()[:12]
    place = cache_dir() / "perf" / f"{peer}-{version}"
    made = place / "made"
    if not made.exists():
        print(f"{peer}: making its environment in {place}", file=sys.stderr)
        _uv("venv", "--clear", "--python", python, str(place))
        # Compiled now, so that no measurement compiles.
        _uv("pip", "install", "--python", str(place), "--compile-bytecode", "--requirements", str(requirements))
        made.touch()
    return place / "bin"


def _uv(*arguments: str) -> None:
    done = subprocess.run([UV, "--quiet", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UnavailableError(f"uv {arguments[0]} failed: {done.stderr.strip().splitlines()[-1:]}")


def _python(at_least: tuple[int, int]) -> str:
    """Return a Python of this version or newer, the one that runs this if it is new enough."""
    for candidate in _candidates():
        # A version manager's shim can stand for a program that is not there.
        tried = subprocess.run(
            [candidate, "-c", f"import sys; sys.exit(sys.version_info < {at_least})"], capture_output=True, check=False
        )
        if tried.returncode == 0:
            return candidate
    wanted = ".".join(map(str, at_least))
    raise UnavailableError(f"no Python {wanted} or newer is here; `.venv/bin/uv python install {wanted}` installs one")


def _candidates() -> Iterator[str]:
    yield sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for minor in (12, 13, 14):
        if found := shutil.which(f"python3.{minor}"):
            yield found
        yield from sorted(str(path) for path in pyenv.glob(f"versions/3.{minor}*/bin/python3"))
    managed = subprocess.run([UV, "python", "dir"], capture_output=True, text=True, check=False).stdout.strip()
    yield from sorted(str(path) for path in Path(managed or "/nonexistent").glob("*/bin/python3"))

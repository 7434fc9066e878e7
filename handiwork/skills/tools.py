"""The bundle's programs, which the skills run: its Python for libraries that the notebook's may lack, and ripgrep."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

PREFIX = "/opt/handiwork"
"""Where sandboxes have the bundle."""

_root: str | None = PREFIX if os.path.exists(PREFIX) else None


Ask = Callable[[str, bytes, str], "tuple[str, str]"]
"""Asks the session's model about a picture or sound, given with its media type; returns the answer, or "" and why."""

_ask: Ask | None = None


class SkillError(Exception):
    """A skill could not do its work; the notebook shows the text alone."""

    def _render_traceback_(self) -> list[str]:
        return [f"ERROR: {self}"]


def use_bundle(root: str) -> None:
    """Let the skills run the programs of the bundle whose tree is at ``root``."""
    global _root
    _root = root
    ripgrep.cache_clear()


def use_model(ask: Ask) -> None:
    """Let the skills ask the session's model."""
    global _ask
    _ask = ask


def ask_model(prompt: str, data: bytes, media_type: str) -> str:
    """Return the answer of the session's model about a picture or sound. Raises SkillError."""
    if _ask is None:
        raise SkillError("There is no session whose model could be asked.")
    text, problem = _ask(prompt, data, media_type)
    if problem:
        raise SkillError(f"{problem[0].upper()}{problem[1:]}.")
    return text


def command_of(program: str) -> list[str] | None:
    """Return the command that runs a program of the bundle, None if it is not there."""
    if _root is None or not os.path.isfile(f"{_root}/bin/{program}"):
        return None
    if _root == PREFIX:
        return [f"{_root}/bin/{program}"]
    loader = [f"{_root}/lib/ld-linux-x86-64.so.2", "--inhibit-rpath", "", "--library-path", f"{_root}/lib"]
    return [*loader, f"{_root}/bin/{program}"]


def libraries() -> str:
    """Return the folder of the bundle's Python libraries, "" without a bundle."""
    return "" if _root is None else f"{_root}/lib/python3/dist-packages"


@lru_cache(maxsize=1)
def ripgrep() -> tuple[str, ...] | None:
    """Return the command that runs ripgrep, the bundle's or that of the PATH; None if there is none."""
    found = shutil.which("rg")
    return tuple(command_of("rg") or ([] if found is None else [found])) or None


def run_program(python: list[str], code: str, arguments: list[str], data: bytes, timeout: float) -> bytes:
    """Run ``code`` in a Python that sees only its standard library, and return its output; ``timeout`` in seconds.

    Raises SkillError with the last line that it printed to stderr.
    """
    try:
        ended = subprocess.run(
            [*python, "-I", "-S", "-c", code, *arguments],
            input=data,
            capture_output=True,
            timeout=timeout,
            env=_environment(),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SkillError(f"This took longer than {timeout:.0f} s and was stopped.") from None
    except OSError as error:
        raise SkillError(f"{python[0]} cannot be run: {error.strerror}.") from None
    if ended.returncode:
        lines = ended.stderr.decode("utf-8", "replace").strip().splitlines()
        raise SkillError(lines[-1] if lines else f"{python[0]} ended with code {ended.returncode}.")
    return ended.stdout


def code_folder() -> str:
    """Return the folder of the package ``inside``."""
    here = Path(__file__).resolve().parent
    copy = here.parents[1]  # in a sandbox: inside/ and skills/handiwork_skills/ stand side by side
    return str(copy if (copy / "inside").is_dir() else here.parent / "sandbox")


def _environment() -> dict[str, str]:
    """Return the environment without the variables by which an image or a user loads code into every program."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "PYTHON"))}

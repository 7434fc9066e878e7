"""The recipe of an instance's environment, read from the records of ``kit.json``."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from handiwork.paths import home_dir

VENV = ".venv"
"""The virtual environment's folder in a checkout."""

_INSTALL = re.compile(r"\buv pip install -q -p \S+")
_PATHS = re.compile(r"^diff --git a/.+ b/(.+)$", re.MULTILINE)
_DATA = (".json", ".png", "csv", ".txt", ".md", ".jpg", ".jpeg", ".pkl", ".yml", ".yaml", ".toml")
"""Endings of files of a test patch that upstream does not run (swebench/harness/test_spec/python.py)."""
_NEEDS_NETWORK = ("pip download", "git clone", "curl ", "wget ")


@dataclass(frozen=True, slots=True)
class Recipe:
    """The needs of an instance's tests: a ``python`` such as "3.9", pinned ``requirements``, and the repository itself.

    ``install`` are shell commands that install the repository, without a network, in a checkout that has a virtual
    environment with the requirements in VENV. ``test_command`` runs the tests there; the official parser named
    ``parser`` reads its output. ``isolated`` builds requirements apart from the environment's own packages.
    """

    python: str
    requirements: tuple[str, ...]
    install: tuple[str, ...]
    test_command: str
    parser: str
    isolated: bool = True

    @property
    def environment(self) -> str:
        """A hash of the environment without the repository; instances with the same one share it."""
        return _hash(self.python, sorted(self.requirements), self.isolated)

    def installation(self, tree: str) -> str:
        """Return a hash of the installation of the repository with the git tree ``tree``, and of its tests."""
        return _hash(self.environment, tree, self.install, self.test_command, self.parser)


def read(record: Mapping[str, Any]) -> Recipe:
    """Return the recipe in a record of ``kit.json``, whose commands expect the environment in ``../venv``.

    Raises KeyError if the record has none.
    """
    requirements_line, *install = record["install"][1:]
    return Recipe(
        record["python"],
        tuple(record["requirements"]),
        tuple(map(_with_pip, install)),
        _relocated(record["test_command"]),
        record["parser"],
        "--no-build-isolation" not in requirements_line,
    )


def with_tests(record: Mapping[str, Any], test_patch: str) -> Mapping[str, Any]:
    """Return a record of the same version with the tests of another instance, {} if it does not name its own."""
    own = " ".join(record.get("test_files", ()))
    if not own or not record["test_command"].endswith(f" {own}"):
        return {}
    files = [path for path in dict.fromkeys(_PATHS.findall(test_patch)) if not path.endswith(_DATA)]
    command = record["test_command"].removesuffix(own) + shlex.join(files)
    return {**record, "test_command": command, "test_files": files, "note": ""}


def obstacle(record: Mapping[str, Any]) -> str:
    """Return why the environment of a record cannot be built on this machine, "" if it can."""
    if "install" not in record:
        return record.get("note") or "kit.json has no recipe for it"
    if record.get("before_test"):
        return "its tests need a route or a host that only root can set up: a sandbox has no network at all"
    if any(word in line for line in record["install"] for word in _NEEDS_NETWORK):
        return "its installation downloads files, and installations run without a network"
    if interpreter(record["python"]) is None:
        return f"there is no Python {record['python']}: install it with pyenv or uv"
    return ""


@cache
def interpreter(version: str) -> Path | None:
    """Return the program of the newest Python of a version such as "3.9", None without one."""
    home = home_dir() or Path("/")
    pyenv = sorted(home.glob(f".pyenv/versions/{version}.*/bin/python{version}"), key=_release)
    managed = _output("uv", "python", "find", "--managed-python", version)
    system = shutil.which(f"python{version}", path="/usr/local/bin:/usr/bin:/bin")
    for program in (*reversed(pyenv), managed, system):
        if (
            program
            and _output(str(program), "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])") == version
        ):
            return Path(program)
    return None


def _release(program: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", program.parts[-3])]


def _output(*command: str) -> str:
    """Return a program's output, "" if it fails or is missing."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _with_pip(line: str) -> str:
    """Return an installing command for pip, which builds as uv does."""
    line = _INSTALL.sub(f"{VENV}/bin/python -m pip install -q --use-pep517", line)
    return _relocated(line.replace(" -C ", " --config-settings "))


def _relocated(line: str) -> str:
    return line.replace("../venv", VENV)


def _hash(*parts: str | bool | Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:20]

"""Environments of pinned packages, built once for all instances with the same recipe, and read-only in sandboxes."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from handiwork.evals.benchmark import DataError, SkippedError
from handiwork.evals.benchmarks.swebench.recipes import VENV, Recipe, interpreter
from handiwork.paths import cache_dir, locked
from handiwork.sandbox.toolchains import SYSTEM

OUTPUT_LIMIT = 1500
"""The characters shown from the end of a failing program's output."""

_COMPLETE = "complete"

_FAILURES: dict[Path, str] = {}
"""Why environments could not be built, by their folders: this process tries none twice, as that may take minutes."""


def built(recipe: Recipe) -> Path:
    """Return the virtual environment with a recipe's requirements, built at the first call.

    The machine's own package client fetches them, and builds those that have no wheel. Raises DataError, and
    SkippedError if they cannot be fetched or built.
    """
    folder = cache_dir() / "environments" / recipe.environment
    if (folder / _COMPLETE).exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_name(f"{folder.name}.lock"), flags=os.O_RDWR | os.O_CREAT):
        if folder in _FAILURES:
            raise SkippedError(_FAILURES[folder])
        if not (folder / _COMPLETE).exists():
            # Programs of an environment have its path in their first line, so it is built in its final place.
            shutil.rmtree(folder, ignore_errors=True)
            try:
                _build(recipe, folder)
            except SkippedError as error:
                _FAILURES[folder] = str(error)
                raise
            (folder / _COMPLETE).touch()
    return folder


def mounts(recipe: Recipe) -> list[Path]:
    """Return the read-only paths of a sandbox besides a checkout: the environment, and libraries of its Python.

    Raises DataError, SkippedError.
    """
    # A bare Python loads its shared library from the place that it was copied from.
    libraries = (_original(recipe).parent.parent / "lib").glob("libpython*.so.*")
    return [built(recipe), *(path for path in sorted(libraries) if not any(map(path.is_relative_to, SYSTEM)))]


def _build(recipe: Recipe, folder: Path) -> None:
    program = _bare_python(recipe)
    requirements = folder.with_name(f"{folder.name}.txt")
    requirements.write_text("".join(f"{one}\n" for one in recipe.requirements))
    isolation = [] if recipe.isolated else ["--no-build-isolation"]
    options = ["--quiet", "--no-deps", "--disable-pip-version-check", *isolation, "-r", str(requirements)]
    _run(str(program), "-m", "venv", str(folder))
    _run(f"{folder}/bin/python", "-m", "pip", "install", *options)


def _run(*command: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    environment |= {"PIP_NO_INPUT": "1", "GIT_TERMINAL_PROMPT": "0"}  # they would ask for passwords on the terminal
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        umask=0o022,
    )
    if done.returncode:
        output = " ".join(f"{done.stdout} {done.stderr}".split())[-OUTPUT_LIMIT:]
        raise SkippedError(f"an environment cannot be built: {' '.join(command[:4])} failed: {output}")


def _bare_python(recipe: Recipe) -> Path:
    """Return the program of a Python like ``interpreter`` without any packages, made at the first call.

    The packages of a developer's Python may be later versions of the repositories, repaired. A Python of the system is
    returned as it is: sandboxes show the system's packages anyway. Raises DataError.
    """
    program = _original(recipe)
    prefix = program.parent.parent
    if any(map(prefix.is_relative_to, SYSTEM)):
        return program
    version = f"{prefix} {prefix.stat().st_mtime_ns}"
    folder = cache_dir() / "pythons" / hashlib.sha256(version.encode()).hexdigest()[:20]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_name(f"{folder.name}.lock"), flags=os.O_RDWR | os.O_CREAT):
        if not folder.is_dir():
            part = folder.with_name(f"{folder.name}.part")
            shutil.rmtree(part, ignore_errors=True)
            shutil.copytree(prefix, part, symlinks=True, ignore=_packages)
            part.rename(folder)
    return folder / "bin" / program.name


def _original(recipe: Recipe) -> Path:
    program = interpreter(recipe.python)
    if program is None:
        raise DataError(f"there is no Python {recipe.python}: install it with pyenv or uv")
    return program.resolve()


def _packages(folder: str, names: list[str]) -> list[str]:
    """Return the names that a copy of a Python leaves out: the content of its folder of packages."""
    return names if Path(folder).name == "site-packages" else []


def put_layer(recipe: Recipe, checkout: Path) -> None:
    """Write a virtual environment into a checkout that has no packages of its own, and shows those of ``built``.

    The repository can be installed into it, while the packages below stay as they are.
    """
    below, layer, program = built(recipe), checkout / VENV, _bare_python(recipe)
    packages = f"lib/python{recipe.python}/site-packages"
    (layer / "bin").mkdir(parents=True)
    (layer / packages).mkdir(parents=True)
    (layer / "pyvenv.cfg").write_text(f"home = {program.parent}\ninclude-system-site-packages = false\n")
    (layer / ".gitignore").write_text("*\n")
    # addsitedir also reads the .pth files there, which a plain path in this one would not.
    (layer / packages / "environment.pth").write_text(f"import site; site.addsitedir({str(below / packages)!r})\n")
    for name in ("python", "python3", f"python{recipe.python}"):
        (layer / "bin" / name).symlink_to(program if name == "python" else "python")
    shebang = f"#!{below}/bin/python".encode()
    for script in sorted((below / "bin").iterdir()):
        if script.is_file() and not script.is_symlink() and script.read_bytes().startswith(shebang):
            _, _, body = script.read_text().partition("\n")
            copy = layer / "bin" / script.name
            copy.write_text(f"#!{layer}/bin/python\n{body}")
            copy.chmod(0o755)

"""The bundle: one directory tree with Python, a shell and tools that is mounted into every sandbox.

It is installed as the package handiwork-bundle, which ``make bundle`` builds. So is handiwork-browser, a second tree
with Chromium and Playwright, which is mounted inside the first if it is installed.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import tempfile
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from handiwork.errors import SandboxError
from handiwork.paths import cache_dir

PREFIX = "/opt/handiwork"
"""The tree's mount point; its programs run only from there."""

BROWSER = f"{PREFIX}/browser"
"""The mount point of the browser's tree; its programs run only from there."""

INSIDE_PYTHON = [f"{PREFIX}/bin/busybox", "env", "-u", "LD_PRELOAD", f"{PREFIX}/bin/python3", "-I"]
"""Starts the bundle's Python inside, with ``PREFIX/app`` on its path, regardless of an image's environment."""

UNUSED_SECONDS = 30 * 24 * 3600
"""Seconds after which an unused copy of the inside code is removed."""


_SKILLS = "skills/handiwork_skills"
"""The package of the skills below ``PREFIX/app``; the notebook has only its folder on its path."""


def bundle_root() -> Path:
    """Return the folder to mount at the prefix. Raises SandboxError if the bundle is not installed."""
    root = _root_of("handiwork_bundle")
    if root is None:
        raise SandboxError(
            "The sandbox needs the package handiwork-bundle: run `make bundle` in a checkout of Handiwork, "
            "or `pip install handiwork-bundle`."
        )
    return root


def browser_root() -> Path | None:
    """Return the folder to mount at ``BROWSER``, or None if the package handiwork-browser is not installed."""
    return _root_of("handiwork_browser")


def _root_of(package: str) -> Path | None:
    spec = find_spec(package)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "root"


def host_command(name: str, root: Path | None = None) -> list[str]:
    """Return the command that runs a program of the bundle, such as bwrap, outside a sandbox, without its mount.

    ``root`` is another path of the tree, for a user who may not enter ``bundle_root()``. Raises SandboxError if the
    bundle is not installed or has no such program.
    """
    root = root or bundle_root()
    program = root / "bin" / name
    if not program.is_file():
        raise SandboxError(f"The bundle has no program {name!r}.")
    # The empty name stands for the program itself: libraries at the prefix on the host must not be loaded.
    loader = [str(root / "lib/ld-linux-x86-64.so.2"), "--inhibit-rpath", "", "--library-path", str(root / "lib")]
    return [*loader, str(program)]


def chromium_outside(folder: Path) -> Path:
    """Write a script into ``folder`` that runs Chromium outside a sandbox, and return its path.

    The script sees all of this machine, except that the trees replace the content of /opt. Chromium's own sandbox must
    be off. Raises SandboxError if the bundle or the browser is not installed.
    """
    browser = browser_root()
    if browser is None:
        raise SandboxError("There is no browser: run `make bundle` in a checkout, or `pip install handiwork-browser`.")
    mounts = ["--tmpfs", "/opt", "--ro-bind", str(bundle_root()), PREFIX, "--ro-bind", str(browser), BROWSER]
    bwrap = [*host_command("bwrap"), "--dev-bind", "/", "/", *mounts, "--die-with-parent", f"{BROWSER}/bin/chromium"]
    script = folder / "chromium"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(bwrap)} "$@"\n')
    script.chmod(0o755)
    return script


def inside_code() -> Path:
    """Return the folder to mount at ``PREFIX/app``: a compiled copy of the code inside that every user can read.

    It has the package ``inside`` and the folder ``skills``, which has handiwork.skills as the package handiwork_skills.
    It is built once for each version of the sources. Raises SandboxError if they do not compile.
    """
    here = Path(__file__).parent
    files = {
        target / path.relative_to(source): path.read_bytes()
        for source, target in ((here / "inside", Path("inside")), (here.parent / "skills", Path(_SKILLS)))
        for path in sorted(source.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    folder = cache_dir() / f"inside-{digest.hexdigest()[:16]}"
    try:
        os.utime(folder)
    except FileNotFoundError:
        _make_copy(files, folder)
    return folder


def _make_copy(files: dict[Path, bytes], folder: Path) -> None:
    """Build the copy aside and move it into place, unless a faster process has built the same one."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".inside-") as work:
        copy = Path(work, "copy")
        for name, content in files.items():
            target = copy / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        _compile(copy)
        for path in (copy, *copy.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        try:
            copy.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
        _move_unused(folder.parent, Path(work))


def _compile(copy: Path) -> None:
    options = ["-s", str(copy), "-p", f"{PREFIX}/app", "--invalidation-mode", "unchecked-hash", str(copy)]
    compiler = [*host_command("python3"), "-I", "-S", "-B", "-m", "compileall", "-q", *options]
    result = subprocess.run(compiler, env={}, capture_output=True, text=True, check=False)
    if result.returncode:
        raise SandboxError(f"The action server does not compile: {result.stdout}{result.stderr}")


def _move_unused(cache: Path, target: Path) -> None:
    """Move old copies, and leftovers of killed processes, to a folder that is removed; never leave half a copy."""
    for old in (*cache.glob("inside-*"), *cache.glob(".inside-*")):
        with suppress(FileNotFoundError):  # another process does the same
            if old.stat().st_mtime < time.time() - UNUSED_SECONDS:
                old.rename(target / old.name)

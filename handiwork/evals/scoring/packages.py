"""Packages that benchmarks need as data, or as separate programs: fetched once, never imported."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from handiwork.evals.benchmark import DataError
from handiwork.llm.local.package_client import package_client
from handiwork.paths import cache_dir, locked

OUTPUT_LIMIT = 800
"""The maximum number of characters shown from the end of a package client's output."""


def fetched(requirement: str, sha256: str = "") -> Path:
    """Return a folder with a package's wheel, verified by its SHA-256; without a hash, with all its dependencies.

    ``requirement`` is like "miniwob==1.1.0". Raises DataError if it cannot be fetched.
    """
    name = hashlib.sha256(f"{requirement} {sha256} {sys.implementation.cache_tag}".encode()).hexdigest()[:12]
    folder = cache_dir() / "packages" / f"{requirement.replace('==', '-')}-{name}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_name(f"{folder.name}.lock"), flags=os.O_RDWR | os.O_CREAT):
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=folder.parent) as directory:
                _install(requirement, sha256, Path(directory))
                (Path(directory) / "tree").rename(folder)
    return folder


def _install(requirement: str, sha256: str, directory: Path) -> None:
    """Install the package into the folder ``tree`` of a directory."""
    requirements = directory / "wanted.txt"
    requirements.write_text(f"{requirement} --hash=sha256:{sha256}\n" if sha256 else f"{requirement}\n")
    pins = ["--only-binary", ":all:", "--no-deps", "--require-hashes"] if sha256 else []
    options = [*pins, "--target", str(directory / "tree"), "-r", str(requirements)]
    client = package_client()
    if not client:
        raise DataError("fetching packages needs pip or uv, and neither is on PATH: install one of them")
    process = subprocess.run([*client, *options], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if process.returncode:
        output = " ".join(f"{process.stdout} {process.stderr}".split())[-OUTPUT_LIMIT:]
        raise DataError(f"{requirement} cannot be fetched: {output}")

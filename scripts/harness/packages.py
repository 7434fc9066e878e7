"""Debian packages, unpacked where they can be used without being installed; of this release or another."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
APT = ("apt-get", "-qq", "-oAPT::Sandbox::User=root")


def unpacked(packages: Sequence[str], cache: Path, suite: str = "") -> Path:
    """A directory with the packages, and with all they depend on if a suite is named; made once."""
    name = hashlib.sha256(b"\0".join([suite.encode(), *map(str.encode, packages)])).hexdigest()[:12]
    target = cache / f"packages-{name}"
    if not target.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as work:
            archives = Path(work, "cache/archives")
            (archives / "partial").mkdir(parents=True)
            if suite:
                _fetch_with_dependencies(packages, suite, Path(work), cache)
            else:
                _fetch(packages, archives, cache)
            root = Path(work, "root")
            root.mkdir()
            # First the package that says where /bin and /lib lead.
            for archive in sorted(
                archives.glob("*.deb"), key=lambda path: (not path.name.startswith("base-files"), path)
            ):
                with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE) as files:
                    _run("tar", "-x", "--keep-directory-symlink", "-C", str(root), stdin=files.stdout)
                assert files.returncode == 0
            root.rename(target)
    return target


def _fetch(packages: Sequence[str], archives: Path, cache: Path) -> None:
    """Download them, by lists of our own where the machine's packages are not where its lists say."""
    try:
        _run(*APT, *_lists(cache), "download", *packages, cwd=archives)
    except AssertionError:
        _run(*APT, *_own_lists(cache), "download", *packages, cwd=archives)


def _lists(cache: Path) -> list[str]:
    """The options with which apt knows packages: none where somebody ran ``apt-get update``."""
    return [] if _run("apt-get", "indextargets", "Created-By: Packages") else _own_lists(cache)


def _own_lists(cache: Path) -> list[str]:
    """Fetch lists, which takes no rights, and return the options that make apt use them."""
    lists = cache / "lists-here"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    options = [f"-oDir::State::Lists={lists}", f"-oDir::Cache={cache}/cache-here"]
    (cache / "cache-here/archives/partial").mkdir(parents=True, exist_ok=True)
    _run(*APT, *options, "update")
    return options


def _fetch_with_dependencies(packages: Sequence[str], suite: str, work: Path, cache: Path) -> None:
    """Let apt resolve them as on a machine where nothing is installed, from the mirror that this one uses."""
    lists = cache / f"lists-{suite}"
    mirror = _run(
        "apt-get", *_lists(cache), "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian"
    )
    (work / "sources").write_text(f"deb [signed-by={KEYS}] {mirror.split()[0]} {suite} main\n")
    (work / "status").touch()
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    settings = {
        "APT::Install-Recommends": "false",
        "Acquire::Languages": "none",
        "Dir::Cache": work / "cache",
        "Dir::Etc::SourceList": work / "sources",
        "Dir::Etc::SourceParts": "-",
        "Dir::State::Lists": lists,
        "Dir::State::status": work / "status",
    }
    options = [f"-o{name}={value}" for name, value in settings.items()]
    _run(*APT, *options, "update")
    _run(*APT, *options, "--yes", "--download-only", "install", *packages)


def _run(*command: str, cwd: Path | None = None, stdin: IO[bytes] | int | None = subprocess.DEVNULL) -> str:
    done = subprocess.run(command, cwd=cwd, stdin=stdin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout

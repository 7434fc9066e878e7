"""Debian packages, unpacked where they can be used without being installed; of this release or another."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"


def unpacked(packages: Sequence[str], cache: Path, suite: str = "") -> Path:
    """A directory with the packages, and with all they depend on if a suite is named; made once."""
    name = hashlib.sha256(b"\0".join([suite.encode(), *map(str.encode, packages)])).hexdigest()[:12]
    target = cache / f"packages-{name}"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=cache) as work:
            archives = Path(work, "cache/archives")
            (archives / "partial").mkdir(parents=True)
            if suite:
                _fetch_with_dependencies(packages, suite, Path(work), cache / f"lists-{suite}")
            else:
                _run("apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", *packages, cwd=archives)
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


def _fetch_with_dependencies(packages: Sequence[str], suite: str, work: Path, lists: Path) -> None:
    """Let apt resolve them as on a machine where nothing is installed, from the mirror that this one uses."""
    mirror = _run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian")
    (work / "sources").write_text(f"deb [signed-by={KEYS}] {mirror.split()[0]} {suite} main\n")
    (work / "status").touch()
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    settings = {
        "APT::Sandbox::User": "root",
        "APT::Install-Recommends": "false",
        "Acquire::Languages": "none",
        "Dir::Cache": work / "cache",
        "Dir::Etc::SourceList": work / "sources",
        "Dir::Etc::SourceParts": "-",
        "Dir::State::Lists": lists,
        "Dir::State::status": work / "status",
    }
    options = [f"-o{name}={value}" for name, value in settings.items()]
    _run("apt-get", "-qq", *options, "update")
    _run("apt-get", "-qq", *options, "--yes", "--download-only", "install", *packages)


def _run(*command: str, cwd: Path | None = None, stdin: IO[bytes] | int | None = subprocess.DEVNULL) -> str:
    done = subprocess.run(command, cwd=cwd, stdin=stdin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout

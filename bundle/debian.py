"""Debian packages, downloaded with apt and unpacked without being installed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from steps import HERE, BuildError, run

APT = ("apt-get", "-qq", "-o", "APT::Sandbox::User=root")  # its own user could not write where we do


class PackagesError(BuildError):
    """apt-get does not give the packages."""


def apt_download(lists: Sequence[str], packages: Iterable[str], *options: str, cwd: Path) -> str:
    """Run ``apt-get download`` for the packages. Raises PackagesError."""
    try:
        return run([*APT, *lists, *options, "download", *packages], cwd)
    except BuildError as error:
        raise PackagesError(f"{error}\nIt is made from Debian 12 packages, which apt-get must offer.") from error


def private_lists(folder: Path) -> list[str]:
    """Fetch package lists of our own, which takes no rights, and return the options that make apt-get use them."""
    for part in ("lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    options = ["-o", f"Dir::State::lists={folder}/lists", "-o", f"Dir::Cache={folder}/cache"]
    run([*APT, *options, "update"])
    return options


def versions(lists: Sequence[str], packages: Iterable[str]) -> dict[str, str]:
    """Return each package's file name, size and checksum, by its name."""
    listing = apt_download(lists, packages, "--print-uris", cwd=HERE)
    # The first field is the mirror's address, which does not change what is in the package.
    files = [line.split(" ", 1)[1] for line in listing.splitlines() if line]
    return {file.split("_", 1)[0]: file for file in files}


def unpack(lists: Sequence[str], packages: Iterable[str], work: Path) -> Path:
    """Download the packages into ``work`` and return the folder there that holds their files."""
    archives, stage = work / "packages", work / "stage"
    archives.mkdir()
    apt_download(lists, packages, cwd=archives)
    for package in sorted(archives.iterdir()):
        run(["dpkg-deb", "-x", package, stage])
        package.unlink()
    return stage

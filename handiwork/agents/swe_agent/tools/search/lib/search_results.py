"""Searches of files whose results a model can read at once: 50 at most, and advice to narrow the search."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import islice
from typing import NoReturn

MOST = 50
"""The number of results that are printed."""
LONGEST = 200
"""Characters shown of a line."""
LARGEST = 20_000_000
"""Bytes of the largest file that is searched."""
SKIPPED = {"node_modules", "site-packages", "dist-packages", "__pycache__"}


def fail(message: str) -> NoReturn:
    """Print the message for the model and exit with 1."""
    sys.stdout.write(message + "\n")
    sys.exit(1)


def directory(path: str) -> str:
    """Return the directory, or fail."""
    if not os.path.isdir(path):
        fail(f"Error: there is no directory {path}.")
    return path


def files(folder: str) -> Iterator[str]:
    """Yield the files below the folder by name, without hidden ones and those of installed packages."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in SKIPPED)
        yield from (os.path.join(parent, name) for name in sorted(names) if not name.startswith("."))


def named(folder: str, pattern: str) -> list[str]:
    """Return the files whose name, or path from the folder, matches the pattern."""
    return [
        path
        for path in files(folder)
        if fnmatchcase(os.path.basename(path), pattern) or fnmatchcase(os.path.relpath(path, folder), pattern)
    ]


def matches(paths: Iterable[str], term: str) -> Iterator[tuple[str, int, str]]:
    """Yield path, line number and line of each line that has the term; binary files are left out."""
    wanted = term.encode("utf-8", "surrogateescape")
    for path in paths:
        try:
            if not os.path.isfile(path) or os.path.getsize(path) > LARGEST:
                continue
            with open(path, "rb") as file:
                data = file.read()
        except OSError:
            continue
        if wanted not in data or b"\0" in data[:8192]:
            continue
        for number, line in enumerate(data.split(b"\n"), 1):
            if wanted in line:
                yield path, number, line.decode("utf-8", "replace").strip()[:LONGEST]


def report(rows: Iterable[str], what: str, advice: str) -> None:
    """Print the rows, at most MOST, and their number, with the advice if there are more."""
    listed = list(islice(rows, 100 * MOST))
    if not listed:
        sys.stdout.write(f"No matches found for {what}.\n")
        return
    number = f"{len(listed)}{'+' * (len(listed) == 100 * MOST)} match{'es' * (len(listed) > 1)}"
    sys.stdout.write(f"Found {number} for {what}:\n")
    sys.stdout.write("".join(f"{row}\n" for row in listed[:MOST]))
    if len(listed) > MOST:
        sys.stdout.write(f"More than {MOST} results: only the first {MOST} are shown. {advice}\n")
    else:
        sys.stdout.write(f"End of matches for {what}.\n")


def short(path: str) -> str:
    """Return the path from the current directory if it is below it, else the whole path."""
    relative = os.path.relpath(path)
    return os.path.abspath(path) if relative.startswith("..") else relative

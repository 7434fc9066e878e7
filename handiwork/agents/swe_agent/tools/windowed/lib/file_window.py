"""The open file and the window on it, for the tools that show and edit files.

Lines are bytes that end at a newline, so that an edit leaves all other bytes unchanged, in any encoding.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, NoReturn, cast

import registry as variables  # pyright: ignore

registry = cast("Any", variables).registry

LONGEST = 1_000
"""Characters shown of a line."""
SKIPPED = {"node_modules", "site-packages", "dist-packages", "__pycache__"}
WALKED, NAMED = 20_000, 3
"""Files and directories that are searched for a missing file's name, and files with a similar one that are told."""


def fail(message: str) -> NoReturn:
    """Print the message for the model and exit with 1."""
    sys.stdout.write(message.rstrip("\n") + "\n")
    sys.exit(1)


def number(text: str, usage: str) -> int:
    """Return the number, or fail with the usage."""
    try:
        return int(text)
    except ValueError:
        fail(f"{usage}\nError: {text!r} is not a line number.")


def split(data: bytes) -> list[bytes]:
    """Return the lines, each with its end."""
    pieces = data.split(b"\n")
    return [piece + b"\n" for piece in pieces[:-1]] + [piece for piece in pieces[-1:] if piece]


class FileWindow:
    """The window on a file; ``first`` is its first line, counted from 0. Only ``save`` writes the file."""

    def __init__(self, path: str | None = None) -> None:
        """Open ``path``, or the file that is open; fail without one."""
        name = path or str(registry.get("CURRENT_FILE") or "")
        if not name:
            fail("No file is open: use `open` first.")
        self.path = Path(os.path.realpath(name))
        if self.path.is_dir():
            fail(f"Error: {name} is a directory: `ls {name}` lists its files.")
        try:
            self.lines = split(self.path.read_bytes())
        except FileNotFoundError:
            fail(f"Error: there is no file {name}.\n{_alike(name)}")
        except OSError as error:
            fail(f"Error: {name} cannot be read: {error.strerror}.")
        self.size = max(1, int(registry.get("WINDOW", 100)))
        self.overlap = int(registry.get("OVERLAP", 2))
        is_open = str(self.path) == registry.get("CURRENT_FILE")
        self.first = int(registry.get("FIRST_LINE", 0)) if is_open else 0

    def goto(self, line: int) -> None:
        """Move the window so that the line, counted from 1, is in its upper part."""
        self.first = line - 1 - self.size // 6

    def scroll(self, direction: int) -> None:
        """Move the window by its size, a few lines less."""
        self.first += direction * max(1, self.size - self.overlap)

    def save(self, lines: list[bytes]) -> None:
        """Write the lines as the whole file."""
        try:
            self.path.write_bytes(b"".join(lines))
        except OSError as error:
            fail(f"Error: {self.path} cannot be written: {error.strerror}.")
        self.lines = lines

    def show(self) -> None:
        """Print the window, and remember it."""
        self.first = max(0, min(self.first, len(self.lines) - self.size))
        registry["CURRENT_FILE"], registry["FIRST_LINE"] = str(self.path), self.first
        sys.stdout.write(self.text(self.lines))

    def text(self, lines: list[bytes]) -> str:
        """Return the window on these lines of the file."""
        last = min(self.first + self.size, len(lines))
        rows = [f"[File: {self.path} ({len(lines)} lines total)]"]
        rows += [f"({self.first} more lines above)"] * (self.first > 0)
        rows += [f"{n + 1}:{_shown(lines[n])}" for n in range(self.first, last)]
        rows += [f"({len(lines) - last} more lines below)"] * (last < len(lines))
        return "\n".join(rows) + "\n"


def _alike(name: str) -> str:
    """Return the line that names files below this directory whose name is the same or nearly so, "" without any."""
    from difflib import get_close_matches  # here, so that no other call waits for it

    wanted, seen = os.path.basename(name).lower(), 0
    paths: dict[str, list[str]] = {}
    for folder, folders, files in os.walk("."):
        folders[:] = sorted(one for one in folders if not one.startswith(".") and one not in SKIPPED)
        for file in sorted(files):
            paths.setdefault(file.lower(), []).append(os.path.join(folder, file)[2:])
        seen += 1 + len(files)
        if seen > WALKED:
            break
    names = [wanted] if wanted in paths else get_close_matches(wanted, paths, NAMED, 0.8)
    found = [path for one in names for path in paths[one]][:NAMED]
    return f"Files with a similar name: {', '.join(found)}." if found else ""


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "replace").rstrip("\r\n")
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} [... {len(text) - LONGEST} more characters]"

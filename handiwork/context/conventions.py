"""A convention: a text of the project, the user or a package that a session may load; and its safe reading."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from handiwork.context.characters import hidden_kinds, one_line, visible
from handiwork.errors import WorkspaceError
from handiwork.events.record import ContextKind, ContextOrigin
from handiwork.workspace.files.safe_open import DIRECTORY, FILE, open_beneath

CHARACTERS = 3
"""Characters of a token, if the model did not count: more in English, fewer in data."""

LARGEST = 256 * 1024
"""Bytes of the largest file that is read."""

LONGEST, LONGEST_TOGETHER = 32_000, 65_000
"""Characters of one text that join the prompt, and of all instructions together."""

ABOVE = "../"
"""Begins the paths of conventions from the folders around the workspace, which no sandbox has."""

LINKED = "a part of its path is a symbolic link or no folder, and links are not followed"

_TYPES = (
    (stat.S_ISLNK, "it is a symbolic link, and links are not followed: put the text there itself"),
    (stat.S_ISDIR, "it is a folder"),
    (stat.S_ISFIFO, "it is a named pipe, not a file"),
    (stat.S_ISSOCK, "it is a socket, not a file"),
    (stat.S_ISCHR, "it is a device, not a file"),
    (stat.S_ISBLK, "it is a device, not a file"),
)


class UnreadableError(Exception):
    """A file exists, but cannot be a convention; the text gives the reason."""


@dataclass(frozen=True)
class Convention:
    """A convention that was found, loaded or not.

    ``path`` is relative to the workspace for the origin "workspace", else absolute. ``text`` joins the prompt; the user
    judges ``shown``, in which hidden characters are escaped, and accepts its ``sha256``. ``problem`` is the reason why
    it cannot load, even if accepted; ``notes`` list cut, ignored and suspicious parts. ``size`` counts the characters
    that the agent reads on demand, of a skill. The text of a ``redundant`` one loads under another path.
    """

    kind: ContextKind
    origin: ContextOrigin
    path: str
    text: str = ""
    shown: str = ""
    sha256: str = ""
    problem: str = ""
    notes: tuple[str, ...] = ()
    size: int = 0
    redundant: bool = False

    @property
    def tokens(self) -> int:
        """The estimated number of tokens that the convention takes in every prompt."""
        return tokens_of(len(self.text)) if self.kind in ("instructions", "skill") else 0

    @property
    def folder(self) -> str:
        """The folder that the convention applies to, relative to the workspace; "" is the top."""
        return self.path.rpartition("/")[0]


def tokens_of(characters: int) -> int:
    """Return the estimated tokens of a text with this number of characters."""
    return -(-characters // CHARACTERS)


@contextmanager
def opened(root: Path) -> Generator[int]:
    """Yield a descriptor of a directory, to read files beneath it. Raises WorkspaceError."""
    try:
        descriptor = os.open(root, DIRECTORY)
    except OSError as error:
        raise WorkspaceError(f"{root} cannot be read: {error.strerror}; name a directory") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def folders_around(workspace: Path) -> Iterator[tuple[str, int]]:
    """Yield the folders around a workspace up to its repository's root, the nearest first; none without a repository.

    Each is a prefix of paths, like ``../``, and a descriptor. Folders that the user may not read are left out.
    """
    folders = [workspace, *workspace.parents]
    number = next((number for number, folder in enumerate(folders) if os.path.lexists(folder / ".git")), 0)
    for height in range(1, number + 1):
        with suppress(WorkspaceError), opened(folders[height]) as descriptor:
            yield ABOVE * height, descriptor


def exists(root: int, path: str) -> bool:
    """Return whether there is a file or folder at a path beneath an open directory, without following links."""
    try:
        os.close(open_beneath(root, path, os.O_PATH))
    except OSError:
        return False
    return True


def read_file(root: int, path: str, largest: int = LARGEST) -> bytes | None:
    """Return the bytes of a regular file beneath an open directory; None if there is none. Raises UnreadableError.

    Follows no link in any part of the path, opens no pipe and no device, and reads at most ``largest`` bytes.
    """
    try:
        handle = open_beneath(root, path, os.O_PATH)
        try:
            status = os.fstat(handle)
        finally:
            os.close(handle)
        for is_type, problem in _TYPES:
            if is_type(status.st_mode):
                raise UnreadableError(problem)
        with open(open_beneath(root, path, FILE), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UnreadableError("it changed while it was read")
            content = file.read(largest + 1)
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise UnreadableError(LINKED) from None
    except OSError as error:
        raise UnreadableError(f"it cannot be read: {error.strerror}") from None
    if len(content) > largest:
        raise UnreadableError(f"it has more than {largest // 1024} KiB")
    return content


def text_of(content: bytes) -> str:
    """Return a file's text, with its line ends as newlines. Raises UnreadableError if it is not text in UTF-8."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadableError("it is not text in UTF-8") from None
    if "\0" in text:
        raise UnreadableError("it is binary data, not text")
    return text.replace("\r\n", "\n")


def digest(content: bytes) -> str:
    """Return the SHA-256 in hex."""
    return hashlib.sha256(content).hexdigest()


def instructions(origin: ContextOrigin, path: str, content: bytes) -> Convention:
    """Return the convention of an AGENTS.md or the like; its text is bounded, and its hidden characters are escaped."""
    try:
        text = text_of(content)
    except UnreadableError as error:
        return Convention("instructions", origin, path, sha256=digest(content), problem=str(error))
    notes = warnings(text)
    shown = visible(text)
    loaded = shown.strip()
    if not loaded:
        return Convention("instructions", origin, path, sha256=digest(content), problem="it is empty")
    if len(loaded) > LONGEST:
        rest = len(loaded) - LONGEST
        where = f": read {one_line(path)}" if origin == "workspace" and not path.startswith(ABOVE) else ""
        loaded = f"{loaded[:LONGEST]}\n[{rest} more characters are left out{where}]"
        notes = (*notes, f"its last {rest} of {LONGEST + rest} characters are cut")
    return Convention("instructions", origin, path, loaded, shown, digest(content), notes=notes)


def warnings(text: str) -> tuple[str, ...]:
    """Return the warning about a text's hidden characters, if it has any."""
    kinds = hidden_kinds(text)
    return (f"WARNING: it hides {', '.join(kinds)}, shown as escapes like \\u200b",) if kinds else ()

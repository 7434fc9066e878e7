"""Text of any size in bounded space: its two ends in memory, the whole (up to a limit) in a file."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

KEPT = 256 * 1024
"""Bytes of each end that are kept in memory."""

SPOOLED = 64 << 20
"""Bytes from the start that are kept in the file."""


@dataclass(frozen=True, slots=True)
class Keep:
    """The bytes of each end of a long text that an observation holds; each at most KEPT // 2."""

    head: int = 8192
    tail: int = 8192

    def __post_init__(self) -> None:
        object.__setattr__(self, "head", max(0, min(self.head, KEPT // 2)))
        object.__setattr__(self, "tail", max(0, min(self.tail, KEPT // 2)))


@dataclass(frozen=True, slots=True)
class Text:
    """An observation's view of a text: all of it, or its two ends and the id of the spool with the whole."""

    content: str
    tail: str
    size: int
    spool: str | None

    def fields(self) -> dict[str, object]:
        """Return the fields that every observation has."""
        return {
            "content": self.content,
            "tail": self.tail,
            "size": self.size,
            "blob": None,
            "spool": self.spool,
        }


class Spools:
    """Files that hold whole texts until they are fetched and deleted."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def new(self) -> str:
        """Return the id of a new spool."""
        return secrets.token_hex(16)

    def path(self, spool: str) -> Path:
        """Return the spool's path; raises FileNotFoundError if the id is invalid."""
        if len(spool) != 32 or not spool.isalnum():
            raise FileNotFoundError(spool)
        return self._directory / spool

    def delete(self, spool: str) -> None:
        """Remove the spool if it exists."""
        self.path(spool).unlink(missing_ok=True)


class Output:
    """Collects any number of bytes."""

    def __init__(self, spools: Spools) -> None:
        self.size = 0
        self._spools = spools
        self._spool: str | None = None
        self._file: int | None = None
        self._incomplete = False
        self._spooled = 0
        self._head = bytearray()
        self._tail = bytearray()

    def feed(self, data: bytes) -> None:
        """Add bytes. A full disk loses the copy of the whole text, not its ends."""
        self.size += len(data)
        room = KEPT - len(self._head)
        self._head += data[:room]
        rest = data[room:]
        if not rest:
            return
        self._write(rest)
        self._tail += rest
        if len(self._tail) > 2 * KEPT:
            del self._tail[:-KEPT]

    def start(self) -> bytes:
        """Return the first bytes, at most KEPT."""
        return bytes(self._head)

    def take(self, keep: Keep, *, final: bool = True) -> tuple[Text, bytes]:
        """Close the collection; return its text, and, unless ``final``, the bytes of a character cut at the end."""
        fits = self.size <= keep.head + keep.tail
        if fits:
            cut = b"" if final else incomplete_suffix(self._head)
            data = self._head[: len(self._head) - len(cut)]
            return Text(decode(data), "", len(data), None), bytes(cut)
        if self._spool is None:
            self._write(b"")
        head = bytes(self._head[: keep.head])
        ending = self._tail[-keep.tail :] if len(self._tail) >= keep.tail else (self._head + self._tail)[-keep.tail :]
        tail = bytes(ending) if keep.tail else b""
        self.discard(keep_spool=not self._incomplete)
        head = head[: len(head) - len(incomplete_suffix(head))]
        end = decode(_skip_partial_character(tail))
        if self.size > SPOOLED and self._spool is not None:
            end += f"\n[of these {self.size} bytes only the first {SPOOLED} and this end were kept]"
        return Text(decode(head), end, self.size, self._spool), b""

    def discard(self, *, keep_spool: bool = False) -> None:
        """Close the file and remove it, unless ``keep_spool``."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if self._spool is not None and not keep_spool:
            self._spools.delete(self._spool)
            self._spool = None

    def _write(self, data: bytes) -> None:
        if self._incomplete:
            return
        try:
            if self._file is None:
                self._spool = self._spools.new()
                self._file = os.open(self._spools.path(self._spool), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                write_all(self._file, bytes(self._head))
                self._spooled = len(self._head)
            data = data[: SPOOLED - self._spooled]
            write_all(self._file, data)
            self._spooled += len(data)
        except OSError:
            self._incomplete = True
            self.discard()


def decode(data: bytes | bytearray) -> str:
    """Return the text of UTF-8 bytes, with invalid bytes as backslash escapes."""
    return data.decode("utf-8", "backslashreplace")


def incomplete_suffix(data: bytes | bytearray) -> bytes:
    """Return the bytes at the end that start a UTF-8 character but do not complete it."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return bytes(data[-back:]) if back < length else b""
        if byte < 0x80:
            return b""
    return b""


def _skip_partial_character(data: bytes) -> bytes:
    start = 0
    while start < min(3, len(data)) and 0x80 <= data[start] < 0xC0:
        start += 1
    return data[start:]


def write_all(file: int, data: bytes) -> None:
    """Write all of ``data`` to a descriptor; raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]

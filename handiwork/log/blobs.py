"""Large payloads as files named by their content."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import hashlib
import os
import re
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Collection, Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, ParamSpec, TypeVar

from handiwork.log.errors import BlobMissing, LogError
from handiwork.log.redaction.redactor import Redactor
from handiwork.paths import lock, locked

P = ParamSpec("P")
T = TypeVar("T")
_DIGEST = re.compile(r"[0-9a-f]{64}")

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})

_MAX_HELD = 64
"""Maximum number of held blobs; the oldest are released first."""


class FileState(NamedTuple):
    """The state of a blob's file when it was listed; storing the same bytes again changes the times."""

    size: int
    inode: int
    modified: int
    changed: int


class Blobs:
    """Immutable files below ``folder``, each named by the SHA-256 of its content.

    A blob is stored whole or not at all, even if the process or the machine dies, and without the secrets that
    ``redactor`` knows. A new blob is held, by a lock on its file that ends with the process, until an event refers to
    it. Held blobs are never removed.
    """

    def __init__(self, folder: Path, redactor: Redactor) -> None:
        self._folder = folder
        self._redactor = redactor
        self._held: OrderedDict[str, int] = OrderedDict()

    async def put(self, data: bytes | AsyncIterator[bytes]) -> str:
        """Store the bytes, redacted; return their SHA-256 in hex. Raises LogError if they cannot be written."""
        part = self._folder / f"part-{secrets.token_hex(8)}"
        with self._errors():
            file = self._create(part)
        try:
            digest, pieces = hashlib.sha256(), self._redactor.pieces()
            async for piece in _single_piece(data) if isinstance(data, bytes) else data:
                await self._disk(self._add, file, digest, pieces.feed_bytes, piece)
            await self._disk(self._add, file, digest, lambda _: pieces.end_bytes(), b"")
            name = digest.hexdigest()
            self._remember(name, await self._disk(self._finish, file, part, name))
            return name
        finally:
            os.close(file)
            part.unlink(missing_ok=True)

    def hold(self, digest: str) -> None:
        """Hold a stored blob until an event refers to it. Raises BlobMissing."""
        with self._errors(), self._locked():
            path = self.path(digest)
            self._remember(digest, self._hold(path))

    def release(self, texts: Iterable[str]) -> None:
        """Release the blobs that the JSON texts of stored events refer to."""
        if self._held:
            for digest in digests_in(texts):
                if (descriptor := self._held.pop(digest, None)) is not None:
                    os.close(descriptor)

    def close(self) -> None:
        """Release all blobs."""
        while self._held:
            os.close(self._held.popitem()[1])

    def listed(self, among: Collection[str] | None = None) -> dict[str, FileState]:
        """Return the stored blobs, only those ``among`` the digests if given."""
        names = self._all() if among is None else among
        return {name: state for name in names if (state := _file_state(self._path_of(name))) is not None}

    def remove(self, listed: dict[str, FileState]) -> int:
        """Remove the listed blobs, except those held or stored again since; return the bytes freed."""
        freed = 0
        for digest, state in listed.items():
            with self._errors(), self._locked():
                freed += _remove_unheld(self._path_of(digest), state)
        return freed

    def remove_parts(self) -> int:
        """Remove the unfinished files of killed processes; return the bytes freed."""
        freed = 0
        for part in self._folder.glob("part-*"):
            with self._errors(), self._locked():
                freed += _remove_unheld(part, _file_state(part))
        return freed

    def _all(self) -> Iterator[str]:
        for path in self._folder.glob("[0-9a-f][0-9a-f]/*"):
            if _DIGEST.fullmatch(path.name):
                yield path.name

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Keep other processes from adding or removing blobs; held only briefly."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(self._folder):
            yield

    def _remember(self, digest: str, descriptor: int) -> None:
        if (previous := self._held.pop(digest, None)) is not None:
            os.close(previous)
        self._held[digest] = descriptor
        if len(self._held) > _MAX_HELD:
            os.close(self._held.popitem(last=False)[1])

    @staticmethod
    def _hold(path: Path) -> int:
        """Return a descriptor that holds the blob; update its times to mark it as used."""
        descriptor = lock(path, fcntl.LOCK_SH)
        os.utime(descriptor)
        return descriptor

    async def _disk(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the work in a thread and wait for it even if cancelled: it uses an open file."""
        working = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
        with self._errors():
            try:
                return await asyncio.shield(working)
            except asyncio.CancelledError:
                await asyncio.wait([working])
                raise

    @contextmanager
    def _errors(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            advice = "free some space on its disk, then resume the session" if error.errno in _FULL else "try again"
            raise LogError(f"cannot store a file in {self._folder}: {error.strerror}; {advice}") from error

    def _create(self, part: Path) -> int:
        with self._locked():
            return lock(part, fcntl.LOCK_SH, os.O_CREAT | os.O_EXCL | os.O_WRONLY)

    @staticmethod
    def _add(
        file: int,
        digest: hashlib._Hash,  # pyright: ignore[reportPrivateUsage]
        clear: Callable[[bytes], bytes],
        piece: bytes,
    ) -> None:
        data = clear(piece)
        digest.update(data)
        remaining = memoryview(data)
        while remaining:
            remaining = remaining[os.write(file, remaining) :]

    def _finish(self, file: int, part: Path, digest: str) -> int:
        """Give the blob its name and return a descriptor that holds it."""
        target = self._path_of(digest)
        if not target.exists():
            os.fsync(file)  # a crash must not leave the name of a blob whose bytes are lost
        with self._locked():
            if target.exists():
                return self._hold(target)
            os.fsync(file)  # needed if the existing blob was removed meanwhile
            target.parent.mkdir(mode=0o700, exist_ok=True)
            os.replace(part, target)
            return os.dup(file)

    def _path_of(self, digest: str) -> Path:
        return self._folder / digest[:2] / digest

    def path(self, digest: str) -> Path:
        """Return the path of the blob's file, which is read-only to callers. Raises BlobMissing."""
        if _DIGEST.fullmatch(digest) and (path := self._path_of(digest)).is_file():
            return path
        raise BlobMissing(f"there is no blob {digest[:64]!r} in {self._folder}; it may have been deleted")

    async def get(self, digest: str) -> bytes:
        """Return the whole blob. Raises BlobMissing."""
        return await asyncio.to_thread(lambda: self.path(digest).read_bytes())

    async def read(self, digest: str, offset: int, length: int) -> bytes:
        """Return up to ``length`` bytes from ``offset``, fewer at the end. Raises BlobMissing."""

        def read() -> bytes:
            with self.path(digest).open("rb") as file:
                file.seek(offset)
                return file.read(length)

        return await asyncio.to_thread(read)

    async def size(self, digest: str) -> int:
        """Return the blob's size in bytes. Raises BlobMissing."""
        return await asyncio.to_thread(lambda: self.path(digest).stat().st_size)


def digests_in(texts: Iterable[str]) -> set[str]:
    """Return every possible blob digest in the JSON texts of events of any type."""
    return {digest for text in texts for digest in _DIGEST.findall(text)}


def _file_state(path: Path) -> FileState | None:
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return FileState(stat.st_size, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns)


def _remove_unheld(path: Path, state: FileState | None) -> int:
    """Remove a file that is unchanged and not held; return its size, or 0 if it stays."""
    if state is None or _file_state(path) != state:
        return 0
    try:
        with locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB):
            path.unlink()
    except BlockingIOError:
        return 0
    return state.size


async def _single_piece(data: bytes) -> AsyncIterator[bytes]:
    yield data

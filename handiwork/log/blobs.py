"""Large payloads as files named by their content."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import secrets
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import ParamSpec, TypeVar

from handiwork.log.errors import BlobMissing, LogError
from handiwork.log.redaction import Redactor

P = ParamSpec("P")
T = TypeVar("T")
_DIGEST = re.compile(r"[0-9a-f]{64}")


class Blobs:
    """The files below ``folder``, each named by the SHA-256 of its bytes, which it therefore always has.

    A blob is there wholly or not at all, whenever the process or the machine dies, and without the secrets that
    ``redactor`` knows.
    """

    def __init__(self, folder: Path, redactor: Redactor) -> None:
        self._folder = folder
        self._redactor = redactor

    async def put(self, data: bytes | AsyncIterator[bytes]) -> str:
        """Keep the bytes, without secrets; return their SHA-256 in hex. Raises LogError if they cannot be written."""
        part = self._folder / f"part-{secrets.token_hex(8)}"
        with self._errors():
            file = self._create(part)
        try:
            digest, pieces = hashlib.sha256(), self._redactor.pieces()
            async for piece in _once(data) if isinstance(data, bytes) else data:
                await self._disk(self._add, file, digest, pieces.feed_bytes, piece)
            await self._disk(self._add, file, digest, lambda _: pieces.end_bytes(), b"")
            return await self._disk(self._finish, file, part, digest.hexdigest())
        finally:
            os.close(file)
            part.unlink(missing_ok=True)

    async def _disk(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do the work in a thread and, even if cancelled, wait for its end: a file in use must stay open."""
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
            raise LogError(f"a file cannot be kept in {self._folder}: {error.strerror}") from error

    def _create(self, part: Path) -> int:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)

    @staticmethod
    def _add(
        file: int,
        digest: hashlib._Hash,  # pyright: ignore[reportPrivateUsage]
        clear: Callable[[bytes], bytes],
        piece: bytes,
    ) -> None:
        data = clear(piece)
        digest.update(data)
        left = memoryview(data)
        while left:
            left = left[os.write(file, left) :]

    def _finish(self, file: int, part: Path, digest: str) -> str:
        target = self._place(digest)
        if not target.exists():
            os.fsync(file)  # a name that outlives its bytes would stand for a broken blob for ever
            target.parent.mkdir(mode=0o700, exist_ok=True)
            os.replace(part, target)
        return digest

    def _place(self, digest: str) -> Path:
        return self._folder / digest[:2] / digest

    def path(self, digest: str) -> Path:
        """Return the blob's file, which must not be changed. Raises BlobMissing."""
        if _DIGEST.fullmatch(digest) and (place := self._place(digest)).is_file():
            return place
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
        """Return how many bytes the blob has. Raises BlobMissing."""
        return await asyncio.to_thread(lambda: self.path(digest).stat().st_size)


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data

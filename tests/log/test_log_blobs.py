"""Blobs are files named by what is in them."""

import asyncio
import hashlib
from collections.abc import AsyncIterator

import pytest

from handiwork.log.errors import BlobMissing
from handiwork.log.store import Store


async def pieces(*data: bytes) -> AsyncIterator[bytes]:
    for piece in data:
        yield piece


@pytest.mark.parametrize("content", [b"", b"abc", bytes(range(256)) * 40000])
async def test_what_was_put_is_got_by_its_digest(store: Store, content: bytes):
    digest = await store.blobs.put(content)
    assert digest == hashlib.sha256(content).hexdigest()
    assert await store.blobs.get(digest) == content
    assert await store.blobs.read(digest, 2, 5) == content[2:7]
    assert await store.blobs.size(digest) == len(content)
    assert store.blobs.path(digest).parent.name == digest[:2]


async def test_the_same_bytes_are_kept_once_however_they_come(store: Store):
    digests = await asyncio.gather(
        *(store.blobs.put(b"abcd") for _ in range(8)), store.blobs.put(pieces(b"ab", b"", b"cd"))
    )
    assert len(set(digests)) == 1
    folder = store.blobs.path(digests[0]).parent.parent
    assert [path.name for path in folder.rglob("*") if path.is_file()] == [digests[0]]


async def test_a_stream_that_breaks_leaves_nothing(store: Store):
    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionError("gone")

    digest = await store.blobs.put(b"whole")
    with pytest.raises(ConnectionError):
        await store.blobs.put(broken())
    folder = store.blobs.path(digest).parent.parent
    assert [path.name for path in folder.rglob("*") if path.is_file()] == [digest]


@pytest.mark.parametrize("digest", ["0" * 64, "", "../handiwork.db", "../" * 20 + "f" * 4])
async def test_a_digest_that_names_nothing_is_missing(store: Store, digest: str):
    with pytest.raises(BlobMissing, match="no blob"):
        await store.blobs.get(digest)

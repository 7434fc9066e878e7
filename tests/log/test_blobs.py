"""Blobs are files named by what is in them."""

import asyncio
import hashlib
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from handiwork.events.observation import CmdOutputObservation
from handiwork.log.errors import BlobMissing
from handiwork.log.eventlog import EventLog
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


async def record(log: EventLog, digest: str) -> None:
    async with log.lease():
        await log.append(CmdOutputObservation(command="x", exit_code=0, blob=digest, size=1, cause=1))


def kept(data: Path) -> list[str]:
    return sorted(path.name for path in (data / "blobs").rglob("*") if path.is_file())


async def test_a_deleted_session_takes_the_blobs_with_it_that_no_other_refers_to(store: Store, data: Path):
    one, other = [await store.create(agent="a", model="m") for _ in range(2)]
    own, shared = await store.blobs.put(b"own" * 1000), await store.blobs.put(b"shared" * 1000)
    for digest in (own, shared):
        await record(one, digest)
    fork = await one.fork(1)
    await record(other, shared)
    own_of_fork = await store.blobs.put(b"of the fork")
    await record(fork, own_of_fork)

    await store.delete(fork.id)
    assert kept(data) == sorted([own, shared])
    await store.delete(one.id)
    assert kept(data) == [shared]
    await store.delete(other.id)
    assert kept(data) == []


HOLD = """
import asyncio, pathlib, sys
from handiwork.log.store import Store
async def main():
    async with Store.open(pathlib.Path(sys.argv[1])) as store:
        await store.blobs.put(b"about to be recorded")
        async def endless():
            yield b"half of it"
            print("put", flush=True)
            await asyncio.sleep(1000)
        await store.blobs.put(endless())
asyncio.run(main())
"""


async def test_what_a_running_process_is_about_to_record_stays_until_it_is_killed(store: Store, data: Path):
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", HOLD, data, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        assert await process.stdout.readline() == b"put\n"
        assert await store.remove_blobs() == 0
        assert len(kept(data)) == 2
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()
    assert await store.remove_blobs() == len(b"about to be recorded") + len(b"half of it")
    assert kept(data) == []


async def test_what_was_kept_anew_since_it_was_listed_stays(store: Store, data: Path):
    digest = await store.blobs.put(b"abc")
    listed = store.blobs.listed()
    store.blobs.close()
    await store.blobs.put(b"abc")
    store.blobs.close()
    assert store.blobs.remove(listed) == 0
    assert store.blobs.remove(store.blobs.listed()) == 3
    with pytest.raises(BlobMissing):
        store.blobs.hold(digest)


async def test_what_events_refer_to_stays(store: Store, log: EventLog, data: Path):
    digest = await store.blobs.put(b"abc")
    await record(log, digest)
    assert await store.remove_blobs() == 0
    assert await store.blobs.get(digest) == b"abc"

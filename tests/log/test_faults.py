"""A database that fails gives one clear error, and no event is half there."""

import asyncio
import errno
import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from handiwork.events.action import MessageAction
from handiwork.events.base import UnknownEvent
from handiwork.log.database import Database
from handiwork.log.errors import LogError
from handiwork.log.store import Store

FILL = """
import asyncio, pathlib, sys
from handiwork.events.action import MessageAction
from handiwork.log.errors import LogError
from handiwork.log.store import Store
async def main():
    async with Store.open(pathlib.Path(sys.argv[1])) as store:
        log = await store.create(agent="a", model="m")
        pair = [MessageAction(content="x" * 50_000, source="user")] * 2
        stored = 0
        try:
            while True:
                stored += len(await log.append(*pair))
        except LogError as error:
            print(error)
        events = await log.read()
        assert stored and [event.id for event in events] == list(range(1, stored + 1)), (stored, len(events))
        assert await log.head() == stored
asyncio.run(main())
"""


FULL = """
import asyncio, pathlib, sys
from handiwork.log.errors import LogError
from handiwork.log.store import Store
data = pathlib.Path(sys.argv[1])
async def main():
    async with Store.open(data) as store:
        await store.create(agent="a", model="m")
    with (data / "rest").open("wb", buffering=0) as rest:
        try:
            while rest.write(bytes(4096)):
                pass
        except OSError:
            pass
    try:
        async with Store.open(data) as store:
            await store.create(agent="a", model="m")
    except LogError as error:
        print(error)
    (data / "rest").unlink()
    async with Store.open(data) as store:
        assert len(await store.sessions()) == 1
asyncio.run(main())
"""


RELEASE = """
import asyncio, pathlib, sys
from handiwork.log import lease
from handiwork.log.store import Store
lease.BEAT_SECONDS = 0.05
data = pathlib.Path(sys.argv[1])
async def main():
    async with Store.open(data) as store:
        log = await store.create(agent="a", model="m")
        with (data / "rest").open("wb", buffering=0) as rest:
            async with log.lease():
                try:
                    while rest.write(bytes(4096)):
                        pass
                except OSError:
                    pass
        held = await log.holder() is not None
        (data / "rest").unlink()
        await asyncio.sleep(1)
        async with log.lease():
            print("held" if held else "released")
asyncio.run(main())
"""


def test_a_lease_that_ends_while_the_disk_is_full_is_released_once_there_is_room(tmp_path: Path):
    assert "held" in run_on_small_disk(tmp_path, RELEASE)


def test_a_disk_that_is_full_before_the_log_is_opened_is_told(tmp_path: Path):
    assert "free some space" in run_on_small_disk(tmp_path, FULL)


def test_a_full_disk_is_told_and_what_was_stored_stays_readable(tmp_path: Path):
    said = run_on_small_disk(tmp_path, FILL)
    assert "free some space" in said
    assert "nothing of this operation was stored" in said


def run_on_small_disk(folder: Path, program: str) -> str:
    """Return what the program prints that is given a folder on a disk of 1,500 KiB."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"]).returncode:
        pytest.skip("needs a mount namespace")
    mount = 'mount -t tmpfs -o size=1500k none "$1" && exec "$2" -c "$3" "$1/data"'
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", mount, "sh", folder, sys.executable, program], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_a_file_that_is_no_database_is_refused(data: Path):
    data.mkdir()
    (data / "handiwork.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(LogError, match="damaged"):
        async with Store.open(data):
            pass
    assert (data / "handiwork.db").read_bytes().startswith(b"not a database")


async def test_a_newer_schema_is_refused(data: Path):
    async with Store.open(data):
        pass
    database = sqlite3.connect(data / "handiwork.db")
    database.execute("UPDATE about SET value = 99")
    database.commit()
    database.close()
    with pytest.raises(LogError, match="newer Handiwork \\(schema 99"):
        async with Store.open(data):
            pass


async def test_a_data_folder_that_is_a_file_is_told(tmp_path: Path):
    (tmp_path / "data").write_text("")
    store = Store.open(tmp_path / "data")
    with pytest.raises(LogError, match="cannot be opened"):
        await store.sessions()
    await store.close()


async def test_a_file_system_without_locks_is_told(data: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("handiwork.paths.fcntl.flock", refuse)  # as NFS without its daemon, and Lustre
    with pytest.raises(LogError, match=r"handiwork\.db cannot be opened: No locks available"):
        async with asyncio.timeout(2), Store.open(data):
            pass


async def test_a_database_that_stays_locked_is_told_and_works_again_afterwards(data: Path):
    async with Store.open(data) as store:
        log = await store.create(agent="a", model="m")
        other = sqlite3.connect(data / "handiwork.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LogError, match="keeps it locked"):
            Database(data, patience=0.05)
        other.execute("ROLLBACK")
        other.close()
        await log.append(MessageAction(content="x", source="user"))
        assert await log.head() == 1


def damage(data: Path, statement: str, *values: object) -> None:
    database = sqlite3.connect(data / "handiwork.db")
    database.execute(statement, values)
    database.commit()
    database.close()


@pytest.mark.parametrize("row", ["{broken", b"\xff\xfe", '{"type":"MessageAction","id":1}', '["no object"]'])
async def test_a_damaged_event_is_told_by_its_session_and_the_others_are_read(data: Path, row: str | bytes):
    async with Store.open(data) as store:
        log = await store.create(agent="a", model="m")
        await log.append(*[MessageAction(content=text, source="user") for text in ("one", "two")])
        damage(data, "UPDATE events SET json = ? WHERE id = 1", row)
        first, second = await log.read()
        assert isinstance(first, UnknownEvent)
        assert f"event 1 of session {log.id} is damaged" in str(first.unknown["problem"])
        assert isinstance(second, MessageAction)
        assert [json.loads(text)["id"] for text in await log.texts()] == [1, 2]


@pytest.mark.parametrize(
    ("column", "value"),
    [("created", "yesterday"), ("updated", -1e300), ("state", "asleep"), ("head", "x"), ("title", b"\xff")],
)
async def test_a_damaged_session_is_told_and_the_others_are_listed(data: Path, column: str, value: object):
    async with Store.open(data) as store:
        whole, broken = [(await store.create(agent="a", model="m", title="t")).id for _ in range(2)]
        damage(data, f"UPDATE sessions SET {column} = ? WHERE id = ?", value, broken)
        found = {info.id: info for info in await store.sessions()}
        assert found[whole].title == "t"
        assert f"session {broken} has no valid {column}" in found[broken].title
        log = await store.log(whole)
        assert [event.id for event in await log.append(MessageAction(content="x", source="user"))] == [1]


async def test_a_session_that_is_its_own_parent_is_told(data: Path):
    async with Store.open(data) as store:
        log = await store.create(agent="a", model="m")
        await log.append(MessageAction(content="x", source="user"))
        damage(data, "UPDATE sessions SET parent = id, parent_event = 1")
        with pytest.raises(LogError, match=f"session {log.id} is damaged"):
            await store.log(log.id)
        assert [info.id for info in await store.family(log.id)] == [log.id]


async def test_the_newest_session_is_the_one_made_last_though_the_clock_was_set_back(data: Path):
    async with Store.open(data) as store:
        before = await store.create(agent="a", model="m")
        damage(data, "UPDATE sessions SET created = created + 86400, updated = updated + 86400")
        made = [(await store.create(agent="a", model="m")).id for _ in range(3)]
        assert [info.id for info in await store.sessions()] == [*reversed(made), before.id]

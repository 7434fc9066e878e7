"""A database that fails gives one clear error, and no event is half there."""

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from handiwork.events.action import MessageAction
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


def test_a_full_disk_is_told_and_what_was_stored_stays_readable(tmp_path: Path):
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"]).returncode:
        pytest.skip("needs a mount namespace")
    mount = 'mount -t tmpfs -o size=1500k none "$1" && exec "$2" -c "$3" "$1/data"'
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", mount, "sh", tmp_path, sys.executable, FILL], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "free some space" in done.stdout
    assert "nothing of this operation was stored" in done.stdout


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

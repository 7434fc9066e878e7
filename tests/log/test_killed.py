"""What was acknowledged is there after kill -9, at whatever moment it comes."""

import asyncio
import json
import random
import sqlite3
import sys
from pathlib import Path

import pytest

from handiwork.events.action import CmdRunAction, MessageAction
from handiwork.log.store import Store

RUNS = 100


@pytest.mark.slow
async def test_no_acknowledged_event_is_lost_and_the_next_process_takes_the_session_over(data: Path):
    async with Store.open(data) as store:
        session = (await store.create(agent="a", model="m")).id
    seed = random.randrange(10**9)
    program = Path(__file__).with_name("killed.py")
    process = await asyncio.create_subprocess_exec(
        sys.executable, program, data, session, str(RUNS), str(seed), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, f"seed {seed}"

    acknowledged: dict[int, str] = {}
    for line in out.splitlines():
        told = {int(number): text for number, text in json.loads(line).items()}
        assert told, "every writer got the lease of the killed one before and wrote"
        assert not told.keys() & acknowledged.keys(), "no id was given out twice"
        acknowledged |= told
    async with Store.open(data) as store:
        log = await store.log(session)
        events = await log.read()
        assert [event.id for event in events] == list(range(1, await log.head() + 1))
        texts = {
            event.id: event.command if isinstance(event, CmdRunAction) else event.content
            for event in events
            if isinstance(event, CmdRunAction | MessageAction)
        }
        assert acknowledged.items() <= texts.items(), f"seed {seed}"
        async with log.lease():
            assert (await log.append(CmdRunAction(command="ls")))[0].id == len(events) + 1
    with sqlite3.connect(data / "handiwork.db") as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    database.close()

"""One process owns a running session."""

import asyncio
import os
import signal
import socket
import sqlite3
import sys
import time
from pathlib import Path

import pytest

from handiwork.events.action import CmdRunAction, MessageAction
from handiwork.log.errors import LeaseHeld, LeaseLost
from handiwork.log.eventlog import EventLog
from handiwork.log.store import Store
from handiwork.process import Process

HOLD = """
import asyncio, pathlib, sys
from handiwork.log.store import Store
async def main():
    async with Store.open(pathlib.Path(sys.argv[1])) as store:
        async with (await store.log(sys.argv[2])).lease():
            print("held", flush=True)
            await asyncio.sleep(1000)
asyncio.run(main())
"""


async def holder(data: Path, log: EventLog) -> asyncio.subprocess.Process:
    """Start a process that holds the lease."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLD, data, log.id, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"held\n"
    return process


def pretend(data: Path, **values: str | int | float) -> None:
    """Change the lease's row as another machine's process would have written it."""
    database = sqlite3.connect(data / "handiwork.db")
    for name, value in values.items():
        database.execute(f"UPDATE leases SET {name} = ?", (value,))
    database.commit()
    database.close()


async def test_only_the_owner_appends_as_agent_and_anybody_as_user(log: EventLog):
    await log.append(MessageAction(content="hello", source="user"))
    with pytest.raises(LeaseLost, match="lease"):
        await log.append(CmdRunAction(command="ls"))
    async with log.lease():
        await log.append(CmdRunAction(command="ls"))
    with pytest.raises(LeaseLost):
        await log.append(CmdRunAction(command="ls"))
    assert await log.head() == 2


async def test_a_held_lease_is_refused_with_the_name_of_the_holder_and_taken_when_it_is_killed(
    store: Store, log: EventLog, data: Path
):
    process = await holder(data, log)
    try:
        with pytest.raises(LeaseHeld, match=f"{process.pid} on {socket.gethostname()}"):
            async with log.lease():
                pass
        with pytest.raises(LeaseHeld):
            await store.delete(log.id)
        await log.append(MessageAction(content="hello", source="user"))
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()
    async with log.lease():
        await log.append(CmdRunAction(command="ls"))


async def test_two_tasks_of_one_process_cannot_both_run_a_session(log: EventLog):
    async with log.lease():
        with pytest.raises(LeaseHeld, match=str(os.getpid())):
            async with log.lease():
                pass
        await log.append(CmdRunAction(command="ls"))


async def test_who_lost_the_lease_cannot_append_as_agent_any_more(log: EventLog, data: Path):
    async with log.lease():
        pretend(data, token="another", host="elsewhere", started="other:1")
        with pytest.raises(LeaseLost, match="taken over"):
            await log.append(CmdRunAction(command="ls"))
    with pytest.raises(LeaseHeld, match="elsewhere"):
        async with log.lease():
            pass


async def test_a_lease_of_another_machine_is_taken_over_when_its_heart_has_stopped(log: EventLog, data: Path):
    async with log.lease():
        pretend(data, token="another", host="elsewhere", started="other:1")
    with pytest.raises(LeaseHeld):
        async with log.lease():
            pass
    pretend(data, heartbeat=0.0)
    async with log.lease():
        await log.append(CmdRunAction(command="ls"))


async def test_a_lease_of_another_machine_from_before_the_clock_was_set_back_is_taken_over(log: EventLog, data: Path):
    async with log.lease():
        pretend(data, token="another", host="elsewhere", started="other:1")
    pretend(data, heartbeat=time.time() + 86400)
    async with log.lease():
        await log.append(CmdRunAction(command="ls"))


async def test_a_process_number_that_was_given_out_again_is_not_the_old_process(log: EventLog, data: Path):
    async with log.lease():
        world = Process.this().started.rpartition(":")[0]
        pretend(data, token="another", started=f"{world}:1")
    async with log.lease():
        await log.append(CmdRunAction(command="ls"))


def test_a_zombie_does_not_live():
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    this = Process.this()
    ticks = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[19]
    zombie = Process(this.host, child, f"{this.started.rpartition(':')[0]}:{ticks}")
    assert this.alive() is True
    assert zombie.alive() is False
    os.waitpid(child, 0)

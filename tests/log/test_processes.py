"""Several processes append to one session and follow it."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import pytest

from handiwork.events.action import MessageAction
from handiwork.log.eventlog import EventLog
from handiwork.log.store import Store


async def appender(data: Path, log: EventLog, count: int, name: str) -> Process:
    """Start a process that will append when it is told to go."""
    program = Path(__file__).with_name("appender.py")
    process = await asyncio.create_subprocess_exec(
        sys.executable, program, data, log.id, str(count), name, stdin=PIPE, stdout=PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    return process


async def go(process: Process) -> None:
    await process.communicate(b"go\n")
    assert process.returncode == 0


async def test_ids_are_unique_and_dense_and_a_follower_misses_and_repeats_nothing(
    store: Store, log: EventLog, data: Path
):
    count = 100
    others = await asyncio.gather(*(appender(data, log, count, name) for name in ("a", "b")))
    followed: list[MessageAction] = []

    async def follow() -> None:
        async for event in log.follow():
            assert isinstance(event, MessageAction)
            followed.append(event)
            if len(followed) == 3 * count:
                return

    async def append() -> None:
        for number in range(count):
            await log.append(MessageAction(content=f"own {number}", source="user"))

    await asyncio.gather(follow(), append(), *(go(other) for other in others))
    assert [event.id for event in followed] == list(range(1, 3 * count + 1))
    for name in ("a", "b", "own"):
        mine = [event.content for event in followed if event.content.startswith(f"{name} ")]
        assert mine == [f"{name} {number}" for number in range(count)]
    assert await log.read() == followed


@pytest.mark.slow
async def test_many_processes_can_open_a_new_folder_at_once(tmp_path: Path):
    program = (
        "import asyncio, sys, pathlib; from handiwork.log.store import Store\n"
        "async def main():\n"
        "    async with Store.open(pathlib.Path(sys.argv[1])) as store: await store.create(agent='a', model='m')\n"
        "asyncio.run(main())"
    )
    data = tmp_path / "data"
    processes = [await asyncio.create_subprocess_exec(sys.executable, "-c", program, data) for _ in range(4)]
    assert [await process.wait() for process in processes] == [0, 0, 0, 0]
    async with Store.open(data) as store:
        assert len(await store.sessions()) == 4


async def test_a_follower_that_appends_nothing_itself_is_woken_by_another_process(log: EventLog, data: Path):
    other = await appender(data, log, 2, "a")
    followed = log.follow()
    waiting = asyncio.ensure_future(anext(followed))
    await log.head()
    await go(other)
    assert [(await waiting).id, (await anext(followed)).id] == [1, 2]

"""A process that appends: appender.py DATA SESSION COUNT NAME. Says "ready", waits for a line, begins."""

import asyncio
import sys
from pathlib import Path

from handiwork.events.action import MessageAction
from handiwork.log.store import Store


async def main(data: str, session: str, count: str, name: str) -> None:
    async with Store.open(Path(data)) as store:
        log = await store.log(session)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.readline)
        for number in range(int(count)):
            await log.append(MessageAction(content=f"{name} {number}", source="user"))


asyncio.run(main(*sys.argv[1:]))

"""Processes that run a session and are killed at a random moment: killed.py DATA SESSION RUNS SEED.

Each is forked from this one, which is warm and has a single thread. Prints, a line for each, the ids it was
told are stored with their texts, as a JSON object.
"""

import asyncio
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from handiwork.events.action import CmdRunAction, MessageAction
from handiwork.log.store import Store


async def write(data: Path, session: str, run: int, pipe: int) -> None:
    """Append for ever, several at a time, and tell the pipe what was acknowledged."""
    async with Store.open(data) as store:
        log = await store.log(session)

        async def append(worker: int) -> None:
            number = 0
            while True:
                text = f"{run}.{worker}.{number}"
                action = CmdRunAction(command=text) if number % 7 else MessageAction(content=text, source="user")
                (stored,) = await log.append(action)
                os.write(pipe, f"{stored.id} {text}\n".encode())
                number += 1

        async with log.lease():
            await asyncio.gather(*(append(worker) for worker in range(3)))


def kill_one(data: Path, session: str, run: int, delay: float) -> dict[int, str]:
    """Fork a writer, let it write for ``delay`` seconds, kill it and return what it was told."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(write(data, session, run, into))
        finally:
            os._exit(3)
    os.close(into)
    with os.fdopen(out) as told:
        first = told.readline()
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
        rest = told.read()
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"the writer failed: {status}"
    return {int(number): text for number, text in (line.split() for line in (first + rest).splitlines())}


if __name__ == "__main__":
    chance = random.Random(int(sys.argv[4]))
    for turn in range(int(sys.argv[3])):
        told = kill_one(Path(sys.argv[1]), sys.argv[2], turn, chance.random() * 0.04)
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()  # what is left in the buffer would be written by every fork

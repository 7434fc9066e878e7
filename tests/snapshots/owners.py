"""Owners of a bubblewrap session that are killed at random moments: owners.py DATA SESSION KILLS SEED.

Each is forked from this process, which is warm, has a single thread, and inherits what its owners leave running. Each
opens the session, runs three commands, closes it, forks it, and begins anew, until it is killed. Fails where anything
outlives its owner and the next start's sweep.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import random
import signal
import sys
import time
from pathlib import Path

from handiwork.agents.base import Agent, Step
from handiwork.agents.state import State
from handiwork.events.action import AgentFinishAction, CmdRunAction, MessageAction
from handiwork.log.store import Store
from handiwork.sandbox.processes import family
from handiwork.sandbox.runtime import sweep_stale
from handiwork.session.assemble import reopen
from handiwork.session.forks import fork

AGENT = f"{__file__}:Changer"
COMMAND = "(sleep 1000 &); for name in a b c; do echo $RANDOM$RANDOM > $name; done; mkdir -p d/$RANDOM; cat a b c"

_LONGEST = 2.5  # seconds that an owner lives
_GRACE = 3.0
_PR_SET_CHILD_SUBREAPER = 36


class Changer(Agent):
    """Runs three commands for each message."""

    async def step(self, state: State) -> Step:
        actions = [action for action, _ in state.history]
        asked = max((number for number, action in enumerate(actions) if isinstance(action, MessageAction)), default=0)
        if len(actions) - asked > 3:
            return AgentFinishAction(outputs={"message": "done"})
        return CmdRunAction(command=f"{COMMAND} # {len(actions)}")


async def own(data: Path, session: str) -> None:
    async with Store.open(data) as store:
        while True:
            opened = await reopen(store, data, session, lambda _: None)
            try:
                await opened.run("go on")
            finally:
                await opened.close()
            forked = await fork(store, data, opened.log, await opened.log.head())
            child = await reopen(store, data, forked.id, lambda _: None)
            try:
                await (await child.session.sandbox()).execute(CmdRunAction(command="cat a"))
            finally:
                await child.close()


def left() -> list[str]:
    """Return what those who died had started and has not ended, after a while."""
    deadline = time.monotonic() + _GRACE
    while time.monotonic() < deadline:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return []
        time.sleep(0.01)
    return [Path(f"/proc/{one.pid}/cmdline").read_text() for one in family(os.getpid())[1:]]


def main(data: Path, session: str, kills: int, seed: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    chance = random.Random(seed)
    for number in range(kills):
        owner = os.fork()
        if owner == 0:
            try:
                asyncio.run(own(data, session))
            finally:
                os._exit(1)
        time.sleep(chance.random() * _LONGEST)
        assert os.waitpid(owner, os.WNOHANG) == (0, 0), f"owner {number} ended by itself"
        os.kill(owner, signal.SIGKILL)
        if left():
            sweep_stale()
        assert (found := left()) == [], f"owner {number} left {found}"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))

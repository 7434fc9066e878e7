"""An agent that searches its sandbox for what it must not see, while another one of its kind does the same.

``needles`` are texts by their names. The scripts have them reversed, so that they do not find themselves. The rollouts
run in this process: they meet at ``meeting`` before and after the search.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

from handiwork.agents.base import Agent
from handiwork.agents.state import State
from handiwork.events.action import AgentFinishAction, CmdRunAction
from handiwork.events.base import Action

CONTROL = "a text that every prober leaves in its workspace"
SECONDS = 120.0
"""The time to wait for the other rollout."""

needles: Mapping[str, str] = {}
meeting = asyncio.Barrier(2)

LEAVE = """
import os, secrets, subprocess
name = "left-by-" + secrets.token_hex(8)
for folder in (".", "/tmp", "/dev/shm", os.environ["HOME"]):
    try:
        open(os.path.join(folder, name), "w").write(%r[::-1])
    except OSError:
        pass
subprocess.Popen(["bash", "-c", "exec -a " + name + " sleep 1000"], start_new_session=True)
"""

SEARCH = r"""
import glob, json, os, re, subprocess
needles = {name: text[::-1].encode() for name, text in json.loads(%r).items()}
hits, left, processes = set(), set(), set()

def look(place, data):
    hits.update(f"{name} in {place}" for name, needle in needles.items() if needle in data)

def read(path):
    try:
        with open(path, "rb") as file:
            return file.read(4_000_000)
    except OSError:
        return b""

for folder, folders, files in os.walk("/"):
    if folder == "/":  # the system's own files
        folders[:] = set(folders) - {"proc", "sys", "usr", "opt", "bin", "sbin", "lib", "lib64"}
    for name in (*folders, *files):
        look("the name of a file", os.fsencode(os.path.join(folder, name)))
    for name in files:
        path = os.path.join(folder, name)
        if name.startswith("left-by-"):
            left.add(name)
        if os.path.isfile(path) and not os.path.islink(path):
            look("the workspace" if path.startswith(os.getcwd()) else "a file elsewhere", read(path))
for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
    look("a process", read(path))
    processes.update(re.findall(rb"left-by-\w+", read(path)))
look("the mounts", read("/proc/self/mountinfo"))
history = 0
if os.path.isdir(".git"):
    git = lambda *arguments: subprocess.run(["git", *arguments], capture_output=True).stdout
    look("git's log", git("log", "--all", "--format=fuller"))
    look("git's objects", git("cat-file", "--batch-all-objects", "--batch"))
    history = len(git("rev-list", "--all").split())
print(json.dumps({"hits": sorted(hits), "left": len(left), "processes": len(processes), "history": history}))
"""


class Prober(Agent):
    async def step(self, state: State) -> Action:
        match state.iteration:
            case 1:
                return CmdRunAction(command=_python(LEAVE % CONTROL[::-1]))
            case 2:
                await asyncio.wait_for(meeting.wait(), SECONDS)
                backwards = {name: text[::-1] for name, text in needles.items()}
                return CmdRunAction(command=_python(SEARCH % json.dumps(backwards)), timeout=SECONDS)
            case 3:
                await asyncio.wait_for(meeting.wait(), SECONDS)
            case _:
                pass
        return AgentFinishAction(outputs={"message": ""})


def _python(script: str) -> str:
    return f"python3 - <<'END'\n{script}\nEND"

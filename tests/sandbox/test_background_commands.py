"""Commands in the background of a sandbox, by the actions and observations that an agent sees."""

from __future__ import annotations

import fcntl

from handiwork.events.action import CmdRunAction, JobAction
from handiwork.events.observation import CmdOutputObservation, ErrorObservation, JobObservation
from handiwork.sandbox.base import Sandbox
from tests.sandbox.helpers import Box, output


async def started(sandbox: Sandbox, command: str) -> CmdOutputObservation:
    observation = await sandbox.execute(CmdRunAction(command=command, background=True))
    assert isinstance(observation, CmdOutputObservation)
    assert (observation.status, observation.exit_code) == ("background", None)
    return observation


async def test_a_server_in_the_background_is_used_and_stopped(box: Box) -> None:
    sandbox = box.make()
    await sandbox.start()
    serve = "while read -r line < ask; do echo got $line; echo ok > answer; done"
    job = await started(sandbox, f"cd src; mkfifo ask answer; echo serving; {serve}")
    assert job.job == "job1"
    assert await output(sandbox, "until [ -p src/answer ]; do :; done; echo hello > src/ask; cat src/answer") == "ok"
    stopped = await sandbox.execute(JobAction(operation="stop", job="job1"))
    assert isinstance(stopped, JobObservation)
    assert (stopped.status, stopped.exit_code) == ("stopped", 143)
    assert (job.content + stopped.content).startswith("serving\ngot hello\n")  # a busy machine starts it slowly
    unknown = await sandbox.execute(JobAction(operation="read", job="job2"))
    assert isinstance(unknown, ErrorObservation)
    assert "job1" in unknown.content


async def test_the_end_of_the_sandbox_ends_its_jobs(box: Box) -> None:
    sandbox = box.in_place()
    await sandbox.start()
    await started(sandbox, "exec {lock}> lock; flock $lock; echo held; setsid sleep 1000")
    await sandbox.close()
    with (box.project / "lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # nobody who held it is left

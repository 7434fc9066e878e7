"""Runs an agent's code to score it, in a new sandbox without anything that the agent has touched."""

from __future__ import annotations

import math
import shlex
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from handiwork.errors import SandboxError
from handiwork.events.action import CmdRunAction
from handiwork.events.observation import CmdOutputObservation
from handiwork.events.record import EgressEvent
from handiwork.sandbox import create as sandboxes
from handiwork.sandbox.base import Sandbox
from handiwork.sandbox.egress.proxy import Egress
from handiwork.workspace.layers import SandboxPaths

PATIENCE = 3
"""The wall time of a command as a multiple of its CPU time, for one that waits, or on a busy machine."""

GRACE = 60.0
"""Seconds that starting a command may take in addition, on a busy machine."""


async def run_code(files: Mapping[str, str], command: str, seconds: float) -> CmdOutputObservation:
    """Run a shell command in a folder with these files, and end it after ``seconds``.

    Each of its processes has ``seconds`` of CPU time, the same as on an idle machine, so that a score does not depend
    on other load; the wall time of all together is PATIENCE times that. A command that took too long has exit code 152
    or 124. Raises SandboxError.
    """
    async with new_sandbox("bubblewrap") as (sandbox, workspace):
        for path, text in files.items():
            (workspace / path).parent.mkdir(parents=True, exist_ok=True)
            (workspace / path).write_text(text)
        await sandbox.start()
        (workspace / ".command").write_text(command)
        wall_time = PATIENCE * seconds
        limited_command = f"ulimit -St {math.ceil(seconds)}; exec timeout -k 2 {wall_time:g} bash .command"
        return await command_in(sandbox, f"bash -c {shlex.quote(limited_command)}", wall_time + GRACE)


@asynccontextmanager
async def new_sandbox(
    kind: str, *, image: str | None = None, writable_root: bool = False, allow_net: Collection[str] = ()
) -> AsyncGenerator[tuple[Sandbox, Path]]:
    """Yield a sandbox of this kind, to be started, and its workspace, an empty folder; remove both at the end.

    The options are those of a session.
    """

    async def no_blobs(_: AsyncIterator[bytes]) -> str:
        return ""

    with tempfile.TemporaryDirectory(prefix="handiwork-score-") as name:
        Path(name).chmod(0o755)
        session, workspace = Path(name, "session"), Path(name, "workspace")
        session.mkdir()
        workspace.mkdir()
        egress = Egress(lambda: allow_net, _allow) if allow_net else None
        paths = SandboxPaths(session, workspace)
        sandbox = sandboxes.create(kind, paths, no_blobs, image=image, writable_root=writable_root, egress=egress)
        try:
            yield sandbox, workspace
        finally:
            await sandbox.close()


async def _allow(_: EgressEvent) -> bool:
    return True


async def command_in(sandbox: Sandbox, command: str, seconds: float) -> CmdOutputObservation:
    """Run a shell command in a running sandbox. Raises SandboxError if its shell is lost."""
    observation = await _execute(sandbox, command, seconds)
    if observation.status != "input":
        return observation
    # A program on a busy machine may seem to wait for input. No input will come, so wait for its end.
    continuation = await _execute(sandbox, "", seconds)
    return continuation.model_copy(update={"command": command, "content": observation.content + continuation.content})


async def _execute(sandbox: Sandbox, command: str, seconds: float) -> CmdOutputObservation:
    observation = await sandbox.execute(CmdRunAction(command=command, timeout=seconds))
    if not isinstance(observation, CmdOutputObservation):
        raise SandboxError(f"the sandbox did not run a command: {observation.text}")
    return observation

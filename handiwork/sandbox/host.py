"""No sandbox at all: the action server runs on this machine, as the calling user, with all their rights."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from handiwork.sandbox import bundle
from handiwork.sandbox.bubblewrap.mounts import git_environment
from handiwork.sandbox.client import Client, SaveBlob
from handiwork.sandbox.endpoint import Endpoint
from handiwork.sandbox.limits.cgroups import Counters
from handiwork.sandbox.limits.limits import ResourceLimits
from handiwork.sandbox.limits.monitor import LimitMonitor
from handiwork.sandbox.served import ServedSandbox

_STOP_TIMEOUT = 5.0
_SECRET = re.compile(
    r"(^|.*_)(KEY|TOKEN|PASSWD|PASSPHRASE|CREDENTIALS)|.*SECRET.*|.*PASSWORD.*|(AWS|HANDIWORK)_.*", re.IGNORECASE
)
"""Names of variables that probably hold a secret."""


class HostSandbox(ServedSandbox):
    """Runs actions in ``workspace`` without isolation; ``soft_timeout`` is in seconds.

    Commands get the user's environment except the variables ``withheld`` and probable secrets. Of ``limits``, only
    memory and processes are enforced.
    """

    name = "none"

    def __init__(
        self,
        workspace: Path,
        save_blob: SaveBlob,
        limits: ResourceLimits = ResourceLimits(),  # noqa: B008 - frozen
        soft_timeout: float = 120.0,
        withheld: Collection[str] = (),
    ) -> None:
        super().__init__(workspace, save_blob, limits, soft_timeout)
        self._withheld = withheld

    async def _spawn(self, endpoint: Endpoint) -> asyncio.subprocess.Process:
        listening = endpoint.socket.fileno()
        return await asyncio.create_subprocess_exec(
            # On SIGTERM the server ends its shell; the kernel sends it SIGTERM when this process dies. The server does
            # not start if this process died before that was set.
            *(*bundle.host_command("setpriv"), "--pdeathsig", "TERM"),
            *(sys.executable, "-E", "-s", "-m", "inside", "--fd", str(listening)),
            *("--workspace", self.workspace, "--soft-timeout", str(self._soft_timeout)),
            *("--parent", str(os.getpid())),
            # The environment is the user's already, and .bashrc would restore the withheld variables.
            "--no-bashrc",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=(listening,),
            cwd=bundle.inside_code(),
            env={
                **{k: v for k, v in without_secrets(os.environ).items() if k not in self._withheld},
                **git_environment(),
                "HANDIWORK_INSIDE_LIBRARIES": str(bundle.bundle_root() / "lib/python3/dist-packages"),
            },
            start_new_session=True,
        )

    def _find_root_pid(self, process: asyncio.subprocess.Process) -> int | None:
        return process.pid

    def _start_monitor(self, process: asyncio.subprocess.Process, client: Client) -> LimitMonitor:
        return LimitMonitor(self._limits, process.pid, Counters(()), None, client.interrupt)

    async def _stop(self, process: asyncio.subprocess.Process) -> None:
        if process.returncode is None:
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), _STOP_TIMEOUT)
            except TimeoutError:
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables whose names do not look like those of keys, tokens, passwords or other secrets."""
    return {name: value for name, value in environment.items() if not _SECRET.fullmatch(name)}

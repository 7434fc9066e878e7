"""No sandbox at all: the action server runs on this machine, as the calling user, with all its rights."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from handiwork.sandbox import bundle
from handiwork.sandbox.client import SaveBlob
from handiwork.sandbox.runtime import Endpoint
from handiwork.sandbox.served import ServedSandbox
from handiwork.sandbox.view import git_environment

_STOP_TIMEOUT = 5.0
_SECRET = re.compile(
    r"(^|.*_)(KEY|TOKEN|PASSWD|PASSPHRASE|CREDENTIALS)|.*SECRET.*|.*PASSWORD.*|(AWS|HANDIWORK)_.*", re.IGNORECASE
)
"""Names of variables that look as if they held something secret."""


class HostSandbox(ServedSandbox):
    """Runs actions in ``workspace`` without isolating anything; ``soft_timeout`` is in seconds.

    Commands get the user's environment but for what looks like a secret.
    """

    name = "none"

    def __init__(self, workspace: Path, save_blob: SaveBlob, soft_timeout: float = 120.0) -> None:
        super().__init__(workspace, save_blob, soft_timeout)

    async def _spawn(self, endpoint: Endpoint) -> asyncio.subprocess.Process:
        listening = endpoint.socket.fileno()
        return await asyncio.create_subprocess_exec(
            # The server ends its shell when it is told to end, which the kernel does when this process dies.
            *(*bundle.host_command("setpriv"), "--pdeathsig", "TERM"),
            *(sys.executable, "-E", "-s", "-m", "inside", "--fd", str(listening)),
            *("--workspace", self.workspace, "--soft-timeout", str(self._soft_timeout)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=(listening,),
            cwd=bundle.inside_code(),
            env={**without_secrets(os.environ), **git_environment()},
            start_new_session=True,
        )

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

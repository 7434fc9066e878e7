"""Keeps descriptors open under names that other processes can open."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Sequence

from .children import Children

_CODE = "trap '' HUP INT QUIT TERM TSTP TTIN TTOU; read -r"


class Holder:
    """A process that only keeps ``descriptors`` open, under their numbers.

    The shell cannot read the server's own /proc/PID/fd, and its commands would inherit any descriptor that it
    inherited. ``lost`` is called if the process ends before ``close``.
    """

    def __init__(self, bash: str, descriptors: Sequence[int], children: Children, lost: Callable[[], None]) -> None:
        self._children = children
        self._lost = lost
        end, self._lifeline = os.pipe2(os.O_CLOEXEC)
        actions = [(os.POSIX_SPAWN_DUP2, end, 0), (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
        actions += [(os.POSIX_SPAWN_DUP2, 1, 2)]
        # A descriptor duplicated to itself is inherited.
        actions += [(os.POSIX_SPAWN_DUP2, descriptor, descriptor) for descriptor in descriptors]
        try:
            self.pid = os.posix_spawn(
                bash,
                ["bash", "--norc", "--noprofile", "-c", _CODE],
                {},
                file_actions=actions,
                setsid=True,
                setsigmask=[],
            )
        finally:
            os.close(end)
        children.owned_pids.add(self.pid)
        self._process = os.pidfd_open(self.pid)
        asyncio.get_running_loop().add_reader(self._process, self._on_exit)

    def path(self, descriptor: int) -> str:
        """Return the path under which other processes open one of the descriptors."""
        return f"/proc/{self.pid}/fd/{descriptor}"

    def close(self) -> None:
        """End the process. Closing twice is allowed."""
        if self._lifeline >= 0:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self._release()

    def _on_exit(self) -> None:
        self._release()
        self._lost()

    def _release(self) -> None:
        os.waitpid(self.pid, 0)
        self._children.owned_pids.discard(self.pid)
        asyncio.get_running_loop().remove_reader(self._process)
        os.close(self._process)
        os.close(self._lifeline)
        self._lifeline = -1

"""The interface of a sandbox: it executes actions and returns observations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import Protocol

from pydantic import JsonValue

from handiwork.events.base import Action, Observation
from handiwork.sandbox.pipe import Pipe
from handiwork.sandbox.questions import AskModel
from handiwork.sandbox.streams.byte_stream import ByteStream, Size
from handiwork.workspace.snapshots.store import Snapshot

OnOutput = Callable[[str], None]
"""Called with each piece of a command's output as it arrives."""

NO_SECRETS: Mapping[str, str] = MappingProxyType({})


class Sandbox(Protocol):
    """An environment in which actions run.

    Paths are paths inside the sandbox; relative ones start at the workspace.
    """

    name: str
    """The kind: "bubblewrap", "docker" or "none"."""

    workspace: str
    """The workspace's path inside the sandbox."""

    async def start(self) -> None:
        """Start the sandbox. Raises SandboxError."""
        ...

    async def execute(
        self,
        action: Action,
        on_output: OnOutput | None = None,
        secrets: Mapping[str, str] = NO_SECRETS,
        ask: AskModel | None = None,
    ) -> Observation:
        """Run a runnable action and return its observation, ``cause`` not yet set.

        ``secrets`` are environment variables for this command or cell alone. ``ask`` answers the questions of a cell's
        skills. Errors of the action itself are returned as observations. Raises SandboxError if the sandbox is lost.
        Cancelling this call stops the action.
        """
        ...

    async def interrupt(self) -> None:
        """Stop the running action; its ``execute`` then returns the output so far, with status "interrupted"."""
        ...

    async def upload(self, path: str, data: AsyncIterator[bytes]) -> None:
        """Write a file inside."""
        ...

    def download(self, path: str) -> AsyncIterator[bytes]:
        """Read a file inside. Raises FileNotFoundError, IsADirectoryError."""
        ...

    async def browser(self, command: str, **arguments: JsonValue) -> JsonValue:
        """Run a command of the sandbox's browser for the platform and return its result; agents do not see it.

        "open" opens a new context: ``url``, ``viewport`` [width, height], Playwright's ``storage_state``, ``har`` (a
        path inside, to which all requests are written when the context is closed), ``locale``, ``timezone``. "evaluate"
        runs the JavaScript ``expression``, optionally a function of ``argument``, in the current page. "visit" opens
        ``url`` in a separate page and evaluates ``expression`` or returns the "content". "targets" describes the
        elements that ``calls`` would reach, and the open dialog. "state" returns the tabs, "storage" the cookies and
        the local storage. "request" fetches ``url`` with ``method``, ``data`` and the cookies. "close" closes the
        context. Raises BrowserError, SandboxError.
        """
        ...

    def pipe(
        self, command: Sequence[str], variables: Mapping[str, str] = NO_SECRETS
    ) -> AbstractAsyncContextManager[Pipe]:
        """Start a program inside, in the workspace, that the platform speaks with; it ends with the context.

        ``variables`` join its environment. Raises PipeError if it cannot be started, SandboxError.
        """
        ...

    def terminal(self, size: Size) -> AbstractAsyncContextManager[ByteStream]:
        """Open a terminal for the user, with a shell in the workspace that ends with the context.

        Agents do not see it. Raises StreamRefusedError if it cannot be opened, SandboxError.
        """
        ...

    def connect(self, port: int) -> AbstractAsyncContextManager[ByteStream]:
        """Connect to a server inside. Raises StreamRefusedError if none listens on the port, SandboxError."""
        ...

    async def ports(self) -> list[int]:
        """Return the TCP ports on which programs inside listen, ascending. Raises SandboxError."""
        ...

    async def snapshot(self) -> Snapshot | None:
        """Save the files and the shell's state; return None if nothing changed or snapshots are off.

        Nothing is restarted. Also works before the sandbox is started. Raises WorkspaceError, OSError if a file cannot
        be saved, SandboxError.
        """
        ...

    async def close(self) -> None:
        """End all processes and mounts of the sandbox; the workspace's files stay."""
        ...

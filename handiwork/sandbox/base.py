"""What a sandbox is to the rest: it executes actions and gives observations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from types import MappingProxyType
from typing import Protocol

from pydantic import JsonValue

from handiwork.events.base import Action, Observation
from handiwork.workspace.snapshots.store import Snapshot

OnOutput = Callable[[str], None]
"""Called with each piece of a command's output as it arrives."""

NO_SECRETS: Mapping[str, str] = MappingProxyType({})


class Sandbox(Protocol):
    """A place where actions run.

    Paths are those inside; relative ones are resolved from the workspace.
    """

    name: str
    """The kind: "bubblewrap", "docker" or "none"."""

    workspace: str
    """Where the workspace is, as seen inside."""

    async def start(self) -> None:
        """Start it. Raises SandboxError."""
        ...

    async def execute(
        self, action: Action, on_output: OnOutput | None = None, secrets: Mapping[str, str] = NO_SECRETS
    ) -> Observation:
        """Run a runnable action and return its observation, ``cause`` not yet set.

        ``secrets`` are variables of the environment for this command or cell alone.
        What the action itself does wrong is an observation. Raises SandboxError if the sandbox is lost.
        Cancelling this call stops the action.
        """
        ...

    async def interrupt(self) -> None:
        """Stop the action that runs; its ``execute`` then returns what there was, with status "interrupted"."""
        ...

    async def upload(self, path: str, data: AsyncIterator[bytes]) -> None:
        """Write a file inside."""
        ...

    def download(self, path: str) -> AsyncIterator[bytes]:
        """Read a file inside. Raises FileNotFoundError, IsADirectoryError."""
        ...

    async def list_files(self, path: str = ".") -> list[str]:
        """Names in a directory, directories first and ending in "/"."""
        ...

    async def browser(self, command: str, **arguments: JsonValue) -> JsonValue:
        """Ask the sandbox's browser something for the platform, and return what it gives; agents do not see it.

        "open" gives it a new context: ``url``, ``viewport`` [width, height], Playwright's ``storage_state``, ``har``,
        a path inside that gets all requests when the context is closed, ``locale``, ``timezone``. "evaluate" runs the
        JavaScript ``expression``, a function of ``argument`` perhaps, in the page that is shown. "visit" opens ``url``
        aside, evaluates ``expression`` or returns the "content". "state" tells the tabs, "storage" the cookies and the
        local storage. "request" asks for ``url`` with ``method`` and ``data`` and the cookies. "close" closes the
        context. Raises BrowserError, SandboxError.
        """
        ...

    async def snapshot(self) -> Snapshot | None:
        """Keep the files and the shell's state as they are; None if the last snapshot has them, or none are taken.

        Nothing is restarted. Also possible when it is not started. Raises WorkspaceError, OSError for what cannot be
        kept, SandboxError.
        """
        ...

    async def close(self) -> None:
        """End all its processes and mounts; files of the workspace stay."""
        ...

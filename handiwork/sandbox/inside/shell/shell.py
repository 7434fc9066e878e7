"""The persistent shell: runs commands one after the other, and restarts if they end it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from ..children import Children
from ..errors import ActionError
from ..output import Keep, Output, Spools, Text
from .bash_code import command_line, command_text
from .terminal import LINE_LIMIT, Terminal, memory

Status = Literal["done", "running", "input", "exited", "interrupted", "timeout"]
OnOutput = Callable[[bytes], None]
NO_SECRETS: Mapping[str, str] = MappingProxyType({})

KEYS = {"C-c": b"\x03", "C-d": b"\x04", "C-z": b"\x1a", "C-\\": b"\x1c"}
"""The keys that can be sent to a program, by name."""

_IDLE_LIMIT = 256 * 1024  # bytes kept of the output of background jobs between commands
_START_TIMEOUT = 10.0
_SAVE_TIMEOUT = 1.0  # seconds in which a shell saves its state after a command
_STATE_LIMIT = 1 << 20  # bytes of a state
_MIN_PAUSE, _MAX_PAUSE = 0.04, 0.5  # seconds between checks for a program that waits for input
_POLL_QUIET = 1.5  # quiet seconds required of a program that waits for the terminal and other descriptors
_BEGIN_TIMEOUT = 2.0  # a shell that did not even start the command in this time is checked too
_STOP_SIGNALS = ((signal.SIGINT, 0.6), (signal.SIGTERM, 0.1), (signal.SIGKILL, 0.1))  # and seconds to react


@dataclass(frozen=True, slots=True)
class CommandResult:
    """A command's result so far; ``exit_code`` is None while it runs."""

    status: Status
    exit_code: int | None
    directory: str
    text: Text


class Shell:
    """A bash that runs commands. Call ``run``, ``send`` and ``wait`` one at a time.

    A command without a timeout of its own is left running after ``soft_timeout`` seconds; with ``bashrc``, the first
    shell reads the user's settings.
    """

    def __init__(
        self,
        directory: str,
        spools: Spools,
        environment: Mapping[str, str],
        children: Children,
        soft_timeout: float,
        *,
        bashrc: bool,
    ) -> None:
        self.directory = directory
        self.workspace = directory
        self._spools = spools
        self._environment = environment
        self._children = children
        self._soft_timeout = soft_timeout
        self._bashrc = bashrc
        self._state = memory("state")
        self._output = Output(spools)
        self._on_output: OnOutput | None = None
        self._ready = asyncio.Event()
        self._saved = asyncio.Event()
        self._over = asyncio.Event()
        self.last = ""
        """The token of the last command that ended in this shell, "" if there was none."""
        self._token: str | None = None
        self._began = False
        self._stopping: Status | None = None
        self._outcome: tuple[Status, int] | None = None
        self._last_io = 0.0

    @property
    def busy(self) -> bool:
        """True while a command runs."""
        return self._token is not None

    @property
    def state(self) -> int:
        """The descriptor of a file with bash code that restores this shell's state in another one."""
        return self._state

    def open(self, state: bytes = b"") -> None:
        """Start the shell with the ``state`` of another one; raises ActionError if there is no bash."""
        os.pwrite(self._state, state, 0)
        self._start(restored=bool(state), bashrc=self._bashrc and not state)

    async def saved_state(self) -> bytes:
        """Return the bash code that restores this shell's state in another one; b"" if it does not save it."""
        with contextlib.suppress(TimeoutError):
            if not self.busy:  # otherwise the state is that from before the command
                async with asyncio.timeout(_SAVE_TIMEOUT):
                    await self._saved.wait()
            state = os.pread(self._state, _STATE_LIMIT + 1, 0)
            # The last line names the command after which the state was saved, and is not part of it.
            return state[: state.rfind(b"# whole")] if len(state) <= _STATE_LIMIT else b""
        return b""

    def close(self) -> None:
        """Kill the shell and its whole session."""
        self._terminal.close()
        self._output.discard()
        os.close(self._state)

    async def run(
        self,
        command: bytes,
        keep: Keep,
        timeout: float | None,
        on_output: OnOutput,
        secrets: Mapping[str, str] = NO_SECRETS,
    ) -> CommandResult:
        """Run ``command``; it is stopped after ``timeout`` seconds. Raises ActionError if one runs already.

        ``secrets`` are environment variables until the command ends.
        """
        if self.busy:
            raise ActionError(
                "busy",
                "A command is still running. Send an empty command to wait for it, is_input to type something to "
                'it, or is_input with "C-c" to stop it.',
            )
        self._token = token = uuid.uuid4().hex[:16]
        self._saved.clear()
        self._began, self._stopping, self._outcome = False, None, None
        self._over.clear()
        try:
            await self._become_ready()
        except ActionError:
            self._token = None
            raise
        self._terminal.set_command(command_text(command, secrets))
        self._last_io = asyncio.get_running_loop().time()
        await self._terminal.write(command_line(token))
        return await self._result(keep, timeout, on_output, stop=timeout is not None)

    async def send(self, text: bytes, keep: Keep, timeout: float | None, on_output: OnOutput) -> CommandResult:
        """Type ``text`` into the running program, then wait. Raises ActionError if none runs."""
        if not self.busy:
            raise ActionError("no_program", "No program is running that could take input.")
        if self._terminal.cuts(text):
            raise ActionError(
                "too_long",
                f"A terminal takes at most {LINE_LIMIT} bytes in one line of input. Put the text into a file and "
                "start the program with its input from there.",
            )
        self._last_io = asyncio.get_running_loop().time()
        await self._terminal.write(text)
        return await self._result(keep, timeout, on_output, stop=False)

    async def wait(self, keep: Keep, timeout: float | None, on_output: OnOutput) -> CommandResult:
        """Wait until the running command ends or needs input; it is stopped after ``timeout`` seconds."""
        return await self._result(keep, timeout, on_output, stop=timeout is not None, for_input=timeout is None)

    @property
    def unreported(self) -> bool:
        """True if a command runs, or has ended without its result being returned."""
        return self.busy or self._outcome is not None

    async def interrupt(self) -> bool:
        """Stop the running command, by force if needed; return False if none runs."""
        if not self.busy:
            return False
        await self._ready.wait()
        await self._stop("interrupted")
        return True

    def on_output(self, data: bytes) -> None:
        """Handle output of the terminal."""
        if not self._ready.is_set():
            return
        self._last_io = asyncio.get_running_loop().time()
        if not self.busy:
            data = data[: max(0, _IDLE_LIMIT - self._output.size)]
        self._output.feed(data)
        if self._on_output is not None:
            self._on_output(data)

    def on_status(self, word: str, token: str, code: int) -> None:
        """Handle a status message of the shell; only the running command's token counts."""
        if word == "kept" and token == self.last:
            self._saved.set()
        elif word == "ended" and token == "":
            self.directory = self._terminal.directory or self.directory
            self.last = ""
            self._ready.set()
        elif token == self._token:
            if word == "began":
                self._began = True
            elif word == "ended":
                self._terminal.restore_modes()
                self.last = token
                self._finish("done", code)

    def on_exit(self, code: int) -> None:
        """Handle the end of the shell: start another one in its place."""
        if not self._ready.is_set():
            self._ready.set()  # its own start failed; waiting callers check whether it lives
            return
        if self.busy:
            self._finish("exited", code)
        try:
            self._start(restored=True, bashrc=False)
        except ActionError:
            self._ready.set()  # the next command tries again and reports the error

    def _start(self, *, restored: bool, bashrc: bool) -> None:
        self._ready.clear()
        self._saved.clear()
        if not os.path.isdir(self.directory):
            self.directory = self.workspace
        self._terminal = Terminal(self, self._state, self._environment, self._children)
        self._terminal.open(self.directory, restored=restored, bashrc=bashrc)

    async def _become_ready(self) -> None:
        """Wait until the shell has started; if it does not start with the user's settings, start it without them."""
        if self._ready.is_set() and self._terminal.alive:
            return
        for last in (False, True):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_START_TIMEOUT):
                    await self._ready.wait()
            if self._ready.is_set() and self._terminal.alive:
                return
            self._terminal.close()
            if not last:
                self._start(restored=False, bashrc=False)
        raise ActionError("no_shell", "The sandbox's bash does not start.")

    def _finish(self, status: Status, code: int) -> None:
        self.directory = self._terminal.directory or self.directory
        self._outcome = (self._stopping or status, code)
        self._token = None
        self._over.set()

    async def _result(
        self, keep: Keep, timeout: float | None, on_output: OnOutput, *, stop: bool, for_input: bool = True
    ) -> CommandResult:
        if earlier := self._output.start():
            on_output(earlier)
        self._on_output = on_output
        try:
            status = await self._settle(self._soft_timeout if timeout is None else timeout, for_input=for_input)
            if status == "running" and stop:
                await self._stop("timeout")
        finally:
            self._on_output = None
        code: int | None = None
        if self._outcome is not None:
            status, code = self._outcome
            self._outcome = None
        if not self._ready.is_set():
            with contextlib.suppress(ActionError):
                await self._become_ready()  # a new shell, perhaps in another directory
        text, rest = self._output.take(keep, final=not self.busy)
        self._output = Output(self._spools)
        self._output.feed(rest)
        return CommandResult(status, code, self.directory, text)

    async def _settle(self, limit: float, *, for_input: bool) -> Status:
        """Return "done" when the command has ended or was stopped, otherwise the reason not to wait any longer."""
        now = asyncio.get_running_loop().time
        start = now()
        pause, reads = _MIN_PAUSE, False
        while not self._over.is_set():
            if self._stopping is not None:
                await self._over.wait()
                break
            remaining = start + limit - now()
            if remaining <= 0:
                return "running"
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(pause, remaining)):
                    await self._over.wait()
            quiet = now() - self._last_io
            if quiet < _MIN_PAUSE or not (self._began or quiet > _BEGIN_TIMEOUT) or self._over.is_set():
                pause, reads = _MIN_PAUSE, False
                continue
            waiting = self._terminal.waiting() if for_input else None
            if (waiting == "reads" and reads) or (waiting == "polls" and quiet > _POLL_QUIET):
                return "input"
            reads = waiting == "reads"
            pause = _MIN_PAUSE if reads else min(2 * pause, _MAX_PAUSE)
        return "done"

    async def _stop(self, reason: Status) -> None:
        """End the command by increasingly hard means; the last is to kill the shell itself."""
        token = self._token
        if self._stopping is None and token is not None:
            self._stopping = reason
            for number, grace in _STOP_SIGNALS:
                self._terminal.signal(number)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(grace):
                        await self._over.wait()
                if self._token != token:
                    return
            self._terminal.kill()
        await self._over.wait()

"""Run the command of one hook, in the sandbox or on the user's machine."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from handiwork.agents.rendering import shorten
from handiwork.errors import SandboxError
from handiwork.events.action import HookRunAction
from handiwork.events.observation import HookRunObservation
from handiwork.events.record import HookProblem
from handiwork.hooks import Hook
from handiwork.log.redaction.redactor import Redactor
from handiwork.paths import home_dir
from handiwork.sandbox.bundle import host_command
from handiwork.session.steps.executor import Executor
from handiwork.session.steps.interrupt import Interrupt

OUTPUT_LIMIT = 8_000
"""Characters of a hook's output that are kept: its beginning and its end."""

_KEPT_END = 64 * 1024  # bytes of each end that are read from a command on the user's machine
_TERM_GRACE, _PIPE_GRACE = 2.0, 0.2  # seconds to clean up after SIGTERM; to read the rest after the command's end


@dataclass(frozen=True)
class HookResult:
    """The end of a hook's command: its exit code, None if it did not end by itself, and its bounded output."""

    exit_code: int | None
    problem: HookProblem = ""
    output: str = ""
    duration: float = 0.0


async def run_hook(
    hook: Hook,
    payload: str,
    executor: Executor | None,
    interrupt: Interrupt,
    redactor: Redactor = Redactor(),  # noqa: B008 - without secrets
) -> HookResult:
    """Run the hook's command with ``payload`` on its standard input; the interrupt, or its timeout, ends it.

    A hook on the user's machine needs no ``executor``. ``redactor`` sees the output before it is cut.
    """
    if executor is not None and hook.where == "sandbox":
        try:
            await interrupt.unless_set(executor.ready(), None)  # which is not the hook's own time
        except SandboxError as error:
            return HookResult(None, "not_started", str(error))
    if interrupt.is_set():
        return HookResult(None, "interrupted")
    start = time.monotonic()
    if executor is None or hook.where == "host":
        result = await _run_on_host(hook, payload, interrupt)
    else:
        result = await _run_in_sandbox(hook, payload, executor, interrupt, redactor)
    output = shorten(redactor.text(result.output).strip("\n"), OUTPUT_LIMIT)
    return HookResult(result.exit_code, result.problem, output, time.monotonic() - start)


async def _run_in_sandbox(
    hook: Hook, payload: str, executor: Executor, interrupt: Interrupt, redactor: Redactor
) -> HookResult:
    try:
        directory = executor.sandbox.workspace
        action = HookRunAction(command=hook.command, input=payload, directory=directory, timeout=hook.timeout)
        observation = redactor.ends(await executor.execute(action, hook.timeout, lambda _: None))
    except SandboxError as error:
        return HookResult(None, "not_started", str(error))
    if isinstance(observation, HookRunObservation) and observation.exit_code is not None:
        return HookResult(observation.exit_code, "", observation.text)
    stopped = isinstance(observation, HookRunObservation)
    problem = "interrupted" if interrupt.is_set() else "timeout" if stopped else "not_started"
    return HookResult(None, problem, observation.text)


async def _run_on_host(hook: Hook, payload: str, interrupt: Interrupt) -> HookResult:
    """Run the command as the user, in the home directory: a repository's folder could decide which programs it runs."""
    output = _Output()
    try:
        command = [*host_command("setpriv"), "--pdeathsig", "TERM", "/bin/sh", "-c", hook.command]
        with tempfile.TemporaryFile() as stdin:
            stdin.write(payload.encode("utf-8", "replace"))
            stdin.seek(0)
            home = home_dir() or Path("/")
            process = await asyncio.create_subprocess_exec(
                *command, stdin=stdin, stdout=output.end, stderr=output.end, cwd=home, start_new_session=True
            )
    except (OSError, SandboxError) as error:
        output.close()
        return HookResult(None, "not_started", str(error))
    finally:
        os.close(output.end)
    output.open()
    ended = asyncio.create_task(process.wait())
    try:
        if await interrupt.race(ended, hook.timeout):
            code = ended.result()
            with suppress(TimeoutError):  # a program that it leaves running may keep the pipe open
                await asyncio.wait_for(output.closed.wait(), _PIPE_GRACE)
            return HookResult(code if code >= 0 else 128 - code, "", output.text)
        await _stop(process.pid, ended)
        return HookResult(None, "interrupted" if interrupt.is_set() else "timeout", output.text)
    finally:
        if process.returncode is None:
            _signal(process.pid, signal.SIGKILL)
        output.close()


async def _stop(group: int, ended: asyncio.Task[int]) -> None:
    _signal(group, signal.SIGTERM)
    await asyncio.wait({ended}, timeout=_TERM_GRACE)
    _signal(group, signal.SIGKILL)
    await ended


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


class _Output:
    """Reads a pipe and keeps the start and the end of its content; ``end`` is the pipe's writing end."""

    def __init__(self) -> None:
        self._pipe, self.end = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._pipe, False)
        self.closed = asyncio.Event()
        self._head, self._tail, self._dropped = bytearray(), bytearray(), 0

    def open(self) -> None:
        """Start to read."""
        asyncio.get_running_loop().add_reader(self._pipe, self._read)

    def close(self) -> None:
        """Stop to read."""
        if not self.closed.is_set():
            asyncio.get_running_loop().remove_reader(self._pipe)
            os.close(self._pipe)
            self.closed.set()

    @property
    def text(self) -> str:
        """The content, without its middle if it is too long."""
        gap = b"\n[... %d bytes left out ...]\n" % self._dropped if self._dropped else b""
        return bytes(self._head + gap + self._tail).decode("utf-8", "backslashreplace")

    def _read(self) -> None:
        try:
            data = os.read(self._pipe, 65536)
        except BlockingIOError:
            return
        if not data:
            self.close()
            return
        room = _KEPT_END - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        self._dropped += max(0, len(self._tail) - _KEPT_END)
        del self._tail[:-_KEPT_END]

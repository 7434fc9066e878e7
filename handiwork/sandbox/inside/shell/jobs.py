"""Background commands: each in its own session without a terminal, with a handle to read and stop it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ..children import Children, give_way, signal_session
from ..errors import ActionError
from ..output import Keep, Output, Spools, Text, write_all
from .bash_code import command_text, job_code
from .shell import Shell
from .terminal import ALL_SIGNALS, find_bash, memory

Status = Literal["running", "done", "stopped"]

MOST = 32
"""Jobs that are kept; a new one replaces the oldest that has ended."""
END = 1 << 20
"""Bytes of each end of a job's unread output that are kept."""

_GRACE = 0.2  # seconds in which a command that fails at once is reported as failed
_TERM_GRACE = 0.6  # seconds in which a job may clean up after SIGTERM
_CHECK_PAUSE, _CHECKS = 0.02, 150  # seconds between checks for remaining killed processes, and their number
_CHUNK = 65536
_CHUNKS_OF_PIPE = 16  # a pipe holds no more
_COMMAND_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Reading:
    """A job's output since the last reading, and its status; ``exit_code`` is None while it runs."""

    job: str
    status: Status
    exit_code: int | None
    text: Text


class Unread:
    """Unread bytes; if there are many, only their two ends."""

    def __init__(self) -> None:
        self.size = 0
        self._head = bytearray()
        self._tail = bytearray()

    def feed(self, data: bytes) -> None:
        """Add bytes."""
        self.size += len(data)
        room = END - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * END:
            del self._tail[:-END]

    def take(self) -> bytes:
        """Return the bytes, with a note about omitted ones in between, and clear them."""
        tail = self._tail[-END:]
        omitted = self.size - len(self._head) - len(tail)
        gap = b"\n[... %d bytes left out: more was printed than is kept ...]\n" % omitted if omitted else b""
        data = bytes(self._head) + gap + bytes(tail)
        self.size = 0
        self._head.clear()
        self._tail.clear()
        return data


class Job:
    """A command in a session of its own; ``reported`` is True once its end has been reported."""

    def __init__(self, handle: str, command: str, children: Children) -> None:
        self.handle, self.command = handle, command
        self.exit_code: int | None = None
        self.reported = False
        self.unread = Unread()
        self._children = children
        self._loop = asyncio.get_running_loop()
        self._start_time = self._end_time = self._loop.time()
        self._stopped = False
        self._exited, self._silent = asyncio.Event(), asyncio.Event()
        self._limit: asyncio.Task[None] | None = None

    def open(self, bash: str, arguments: list[str], environment: Mapping[str, str], text: int, state: int) -> None:
        """Start the process, which inherits two descriptors: ``text``, closed at its end, and ``state``.

        Raises ActionError.
        """
        self._text = text
        self._pipe, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(write_end, True)
        actions = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
        actions += [(os.POSIX_SPAWN_DUP2, write_end, fd) for fd in (1, 2)]
        # A descriptor duplicated to itself is inherited.
        actions += [(os.POSIX_SPAWN_DUP2, fd, fd) for fd in (text, state)]
        try:
            self.pid = os.posix_spawn(
                bash, arguments, environment, file_actions=actions, setsid=True, setsigmask=[], setsigdef=ALL_SIGNALS
            )
        except OSError as error:
            os.close(self._pipe)
            os.close(text)
            raise ActionError("failed", f"The command cannot be started: {error.strerror}.") from error
        finally:
            os.close(write_end)
        self._children.owned_pids.add(self.pid)
        give_way(self.pid)
        self._process = os.pidfd_open(self.pid)
        self._loop.add_reader(self._pipe, self._read)
        self._loop.add_reader(self._process, self._reap)

    @property
    def status(self) -> Status:
        """The job's current status."""
        if self.exit_code is None:
            return "running"
        return "stopped" if self._stopped else "done"

    @property
    def seconds(self) -> float:
        """The job's running time so far, or its total."""
        return (self._loop.time() if self.exit_code is None else self._end_time) - self._start_time

    async def wait_for_end(self, timeout: float | None) -> bool:
        """Wait for the end of the command; return False if it still runs after ``timeout`` seconds (None: no limit)."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._exited.wait(), timeout)
        return self._exited.is_set()

    def stop_after(self, seconds: float) -> None:
        """Stop the job if it still runs after ``seconds``."""

        async def limit() -> None:
            if not await self.wait_for_end(seconds):
                await self.stop()

        self._limit = asyncio.create_task(limit())

    async def stop(self) -> None:
        """End all its processes, by force if they ignore SIGTERM."""
        if self._exited.is_set() and self._silent.is_set():
            return  # its process id may have been reused
        self._stopped = True
        self.signal(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_TERM_GRACE):
                await self._exited.wait()
                await self._silent.wait()
        for _ in range(_CHECKS):
            if not self.signal(signal.SIGKILL):
                break
            await asyncio.sleep(_CHECK_PAUSE)

    def signal(self, number: int) -> bool:
        """Send a signal to all its processes, even suspended ones; return False if none is left."""
        return signal_session(self.pid, number, signal.SIGCONT)

    def close(self) -> None:
        """Kill all its processes and release its resources."""
        if self._limit is not None:
            self._limit.cancel()
        if not (self._exited.is_set() and self._silent.is_set()):
            self.signal(signal.SIGKILL)
        if not self._exited.is_set():
            self._reap(os.waitpid(self.pid, 0)[1])
        if not self._silent.is_set():
            self._end_reading()

    def _read(self) -> bool:
        """Read some of the output; return False if there is none for now."""
        try:
            data = os.read(self._pipe, _CHUNK)
        except BlockingIOError:
            return False
        if data:
            self.unread.feed(data)
        else:
            self._end_reading()
        return bool(data)

    def _end_reading(self) -> None:
        self._loop.remove_reader(self._pipe)
        os.close(self._pipe)
        self._silent.set()

    def _reap(self, status: int | None = None) -> None:
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1] if status is None else status)
        for _ in range(_CHUNKS_OF_PIPE):
            if self._silent.is_set() or not self._read():
                break
        self.exit_code, self._end_time = code if code >= 0 else 128 - code, self._loop.time()
        self._children.owned_pids.discard(self.pid)
        self._loop.remove_reader(self._process)
        os.close(self._process)
        os.close(self._text)
        self._exited.set()


class Jobs:
    """The background commands of a sandbox, by their handles."""

    def __init__(self, shell: Shell, spools: Spools, environment: Mapping[str, str], children: Children) -> None:
        self._shell, self._spools = shell, spools
        self._environment, self._children = environment, children
        self._jobs: dict[str, Job] = {}
        self._started = 0
        self._hook: Job | None = None

    async def run_hook(self, command: bytes, text: bytes, directory: str, keep: Keep) -> Reading:
        """Run a user's hook with ``text`` as its input, apart from the shell and its state, and end its leftovers.

        Raises ActionError.
        """
        bash = find_bash(self._environment)
        text_file = memory("hook")
        write_all(text_file, text)
        job = Job("hook", command.decode(), self._children)
        # Opened again by its name, so that it is read from the start.
        code = f'exec 0</proc/self/fd/{text_file} {text_file}<&-; builtin cd -- "$1" && eval "$2"'
        arguments = ["bash", "--noprofile", "--norc", "-c", code, "hook", directory, command.decode()]
        job.open(bash, arguments, self._environment, text_file, text_file)
        self._hook = job
        try:
            await job.wait_for_end(None)
            return self._reading(job, keep)
        finally:
            self._hook = None
            await job.stop()
            job.close()

    async def interrupt(self) -> bool:
        """Stop the running hook; return False if none runs."""
        if self._hook is None:
            return False
        await self._hook.stop()
        return True

    async def start(self, command: bytes, timeout: float | None, keep: Keep, secrets: Mapping[str, str]) -> Reading:
        """Start ``command`` in the shell's directory, and return its first output.

        ``secrets`` are variables of its environment. It is stopped after ``timeout`` seconds, or never if that is None.
        Raises ActionError.
        """
        self._make_room()
        bash = find_bash(self._environment)
        text_file = memory("job")
        os.pwrite(text_file, command_text(command, secrets), 0)
        self._started += 1
        job = Job(f"job{self._started}", command.decode(), self._children)
        code = job_code(self._shell.state, self._shell.last, text_file)
        arguments = ["bash", "--norc", "-c", code, "bash", self._shell.directory]
        job.open(bash, arguments, self._environment, text_file, self._shell.state)
        self._jobs[job.handle] = job
        if timeout is not None:
            job.stop_after(timeout)
        await job.wait_for_end(_GRACE)
        return self._reading(job, keep)

    def read(self, handle: str, keep: Keep) -> Reading:
        """Return the job's output since the last reading. Raises ActionError if there is no such job."""
        return self._reading(self._job(handle), keep)

    async def stop(self, handle: str, keep: Keep) -> Reading:
        """End the job and return its output since the last reading. Raises ActionError."""
        job = self._job(handle)
        await job.stop()
        return self._reading(job, keep)

    def list(self) -> str:
        """Return a line for each job: handle, state, seconds, command."""
        for job in self._jobs.values():
            job.reported = job.exit_code is not None
        return "".join(f"{_line(job)}\n" for job in self._jobs.values()) or "There are no background commands.\n"

    def endings(self) -> str:
        """Return a line for each job whose end has not been reported."""
        unreported = [job for job in self._jobs.values() if job.exit_code is not None and not job.reported]
        for job in unreported:
            job.reported = True
        return "".join(
            f"[{job.handle} ended with exit code {job.exit_code}: {_output_hint(job)}]\n" for job in unreported
        )

    def close(self) -> None:
        """End all jobs."""
        for job in (*self._jobs.values(), *([self._hook] if self._hook else [])):
            job.close()

    def _make_room(self) -> None:
        if len(self._jobs) < MOST:
            return
        oldest = next((job for job in self._jobs.values() if job.exit_code is not None), None)
        if oldest is None:
            raise ActionError("too_many_jobs", f"{MOST} background commands run already. Stop one first: {self._names}")
        oldest.close()
        del self._jobs[oldest.handle]

    def _job(self, handle: str) -> Job:
        if handle not in self._jobs:
            hint = f"There are: {self._names}." if self._jobs else "No background command was started."
            raise ActionError("no_job", f"There is no background command {handle!r}. {hint}")
        return self._jobs[handle]

    @property
    def _names(self) -> str:
        return ", ".join(self._jobs)

    def _reading(self, job: Job, keep: Keep) -> Reading:
        output = Output(self._spools)
        output.feed(job.unread.take())
        text, rest = output.take(keep, final=job.exit_code is not None)
        job.unread.feed(rest)
        job.reported = job.exit_code is not None
        return Reading(job.handle, job.status, job.exit_code, text)


def _line(job: Job) -> str:
    code = "" if job.exit_code is None else f" (exit code {job.exit_code})"
    command = " ".join(job.command.split())
    summary = command if len(command) <= _COMMAND_LIMIT else f"{command[:_COMMAND_LIMIT]}..."
    return f"{job.handle} {job.status}{code}, {job.seconds:.0f} s: {summary}"


def _output_hint(job: Job) -> str:
    return f"read {job.handle} to see its output" if job.unread.size else "it printed nothing more"

"""Runs an agent's code to score it, in a new sandbox without anything that the agent has touched."""

from __future__ import annotations

import math
import secrets
import shlex
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
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

LAST = 4_000
"""The bytes of a command's output that are read, from its end."""

LARGEST = 100_000_000
"""The most bytes of a packed workspace."""

LARGEST_LOG = 50_000_000
"""The bytes of the tests' output that are read, half of them from its end, where many runners sum up."""

_KILLED = 137
"""The exit code of a command that SIGKILL ended."""

_TIMED_OUT = frozenset({124, _KILLED})
"""Exit codes of ``timeout`` for a command that it ended; another may have them by itself."""

_EARLY = 0.99
"""The part of a time limit after which it may have ended a command: two clocks need not agree."""


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
        command = f"bash -c {shlex.quote(_limited('bash .command', seconds))}"
        return await command_in(sandbox, command, PATIENCE * seconds + GRACE)


async def run_limited(sandbox: Sandbox, command: str, seconds: float) -> CmdOutputObservation:
    """Run a shell command in a running sandbox, with the limits of ``run_code`` and without a terminal.

    The observation has the last LAST bytes of the output. Raises SandboxError.
    """
    script, output = _new_file(), _new_file()
    await write_file(sandbox, script, command.encode())
    run = f"({_limited(f'bash {script}', seconds)}) < /dev/null > {output} 2>&1"
    show = f"code=$?; tail -c {LAST} {output}; rm {script} {output}; exit $code"
    return await command_in(sandbox, f"({run}; {show})", PATIENCE * seconds + GRACE)


def _limited(command: str, seconds: float) -> str:
    """Return a shell command that becomes a program and ends it after its time."""
    return f"ulimit -St {math.ceil(seconds)}; exec timeout -k 2 {PATIENCE * seconds:g} {command}"


@dataclass(frozen=True, slots=True)
class ScriptOutput:
    """The exit code of a script, its whole output with standard error, and whether it was ended at its time limit."""

    exit_code: int
    output: str
    timed_out: bool = False

    @property
    def killed(self) -> bool:
        """Whether SIGKILL ended it before its time limit."""
        return self.exit_code == _KILLED and not self.timed_out

    def cut_short(self, seconds: float) -> str:
        """Return how a script with this time limit was ended, as a predicate for a message; "" if it ended itself."""
        if self.timed_out:
            return f"took more than {seconds:g} s"
        return "received SIGKILL, perhaps for lack of memory" if self.killed else ""


async def run_script(sandbox: Sandbox, script: str, seconds: float) -> ScriptOutput:
    """Run a script in the workspace for at most ``seconds``. Raises SandboxError."""
    await write_file(sandbox, "/tmp/script.sh", script.encode())
    limited = f"timeout -k 10 {seconds:g} bash /tmp/script.sh < /dev/null > /tmp/output.log 2>&1"
    began = time.monotonic()
    done = await command_in(sandbox, f"({limited})", seconds + GRACE)
    took = time.monotonic() - began
    if done.status == "timeout" or done.exit_code is None:  # a stopped command has the code of an interruption
        raise SandboxError("the tests did not end at their time limit")
    content = await _both_ends(sandbox, "/tmp/output.log")
    timed_out = done.exit_code in _TIMED_OUT and took >= _EARLY * seconds
    return ScriptOutput(done.exit_code, content.decode(errors="replace"), timed_out)


async def _both_ends(sandbox: Sandbox, path: str) -> bytes:
    """Return a file without what is more than half of LARGEST_LOG from both its ends; b"" if it cannot be read.

    The code under test may have removed it.
    """
    half = LARGEST_LOG // 2
    head, tail = bytearray(), bytearray()
    try:
        async for piece in sandbox.download(path):
            room = half - len(head)
            head += piece[:room]
            tail += piece[room:]
            del tail[:-half]
    except OSError:
        return b""
    return bytes(head + tail)


async def write_file(sandbox: Sandbox, path: str, content: bytes) -> None:
    """Write a file in a running sandbox. Raises OSError, SandboxError."""

    async def pieces() -> AsyncIterator[bytes]:
        yield content

    await sandbox.upload(path, pieces())


async def pack(sandbox: Sandbox) -> bytes | None:
    """Return the workspace of a running sandbox as a tar archive, None if it has more than LARGEST bytes.

    Raises SandboxError, FileNotFoundError if the sandbox has no room for the archive.
    """
    archive, content = _new_file(), bytearray()
    # The agent's shell may have functions and a PATH of its own. Files that cannot be read are left out.
    tar = shlex.join(["/usr/bin/env", "-i", "PATH=/usr/bin:/bin", "tar", "-C", sandbox.workspace, "-cf", archive, "."])
    await command_in(sandbox, tar, GRACE)
    try:
        async for piece in sandbox.download(archive):
            content += piece
            if len(content) > LARGEST:
                return None
    finally:
        await command_in(sandbox, f"/usr/bin/env rm -f {archive}", GRACE)
    return bytes(content)


async def unpack(sandbox: Sandbox, archive: bytes, folder: str) -> None:
    """Give a folder of a running sandbox the content of an archive, and nothing else. Raises SandboxError."""
    path, place = _new_file(), shlex.quote(folder)
    await write_file(sandbox, path, archive)
    tar = f"tar -C {place} --no-overwrite-dir -xpf {path}"
    command = f"mkdir -p {place} && find {place} -mindepth 1 -delete && {tar} && rm {path}"
    done = await command_in(sandbox, command, GRACE)
    if done.exit_code:
        raise SandboxError(f"the sandbox did not unpack an archive: {done.content.strip()}")


def _new_file() -> str:
    return f"/tmp/{secrets.token_hex(16)}"


@asynccontextmanager
async def new_sandbox(
    kind: str,
    path: Path | None = None,
    *,
    image: str | None = None,
    writable_root: bool = False,
    allow_net: Collection[str] = (),
    read_only: Sequence[Path] = (),
) -> AsyncGenerator[tuple[Sandbox, Path]]:
    """Yield a sandbox of this kind, to be started, and its workspace, an empty folder; remove both at the end.

    Programs in the sandbox see the workspace at ``path``, the path of an existing folder, which stays as it is; None
    means the workspace's own path. The other options are those of a session.
    """

    async def no_blobs(_: AsyncIterator[bytes]) -> str:
        return ""

    with tempfile.TemporaryDirectory(prefix="handiwork-score-") as name:
        Path(name).chmod(0o755)
        session, workspace = Path(name, "session"), Path(name, "workspace")
        session.mkdir()
        workspace.mkdir()
        egress = Egress(lambda: allow_net, _allow) if allow_net else None
        paths = SandboxPaths(session, workspace) if path is None else SandboxPaths(session, path, base=workspace)
        sandbox = sandboxes.create(
            kind, paths, no_blobs, read_only, image=image, writable_root=writable_root, egress=egress
        )
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

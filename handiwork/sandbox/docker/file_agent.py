"""Client of the file agent, which runs in a container beside a sandbox on a remote daemon."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

from handiwork.errors import SandboxError
from handiwork.sandbox import bundle
from handiwork.sandbox.docker import cli as docker_cli
from handiwork.sandbox.inside.files.tree_stream import TreeStreamError, receive, send_end

_ROOT = "/session"
_READY = b"ready\n"
_END_TIMEOUT = 20.0
_Result = TypeVar("_Result")

_OPTIONS = [
    *("run", "--rm", "--interactive", "--pull=never", "--user=0:0", "--workdir=/", "--read-only", "--network=none"),
    *("--security-opt=no-new-privileges", "--log-driver=none", "--no-healthcheck", "--cap-drop=ALL"),
    # It reads and creates all files of the sandbox, regardless of their modes.
    *("--cap-add=CHOWN", "--cap-add=DAC_OVERRIDE", "--cap-add=FOWNER", "--cap-add=MKNOD"),
]


class FileAgentClient:
    """A container with the ``volume``, without the sandbox's processes; it ends with this process.

    Call its methods one at a time.
    """

    def __init__(self, image: str, bundle_volume: str, volume: str, labels: Sequence[str]) -> None:
        mounts = [
            f"type=volume,src={bundle_volume},dst={bundle.PREFIX},readonly=true,volume-nocopy=true",
            f"type=volume,src={volume},dst={_ROOT},volume-nocopy=true",
        ]
        python, *arguments = bundle.INSIDE_PYTHON
        self._command = [
            *("docker", *_OPTIONS, *labels, *(f"--mount={mount}" for mount in mounts)),
            *(f"--entrypoint={python}", image, *arguments, "-m", "inside.files.file_agent", _ROOT),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Start the container. Raises SandboxError."""
        await self._run_in_thread(self._start)

    async def put(self, write: Callable[[BinaryIO], None], owner: tuple[int, int], trees: Sequence[str]) -> None:
        """Send the files that ``write`` writes, owned by ``owner``; changes in ``trees`` count from then on.

        Raises SandboxError.
        """

        def put() -> None:
            stream = self._ask({"do": "put", "owner": owner, "trees": trees})
            with suppress(BrokenPipeError):  # the agent reports why
                write(stream)
                send_end(stream)
            receive(self._answers(), "/", None, 0, ())

        await self._run_in_thread(put)

    async def get(self, target: Path, trees: Sequence[str], owner: tuple[int, int] | None, limit: int) -> int:
        """Copy the paths in ``trees`` that changed since the last call below ``target``; return their number.

        Do not call it again after SandboxError: the agent counts paths as sent that did not arrive.
        """

        def get() -> int:
            self._ask({"do": "get", "trees": trees, "limit": limit}).flush()
            return receive(self._answers(), str(target), owner, limit, trees)

        return await self._run_in_thread(get)

    async def close(self) -> None:
        """End the container and wait until it is removed."""
        await self._end()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        if self._answers().readline() != _READY:
            raise TreeStreamError("it did not start")

    def _ask(self, request: dict[str, object]) -> BinaryIO:
        stream = self._running_process().stdin
        assert stream is not None
        stream.write(json.dumps(request).encode() + b"\n")
        return cast(BinaryIO, stream)

    def _answers(self) -> BinaryIO:
        stream = self._running_process().stdout
        assert stream is not None
        return cast(BinaryIO, stream)

    def _running_process(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise TreeStreamError("it does not run")
        return self._process

    async def _run_in_thread(self, work: Callable[[], _Result]) -> _Result:
        """Run blocking work to its end in a thread: a partial answer would be read as the start of the next one."""
        task = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait([task])
            if task.exception() is not None:
                await self._end()
            raise
        except (OSError, TreeStreamError) as error:
            errors = await self._end()
            problem = f"{error}. {docker_cli.explained(errors)}" if errors else f"{error}."
            raise SandboxError(f"the files of the sandbox cannot be copied to or from its daemon: {problem}") from error

    async def _end(self) -> str:
        """End the process and return its errors."""
        process, self._process = self._process, None
        return "" if process is None else await asyncio.to_thread(_end, process)


def _end(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    process.stdout.close()
    try:
        _, errors = process.communicate(timeout=_END_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()  # its container ends once the end of its stdin arrives there
        _, errors = process.communicate()
    return errors.decode("utf-8", "replace").strip()

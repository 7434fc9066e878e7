"""The server's side of the browser: a process started at the first request, and restarted if it is lost."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import IO, cast

from ..children import Children, give_way
from ..errors import ActionError
from ..notebook.json_lines import Json, JsonLineReader
from ..output import Spools
from ..shell.input_probe import processes

TREE = "/opt/handiwork/browser"
"""The path of Chromium and Playwright in sandboxes that have them."""

TIMEOUT = 130.0
"""Seconds after which an unresponsive browser is killed; its own limits, also those of its start, are shorter."""

_GRACE = 1.5  # seconds in which an interrupted request is answered
_CLOSING = 2.0  # seconds in which it ends by itself after writing its recordings
_ERROR_OUTPUT_LIMIT = 2000  # bytes of its error output
_RESTART_NOTE = "The next action starts a new one, at a blank page."


class Browser:
    """Executes requests, one at a time. No process is started before the first request."""

    def __init__(self, workspace: str, spools: Spools, environment: Mapping[str, str], children: Children) -> None:
        self._workspace, self._spools = workspace, spools
        self._environment, self._children = environment, children
        self._process: subprocess.Popen[bytes] | None = None
        self._messages: IO[bytes] | None = None
        self._lines: JsonLineReader | None = None
        self._socket: socket.socket | None = None
        self._number = 0
        self._answer: asyncio.Future[Json | None] | None = None
        self._acting = False
        self._lost = ""

    async def act(self, request: Json, *, marks: bool) -> Json:
        """Return the answer to "act" or "goto", with its pictures as spools. Raises ActionError."""
        pictures = {"screenshot": self._spools.new(), "marked_screenshot": self._spools.new() if marks else ""}
        paths = {name: str(self._spools.path(spool)) if spool else None for name, spool in pictures.items()}
        answer = cast("Json", await self._ask({**request, **paths}))
        for name, spool in pictures.items():
            exists = bool(spool) and self._spools.path(spool).exists()
            answer[name] = {"spool": spool, "media_type": "image/png"} if exists else None
        return answer

    async def command(self, name: str, arguments: Json) -> object:
        """Return the value of a command. Raises ActionError."""
        return await self._ask({"do": "command", "name": name, "arguments": arguments})

    async def interrupt(self) -> bool:
        """Stop the agent's request, and the browser if needed; return False if there is none."""
        answer = self._answer
        if answer is None or answer.done() or not self._acting:
            return False
        self._send({"interrupt": True})
        await asyncio.wait([answer], timeout=_GRACE)
        if not answer.done():
            self._kill()
            self._end()
        return True

    async def close(self) -> None:
        """End the browser: ask it to end, so that it writes its recordings, and kill it if it does not."""
        if self._process is not None:
            if self._lines is not None:
                self._lines.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self._process.wait, _CLOSING)
            self._kill()

    async def _ask(self, request: Json) -> object:
        if self._lost:
            lost, self._lost = self._lost, ""
            raise ActionError("browser", lost)
        if self._process is None:
            self._start()
        self._number += 1
        self._acting = request["do"] != "command"
        self._answer = asyncio.get_running_loop().create_future()
        try:
            self._send({"id": self._number, **request})
            async with asyncio.timeout(TIMEOUT):
                answer = await self._answer
        except TimeoutError:
            self._kill()
            raise ActionError(
                "browser", f"The browser did not answer in {TIMEOUT:.0f} s and was ended. {_RESTART_NOTE}"
            ) from None
        except asyncio.CancelledError:
            self._kill()
            raise
        finally:
            self._answer = None
        match answer:
            case {"answer": value}:
                return value
            case {"error": str(error)} | {"lost": str(error)}:
                raise ActionError("browser", error)
            case _:
                message = self._end_message()
                self._kill()
                raise ActionError("browser", message)

    def _start(self) -> None:
        if not os.path.exists(f"{TREE}/bin/chromium"):  # every sandbox has the folder itself
            raise ActionError(
                "no_browser",
                "This sandbox has no browser. In a checkout of Handiwork `make bundle` builds it, and sandboxes "
                "that are started then have it; without a sandbox, or on a Docker daemon elsewhere, there is none.",
            )
        ours, theirs = socket.socketpair()
        self._messages = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process runs
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-m", "inside.browser.worker", f"{TREE}/python", f"{TREE}/bin/chromium"],
                cwd=self._workspace,
                env=self._environment,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=self._messages,
                start_new_session=True,
            )
        self._children.owned_pids.add(self._process.pid)
        give_way(self._process.pid)
        self._socket = ours
        self._lines = JsonLineReader(ours, self._take)

    def _send(self, message: Json) -> None:
        assert self._socket is not None
        data = json.dumps(message).encode() + b"\n"
        self._socket.setblocking(True)
        try:
            with contextlib.suppress(OSError):  # its end is reported elsewhere
                self._socket.sendall(data)
        finally:
            self._socket.setblocking(False)

    def _take(self, message: Json | None) -> None:
        if message is None:
            self._end()
        elif self._answer is not None and not self._answer.done() and message.get("id") == self._number:
            self._answer.set_result(message)

    def _end(self) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(None)
        elif self._process is not None:
            self._lost = self._end_message()
            self._kill()

    def _end_message(self) -> str:
        output = self._error_output()
        return f"The browser's process ended.{f' It said: {output}' if output else ''} {_RESTART_NOTE}"

    def _error_output(self) -> str:
        if self._messages is None:
            return ""
        self._messages.seek(max(0, self._messages.seek(0, os.SEEK_END) - _ERROR_OUTPUT_LIMIT))
        return self._messages.read().decode(errors="backslashreplace").strip()

    def _kill(self) -> None:
        """Kill the process and all its descendants."""
        process, self._process = self._process, None
        if process is None:
            return
        for pid in [*_descendants(process.pid), process.pid]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        self._children.owned_pids.discard(process.pid)
        if self._lines is not None:
            self._lines.close()
        if self._messages is not None:
            self._messages.close()
        self._lines = self._socket = self._messages = None


def _descendants(pid: int) -> list[int]:
    """Return the descendants of a process."""
    parents = {child: int(fields[1]) for child, fields in processes()}
    pids: list[int] = []
    for child in parents:
        ancestor = child
        while ancestor in parents and ancestor != pid:
            ancestor = parents[ancestor]
        if ancestor == pid and child != pid:
            pids.append(child)
    return pids

"""The browser's process: reads requests as lines of JSON from the socket that is its stdin, and ends with it.

Run ``python -m inside.browser.worker TREE EXECUTABLE``; TREE contains Playwright for Python. A request is {"id": N,
"do": "act", "calls": TEXT} or {"do": "goto", "url": URL}, both with "view", "screenshot" and "marked_screenshot", which
are paths of files to write; or {"do": "command", "name": NAME, "arguments": {...}}. The answer is {"id": N, "answer":
...}, {"id": N, "error": TEXT} if a command was wrong, or {"id": N, "lost": TEXT} if the browser is gone. {"interrupt":
true} ends the running request early.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

from inside.hardening import refuse_inspection

_LIMIT = 7 << 20  # bytes of an answer, slightly less than the server accepts
_TEXT_LIMIT = 4 << 20  # bytes of a page's text
_REQUEST_LIMIT = 64 << 20
_PR_SET_CHILD_SUBREAPER = 36


class BrowserWorker:
    """Executes one request after the other."""

    def __init__(self, executable: Path, workspace: Path) -> None:
        from .engine import Engine

        self._workspace = workspace
        self._engine = Engine(executable, workspace)
        self._running: asyncio.Task[None] | None = None

    async def serve(self) -> None:
        """Answer requests until the socket is closed."""
        reader, self._writer = await asyncio.open_connection(sock=socket.socket(fileno=0), limit=_REQUEST_LIMIT)
        while line := await reader.readline():
            request = json.loads(line)
            if request.get("interrupt"):
                self._engine.interrupt()
                continue
            if self._running is not None:
                await self._running
            self._running = asyncio.create_task(self._take(request))
            await asyncio.sleep(0)  # starts the request before an interrupt of it is read
        if self._running is not None:
            self._engine.interrupt()
            await asyncio.wait([self._running], timeout=1)
        await self._engine.close()

    async def _take(self, request: dict[str, Any]) -> None:
        from .commands import CommandError
        from .engine import LostError

        answer: dict[str, Any] = {"id": request["id"]}
        try:
            answer["answer"] = await self._answer(request)
        except CommandError as error:
            answer["error"] = str(error)
        except LostError as error:
            answer["lost"] = str(error)
        except Exception as error:  # noqa: BLE001 - the client must get an answer
            answer["error"] = f"The browser failed: {type(error).__name__}: {str(error)[:1000]}"
        line = _encode(answer)
        if len(line) > _LIMIT:
            line = _encode({"id": request["id"], "error": f"the answer has {len(line)} bytes, over {_LIMIT}"})
        self._writer.write(line)
        await self._writer.drain()

    async def _answer(self, request: dict[str, Any]) -> Any:
        from .commands import run_command
        from .engine import Wish

        if request["do"] == "command":
            return await run_command(self._engine, request["name"], request["arguments"], self._workspace)
        marked = request["marked_screenshot"]
        wish = Wish(request["view"], Path(request["screenshot"]), Path(marked) if marked else None)
        if request["do"] == "goto":
            answer = await self._engine.goto(request["url"], wish)
        else:
            answer = await self._engine.act(request["calls"], wish)
        text = answer.get("text", "").encode(errors="backslashreplace")
        if len(text) > _TEXT_LIMIT:
            answer["text"] = text[:_TEXT_LIMIT].decode(errors="ignore") + "\n[the page has more text than is kept]"
        return answer


def _encode(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer, ensure_ascii=False).encode(errors="backslashreplace") + b"\n"


def main() -> None:
    """Serve until the socket is closed."""
    refuse_inspection()
    tree, executable = sys.argv[1:]
    sys.path.insert(0, tree)
    # Chromium's processes stay descendants of this one, so the server finds them if it must kill them.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # Playwright would otherwise use the proxy for the sandbox's own servers.
    os.environ["PLAYWRIGHT_DISABLE_FORCED_CHROMIUM_PROXIED_LOOPBACK"] = "1"
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(BrowserWorker(Path(executable), Path.cwd()).serve())


if __name__ == "__main__":
    main()

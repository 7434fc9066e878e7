"""A real action execution server in a process of its own, and a client that speaks its protocol."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

import handiwork.sandbox

PACKAGES = Path(handiwork.sandbox.__file__).parent


@dataclass
class Client:
    """Speaks the control protocol with one server."""

    http: httpx2.AsyncClient
    process: asyncio.subprocess.Process
    workspace: Path
    deltas: list[str] = field(default_factory=list)

    async def execute(self, type_: str, head: int = 8192, tail: int = 8192, **fields: Any) -> dict[str, Any]:
        """Perform an action and return its observation; the deltas are those of the last one."""
        self.deltas = []
        body = {"action": {"type": type_, **fields}, "keep": {"head": head, "tail": tail}}
        async with self.http.stream("POST", "/execute", json=body) as response:
            assert response.status_code == 200, await response.aread()
            lines = [json.loads(line) async for line in response.aiter_lines()]
        self.deltas = [line["output"] for line in lines[:-1]]
        return lines[-1]["observation"]

    async def run(self, command: str, **fields: Any) -> dict[str, Any]:
        return await self.execute("CmdRunAction", command=command, **fields)

    async def type(self, text: str, **fields: Any) -> dict[str, Any]:
        return await self.execute("CmdRunAction", command=text, is_input=True, **fields)

    async def wait(self, **fields: Any) -> dict[str, Any]:
        return await self.execute("CmdRunAction", command="", **fields)

    async def interrupt(self) -> bool:
        return (await self.http.post("/interrupt")).json()["interrupted"]


async def start_server(directory: Path, *arguments: str, **environment: str) -> Client:
    workspace = directory / "workspace"
    workspace.mkdir(exist_ok=True)
    path = str(directory / "s")
    settings = {
        "PATH": os.environ["PATH"],
        "HOME": str(directory),
        "TMPDIR": str(directory),
        "PYTHONPATH": str(PACKAGES),
        **environment,
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "inside", "--unix", path, "--workspace", str(workspace), *arguments),
        env=settings,
    )
    http = httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(uds=path), base_url="http://inside", timeout=100)
    while True:
        try:
            assert (await http.get("/health")).json()["ok"]
            return Client(http, process, workspace)
        except httpx2.ConnectError:
            assert process.returncode is None, "the server ended when it started"
            await asyncio.sleep(0.01)  # there is no event for a socket that comes into being


async def stop_server(client: Client) -> int:
    await client.http.aclose()
    client.process.send_signal(signal.SIGTERM)
    return await client.process.wait()

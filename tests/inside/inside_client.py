"""A real action execution server in a process of its own, and a client that speaks its protocol."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
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
    deltas: list[str] = field(default_factory=list[str])

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
    """Start a server that listens on a descriptor it inherits; it answers once it is up."""
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
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "inside", "--fd", str(listener.fileno())),
            *("--workspace", str(workspace), *arguments),
            env=settings,
            pass_fds=[listener.fileno()],
        )
    transport = httpx2.AsyncHTTPTransport(uds=path)
    client = httpx2.AsyncClient(transport=transport, base_url="http://inside", timeout=100)
    assert (await client.get("/health")).json()["ok"]
    return Client(client, process, workspace)


async def stop_server(client: Client) -> int:
    """Ask the server to end and return its exit code."""
    await client.http.aclose()
    if client.process.returncode is None:
        client.process.send_signal(signal.SIGTERM)
    return await client.process.wait()

"""Speaks with the action server inside a sandbox: HTTP over a unix socket, one connection for each request."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from pydantic import ValidationError

from handiwork.events.base import Action, Observation
from handiwork.events.codec import from_dict, to_dict
from handiwork.sandbox.base import OnOutput, SandboxError

SaveBlob = Callable[[AsyncIterator[bytes]], Awaitable[str]]
"""Keeps bytes and returns their SHA-256 in hex."""

KEEP = {"head": 8192, "tail": 8192}
"""Bytes of a large output that the observation itself holds."""

_MAX_LINE = 64 << 20
_LOST = "the sandbox was lost: its server no longer answers. It can be started again; files are kept."
_FILE_ERRORS: dict[str, type[OSError]] = {
    "not_found": FileNotFoundError,
    "is_directory": IsADirectoryError,
    "denied": PermissionError,
}


class Client:
    """The requests of the control protocol. What comes back is not trusted: the agent shares the server's world."""

    def __init__(self, socket: Path, save_blob: SaveBlob) -> None:
        self._save_blob = save_blob
        # Connections are not kept: a server that closes an idle one would fail the request that follows.
        transport = httpx2.AsyncHTTPTransport(
            uds=str(socket), limits=httpx2.Limits(max_keepalive_connections=0), retries=0
        )
        self._http = httpx2.AsyncClient(transport=transport, base_url="http://sandbox", timeout=None, trust_env=False)

    async def health(self) -> None:
        """Return when the server answers. Raises SandboxError."""
        async with self._request("GET", "/health") as response:
            await _checked(response)

    async def execute(self, action: Action, on_output: OnOutput | None = None) -> Observation:
        """Run the action; output that is too large for the observation is saved as a blob. Raises SandboxError."""
        body = {"action": to_dict(action), "keep": KEEP}
        answer: dict[str, Any] | None = None
        async with self._request("POST", "/execute", json=body) as response:
            await _checked(response)
            async for line in _lines(response):
                if "observation" in line:
                    answer = line["observation"]
                elif on_output is not None and "output" in line:
                    on_output(str(line["output"]))
        if not isinstance(answer, dict):
            raise SandboxError(_LOST)
        if spool := answer.pop("spool", None):
            answer["blob"] = await self._fetch_spool(str(spool))
        try:
            observation = from_dict(answer)
        except ValidationError as error:
            raise SandboxError(f"the sandbox's server gave an observation that does not fit: {error}") from error
        if not isinstance(observation, Observation):
            raise SandboxError(f"the sandbox's server answered with {observation.kind}, not an observation.")
        return observation

    async def interrupt(self) -> None:
        """Stop the running action. Raises SandboxError."""
        async with self._request("POST", "/interrupt") as response:
            await _checked(response)

    async def upload(self, path: str, data: AsyncIterator[bytes]) -> None:
        """Write a file. Raises SandboxError, or the OSError that fits."""
        async with self._request("PUT", "/files", params={"path": path}, content=data) as response:
            await _checked(response, path)

    async def download(self, path: str) -> AsyncIterator[bytes]:
        """Read a file. Raises SandboxError, or the OSError that fits."""
        async with self._request("GET", "/files", params={"path": path}) as response:
            await _checked(response, path)
            async for piece in response.aiter_bytes():
                yield piece

    async def list_files(self, path: str) -> list[str]:
        """List a directory. Raises SandboxError, or the OSError that fits."""
        async with self._request("GET", "/list", params={"path": path}) as response:
            await _checked(response, path)
            return [str(entry) for entry in json.loads(await response.aread())["entries"]]

    async def close(self) -> None:
        """Give back what the client holds."""
        await self._http.aclose()

    async def _fetch_spool(self, spool: str) -> str:
        address = httpx2.URL(f"http://sandbox/spool/{spool}")
        async with self._request("GET", address) as response:
            await _checked(response)
            blob = await self._save_blob(response.aiter_bytes())
        async with self._request("DELETE", address) as response:
            await _checked(response)
        return blob

    @asynccontextmanager
    async def _request(self, method: str, url: str | httpx2.URL, **rest: Any) -> AsyncGenerator[httpx2.Response]:
        try:
            async with self._http.stream(method, url, **rest) as response:
                yield response
        except httpx2.TransportError as error:
            raise SandboxError(_LOST) from error


async def _lines(response: httpx2.Response) -> AsyncIterator[dict[str, Any]]:
    """The JSON objects of the response, one a line; split at newlines only, as JSON text may hold other breaks."""
    rest = b""
    async for piece in response.aiter_bytes():
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > _MAX_LINE:
            raise SandboxError(f"the sandbox's server sent a line of more than {_MAX_LINE} bytes.")
        for line in lines:
            try:
                yield json.loads(line)
            except ValueError as error:
                raise SandboxError("the sandbox's server sent something that is not JSON.") from error


async def _checked(response: httpx2.Response, path: str = "") -> None:
    if response.status_code < 300:
        return
    text = (await response.aread()).decode("utf-8", "replace")[:2000]
    try:
        problem: Any = json.loads(text)
    except ValueError:
        problem = None
    if path and isinstance(problem, dict):
        found = _FILE_ERRORS.get(str(problem.get("error_id")))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - any JSON object
        message = str(problem.get("error", text))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - any JSON object
        raise (found or OSError)(message)
    raise SandboxError(f"the sandbox's server refused a request ({response.status_code}): {text}")

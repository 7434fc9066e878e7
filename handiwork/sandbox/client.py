"""Speaks with the action server inside a sandbox: HTTP over a unix socket."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx2
from pydantic import JsonValue, ValidationError

from handiwork.events.base import Action, Observation
from handiwork.events.codec import from_dict, to_dict
from handiwork.sandbox.base import NO_SECRETS, BrowserError, OnOutput, SandboxError

SaveBlob = Callable[[AsyncIterator[bytes]], Awaitable[str]]
"""Keeps bytes and returns their SHA-256 in hex."""

KEEP = {"head": 8192, "tail": 8192}
"""Bytes of a large output that the observation itself holds."""

KEEP_ALIVE = 600.0
"""Seconds that an idle connection is kept; the server keeps it for an hour."""

SPOOL_LIMIT = 1 << 30
"""Bytes of one observation's whole text that are fetched from a sandbox."""

IMAGE_LIMIT, IMAGE_COUNT = 3_750_000, 16
"""Bytes of one picture, and how many of one observation are fetched; more is not taken by models."""

IMAGE_BEGINNINGS = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff"}
"""The media types of pictures that are taken, and how their files begin."""

_REFUSED = 409
_MAX_ANSWER = 32 << 20
_SPOOL_ID = re.compile("[0-9a-zA-Z]{1,64}")
_NOT_UNDERSTOOD = "the sandbox's server gave an answer that is not of its protocol; the sandbox can be started again."
_LOST = "the sandbox was lost: its server no longer answers. It can be started again; files are kept."
_FILE_ERRORS: dict[str, type[OSError]] = {
    "not_found": FileNotFoundError,
    "is_directory": IsADirectoryError,
    "denied": PermissionError,
}


class Client:
    """The requests of the control protocol. What comes back is not trusted: the agent shares the server's world.

    ``spool_limit`` is in bytes.
    """

    def __init__(self, socket: Path, save_blob: SaveBlob, spool_limit: int = SPOOL_LIMIT) -> None:
        self._save_blob = save_blob
        self._spool_limit = spool_limit
        # The transport alone: a whole client's cookies, redirects and proxies have no place here, and take time.
        self._http = httpx2.AsyncHTTPTransport(
            uds=str(socket),
            # Given up long before the server closes an idle one, which would fail the request that follows.
            limits=httpx2.Limits(keepalive_expiry=KEEP_ALIVE),
            retries=0,
            # Nothing is encrypted: an empty context spares reading all the certificates there are.
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        )

    async def health(self) -> None:
        """Return when the server answers. Raises SandboxError."""
        async with self._request("GET", "/health") as response:
            await _checked(response)

    async def execute(
        self, action: Action, on_output: OnOutput | None = None, secrets: Mapping[str, str] = NO_SECRETS
    ) -> Observation:
        """Run the action; output that is too large for the observation is saved as a blob. Raises SandboxError."""
        body = {"action": to_dict(action), "keep": KEEP, "secrets": dict(secrets)}
        answer: dict[str, Any] | None = None
        async with self._request("POST", "/execute", json=body) as response:
            await _checked(response)
            async for line in _lines(response):
                if isinstance(found := line.get("observation"), dict):
                    answer = cast(dict[str, Any], found)
                elif on_output is not None and "output" in line:
                    # A lone surrogate can be said in JSON but not be printed.
                    on_output(str(line["output"]).encode("utf-8", "replace").decode())
        if answer is None:
            raise SandboxError(_LOST)
        # Which blobs there are is not the sandbox's to say.
        answer["blob"] = None
        if spool := answer.pop("spool", None):
            answer["blob"], whole = await self._fetch_spool(str(spool))
            if not whole:
                answer["tail"] = f"{answer.get('tail', '')}\n[only the first {self._spool_limit} bytes of it were kept]"
        if "images" in answer:
            answer["images"], problems = await self._fetch_images(answer["images"])
            answer["content"] = "\n".join([str(answer.get("content", "")), *problems])
        for name in ("screenshot", "marked_screenshot"):
            if answer.get(name) is not None:
                parts, problems = await self._fetch_images([answer[name]])
                answer[name] = parts[0] if parts else None
                last = "tail" if answer["blob"] else "content"
                answer[last] = "\n".join([str(answer.get(last, "")), *problems])
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

    async def browser(self, command: str, arguments: Mapping[str, JsonValue]) -> JsonValue:
        """Ask the browser something. Raises BrowserError, SandboxError."""
        body = {"command": command, "arguments": dict(arguments)}
        async with self._request("POST", "/browser", json=body) as response:
            if response.status_code == _REFUSED:
                raise BrowserError(str(_object(await _all_of(response)).get("error")))
            await _checked(response)
            return _object(await _all_of(response)).get("value")

    async def upload(self, path: str, data: AsyncIterator[bytes]) -> None:
        """Write a file. Raises SandboxError, or the OSError that fits."""
        async with self._request("PUT", "/files", params={"path": path}, content=data) as response:
            await _checked(response, path)

    async def download(self, path: str) -> AsyncIterator[bytes]:
        """Read a file. Raises SandboxError, or the OSError that fits."""
        async with self._request("GET", "/files", params={"path": path}) as response:
            await _checked(response, path)
            async for piece in response.aiter_raw():
                yield piece

    async def list_files(self, path: str) -> list[str]:
        """List a directory. Raises SandboxError, or the OSError that fits."""
        async with self._request("GET", "/list", params={"path": path}) as response:
            await _checked(response, path)
            entries: object = _object(await _all_of(response)).get("entries")
            if not isinstance(entries, list):
                raise SandboxError(_NOT_UNDERSTOOD)
            return [str(entry) for entry in cast(list[object], entries)]

    async def shell_state(self) -> bytes:
        """Return the bash code that gives another shell the state of this one. Raises SandboxError."""
        async with self._request("GET", "/shell") as response:
            await _checked(response)
            return await _all_of(response)

    async def close(self) -> None:
        """Give back what the client holds."""
        await self._http.aclose()

    async def _fetch_spool(self, spool: str) -> tuple[str, bool]:
        """Save the spool as a blob, and tell whether that is all of it."""
        if not _SPOOL_ID.fullmatch(spool):
            raise SandboxError(_NOT_UNDERSTOOD)
        whole = True

        async def first_bytes(response: httpx2.Response) -> AsyncIterator[bytes]:
            nonlocal whole
            left = self._spool_limit
            async for piece in response.aiter_raw():
                yield piece[:left]
                if len(piece) > left:
                    whole = False
                    return
                left -= len(piece)

        async with self._request("GET", f"/spool/{spool}") as response:
            await _checked(response)
            blob = await self._save_blob(first_bytes(response))
        async with self._request("DELETE", f"/spool/{spool}") as response:
            await _checked(response)
        return blob, whole

    async def _fetch_images(self, images: object) -> tuple[list[dict[str, Any]], list[str]]:
        """Save the pictures as blobs; return them as parts, and why some are left out."""
        if not isinstance(images, list) or len(cast(list[object], images)) > IMAGE_COUNT:
            raise SandboxError(_NOT_UNDERSTOOD)
        parts: list[dict[str, Any]] = []
        problems: list[str] = []
        for image in cast(list[object], images):
            if not isinstance(image, dict):
                raise SandboxError(_NOT_UNDERSTOOD)
            found = cast(dict[str, Any], image)
            media_type = str(found.get("media_type"))
            data = await self._take_spool(str(found.get("spool")), IMAGE_LIMIT)
            beginning = IMAGE_BEGINNINGS.get(media_type)
            # A model's provider refuses a whole conversation with a picture that is none.
            if beginning is None or not data.startswith(beginning) or len(data) > IMAGE_LIMIT:
                problems.append(f"[a picture is left out: it is no {' or '.join(IMAGE_BEGINNINGS)} of usual size]")
            else:
                parts.append({"blob": await self._save_blob(_once(data)), "media_type": media_type})
        return parts, problems

    async def _take_spool(self, spool: str, limit: int) -> bytes:
        """Return the first bytes of a spool, a little over the limit where there are more, and delete it."""
        if not _SPOOL_ID.fullmatch(spool):
            raise SandboxError(_NOT_UNDERSTOOD)
        data = bytearray()
        async with self._request("GET", f"/spool/{spool}") as response:
            await _checked(response)
            async for piece in response.aiter_raw():
                data += piece
                if len(data) > limit:
                    break
        async with self._request("DELETE", f"/spool/{spool}") as response:
            await _checked(response)
        return bytes(data)

    @asynccontextmanager
    async def _request(self, method: str, url: str, **rest: Any) -> AsyncGenerator[httpx2.Response]:
        try:
            response = await self._http.handle_async_request(httpx2.Request(method, f"http://sandbox{url}", **rest))
            try:
                yield response
            finally:
                await response.aclose()
        except httpx2.TransportError as error:
            raise SandboxError(_LOST) from error


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def _lines(response: httpx2.Response) -> AsyncIterator[dict[str, Any]]:
    """The JSON objects of the response, one a line; split at newlines only, as JSON text may hold other breaks."""
    line = bytearray()
    async for piece in _pieces(response):
        *ends, rest = piece.split(b"\n")
        for end in ends:
            yield _object(line + end)
            line.clear()
        line += rest


async def _all_of(response: httpx2.Response) -> bytes:
    return b"".join([piece async for piece in _pieces(response)])


async def _pieces(response: httpx2.Response) -> AsyncIterator[bytes]:
    """The bytes of an answer as they came, not unpacked; too many of them are an error."""
    left = _MAX_ANSWER
    async for piece in response.aiter_raw():
        left -= len(piece)
        if left < 0:
            raise SandboxError(f"the sandbox's server gave an answer of more than {_MAX_ANSWER} bytes.")
        yield piece


def _object(data: bytes | bytearray) -> dict[str, Any]:
    try:
        found: object = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SandboxError(_NOT_UNDERSTOOD) from error
    if not isinstance(found, dict):
        raise SandboxError(_NOT_UNDERSTOOD)
    return cast(dict[str, Any], found)


async def _checked(response: httpx2.Response, path: str = "") -> None:
    if response.status_code < 300:
        return
    body = await _all_of(response)
    text = body.decode("utf-8", "replace")[:2000]
    if path:
        problem = _object(body)
        found = _FILE_ERRORS.get(str(problem.get("error_id")), OSError)
        raise found(str(problem.get("error", text)))
    raise SandboxError(f"the sandbox's server refused a request ({response.status_code}): {text}")

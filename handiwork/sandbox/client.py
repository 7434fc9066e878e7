"""Client of the action server inside a sandbox: HTTP over a unix socket."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx2
from pydantic import JsonValue

from handiwork.errors import BrowserError, SandboxError
from handiwork.events.action import CmdRunAction, IPythonRunCellAction
from handiwork.events.answers import TEXT_LIMIT, AnswerError, answer
from handiwork.events.base import Action, Observation
from handiwork.events.codec import to_dict
from handiwork.sandbox.base import NO_SECRETS, OnOutput

SaveBlob = Callable[[AsyncIterator[bytes]], Awaitable[str]]
"""Saves bytes and returns their SHA-256 in hex."""

KEEP = {"head": 8192, "tail": 8192}
"""Bytes of a large output that are kept in the observation itself."""

KEEP_ALIVE = 600.0
"""Seconds that an idle connection is kept; the server keeps it for an hour."""

SPOOL_LIMIT = 64 << 20
"""Bytes of one observation's text that are fetched from a sandbox; its server stores no more."""

GRACE = 150.0
"""Seconds that an action may take beyond its timeout: a shell or notebook that does not start is tried again.

Also the limit for an action without a timeout, such as a file's, and for a command of the browser.
"""

IMAGE_LIMIT, IMAGE_COUNT = 3_750_000, 16
"""Bytes of one picture, and the number of pictures fetched for one observation; models accept no more."""

IMAGE_BEGINNINGS = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff"}
"""The accepted media types of pictures, and the first bytes of their files."""

_REFUSED = 409
_MAX_ANSWER = 32 << 20
_MAX_STATE = 2 << 20  # bytes; a shell's state takes at most half of that
_MAX_PROBLEM = 2000  # characters
_SHORT, _FETCH, _IDLE = 60.0, 300.0, 60.0  # seconds for a short request, for a spool, between two pieces of a file
_SPOOL_ID = re.compile("[0-9a-zA-Z]{1,64}")
_NOT_UNDERSTOOD = "the sandbox's server gave an answer that violates its protocol; the sandbox can be started again."
_LOST = "the sandbox was lost: its server no longer answers. It can be started again; files are kept."
_SILENT = "the sandbox's server did not answer in {:.0f} s. It can be started again; files are kept."
_FILE_ERRORS: dict[str, type[OSError]] = {
    "not_found": FileNotFoundError,
    "is_directory": IsADirectoryError,
    "denied": PermissionError,
}


class Client:
    """The requests of the control protocol. Answers are not trusted: the agent runs beside the server.

    ``spool_limit`` is in bytes. ``soft_timeout`` is the server's; ``grace`` is explained at GRACE.
    """

    def __init__(
        self,
        socket: Path,
        save_blob: SaveBlob,
        spool_limit: int = SPOOL_LIMIT,
        soft_timeout: float = 120.0,
        grace: float = GRACE,
    ) -> None:
        self._save_blob = save_blob
        self._spool_limit = spool_limit
        self._soft_timeout = soft_timeout
        self._grace = grace
        # Only the transport: a whole client's cookies, redirects and proxies are not needed here, and cost time.
        self._http = httpx2.AsyncHTTPTransport(
            uds=str(socket),
            # Dropped long before the server closes an idle connection, which would fail the next request.
            limits=httpx2.Limits(keepalive_expiry=KEEP_ALIVE),
            retries=0,
            # Nothing is encrypted: an empty context avoids reading all the machine's certificates.
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        )

    async def health(self) -> None:
        """Wait until the server answers. Raises SandboxError."""
        async with self._request("GET", "/health") as response:
            await _check(response)

    async def execute(
        self, action: Action, on_output: OnOutput | None = None, secrets: Mapping[str, str] = NO_SECRETS
    ) -> Observation:
        """Run the action; output too large for the observation is saved as a blob. Raises SandboxError."""
        async with _time_limit(self._timeout_of(action) + self._grace):
            fields = await self._ask(action, on_output, secrets)
        # Only the platform may name blobs.
        blobs: dict[str, Any] = {"blob": None}
        spool = fields.pop("spool", None)
        if spool is not None:
            blobs["blob"], complete = await self._fetch_spool(spool)
            if not complete:
                _add(fields, "tail", [f"[only the first {self._spool_limit} bytes of it were kept]"])
        if "images" in fields:
            blobs["images"], problems = await self._fetch_images(fields["images"])
            _add(fields, "content", problems)
        for name in ("screenshot", "marked_screenshot"):
            if fields.get(name) is not None:
                parts, problems = await self._fetch_images([fields[name]])
                blobs[name] = parts[0] if parts else None
                _add(fields, "content" if spool is None else "tail", problems)
        try:
            return answer(action, fields, blobs)
        except AnswerError as error:
            raise SandboxError(f"the sandbox's server gave an invalid answer: {error}.") from error

    async def _ask(self, action: Action, on_output: OnOutput | None, secrets: Mapping[str, str]) -> dict[str, Any]:
        """Return the server's raw answer for the observation."""
        body = {"action": to_dict(action), "keep": KEEP, "secrets": dict(secrets)}
        fields: dict[str, Any] | None = None
        async with self._request("POST", "/execute", json=body) as response:
            await _check(response)
            async for line in _lines(response):
                match line:
                    case {"output": str(text)} if fields is None:
                        if on_output is not None:
                            # JSON can hold a lone surrogate, which cannot be printed.
                            on_output(text.encode("utf-8", "replace").decode())
                    case {"observation": dict()} if fields is None:
                        fields = cast(dict[str, Any], line["observation"])
                    case _:
                        raise SandboxError(_NOT_UNDERSTOOD)
        if fields is None:
            raise SandboxError(_LOST)
        return fields

    def _timeout_of(self, action: Action) -> float:
        """Return the seconds after which the server itself stops the action, or stops waiting for it."""
        match action:
            case CmdRunAction(background=True):
                return 0.0
            case CmdRunAction() | IPythonRunCellAction():
                return action.timeout or self._soft_timeout
            case _:
                return 0.0

    async def interrupt(self) -> None:
        """Stop the running action. Raises SandboxError."""
        async with _time_limit(_SHORT), self._request("POST", "/interrupt") as response:
            await _check(response)

    async def browser(self, command: str, arguments: Mapping[str, JsonValue]) -> JsonValue:
        """Run a command of the browser. Raises BrowserError, SandboxError."""
        body = {"command": command, "arguments": dict(arguments)}
        async with _time_limit(self._grace), self._request("POST", "/browser", json=body) as response:
            if response.status_code == _REFUSED:
                raise BrowserError(_problem(_object(await _read_all(response)), "it gives no reason"))
            await _check(response)
            return _object(await _read_all(response)).get("value")

    async def upload(self, path: str, data: AsyncIterator[bytes]) -> None:
        """Write a file. Raises SandboxError, or the matching OSError."""
        async with self._request("PUT", "/files", idle=_IDLE, params={"path": path}, content=data) as response:
            await _check(response, path)

    async def download(self, path: str) -> AsyncIterator[bytes]:
        """Read a file. Raises SandboxError, or the matching OSError."""
        async with self._request("GET", "/files", idle=_IDLE, params={"path": path}) as response:
            await _check(response, path)
            async for piece in response.aiter_raw():
                yield piece

    async def shell_state(self) -> bytes:
        """Return the bash code that gives another shell the state of this one. Raises SandboxError."""
        async with _time_limit(_SHORT), self._request("GET", "/shell") as response:
            await _check(response)
            return await _read_all(response, _MAX_STATE)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _fetch_spool(self, spool: object) -> tuple[str, bool]:
        """Save the spool as a blob; return the blob, and whether it is complete."""
        path = _spool_path(spool)
        complete = True

        async def first_bytes(response: httpx2.Response) -> AsyncIterator[bytes]:
            nonlocal complete
            remaining = self._spool_limit
            async for piece in response.aiter_raw():
                yield piece[:remaining]
                if len(piece) > remaining:
                    complete = False
                    return
                remaining -= len(piece)

        async with _time_limit(_FETCH), self._request("GET", path) as response:
            await _check(response)
            blob = await self._save_blob(first_bytes(response))
        await self._delete(path)
        return blob, complete

    async def _fetch_images(self, images: object) -> tuple[list[dict[str, Any]], list[str]]:
        """Save the pictures as blobs; return them as parts, and a message for each picture left out."""
        if not isinstance(images, list) or len(cast(list[object], images)) > IMAGE_COUNT:
            raise SandboxError(_NOT_UNDERSTOOD)
        parts: list[dict[str, Any]] = []
        problems: list[str] = []
        for image in cast(list[object], images):
            if not isinstance(image, dict):
                raise SandboxError(_NOT_UNDERSTOOD)
            picture = cast(dict[str, Any], image)
            media_type = picture.get("media_type")
            data = await self._take_spool(picture.get("spool"), IMAGE_LIMIT)
            beginning = IMAGE_BEGINNINGS.get(media_type) if isinstance(media_type, str) else None
            # A model's provider refuses a whole conversation if one of its pictures is invalid.
            if beginning is None or not data.startswith(beginning) or len(data) > IMAGE_LIMIT:
                problems.append(f"[a picture is left out: it is no {' or '.join(IMAGE_BEGINNINGS)} of usual size]")
            else:
                parts.append({"blob": await self._save_blob(_once(data)), "media_type": media_type})
        return parts, problems

    async def _take_spool(self, spool: object, limit: int) -> bytes:
        """Return the first bytes of a spool, slightly over the limit if it is longer, and delete it."""
        path = _spool_path(spool)
        data = bytearray()
        async with _time_limit(_FETCH), self._request("GET", path) as response:
            await _check(response)
            async for piece in response.aiter_raw():
                data += piece
                if len(data) > limit:
                    break
        await self._delete(path)
        return bytes(data)

    async def _delete(self, path: str) -> None:
        async with _time_limit(_SHORT), self._request("DELETE", path) as response:
            await _check(response)

    @asynccontextmanager
    async def _request(
        self, method: str, url: str, *, idle: float | None = None, **rest: Any
    ) -> AsyncGenerator[httpx2.Response]:
        """Send a request; fail after ``idle`` seconds without a byte sent or received."""
        timeouts = {"timeout": {"read": idle, "write": idle}}
        request = httpx2.Request(method, f"http://sandbox{url}", extensions=timeouts, **rest)
        try:
            response = await self._http.handle_async_request(request)
            try:
                yield response
            finally:
                await response.aclose()
        except httpx2.TransportError as error:
            raise SandboxError(_LOST) from error


@asynccontextmanager
async def _time_limit(seconds: float) -> AsyncGenerator[None]:
    """Limit the enclosed work to ``seconds``. Raises SandboxError when it takes longer."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise SandboxError(_SILENT.format(seconds)) from error


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def _lines(response: httpx2.Response) -> AsyncIterator[dict[str, Any]]:
    """Yield the JSON objects of the response, one per line; only newlines split, as JSON text may hold other breaks."""
    line = bytearray()
    async for piece in _pieces(response):
        *ends, rest = piece.split(b"\n")
        for end in ends:
            yield _object(line + end)
            line.clear()
        line += rest


async def _read_all(response: httpx2.Response, limit: int = _MAX_ANSWER) -> bytes:
    return b"".join([piece async for piece in _pieces(response, limit)])


async def _pieces(response: httpx2.Response, limit: int = _MAX_ANSWER) -> AsyncIterator[bytes]:
    """Yield the raw bytes of an answer, not decompressed. Raises SandboxError for more than ``most`` bytes."""
    remaining = limit
    async for piece in response.aiter_raw():
        remaining -= len(piece)
        if remaining < 0:
            raise SandboxError(f"the sandbox's server gave an answer of more than {limit} bytes.")
        yield piece


def _spool_path(spool: object) -> str:
    if not isinstance(spool, str) or not _SPOOL_ID.fullmatch(spool):
        raise SandboxError(_NOT_UNDERSTOOD)
    return f"/spool/{spool}"


def _add(fields: dict[str, Any], name: str, lines: Sequence[str]) -> None:
    """Append the platform's own lines to a text from the sandbox."""
    text = fields.get(name, "")
    if lines and isinstance(text, str):
        added = "".join(f"\n{line}" for line in lines)
        fields[name] = text[: TEXT_LIMIT - len(added)] + added


def _problem(body: Mapping[str, Any], default: str) -> str:
    """Return the error message of the server."""
    text = body.get("error")
    return (text if isinstance(text, str) else default)[:_MAX_PROBLEM]


def _object(data: bytes | bytearray) -> dict[str, Any]:
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SandboxError(_NOT_UNDERSTOOD) from error
    if not isinstance(value, dict):
        raise SandboxError(_NOT_UNDERSTOOD)
    return cast(dict[str, Any], value)


async def _check(response: httpx2.Response, path: str = "") -> None:
    if response.status_code < 300:
        return
    body = await _read_all(response)
    text = body.decode("utf-8", "replace")[:_MAX_PROBLEM]
    if path:
        problem = _object(body)
        error_id = problem.get("error_id")
        error_type = _FILE_ERRORS.get(error_id, OSError) if isinstance(error_id, str) else OSError
        raise error_type(_problem(problem, text))
    raise SandboxError(f"the sandbox's server refused a request ({response.status_code}): {text}")

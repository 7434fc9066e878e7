"""Client of the action server inside a sandbox: HTTP over a unix socket."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx2
from pydantic import JsonValue

from handiwork.errors import BrowserError, SandboxError
from handiwork.events.action import CmdRunAction, HookRunAction, IPythonRunCellAction
from handiwork.events.answers import HOOK_LIMIT, TEXT_LIMIT, AnswerError, answer
from handiwork.events.base import Action, Observation, Part
from handiwork.events.codec import to_dict
from handiwork.events.pictures import LONGEST_SIDE, PNG, longest_side
from handiwork.sandbox.base import NO_SECRETS, OnOutput
from handiwork.sandbox.pipe import PIECE_LIMIT, Pipe, PipeError
from handiwork.sandbox.questions import AskModel, ModelQuestions, QuestionError
from handiwork.sandbox.responses import NOT_UNDERSTOOD, check, json_lines, json_object, read_all, reason_of
from handiwork.sandbox.streams.byte_stream import ByteStream, Size, StreamRefusedError, as_fields, opened_stream

SaveBlob = Callable[[AsyncIterator[bytes]], Awaitable[str]]
"""Saves bytes and returns their SHA-256 in hex."""

KEEP = {"head": 8192, "tail": 8192}
"""Bytes of a large output that are kept in the observation itself."""

KEEP_OF_HOOK = {"head": HOOK_LIMIT // 2, "tail": HOOK_LIMIT // 2}
"""The same for a hook, whose observation is in no log."""

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

IMAGE_BEGINNINGS = {"image/png": PNG, "image/jpeg": b"\xff\xd8\xff"}
"""The accepted media types of pictures, and the first bytes of their files."""

LEFT_OUT = (
    f"[a picture is left out: it is no {' or '.join(IMAGE_BEGINNINGS)} of usual size, which is {LONGEST_SIDE} pixels a "
    f"side and {IMAGE_LIMIT / 1e6} MB at most]"
)
"""What the model is told instead of another picture."""

SOUND_BEGINNINGS = {"audio/wav": b"RIFF", "audio/mpeg": (b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2", b"\xff\xfa")}
"""The accepted media types of sounds, and how their files may begin."""

Beginning = bytes | tuple[bytes, ...]

_REFUSED, _NOT_FOUND = 409, 404
_MAX_STATE = 2 << 20  # bytes; a shell's state takes at most half of that
_SHORT, _FETCH, _IDLE = 60.0, 300.0, 60.0  # seconds for a short request, for a spool, between two pieces of a file
_HANDLE = re.compile("[0-9a-zA-Z]{1,64}")
_LOST = "the sandbox was lost: its server no longer answers. It can be started again; files are kept."
_SILENT = "the sandbox's server did not answer in {:.0f} s. It can be started again; files are kept."


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
            await check(response)

    async def execute(
        self,
        action: Action,
        on_output: OnOutput | None = None,
        secrets: Mapping[str, str] = NO_SECRETS,
        ask: AskModel | None = None,
    ) -> Observation:
        """Run the action; output too large for the observation is saved as a blob. Raises SandboxError.

        ``ask`` answers the questions of a cell's skills; those that are open when the action ends are dropped.
        """
        questions = ModelQuestions(ask, self._fetch_media, self._send_answer)
        try:
            async with _time_limit(self._timeout_of(action) + self._grace):
                fields = await self._request_action(action, on_output, secrets, questions)
        finally:
            await questions.drop()
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

    async def _fetch_media(self, media: object) -> Part:
        """Return the picture or sound of a question. Raises QuestionError."""
        part = await self._fetch_part(media, {**IMAGE_BEGINNINGS, **SOUND_BEGINNINGS})
        if part is None:
            raise QuestionError("it is no picture or sound of usual kind and size")
        return Part(**part)

    async def _send_answer(self, number: int, text: str, problem: str) -> None:
        body = {"question": number, "text": text, "problem": problem}
        await self._send("POST", "/answer", json=body)

    async def _request_action(
        self, action: Action, on_output: OnOutput | None, secrets: Mapping[str, str], questions: ModelQuestions
    ) -> dict[str, Any]:
        """Return the server's raw answer for the observation."""
        keep = KEEP_OF_HOOK if isinstance(action, HookRunAction) else KEEP
        body = {"action": to_dict(action), "keep": keep, "secrets": dict(secrets)}
        fields: dict[str, Any] | None = None
        async with self._request("POST", "/execute", json=body) as response:
            await check(response)
            async for line in json_lines(response):
                match line:
                    case {"output": str(text)} if fields is None:
                        if on_output is not None:
                            # JSON can hold a lone surrogate, which cannot be printed.
                            on_output(text.encode("utf-8", "replace").decode())
                    case {"question": int(number), "prompt": str(prompt), "media": dict()} if fields is None:
                        questions.add(number, prompt, line["media"])
                    case {"observation": dict()} if fields is None:
                        fields = cast(dict[str, Any], line["observation"])
                    case _:
                        raise SandboxError(NOT_UNDERSTOOD)
        if fields is None:
            raise SandboxError(_LOST)
        return fields

    def _timeout_of(self, action: Action) -> float:
        """Return the seconds after which the action is stopped, or the server stops waiting for it."""
        match action:
            case CmdRunAction(background=True):
                return 0.0
            case CmdRunAction() | IPythonRunCellAction():
                return action.timeout or self._soft_timeout
            case HookRunAction():
                return action.timeout or 0.0
            case _:
                return 0.0

    async def interrupt(self) -> None:
        """Stop the running action. Raises SandboxError."""
        await self._send("POST", "/interrupt")

    async def browser(self, command: str, arguments: Mapping[str, JsonValue]) -> JsonValue:
        """Run a command of the browser. Raises BrowserError, SandboxError."""
        body = {"command": command, "arguments": dict(arguments)}
        async with _time_limit(self._grace), self._request("POST", "/browser", json=body) as response:
            if response.status_code == _REFUSED:
                raise BrowserError(await reason_of(response))
            await check(response)
            return json_object(await read_all(response)).get("value")

    async def give_skills(self, skills: Sequence[Mapping[str, JsonValue]]) -> None:
        """Give the notebook's next kernels these skills of the user. Raises SandboxError."""
        body = {"skills": [dict(file) for file in skills]}
        await self._send("PUT", "/skills", json=body)

    async def upload(self, path: str, data: AsyncIterator[bytes]) -> None:
        """Write a file. Raises SandboxError, or the matching OSError."""
        async with self._request("PUT", "/files", idle=_IDLE, params={"path": path}, content=data) as response:
            await check(response, path)

    async def download(self, path: str) -> AsyncIterator[bytes]:
        """Read a file. Raises SandboxError, or the matching OSError."""
        async with self._request("GET", "/files", idle=_IDLE, params={"path": path}) as response:
            await check(response, path)
            async for piece in response.aiter_raw():
                yield piece

    async def shell_state(self) -> bytes:
        """Return the bash code that gives another shell the state of this one. Raises SandboxError."""
        async with _time_limit(_SHORT), self._request("GET", "/shell") as response:
            await check(response)
            return await read_all(response, _MAX_STATE)

    @asynccontextmanager
    async def pipe(self, command: Sequence[str], variables: Mapping[str, str]) -> AsyncGenerator[Pipe]:
        """Start a program, which ends with the context. Raises PipeError, SandboxError."""
        body = {"command": list(command), "variables": dict(variables)}
        async with self._request("POST", "/pipe", json=body) as response:
            if response.status_code == _NOT_FOUND:
                raise PipeError(await reason_of(response))
            await check(response)
            pieces = json_lines(response, PIECE_LIMIT)
            first: dict[str, Any] = await anext(pieces, cast("dict[str, Any]", {}))
            path = _path("pipe", first.get("pipe"))

            async def write(data: bytes) -> None:
                await self._send("PUT", path, content=data)

            yield Pipe(pieces, write)

    def terminal(self, size: Size) -> AbstractAsyncContextManager[ByteStream]:
        """Open a terminal for the user, whose shell ends with the context. Raises StreamRefusedError, SandboxError."""
        return self._stream("/terminal", as_fields(size))

    def connect(self, port: int) -> AbstractAsyncContextManager[ByteStream]:
        """Connect to a server on the sandbox's loopback. Raises StreamRefusedError, SandboxError."""
        return self._stream("/connection", {"port": port})

    async def ports(self) -> list[int]:
        """Return the TCP ports on which programs inside listen, ascending. Raises SandboxError."""
        async with _time_limit(_SHORT), self._request("GET", "/ports") as response:
            await check(response)
            ports: object = json_object(await read_all(response)).get("ports")
        found = cast(list[object], ports) if isinstance(ports, list) else []
        return [port for port in found if isinstance(port, int) and 0 < port < 1 << 16]

    @asynccontextmanager
    async def _stream(self, path: str, fields: Mapping[str, int]) -> AsyncGenerator[ByteStream]:
        async def send(method: str, path: str, body: bytes) -> None:
            await self._send(method, path, content=body)

        async with self._request("POST", path, json=fields) as response:
            if response.status_code == _NOT_FOUND:
                raise StreamRefusedError(await reason_of(response))
            await check(response)
            yield await opened_stream(response, send)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _fetch_spool(self, spool: object) -> tuple[str, bool]:
        """Save the spool as a blob; return the blob, and whether it is complete."""
        path = _path("spool", spool)
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
            await check(response)
            blob = await self._save_blob(first_bytes(response))
        await self._send("DELETE", path)
        return blob, complete

    async def _fetch_images(self, images: object) -> tuple[list[dict[str, Any]], list[str]]:
        """Save the pictures as blobs; return them as parts, and a message for each picture left out."""
        if not isinstance(images, list) or len(cast(list[object], images)) > IMAGE_COUNT:
            raise SandboxError(NOT_UNDERSTOOD)
        parts: list[dict[str, Any]] = []
        problems: list[str] = []
        for image in cast(list[object], images):
            if (part := await self._fetch_part(image, IMAGE_BEGINNINGS)) is None:
                problems.append(LEFT_OUT)
            else:
                parts.append(part)
        return parts, problems

    async def _fetch_part(self, media: object, beginnings: Mapping[str, Beginning]) -> dict[str, Any] | None:
        """Save a picture or sound of one of these kinds as a blob; return it as a part, None for any other."""
        if not isinstance(media, dict):
            raise SandboxError(NOT_UNDERSTOOD)
        fields = cast(dict[str, Any], media)
        media_type = fields.get("media_type")
        data = await self._take_spool(fields.get("spool"), IMAGE_LIMIT)
        beginning = beginnings.get(media_type) if isinstance(media_type, str) else None
        # A model's provider refuses a whole conversation if one of its pictures is invalid.
        if beginning is None or not data.startswith(beginning) or len(data) > IMAGE_LIMIT:
            return None
        if longest_side(data) > LONGEST_SIDE:
            return None
        return {"blob": await self._save_blob(_once(data)), "media_type": media_type}

    async def _take_spool(self, spool: object, limit: int) -> bytes:
        """Return the first bytes of a spool, slightly over the limit if it is longer, and delete it."""
        path = _path("spool", spool)
        data = bytearray()
        async with _time_limit(_FETCH), self._request("GET", path) as response:
            await check(response)
            async for piece in response.aiter_raw():
                data += piece
                if len(data) > limit:
                    break
        await self._send("DELETE", path)
        return bytes(data)

    async def _send(self, method: str, path: str, **rest: Any) -> None:
        """Send a short request of whose answer nothing is needed. Raises SandboxError."""
        async with _time_limit(_SHORT), self._request(method, path, **rest) as response:
            await check(response)

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


def _path(kind: str, handle: object) -> str:
    if not isinstance(handle, str) or not _HANDLE.fullmatch(handle):
        raise SandboxError(NOT_UNDERSTOOD)
    return f"/{kind}/{handle}"


def _add(fields: dict[str, Any], name: str, lines: Sequence[str]) -> None:
    """Append the platform's own lines to a text from the sandbox."""
    text = fields.get(name, "")
    if lines and isinstance(text, str):
        added = "".join(f"\n{line}" for line in lines)
        fields[name] = text[: TEXT_LIMIT - len(added)] + added

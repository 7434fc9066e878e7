"""HTTP clients for untrusted model servers: no redirects, no compression, bounded answers."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2

from handiwork.llm.errors import AnswerTooLargeError, LLMError, RedirectError

MEGABYTE = 1024 * 1024

STREAM_BYTES = 64 * MEGABYTE
"""Bytes of a streamed answer: today's longest take 40 MB including the data around their tokens."""

PAGE_BYTES = 4 * MEGABYTE
"""Bytes of an answer to a request without a prompt, such as a list of models."""

ERROR_BYTES = 64 * 1024
"""Bytes that are read of a server's error message; the rest is dropped."""

EVENT_BYTES = MEGABYTE
"""Bytes of a streamed answer without an empty line, which ends an event."""

CONNECT = 10.0
"""Seconds for a connection, in which a server that can be reached answers, however busy: the kernel gives up only after
two minutes, as behind a firewall that drops packets.
"""

_LOOPBACK = ("all://localhost", "all://127.0.0.0/8", "all://0.0.0.0", "all://[::1]")
"""Addresses of this machine, which no proxy reaches and no proxy may read."""


@dataclass(slots=True)
class LastByte:
    """The ``time`` at which the last piece of an answer came, by time.monotonic()."""

    time: float


LAST_BYTE: ContextVar[LastByte | None] = ContextVar("LAST_BYTE", default=None)
"""That of the call which this task makes: calls side by side share a client, and a silent one must be noticed."""


class BoundedClient(httpx2.AsyncClient):
    """A client with options of httpx2, which sets the task's ``LAST_BYTE``.

    Its requests raise RedirectError instead of following a redirect, AnswerTooLargeError while the body of an answer is
    read, and LLMError for a compressed answer, whose unpacked size would have to be bounded too. ``connect`` are the
    seconds for a connection, whatever the timeout of a request is. The constructor raises LLMError if the environment
    names a proxy of another kind than HTTP and SOCKS 5.
    """

    def __init__(self, *, connect: float = CONNECT, **options: Any) -> None:
        self._connect = connect
        hooks = {"request": [self._prepare], "response": [self._bound]}
        direct: dict[str, None] = dict.fromkeys(_LOOPBACK)
        try:
            super().__init__(follow_redirects=False, event_hooks=hooks, mounts=direct, **options)
        except (ValueError, httpx2.InvalidURL) as error:
            raise LLMError(
                f"a proxy of your environment (http_proxy, https_proxy or all_proxy) cannot be used: {error}; "
                "make it http://HOST:PORT or socks5://HOST:PORT, or unset the variable"
            ) from error

    async def _prepare(self, request: httpx2.Request) -> None:
        request.headers["Accept-Encoding"] = "identity"
        # Here, since the providers' libraries give each request a timeout of its own.
        request.extensions["timeout"] = {**request.extensions.get("timeout", {}), "connect": self._connect}

    async def _bound(self, response: httpx2.Response) -> None:
        if 300 <= response.status_code < 400:
            raise RedirectError(_redirect(response))
        stream = response.stream
        assert isinstance(stream, httpx2.AsyncByteStream)
        encodings = {encoding.strip() for encoding in response.headers.get("content-encoding", "").lower().split(",")}
        encoded = bool(encodings - {"", "identity"})
        if not response.is_success:
            response.stream = _Beginning(stream, 0 if encoded else ERROR_BYTES)
        elif encoded:
            sender = origin_of(response.request.url)
            raise LLMError(f"{sender} sent a compressed answer, which this client did not request")
        else:
            # Regardless of the answer's media type: the libraries read it as a stream of events.
            streamed = response.request.method != "GET"
            response.stream = _Bounded(stream, response, STREAM_BYTES if streamed else PAGE_BYTES, streamed)


async def lines_of(response: httpx2.Response) -> AsyncIterator[str]:
    """Yield the lines of a streamed answer that have data, and an empty line for every piece that arrives.

    An object on many lines, from a server that does not stream, is one line. Raises AnswerTooLargeError for a line that
    is too long.
    """
    buffer = bytearray()
    is_object = False
    async for piece in response.aiter_raw():
        yield ""
        *lines, last = piece.split(b"\n")
        for line in lines:
            buffer += line
            is_object = is_object or bytes(buffer.strip()) == b"{"
            if is_object:
                continue
            if buffer.startswith((b"data:", b"{")):
                yield buffer.decode(errors="replace").removesuffix("\r")
            buffer.clear()
        buffer += last
        if len(buffer) > EVENT_BYTES:
            raise _too_large(response, EVENT_BYTES, " in one event")
    if buffer:
        yield buffer.decode(errors="replace")


def _redirect(response: httpx2.Response) -> str:
    origin = origin_of(response.request.url)
    try:
        target = urlsplit(str(response.request.url.join(response.headers["location"])))
        destination = f"{target.scheme}://{target.netloc.rpartition('@')[2]}"[:200]
    except (KeyError, ValueError, httpx2.InvalidURL):
        destination = "an invalid address"
    return (
        f"{origin} redirects to {destination} (HTTP {response.status_code}), and a conversation is sent to no other "
        "address than the one you gave: make the base URL the final one if you trust it"
    )


def origin_of(url: httpx2.URL) -> str:
    """Return scheme, host and port of an address, without credentials."""
    return f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}"


def _too_large(response: httpx2.Response, limit: int, detail: str = "") -> AnswerTooLargeError:
    server = origin_of(response.request.url)
    return AnswerTooLargeError(
        f"the model's server {server} sent more than {limit // MEGABYTE} MB{detail}, so its answer was not read further"
    )


_EMPTY_LINE = re.compile(rb"\n\r?\n|\r\r")


class _Bounded(httpx2.AsyncByteStream):
    """The body of an answer; raises AnswerTooLargeError after ``limit`` bytes, if ``streamed`` for a long event too."""

    def __init__(
        self,
        body: httpx2.AsyncByteStream,
        response: httpx2.Response,
        limit: int,
        streamed: bool,
    ) -> None:
        self._body, self._response = body, response
        self._limit, self._streamed = limit, streamed

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = event = 0
        previous = b""
        async for piece in self._body:
            if (last := LAST_BYTE.get()) is not None:
                last.time = time.monotonic()
            size += len(piece)
            ends = [match.end() for match in _EMPTY_LINE.finditer(previous + piece)]
            event = len(previous) + len(piece) - ends[-1] if ends else event + len(piece)
            previous = piece[-3:]
            if size > self._limit:
                raise _too_large(self._response, self._limit)
            if self._streamed and event > EVENT_BYTES:
                raise _too_large(self._response, EVENT_BYTES, " in one event")
            yield piece

    async def aclose(self) -> None:
        await self._body.aclose()


class _Beginning(httpx2.AsyncByteStream):
    """The first bytes of a body."""

    def __init__(self, body: httpx2.AsyncByteStream, size: int) -> None:
        self._body, self._size = body, size

    async def __aiter__(self) -> AsyncIterator[bytes]:
        remaining = self._size
        if remaining:
            async for piece in self._body:
                yield piece[:remaining]
                remaining -= len(piece)
                if remaining <= 0:
                    break

    async def aclose(self) -> None:
        await self._body.aclose()


def cause_of(error: BaseException) -> LLMError | None:
    """Return the LLMError that a library wrapped into its own error, None if there is none."""
    visited: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in visited:
        if isinstance(cause, LLMError):
            return cause
        visited.add(id(cause))
        cause = cause.__cause__ or cause.__context__
    return None

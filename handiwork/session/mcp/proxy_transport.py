"""HTTP through the egress proxy on its unix socket, with bounded answers."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpcore2
import httpx2

ANSWER_LIMIT = 16 << 20
"""The maximum bytes of one answer, except for a stream of events, whose events the SDK limits."""


class ProxyTransport(httpx2.AsyncBaseTransport):
    """Reaches every host through the HTTP proxy on the unix socket at ``path``; follows no redirect."""

    def __init__(self, path: Path) -> None:
        self._pool = httpcore2.AsyncHTTPProxy(
            "http://egress", ssl_context=ssl.create_default_context(), network_backend=_ProxyBackend(path)
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request. Raises ConnectError with the proxy's reason for a refusal, ReadError, ReadTimeout."""
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        # A compressed answer could unpack to any size.
        request.headers["Accept-Encoding"] = "identity"
        raw = httpcore2.Request(
            request.method,
            httpcore2.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        async with _httpx_errors():
            response = await self._pool.handle_async_request(raw)
        headers = httpx2.Headers(response.headers)
        if headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise httpx2.ReadError("the answer is compressed, which was not requested")
        extensions: dict[str, Any] = cast(Any, response).extensions
        body = _BoundedBody(response, headers.get("content-type", "").startswith("text/event-stream"))
        return httpx2.Response(response.status, headers=headers, stream=body, extensions=extensions)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._pool.aclose()


class _ProxyBackend(httpcore2.AsyncNetworkBackend):
    """Connects to the proxy for every host."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sockets: Any = httpcore2.AnyIOBackend()  # its type is a stand-in if anyio is missing

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        return await self._sockets.connect_unix_socket(str(self._path), timeout)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _BoundedBody(httpx2.AsyncByteStream):
    """The body of an answer; raises ReadError beyond ANSWER_LIMIT bytes if it is not a stream of events."""

    def __init__(self, response: httpcore2.Response, endless: bool) -> None:
        self._response, self._endless = response, endless

    async def __aiter__(self) -> AsyncIterator[bytes]:
        remaining = ANSWER_LIMIT
        async with _httpx_errors():
            async for piece in self._response.aiter_stream():
                remaining -= len(piece)
                if remaining < 0 and not self._endless:
                    raise httpx2.ReadError(f"the answer has more than {ANSWER_LIMIT} bytes")
                yield piece

    async def aclose(self) -> None:
        await self._response.aclose()


@asynccontextmanager
async def _httpx_errors() -> AsyncGenerator[None]:
    """Raise the errors of httpcore2 as those of httpx2."""
    try:
        yield
    except httpcore2.TimeoutException as error:
        raise httpx2.ReadTimeout(str(error) or "no answer in time") from error
    except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.ProxyError) as error:
        raise httpx2.ConnectError(str(error) or type(error).__name__) from error

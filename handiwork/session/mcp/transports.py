"""How the SDK's client reaches a server: through a program's pipes in the sandbox, or by HTTP through the egress."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx2

from handiwork.errors import SandboxError
from handiwork.events.record import EgressEvent
from handiwork.sandbox.egress.proxy import Egress, Proxy
from handiwork.sandbox.pipe import Pipe
from handiwork.session.mcp.proxy_transport import ProxyTransport

QUIET = 300.0
"""Seconds for which a server may send nothing, unless its calls may take longer."""

Streams = tuple[Any, Any]
"""The messages from a server and those to it, as the SDK's client takes them."""


@asynccontextmanager
async def pipe_transport(pipe: Pipe, end: Callable[[str], None]) -> AsyncGenerator[Streams]:
    """Return streams to the program behind the pipe; ``end`` is called when it ends, with the reason if known."""
    import anyio
    import mcp_types as types
    from mcp.shared.message import SessionMessage

    to_session, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, from_session = anyio.create_memory_object_stream[SessionMessage](0)

    async def receive() -> None:
        problem = ""
        try:
            async with to_session:
                async for line in pipe.lines():
                    if not line.strip():
                        continue
                    try:
                        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                    except ValueError as error:
                        await to_session.send(error)  # a line of a log on stdout, say
                    else:
                        await to_session.send(SessionMessage(message))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # the session sees its stream closed
        except SandboxError as error:
            problem = str(error)
        end(problem)

    async def send() -> None:
        try:
            async for message in from_session:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await pipe.write(text.encode(errors="replace") + b"\n")
        except SandboxError:
            end("")

    async with anyio.create_task_group() as group, read, write, from_session:
        group.start_soon(receive)
        group.start_soon(send)
        try:
            yield read, write
        finally:
            group.cancel_scope.cancel()


@asynccontextmanager
async def http_transport(
    url: str,
    headers: Mapping[str, str],
    call_time: float,
    egress: Egress,
    refused: Callable[[str], None],
    end: Callable[[str], None],
) -> AsyncGenerator[Streams]:
    """Return streams to the server at the address, which the egress must allow; ``call_time`` is the longest of a call.

    ``refused`` gets the refusals of the egress, and the server's for want of a valid token.
    ``end`` is called when the server no longer knows the session, with that reason: the protocol then asks for a new
    one.
    """
    from mcp.client.streamable_http import streamable_http_client

    async def record(event: EgressEvent) -> bool:
        if not event.allowed:
            refused(f"{event.host}:{event.port} is refused: {event.reason}")
        return await egress.record(event)

    async def watch(response: httpx2.Response) -> None:
        if response.status_code == HTTPStatus.NOT_FOUND and "mcp-session-id" in response.request.headers:
            end("it has ended its session")
        if response.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            refused(f"it answers {response.status_code} {response.reason_phrase}: its headers need a valid token")

    proxy = Proxy(Egress(egress.allowed, record, egress.internet))
    with tempfile.TemporaryDirectory(prefix="hw-mcp-") as folder:
        await proxy.listen(Path(folder) / "proxy")
        timeout = httpx2.Timeout(30.0, read=max(QUIET, call_time))
        transport = ProxyTransport(Path(folder) / "proxy")
        try:
            async with (
                httpx2.AsyncClient(
                    transport=transport, headers=dict(headers), timeout=timeout, event_hooks={"response": [watch]}
                ) as client,
                streamable_http_client(url, http_client=client) as streams,
            ):
                yield streams
        finally:
            await proxy.close()

"""Shared parts of the server's routes: bodies of requests, and JSON, lines and files as responses."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any, cast

from .actions import Json, RequestError
from .files.files import CHUNK, open_file

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

BYTES = b"application/octet-stream"
_JSON = b"application/json"
_LINES = b"application/x-ndjson"


def json_object(body: bytes) -> Json:
    """Return the object of a request's body. Raises RequestError."""
    try:
        request: object = json.loads(body)
    except ValueError as error:
        raise RequestError(f"The body is no JSON: {error}.") from error
    if not isinstance(request, dict):
        raise RequestError("The body must be an object.")
    return cast(Json, request)


async def read_body(receive: Receive) -> bytes:
    """Return the whole body of a request. Raises RequestError if the client is gone."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RequestError("The request was cut.")
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return bytes(body)


async def wait_for_disconnect(receive: Receive) -> None:
    """Wait until the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def chunks(send: Send) -> Callable[[bytes, bool], Awaitable[None]]:
    """Return a function that sends parts of a body; the first call also starts the response."""
    started = False

    async def chunk(data: bytes, last: bool) -> None:
        nonlocal started
        if not started:
            started = True
            await begin(send, 200, _LINES)
        await send({"type": "http.response.body", "body": data, "more_body": not last})

    return chunk


async def run_while_connected(
    work: Coroutine[Any, Any, None], receive: Receive, chunk: Callable[[bytes, bool], Awaitable[None]]
) -> None:
    """Run ``work``, which sends chunks, to the end of the response; cancel it if the client disconnects."""
    task = asyncio.create_task(work)
    disconnect = asyncio.create_task(wait_for_disconnect(receive))
    try:
        await asyncio.wait({task, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
            await chunk(b"", True)
    finally:
        disconnect.cancel()
        task.cancel()
        await asyncio.wait({task})


async def begin(send: Send, status: int, kind: bytes) -> None:
    """Start a response without a length."""
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind)]})


def json_line(value: Json) -> bytes:
    """Return a value as a line of JSON; a lone surrogate, as of a cut title or an odd file name, becomes "?"."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace") + b"\n"


async def respond(send: Send, status: int, value: Json) -> None:
    """Send a value as the whole response."""
    body = json_line(value)
    headers = [(b"content-type", _JSON), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def send_file(send: Send, path: str) -> None:
    """Send the content of a file."""
    file = open_file(path)
    try:
        await begin(send, 200, BYTES)
        while data := os.read(file, CHUNK):
            await send({"type": "http.response.body", "body": data, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    finally:
        os.close(file)

"""An OpenAI-compatible server that answers at once and reads as little as it can."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

MODEL = "standin"
WINDOW = 10_000_000
"""Tokens, so that nobody condenses: everybody sends the whole history."""

Json = dict[str, Any]
Answer = Callable[[int], tuple[str, Json]]
"""The tool and its arguments that answer the request with this number, from 1."""


@asynccontextmanager
async def serving(answer: Answer) -> AsyncGenerator[str]:
    """Serve on loopback, in this event loop; gives the base URL."""
    count = 0

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        try:
            while head := await _head(reader):
                line, length = head
                body = await reader.readexactly(length)
                if line.startswith(b"POST /v1/chat/completions "):
                    count += 1
                    streamed = b'"stream":true' in body or b'"stream": true' in body
                    writer.write(completion(count, *answer(count), streamed))
                elif line.startswith(b"GET /v1/models "):
                    models = {"data": [{"id": MODEL, "object": "model", "context_length": WINDOW}]}
                    writer.write(_response(json.dumps(models).encode()))
                else:
                    writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(connection, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


async def _head(reader: asyncio.StreamReader) -> tuple[bytes, int] | None:
    """Return the request line and the length of the body; None where the connection ended."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    line, *headers = head.split(b"\r\n")
    lengths = [int(value) for name, _, value in (header.partition(b":") for header in headers) if _is_length(name)]
    return line, lengths[0] if lengths else 0


def _is_length(name: bytes) -> bool:
    return name.strip().lower() == b"content-length"


def completion(number: int, tool: str, arguments: Json, streamed: bool) -> bytes:
    """Return the whole HTTP response that calls a tool."""
    call = {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": tool, "arguments": json.dumps(arguments)},
    }
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    form: Json = {"id": f"chatcmpl-{number}", "created": 1, "model": MODEL}
    if not streamed:
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choices = [{"index": 0, "message": message, "finish_reason": "tool_calls"}]
        return _response(json.dumps({**form, "object": "chat.completion", "choices": choices, "usage": usage}).encode())
    delta = {"role": "assistant", "content": None, "tool_calls": [{"index": 0, **call}]}
    chunks: list[Json] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        {"choices": [], "usage": usage},
    ]
    lines = [json.dumps({**form, "object": "chat.completion.chunk", **chunk}) for chunk in chunks]
    return _response("".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode(), "text/event-stream")


def _response(body: bytes, kind: str = "application/json") -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body

"""Responses of the server inside a sandbox, which are data: bounded, and read without trust."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

import httpx2

from handiwork.errors import SandboxError

NOT_UNDERSTOOD = "the sandbox's server gave an answer that violates its protocol; the sandbox can be started again."

_MAX_ANSWER = 32 << 20
_MAX_PROBLEM = 2000  # characters
_FILE_ERRORS: dict[str, type[OSError]] = {
    "not_found": FileNotFoundError,
    "is_directory": IsADirectoryError,
    "denied": PermissionError,
}


async def json_lines(response: httpx2.Response, line_limit: int | None = None) -> AsyncIterator[dict[str, Any]]:
    """Yield the JSON objects of the response, one per line; only newlines split, as JSON text may hold other breaks.

    With ``line_limit`` each line is bounded, without it the whole response. Raises SandboxError beyond that.
    """
    line = bytearray()
    async for piece in pieces_of(response) if line_limit is None else response.aiter_raw():
        *ends, rest = piece.split(b"\n")
        for end in ends:
            yield json_object(line + end)
            line.clear()
        line += rest
        if line_limit is not None and len(line) > line_limit:
            raise SandboxError(NOT_UNDERSTOOD)


async def read_all(response: httpx2.Response, limit: int = _MAX_ANSWER) -> bytes:
    """Return the whole response. Raises SandboxError for more than ``limit`` bytes."""
    return b"".join([piece async for piece in pieces_of(response, limit)])


async def pieces_of(response: httpx2.Response, limit: int = _MAX_ANSWER) -> AsyncIterator[bytes]:
    """Yield the raw bytes of an answer, not decompressed. Raises SandboxError for more than ``limit`` bytes."""
    remaining = limit
    async for piece in response.aiter_raw():
        remaining -= len(piece)
        if remaining < 0:
            raise SandboxError(f"the sandbox's server gave an answer of more than {limit} bytes.")
        yield piece


def problem_of(body: Mapping[str, Any], default: str) -> str:
    """Return the error message of the server."""
    text = body.get("error")
    return (text if isinstance(text, str) else default)[:_MAX_PROBLEM]


async def reason_of(response: httpx2.Response) -> str:
    """Return the reason that a refused request was answered with. Raises SandboxError."""
    return problem_of(json_object(await read_all(response)), "it gives no reason")


def json_object(data: bytes | bytearray) -> dict[str, Any]:
    """Return the JSON object in the bytes. Raises SandboxError."""
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SandboxError(NOT_UNDERSTOOD) from error
    if not isinstance(value, dict):
        raise SandboxError(NOT_UNDERSTOOD)
    return cast(dict[str, Any], value)


async def check(response: httpx2.Response, path: str = "") -> None:
    """Raise SandboxError for a refused request, or the matching OSError for one about the file ``path``."""
    if response.status_code < 300:
        return
    body = await read_all(response)
    text = body.decode("utf-8", "replace")[:_MAX_PROBLEM]
    if path:
        problem = json_object(body)
        error_id = problem.get("error_id")
        error_type = _FILE_ERRORS.get(error_id, OSError) if isinstance(error_id, str) else OSError
        raise error_type(problem_of(problem, text))
    raise SandboxError(f"the sandbox's server refused a request ({response.status_code}): {text}")

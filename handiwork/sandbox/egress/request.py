"""Parses the head of a request from the sandbox to the proxy."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

_HEAD_TIME = 30.0
_LINE = re.compile(rb"([A-Z]{1,32}) ([\x21-\x7e]+) HTTP/1\.[01]")
_PORT = re.compile("[0-9]{1,5}")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([^\r\n\0]*)")
# Dropped headers are for the proxy or the connection to it, or are written again: Host from the request line, because a
# server of many names goes by it, and the length as counted here.
_DROPPED = frozenset({b"connection", b"content-length", b"host", b"keep-alive", b"upgrade"})


class MalformedRequestError(Exception):
    """The proxy does not accept the request; ``status`` is the HTTP status and its words."""

    def __init__(self, status: str, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class Request:
    """A tunnel to ``host``:``port``, or with a ``method`` one HTTP request for ``path`` there.

    ``host`` is as sent; ``headers`` are lines to forward, each with its end; ``length`` is the body's, in bytes.
    """

    host: str
    port: int
    method: str = ""
    path: str = ""
    headers: bytes = b""
    length: int = 0

    @property
    def authority(self) -> str:
        """Host and port, as HTTP names them."""
        return self.host if self.method and self.port == 80 else f"{self.host}:{self.port}"

    def head(self, target: str, more: bytes = b"") -> bytes:
        """Return the head to send for ``target``; the server closes the connection after its answer."""
        first_lines = f"{self.method} {target} HTTP/1.1\r\nHost: {self.authority}\r\nConnection: close\r\n"
        body = f"Content-Length: {self.length}\r\n" if self.length or self.method not in ("GET", "HEAD") else ""
        return (first_lines + body).encode() + more + self.headers + b"\r\n"


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """Return the next request, None if the connection ends without one. Raises MalformedRequestError, OSError.

    Parsing is strict: another proxy behind this one must not find a second request inside this one.
    """
    try:
        async with asyncio.timeout(_HEAD_TIME):
            head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise MalformedRequestError("400 Bad Request", "the request's head is incomplete") from error
        return None
    except asyncio.LimitOverrunError as error:
        raise MalformedRequestError("431 Request Header Fields Too Large", "the request's head is too large") from error
    except TimeoutError as error:
        raise MalformedRequestError("408 Request Timeout", "the request's head did not arrive in time") from error
    line, *lines = head[:-4].split(b"\r\n")
    match = _LINE.fullmatch(line)
    if match is None:
        raise MalformedRequestError("400 Bad Request", "this is an HTTP proxy, and the request is not HTTP/1")
    method, target = match[1].decode(), match[2].decode()
    if method == "CONNECT":
        return Request(*_authority(target))
    if not target.lower().startswith("http://"):
        raise MalformedRequestError(
            "400 Bad Request", "a request to a proxy names http://HOST/PATH, or uses CONNECT for https"
        )
    authority = re.split("[/?#]", target[7:], maxsplit=1)[0]
    path = target[7 + len(authority) :]
    headers, length = _headers(lines)
    return Request(*_authority(authority, 80), method, path if path.startswith("/") else f"/{path}", headers, length)


def _authority(text: str, default: int | None = None) -> tuple[str, int]:
    """Return host and port. Credentials, as in user:password@host, are refused."""
    host, colon, port = text.rpartition(":")
    if default is not None and (not colon or text.endswith("]")):
        return text, default
    if not host or not (_PORT.fullmatch(port) and 0 < int(port) < 65536):
        raise MalformedRequestError("400 Bad Request", f"{text[:300]} is not HOST:PORT")
    return host, int(port)


def _headers(lines: list[bytes]) -> tuple[bytes, int]:
    """Return the lines to forward, and the length of the body."""
    forwarded: list[bytes] = []
    lengths: set[bytes] = set()
    for line in lines:
        match = _HEADER.fullmatch(line)
        if match is None:
            raise MalformedRequestError("400 Bad Request", "a header of the request is malformed")
        name = match[1].lower()
        if name == b"transfer-encoding":
            raise MalformedRequestError("411 Length Required", "this proxy requires a Content-Length for a body")
        if name == b"content-length":
            lengths.add(match[2].strip(b" \t"))
        elif name not in _DROPPED and not name.startswith(b"proxy-"):
            forwarded.append(line + b"\r\n")
    if len(lengths) > 1 or not all(re.fullmatch(rb"[0-9]{1,18}", length) for length in lengths):
        raise MalformedRequestError("400 Bad Request", "the request's Content-Length is invalid")
    return b"".join(forwarded), int(lengths.pop()) if lengths else 0

"""Lines of JSON from a socket."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from typing import cast

_CHUNK = 1 << 18
_LIMIT = 8 << 20  # bytes of a line

Json = dict[str, object]


class JsonLineReader:
    """Passes every object from a socket to ``take``, and None once at its end or at invalid JSON."""

    def __init__(self, end: socket.socket, take: Callable[[Json | None], None]) -> None:
        self._socket = end
        self._take = take
        self._buffer = bytearray()
        self._open = True
        end.setblocking(False)
        asyncio.get_running_loop().add_reader(end, self._read)

    def drain(self) -> None:
        """Pass on all objects received so far."""
        while self._open and self._read():
            pass

    def close(self) -> None:
        """Stop, and close the socket; ``take`` is not called any more."""
        self._stop()
        self._socket.close()

    def _stop(self) -> None:
        if self._open:
            self._open = False
            asyncio.get_running_loop().remove_reader(self._socket)

    def _read(self) -> bool:
        try:
            data = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        *ends, rest = data.split(b"\n")
        try:
            for end in ends:
                line, self._buffer = self._buffer + end, bytearray()
                if self._open:
                    self._take(_parse(line))
        except ValueError:
            data = b""
        self._buffer += rest
        if (not data or len(self._buffer) > _LIMIT) and self._open:
            self._stop()
            self._take(None)
        return True


def _parse(line: bytearray) -> Json:
    value: object = json.loads(line)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return cast(Json, value)

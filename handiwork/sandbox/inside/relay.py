"""Joins stdin and stdout with a unix socket: ``python -m inside.relay PATH``. Ends when either side does.

The first byte of stdout is not the socket's: it says that the two are joined.
"""

from __future__ import annotations

import os
import socket
import sys
import threading

JOINED = b"\n"

_PIECE = 65536


def main() -> None:
    """Relay between this process's stdin and stdout and the socket at the path."""
    server = socket.socket(socket.AF_UNIX)
    server.connect(sys.argv[1])
    os.write(1, JOINED)
    threading.Thread(target=_answer, args=(server,), daemon=True).start()
    while data := os.read(0, _PIECE):
        server.sendall(data)


def _answer(server: socket.socket) -> None:
    try:
        while data := server.recv(_PIECE):
            while data:
                data = data[os.write(1, data) :]
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()

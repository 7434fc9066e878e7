"""Connects stdin and stdout with a unix socket: ``python -m inside.relay PATH``. Ends when either side does.

The first byte on stdout does not come from the socket: it signals that the two are connected.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import threading

from .hardening import refuse_inspection

JOINED = b"\n"

_PEER = struct.Struct("3i")  # pid, uid and gid of the listening process

_PIECE = 65536


def main() -> None:
    """Relay between this process's stdin and stdout and the socket at the path."""
    refuse_inspection()
    server = socket.socket(socket.AF_UNIX)
    server.connect(sys.argv[1])
    pid, _, _ = _PEER.unpack(server.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    if pid != 1:
        sys.exit("another program listens in the server's place")
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

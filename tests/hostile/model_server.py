"""Model servers that answer with whatever a test wants, byte by byte, and what a client of them takes in memory."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OFFERED = 400 * 1024 * 1024
"""Bytes that a server without measure offers."""

EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"

Answer = Callable[[], Iterable[bytes]]
"""Gives the bytes of an answer, its head first."""


@dataclass
class Received:
    """One request: its first line, its head and its body; ``sent`` counts the bytes of the answer that it took."""

    line: str
    head: str
    body: str
    sent: int = 0


@dataclass
class ModelServer:
    """``answers`` are by the path's first part; any other path, and what is not POST, is not found."""

    url: str
    answers: dict[str, Answer]
    received: list[Received] = field(default_factory=list[Received])

    def base_url(self, kind: str) -> str:
        return f"{self.url}/{kind}/v1"

    def posts(self, kind: str) -> list[Received]:
        return [one for one in self.received if one.line.startswith(f"POST /{kind}/")]


@contextmanager
def model_server(**answers: Answer) -> Generator[ModelServer]:
    """Serve on loopback, a thread for each connection and one request in each."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = ModelServer(f"http://127.0.0.1:{listener.getsockname()[1]}", answers)
    threads: list[threading.Thread] = []

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threads.append(threading.Thread(target=_serve, args=(server, connection)))
                threads[-1].start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield server
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        accepting.join()
        for thread in threads:
            thread.join(20)


def _serve(server: ModelServer, connection: socket.socket) -> None:
    # A client that stopped reading without closing would hold the thread.
    connection.settimeout(10)
    with connection, suppress(OSError):
        data = b""
        while b"\r\n\r\n" not in data:
            if not (piece := connection.recv(65536)):
                return
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        line, _, headers = head.decode().partition("\r\n")
        length = next((int(h[15:]) for h in headers.lower().split("\r\n") if h.startswith("content-length:")), 0)
        while len(body) < length:
            body += connection.recv(65536)
        received = Received(line, headers, body.decode())
        server.received.append(received)
        method, path, _ = line.split(" ")
        answer = server.answers.get(path.split("/")[1])
        if answer is None or method != "POST":
            connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        for piece in answer():
            connection.sendall(piece)
            received.sent += len(piece)


def event(chunk: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(chunk)}\n\n".encode()


def delta(**fields: Any) -> bytes:
    return event({"choices": [{"index": 0, "delta": fields}]})


def endless(head: bytes, piece: bytes) -> Answer:
    """An answer that repeats a piece until OFFERED bytes are sent."""
    block = piece * max(1, 65536 // len(piece))

    def answer() -> Iterator[bytes]:
        yield head
        for _ in range(OFFERED // len(block)):
            yield block

    return answer


def plain_answer(text: str) -> Answer:
    """A well-formed answer of an OpenAI-compatible server."""
    end = event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return lambda: [EVENTS, delta(content=text), end, b"data: [DONE]\n\n"]


def ask(*questions: tuple[str, str]) -> list[dict[str, Any]]:
    """Ask models, each a name and a base URL, from a new process.

    Return of each its ``content`` or its ``error`` and ``words``, and the ``growth`` of the process in MB at its peak.
    """
    run = subprocess.run(
        [sys.executable, "-m", "tests.hostile.model_client", *(part for question in questions for part in question)],
        cwd=Path(__file__).parents[2],
        env={key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]

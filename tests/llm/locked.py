"""A model server that lists its models and answers with a greeting, to requests with its key only."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

GREETING = {"choices": [{"index": 0, "delta": {"content": "Hello there."}, "finish_reason": "stop"}]}


@contextmanager
def locked_server(key: str, models: list[str]) -> Iterator[str]:
    """Run the server; yield its base URL."""

    class Locked(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer("application/json", json.dumps({"data": [{"id": model} for model in models]}))

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.answer("text/event-stream", f"data: {json.dumps(GREETING)}\n\ndata: [DONE]\n\n")

        def answer(self, kind: str, body: str) -> None:
            known = self.headers["authorization"] == f"Bearer {key}"
            self.send_response(200 if known else 401)
            self.send_header("content-type", kind if known else "application/json")
            self.end_headers()
            self.wfile.write(body.encode() if known else b'{"error": "wrong key"}')

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Locked)
    threading.Thread(target=server.serve_forever).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()

"""Serves the pages beside it on two ports of the loopback, which are two origins: ``python serve.py [PORT OTHER]``."""

from __future__ import annotations

import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PAGES = Path(__file__).parent
KINDS = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".png": "image/png"}
WORDS = ("amber", "apple", "apricot", "banana", "blackberry", "cherry", "date")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    ports: tuple[int, int]

    def do_GET(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        match url.path.strip("/").split("/"):
            case ["status", code]:
                self._send(f"<title>Status {code}</title><h1>This is status {code}</h1>", status=int(code))
            case ["slow", *_]:
                time.sleep(float(query.get("seconds", "1")))
                self._send("<title>Slow</title><h1>Here at last</h1>")
            case ["download", name]:
                self._send(
                    "a,b\n1,2\n", kind="text/csv", headers={"Content-Disposition": f"attachment; filename={name}"}
                )
            case ["cut", name]:
                headers = {"Content-Disposition": f"attachment; filename={name}", "Content-Length": "1000"}
                self._send("a,b\n1,2\n", kind="text/csv", headers=headers)
                self.close_connection = True
            case ["dripping", name]:
                headers = {"Content-Disposition": f"attachment; filename={name}", "Content-Length": "16"}
                self._send("a,b\n1,2\n", kind="text/csv", headers=headers)
                self.wfile.flush()
                time.sleep(float(query.get("seconds", "1")))
                self.wfile.write(b"3,4\n5,6\n")
            case ["words"]:
                time.sleep(float(query.get("seconds", "0.1")))
                found = [word for word in WORDS if word.startswith(query.get("start", ""))]
                self._send(",".join(found), kind="text/plain")
            case ["many"]:
                self._send(many(int(query.get("nodes", "5000"))))
            case ["echo"]:
                self._echo(query)
            case ["moved"]:
                self._send("", status=302, headers={"Location": "/index.html"})
            case ["headers"]:
                self._send("\n".join(f"{name}: {value}" for name, value in self.headers.items()), kind="text/plain")
            case _:
                self._file(url.path)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Content-Type", "").startswith("multipart/form-data"):
            self._send(f"<title>Received</title><h1>Received</h1><pre>{body.decode('utf-8', 'replace')}</pre>")
        else:
            self._echo(dict(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True)))

    def _echo(self, fields: dict[str, str]) -> None:
        rows = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in fields.items())
        self._send(f"<title>Sent</title><h1>Sent by {self.command}</h1><table>{rows}</table>")

    def _file(self, path: str) -> None:
        file = PAGES / (path.strip("/") or "index.html")
        if file.suffix not in KINDS or not file.is_file() or file.parent != PAGES:
            self._send("<title>Not found</title><h1>There is no such page</h1>", status=404)
            return
        data = file.read_bytes()
        if file.suffix == ".html":
            port, other = self.ports if self.server.server_port == self.ports[0] else self.ports[::-1]
            data = data.replace(b"{{PORT}}", b"%d" % port).replace(b"{{OTHER}}", b"%d" % other)
        self._send(data, kind=KINDS[file.suffix])

    def _send(
        self,
        content: str | bytes,
        *,
        status: int = 200,
        kind: str = "text/html; charset=utf-8",
        headers: dict[str, str] | None = None,
    ) -> None:
        data = content.encode() if isinstance(content, str) else content
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


def many(nodes: int) -> str:
    """A page with about so many nodes in its accessibility tree, most of them below the window."""
    rows = "".join(
        f"<tr><td>{row}</td><td><a href='#r{row}'>Item {row}</a></td><td><button>Buy {row}</button></td></tr>"
        for row in range(nodes // 10)
    )
    return f"<title>Many</title><h1>Many things</h1><table>{rows}</table>"


def main() -> None:
    ports = (int(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) > 2 else (8000, 8001)
    Handler.ports = ports
    servers = [ThreadingHTTPServer(("127.0.0.1", port), Handler) for port in ports]
    print("serving", *ports, flush=True)  # noqa: T201
    threading.Thread(target=servers[1].serve_forever, daemon=True).start()
    servers[0].serve_forever()


if __name__ == "__main__":
    main()

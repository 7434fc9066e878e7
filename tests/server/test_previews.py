"""Previews of servers in sandboxes: their own origins, who may use them, and what passes."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from scripts.harness.serving import PATIENCE, Api, bash, finish, until

SERVER = r"""
import http.server, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{self.server.server_port}/there?x=1")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Set-Cookie", "visited=yes; Domain=localhost; Path=/; HttpOnly")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Content-Security-Policy", "frame-ancestors 'none'")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in (self.path, str(self.headers), "end"):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece.encode()))
        self.wfile.write(b"0\r\n\r\n")
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))[::-1]
        self.send_response(201)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""
START = "/opt/handiwork/bin/python3 server.py > port 2> /dev/null & until [ -s port ]; do sleep 0.02; done"


@pytest.fixture(scope="module")
def session(api: Api) -> str:
    """A finished session whose agent left a server running."""
    (api.workspace / "server.py").write_text(SERVER)
    session = api.create(bash(START), finish())
    api.until(session, "finished")
    return session


def port_of(api: Api, session: str) -> int:
    return int(api.http.get(f"{session}/files/content", params={"path": "port"}).text)


@pytest.fixture(scope="module")
def host(api: Api, session: str) -> str:
    """The host of the preview of that server."""
    port = port_of(api, session)
    assert api.get(f"{session}/ports") == {"ports": [port]}
    url = urlsplit(api.post(f"{session}/previews", port=port)["url"])
    assert url.netloc.endswith(f".localhost:{urlsplit(api.url).port}")
    return url.netloc


def ask(api: Api, host: str, path: str = "/", method: str = "GET", **more: str | bytes) -> httpx2.Response:
    """Make a request of a preview, whose host only browsers look up."""
    content = more.pop("content", None)
    headers = {"host": host, **{name.replace("_", "-"): value for name, value in more.items()}}
    return api.bare.request(method, path, headers=headers, content=content)


def test_a_request_passes_with_the_host_that_the_server_knows_and_its_answer_is_confined(
    api: Api, session: str, host: str
) -> None:
    answer = ask(api, host, "/a%20b?c=d", origin=f"http://{host}", referer=f"http://{host}/x", cookie="visited=yes")
    assert answer.status_code == 200
    assert answer.text.startswith("/a%20b?c=d")
    assert answer.text.endswith("end")
    own = f"localhost:{port_of(api, session)}"
    for line in (f"host: {own}", f"origin: http://{own}", f"referer: http://{own}/x", "cookie: visited=yes"):
        assert line in answer.text
    assert answer.headers["set-cookie"] == "visited=yes; Path=/; HttpOnly; SameSite=None; Secure; Partitioned"
    assert "x-frame-options" not in answer.headers
    policy = answer.headers["content-security-policy"]
    assert f"frame-ancestors {api.url};" in policy
    assert "frame-ancestors 'none'" not in policy
    assert ask(api, host, "/moved").headers["location"] == "/there?x=1"
    body = bytes(range(256)) * 5000
    answer = ask(api, host, "/", "POST", content=body)
    assert (answer.status_code, answer.content) == (201, body[::-1])


def test_no_path_of_a_preview_is_the_api_s_and_its_origin_may_not_use_the_api(
    api: Api, session: str, host: str
) -> None:
    answer = ask(api, host, "/api/sessions", authorization=f"Bearer {api.token}")
    assert answer.text.startswith("/api/sessions")
    for origin in (f"http://{host}", "null"):
        assert api.http.get("/api/sessions", headers={"origin": origin}).status_code == 403
        with pytest.raises(InvalidStatus) as refused:
            api.follow(f"{session}/terminal?rows=24&columns=80", origin=Origin(origin))
        assert refused.value.response.status_code == 403
    assert api.bare.get(session, headers={"host": f"localhost:{urlsplit(api.url).port}"}).status_code == 401


def test_other_sites_may_not_use_a_preview_and_only_a_frame_may_show_it(api: Api, host: str) -> None:
    framed = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "iframe"}
    assert ask(api, host, **framed).status_code == 200
    assert ask(api, host, sec_fetch_site="same-origin", sec_fetch_mode="cors").status_code == 200
    assert ask(api, host, "/", "POST", content=b"x", **framed).status_code == 403
    for site in ("cross-site", "same-site"):
        assert ask(api, host, sec_fetch_site=site, sec_fetch_mode="cors", sec_fetch_dest="empty").status_code == 403
        assert (
            ask(api, host, sec_fetch_site=site, sec_fetch_mode="navigate", sec_fetch_dest="document").status_code == 403
        )


def test_only_the_user_opens_previews_and_a_guessed_host_is_none(api: Api, session: str, host: str) -> None:
    port = port_of(api, session)
    assert api.bare.post(f"{session}/previews", json={"port": port}).status_code == 401
    assert api.bare.get(f"{session}/ports").status_code == 401
    label, _, rest = host.partition(".")
    guessed = f"{label[:-1]}{'0' if label[-1] != '0' else '1'}.{rest}"
    assert ask(api, guessed).status_code == 404
    answer = api.http.post(f"{session}/previews", json={"port": 1})
    assert (answer.status_code, answer.json()["error"]) == (409, "no server listens on port 1 in the sandbox")


ECHO = r"""
import sys
from websockets.sync.server import serve
def echo(socket):
    assert socket.request.headers["Origin"] == f"http://localhost:{socket.local_address[1]}"
    socket.send(socket.request.path)
    for message in socket:
        socket.send(message[::-1])
with serve(echo, "127.0.0.1", 0) as server:
    print(server.socket.getsockname()[1], flush=True)
    server.serve_forever()
"""


def test_a_websocket_passes_for_the_preview_itself_alone(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without a sandbox, which has no library for the server.
    monkeypatch.setenv("HANDIWORK_SANDBOX", "none")
    (tmp_path / "server.py").write_text(ECHO)
    session = api.create(
        bash(START.replace("/opt/handiwork/bin/python3", sys.executable)),
        finish(),
        workspace=str(tmp_path),
        confirmation="never",
    )
    api.until(session, "finished")
    port = port_of(api, session)
    assert api.get(f"{session}/ports") == {"ports": [port]}
    host = urlsplit(api.post(f"{session}/previews", port=port)["url"]).netloc

    def connected(origin: str | None) -> ClientConnection:
        address = urlsplit(api.url)
        tcp = socket.create_connection((str(address.hostname), int(address.port or 0)))
        return connect(f"ws://{host}/live?x=1", sock=tcp, origin=None if origin is None else Origin(origin))

    with connected(f"http://{host}") as page:
        assert page.recv(PATIENCE) == "/live?x=1"
        page.send("abc")
        assert page.recv(PATIENCE) == "cba"
        page.send(bytes(range(256)) * 1000)
        assert page.recv(PATIENCE) == (bytes(range(256)) * 1000)[::-1]
    for origin in (api.url, "null", None):
        with pytest.raises(InvalidStatus) as refused:
            connected(origin)
        assert refused.value.response.status_code == 403


def test_a_preview_ends_with_its_server_and_with_the_sandbox(api: Api, tmp_path: Path) -> None:
    session = api.create(bash(START), finish(), bash("kill %1; wait"), finish())
    api.until(session, "finished")
    host = urlsplit(api.post(f"{session}/previews", port=port_of(api, session))["url"]).netloc
    assert ask(api, host).status_code == 200
    api.post(f"{session}/messages", content="end it")
    until(lambda: api.types(session).count("AgentFinishAction") == 2)
    answer = ask(api, host)
    assert (answer.status_code, "No server listens" in answer.text) == (502, True)
    api.post(f"{session}/stop")
    until(lambda: ask(api, host).status_code == 409)
    assert api.http.get(f"{session}/ports").status_code == 409

"""A server in the sandbox is shown in the page, and can reach neither the API nor anything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, FrameLocator, Page, expect

from scripts.harness.serving import Api, bash, finish
from tests.web.conftest import OpenWindow
from tests.web.test_a_session import page_of
from tests.web.test_apply import PHONE, project_in
from tests.web.test_for_everybody import violations

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

SERVER = r"""
import http.server, json
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = open("page.html", "rb").read() if self.path == "/" else json.dumps(dict(self.headers)).encode()
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{self.server.server_port}/")
            return self.end_headers()
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if self.path == "/" else "application/json")
        self.send_header("Set-Cookie", "visited=yes; Domain=localhost")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))[::-1]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.ThreadingHTTPServer(("", 8765), Handler).serve_forever()
"""

ATTACKS = """
<!doctype html><title>Preview</title><h1>Hello from inside</h1><pre id=result></pre>
<script>
const attempt = async (work) => {
  try { return String(await work()) } catch (error) { return "failed: " + error.name }
};
(async () => {
  const app = APP;
  const result = {
    headers: await (await fetch("headers")).json(),
    posted: await (await fetch("echo", { method: "POST", body: "abc" })).text(),
    api: await attempt(async () => (await fetch(app + "/api/sessions", { credentials: "include" })).text()),
    blind: await attempt(async () => (await fetch(app + "/api/demo", { method: "POST", mode: "no-cors" })).type),
    own: await attempt(async () => (await fetch("/api/sessions")).text()),
    parent: await attempt(() => parent.document.body.textContent),
    storage: await attempt(() => parent.localStorage.length),
    away: await attempt(() => { top.location = app + "/api/sessions"; return "went" }),
    socket: await attempt(() => new Promise((opened, failed) => {
      const socket = new WebSocket(app.replace("http", "ws") + "/api/follow");
      socket.onopen = () => opened("open");
      socket.onerror = () => failed(new Error());
    })),
    popup: await attempt(() => String(window.open(app))),
    cookie: document.cookie,
    origin: location.origin,
  };
  document.querySelector("#result").textContent = JSON.stringify(result);
})();
</script>
"""


def session_in(api: Api, folder: Path, page: str, *more: Any) -> str:
    """Return a finished session whose agent started a server in the background, with ``more`` replies."""
    project = project_in(folder)
    (project / "server.py").write_text(SERVER)
    (project / "page.html").write_text(page)
    session = api.create(started("server.py", 8765), finish(), *more, workspace=str(project))
    api.until(session, "finished")
    return session


def started(program: str, port: int) -> dict[str, Any]:
    """Return the command that starts a server in Python in the background."""
    wait = f"until (echo > /dev/tcp/127.0.0.1/{port}); do sleep 0.05; done 2> /dev/null"
    return bash(f"/opt/handiwork/bin/python3 {program} > /dev/null 2>&1 & {wait}")


def frame_of(page: Page) -> FrameLocator:
    return page.frame_locator('iframe[title="Preview of port 8765"]')


async def test_a_server_is_shown_and_reaches_neither_the_api_nor_the_page_around_it(
    browser: Browser, api: Api, tmp_path: Path
) -> None:
    session = session_in(api, tmp_path, ATTACKS.replace("APP", json.dumps(api.url)))
    page = await browser.new_page()  # a window of the other tests forbids what the preview attempts
    await page.goto(f"{api.url}/s/{session.rpartition('/')[2]}?pane=preview&token={api.token}")
    frame = frame_of(page)
    await expect(frame.get_by_role("heading", name="Hello from inside")).to_be_visible()
    await expect(frame.locator("#result")).to_contain_text("origin")
    result = json.loads(await frame.locator("#result").text_content() or "")
    assert result["headers"]["host"] == "localhost:8765"
    assert "handiwork" not in json.dumps(result["headers"])
    assert api.token not in json.dumps(result)
    assert result["posted"] == "cba"
    for attack in ("api", "blind", "parent", "storage", "socket"):
        assert result[attack].startswith("failed: "), (attack, result[attack])
    assert result["own"].startswith("{")
    assert "sessions" not in json.loads(result["own"])
    assert result["popup"] == "null"
    assert result["cookie"] == "visited=yes"
    assert result["origin"].endswith(f".localhost:{api.url.rpartition(':')[2]}")
    await expect(page.get_by_role("tab", name="Preview")).to_be_visible()
    before = page.url
    await page.get_by_role("button", name="Reload").click()
    await expect(frame.locator("#result")).to_contain_text('"cookie":"visited=yes"')
    assert page.url == before
    await page.close()


async def test_servers_are_found_when_they_start_and_the_preview_ends_with_the_sandbox(
    open_window: OpenWindow, api: Api, tmp_path: Path
) -> None:
    session = api.create(bash("true"), finish(), workspace=str(project_in(tmp_path)))
    api.until(session, "finished")
    page = await page_of(open_window, session, "?pane=preview")
    await expect(page.get_by_text("No server listens in the sandbox")).to_be_visible()
    await page.get_by_role("tab", name="Terminal").click()
    await page.get_by_role("button", name="New terminal").click()
    terminal = page.get_by_role("region", name="Terminal 1")
    await expect(terminal).to_contain_text("project$")
    await page.keyboard.type("/opt/handiwork/bin/python3 -u -m http.server 8765")
    await page.keyboard.press("Enter")
    await expect(terminal).to_contain_text("Serving HTTP")
    await page.get_by_role("tab", name="Preview").click()
    frame = frame_of(page)
    await frame.get_by_role("link", name="poem.txt").click()
    await expect(frame.get_by_text("roses are red")).to_be_visible()
    api.post(f"{session}/stop")
    await expect(page.get_by_role("alert")).to_contain_text("does not run")
    await expect(page.get_by_title("Preview of port 8765")).to_have_count(0)


async def test_a_server_on_a_lower_port_does_not_take_the_place_of_the_page_that_is_shown(
    open_window: OpenWindow, api: Api, tmp_path: Path
) -> None:
    form = "<!doctype html><title>Form</title><label>Name <input></label>"
    session = session_in(api, tmp_path, form, started("-m http.server 8700", 8700), finish())
    page = await page_of(open_window, session, "?pane=preview")
    field = frame_of(page).get_by_label("Name")
    await field.fill("Ada")
    api.post(f"{session}/messages", content="Start another server.")
    await expect(page.get_by_role("radio", name="Port 8700")).not_to_be_checked()
    await expect(field).to_have_value("Ada")


@pytest.mark.parametrize("options", [{"color_scheme": "light"}, {"color_scheme": "dark"}, PHONE])
async def test_axe_finds_nothing_serious_and_a_phone_shows_it_all(
    open_window: OpenWindow, api: Api, tmp_path: Path, options: dict[str, Any]
) -> None:
    session = session_in(api, tmp_path, "<!doctype html><html lang=en><title>Hi</title><main><h1>Hi there</h1></main>")
    page = await open_window(f"/s/{session.rpartition('/')[2]}?pane=preview", **options)
    await expect(frame_of(page).get_by_role("heading", name="Hi there")).to_be_visible()
    assert await violations(page) == []
    assert await page.evaluate("document.scrollingElement.scrollWidth <= document.documentElement.clientWidth")

"""What a user steers in the browser while a session runs: hosts, plan mode, messages, and being called back."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.async_api import Page, expect

from scripts.harness.serving import Api, bash, finish
from tests.web.conftest import OpenWindow
from tests.web.test_a_session import conversation_of, endless, page_of, question_of, state_of

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

SPY = """
window.shown = [];
window.Notification = class extends Notification {
  constructor(title, options) {
    super(title, options);
    window.shown.push(title + ": " + options.body);
  }
};
"""
"""Lists the notifications that the page shows; the browser shows them too."""

ANDROID = """
() => {
  window.Notification = class {
    constructor() {
      window.refused = true;
      throw new TypeError("Illegal constructor. Use ServiceWorkerRegistration.showNotification() instead.");
    }
  };
}
"""
"""Has the page's notifications fail as Chrome on Android does."""


class Greeter(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"here I am\n")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        pass


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    """An address of this machine with a web server; a sandbox reaches it only if the user allows it."""
    server = ThreadingHTTPServer(("127.0.0.2", 0), Greeter)
    threading.Thread(target=server.serve_forever).start()
    yield f"127.0.0.2:{server.server_port}"
    server.shutdown()
    server.server_close()


async def test_a_refused_host_is_allowed_once_and_the_agent_goes_on(
    open_window: OpenWindow, api: Api, host: str
) -> None:
    fetch = f"curl -sS --noproxy '' http://{host}/"
    session = api.create(bash(fetch), finish("I could not fetch it."), bash(fetch), bash(fetch), finish("Fetched."))
    page = await page_of(open_window, session)
    refused = page.get_by_role("region", name="Refused host")
    await expect(refused).to_contain_text(host)
    await expect(state_of(page)).to_contain_text("Finished")
    await refused.get_by_role("button", name="Allow once").click()
    await expect(conversation_of(page)).to_contain_text("here I am")
    await expect(conversation_of(page)).to_contain_text("Fetched.")
    outputs = [e["content"] for e in api.events(session) if e["type"] == "CmdOutputObservation"]
    assert ["here I am" in output for output in outputs] == [False, True, False]
    await expect(refused).to_have_count(1)


async def test_a_host_that_is_always_allowed_is_seen_in_the_next_session_and_taken_back(
    open_window: OpenWindow, api: Api, host: str
) -> None:
    fetch = f"until curl -sS --noproxy '' http://{host}/ | grep here; do sleep 0.2; done"
    session = api.create(bash(fetch), finish())
    page = await page_of(open_window, session)
    await page.get_by_role("region", name="Refused host").get_by_role("button", name="Always").click()
    await expect(state_of(page)).to_contain_text("Finished")

    session = api.create(bash(fetch), finish())
    page = await page_of(open_window, session)
    await expect(state_of(page)).to_contain_text("Finished")
    await state_of(page).get_by_role("button", name="Permissions").click()
    dialog = page.get_by_role("dialog", name="What the agent may do")
    await expect(dialog.get_by_role("listitem")).to_contain_text("always")
    await dialog.get_by_role("button", name=f"Take back {host}").click()
    await expect(dialog.get_by_role("listitem")).to_have_count(0)
    assert api.get(f"{session}/permissions") == {"rules": [], "hosts": []}


async def test_nothing_is_changed_before_the_plan_is_accepted(open_window: OpenWindow, api: Api) -> None:
    session = api.create(
        bash("echo bye > greeting.txt"),
        finish("1. Write bye."),
        finish("1. Write good bye."),
        bash("echo good bye > greeting.txt"),
        finish(),
        plan_mode=True,
    )
    page = await page_of(open_window, session)
    plan = page.get_by_role("region", name="Plan mode")
    await expect(plan).to_contain_text("Accept the plan")
    await expect(conversation_of(page)).to_contain_text("Write bye.")
    message = page.get_by_role("textbox", name="Message", exact=True)
    await message.fill("Be polite.")
    await message.press("Enter")
    await expect(conversation_of(page)).to_contain_text("Write good bye.")
    assert api.get(f"{session}/diff")["files"] == []
    await plan.get_by_role("button", name="Accept the plan").click()
    await expect(state_of(page)).to_contain_text("Finished")
    await expect(plan).to_have_count(0)
    (changed,) = api.get(f"{session}/diff")["files"]
    assert changed["path"] == "greeting.txt"


async def test_the_mode_and_the_limits_are_changed_while_a_command_runs(open_window: OpenWindow, api: Api) -> None:
    session = api.create(bash("until [ -e go ]; do sleep 0.1; done"), bash("touch a"), bash("touch b"), finish())
    page = await page_of(open_window, session)
    await expect(state_of(page)).to_contain_text("Running")
    await state_of(page).get_by_role("button", name="Permissions").click()
    dialog = page.get_by_role("dialog", name="What the agent may do")
    await dialog.get_by_label("Ask for approval").select_option("always")
    await expect(dialog.get_by_label("Ask for approval")).to_have_value("always")
    await dialog.get_by_role("button", name="Close").click()
    await state_of(page).get_by_role("button", name="Limits").click()
    dialog = page.get_by_role("dialog", name="Limits of the session")
    await dialog.get_by_label(re.compile("^Steps")).fill("2")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog).to_have_count(0)
    api.http.put(f"{session}/files/content", params={"path": "go"}, content=b"")
    await question_of(page).get_by_role("button", name="Allow for this session").click()
    await expect(state_of(page)).to_contain_text("Paused at a limit")
    assert api.get(session)["rules"] == ["command touch *"]


async def test_a_message_waits_or_interrupts(open_window: OpenWindow, api: Api) -> None:
    session = api.create(bash(endless(6)), finish("I have stopped."))
    page = await page_of(open_window, session)
    await expect(conversation_of(page)).to_contain_text("42\n42")
    message = page.get_by_role("textbox", name="Message", exact=True)
    await message.fill("Do it later.")
    await page.get_by_role("button", name="Send").click()
    await expect(conversation_of(page)).to_contain_text("Do it later.")
    await expect(state_of(page)).to_contain_text("Running")
    await message.fill("Stop it now.")
    await message.press("Control+Enter")
    await expect(state_of(page)).to_contain_text("Finished")
    await expect(conversation_of(page)).to_contain_text("I have stopped.")


async def hide(page: Page) -> None:
    """Open another tab over the page."""
    await (await page.context.new_page()).bring_to_front()


async def test_the_tab_and_a_notification_call_the_user_back(open_window: OpenWindow, api: Api) -> None:
    session = api.create(bash("until [ -e go ]; do sleep 0.1; done"), finish(), title="Wait for me")
    page = await open_window("/")
    await page.context.grant_permissions(["notifications"])
    await page.add_init_script(SPY)
    await page.goto(f"/s/{session.removeprefix('/api/sessions/')}")
    await page.get_by_role("button", name="Notify me").click()
    await expect(page.get_by_role("button", name="Stop notifying me")).to_be_visible()
    await expect(page).to_have_title("Wait for me · Handiwork")
    await page.evaluate("Object.defineProperty(document, 'hasFocus', {value: () => window.looking ?? false})")
    await page.evaluate("window.dispatchEvent(new Event('blur'))")

    await asyncio.to_thread(api.http.put, f"{session}/files/content", params={"path": "go"}, content=b"")
    await expect(page).to_have_title("● Wait for me · Handiwork")
    icon = page.locator("link[rel=icon]")
    await expect(icon).to_have_attribute("href", re.compile("^data:"))
    assert await page.evaluate("window.shown") == ["The agent has finished: Wait for me"]

    await page.evaluate("window.looking = true; window.dispatchEvent(new Event('focus'))")
    await expect(page).to_have_title("Wait for me · Handiwork")
    await expect(icon).to_have_attribute("href", "/icon.svg")


async def test_the_list_notifies_of_its_sessions_and_of_none_where_the_browser_lets_no_page_notify(
    open_window: OpenWindow, api: Api
) -> None:
    wait = bash("until [ -e go ]; do sleep 0.1; done")
    sessions = [api.create(wait, finish(), title=f"Wait in the list {number}") for number in range(2)]
    page = await open_window("/")
    await page.context.grant_permissions(["notifications"])
    await page.add_init_script(SPY)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    await page.goto("/")
    await page.get_by_role("button", name="Notify me").click()
    await expect(page.get_by_role("button", name="Stop notifying me")).to_be_visible()
    first, second = (page.get_by_role("listitem").filter(has_text=f"Wait in the list {number}") for number in range(2))
    await expect(first).to_contain_text("running")
    await expect(second).to_contain_text("running")
    await page.evaluate("Object.defineProperty(document, 'hasFocus', {value: () => false})")

    await asyncio.to_thread(api.http.put, f"{sessions[0]}/files/content", params={"path": "go"}, content=b"")
    await expect(first).to_contain_text("finished")
    assert await page.evaluate("window.shown") == ["The agent has finished: Wait in the list 0"]

    await page.evaluate(ANDROID)
    await asyncio.to_thread(api.http.put, f"{sessions[1]}/files/content", params={"path": "go"}, content=b"")
    await expect(second).to_contain_text("finished")
    assert await page.evaluate("window.refused")
    assert errors == []


async def test_the_bars_of_the_chat_begin_where_its_text_begins(open_window: OpenWindow, api: Api) -> None:
    session = api.create(finish("1. Look."), plan_mode=True)
    page = await page_of(open_window, session)
    await page.set_viewport_size({"width": 2560, "height": 1200})
    bar = page.get_by_role("region", name="Plan mode")
    text = await bar.locator("p, strong, button").first.bounding_box()
    state = await state_of(page).locator(".chat-state").bounding_box()
    assert text is not None
    assert state is not None
    assert abs(text["x"] - state["x"]) < 2

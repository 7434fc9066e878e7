"""What the platform has of the browser: pictures and long pages as blobs, its own commands, a browser that is lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from handiwork.errors import BrowserError
from handiwork.events.action import BrowseInteractiveAction, BrowseURLAction
from handiwork.events.observation import ErrorObservation
from handiwork.sandbox.host import HostSandbox
from tests.browser.helpers import OTHER, SITE, Browsing
from tests.egress.world import way_out
from tests.sandbox.helpers import Box, output, run

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

WORKER = "pgrep -f 'inside[.]browser'"
PNG = b"\x89PNG\r\n\x1a\n"


async def test_pictures_are_blobs_and_marks_are_drawn_where_asked_for(browsing: Browsing) -> None:
    plain = await browsing.open("forms.html")
    marked = await browsing.open("forms.html", marks=True)
    assert plain.marked_screenshot is None
    pictures = [marked.screenshot, marked.marked_screenshot]
    blobs = [browsing.blobs.kept[part.blob] for part in pictures if part and part.blob]
    assert [blob[:8] for blob in blobs] == [PNG, PNG]
    assert blobs[0] != blobs[1]


async def test_of_a_long_page_the_observation_has_the_ends_and_a_blob_the_whole(browsing: Browsing) -> None:
    seen = await browsing.open("many?nodes=5000", view="full")
    assert seen.blob is not None
    assert seen.size > len(seen.content) + len(seen.tail)
    whole = browsing.blobs.kept[seen.blob].decode()
    assert len(whole.encode()) == seen.size
    assert "'Buy 250'" in whole
    assert "'Buy 250'" not in seen.content + seen.tail


async def test_commands_of_the_platform(browsing: Browsing) -> None:
    ask = browsing.sandbox.browser
    cookie = {"name": "who", "value": "ada", "domain": "127.0.0.1", "path": "/", "expires": -1, "httpOnly": False,
              "secure": False, "sameSite": "Lax"}  # fmt: skip
    opened = await ask(
        "open",
        url=f"{SITE}/index.html",
        viewport=[332, 214],
        storage_state={"cookies": [cookie], "origins": []},
        locale="de-DE",
        timezone="Asia/Tokyo",
        har="all.har",
    )
    assert opened == {"url": f"{SITE}/index.html", "title": "Shop"}
    told = "[innerWidth, innerHeight, navigator.language, Intl.DateTimeFormat().resolvedOptions().timeZone]"
    assert await ask("evaluate", expression=told) == [332, 214, "de-DE", "Asia/Tokyo"]
    assert await ask("evaluate", expression="async given => given.number + 1", argument={"number": 2}) == 3
    aside = await ask("visit", url=f"{SITE}/headers")
    assert isinstance(aside, dict)
    assert "Cookie: who=ada" in str(aside["content"])
    visited = await ask("visit", url=f"{OTHER}/tables.html", expression="document.title")
    assert visited == {"url": f"{OTHER}/tables.html", "value": "Tables"}
    answer = await ask("request", url=f"{SITE}/headers")
    assert isinstance(answer, dict)
    assert answer["status"] == 200
    assert "cookie: who=ada" in str(answer["text"]).lower()
    sent = await ask("request", url=f"{SITE}/echo", method="POST", data="a=1")
    assert isinstance(sent, dict)
    assert "<th>a</th><td>1</td>" in str(sent["text"])
    assert await ask("state") == {
        "url": f"{SITE}/index.html",
        "title": "Shop",
        "open_pages": [f"{SITE}/index.html"],
        "active_page": 0,
    }
    storage = await ask("storage")
    assert isinstance(storage, dict)
    assert "ada" in json.dumps(storage["cookies"])
    assert await ask("close") is None
    urls = "import json; print([e['request']['url'] for e in json.load(open('all.har'))['log']['entries']])"
    assert f"{SITE}/index.html" in await output(browsing.sandbox, f'/opt/handiwork/bin/python3 -I -c "{urls}"')


@pytest.mark.parametrize(
    ("command", "arguments", "why"),
    [
        ("dance", {}, "there is no command 'dance' of the browser: there are open, evaluate, visit"),
        ("evaluate", {}, "missing 1 required positional argument: 'expression'"),
        ("evaluate", {"expression": "nothing.there"}, "nothing is not defined"),
        ("visit", {"url": "http://127.0.0.1:9999/"}, "nothing listens there"),
        ("open", {"timezone": "Mars/Base"}, "Mars/Base"),
    ],
)
async def test_commands_that_fail_say_why(
    browsing: Browsing, command: str, arguments: dict[str, str], why: str
) -> None:
    with pytest.raises(BrowserError, match=why):
        await browsing.sandbox.browser(command, **arguments)


async def test_a_command_does_not_wait_for_a_dialog(browsing: Browsing) -> None:
    await browsing.open("dialogs.html")
    await browsing.do(f"click({await browsing.bid('button')})")
    with pytest.raises(BrowserError, match="a dialog is open: alert"):
        await browsing.js("1 + 1")


@pytest.mark.parametrize("process", [f"$({WORKER})", "$(pgrep -o -f chromium/chromium-headless-shell)"])
async def test_a_browser_that_dies_is_told_and_the_next_action_has_a_new_one(browsing: Browsing, process: str) -> None:
    await browsing.open("index.html")
    await output(browsing.sandbox, f"kill -9 {process}")
    lost = await browsing.sandbox.execute(BrowseInteractiveAction(browser_actions="noop(1)"))
    assert isinstance(lost, ErrorObservation)
    assert lost.error_id == "browser"
    assert "The next action starts a new one, at a blank page." in lost.content
    assert (await browsing.do("noop(1)")).url == "about:blank"
    assert len((await output(browsing.sandbox, WORKER)).split()) == 1


async def test_with_its_process_all_of_the_browser_ends(browsing: Browsing) -> None:
    await browsing.open("index.html")
    await output(browsing.sandbox, f"kill -9 $({WORKER})")
    gone = "timeout 30 sh -c 'while pgrep -f chromium-headless-shel[l]; do sleep 0.1; done' >/dev/null"
    assert (await run(browsing.sandbox, gone)).exit_code == 0
    await browsing.sandbox.execute(BrowseInteractiveAction(browser_actions="noop(1)"))


async def test_who_no_longer_waits_leaves_nothing_behind(browsing: Browsing) -> None:
    await browsing.open("index.html")
    acting = asyncio.create_task(browsing.do("noop(20000)"))
    await asyncio.sleep(0.3)
    acting.cancel()
    await asyncio.gather(acting, return_exceptions=True)
    assert (await browsing.do("noop(1)")).title == "Shop"
    assert await output(browsing.sandbox, "ls /tmp/handiwork-spool-*") == ""


async def test_without_the_browsers_tree_an_agent_is_told(tmp_path: Path, runtime_dir: None) -> None:
    async def nowhere(data: AsyncIterator[bytes]) -> str:
        raise AssertionError("nothing is to be kept")

    sandbox = HostSandbox(tmp_path, nowhere)
    await sandbox.start()
    try:
        seen = await sandbox.execute(BrowseURLAction(url="http://127.0.0.1/"))
        assert isinstance(seen, ErrorObservation)
        assert (seen.error_id, "make bundle" in seen.content) == ("no_browser", True)
        with pytest.raises(BrowserError, match="has no browser"):
            await sandbox.browser("open")
    finally:
        await sandbox.close()


async def test_the_browser_goes_through_the_sandboxs_proxy(site_box: Box, tmp_path: Path) -> None:
    async with way_out(tmp_path, "example.org") as way:
        sandbox = site_box.make(egress=way.egress)
        await sandbox.start()
        browsing = Browsing(sandbox, site_box.blobs)
        assert "here I am" in (await browsing.open("http://example.org/a")).content
        refused = await browsing.open("http://evil.com/")
        assert "handiwork allow evil.com" in refused.content
        assert (
            "the host is not one that this sandbox may reach"
            in (await browsing.attempt("goto('https://evil.com/')")).last_action_error
        )
        local = await browsing.attempt("goto('http://127.0.0.1:9999/')")
        assert "nothing listens there" in local.last_action_error
        assert {event.host for event in way.events} == {"example.org", "evil.com"}
        await sandbox.close()


async def test_a_snapshot_stops_the_browser_only_for_a_moment(browsing: Browsing) -> None:
    await browsing.open("index.html")
    await output(browsing.sandbox, "date >new.txt")
    acting = asyncio.create_task(browsing.do(f"noop(300)\ngoto('{SITE}/tables.html')"))
    assert await browsing.sandbox.snapshot() is not None
    assert (await acting).title == "Tables"

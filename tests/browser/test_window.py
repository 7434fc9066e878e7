"""Tabs, dialogs, downloads, errors of pages and of the network, and waiting for them."""

from __future__ import annotations

import asyncio

import pytest

from handiwork.events.action import BrowseURLAction
from handiwork.events.observation import BrowserOutputObservation
from tests.browser.helpers import OTHER, SITE, Browsing
from tests.sandbox.helpers import output

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]


async def test_going_to_pages_back_and_forward(browsing: Browsing) -> None:
    await browsing.open("index.html")
    assert (await browsing.do(f"goto('{SITE}/tables.html')")).title == "Tables"
    assert (await browsing.do("go_back()")).title == "Shop"
    assert (await browsing.do("go_forward()")).title == "Tables"
    assert "no page to go forward to" in (await browsing.attempt("go_forward()")).last_action_error


async def test_going_back_in_a_frame_or_to_the_same_address(browsing: Browsing) -> None:
    await browsing.open("frames.html")
    await browsing.js(
        "new Promise(done => { const frame = document.querySelector('iframe'); frame.onload = done; "
        "frame.src = 'tables.html' }).then(() => 0)"
    )
    await browsing.do("go_back()")
    assert await browsing.js("frames[0].location.pathname") == "/framed.html"
    await browsing.js("history.pushState('second', '')")
    await browsing.do("go_back()")
    assert await browsing.js("history.state") is None


@pytest.mark.parametrize(
    ("url", "title"),
    [
        ("127.0.0.1:8000/moved", "Shop"),
        ("localhost:8001/tables.html", "Tables"),
        ("localhost:8000#/x", "Shop"),
        ("localhost:8000?page=2", "Shop"),
        ("data:text/html,<title>Given</title>", "Given"),
        ("about:blank", ""),
    ],
)
async def test_urls_that_can_be_opened(browsing: Browsing, url: str, title: str) -> None:
    seen = await browsing.open(url)
    assert (seen.last_action_error, seen.title) == ("", title)
    assert seen.last_action == f"goto({url!r})"


async def test_a_file_of_the_workspace_can_be_opened(browsing: Browsing) -> None:
    site = f"{browsing.sandbox.workspace}/site"
    for url in (f"file://{site}/index.html", f"{site}/index.html", "site/index.html?a=b#prices"):
        seen = await browsing.sandbox.execute(BrowseURLAction(url=url))
        assert isinstance(seen, BrowserOutputObservation)
        assert seen.title == "Shop", url
    assert (await browsing.do("goto('tables.html')")).url == f"file://{site}/tables.html"


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1:9999/", "nothing listens there"),
        ("http://example.com/", "this sandbox has no network"),
        ("https://93.184.216.34/", "this sandbox has no network"),
        ("file:///nowhere", "there is no such file"),
        ("https://127.0.0.1:8000/", "does not speak https there"),
        ("ftp://127.0.0.1/", "cannot be opened"),
        ("not a url", "cannot be opened"),
        ("javascript:alert(1)", "cannot be opened"),
    ],
)
async def test_urls_that_cannot_be_opened_say_why(browsing: Browsing, url: str, why: str) -> None:
    seen = await browsing.attempt(f"goto({url!r})")
    assert why in seen.last_action_error


async def test_a_link_that_leads_nowhere_says_why(browsing: Browsing) -> None:
    await browsing.open("errors.html")
    seen = await browsing.attempt(f"click({await browsing.bid('a')})")
    assert "refused.example/ could not be loaded: this sandbox has no network" in seen.last_action_error


@pytest.mark.parametrize(("status", "words"), [(404, "404 Not Found"), (500, "500 Internal Server Error")])
async def test_a_servers_error_is_noted_above_its_page(browsing: Browsing, status: int, words: str) -> None:
    seen = await browsing.open(f"status/{status}")
    assert seen.content.startswith(f"[The server answered {words}.]")
    assert f"This is status {status}" in seen.content
    assert "[The server answered" not in (await browsing.open("index.html")).content


async def test_what_a_click_starts_is_waited_for(browsing: Browsing) -> None:
    await browsing.open("fetching.html")
    fetch, _, go = [await browsing.bid(f"button:nth-of-type({n})") for n in (1, 2, 3)]
    assert "fetched amber" in (await browsing.do(f"click({fetch})")).content
    assert (await browsing.do(f"click({go})")).title == "Slow"


async def test_a_server_that_answers_slowly_is_waited_for_longer_than_an_element(browsing: Browsing) -> None:
    await browsing.open("fetching.html")
    assert (await browsing.do(f"click({await browsing.bid('a')})")).title == "Slow"
    await browsing.do("go_back()")
    assert (await browsing.do(f"press({await browsing.bid('input')}, 'Enter')")).title == "Slow"


async def test_a_page_that_never_finishes_loading_is_waited_for_once(browsing: Browsing) -> None:
    warning = "[The page had not finished loading after 10 s.]"
    assert (await browsing.open("waiting.html?seconds=60")).text.startswith(warning)
    assert warning not in (await browsing.do(f"click({await browsing.bid('button')})")).text
    assert (await browsing.open("waiting.html?seconds=1")).title == "Loaded"


async def test_new_tabs_become_the_one_shown(browsing: Browsing) -> None:
    await browsing.open("tabs.html")
    link, button, swap = await browsing.bid("a"), await browsing.bid("button"), await browsing.bid("a:last-of-type")
    seen = await browsing.do(f"click({link})")
    assert (seen.title, seen.active_page) == ("Forms", 1)
    seen = await browsing.do(f"tab_focus(0)\nclick({button})")
    assert (seen.title, seen.active_page) == ("Tables", 2)
    assert seen.open_pages == tuple(f"{SITE}/{page}.html" for page in ("tabs", "forms", "tables"))
    seen = await browsing.do("tab_focus(1)\ntab_close()")
    assert (seen.title, len(seen.open_pages)) == ("Tabs", 2)
    seen = await browsing.do(f"click({swap})")
    assert seen.title == "Shop"
    assert "there is no tab 9" in (await browsing.attempt("tab_focus(9)")).last_action_error


async def test_a_new_tab_whose_page_cannot_be_loaded_is_shown_at_once(browsing: Browsing) -> None:
    await browsing.open("index.html")
    link = "<a id=nowhere target=_blank href='http://127.0.0.1:9999/'>Nowhere</a>"
    await browsing.js(f"document.body.insertAdjacentHTML('afterbegin', `{link}`)")
    await browsing.do("noop()")
    seen = await browsing.attempt(f"click({await browsing.bid('#nowhere')})")
    assert "nothing listens there" in seen.last_action_error
    assert (len(seen.open_pages), seen.active_page) == (2, 1)
    assert "Shop" in (await browsing.do("tab_close()")).title


async def test_after_the_last_tab_there_is_a_blank_one(browsing: Browsing) -> None:
    await browsing.open("index.html")
    seen = await browsing.do("new_tab()")
    assert (seen.url, seen.active_page) == ("about:blank", 1)
    seen = await browsing.do("tab_close()\ntab_close()")
    assert (seen.url, seen.open_pages, seen.active_page) == ("about:blank", ("about:blank",), 0)


async def _dialogs(browsing: Browsing) -> list[str]:
    await browsing.open("dialogs.html")
    return [await browsing.bid(f"button:nth-of-type({number})") for number in range(1, 6)]


async def test_while_a_dialog_is_open_nothing_else_is_done(browsing: Browsing) -> None:
    alert, *_ = await _dialogs(browsing)
    seen = await browsing.do(f"click({alert})")
    assert seen.dialog == 'alert: "Mind the gap" - keyboard_press("Enter") closes it'
    refused = await browsing.attempt(f"click({alert})")
    assert "must be answered first" in refused.last_action_error
    assert refused.dialog == seen.dialog
    seen = await browsing.do("keyboard_press('Enter')")
    assert (seen.dialog, await browsing.said()) == ("", "alerted")


async def test_dialogs_are_accepted_dismissed_and_filled(browsing: Browsing) -> None:
    _, confirm, prompt, later, twice = await _dialogs(browsing)
    await browsing.do(f"click({confirm})\nkeyboard_press('Enter')")
    await browsing.do(f"click({confirm})\nkeyboard_press('Escape')")
    assert await browsing.said() == "confirmed: true confirmed: false"
    seen = await browsing.do(f"click({prompt})")
    assert 'prompt: "Your name?", its answer is now "nobody"' in seen.dialog
    await browsing.do("keyboard_press('Enter')")
    await browsing.do(f"click({prompt})\nkeyboard_type('Ada')\nkeyboard_press('Enter')")
    await browsing.do(f"click({prompt})\nkeyboard_press('Escape')")
    assert (await browsing.said()).endswith("prompted: nobody prompted: Ada prompted: null")
    assert '"First"' in (await browsing.do(f"click({twice})")).dialog
    assert '"Second"' in (await browsing.do("keyboard_press('Enter')")).dialog
    await browsing.do("keyboard_press('Enter')")
    assert '"Late"' in (await browsing.do(f"click({later})\nnoop(200)")).dialog
    await browsing.do("keyboard_press('Enter')")
    assert (await browsing.said()).endswith("both late")


async def test_a_page_that_asks_before_it_is_left(browsing: Browsing) -> None:
    await browsing.open("leaving.html")
    draft, leave = await browsing.bid("#draft"), await browsing.bid("a")
    seen = await browsing.do(f"click({draft})\nkeyboard_type('words')\nclick({leave})")
    assert "asks whether to leave" in seen.dialog
    seen = await browsing.do("keyboard_press('Escape')")
    assert seen.title == "Leaving"
    seen = await browsing.do(f"goto('{SITE}/tables.html')")
    assert "asks whether to leave" in seen.dialog
    assert (await browsing.do("keyboard_press('Enter')")).title == "Tables"


async def test_downloads_go_to_the_workspace_under_names_of_their_own(browsing: Browsing) -> None:
    await output(browsing.sandbox, "rm -rf downloads")
    await browsing.open("download.html")
    link, save = await browsing.bid("a"), await browsing.bid("button")
    assert (await browsing.do(f"click({link})")).downloads == ("downloads/report.csv",)
    assert (await browsing.do(f"click({link})")).downloads == ("downloads/report-2.csv",)
    assert (await browsing.do(f"click({save})")).downloads == ("downloads/made.txt",)
    assert (await browsing.open("download/other.csv")).downloads == ("downloads/other.csv",)
    assert await output(browsing.sandbox, "cat downloads/report.csv downloads/made.txt") == "a,b\n1,2\nmade here"


async def test_a_download_that_is_cut_off_leaves_no_file_and_is_told(browsing: Browsing) -> None:
    await output(browsing.sandbox, "rm -rf downloads")
    await browsing.open("download.html")
    await browsing.js("document.querySelector('a').href = '/cut/report.csv'")
    seen = await browsing.do(f"click({await browsing.bid('a')})\nnoop(500)")
    assert seen.downloads == ()
    assert any(line.startswith("The download of report.csv failed: ") for line in seen.console), seen.console
    assert await output(browsing.sandbox, "ls downloads 2>/dev/null | wc -l") == "0"


async def test_a_download_that_goes_on_is_told_until_it_is_finished(browsing: Browsing) -> None:
    await output(browsing.sandbox, "rm -rf downloads")
    await browsing.open("download.html")
    await browsing.js("document.querySelector('a').href = '/dripping/report.csv?seconds=7'")
    seen = await browsing.do(f"click({await browsing.bid('a')})")
    assert seen.content.startswith("[A download is not finished yet: noop(5000) waits for it.]")
    seen = await browsing.do("noop(3000)")
    assert not seen.content.startswith("[A download")
    assert seen.downloads == ("downloads/report.csv",)


async def test_a_tab_that_only_starts_a_download_is_closed(browsing: Browsing) -> None:
    await browsing.open("download.html")
    link = await browsing.bid("a")
    for script in ("document.querySelector('a').target = '_blank'", "window.open('download/other.csv') && 0"):
        await browsing.js(script)
        seen = await browsing.do(f"click({link})" if "target" in script else "noop(300)")
        assert (seen.title, len(seen.open_pages), len(seen.downloads)) == ("Download", 1, 1)


async def test_errors_of_the_page_are_told_once_and_not_without_end(browsing: Browsing) -> None:
    await browsing.open("errors.html")
    complain, throw, flood = [await browsing.bid(f"button:nth-of-type({number})") for number in (1, 2, 3)]
    assert (await browsing.do(f"click({complain})")).console == ("It went wrong",)
    assert (await browsing.do(f"click({throw})")).console == ("missing is not defined",)
    many = (await browsing.do(f"click({flood})")).console
    assert len(many) == 10
    assert max(map(len, many)) == 300
    assert (await browsing.do("noop(1)")).console == ()


async def test_what_is_said_to_the_user_is_told_and_changes_no_page(browsing: Browsing) -> None:
    await browsing.open("index.html")
    seen = await browsing.do(
        "send_msg_to_user('It costs 12.50')\nsend_msg_to_user('Bye')\nreport_infeasible('sold out')"
    )
    assert (seen.messages, seen.infeasible, seen.title) == (("It costs 12.50", "Bye"), "sold out", "Shop")
    seen = await browsing.do("noop()")
    assert (seen.messages, seen.infeasible) == ((), "")


async def test_after_a_call_that_fails_nothing_more_is_run(browsing: Browsing) -> None:
    await browsing.open("index.html")
    seen = await browsing.attempt(f"noop(1)\nclick('9999')\ngoto('{OTHER}/tables.html')")
    assert seen.last_action_error.startswith("call 2 of 3, click('9999'): there is no element [9999]")
    assert seen.title == "Shop"
    assert "The shop" in seen.content


async def test_words_without_a_call_run_nothing_and_show_the_page(browsing: Browsing) -> None:
    await browsing.open("index.html")
    seen = await browsing.attempt("I see click (the button), but what now?")
    assert "no action was found" in seen.last_action_error
    assert seen.title == "Shop"


async def test_what_takes_long_is_interrupted_and_the_browser_goes_on(browsing: Browsing) -> None:
    await browsing.open("errors.html")
    for calls in ("noop(20000)", f"click({await browsing.bid('button:nth-of-type(4)')})"):
        acting = asyncio.create_task(browsing.attempt(calls))
        while not acting.done():
            await asyncio.wait([acting], timeout=0.5)
            await browsing.sandbox.interrupt()
        seen = await acting
        assert seen.last_action_error.startswith("interrupted")
    # The second click left the page in a loop without end.
    assert isinstance(seen, BrowserOutputObservation)
    assert "did not show itself in time" in seen.content
    assert (await browsing.open("index.html")).title == "Shop"

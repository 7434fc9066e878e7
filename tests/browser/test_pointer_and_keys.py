"""The actions with the mouse at a point of the window, with the wheel and with the keyboard."""

from __future__ import annotations

import pytest

from tests.browser.helpers import OTHER, SITE, Browsing
from tests.sandbox.helpers import output

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]


async def test_the_mouse_at_a_point(browsing: Browsing) -> None:
    await browsing.open("canvas.html")
    await browsing.do("mouse_move(120, 110)")
    assert await browsing.said() == "mousemove@120,110/0"
    await browsing.js("document.getElementById('log').textContent = ''")
    await browsing.do("mouse_click(130, 120)\nmouse_click(130, 120, 'right')")
    assert await browsing.said() == (
        "mousemove@130,120/0 mousedown@130,120/0 mouseup@130,120/0 click@130,120/0 mousemove@130,120/0 "
        "mousedown@130,120/2 contextmenu@130,120/2 mouseup@130,120/2"
    )
    await browsing.js("document.getElementById('log').textContent = ''")
    await browsing.do("mouse_dblclick(140, 130)")
    assert (await browsing.said()).endswith("dblclick@140,130/0")
    await browsing.js("document.getElementById('log').textContent = ''")
    await browsing.do("mouse_down(10, 20, button='middle')\nmouse_up(30, 40, button='middle')")
    assert await browsing.said() == "mousemove@10,20/0 mousedown@10,20/1 mousemove@30,40/0 mouseup@30,40/1"


async def test_dragging_from_a_point_to_another(browsing: Browsing) -> None:
    await browsing.open("drag.html")
    await browsing.do("mouse_drag_and_drop(470, 130, 620, 130)")
    assert await browsing.said() == "slid:150"
    await browsing.do("mouse_drag_and_drop(70, 130, 270, 130)")
    assert await browsing.said() == "slid:150 dropped:the thing"


async def test_uploading_after_a_click_at_a_point(browsing: Browsing) -> None:
    await output(browsing.sandbox, "echo three >three.txt")
    await browsing.open("upload.html")
    await browsing.do("mouse_upload_file(80, 220, 'three.txt')")
    assert await browsing.said("#chosen") == "chosen: three.txt"
    nothing = await browsing.attempt("mouse_upload_file(900, 600, 'three.txt')")
    assert "does not ask for a file" in nothing.last_action_error


async def test_a_file_chooser_right_after_a_tab_is_open_is_not_lost(browsing: Browsing) -> None:
    await output(browsing.sandbox, "echo three >three.txt")
    for _ in range(12):
        await browsing.open("about:blank")
        await browsing.do(f"goto('{SITE}/upload.html')\nmouse_upload_file(80, 220, 'three.txt')")
        assert await browsing.said("#chosen") == "chosen: three.txt"


async def test_the_wheel_scrolls_the_page_or_what_is_at_a_point(browsing: Browsing) -> None:
    await browsing.open("scrolling.html")
    await browsing.do("scroll(0, 300)")
    assert await browsing.said("#where") == "page 0,300 box 0"
    await browsing.do("scroll(100, -300)")
    assert await browsing.said("#where") == "page 100,0 box 0"
    await browsing.do("scroll_at(150, 200, 0, 120)")
    assert await browsing.said("#where") == "page 100,0 box 120"


async def test_the_wheel_scrolls_the_largest_pane_of_a_page_that_stands_still(browsing: Browsing) -> None:
    style = "margin: 0; overflow: hidden; height: 100vh; display: flex"
    panes = "".join(
        f"<{tag} style='overflow: auto; height: 100vh; width: {width}px'><p style='height: 4000px'>{tag}</p></{tag}>"
        for tag, width in (("nav", 200), ("main", 800))
    )
    await browsing.open("index.html")
    await browsing.js(f"document.body.style = {style!r}")
    await browsing.js(f"document.body.innerHTML = {panes!r}")
    await browsing.do("scroll(0, 300)\nnoop(300)")
    assert await browsing.js("[scrollY, ...['nav', 'main'].map(tag => document.querySelector(tag).scrollTop)]") == [
        *(0, 0, 300)
    ]
    await browsing.do("mouse_move(100, 300)\nscroll(0, 200)\nnoop(300)")  # the mouse chooses the pane
    assert await browsing.js("['nav', 'main'].map(tag => document.querySelector(tag).scrollTop)") == [200, 300]


@pytest.mark.parametrize("origin", [SITE, OTHER])
async def test_the_wheel_scrolls_a_frame_below_a_header_that_stands_still(browsing: Browsing, origin: str) -> None:
    await browsing.open("index.html")
    frame = f"<h1>Header</h1><iframe src='{origin}/many?nodes=5000' style='width: 600px; height: 300px'></iframe>"
    await browsing.js(f"document.body.innerHTML = {frame!r}")
    await browsing.do("noop(500)\nscroll(0, 300)\nnoop(300)")
    assert "1.0 screens above" in (await browsing.do("noop(0)")).content


async def test_the_wheel_scrolls_the_frame_under_the_mouse_rather_than_a_pane_beside_it(browsing: Browsing) -> None:
    pane = "<div style='overflow: auto; height: 400px'><p style='height: 2000px'>Pane</div>"
    await browsing.open(f"data:text/html,{pane}<iframe srcdoc='<p style=height:1000px>Terms' height=100></iframe>")
    await browsing.do(f"hover({await browsing.bid('iframe')})\nscroll(0, 100)\nnoop(300)")
    assert await browsing.js("[document.querySelector('div').scrollTop, frames[0].scrollY]") == [0, 100]


async def test_the_wheel_scrolls_the_largest_frame_of_a_frameset(browsing: Browsing) -> None:
    frames = "<frame srcdoc='Menu'><frame src='many?nodes=5000'>"
    await browsing.open("index.html")
    await browsing.js(f"document.body.outerHTML = {f'<frameset cols=200,*>{frames}</frameset>'!r}")
    seen = await browsing.do("noop(500)\nscroll(0, 720)\nnoop(300)")
    assert "1.0 screens above" in seen.content


async def test_a_page_without_end_grows_when_it_is_scrolled(browsing: Browsing) -> None:
    before = await browsing.open("endless.html")
    assert "News 40" not in before.content
    await browsing.do("scroll(0, 5000)")
    after = await browsing.do("scroll(0, 5000)")
    assert "News 40" in after.content


async def test_keys(browsing: Browsing) -> None:
    await browsing.open("keys.html")
    await browsing.do("keyboard_down('Shift')\nkeyboard_press('KeyB')\nkeyboard_up('Shift')")
    assert await browsing.said() == "keydown:Shift keydown:B keyup:B keyup:Shift"
    await browsing.js("document.getElementById('log').textContent = ''")
    await browsing.do("keyboard_type('hé')")
    assert await browsing.said() == "keydown:h keyup:h"  # no key has an é
    await browsing.do("keyboard_insert_text(' and 日本 at once')")
    assert await browsing.js("document.querySelector('input').value") == "Bhé and 日本 at once"
    await browsing.do("keyboard_press('Control+a')\nkeyboard_press('Delete')")
    assert await browsing.js("document.querySelector('input').value") == ""
    assert "Unknown key" in (await browsing.attempt("keyboard_press('Ctl+a')")).last_action_error

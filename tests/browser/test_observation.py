"""What the browser's observation shows of a page: the part in the window, the whole, the words, the bids."""

from __future__ import annotations

import re

import pytest

from tests.browser.helpers import Browsing
from tests.browser.watching import Watching, bid_of, bids

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture
def browser(browsing: Browsing) -> Watching:
    return Watching(browsing.sandbox, browsing.blobs)


async def test_a_form_shows_its_fields_with_what_they_hold(browser: Watching):
    seen = await browser.open("forms.html")
    assert (seen.url, seen.title) == ("http://127.0.0.1:8000/forms.html", "Forms")
    name, gift = (
        bid_of(seen.content, "textbox 'Name', required"),
        bid_of(seen.content, "checkbox 'As a gift', unchecked"),
    )
    assert "textbox 'Code' value='old code'" in seen.content
    assert "radio 'Card', checked" in seen.content
    assert "button 'Refund', disabled" in seen.content

    seen = await browser.do(f"fill({name!r}, 'Ada')\ncheck({gift!r})")
    assert f"[{name}] textbox 'Name' value='Ada'" in seen.content
    assert f"[{gift}] checkbox 'As a gift', focused, checked" in seen.content


@pytest.mark.parametrize("view", ["visible", "full"])
async def test_a_selection_shows_its_options(browser: Watching, view: str):
    seen = await browser.open("forms.html", view=view)
    colour = bid_of(seen.content, "combobox 'Colour' value='Red'")
    assert bid_of(seen.content, "option 'Red', selected")
    seen = await browser.do(f"select_option({colour!r}, 'Green')", view=view)
    assert f"[{colour}] combobox 'Colour' value='Green'" in seen.content
    assert bid_of(seen.content, "option 'Green', selected")


async def test_an_icon_without_a_name_has_the_names_of_the_page_s_code(browser: Watching):
    seen = await browser.open("icons.html")
    lines = [line.strip().split("] ")[-1] for line in seen.content.splitlines()]
    assert "button '', class='icon trash'" in lines
    assert "generic '', clickable, id='star'" in lines
    assert "image '', clickable, src='flag.png'" in lines
    assert "button '', src='archive'" in lines
    assert "button 'Reply'" in lines


@pytest.mark.parametrize("view", ["visible", "full"])
async def test_a_table_has_rows_and_cells(browser: Watching, view: str):
    seen = await browser.open("tables.html", view=view)
    lines = [line.strip().split("] ")[-1] for line in seen.content.splitlines()]
    row = lines.index("cell 'Amber'")
    assert lines[row - 1].startswith("row ")
    assert lines[row : row + 4] == ["cell 'Amber'", "cell '12.50'", "cell 'Buy amber'", "button 'Buy amber'"]
    assert "columnheader 'Thing'" in lines


@pytest.mark.parametrize("view", ["visible", "full"])
async def test_frames_of_both_origins_are_read_and_acted_in(browser: Watching, view: str):
    seen = await browser.open("frames.html", view=view)
    near, far, nested = (bid_of(seen.content, f"Iframe '{name}'") for name in ("Near", "Far", "Nested"))
    assert len({near, far, nested}) == 3
    fields = [bid for bid in bids(seen.content) if f"[{bid}] textbox 'Words'" in seen.content]
    deep = bid_of(seen.content, "Iframe 'Deep'")
    assert [bid.rstrip("0123456789") for bid in fields] == [near, far, deep]
    assert deep.startswith(nested)

    buttons = [bid for bid in bids(seen.content) if f"[{bid}] button 'Say'" in seen.content]
    for field, button in zip(fields, buttons, strict=True):
        seen = await browser.do(f"fill({field!r}, 'from {field}')\nclick({button!r})", view=view)
        assert f"'You said from {field}'" in seen.content


async def test_a_shadow_root_is_read_and_acted_in(browser: Watching):
    seen = await browser.open("shadow.html")
    inner, button = bid_of(seen.content, "textbox 'Inner'"), bid_of(seen.content, "button 'Hidden deep'")
    seen = await browser.do(f"fill({inner!r}, 'treasure')\nclick({button!r})")
    assert "StaticText 'found treasure'" in seen.content
    assert (await browser.do(f"focus({inner!r})")).focused_element == inner


async def test_the_focus_is_told_through_frames(browser: Watching):
    seen = await browser.open("frames.html")
    far = bid_of(seen.content, "Iframe 'Far'")
    field = next(bid for bid in bids(seen.content) if bid.startswith(far) and f"[{bid}] textbox" in seen.content)
    seen = await browser.do(f"focus({field!r})")
    assert seen.focused_element == field
    assert f"[{field}] textbox 'Words', focused" in seen.content


async def test_only_what_is_in_the_window_is_visible_and_the_rest_is_counted(browser: Watching):
    seen = await browser.open("many?nodes=5000")
    assert "button 'Buy 3'" in seen.content
    assert "button 'Buy 400'" not in seen.content
    assert "screens below: scroll(0, 720) shows more" in seen.content
    assert " above" not in seen.content
    whole = browser.whole(await browser.do("noop(0)", view="full"))
    assert "button 'Buy 499'" in whole
    assert set(bids(seen.content)) < set(bids(whole))
    await browser.script("scrollTo(0, document.body.scrollHeight)")
    seen = await browser.do("noop(0)")
    assert "button 'Buy 499'" in seen.content
    assert "screens above: scroll(0, -720) shows more" in seen.content


HIDDEN = """<title>Hidden</title><p style='display:none'>none</p><p style='visibility:hidden'>invisible
<b style='visibility:visible'>shown again</b></p><details><summary>More</summary>folded</details>
<div style='height:30px;overflow:auto'>in the box<div style='height:300px'></div>scrolled out</div>
<p style='position:absolute;left:-999px'>left of it</p><span aria-hidden=true>ornament</span>
<div style='height:0;overflow:hidden'><p>clipped</p><p style='position:fixed;bottom:0'>stuck below</p></div>
<div style='display:contents'>no box of its own</div>"""


async def test_what_cannot_be_seen_is_not_visible(browser: Watching):
    seen = await browser.show(HIDDEN)
    for shown in ("shown again", "More", "in the box", "stuck below", "no box of its own"):
        assert shown in seen.content
    for hidden in ("none", "invisible", "folded", "scrolled out", "left of it", "ornament", "clipped"):
        assert hidden not in seen.content


async def test_what_answers_to_a_click_is_clickable_whatever_it_is(browser: Watching):
    await browser.show(
        "<div id=listens>One</div><div onclick='1'>Two</div><div style='cursor:pointer'>Three</div><div>Four</div>"
    )
    await browser.script("document.querySelector('#listens').addEventListener('mousedown', () => 0)")
    for view in ("visible", "full"):
        seen = await browser.do("noop(0)", view=view)
        assert seen.content.count("generic '', clickable") == 3


@pytest.mark.parametrize("style", ["cursor:pointer", ""])
async def test_the_label_of_a_hidden_field_can_be_clicked(browser: Watching, style: str):
    shown = "<label>Gift<input type=checkbox></label>"
    seen = await browser.show(f"<label style='{style}'>Agree<input type=checkbox style='display:none'></label>{shown}")
    label = bid_of(seen.content, "LabelText '', clickable")
    assert seen.content.count("clickable") == 1
    await browser.do(f"click({label!r})")
    assert await browser.script("document.querySelector('input').checked")


@pytest.mark.parametrize("style", ["display:none", "visibility:hidden", "appearance:none;width:0;height:0;margin:0"])
async def test_the_label_of_a_hidden_box_says_whether_it_is_checked(browser: Watching, style: str):
    shown = "<label>Card<input type=radio></label>"
    seen = await browser.show(f"<label>Agree<input type=checkbox style='{style}'></label>{shown}")
    (label,) = re.findall(r"\[(\d+)\] \w+ '', clickable, unchecked", seen.content)
    seen = await browser.do(f"click({label!r})")
    assert re.findall(r"\[(\d+)\] \w+ '', clickable, checked", seen.content) == [label]


@pytest.mark.parametrize(
    "script", ["frames[0].document.body.contentEditable = true", "frames[0].document.designMode = 'on'"]
)
async def test_an_editor_that_is_the_body_of_a_frame_is_filled(browser: Watching, script: str):
    await browser.show("<iframe srcdoc='<p>Dear Ann' title=Letter></iframe>")
    await browser.script(f"void ({script})")
    editor = bid_of((await browser.do("noop(0)")).content, "textbox ''")
    assert "StaticText 'Dear Bob'" in (await browser.do(f"fill({editor!r}, 'Dear Bob')")).content
    assert await browser.script("frames[0].document.body.textContent") == "Dear Bob"


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("<p style='width:2560px'>Wide", "... 1.0 screens on the right: scroll(1280, 0) shows more"),
        ("<html dir=rtl><p style='width:2560px'>Wide", "... 1.0 screens on the left: scroll(-1280, 0) shows more"),
        ("<body dir=rtl><p style='width:2560px'>Wide", "... 1.0 screens on the left: scroll(-1280, 0) shows more"),
    ],
)
async def test_it_says_how_much_of_the_page_is_beside_the_window(browser: Watching, page: str, said: str):
    assert said in (await browser.show(page)).content
    across = 1280 if "right" in said else -1280
    seen = await browser.do(f"scroll({across * 2}, 0)\nnoop(300)")
    other = f"on the {'left' if across > 0 else 'right'}: scroll({-across}, 0) shows more"
    assert said not in seen.content
    assert other in seen.content


async def test_of_a_page_that_turned_scrolling_off_nothing_is_said_to_be_outside(browser: Watching):
    still, tall = "style='overflow:hidden'", "<p style='width:2560px;height:2160px'>Tall"
    assert "screens" not in (await browser.show(f"<body {still}>{tall}")).content
    assert "screens" not in (await browser.show(f"<html {still}>{tall}")).content
    seen = await browser.show(f"<html style='overflow:auto'><body {still}>{tall}")
    assert "screens below" in seen.content


async def test_a_frame_in_its_middle_has_screens_above_and_below(browser: Watching):
    await browser.show("<iframe title=Terms height=100 srcdoc='<p style=height:1000px>Terms'></iframe>")
    await browser.script("frames[0].scrollTo(0, 400)")
    seen = await browser.do("noop(0)")
    frame = bid_of(seen.content, "Iframe 'Terms'")
    said = rf"scrollable after hover\('{frame}'\): 4\.0 screens above, scroll\(0, -100\); \d\.\d screens below, "
    assert re.search(said, seen.content), seen.content


async def test_a_pane_that_scrolls_on_its_own_says_how_much_is_hidden_and_is_scrolled(browser: Watching):
    pane = "<div style='height:100px;overflow:auto'><p style='margin:0;height:200px'>First</p><p>Last</p></div>"
    seen = await browser.show(f"{pane}<p style='height:2000px'>Page")
    assert "Last" not in seen.content
    bid = bid_of(seen.content, "generic '', scrollable after hover(")
    assert f"hover('{bid}'): " in seen.content
    seen = await browser.do(f"hover({bid!r})\nscroll(0, 200)\nnoop(300)")
    assert "Last" in seen.content
    assert "First" not in seen.content
    assert await browser.script("scrollY") == 0


async def test_of_a_long_text_only_the_lines_in_the_window_are_visible(browser: Watching):
    lines = "\n".join(f"line {number} of many" for number in range(3000))
    seen = await browser.show(f"<pre>{lines}</pre>")
    assert "line 3 of many" in seen.content
    assert "line 300 of many" not in seen.content
    await browser.script("scrollTo(0, document.body.scrollHeight)")
    seen = await browser.do("noop(0)")
    assert "line 2999 of many" in seen.content
    assert "line 3 of many" not in seen.content


async def test_a_bid_stays_with_its_element_and_is_never_another_ones(browser: Watching):
    seen = await browser.show("<button>First</button><ul><li><button>Second</button></li></ul>")
    first, second = bid_of(seen.content, "button 'First'"), bid_of(seen.content, "button 'Second'")

    await browser.script("document.querySelector('ul').innerHTML += '<li><button>Third</button></li>'")
    seen = await browser.do("noop(0)")
    assert bid_of(seen.content, "button 'First'") == first
    third = bid_of(seen.content, "button 'Third'")
    assert third not in (first, second)

    await browser.script(
        "const copy = document.querySelector('button').cloneNode(true);"
        "copy.textContent = 'Copy'; document.body.prepend(copy)"
    )
    seen = await browser.do("noop(0)")
    assert bid_of(seen.content, "button 'First'") == first
    assert bid_of(seen.content, "button 'Copy'") not in (first, second, third)
    everything = await browser.script(
        "[...document.querySelectorAll('[bid]')].map(element => element.getAttribute('bid'))"
    )
    assert len(everything) == len(set(everything))


async def test_a_page_that_bends_its_own_javascript_is_read_all_the_same(browser: Watching):
    seen = await browser.show(
        "<script>Element.prototype.getAttribute = () => { throw 1 }; Array.prototype.push = () => 0;"
        "Element.prototype.setAttribute = () => 0; JSON.stringify = () => 'mine'; getComputedStyle = null</script>"
        "<button>Still here</button>"
    )
    assert bid_of(seen.content, "button 'Still here'")


async def test_an_error_page_of_the_browser_itself_is_read(browser: Watching):
    seen = await browser.open("http://127.0.0.1:9/")
    assert seen.last_action_error
    assert "RootWebArea" in seen.content


async def test_a_page_that_never_holds_still_is_read(browser: Watching):
    await browser.show(
        "<h1>Ticker</h1><ul></ul><script>setInterval(() => document.querySelector('ul').replaceChildren("
        "...Array.from({length: 50}, () => Object.assign(document.createElement('li'), {textContent: Math.random()}))))"
        "</script>"
    )
    for view in ("visible", "full", "text"):
        assert "Ticker" in (await browser.do("noop(0)", view=view)).content


async def test_a_page_of_any_depth_is_read(browser: Watching):
    await browser.show(
        "<body><script>let at = document.body; for (let depth = 0; depth < 600; depth++)"
        "at = at.appendChild(document.createElement('section')); at.textContent = 'the bottom of it'</script>"
    )
    for view in ("visible", "full", "text"):
        seen = await browser.do("noop(0)", view=view)
        assert "the bottom of it" in browser.whole(seen)


async def test_the_text_view_reads_like_a_document(browser: Watching):
    page = """<title>T</title><h1>Fruit</h1><p>Some <b>sweet</b>
    things, see <a href=x>the list</a>.</p><h2>Prices</h2><table><tr><th>Thing<th>Price<tr><td>Apple<td>0.30</table>
    <ul><li>one<li>two<ul><li>inner</ul></ul><pre>a  b\n  c</pre><p hidden>not this</p><img alt='a pear' src=x>"""
    seen = await browser.show(page, view="text")
    link = await browser.script("document.querySelector('a').getAttribute('bid')")
    assert seen.content.splitlines() == [
        "# Fruit",
        f"Some sweet things, see the list [{link}].",
        "## Prices",
        "| Thing | Price |",
        "| Apple | 0.30 |",
        "- one",
        "- two",
        "  - inner",
        "a  b",
        "  c",
        "(picture: a pear)",
    ]
    seen = await browser.open("frames.html", view="text")
    assert seen.content.count("Words [") == 3


async def test_the_text_view_tells_what_fields_hold_but_no_password(browser: Watching):
    fields = """Name <input value='Ada "L"'><br><textarea>two\nlines</textarea><br>
    Secret <input type=password value=xyz><br>
    News <input type=checkbox checked> Ads <input type=checkbox><br><select><option>Red<option selected>Blue</select>
    <input type=hidden value=token>"""
    seen = await browser.show(fields, view="text")
    assert re.sub(r"\[\d+\]", "[]", seen.content).splitlines() == [
        r'Name [] value="Ada \"L\""',
        r'[] value="two\nlines"',
        'Secret [] value="•••"',
        "News [] checked Ads [] unchecked",
        '[] value="Blue"',
    ]


DIFFERING = """async ({pictures, places}) => {
  const [plain, marked] = await Promise.all(pictures.map(async (data) => {
    const image = new Image();
    image.src = "data:image/png;base64," + data;
    await image.decode();
    const drawing = new OffscreenCanvas(image.width, image.height).getContext("2d");
    drawing.drawImage(image, 0, 0);
    return drawing.getImageData(0, 0, image.width, image.height);
  }));
  const colour = (picture, [x, y]) => picture.data.slice((y * picture.width + x) * 4).slice(0, 4).join();
  return {
    sizes: [plain, marked].map(({width, height}) => [width, height]),
    differing: places.map((place) => colour(plain, place) !== colour(marked, place)),
  };
}"""
"""Whether two pictures differ, place by place."""


async def test_the_marked_picture_has_boxes_where_the_elements_are(browser: Watching):
    await browser.show(
        "<body style='margin:0'>"
        "<button style='position:absolute;left:100px;top:60px;width:80px;height:40px'>Go</button>"
    )
    await browser.script("""new MutationObserver(() => document.title = 'disturbed')
        .observe(document, {subtree: true, childList: true, attributes: true, characterData: true})""")
    seen = await browser.do("noop(0)", marks=True)
    assert seen.title != "disturbed"
    assert await browser.script("document.title") == ""

    corners, label = [[100, 60], [179, 60], [140, 100]], [105, 52]
    elsewhere = [[60, 60], [300, 300], [150, 92]]
    pictures = [browser.picture(seen.screenshot), browser.picture(seen.marked_screenshot)]
    compared = await browser.script(DIFFERING, argument={"pictures": pictures, "places": [*corners, label, *elsewhere]})
    assert compared["sizes"] == [[1280, 720], [1280, 720]]
    assert compared["differing"] == [True] * 4 + [False] * 3


@pytest.mark.parametrize(
    ("bid", "why"), [("999", "there is no element [999]"), ("b3", "nor a frame [b]"), ("x!", "is not a bid")]
)
async def test_a_bid_that_nothing_has_is_told(browser: Watching, bid: str, why: str):
    await browser.open("tables.html")
    seen = await browser.attempt(f"click({bid!r})")
    assert why in seen.last_action_error

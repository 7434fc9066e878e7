"""What counts as impossible to take back, by the element that a call reaches on a real page."""

from __future__ import annotations

import json

import pytest

from handiwork.session.approval.browser_acts import irreversible_acts
from tests.browser.helpers import SITE, Browsing

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

SEARCH = "<form><input name=q aria-label=Question><button>Search</button></form>"
PAYMENT = (
    "<form method=post><input id=amount aria-label=Amount><input type=checkbox id=tick><button>Continue</button></form>"
)
ICON = "<svg width=20 height=20><circle r=9 cx=10 cy=10 /></svg>"


async def acts(browsing: Browsing, page: str, calls: str) -> list[str]:
    """The irreversible acts of calls on a page; {SELECTOR} in them is the bid of an element."""
    await browsing.open("index.html")
    await browsing.js(f"document.body.innerHTML = {json.dumps(page)}")
    await browsing.do("noop(0)")
    while "{" in calls:
        selector = calls.partition("{")[2].partition("}")[0]
        calls = calls.replace(f"{{{selector}}}", await browsing.bid(selector))
    return irreversible_acts(await browsing.sandbox.browser("targets", calls=calls))


@pytest.mark.parametrize(
    ("page", "calls", "act"),
    [
        ("<button>Delete account</button>", "click({button})", "click button 'Delete account'"),
        ("<button>Delete account</button>", "upload_file({button}, 'a')", "click button 'Delete account'"),
        ("<a href='#'>Remove</a>", "click({a})", "click link 'Remove'"),
        ("<a href='/delete/5'><img alt=''></a>", "click({a})", "click link without a name"),
        ("<a href='/delete.php?id=5'><img alt=''></a>", "click({a})", "click link without a name"),
        ("<a href='/delete-item/7'><img alt=''></a>", "click({a})", "click link without a name"),
        ("<a href='/items?do=delete'><img alt=''></a>", "click({a})", "click link without a name"),
        ("<a href='/-/merge_requests/12/merge'><img alt=''></a>", "click({a})", "click link without a name"),
        ("<button>Konto löschen</button>", "click({button})", "click button 'Konto löschen'"),
        ("<button>Payer 20 €</button>", "click({button})", "click button 'Payer 20 €'"),
        ("<button>Cancel subscription</button>", "click({button})", "click button 'Cancel subscription'"),
        ("<button>Sign the contract</button>", "click({button})", "click button 'Sign the contract'"),
        ("<button>Order now</button>", "dblclick({button})", "click button 'Order now'"),
        ("<button><span>Delete</span></button>", "click({span})", "click button 'Delete'"),
        ("<button aria-label='Show more'>Delete</button>", "click({button})", "click button 'Show more'"),
        ("<div onclick=0>Publish</div>", "click({div})", "click generic 'Publish'"),
        (f"<button>{ICON}</button>", "click({button})", "click button without a name"),
        (f"<form>{ICON}</form>", "click({svg})", "without a name"),
        ("<button>🗑</button>", "click({button})", "click button '🗑'"),
        ("<button>削除</button>", "click({button})", "click button '削除'"),
        ("<button>削除 (3)</button>", "click({button})", "click button '削除 (3)'"),
        (PAYMENT, "click({button})", "click button 'Continue'"),
        (PAYMENT, "press({#amount}, 'Enter')", "press Enter in textbox 'Amount'"),
        (PAYMENT, "fill({#amount}, '5')\npress({#amount}, 'Control+Enter')", "press Enter in textbox 'Amount'"),
        (PAYMENT, "fill({#amount}, '5')\nkeyboard_press('Enter')", "press Enter in textbox 'Amount'"),
        (PAYMENT, "keyboard_press('Enter')", "press Enter in the page"),
        (PAYMENT, "press({#amount}, '\\n')", "press Enter in textbox 'Amount'"),
        (PAYMENT, "press({#amount}, 'Control+\\r')", "press Enter in textbox 'Amount'"),
        (PAYMENT, "fill({#amount}, '5')\nkeyboard_type('0\\r')", "press Enter in textbox 'Amount'"),
        (PAYMENT, "check({#tick})\nkeyboard_type('\\n')", "press Enter in checkbox"),
        ("<button>Buy</button>", "press({button}, ' ')", "press Space in button 'Buy'"),
        ("<div role=listbox aria-label=Mails tabindex=0>a</div>", "press({div}, 'Enter')", "press Enter in listbox"),
        ("<ul tabindex=0><li>a</li></ul>", "press({ul}, 'Delete')", "press Delete in list"),
        ("<select aria-label=Act><option>-<option>Delete</select>", "select_option({select}, 'Delete')", "to 'Delete'"),
        (
            "<form><ul role=listbox aria-label=Act><li role=option>Delete</ul></form>",
            "select_option({ul}, 'Delete')",
            "set listbox 'Act' to 'Delete'",
        ),
        ("<input type=checkbox aria-label=Publish>", "check({input})", "set checkbox 'Publish'"),
        ("<p id=a>File</p><p id=b>Trash</p>", "drag_and_drop({#a}, {#b})", "drag paragraph"),
        ("<button>Next</button>", "click({button})\nclick({button})", "not known before the calls ahead of it"),
        ("<button>Next</button>", "goto('about:blank')\nclick('3')", "not known before the calls ahead of it"),
        (
            "<div role=alertdialog>Delete all files?<button>OK</button></div>",
            "click({button})",
            "click button 'OK'",
        ),
    ],
)
async def test_these_are(browsing: Browsing, page: str, calls: str, act: str) -> None:
    (found,) = await acts(browsing, page, calls)
    assert act in found
    assert found.endswith(f"on {SITE}/index.html")


@pytest.mark.parametrize(
    ("page", "calls"),
    [
        ("<button>Show details</button>", "click({button})"),
        ("<button>Cancel</button>", "click({button})"),
        ("<button>›</button>", "click({button})"),
        ("<button>Größe 3</button>", "click({button})"),
        ("<a href='/orders'>Order history</a>", "click({a})"),
        ("<a href='/logo'><img alt=''></a>", "click({a})"),
        ("<a href='/in'>Sign in</a>", "click({a})"),
        ("<a href='/deleted-items.php'><img alt=''></a>", "click({a})"),
        ("<a href='/articles?sort=publish_date'>Newest</a>", "click({a})"),
        ("<a href='/group/project/-/merge_requests/12'>Mend the typo</a>", "click({a})"),
        ("<button>Xem tiếp</button>", "click({button})"),
        ("<button>60 m²</button>", "click({button})"),
        ("<button>Delete</button>", "hover({button})\nscroll(0, 300)\ngoto('about:blank')"),
        ("<form><button type=button>Show password</button></form>", "click({button})"),
        ("<form><label>Delete my data <input type=checkbox></label></form>", "check({input})"),
        (SEARCH, "fill({input}, 'x')\npress({input}, 'Enter')"),
        (SEARCH, "fill({input}, 'x')\nkeyboard_press('Enter')"),
        (SEARCH, "click({button})"),
        ("<form role=search><input><button>Go</button></form>", "click({button})"),
        ("<input type=search>", "press({input}, 'Enter')"),
        ("<input type=file>", "upload_file({input}, 'a')"),
        ("<input type=file><button>Next</button>", "upload_file({input}, 'a')\nclick({button})"),
        (PAYMENT, "click({#amount})"),
        (PAYMENT, "fill({#amount}, '5')\npress({#amount}, 'Tab')\ncheck({#tick})"),
        (PAYMENT, "press({#amount}, 'Delete')"),
        ("<button>Delete</button>", "click('999')"),
        ("<select aria-label=Country><option>Chile<option>Peru</select>", "select_option({select}, 'Peru')"),
        ("<div role=alertdialog>Delete all files?<button>Keep them</button></div>", "click({button})"),
    ],
)
async def test_these_are_not(browsing: Browsing, page: str, calls: str) -> None:
    assert await acts(browsing, page, calls) == []


async def test_it_is_seen_in_frames_shadow_roots_and_at_points(browsing: Browsing) -> None:
    inner = "<button style='position:fixed;left:0;top:0;width:90px;height:40px'>Delete</button>"
    page = f'<iframe srcdoc="{inner}" style="position:fixed;left:50px;top:50px;border:0"></iframe><p id=host></p>'
    await browsing.open("index.html")
    await browsing.js(f"document.body.innerHTML = {json.dumps(page)}")
    await browsing.js(
        "void (document.getElementById('host').attachShadow({mode: 'open'}).innerHTML = '<button>Pay</button>')"
    )
    await browsing.do("noop(500)")
    frame = await browsing.js(
        "document.querySelector('iframe').contentDocument.querySelector('button').getAttribute('bid')"
    )
    shadow = await browsing.js("document.getElementById('host').shadowRoot.querySelector('button').getAttribute('bid')")
    for calls, name in (
        (f"click('{frame}')", "Delete"),
        (f"click('{shadow}')", "Pay"),
        ("mouse_click(70, 70)", "Delete"),
    ):
        (found,) = irreversible_acts(await browsing.sandbox.browser("targets", calls=calls))
        assert found.startswith(f"click button '{name}'")


@pytest.mark.parametrize(("kind", "asked"), [("confirm", True), ("prompt", True), ("alert", False)])
async def test_a_dialog_is_accepted_only_with_approval(browsing: Browsing, kind: str, asked: bool) -> None:
    await browsing.open("index.html")
    await browsing.js(f"void setTimeout(() => {kind}('Delete everything?'), 50)")
    await browsing.do("noop(300)")
    accepted = irreversible_acts(await browsing.sandbox.browser("targets", calls="keyboard_press('Enter')"))
    assert accepted == [f"accept the dialog 'Delete everything?' on {SITE}/index.html"] * asked
    assert irreversible_acts(await browsing.sandbox.browser("targets", calls="keyboard_press('Escape')")) == []
    after = irreversible_acts(await browsing.sandbox.browser("targets", calls="keyboard_press('Escape')\nclick('1')"))
    assert len(after) == 1
    await browsing.do("keyboard_press('Escape')")

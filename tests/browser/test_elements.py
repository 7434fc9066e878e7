"""The actions on elements, each in a real browser."""

from __future__ import annotations

import json
import re

import pytest

from tests.browser.helpers import Browsing
from tests.sandbox.helpers import output

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]


async def test_click_with_buttons_and_modifiers(browsing: Browsing) -> None:
    await browsing.open("clicks.html")
    button = await browsing.bid("#b")
    await browsing.do(f"click({button})\nclick({button}, 'left', ['Control', 'Shift'])")
    await browsing.do(f"click({button}, button='right')\nclick({button}, button='middle')\ndblclick({button})")
    assert await browsing.said() == "click: click:ctrl+shift right middle click: click: dblclick"


async def test_hover_shows_a_menu_that_can_then_be_clicked(browsing: Browsing) -> None:
    await browsing.open("clicks.html")
    holder, menu = await browsing.bid("#holder"), await browsing.bid("#menu")
    hidden = await browsing.attempt(f"click({menu})")
    assert "is not visible" in hidden.last_action_error
    seen = await browsing.do(f"hover({holder})\nclick({menu})")
    assert seen.url.endswith("#buy")


async def test_a_form_is_filled_and_sent(browsing: Browsing) -> None:
    await browsing.open("forms.html")
    name, notes, colour, sizes, gift, cash, day, send = [
        await browsing.bid(selector)
        for selector in (
            *("[name=name]", "[name=notes]", "[name=colour]", "[name=sizes]", "[name=gift]", "[value=cash]"),
            *("[name=day]", "button"),
        )
    ]
    await browsing.do(
        f"fill({name}, 'Ada \"Countess\" Łovelace')\nfill({notes}, 'two\\nlines')\nselect_option({colour}, 'Green')\n"
        f"select_option({sizes}, ['Small', 'l'])\ncheck({gift})\ncheck({cash})\nfill({day}, '2026-02-03')"
    )
    seen = await browsing.do(f"click({send})")
    assert seen.title == "Sent"
    fields = await browsing.js(
        "Object.fromEntries([...document.querySelectorAll('tr')].map(r => [...r.children].map(c => c.textContent)))"
    )
    assert fields == {
        "name": 'Ada "Countess" Łovelace',
        "notes": "two\nlines",
        "colour": "g",
        "sizes": "l",  # the last of two fields of this name
        "gift": "on",
        "pay": "cash",
        "day": "2026-02-03",
        "code": "old code",
    }


async def test_clear_uncheck_focus_and_press(browsing: Browsing) -> None:
    await browsing.open("forms.html")
    code, gift = await browsing.bid("[name=code]"), await browsing.bid("[name=gift]")
    name, notes = await browsing.bid("[name=name]"), await browsing.bid("[name=notes]")
    await browsing.do(f"clear({code})\ncheck({gift})\nuncheck({gift})\nfocus({name})\npress({notes}, 'Shift+A')")
    assert await browsing.js("[document.forms[0].code.value, document.forms[0].gift.checked]") == ["", False]
    assert await browsing.said() == "focused:name key:Shift key:A"


async def test_fill_key_by_key_opens_the_menu_that_completes_a_word(browsing: Browsing) -> None:
    await browsing.open("autocomplete.html")
    fruit = await browsing.bid("#fruit")
    await browsing.do(f"fill({fruit}, 'ap')")
    assert await browsing.said("#found") == ""
    await browsing.do(f"fill({fruit}, 'ap', enable_autocomplete_menu=True)")
    assert await browsing.js("[...document.querySelectorAll('li')].map(each => each.textContent)") == [
        "apple",
        "apricot",
    ]
    await browsing.do(f"click({await browsing.bid('li:last-child')})")
    assert await browsing.said("#chosen") == "chosen: apricot"


async def test_a_line_break_filled_key_by_key_does_not_send_the_form(browsing: Browsing) -> None:
    await browsing.open("forms.html")
    seen = await browsing.do(f"fill({await browsing.bid('[name=name]')}, 'Ada\\n', enable_autocomplete_menu=True)")
    assert seen.title == "Forms"
    assert await browsing.js("document.forms[0].name.value") == "Ada"


async def test_drag_and_drop(browsing: Browsing) -> None:
    await browsing.open("drag.html")
    await browsing.do(f"drag_and_drop({await browsing.bid('#thing')}, {await browsing.bid('#place')})")
    assert await browsing.said() == "dropped:the thing"


async def test_drag_and_drop_to_a_place_below_the_window(browsing: Browsing) -> None:
    await browsing.open("drag.html")
    await browsing.js("place.style.top = '2000px'")
    await browsing.do(f"drag_and_drop({await browsing.bid('#thing')}, {await browsing.bid('#place')})")
    assert await browsing.said() == "dropped:the thing"


async def test_a_box_that_changes_late_is_checked_and_one_that_does_not_change_is_told(browsing: Browsing) -> None:
    await browsing.open(
        "data:text/html,<div role=switch aria-checked=false id=late "
        "onclick=\"setTimeout(() => this.ariaChecked = 'true', 100)\">Late</div>"
        "<input type=checkbox id=never onclick='return false'>"
    )
    await browsing.do(f"check({await browsing.bid('#late')})")
    seen = await browsing.attempt(f"check({await browsing.bid('#never')})")
    assert "was clicked and is still unchecked" in seen.last_action_error


async def test_a_field_that_gives_the_focus_away_at_once_had_it(browsing: Browsing) -> None:
    await browsing.open("data:text/html,<input id=field onfocus=\"this.blur(); document.title = 'Focused'\">")
    assert (await browsing.do(f"focus({await browsing.bid('#field')})")).title == "Focused"


async def test_what_covers_an_element_of_a_frame_is_told(browsing: Browsing) -> None:
    await browsing.open("frames.html")
    await browsing.js("document.body.insertAdjacentHTML('beforeend', '<div id=mask style=\"position:fixed;inset:0\">')")
    seen = await browsing.do("noop(0)", view="full")
    button = next(line.split("]")[0].strip("\t [") for line in seen.content.splitlines() if "button 'Say'" in line)
    covered = await browsing.attempt(f"click({button!r})")
    assert f"is covered by [{(await browsing.bid('#mask'))[1:-1]}]" in covered.last_action_error


async def test_files_are_uploaded_by_their_paths_in_the_workspace(browsing: Browsing) -> None:
    await output(browsing.sandbox, "mkdir -p up && echo one >up/one.txt && echo two >up/two.txt")
    await browsing.open("upload.html")
    field, send, choose = [
        await browsing.bid(each) for each in ("input", "[type=submit]", "[type=submit] ~ button, button[style]")
    ]
    asked = "[The page asks for a file, and none was chosen"
    assert (await browsing.do(f"click({choose})")).text.startswith(asked)
    assert asked not in (await browsing.do(f"upload_file({choose}, 'up/two.txt')")).text
    assert await browsing.said("#chosen") == "chosen: two.txt"
    missing = await browsing.attempt(f"upload_file({field}, 'up/three.txt')")
    assert "there is no file 'up/three.txt'" in missing.last_action_error
    await browsing.do(f"upload_file({field}, ['up/one.txt', 'up/two.txt'])\nclick({send})")
    sent = await browsing.js("document.body.textContent")
    assert "one.txt" in sent
    assert "\ntwo\n" in sent.replace("\r", "")


@pytest.mark.parametrize(
    ("selector", "call", "why"),
    [
        ("#covered", "click({})", "is covered by ["),
        ("[style='display:none']", "click({})", "is not visible"),
        ("#b", "fill({}, 'x')", "is a <button>, with which this cannot be done"),
        ("#b", "select_option({}, 'x')", "is a <button>, with which this cannot be done"),
        ("#b", "check({})", "is a <button>, with which this cannot be done"),
        ("#b", "press({}, 'Ctrl+A')", "Keys are named as in browsers"),
        ("#holder", "focus({})", "does not take the focus"),
        ("#b", "upload_file({}, 'README')", "does not ask for a file"),
    ],
)
async def test_what_cannot_be_done_with_an_element_is_told(
    browsing: Browsing, selector: str, call: str, why: str
) -> None:
    await browsing.open("clicks.html")
    seen = await browsing.attempt(call.format(await browsing.bid(selector)))
    assert why in seen.last_action_error
    assert "Clicks" in seen.title


@pytest.mark.parametrize("kind", ["true", "plaintext-only"])
async def test_an_editor_and_a_slider_are_filled(browsing: Browsing, kind: str) -> None:
    await browsing.open("index.html")
    editor, slider = f"<div contenteditable={kind}></div>", "<input type=range min=0 max=10 value=3>"
    await browsing.js(f"document.body.innerHTML = {json.dumps(editor + slider)}")
    seen = await browsing.do("noop()")
    assert "generic '', editable" in seen.text
    boxes = [await browsing.bid("div"), await browsing.bid("input")]
    await browsing.do(f"fill({boxes[0]}, 'Dear Ann')\nfill({boxes[1]}, '7')")
    values = "document.querySelector('div').textContent + document.querySelector('input').value"
    assert await browsing.js(values) == "Dear Ann7"


async def test_an_option_of_an_aria_listbox_is_selected_by_its_label(browsing: Browsing) -> None:
    await browsing.open("forms.html")
    city = await browsing.bid("[role=listbox]")
    assert (await browsing.attempt(f"select_option({city}, 'New  York')")).last_action_error == ""
    assert "chosen:New York" in (await browsing.attempt("noop()")).text
    wrong = await browsing.attempt(f"select_option({city}, 'Rome')")
    assert "has no option 'Rome'" in wrong.last_action_error


async def test_an_option_is_selected_by_its_label_before_another_ones_value(browsing: Browsing) -> None:
    await browsing.open("data:text/html,<select><option>-<option value=2>1<option value=1>2<option disabled>3</select>")
    select = await browsing.bid("select")
    for wanted, value in (("1", "2"), ("2", "1")):
        await browsing.do(f"select_option({select}, {wanted!r})")
        assert await browsing.js("document.querySelector('select').value") == value
    seen = await browsing.attempt(f"select_option({select}, '3')")
    assert f"this option of [{select[1:-1]}] is disabled" in seen.last_action_error


async def test_an_option_of_a_group_is_named_and_selected_with_the_group_s_label(browsing: Browsing) -> None:
    groups = "<optgroup label=Shirts><option value=1>Small</optgroup><optgroup label=Shoes disabled><option>Large"
    seen = await browsing.open(f"data:text/html,<select><option>Any{groups}</optgroup><option value=3>Small</select>")
    assert re.findall(r"option ('.*)", seen.content) == [
        *("'Any', selected", "'Shirts: Small'", "'Shoes: Large', disabled", "'Small'"),
    ]
    await browsing.do(f"select_option({await browsing.bid('select')}, 'Shirts: Small')")
    assert await browsing.js("document.querySelector('select').value") == "1"


async def test_of_a_long_selection_the_options_left_out_are_counted_and_can_be_selected(browsing: Browsing) -> None:
    options = "".join(f"<option>Town {number}" for number in range(250))
    seen = await browsing.open(f"data:text/html,<select>{options}</select>")
    assert "combobox '' value='Town 0', 150 more options" in seen.content
    assert "option 'Town 100'" not in seen.content
    await browsing.do(f"select_option({await browsing.bid('select')}, 'Town 200')")
    assert await browsing.js("document.querySelector('select').value") == "Town 200"


async def test_disabled_elements_wrong_options_and_wrong_dates_are_told(browsing: Browsing) -> None:
    await browsing.open("forms.html")
    refund = await browsing.attempt(f"click({await browsing.bid('[disabled]')})")
    assert "is disabled" in refund.last_action_error
    options = await browsing.attempt(f"select_option({await browsing.bid('[name=colour]')}, 'Pink')")
    assert "there are Red, Green, Blue" in options.last_action_error
    options = await browsing.attempt(f"select_option({await browsing.bid('[name=colour]')}, ['Red', 'Green'])")
    assert "takes only one option" in options.last_action_error
    options = await browsing.attempt(f"click({await browsing.bid('[value=g]')})")
    assert f"is an option of [{(await browsing.bid('[name=colour]'))[1:-1]}]" in options.last_action_error
    day = await browsing.attempt(f"fill({await browsing.bid('[name=day]')}, 'tomorrow')")
    assert "Dates are written as 2026-12-31" in day.last_action_error
    await browsing.do(f"fill({await browsing.bid('[name=day]')}, '2026-02-03', True)")
    assert await browsing.js("document.forms[0].day.value") == "2026-02-03"


async def test_a_bid_that_is_not_there_is_told(browsing: Browsing) -> None:
    await browsing.open("index.html")
    assert "there is no element [9999]" in (await browsing.attempt("click('9999')")).last_action_error
    assert "not a bid" in (await browsing.attempt("click('the button')")).last_action_error


async def test_elements_in_frames_of_both_origins_and_in_shadow_roots(browsing: Browsing) -> None:
    seen = await browsing.open("frames.html", view="full")
    fields = [line.split("]")[0].strip("\t [") for line in seen.content.splitlines() if "textbox 'Words'" in line]
    buttons = [line.split("]")[0].strip("\t [") for line in seen.content.splitlines() if "button 'Say'" in line]
    assert len(fields) == len(buttons) == 3
    for number, (field, button) in enumerate(zip(fields, buttons, strict=True)):
        seen = await browsing.do(f"fill({field!r}, 'word{number}')\nclick({button!r})", view="full")
        assert f"You said word{number}" in seen.content
    seen = await browsing.open("shadow.html")
    button = next(line.split("]")[0].strip("\t [") for line in seen.content.splitlines() if "'Hidden deep'" in line)
    field = next(line.split("]")[0].strip("\t [") for line in seen.content.splitlines() if "textbox 'Inner'" in line)
    await browsing.do(f"fill({field!r}, 'x')\nclick({button!r})")
    assert await browsing.said() == "found x"

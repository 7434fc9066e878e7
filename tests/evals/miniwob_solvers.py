"""Solvers for kinds of MiniWoB++ tasks: they read the goal and the page's text, as agents do, and give calls.

A solver gives the calls for one step, and is sent the page's text after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator

Steps = Generator[str, str]
Solver = Callable[[str, str], Steps]


def bids(page: str, role: str, name: str | None = None) -> list[str]:
    """The bids of the elements of a role, in the page's order; with a name only of those that have it."""
    found = re.findall(rf"^\s*\[(\w+)\] {role} '((?:[^'\\]|\\.)*)'", page, re.MULTILINE)
    return [bid for bid, called in found if name is None or called.strip() == name]


def bid(page: str, role: str, name: str | None = None) -> str:
    return bids(page, role, name)[0]


def click(page: str, role: str, name: str | None = None) -> str:
    return f"click('{bid(page, role, name)}')"


def quoted(goal: str) -> list[str]:
    return re.findall(r'"([^"]*)"', goal)


def texts(page: str) -> list[str]:
    return re.findall(r"^\s*StaticText '((?:[^'\\]|\\.)*)'", page, re.MULTILINE)


def only_button(_goal: str, page: str) -> Steps:
    yield click(page, "button")


def named_button(goal: str, page: str) -> Steps:
    yield click(page, "button", quoted(goal)[0])


def button_one(_goal: str, page: str) -> Steps:
    yield click(page, "button", "ONE")


def buttons_in_turn(_goal: str, page: str) -> Steps:
    yield f"{click(page, 'button', 'ONE')}\n{click(page, 'button', 'TWO')}"


def close_dialog(_goal: str, page: str) -> Steps:
    yield click(page, "button", "Close")


def button_of_dialog(goal: str, page: str) -> Steps:
    wanted = quoted(goal)[0]
    yield click(page, "button", "Close" if wanted == "x" else wanted)


def option(goal: str, page: str) -> Steps:
    wanted = re.fullmatch(r"Select (.*) and click Submit\.", goal)
    assert wanted
    yield f"{click(page, 'radio', wanted[1])}\n{click(page, 'button', 'Submit')}"


def checkboxes(goal: str, page: str) -> Steps:
    wanted = re.fullmatch(r"Select (.*) and click Submit\.", goal)
    assert wanted
    names = [] if wanted[1] == "nothing" else wanted[1].split(", ")
    calls = [f"check('{bid(page, 'checkbox', name)}')" for name in names]
    yield "\n".join([*calls, click(page, "button", "Submit")])


def from_list(goal: str, page: str) -> Steps:
    wanted = re.fullmatch(r"Select (.*) from the (?:scroll )?list and click Submit\.", goal)
    assert wanted
    names = wanted[1].split(", ")
    box = bid(page, "(?:combobox|listbox)")
    yield f"select_option('{box}', {names!r})\n{click(page, 'button', 'Submit')}"


def tab(goal: str, page: str) -> Steps:
    yield click(page, "link", goal.removeprefix("Click on ").rstrip("."))


def collapsible(_goal: str, page: str) -> Steps:
    page = yield click(page, "tab")
    yield click(page, "button", "Submit")


def text(goal: str, page: str) -> Steps:
    yield f"fill('{bid(page, 'textbox')}', {quoted(goal)[0]!r})\n{click(page, 'button', 'Submit')}"


def cased_text(goal: str, page: str) -> Steps:
    wanted = quoted(goal)[0]
    wanted = wanted.upper() if "upper case" in goal else wanted.lower()
    yield f"fill('{bid(page, 'textbox')}', {wanted!r})\n{click(page, 'button', 'Submit')}"


def password_twice(goal: str, page: str) -> Steps:
    fields = "\n".join(f"fill('{one}', {quoted(goal)[0]!r})" for one in bids(page, "textbox"))
    yield f"{fields}\n{click(page, 'button', 'Submit')}"


def login(goal: str, page: str) -> Steps:
    pairs = zip(bids(page, "textbox"), quoted(goal), strict=True)
    yield "\n".join([*(f"fill('{one}', {value!r})" for one, value in pairs), click(page, "button", "Login")])


def focus(_goal: str, page: str) -> Steps:
    yield f"focus('{bid(page, 'textbox')}')"


def focus_nth(goal: str, page: str) -> Steps:
    nth = int(re.findall(r"\d", goal)[0])
    yield f"click('{bids(page, 'textbox')[nth - 1]}')"


def sum_(_goal: str, page: str) -> Steps:
    problem = next(one for one in texts(page) if one.endswith("="))
    first, sign, second, _ = problem.split()
    a, b = int(first), int(second)
    result = {"+": a + b, "-": a - b, "x": a * b}[sign]
    yield f"fill('{bid(page, 'textbox')}', '{result}')\n{click(page, 'button', 'Submit')}"


def equation(_goal: str, page: str) -> Steps:
    first, sign, second, _, value = next(one for one in texts(page) if " = " in one).split()
    total = int(value)
    if sign == "+":
        result = total - int(second if first == "x" else first)
    else:
        result = total + int(second) if first == "x" else int(first) - total
    yield f"fill('{bid(page, 'textbox')}', '{result}')\n{click(page, 'button', 'Submit')}"


def date(goal: str, page: str) -> Steps:
    found = re.search(r"(\d\d)/(\d\d)/(\d{4})", goal)
    assert found
    month, day, year = found.groups()
    yield f"fill('{bid(page, 'Date')}', '{year}-{month}-{day}')\n{click(page, 'button', 'Submit')}"


def time(goal: str, page: str) -> Steps:
    found = re.search(r"(\d+):(\d\d) ([AP])M", goal)
    assert found
    hour = int(found[1]) % 12 + 12 * (found[3] == "P")
    yield f"fill('{bid(page, 'InputTime')}', '{hour:02}:{found[2]}')\n{click(page, 'button', 'Submit')}"


def cheapest(goal: str, page: str) -> Steps:
    prices = [int(one) for one in re.findall(r"button 'Book for \$(\d+)'", page)]
    if "cost" in goal:
        price = min(prices) if "cheapest" in goal else max(prices)
        yield click(page, "button", f"Book for ${price}")
        return
    spans = [60 * int(h) + int(m) for h, m in re.findall(r"'(\d+)h (\d+)m'", page)]
    best = (min if "shortest" in goal else max)(range(len(spans)), key=spans.__getitem__)
    yield f"click('{bids(page, 'button')[best]}')"


def guess(_goal: str, page: str) -> Steps:
    low, high = 0, 9
    while True:
        number = (low + high) // 2
        page = yield f"fill('{bid(page, 'spinbutton')}', '{number}')\n{click(page, 'button', 'Submit')}"
        if "higher" in page:
            low = number + 1
        else:
            high = number - 1


def parity(_goal: str, page: str) -> Steps:
    numbers = [int(one) for one in texts(page) if re.fullmatch(r"-?\d+", one)]
    pairs = zip(numbers, bids(page, "button", "Odd"), bids(page, "button", "Even"), strict=True)
    calls = [f"click('{odd if number % 2 else even}')" for number, odd, even in pairs]
    yield "\n".join([*calls, click(page, "button", "Submit")])


def cell(goal: str, page: str) -> Steps:
    wanted = re.fullmatch(r"Enter the value of (.*) into the text field and press Submit\.", goal)
    assert wanted
    cells = re.findall(r"\] cell '(.*?)'", page)
    value = cells[cells.index(wanted[1]) + 1]
    yield f"fill('{bid(page, 'textbox')}', {value!r})\n{click(page, 'button', 'Submit')}"


def nth_word(goal: str, page: str) -> Steps:
    nth = int(re.findall(r"\d+", goal)[0])
    word = re.findall(r"\w+", texts(page)[0])[nth - 1]
    yield f"fill('{bid(page, 'textbox')}', {word!r})\n{click(page, 'button', 'Submit')}"


def radio_and_number(goal: str, page: str) -> Steps:
    found = re.fullmatch(r'Check the (\d)\w+ radio button and enter the number "(.*)" into the (\d)\w+ textbox\.', goal)
    assert found
    radio, box = bids(page, "radio")[int(found[1]) - 1], bids(page, "textbox")[int(found[3]) - 1]
    yield f"click('{radio}')\nfill('{box}', '{found[2]}')\n{click(page, 'button', 'Submit')}"


def dropdown_and_button(goal: str, page: str) -> Steps:
    found = re.fullmatch(r'Choose (.*) from the dropdown, then click the button labeled "(.*)"\.', goal)
    assert found
    yield f"select_option('{bid(page, 'combobox')}', '{found[1]}')\n{click(page, 'button', found[2])}"


def letters(_goal: str, page: str) -> Steps:
    word = "".join(one for one in texts(page) if one != "Submit")
    yield f"fill('{bid(page, 'textbox')}', {word!r})\n{click(page, 'button', 'Submit')}"


SOLVERS: dict[str, Solver] = {
    "click-test": only_button,
    "click-test-2": button_one,
    "click-test-transfer": button_one,
    "click-button": named_button,
    "unicode-test": named_button,
    "click-button-sequence": buttons_in_turn,
    "click-dialog": close_dialog,
    "click-dialog-2": button_of_dialog,
    "click-option": option,
    "click-checkboxes": checkboxes,
    "click-checkboxes-large": checkboxes,
    "click-checkboxes-transfer": checkboxes,
    "choose-list": from_list,
    "click-scroll-list": from_list,
    "click-tab": tab,
    "click-collapsible": collapsible,
    "click-collapsible-nodelay": collapsible,
    "enter-text": text,
    "enter-text-dynamic": text,
    "enter-text-2": cased_text,
    "enter-password": password_twice,
    "login-user": login,
    "focus-text": focus,
    "focus-text-2": focus_nth,
    "simple-arithmetic": sum_,
    "simple-algebra": equation,
    "enter-date": date,
    "enter-time": time,
    "buy-ticket": cheapest,
    "guess-number": guess,
    "odd-or-even": parity,
    "read-table": cell,
    "find-word": nth_word,
    "form-sequence-2": radio_and_number,
    "form-sequence-3": dropdown_and_button,
    "text-transform": letters,
}

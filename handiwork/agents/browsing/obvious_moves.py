"""The obvious moves for a goal on a page: act on the elements that the goal names, in the goal's order.

A small model is asked only if no move is obvious.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from handiwork.agents.browsing.choices import ElementChoice, Page, offered
from handiwork.agents.browsing.described_elements import DATE, added, extreme, nth, of_role, shown_month, towards_date

Key = tuple[str, ...]
"""The identity of a choice, which lasts when the page gives its elements new bids."""

_QUOTED = re.compile(r'"([^"]+)"|(?<!\w)\'([^\']+)\'(?!\w)')
_TYPES = re.compile(r"\b(enter|type|put|fill|write|search for|input|use|text|username|password|with)\b", re.IGNORECASE)
_CLICKS = re.compile(
    r"\b(click|press|hit|open|expand|select|choose|pick|check|tick|tab|link|button|find)\b", re.IGNORECASE
)
_WRITES = re.compile(r"\b(enter|type|fill|write|copy|paste|search|input|username|textbox|text)\b", re.IGNORECASE)
_COPIES = re.compile(r"\bcopy\b", re.IGNORECASE)
_VAGUE = re.compile(r"\b(similar|related|like|synonym)", re.IGNORECASE)
_LAST = re.compile(r"(,|\band|\bthen)\s+(then\s+)?(click|press|hit|push)\b", re.IGNORECASE)
_OPENS = re.compile(r"\b(expand|unfold|section|collaps\w+)\b", re.IGNORECASE)
_LOWER = re.compile(r"\blower ?case\b", re.IGNORECASE)
_UPPER = re.compile(r"\bupper ?case|capital letters\b", re.IGNORECASE)
_NOTHING = re.compile(r"\bnothing\b", re.IGNORECASE)
_ENDS = frozenset(
    {"submit", "ok", "send", "search", "log in", "login", "save", "done", "apply", "continue", "next", "book", "order"}
    | {"go", "sign in"}
)
_LEAVES = frozenset({"back", "cancel", "close", "reset", "clear", "help"})
_SUGGESTIONS = frozenset({"option", "menuitem", "listitem", "generic"})
_COMMON = frozenset(
    {"a", "an", "and", "at", "by", "for", "in", "is", "it", "of", "on", "or", "the", "to", "with", "text"}
)
_ALL = re.compile(r"\b(both|all|each|every)\b", re.IGNORECASE)
_TIME = re.compile(r"\b(\d{1,2}):(\d{2}) ?([AP]M)?\b", re.IGNORECASE)
_ORDINAL = re.compile(r"\b(\d+)(?:st|nd|rd|th)\b")


@dataclass(frozen=True, slots=True)
class Move:
    """A choice with its text; ``at`` is its position in the goal."""

    at: int
    choice: ElementChoice
    text: str = ""


def key(choice: ElementChoice, text: str = "") -> Key:
    """Return a choice's key: by its name, or by its bid if it has no name."""
    return (choice.kind, choice.role, choice.name or choice.bid, text)


def quoted(goal: str) -> list[str]:
    """Return the goal's quoted texts."""
    return [one or other for one, other in _QUOTED.findall(goal)]


def held_back(goal: str, page: Page, done: Collection[Key]) -> list[ElementChoice]:
    """Return the submit buttons to hold back, because a step that the goal wants first is missing."""
    can = offered(page)
    kinds = [kind for kind, *_ in done]
    ticks = [choice for choice in can if choice.kind == "check" and choice.role == "checkbox"]
    begins = not kinds and _LAST.search(goal) and not _NOTHING.search(goal)
    vague = _VAGUE.search(goal) and ticks and kinds.count("check") <= goal.count(",")
    if begins or vague or towards_date(goal, page) is not None:
        return [choice for choice in can if _sends(choice)]
    texts = [text for _, text in _texts(goal)]
    complete = texts and kinds.count("fill") >= len(texts)
    return _unfilled(can) if _WRITES.search(goal) and not complete else []


def _unfilled(can: Sequence[ElementChoice]) -> list[ElementChoice]:
    """Return the submit buttons with an empty box between the button and the one before it."""
    found: list[ElementChoice] = []
    empty = False
    for choice in can:
        if choice.kind == "fill":
            empty = empty or not choice.value
        elif choice.kind == "click" and (choice.role == "button" or _sends(choice)):
            found += [choice] if empty and _sends(choice) else []
            empty = False
    return found


def next_move(goal: str, page: Page, done: Collection[Key], vain: Collection[Key]) -> Move | None:
    """Return the first move that the goal names, the page offers, and is not ``done``; None without one.

    Return None also if the goal's words fit several elements equally well. ``vain`` holds the moves tried on this
    very page.
    """
    back = held_back(goal, page, done)
    can = [choice for choice in offered(page) if choice not in back]
    if (suggested := _suggested(goal, can, done)) is not None:
        return Move(0, suggested)
    if len(can) == 1 and not done and can[0].kind == "click" and "?" not in goal:
        return Move(0, can[0])
    every = [*_fills(goal, can), *_named(goal, can), *_placed(goal, page, can)]
    moves = [move for move in every if key(move.choice, move.text) not in done]
    moves.sort(key=lambda move: move.at)
    if len({move.choice.bid for move in moves if move.at == moves[0].at}) == 1:
        return moves[0]
    if not moves and not done and (one := of_role(quoted(goal), can)) is not None:
        return Move(0, one)
    paged = any(known[0] == "calls" and "'Page" in known[2] for known in vain)
    date = towards_date(goal, page, paged=paged)
    best = extreme(goal, page) if shown_month(page) is None else None
    for found in (_copied(goal, can), date, best, _revealing(goal, can, done)):
        if found is not None and key(*found) not in vain:
            return Move(0, *found)
    return None if back or moves else _end(goal, can, done)


def missing(goal: str, done: Collection[Key]) -> list[str]:
    """Return the goal's quoted texts that no action has used yet."""
    used = {part.lower() for known in done for part in known}
    return [text for text in quoted(goal) if text.lower() not in used]


def _sends(choice: ElementChoice) -> bool:
    return choice.kind == "click" and choice.role != "link" and choice.name.lower().rstrip("!.") in _ENDS


def _fills(goal: str, can: Sequence[ElementChoice]) -> list[Move]:
    """Return the moves that fill boxes with their texts from the goal."""
    boxes = [choice for choice in can if choice.kind == "fill"]
    texts = _texts(goal)
    moves: list[Move] = []
    for box in boxes:
        if (pair := _pair(goal, box)) is not None:
            moves.append(Move(pair[0], box, pair[1]))
        elif box.role.lower() == "date" and (date := DATE.search(goal)):
            moves.append(Move(date.start(), box, f"{date[3]}-{date[1]:0>2}-{date[2]:0>2}"))
        elif box.role.lower() == "inputtime" and (time := _TIME.search(goal)):
            moves.append(Move(time.start(), box, _clock(time)))
        elif (named := _text_for(goal, box, texts)) is not None:
            moves.append(Move(named[0], box, named[1]))
        elif texts and (len(boxes) == 1 or (len(texts) == 1 and _ALL.search(goal))):
            moves.append(Move(texts[0][0], box, texts[0][1]))
        elif len(boxes) == 1 and _WRITES.search(goal) and (date := DATE.search(goal)):
            moves.append(Move(date.start(), box, date[0]))
    return [move for move in moves if move.choice.value != move.text]


def _placed(goal: str, page: Page, can: Sequence[ElementChoice]) -> list[Move]:
    """Return the moves that the goal names by position: the nth box with the text before it, the + beside a name."""
    moves = [Move(at, choice) for at, choice in added(goal, page) if choice in can]
    for at, choice in nth(goal, can):
        before = [text for place, text in _texts(goal) if place < at] if choice.kind == "fill" else []
        text = before[-1] if before else ""
        if choice.kind != "fill" or text != choice.value or not text:
            moves.append(Move(at, choice, text))
    return moves


def _clock(time: re.Match[str]) -> str:
    hour = int(time[1]) % 12 + 12 * (time[3].upper() == "PM") if time[3] else int(time[1])
    return f"{hour:02}:{time[2]}"


def _texts(goal: str) -> list[tuple[int, str]]:
    """Return the quoted texts after a verb of typing, with their positions."""
    found: list[tuple[int, str]] = []
    for match in _QUOTED.finditer(goal):
        before = _QUOTED.sub(lambda said: " " * len(said[0]), goal[: match.start()])
        if _last(_TYPES, before) > _last(_CLICKS, before):
            text = match[1] or match[2]
            text = text.lower() if _LOWER.search(goal) else text.upper() if _UPPER.search(goal) else text
            found.append((match.start(), text))
    return found


def _last(pattern: re.Pattern[str], text: str) -> int:
    return max((match.start() for match in pattern.finditer(text)), default=-1)


def _text_for(goal: str, box: ElementChoice, texts: list[tuple[int, str]]) -> tuple[int, str] | None:
    """Return the text that follows the box's name in the goal, with its position."""
    for name in box.names:
        if (place := _mention(goal, name.rstrip(":* "))) is not None:
            after = [found for found in texts if found[0] > place]
            if after:
                return after[0]
    return None


def _pair(goal: str, box: ElementChoice) -> tuple[int, str] | None:
    """Return the goal's text after the box's name and a colon, up to the next name with a colon or the clause's end."""
    label = box.name.rstrip(":* ")
    if not label:
        return None
    said = re.search(rf"\b{re.escape(label)}: ?([^\s\"'].*?)(?= \w+:|[.;]| on \d|$)", goal, re.IGNORECASE)
    if said is None and label.lower() in ("to", "from"):  # a person or a place
        said = re.search(rf"\b{label.lower()} ([A-Z][\w-]*(?: [A-Z][\w-]*)*)", goal)
    if said is None or box.value.lower().startswith(said[1].lower()):
        return None
    return said.start(), said[1]


def _named(goal: str, can: Sequence[ElementChoice]) -> list[Move]:
    """Return the moves that click, tick or select an element named in the goal."""
    moves: list[Move] = []
    goal = DATE.sub(lambda date: " " * len(date[0]), goal)  # the numbers of a date are no names
    for choice in can:
        places = [place for name in choice.names if (place := _mention(goal, name)) is not None]
        match choice.kind:
            case "select":
                moves += _options(goal, choice)
            case "click" | "check" | "hover" if places:
                # In a menu path `A > B` the upper item is only hovered over.
                passed = goal[min(places) + len(choice.name) :].lstrip().startswith(">")
                if (choice.kind == "hover") == (choice.role == "menuitem" and passed):
                    moves.append(Move(_turn(goal, min(places)), choice))
            case _:
                pass
    quotes = {text.lower() for text in quoted(goal)}
    exact = [move for move in moves if any(name.lower() in quotes for name in move.choice.names)]
    return moves if not exact else [move for move in moves if move in exact or move.choice.role == "button"]


def _turn(goal: str, place: int) -> int:
    """Return the sort position of a name: one after "from" or "by" identifies an item, so it comes first."""
    return place - len(goal) if re.search(r"\b(from|by)\s+$", goal[:place]) else place


def _options(goal: str, choice: ElementChoice) -> list[Move]:
    named = [(place, option) for option in choice.options if (place := _mention(goal, option)) is not None]
    longest = max(named, key=lambda found: len(found[1]), default=None)
    return [] if longest is None or longest[1] == choice.value else [Move(longest[0], choice, longest[1])]


def _mention(goal: str, name: str) -> int | None:
    """Return the position of the name as whole words in the goal; None if it is not there."""
    if not name or name.lower() in _COMMON:
        return None
    pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    found = pattern.search(goal) or re.compile(pattern.pattern, re.IGNORECASE).search(goal)
    return None if found is None else found.start()


def _copied(goal: str, can: Sequence[ElementChoice]) -> tuple[ElementChoice, str] | None:
    """Return the empty box to paste into, and the bid of the full box that the goal wants copied."""
    boxes = [choice for choice in can if choice.kind == "fill"]
    full, empty = [box for box in boxes if box.value], [box for box in boxes if not box.value]
    if not _COPIES.search(goal) or not full or len(empty) != 1:
        return None
    number = _ORDINAL.search(goal)
    source = full[min(int(number[1]) if number else 1, len(full)) - 1]
    return replace(empty[0], kind="paste"), source.bid


def _revealing(goal: str, can: Sequence[ElementChoice], done: Collection[Key]) -> tuple[ElementChoice, str] | None:
    """Return the next tab, menu or closed section that may contain an element the goal names and the page lacks."""
    closed = [choice for choice in can if choice.kind == "click" and choice.closed and key(choice) not in done]
    if closed and (_OPENS.search(goal) or missing(goal, done)):
        return closed[0], ""
    if not missing(goal, done):
        return None
    hidden = (choice for choice in can if choice.kind == "hover" or (choice.kind == "click" and choice.role == "tab"))
    return next(((choice, "") for choice in hidden if key(choice) not in done), None)


def _suggested(goal: str, can: Sequence[ElementChoice], done: Collection[Key]) -> ElementChoice | None:
    """Return the suggestion of a box that was just filled: the one with the words of the goal, else the first."""
    *_, (kind, _, _, text) = [("", "", "", ""), *done]
    if kind != "fill" or not text:
        return None
    found = [c for c in can if c.kind == "click" and c.role in _SUGGESTIONS and text.lower() in c.name.lower()]
    fitting = [choice for choice in found if all(word.lower() in choice.name.lower() for word in quoted(goal))]
    same_case = [choice for choice in found if text in choice.name]
    return next(iter([*fitting, *same_case, *found]), None)


def _end(goal: str, can: Sequence[ElementChoice], done: Collection[Key]) -> Move | None:
    """Return the button that sends a form, once the form has input and no box is empty."""
    if not any(kind in ("fill", "check", "select", "calls") for kind, *_ in done) or missing(goal, done):
        return None
    if any(choice.kind == "fill" and not choice.value for choice in can):
        return None
    buttons = [choice for choice in can if choice.kind == "click" and (choice.role == "button" or _sends(choice))]
    others = [choice for choice in buttons if choice.name.lower() not in _LEAVES]
    ends = [choice for choice in buttons if _sends(choice)] or others
    return Move(0, ends[0]) if len(ends) == 1 and key(ends[0]) not in done else None

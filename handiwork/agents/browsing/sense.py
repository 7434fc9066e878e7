"""What anybody would do on a page for a goal, without thinking: what the goal names is done in the goal's order.

A small model is only asked where this does not say what comes next.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from handiwork.agents.browsing.choices import Choice

_QUOTED = re.compile(r'"([^"]+)"|(?<![\w])\'([^\']+)\'(?![\w])')
_TYPES = re.compile(r"\b(enter|type|fill|write|search for|input|use|text|username|password|with)\b", re.IGNORECASE)
_CLICKS = re.compile(
    r"\b(click|press|hit|open|expand|select|choose|pick|check|tick|tab|link|button|find)\b", re.IGNORECASE
)
_ENDS = ("submit", "ok", "send", "search", "log in", "login", "save", "done", "apply", "continue", "next")
_COMMON = frozenset({"a", "an", "and", "at", "by", "for", "in", "is", "it", "of", "on", "or", "the", "to", "with", "text"})
_ALL = re.compile(r"\b(both|all|each|every)\b", re.IGNORECASE)
_DATE = re.compile(r"\b(\d{1,2})/(\d{1,2})/(\d{4})\b")
_TIME = re.compile(r"\b(\d{1,2}):(\d{2}) ?([AP]M)?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Move:
    """A choice with the text that goes with it; ``at`` is where the goal speaks of it."""

    at: int
    choice: Choice
    text: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """What it is known by, also after the page gave its elements other bids."""
        return key(self.choice, self.text)


def key(choice: Choice, text: str = "") -> tuple[str, ...]:
    """Return what a choice is known by, also after the page gave its elements other bids."""
    return (choice.kind, choice.role, choice.names[0] if choice.names else choice.bid, text)


def quoted(goal: str) -> list[str]:
    """Return the goal's quoted texts."""
    return [one or other for one, other in _QUOTED.findall(goal)]


def next_move(goal: str, offered: Sequence[Choice], done: Collection[tuple[str, ...]]) -> Move | None:
    """Return the first thing that the goal names, the page has, and was not done; None where there is none.

    Where the goal's words fit several things alike, nothing is certain, and None is returned.
    """
    moves = sorted(
        (move for move in [*_fills(goal, offered), *_named(goal, offered)] if move.key not in done),
        key=lambda move: move.at,
    )
    if not moves:
        return _end(offered, done)
    first = moves[0]
    rivals = {move.choice.bid for move in moves if move.at == first.at}
    return first if len(rivals) == 1 else None


def _fills(goal: str, offered: Sequence[Choice]) -> list[Move]:
    """Return the boxes with the texts that the goal has for them."""
    boxes = [choice for choice in offered if choice.kind == "fill"]
    texts = _texts(goal)
    moves: list[Move] = []
    for box in boxes:
        if box.role.lower() == "date" and (date := _DATE.search(goal)):
            moves.append(Move(date.start(), box, f"{date[3]}-{date[1]:0>2}-{date[2]:0>2}"))
        elif box.role.lower() == "inputtime" and (time := _TIME.search(goal)):
            moves.append(Move(time.start(), box, _clock(time)))
        elif (named := _text_for(goal, box, texts)) is not None:
            moves.append(Move(named[0], box, named[1]))
        elif texts and (len(boxes) == 1 or (len(texts) == 1 and _ALL.search(goal))):
            moves.append(Move(texts[0][0], box, texts[0][1]))
    return [move for move in moves if move.choice.value != move.text]


def _clock(time: re.Match[str]) -> str:
    hour = int(time[1]) % 12 + 12 * (time[3].upper() == "PM") if time[3] else int(time[1])
    return f"{hour:02}:{time[2]}"


def _texts(goal: str) -> list[tuple[int, str]]:
    """Return the quoted texts that are to be typed, with their places: those whose verb is one of typing."""
    found: list[tuple[int, str]] = []
    for match in _QUOTED.finditer(goal):
        before = _QUOTED.sub(lambda said: " " * len(said[0]), goal[: match.start()])
        typing, clicking = _last(_TYPES, before), _last(_CLICKS, before)
        if typing > clicking:
            found.append((match.start(), match[1] or match[2]))
    return found


def _last(pattern: re.Pattern[str], text: str) -> int:
    return max((match.start() for match in pattern.finditer(text)), default=-1)


def _text_for(goal: str, box: Choice, texts: list[tuple[int, str]]) -> tuple[int, str] | None:
    """Return the text that follows the box's name in the goal."""
    for name in box.names:
        if (place := _mention(goal, name.rstrip(":* "))) is not None:
            after = [found for found in texts if found[0] > place]
            if after:
                return after[0]
    return None


def _named(goal: str, offered: Sequence[Choice]) -> list[Move]:
    """Return what the goal names of all that can be clicked, ticked or selected."""
    moves: list[Move] = []
    for choice in offered:
        if choice.kind == "select":
            moves += _options(goal, choice)
        elif choice.kind in ("click", "check"):
            places = [place for name in choice.names if (place := _mention(goal, name)) is not None]
            moves += [Move(min(places), choice)] if places else []
    quotes = {text.lower() for text in quoted(goal)}
    exact = [move for move in moves if any(name.lower() in quotes for name in move.choice.names)]
    return moves if not exact else [move for move in moves if move in exact or move.choice.role == "button"]


def _options(goal: str, choice: Choice) -> list[Move]:
    named = [(place, option) for option in choice.options if (place := _mention(goal, option)) is not None]
    longest = max(named, key=lambda found: len(found[1]), default=None)
    return [] if longest is None or longest[1] == choice.value else [Move(longest[0], choice, longest[1])]


def _mention(goal: str, name: str) -> int | None:
    """Return where the goal has the name, as words of its own; None where it has not."""
    if not name or name.lower() in _COMMON:
        return None
    pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    found = pattern.search(goal) or re.compile(pattern.pattern, re.IGNORECASE).search(goal)
    return None if found is None else found.start()


def _end(offered: Sequence[Choice], done: Collection[tuple[str, ...]]) -> Move | None:
    """Return the button that sends a form, once something is in it and no box is empty."""
    if not any(kind in ("fill", "check", "select") for kind, *_ in done):
        return None
    if any(choice.kind == "fill" and not choice.value for choice in offered):
        return None
    buttons = [choice for choice in offered if choice.kind == "click" and choice.role == "button"]
    ends = [choice for choice in buttons if choice.names and choice.names[0].lower() in _ENDS] or buttons
    return Move(0, ends[0]) if len(ends) == 1 and key(ends[0]) not in done else None

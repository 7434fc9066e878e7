"""Finds calls of the browser's actions in an agent's text. They are never run as Python."""

from __future__ import annotations

import ast
import inspect
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints

LONGEST, MOST = 100_000, 50
"""The longest text, in characters, and the most calls in it."""

_WORD = re.compile(r"(?<![\w.])([A-Za-z_]\w*)[ \t]*\(")
_PART = re.compile(r"""(?s)'''|\"""|['"()\[\]{}\n]|\\.""")
_FENCE = "```"
_BEGINNING = re.compile(r"[\s`>*-]*(?:[0-9]+[.)])?[\s`]*")  # the allowed text before a call on a line of its own
_SURROGATE = re.compile("[\ud800-\udfff]")
_FARTHEST = 1_000_000  # the largest absolute value of a number
_PAIRS = {"(": ")", "[": "]", "{": "}"}


class CallError(Exception):
    """There is no call to run; the message tells the agent why, and how to write one."""


@dataclass(frozen=True, slots=True)
class PrimitiveCall:
    """One action and its arguments, all by name; ``text`` is the agent's text."""

    name: str
    arguments: dict[str, Any]
    text: str


@dataclass(frozen=True, slots=True)
class _Candidate:
    start: int
    end: int
    name: str
    values: tuple[list[Any], dict[str, Any]] | None  # None if it cannot be parsed
    begins: bool  # whether it begins a line, with the bracket right after the name
    alone: bool  # whether the line contains nothing else


def parse_calls(text: str, actions: Mapping[str, Callable[..., Any]]) -> list[PrimitiveCall]:
    """Return the calls of ``actions`` in ``text``, in order. Raises CallError.

    An action's first parameter is not the agent's. If there are calls between code fences, only those count. A call on
    a line of its own must be valid; a call mentioned in a sentence, like ``click (the button)``, is skipped.
    """
    if len(text) > LONGEST:
        raise CallError(f"the text has {len(text)} characters; {LONGEST} are read at most")
    candidates = [each for each in _find(text) if each.name in actions or (each.alone and each.values)]
    fenced = [each for each in candidates if _is_fenced(text, each, candidates)]
    if not any(each.name in actions for each in fenced):
        fenced = []
    calls = [_check(each, text, actions) for each in fenced or candidates if each.values or each.begins]
    if len(calls) > MOST:
        raise CallError(f"there are {len(calls)} calls: write {MOST} at most at once")
    if not calls:
        raise CallError(
            "no action was found: write calls such as click('12') or fill('a5', 'some text'), one a line. "
            f"The actions are {', '.join(sorted(actions))}"
        )
    return calls


def signature(name: str, action: Callable[..., Any]) -> str:
    """Return an action's signature, such as ``scroll(delta_x: float, delta_y: float)``."""
    hints = _hints(action)
    parts = [
        f"{each.name}: {_type_name(hints[each.name])}" + ("" if each.default is each.empty else f" = {each.default!r}")
        for each in _parameters(action)
    ]
    return f"{name}({', '.join(parts)})"


def _find(text: str) -> Iterator[_Candidate]:
    """Yield everything that looks like a call, except inside another one."""
    position, count = 0, 0
    while word := _WORD.search(text, position):
        end = _closing(text, word.end() - 1)
        values = _parse_values(text[word.start() : end]) if end else None
        position = end or word.end()
        line = text.rfind("\n", 0, word.start()) + 1
        first = _BEGINNING.fullmatch(text, line, word.start()) is not None
        rest = text[position : text.find("\n", position) % (len(text) + 1)]
        begins = first and word[0] == f"{word[1]}("
        yield _Candidate(word.start(), position, word[1], values, begins, begins and not rest.strip(" \t\r`;,."))
        count += 1
        if count > 4 * MOST:
            raise CallError("there are too many brackets in the text to find the calls: write only the calls")


def _closing(text: str, start: int) -> int:
    """Return the position after the bracket that closes the one at ``start``; 0 if it is not closed."""
    waiting: list[str] = []
    quote = ""
    for part in _PART.finditer(text, start):
        mark = part[0]
        if quote:
            if mark.startswith(quote):
                quote = ""
            elif mark == "\n" and len(quote) == 1:
                return 0
        elif mark[0] in "'\"":
            # Two quotes of an empty string may stand right before another one.
            quote = mark
        elif mark in _PAIRS:
            waiting.append(_PAIRS[mark])
        elif mark in ")]}":
            if waiting.pop() != mark:
                return 0
            if not waiting:
                return part.end()
    return 0


def _parse_values(text: str) -> tuple[list[Any], dict[str, Any]] | None:
    """Return the values of a call's arguments, None if they are not plain values."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about an unknown escape, which stands for itself
            node = ast.parse(text, mode="eval").body
        if not isinstance(node, ast.Call):
            return None
        keywords = {each.arg or "**": ast.literal_eval(each.value) for each in node.keywords}
        return [ast.literal_eval(each) for each in node.args], keywords
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None


def _is_fenced(text: str, candidate: _Candidate, calls: list[_Candidate]) -> bool:
    """Return whether the fences before it, except those inside calls, leave one open."""
    fences, position = 0, 0
    for each in (*(call for call in calls if call.end <= candidate.start and call.values), candidate):
        fences += text.count(_FENCE, position, each.start)
        position = each.end
    return fences % 2 == 1 and _FENCE in text[candidate.end :]


def _check(candidate: _Candidate, text: str, actions: Mapping[str, Callable[..., Any]]) -> PrimitiveCall:
    action = actions.get(candidate.name)
    if action is None:
        raise CallError(f"there is no action {candidate.name!r}. The actions are {', '.join(sorted(actions))}")
    usage = f"The action is {signature(candidate.name, action)}"
    if candidate.values is None:
        line = text[candidate.start :].partition("\n")[0]
        raise CallError(
            f"this call cannot be read: {_cut(line)}. Text goes in quotes, quotes and brackets must be closed, and "
            f"arguments must be plain values without names or expressions. {usage}"
        )
    call_text = text[candidate.start : candidate.end]
    try:
        bound = inspect.Signature(_parameters(action)).bind(*candidate.values[0], **candidate.values[1])
    except TypeError as error:
        raise CallError(f"{_cut(call_text)}: {error}. {usage}") from None
    hints = _hints(action)
    arguments = {name: _convert(value, hints[name]) for name, value in bound.arguments.items()}
    for name, value in arguments.items():
        if not _fits(value, hints[name]):
            raise CallError(f"{_cut(call_text)}: {name} must be {_type_name(hints[name])}. {usage}")
    return PrimitiveCall(candidate.name, arguments, call_text)


def _convert(value: object, hint: Any) -> object:
    """Return a bid that was written as a number as text."""
    return str(value) if hint is str and type(value) is int and abs(value) < 1 << 62 else value


def _fits(value: Any, hint: Any) -> bool:
    match get_origin(hint), value:
        case (None, _) if hint is float:
            return type(value) in (int, float) and abs(value) <= _FARTHEST
        case (None, _) if hint is int:
            return type(value) is int and abs(value) <= _FARTHEST
        case (None, str()):
            return hint is str and not _SURROGATE.search(value)
        case (None, _):
            return type(value) is hint
        case (origin, _) if origin is Literal:
            return isinstance(value, str) and value in get_args(hint)
        case (origin, list()) if origin is list:
            return all(_fits(each, get_args(hint)[0]) for each in cast("list[Any]", value))
        case (origin, _) if origin is UnionType:
            return any(_fits(value, each) for each in get_args(hint))
        case _:
            return False


def _type_name(hint: Any) -> str:
    origin = get_origin(hint)
    if origin is Literal:
        return " or ".join(map(repr, get_args(hint)))
    if origin is list:
        return f"list of {_type_name(get_args(hint)[0])}"
    if get_args(hint):
        return " or ".join(map(_type_name, get_args(hint)))
    return {str: "text", float: "number", int: "whole number", bool: "True or False"}[hint]


@cache
def _hints(action: Callable[..., Any]) -> dict[str, Any]:
    return get_type_hints(action)


@cache
def _parameters(action: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(action).parameters.values())[1:]


def _cut(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}..."

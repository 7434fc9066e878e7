"""Strict parsing of JSON from a model or its server, so that no odd value reaches the log or the next request."""

from __future__ import annotations

import json
import math
import re
from typing import Any, cast

DEPTH = 64
"""The deepest accepted nesting: deeper values break later code that walks through them."""


_LONE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse(text: str, *, strict: bool = True) -> Any:
    """Return the value of a JSON text, with U+FFFD for every lone surrogate, which has no UTF-8.

    Unless ``strict``, strings may have line breaks and other control characters. Raises ValueError, also for NaN,
    infinity and nesting beyond DEPTH.
    """
    try:
        value = json.loads(text, strict=strict, parse_constant=_refuse_constant, parse_float=_parse_finite)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    # Few texts have that many brackets, so few values are checked.
    if text.count("[") + text.count("{") > DEPTH:
        _check_depth(value, DEPTH)
    return _replace_surrogates(value) if _ESCAPED_SURROGATE.search(text) else value


def _check_depth(value: object, remaining: int) -> None:
    if not isinstance(value, dict | list):
        return
    if remaining == 0:
        raise ValueError("the JSON is nested too deeply")
    items = cast("dict[str, object]", value).values() if isinstance(value, dict) else cast("list[object]", value)
    for item in items:
        _check_depth(item, remaining - 1)


def _replace_surrogates(value: object) -> object:
    if isinstance(value, str):
        return _LONE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_replace_surrogates(item) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        return {_LONE.sub("\ufffd", key): _replace_surrogates(item) for key, item in fields.items()}
    return value


def _refuse_constant(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON")


def _parse_finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is too large a number")
    return number

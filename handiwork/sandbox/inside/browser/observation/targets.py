"""The elements that calls would reach on the open page, described for the platform without any change to the page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..actions.calls import PrimitiveCall
from ..cdp.devtools import CDPSession, DevtoolsError
from .frames import Frame, main_frame, script
from .tree import from_accessibility

_TARGET = script("targets")
_MOST = 20
"""Calls whose elements are described; those after them have unknown ones."""

Facts = dict[str, Any]


async def targets(session: CDPSession, calls: Sequence[PrimitiveCall]) -> list[list[Facts | None]]:
    """Return for each call the facts about its elements: ``{}`` if unknown, None if there is no such element.

    A call of the keyboard has the element that has the focus now.
    """
    return [
        [await _target(session, wanted) if number < _MOST else {} for wanted in _wanted(call)]
        for number, call in enumerate(calls)
    ]


def _wanted(call: PrimitiveCall) -> list[Facts]:
    arguments = call.arguments
    if bids := [arguments[name] for name in ("bid", "from_bid", "to_bid") if name in arguments]:
        return [{"bid": bid} for bid in bids]
    points = [
        (arguments[x], arguments[y]) for x, y in (("x", "y"), ("from_x", "from_y"), ("to_x", "to_y")) if x in arguments
    ]
    if points:
        return [{"x": x, "y": y} for x, y in points]
    return [{}] if call.name.startswith("keyboard_") else []


async def _target(session: CDPSession, wanted: Facts) -> Facts | None:
    try:
        return await _facts(main_frame(session), wanted)
    except DevtoolsError:
        return {}


async def _facts(frame: Frame, wanted: Facts) -> Facts | None:
    answer, *elements = await frame.run(_TARGET, frame.prefix, wanted)
    try:
        facts = json.loads(answer)
        if facts is None:
            return None
        if "inside" in facts:
            child = await frame.child(elements[0])
            return await _facts(child, facts["inside"]) if child else {}
        nodes = await frame.session.call("Accessibility.getPartialAXTree", objectId=elements[0], fetchRelatives=False)
        node = from_accessibility(nodes["nodes"][0], "")
        return {**facts, "role": node.role, "name": node.name}
    finally:
        await frame.release()

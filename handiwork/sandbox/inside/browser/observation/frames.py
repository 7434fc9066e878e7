"""The frames of a page in any process, and scripts run in an isolated world in them, which the page cannot see."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..cdp.devtools import CDPSession, DevtoolsError

_WORLD = "handiwork"


def script(name: str) -> str:
    """Return a script of this folder as a function expression."""
    text = (Path(__file__).parent / f"{name}.js").read_text()
    return "(" + "\n".join(line for line in text.splitlines() if not line.startswith("//")) + ")"


_MARKS = script("marks")


@dataclass(frozen=True)
class Frame:
    """One document on a page. ``prefix`` starts its bids: the frame's own bid, or "" for the page itself."""

    session: CDPSession
    id: str
    prefix: str

    async def run(self, function: str, *arguments: Any) -> list[Any]:
        """Give all elements bids, then call a function, first with the result of marks.js; return its array.

        In the array, elements are returned as object ids, other values unchanged. Raises DevtoolsError.
        """
        marks = f"const page = {_MARKS}({json.dumps(self.prefix)});"
        call = f"{function}({', '.join(['page', *map(json.dumps, arguments)])})"
        world = await self.session.call("Page.createIsolatedWorld", frameId=self.id, worldName=_WORLD)
        answer = await self.session.call(
            "Runtime.evaluate",
            expression=f"{{ {marks} {call} }}",
            contextId=world["executionContextId"],
            objectGroup=self.id,
            awaitPromise=True,
        )
        if "exceptionDetails" in answer:
            raise DevtoolsError(f"a script failed: {answer['exceptionDetails']}")
        properties = await self.session.call(
            "Runtime.getProperties", objectId=answer["result"]["objectId"], ownProperties=True
        )
        values = (item["value"] for item in properties["result"] if item["enumerable"])
        return [value["value"] if "value" in value else value["objectId"] for value in values]

    async def child(self, iframe: str) -> Frame | None:
        """Return the frame in an iframe, given by its object id; None if there is none."""
        node = (await self.session.call("DOM.describeNode", objectId=iframe))["node"]
        attributes = node["attributes"]
        bids = dict(zip(attributes[::2], attributes[1::2], strict=True))
        if "frameId" not in node or "bid" not in bids:
            return None
        # If the document is missing, it belongs to another process.
        is_remote = "contentDocument" not in node
        session = await self.session.devtools.frame(self.session, node["frameId"]) if is_remote else self.session
        return Frame(session, node["frameId"], bids["bid"]) if session else None

    async def release(self) -> None:
        """Release the elements whose ids ``run`` returned."""
        await self.session.call("Runtime.releaseObjectGroup", objectGroup=self.id)


def main_frame(session: CDPSession) -> Frame:
    """Return the page's own frame."""
    return Frame(session, session.target, "")

"""The whole page from the browser's accessibility tree, frames included, whether visible in the window or not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..cdp.devtools import CDPSession, DevtoolsError
from .frames import Frame, main_frame
from .tree import PageNode, from_accessibility

_POINTERS = """((page) => {
  const found = [];
  const walk = (root, pointed) => {
    for (const element of root.children) {
      const pointer = getComputedStyle(element).cursor === "pointer";
      if (pointer && !pointed) found.push(element.getAttribute("bid"));
      if (element.shadowRoot) walk(element.shadowRoot, pointer);
      walk(element, pointer);
    }
  };
  walk(document, false);
  return [found.join(" "), ...page.frames];
})"""
"""The bids of the elements with a hand as their mouse pointer, then the iframes."""

_MEANINGLESS = {"uninteresting", "presentationalRole", "inheritsPresentation", "emptyAlt"}
"""The browser's reasons to ignore nodes that are nevertheless visible."""


@dataclass
class _Snapshot:
    """One process's nodes, by their backend ids: bids, and which of them react to a click."""

    bids: dict[int, str] = field(default_factory=dict[int, str])
    clickable: set[int] = field(default_factory=set[int])


@dataclass
class _Document:
    """A frame whose elements have their bids, and the frames in it. The tree is added later."""

    frame: Frame
    pointers: set[str]
    inside: list[_Document]

    def all(self) -> Iterator[_Document]:
        yield self
        for document in self.inside:
            yield from document.all()


async def full(session: CDPSession) -> PageNode:
    """Return the whole page. Raises DevtoolsError."""
    # All bids first: one snapshot contains those of all frames that share a process.
    page = await _document(main_frame(session))
    documents = list(page.all())
    sessions = list(dict.fromkeys(document.frame.session for document in documents))
    trees, snapshots = await asyncio.gather(
        asyncio.gather(*(_accessibility_nodes(document.frame) for document in documents)),
        asyncio.gather(*map(_snapshot, sessions)),
    )
    session_snapshots = dict(zip(sessions, snapshots, strict=True))
    roots: dict[str, PageNode] = {}
    # From the inside outwards, so that a frame's own tree exists when the one around it is built.
    for document, nodes in reversed(list(zip(documents, trees, strict=True))):
        frame = document.frame
        roots[frame.prefix] = _tree(nodes, session_snapshots[frame.session], document.pointers, roots)
    return roots[""]


async def _document(frame: Frame) -> _Document:
    pointers, *iframes = await frame.run(_POINTERS)
    inside = await asyncio.gather(*(_inner(frame, iframe) for iframe in iframes))
    await frame.release()
    return _Document(frame, set(pointers.split()), [document for document in inside if document])


async def _inner(frame: Frame, iframe: str) -> _Document | None:
    try:
        child = await frame.child(iframe)
        return await _document(child) if child else None
    except DevtoolsError:
        # The frame is gone or loading: the page around it is still useful.
        return None


async def _accessibility_nodes(frame: Frame) -> list[dict[str, Any]]:
    return (await frame.session.call("Accessibility.getFullAXTree", frameId=frame.id))["nodes"]


async def _snapshot(session: CDPSession) -> _Snapshot:
    answer = await session.call("DOMSnapshot.captureSnapshot", computedStyles=[])
    strings: list[str] = answer["strings"]
    snapshot = _Snapshot()
    try:
        bid = strings.index("bid")
    except ValueError:
        return snapshot
    for document in answer["documents"]:
        nodes = document["nodes"]
        identities = nodes["backendNodeId"]
        for identity, attributes in zip(identities, nodes["attributes"], strict=True):
            if bid in attributes[::2]:
                snapshot.bids[identity] = strings[attributes[attributes[::2].index(bid) * 2 + 1]]
        snapshot.clickable.update(identities[index] for index in nodes["isClickable"]["index"])
    return snapshot


def _is_visible(entry: dict[str, Any]) -> bool:
    """Return whether the node is in the tree, or would be if it had a meaning."""
    return {reason["name"] for reason in entry.get("ignoredReasons", ())} <= _MEANINGLESS


def _tree(
    entries: list[dict[str, Any]], snapshot: _Snapshot, pointers: set[str], inside: Mapping[str, PageNode]
) -> PageNode:
    nodes: dict[str, PageNode] = {}
    for entry in entries:
        identity = entry.get("backendDOMNodeId", -1)
        node = nodes[entry["nodeId"]] = from_accessibility(entry, snapshot.bids.get(identity, ""))
        # A label only repeats its field's line, unless it looks clickable itself.
        listens = identity in snapshot.clickable and node.role != "LabelText"
        if node.bid and (listens or node.bid in pointers) and _is_visible(entry):
            node.clickable()
    root = PageNode("RootWebArea")
    for entry in entries:
        node = nodes[entry["nodeId"]]
        node.children = [nodes[child] for child in entry.get("childIds", ()) if child in nodes]
        if node.bid in inside:
            node.children = [inside[node.bid]]
        if "parentId" not in entry:
            root = node
    root.notes = [note for note in root.notes if note != "focused"]
    return root

"""Search the code of a branch: its index follows the agent's files, which the host reads without following links.

A session's first search begins with the index of the user's directory, which all its sessions share, and reads the
files that differ. They are parsed in processes that can reach nothing (handiwork/codeindex/worker.py); none is run.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any

from handiwork.errors import WorkspaceError
from handiwork.events.action import CodeBlocksAction, CodeSearchAction
from handiwork.events.base import Observation
from handiwork.events.observation import (
    NOT_EXACT,
    CodeBlock,
    CodeBlocksObservation,
    CodeSearchObservation,
    ErrorObservation,
)
from handiwork.paths import locked
from handiwork.workspace.session_files import SessionFiles

if TYPE_CHECKING:
    from handiwork.codeindex.index import Hits

EXPANDED, LISTED = 3, 10
"""Blocks that are shown with their code, and all that are shown."""
LINES, CHARACTERS = 60, 3_000
"""Maximum lines and characters of a block's code."""

NO_EXTRA = "Code search is not installed here: find code with grep in bash."
NOTHING = "No block matches. Try fewer or other words, a wildcard like name: parse*, or another field."
UNAVAILABLE = "There is no code search in this session: find code with grep in bash."

SearchCode = Callable[[CodeSearchAction], Coroutine[Any, Any, Observation]]
MakeCodeSearch = Callable[[int], SearchCode]
"""Makes the search of a branch's code; branch 0 is the session's own files."""


def no_code_search(_: int) -> SearchCode:
    """Return a search that only says that there is none."""

    async def search(_: CodeSearchAction) -> Observation:
        return ErrorObservation(content=UNAVAILABLE, error_id="unsupported")

    return search


class CodeSearch:
    """The search of one branch's ``files``."""

    def __init__(self, files: SessionFiles) -> None:
        self._files = files
        self._turn = asyncio.Lock()

    async def run(self, action: CodeSearchAction) -> Observation:
        """Bring the index up to date and search it. Cancelling it stops the reading; files read so far stay indexed."""
        stop = threading.Event()
        async with self._turn:
            work = asyncio.create_task(asyncio.to_thread(self._search, action, stop))
            try:
                return await asyncio.shield(work)
            except asyncio.CancelledError:
                stop.set()
                await asyncio.wait([work])
                raise

    def _search(self, action: CodeSearchAction, stop: threading.Event) -> Observation:
        try:
            from handiwork.codeindex.files import SourceTree
            from handiwork.codeindex.index import CodeIndex
            from handiwork.codeindex.query import QueryError
        except ImportError:
            return ErrorObservation(content=NO_EXTRA, error_id="unsupported")
        files = self._files
        index = CodeIndex(str(files.folder))
        try:
            if files.keeps_source and not index.exists:
                # The agent and the page may both be the first to search.
                with locked(files.folder / "code-search.lock", flags=os.O_RDWR | os.O_CREAT):
                    shared = CodeIndex(str(files.source))
                    shared.refresh(SourceTree.of_directory(files.source), stop)
                    index.start_from(shared)
            workspace = files.workspace
            index.refresh(SourceTree(files.view(), workspace.base, workspace.source, workspace.mounts), stop)
            if isinstance(action, CodeBlocksAction):
                return _blocks(index.search(action.query, action.count, action.folders))
            found = _blocks(index.search(action.query, LISTED))
        except QueryError as error:
            return ErrorObservation(content=str(error), error_id="bad_query")
        except (WorkspaceError, OSError) as error:
            return ErrorObservation(content=f"The code cannot be searched: {error}.", error_id="no_index")
        return CodeSearchObservation(query=action.query, total=found.total, content="\n".join(_lines(found)))


def _blocks(hits: Hits) -> CodeBlocksObservation:
    blocks = tuple(
        CodeBlock(file_path=hit.file_path, code=hit.code, **hit.block._asdict())  # pyright: ignore[reportArgumentType]
        for hit in hits.hits
    )
    return CodeBlocksObservation(total=hits.total, blocks=blocks, extended=hits.extended)


def _lines(found: CodeBlocksObservation) -> Iterator[str]:
    if not found.blocks:
        yield NOTHING
        return
    if found.extended:
        yield f"{NOT_EXACT}\n"
    for block in found.blocks[:EXPANDED]:
        yield f"{_place(block)}:\n```\n{_code(block)}\n```"
    if further := found.blocks[EXPANDED:]:
        yield "\nFurther blocks:"
        yield from (f"{_place(block)}: {block.line}" for block in further)
    if (more := found.total - len(found.blocks)) > 0:
        yield f"{more} more match: narrow it down with more words, AND, type: or file_path:."


def _place(block: CodeBlock) -> str:
    return f"{block.file_path}, lines {block.first} to {block.last}, {block.type}"


def _code(block: CodeBlock) -> str:
    lines = block.code.split("\n")
    shown = "\n".join(lines[:LINES])[:CHARACTERS]
    if len(shown) == len(block.code):
        return shown
    return f"{shown}\n[... cut: read the lines up to {block.last} ...]"

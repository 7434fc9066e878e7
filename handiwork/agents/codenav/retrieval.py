"""The retrieval environment: the code index, with rules that rerank and a memory of the blocks an episode has seen."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import Field

from handiwork.agents.rendering import shorten
from handiwork.events.action import CodeBlocksAction, CodeSearchAction
from handiwork.events.base import Action, Model, Observation, Run
from handiwork.events.observation import NOT_EXACT, CodeBlock, CodeBlocksObservation, ErrorObservation

Retrieval = Literal["prototypes", "code", "code_or_docstring"]
"""How the best blocks are shown: by their prototypes, their code, or a docstring of the model's if it is shorter."""

MATCHED, QUERIES = 100, 5
"""Blocks that a query retrieves, and queries of one action, one a line."""

ROOM = 16_000
"""Characters of a response; a block's code has a quarter of it at most."""

_DEFINITIONS = ("FUNCTION", "CLASS", "METHOD")
_RANKS = {"FUNCTION": 0, "CLASS": 0, "DOCUMENTATION": 0, "METHOD": 1, "IMPORT": 1, "ASSIGNMENT": 1}
_OTHER, _TEST = 2, 2

NOTHING = "No block matches. Try fewer or other words, a wildcard like name: parse*, or another field."
ALL_SEEN = "All blocks that match have been shown before in this episode. Try other words."


class Prototype(Model):
    """A block in one line, its ``text``."""

    id: str
    file_path: str
    type: str
    name: str
    text: str


class QueryResult(Model):
    """The answer to one query: the ``best`` blocks, and the prototypes of ``further`` ones.

    ``unseen`` is the number of matching blocks that no response has shown. ``note`` says why there are no blocks, or
    that none matches exactly.
    """

    query: str
    best: tuple[CodeBlock, ...] = ()
    further: tuple[Prototype, ...] = ()
    unseen: int = 0
    note: str = ""


class RetrieveAction(CodeSearchAction):
    """Retrieve blocks of the files below ``folders`` for each line of ``query``, without those that were ``seen``.

    ``expanded`` blocks are shown in full, up to ``prototypes`` further ones in a line. The response has ``room``
    characters.
    """

    folders: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    expanded: int = Field(default=3, ge=0)
    prototypes: int = Field(default=7, ge=0)
    room: int = ROOM

    async def execute(self, run: Run) -> Observation:
        """Search for each query, rerank the blocks that were not seen, and choose those to show."""
        seen, results = set(self.seen), list[QueryResult]()
        queries = [line.strip() for line in self.query.split("\n") if line.strip()]
        for query in queries[:QUERIES]:
            found = await run(CodeBlocksAction(query=query, folders=self.folders, count=MATCHED))
            if isinstance(found, CodeBlocksObservation):
                results.append(self._chosen(query, found, seen))
                seen.update(map(block_id, results[-1].best))
            elif isinstance(found, ErrorObservation) and found.error_id == "bad_query":
                results.append(QueryResult(query=query, note=found.content))
            else:
                return found
        unsearched = len(queries[QUERIES:])
        text = "\n\n".join(response(results, self.room, unsearched))
        return RetrieveObservation(results=tuple(results), unsearched=unsearched, room=self.room, content=text)

    def _chosen(self, query: str, found: CodeBlocksObservation, seen: set[str]) -> QueryResult:
        known = [block for block in found.blocks if block_id(block) in seen]
        unseen = [block for block in ranked(found.blocks) if not self._shown(block, known)]
        if not unseen:
            return QueryResult(query=query, note=ALL_SEEN if found.blocks else NOTHING)
        best: list[CodeBlock] = []
        for block in unseen:
            if len(best) < self.expanded and not self._shown(block, best):
                best.append(block)
        rest = [block for block in unseen if not self._shown(block, best)]
        further = [block for block in rest if self.expanded == 0 or block.type in _DEFINITIONS][: self.prototypes]
        return QueryResult(
            query=query,
            best=tuple(best),
            further=tuple(map(prototype_of, further)),
            unseen=len(rest) - len(further),
            note=NOT_EXACT if found.extended else "",
        )

    def _shown(self, block: CodeBlock, shown: Iterable[CodeBlock]) -> bool:
        """Return whether the block is one of those that are shown, or within one that is shown whole."""
        return any(
            block == other
            or (
                block.file_path == other.file_path
                and other.first <= block.first
                and block.last <= other.last
                and len(other.code) <= self.room // 4
            )
            for other in shown
        )


class RetrieveObservation(Observation):
    """The ``results`` of the queries; ``content`` shows them with the code of their best blocks.

    ``unsearched`` is the number of queries beyond the first QUERIES.
    """

    answers: ClassVar[tuple[type[Action], ...]] = ()
    results: tuple[QueryResult, ...]
    unsearched: int = 0
    room: int = ROOM


def block_id(block: CodeBlock) -> str:
    """Return an identifier of the block, computed from its file and code."""
    return hashlib.sha256(f"{block.file_path}\n{block.code}".encode(errors="replace")).hexdigest()[:12]


def ranked(blocks: Iterable[CodeBlock]) -> list[CodeBlock]:
    """Return the blocks by CodeNav's rules, else in their order: definitions first, imports later, tests last."""

    def rank(block: CodeBlock) -> int:
        name = block.file_path.rpartition("/")[2].partition(".")[0]
        is_test = name.startswith("test_") or name.endswith("_test")
        is_test = is_test or "test_" in block.prototype or "Test" in block.prototype
        return _RANKS.get(block.type, _OTHER) + _TEST * is_test

    return sorted(blocks, key=rank)


def prototype_of(block: CodeBlock) -> Prototype:
    """Return a block in one line."""
    return Prototype(id=block_id(block), file_path=block.file_path, type=block.type, name=block.name, text=block.line)


def response(
    results: Sequence[QueryResult], room: int, unsearched: int = 0, docstrings: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Yield the parts of a response; ``docstrings`` replace the code of blocks, by their ids, if shorter."""
    for result in results:
        yield f"QUERY: {result.query}" + (f"\n{result.note}" if result.note else "")
        for block in result.best:
            docstring = (docstrings or {}).get(block_id(block), "")
            text = docstring if docstring and len(docstring) < len(block.code) else block.code
            place = f"file_path={block.file_path}\nlines=[{block.first}, {block.last}]\ntype={block.type}"
            yield f"{place}\ncontent={{\n{shorten(text, room // 4)}\n}}"
        if result.further:
            lines = [f"{one.text}  # {one.file_path}" for one in result.further]
            yield "\n".join(["Prototypes of further matches:", *lines])
        if result.unseen:
            yield f"{result.unseen} more blocks match: the same query again shows the next best."
    if unsearched:
        yield f"Not searched: the last {unsearched} of your queries. A search takes {QUERIES}; ask for them again."


def seen_blocks(observations: Iterable[Observation | None], retrieval: Retrieval) -> tuple[str, ...]:
    """Return the ids of the blocks that the model still sees in these responses, in their order."""
    results = [one for o in observations if isinstance(o, RetrieveObservation) for one in o.results]
    if retrieval == "prototypes":
        return tuple(dict.fromkeys(prototype.id for one in results for prototype in one.further))
    return tuple(dict.fromkeys(block_id(block) for one in results for block in one.best))

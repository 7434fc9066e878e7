"""The index of one tree: which files it has read, and tantivy's documents of their blocks."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tantivy
from tantivy import Query

from handiwork.codeindex.blocks import (
    BLOCKS,
    TYPES,
    Block,
    BlockType,
    Vocabulary,
    decode,
    is_excluded,
)
from handiwork.codeindex.compiler import MATCHINGS, compile_query, make_documents, make_schema, register_tokenizers
from handiwork.codeindex.files import LARGEST, SourceFile, SourceTree
from handiwork.codeindex.query import QueryError
from handiwork.codeindex.workers import IndexedBlock, ParserProcess, UnreadableFileError, map_with_workers
from handiwork.errors import WorkspaceError
from handiwork.paths import cache_dir, locked

FORMAT = 2
"""Raised when the rules of blocks or words change: older indexes are then rebuilt."""
UNUSED_DAYS = 30
"""Days after which an unused index is removed."""

_HEAP = 64 << 20
_CHUNK = 1_000
"""The number of files after which the index is saved."""
_RECENT = 100_000_000
"""Nanoseconds in which a file could change twice without its times telling."""
_WORKERS = 2
_ONE_WORKER = 8
"""Files that are so few that one process reads them."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A block that matches a query."""

    file_path: str
    block: Block
    code: str
    score: float


@dataclass(frozen=True, slots=True)
class Hits:
    """The best blocks that match a query, of ``total``; ``extended`` is True if none matches exactly."""

    total: int
    hits: tuple[Hit, ...]
    extended: bool = False


@dataclass(frozen=True, slots=True)
class Refreshed:
    """How a refresh changed an index: the numbers of files read again and removed."""

    read: int = 0
    removed: int = 0


@dataclass
class _FileState:
    version: tuple[int, ...]
    sha256: str
    problem: str = ""
    is_cut: bool = False


@dataclass
class _Parsed:
    file: SourceFile
    state: _FileState
    lines: Sequence[str] = ()
    blocks: Sequence[IndexedBlock] = ()
    is_same: bool = False


@dataclass
class _Files:
    """The files that were read, at a ``generation`` of the documents."""

    generation: str = ""
    states: dict[str, _FileState] = field(default_factory=dict[str, _FileState])


class CodeIndex:
    """The index of the tree ``name``, an absolute path, in a folder of its own in the cache."""

    def __init__(self, name: str, cache: Path | None = None) -> None:
        self.name = name
        key = hashlib.sha256(f"{FORMAT}\n{name}".encode()).hexdigest()[:32]
        self.folder = (cache or cache_dir()) / "codeindex" / key
        self._files = _Files()
        self._index: tantivy.Index | None = None

    @property
    def exists(self) -> bool:
        """Whether the index has ever been made."""
        return (self.folder / "tantivy/meta.json").exists()

    def refresh(self, tree: SourceTree, stop: threading.Event | None = None) -> Refreshed:
        """Read new and changed files, and forget deleted ones.

        ``stop`` ends it early; the files already read stay indexed. Other processes wait. Raises OSError.
        """
        stop = stop or threading.Event()
        self._prepare()
        with locked(self.folder / "lock", flags=os.O_RDWR | os.O_CREAT):
            os.utime(self.folder / "lock")
            index = self._open()
            self._follow(index)
            files, known = tree.files(), self._files.states
            present = {file.path for file in files}
            removed = [path for path in known if path not in present]
            changed = [file for file in files if (old := known.get(file.path)) is None or old.version != file.version]
            if not changed and not removed:
                return Refreshed()
            return self._update(index, tree, changed, removed, stop)

    def search(self, query: str, limit: int = 10, folders: Sequence[str] = ()) -> Hits:
        """Return the blocks that match, the best first; without any, those that match by the next of MATCHINGS.

        ``folders`` are those, relative to the tree, whose files are searched; without any, all are. Raises QueryError.
        """
        index = self._open()
        searcher = index.searcher()
        for matching in MATCHINGS:
            compiled = compile_query(index, query, folders, root=self.name, matching=matching)
            try:
                found = searcher.search(compiled, limit)
            except ValueError as error:
                raise QueryError(f"The query cannot be run: {error}.") from None
            if found.hits:
                hits = tuple(_hit(searcher.doc(address), score) for score, address in found.hits)
                return Hits(_count(found), hits, matching != "exact")
        return Hits(0, ())

    def counts(self) -> dict[BlockType, int]:
        """Return the number of blocks of each type."""
        index = self._open()
        searcher = index.searcher()
        return {kind: _count(searcher.search(Query.term_query(index.schema, "type", kind), 1)) for kind in TYPES}

    def files(self) -> int:
        """Return the number of files that the last refresh knew and could read."""
        return sum(1 for state in self._files.states.values() if not state.problem)

    def problems(self) -> dict[str, str]:
        """Return the files that the last refresh could not read, each with the reason."""
        return {path: state.problem for path, state in sorted(self._files.states.items()) if state.problem}

    def cut_files(self) -> list[str]:
        """Return the files of which only the first BLOCKS blocks are indexed."""
        return sorted(path for path, state in self._files.states.items() if state.is_cut)

    def start_from(self, other: CodeIndex) -> None:
        """Begin with the documents of another index, which share the disk; does nothing if this one has its own."""
        if self.exists or not other.exists:
            return
        self._prepare()
        shutil.rmtree(self.folder / "copy", ignore_errors=True)
        with locked(other.folder / "lock", flags=os.O_RDWR | os.O_CREAT):
            shutil.copytree(other.folder / "tantivy", self.folder / "copy", copy_function=_link, ignore=_locks)
            for path in other.folder.glob("files-*.json"):
                _link(path, self.folder / path.name)
        shutil.rmtree(self.folder / "tantivy")
        (self.folder / "copy").rename(self.folder / "tantivy")

    def _prepare(self) -> None:
        if (self.folder / "tantivy").exists():
            return
        self.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_unused(self.folder.parent)
        (self.folder / "tantivy").mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.folder / "root").write_text(self.name)

    def _open(self) -> tantivy.Index:
        """Return the current documents; replace unreadable ones by an empty index."""
        self._prepare()
        path = self.folder / "tantivy"
        if self._index is None:
            try:
                self._index = tantivy.Index(make_schema(), str(path))
            except ValueError:  # written by another version, or cut off
                shutil.rmtree(path)
                path.mkdir(mode=0o700)
                self._index = tantivy.Index(make_schema(), str(path))
            register_tokenizers(self._index)
        self._index.reload()
        return self._index

    def _follow(self, index: tantivy.Index) -> None:
        """Load the list of files of the documents, which another process may have written; without one, start over.

        The caller holds the lock.
        """
        generation = _generation(index)
        if generation != self._files.generation:
            self._files = self._load(generation)
        if generation and not self._files.generation:
            self._clear(index)

    def _clear(self, index: tantivy.Index) -> None:
        writer = index.writer(_HEAP, 1)
        writer.delete_all_documents()
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
        self._files = _Files()

    def _load(self, generation: str) -> _Files:
        with suppress(OSError, ValueError, KeyError, TypeError):
            rows = json.loads((self.folder / f"files-{generation}.json").read_bytes())
            states = {path: _FileState(tuple(version), *state) for path, version, *state in rows}
            return _Files(generation, states)
        return _Files()

    def _save(self, generation: str) -> None:
        rows = [[path, one.version, one.sha256, one.problem, one.is_cut] for path, one in self._files.states.items()]
        path = self.folder / f"files-{generation}.json"
        new = path.with_suffix(".new")
        new.write_text(json.dumps(rows))
        new.replace(path)

    def _update(
        self,
        index: tantivy.Index,
        tree: SourceTree,
        changed: Sequence[SourceFile],
        removed: Sequence[str],
        stop: threading.Event,
    ) -> Refreshed:
        states, read, unsaved = self._files.states, 0, 0
        old, vocabulary = dict(states), Vocabulary()

        def parse(worker: ParserProcess, file: SourceFile) -> _Parsed:
            return _parse(worker, tree, file, old.get(file.path))

        writer: tantivy.IndexWriter | None = None
        size = 1 if len(changed) <= _ONE_WORKER else min(_WORKERS, os.cpu_count() or 1)
        results = map_with_workers(parse, changed, {file.language for file in changed}, size)
        try:
            if removed:
                writer = index.writer(_HEAP, 1)
            for path in removed:
                _delete(writer, path)
                del states[path]
            for parsed in results:
                if not parsed.is_same:
                    writer = writer or index.writer(_HEAP, 1)
                    _replace(writer, parsed, vocabulary)
                    read, unsaved = read + 1, unsaved + 1
                states[parsed.file.path] = parsed.state
                if stop.is_set():
                    break
                if unsaved >= _CHUNK:
                    self._commit(writer)
                    unsaved = 0
            self._commit(writer)
        except BaseException:
            self._files = _Files()  # unsaved files are read again
            raise
        finally:
            results.close()
            if writer is not None:
                writer.wait_merging_threads()
        index.reload()
        return Refreshed(read, len(removed))

    def _commit(self, writer: tantivy.IndexWriter | None) -> None:
        """Save the list of files, then with one commit the documents and which list is theirs."""
        if writer is None:
            if self._files.generation:
                self._save(self._files.generation)  # the same contents, with newer times
            return
        last, generation = self._files.generation, uuid.uuid4().hex
        self._save(generation)
        if last:
            writer.delete_documents_by_term("generation", last)
        document = tantivy.Document()
        document.add_text("generation", generation)
        document.add_bytes("payload", generation.encode())
        writer.add_document(document)
        writer.commit()
        self._files.generation = generation
        if last:
            (self.folder / f"files-{last}.json").unlink(missing_ok=True)


def _parse(worker: ParserProcess, tree: SourceTree, file: SourceFile, old: _FileState | None) -> _Parsed:
    if file.version[0] > LARGEST:
        return _Parsed(file, _FileState(file.version, "", f"it has more than {LARGEST:,} bytes"))
    try:
        data = tree.read(file.path)
    except (WorkspaceError, OSError) as error:
        return _Parsed(file, _FileState(file.version, "", f"it cannot be read: {error}"[:200]))
    sha = hashlib.sha256(data).hexdigest()
    is_recent = time.time_ns() - max(file.version[2:]) < _RECENT
    state = _FileState((0,) if is_recent else file.version, sha)
    if old is not None and sha == old.sha256:
        return _Parsed(file, replace(old, version=state.version), is_same=True)
    text = decode(data)
    if text is None:
        state.problem = "it is binary"
    elif not is_excluded(text):
        try:
            blocks = worker.blocks(file.language, text)
            state.is_cut = len(blocks) > BLOCKS
            return _Parsed(file, state, text.split("\n"), blocks[:BLOCKS])
        except UnreadableFileError as error:
            state.problem = str(error)
    return _Parsed(file, state)


def _replace(writer: tantivy.IndexWriter, parsed: _Parsed, vocabulary: Vocabulary) -> None:
    _delete(writer, parsed.file.path)
    for document in make_documents(parsed.file.path, parsed.lines, parsed.blocks, vocabulary):
        writer.add_document(document)


def _delete(writer: tantivy.IndexWriter | None, path: str) -> None:
    assert writer is not None
    writer.delete_documents_by_term("file_path", path)


def _hit(document: tantivy.Document, score: float) -> Hit:
    path, *fields, code = json.loads(_payload(document))
    return Hit(path, Block(*fields), code, score)


def _generation(index: tantivy.Index) -> str:
    searcher = index.searcher()
    found = searcher.search(Query.regex_query(index.schema, "generation", ".*"), 1)
    return _payload(searcher.doc(found.hits[0][1])).decode() if found.hits else ""


def _payload(document: tantivy.Document) -> bytes:
    payload = document.get_first("payload")
    assert isinstance(payload, bytes)
    return payload


def _count(found: Any) -> int:
    return found.count  # the stubs of tantivy lack it


def _link(source: str | Path, target: str | Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _locks(_: str, names: list[str]) -> list[str]:
    return [name for name in names if name.endswith(".lock")]


def _remove_unused(folder: Path) -> None:
    """Remove the indexes of deleted trees, and those unused for UNUSED_DAYS."""
    for index in folder.iterdir():
        with suppress(OSError):
            unused = time.time() - (index / "lock").stat().st_mtime > UNUSED_DAYS * 86_400
            if unused or not Path((index / "root").read_text()).exists():
                shutil.rmtree(index, ignore_errors=True)

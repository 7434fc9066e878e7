"""A session's changes to its workspace, compared with the base."""

from __future__ import annotations

import hashlib
import os
import stat
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Literal

from handiwork.workspace.copy import Workspace
from handiwork.workspace.files.overlay_marks import hides_directory, hides_file
from handiwork.workspace.files.safe_open import join, look, open_file, read_link, walk
from handiwork.workspace.git.command import user_excludes
from handiwork.workspace.git.ignore import IGNORE_FILE, LARGEST, IgnoreRules, rules_for
from handiwork.workspace.git.patterns import Patterns
from handiwork.workspace.git.repository import repository_around, repository_at
from handiwork.workspace.selection import JUNK

Kind = Literal["added", "modified", "deleted", "mode", "link", "type"]

TEXT_LIMIT = 10_000_000
"""Size in bytes above which a file counts as binary."""


@dataclass(frozen=True)
class Side:
    """One version of a file or symbolic link below ``root``; ``mode`` is st_mode, ``size`` is in bytes.

    ``content`` holds the bytes of a file that exists only in memory, such as a merged one; otherwise it is None.
    """

    root: Path
    path: str
    mode: int
    size: int
    content: bytes | None = None

    @property
    def is_link(self) -> bool:
        """Return whether the side is a symbolic link."""
        return stat.S_ISLNK(self.mode)

    @property
    def git_mode(self) -> str:
        """Return the mode as git writes it: 100644, 100755 or 120000."""
        return "120000" if self.is_link else "100755" if self.mode & 0o100 else "100644"

    def open(self) -> BufferedReader | BytesIO:
        """Open the file's bytes, or a link's target. Raises WorkspaceError if the file has changed."""
        if self.content is not None:
            return BytesIO(self.content)
        if self.is_link:
            return BytesIO(os.fsencode(read_link(self.root, self.path)))
        return open_file(self.root, self.path)

    def read(self) -> bytes:
        """Return the file's bytes, or a link's target. Raises WorkspaceError if the file has changed."""
        with self.open() as stream:
            return stream.read()

    @cached_property
    def sha256(self) -> str:
        """Return the SHA-256 of the content in hex, computed once."""
        with self.open() as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    @cached_property
    def binary(self) -> bool:
        """Return whether the content is not UTF-8 text, has a NUL, or exceeds ``TEXT_LIMIT``."""
        if self.size > TEXT_LIMIT:
            return True
        try:
            return "\0" in self.read().decode()
        except UnicodeDecodeError:
            return True

    @property
    def has_lines(self) -> bool:
        """Return whether git can merge the content by lines, in whatever encoding: it is not large and has no NUL."""
        return self.size <= TEXT_LIMIT and b"\0" not in self.read()


@dataclass(frozen=True)
class Change:
    """One path that differs: ``old`` is its version in the base, ``new`` in the sandbox; None means absent.

    ``ignored`` means that git ignores it, so that it stays in the session.
    As in git, directories do not count, nor does any permission except the owner's execute bit.
    """

    path: str
    kind: Kind
    old: Side | None
    new: Side | None
    ignored: bool = False

    @property
    def binary(self) -> bool:
        """Return whether either side is binary."""
        return any(side.binary for side in (self.old, self.new) if side)


def side_at(root: Path, path: str) -> Side | None:
    """Return the regular file or symbolic link at ``path``; None for any other type or if absent."""
    status = look(root, path)
    return _side(root, path, status) if status else None


def same_content(one: Side | None, other: Side | None) -> bool:
    """Return whether both sides are absent, or have the same type and bytes; modes may differ."""
    if one is None or other is None:
        return one is other
    if one.is_link != other.is_link or one.size != other.size:
        return False
    return one.sha256 == other.sha256


def changes_of_overlay(workspace: Workspace, *layers: Path, ignored: bool = False) -> list[Change]:
    """Return the changes that overlay ``layers``, lowest first, make to the base; sorted by path.

    ``ignored`` includes those of the files that git ignores. Reads only the layers and the paths they cover. Raises
    WorkspaceError if a file cannot be read.
    """
    sides = _sides(workspace, layers)
    pairs = ((path, side_at(workspace.base, path), side) for path, side in sides.items())
    return _changes(workspace, pairs, ignored=ignored)


def with_moved_files(changes: Sequence[Change]) -> list[Change]:
    """Return the changes, of which a new file with the content of a deleted one does not count as ignored.

    The session moved it: without the new one, the user's directory would lose the content.
    """
    deleted = [change.old for change in changes if change.old and not change.new and not change.ignored]
    sizes = {side.size for side in deleted} - {0}

    def is_moved(new: Side | None) -> bool:
        return new is not None and new.size in sizes and any(same_content(side, new) for side in deleted)

    return [
        replace(change, ignored=False) if change.ignored and not change.old and is_moved(change.new) else change
        for change in changes
    ]


def changes_between(workspace: Workspace, before: Sequence[Path], after: Sequence[Path]) -> list[Change]:
    """Return the changes from the layers ``before`` to the layers ``after``, like ``changes_of_overlay``."""
    old, new = _sides(workspace, before), _sides(workspace, after)

    def side(sides: dict[str, Side | None], path: str) -> Side | None:
        return sides[path] if path in sides else side_at(workspace.base, path)

    return _changes(workspace, ((path, side(old, path), side(new, path)) for path in old.keys() | new.keys()))


def changes_since(earlier: Iterable[Change], later: Iterable[Change]) -> list[Change]:
    """Return the changes from one state of the files to another, both given by their changes to the base."""
    before, after = ({change.path: change for change in changes} for changes in (earlier, later))
    changes: list[Change] = []
    for path in sorted(before.keys() | after.keys()):
        old = before[path].new if path in before else after[path].old
        new = after[path].new if path in after else before[path].old
        if (kind := _kind(old, new)) is not None:
            changes.append(Change(path, kind, old, new))
    return changes


def _sides(workspace: Workspace, layers: Sequence[Path]) -> dict[str, Side | None]:
    """Return the side at each path that the layers add or cover; None if it is hidden."""
    sides: dict[str, Side | None] = {}
    for number, layer in enumerate(layers):
        covered, added = set[str](), dict[str, Side]()
        for path, status in walk(layer, prune=workspace.mounts):
            lower_statuses = [(lower, look(lower, path)) for lower in (workspace.base, *layers[:number])]
            if not stat.S_ISDIR(status.st_mode):
                if not hides_file(layer, path, status) and (side := _side(layer, path, status)):
                    added[path] = side
            elif not hides_directory(layer, path):
                lower_statuses = [
                    (lower, lower_status)
                    for lower, lower_status in lower_statuses
                    if lower_status and not stat.S_ISDIR(lower_status.st_mode)
                ]
            for lower, lower_status in lower_statuses:
                covered.update(_files(lower, path, lower_status))
        sides |= {**dict.fromkeys(covered), **added}
    return sides


def changes_of_tree(workspace: Workspace, directory: Path, *, ignored: bool = False) -> list[Change]:
    """Return the changes from the base to ``directory``, edited in place, like ``changes_of_overlay``.

    Reads every file. Raises WorkspaceError if a file cannot be read.
    """
    manifest = workspace.manifest()
    excluded = {path.rstrip("/") for path in (*workspace.mounts, *workspace.left_out)}
    pairs: list[tuple[str, Side | None, Side | None]] = []
    for path, status in walk(directory, prune=excluded):
        new, entry = _side(directory, path, status), manifest.get(path)
        if new is None:
            continue
        if entry is None or entry.kind == "dir":
            pairs.append((path, None, new))
            continue
        del manifest[path]
        files = entry.kind == "file" and not new.is_link
        if not (files and entry.size == new.size and entry.value == new.sha256) or (entry.mode ^ new.mode) & 0o777:
            pairs.append((path, side_at(workspace.base, path), new))
    deleted = (path for path, entry in manifest.items() if entry.kind != "dir")
    pairs += [(path, side_at(workspace.base, path), None) for path in deleted]
    return _changes(workspace, pairs, ignored=ignored, in_place=directory == workspace.source)


def _side(root: Path, path: str, status: os.stat_result) -> Side | None:
    if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
        return Side(root, path, status.st_mode, status.st_size)
    return None


def _files(root: Path, path: str, status: os.stat_result | None) -> Iterator[str]:
    """Yield the path itself if it is a file, or all files below it."""
    if status and stat.S_ISDIR(status.st_mode):
        yield from (below for below, below_status in walk(root, path) if not stat.S_ISDIR(below_status.st_mode))
    elif status:
        yield path


def _changes(
    workspace: Workspace,
    pairs: Iterable[tuple[str, Side | None, Side | None]],
    *,
    ignored: bool = False,
    in_place: bool = False,
) -> list[Change]:
    changes = {path: Change(path, kind, old, new) for path, old, new in pairs if (kind := _kind(old, new)) is not None}
    excluded = tuple(path.rstrip("/") for path in (*workspace.mounts, *workspace.left_out))
    for path in [path for path in changes if _is_below(path, excluded)]:
        del changes[path]
    cache: dict[str, Rules] = {}
    for path in [path for path, change in changes.items() if not change.old and _is_junk(workspace, path, cache)]:
        del changes[path]
    # The agent's own rules can keep new files in the session, but not hide those of the user's directory.
    own = [] if in_place else _ignored_by_own_rules(workspace, changes)
    for path in [*_ignored_paths(workspace, changes, cache), *own]:
        changes[path] = replace(changes[path], ignored=True)
    return [changes[path] for path in sorted(changes) if ignored or not changes[path].ignored]


def _kind(old: Side | None, new: Side | None) -> Kind | None:
    if old is None or new is None:
        return "added" if new else "deleted" if old else None
    if old.is_link != new.is_link:
        return "type"
    if not same_content(old, new):
        return "link" if new.is_link else "modified"
    return "mode" if old.git_mode != new.git_mode else None


def _is_below(path: str, directories: Collection[str]) -> bool:
    return any(path == directory or path.startswith(f"{directory}/") for directory in directories)


def _is_junk(workspace: Workspace, path: str, cache: dict[str, Rules]) -> bool:
    """Return whether a path is in a directory of JUNK in which git tracks nothing."""
    parts = path.split("/")
    for depth, name in enumerate(parts):
        if name in JUNK:
            rules = rules_in(workspace.base, workspace.source, "/".join(parts[:depth]), cache)
            if not isinstance(rules, IgnoreRules) or not rules.tracks_below(name):
                return True
    return False


def _ignored_paths(workspace: Workspace, paths: Iterable[str], cache: dict[str, Rules]) -> list[str]:
    """Return the untracked paths that git ignores under the rules of the base and of the repository around it."""
    by_directory: defaultdict[str, list[str]] = defaultdict(list)
    for path in paths:
        directory, _, name = path.rpartition("/")
        by_directory[directory].append(name)
    ignored: list[str] = []
    for directory, names in by_directory.items():
        rules = rules_in(workspace.base, workspace.source, directory, cache)
        if isinstance(rules, IgnoreRules):
            names = [name for name in names if rules.ignores(name, is_directory=False)]
        if rules:
            ignored += [join(directory, name) for name in names]
    return ignored


def _ignored_by_own_rules(workspace: Workspace, changes: Mapping[str, Change]) -> list[str]:
    """Return the new paths that git ignores under each ``.gitignore`` that the session wrote, such as build outputs."""
    names = ((path.rpartition("/"), change) for path, change in changes.items())
    files = {directory: change.new for (directory, _, name), change in names if name == IGNORE_FILE}
    if not any(files.values()):
        return []

    @cache
    def rules(directory: str) -> tuple[tuple[int, Patterns], ...]:
        """Return the patterns for paths in a directory, the nearest first, each with the length to strip from them."""
        above = rules(directory.rpartition("/")[0]) if directory else ()
        file = files[directory] if directory in files else side_at(workspace.base, join(directory, IGNORE_FILE))
        if file is None or file.is_link or file.size > LARGEST:
            return above
        return (len(directory) + 1 if directory else 0, Patterns.parse(file.read())), *above

    def excludes(path: str, *, is_directory: bool) -> bool:
        directory, _, name = path.rpartition("/")
        for start, patterns in rules(directory):
            decision = patterns.decide(os.fsencode(name), os.fsencode(path[start:]), is_directory=is_directory)
            if decision is not None:
                return decision
        return False

    @cache
    def is_excluded(directory: str) -> bool:
        ends = (at for at, letter in enumerate(f"{directory}/") if letter == "/" and at)
        return any(excludes(directory[:end], is_directory=True) for end in ends)

    new = (path for path, change in changes.items() if change.old is None)
    return [path for path in new if is_excluded(path.rpartition("/")[0]) or excludes(path, is_directory=False)]


Rules = IgnoreRules | bool | None
"""The rules in a directory, or whether everything in it is ignored; None beyond a symbolic link."""


def rules_in(base: Path, source: Path, directory: str, cache: dict[str, Rules]) -> Rules:
    """Return the rules in a directory of the base, a copy of ``source``; False outside of a repository.

    They are those of the base's innermost repository around it, or else of the one around ``source``. Every
    ``.gitignore`` of the copy is read in the base, which no agent writes to. Raises WorkspaceError.
    """
    if "" not in cache:
        rules = _rules_at(base, "", above=False)
        cache[""] = _rules_around(base, source) if rules is False else rules
    path, rules = "", cache[""]
    for name in directory.split("/") if directory else ():
        path = join(path, name)
        if path not in cache:
            cache[path] = _rules_at(base, path, rules)
        rules = cache[path]
    return rules


def _rules_at(base: Path, directory: str, above: Rules) -> Rules:
    if above is None or os.path.islink(base / directory):
        return None
    if repository := repository_at(base / directory):
        return IgnoreRules.of(repository, user_excludes()).with_file_of(base, directory)
    if not isinstance(above, IgnoreRules):
        return above
    name = directory.rpartition("/")[2]
    return True if above.ignores(name, is_directory=True) else above.inside(name).with_file_of(base, directory)


def _rules_around(base: Path, source: Path) -> Rules:
    """Return the rules at the top of the base, from the repository around ``source``; False if that ignores it."""
    repository = repository_around(source) if source.is_dir() else None
    if repository is None or repository.worktree == source:
        return False  # the base has no repository: one in the source is newer than the copy
    above = rules_for(source.parent, repository, user_excludes())
    if above is None or above.ignores(source.name, is_directory=True):
        return False
    return above.inside(source.name).with_file_of(base, "")

"""Ignore rules of git, evaluated without git: files written by an agent must not control a program of the user.

Two rules differ from git's. A repository's own ``core.excludesFile`` counts only if it names a file in the worktree;
the user's own always counts. And the rules of a ``.gitignore`` that a sparse checkout omits do not apply.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from handiwork.workspace.git.patterns import Patterns
from handiwork.workspace.git.repository import Repository, is_true, read_regular

IGNORE_FILE = ".gitignore"

LARGEST = 1 << 20
"""Size limit of a file of rules, in bytes."""


@dataclass(frozen=True)
class IgnoreRules:
    """The ignore rules of a repository in one of its directories; ``path`` is relative to the worktree."""

    repository: Repository
    ignore_case: bool
    path: bytes = b""
    patterns: tuple[tuple[int, Patterns], ...] = ()
    """Pairs of the length of the path prefix to strip and patterns; the first that decide win."""

    ignored: bool = False
    """Whether the directory itself is ignored, and with it all untracked files below."""

    @classmethod
    def of(cls, repository: Repository, user_excludes: Path | None) -> IgnoreRules:
        """Return the rules at the top of the worktree, without its ``.gitignore``. Raises WorkspaceError."""
        setting = repository.settings.get("core.excludesfile")
        if setting is not None:
            user_excludes = None if os.path.isabs(setting) or setting.startswith("~") else repository.worktree / setting
        excludes = None
        if user_excludes is not None:
            root = user_excludes.parent if setting is None else repository.worktree
            excludes = read_regular(root, os.path.relpath(user_excludes, root), LARGEST)
        ignore_case = is_true(repository.settings.get("core.ignorecase", ""))
        rules = cls(repository, ignore_case)
        for data in (excludes, read_regular(repository.common, "info/exclude", LARGEST)):
            rules = rules.followed_by(data)
        return rules

    def inside(self, name: str) -> IgnoreRules:
        """Return the rules in a subdirectory that is not a repository, without its ``.gitignore``."""
        path = self._below(name)
        ignored = self.ignored or self._excludes(name, path, is_directory=True)
        return replace(self, path=path, ignored=ignored)

    def with_own_file(self) -> IgnoreRules:
        """Return these rules plus the directory's ``.gitignore``. Raises WorkspaceError."""
        return self.with_file_of(self.repository.worktree, os.fsdecode(self.path))

    def with_file_of(self, root: Path, directory: str) -> IgnoreRules:
        """Return these rules plus the ``.gitignore`` of this directory's copy below ``root``. Raises WorkspaceError."""
        if self.ignored:
            return self  # nothing below an ignored directory can be included again
        return self.followed_by(read_regular(root, os.path.join(directory, IGNORE_FILE), LARGEST))

    def followed_by(self, data: bytes | None) -> IgnoreRules:
        """Return these rules preceded by the content of an ignore file in this directory; None means no file."""
        if data is None:
            return self
        base = len(self.path) + 1 if self.path else 0
        entry = base, Patterns.parse(data, ignore_case=self.ignore_case)
        return replace(self, patterns=(entry, *self.patterns))

    def ignores(self, name: str, *, is_directory: bool) -> bool:
        """Return whether git ignores ``name`` and tracks neither it nor any path in it. Raises WorkspaceError."""
        path = self._below(name)
        if not self.ignored and not self._excludes(name, path, is_directory=is_directory):
            return False
        index = self.repository.index
        return path not in (index.directories if is_directory else index.files)

    def tracks_below(self, name: str) -> bool:
        """Return whether git tracks a path in the directory ``name``. Raises WorkspaceError."""
        return self._below(name) in self.repository.index.directories

    def _below(self, name: str) -> bytes:
        return self.path + b"/" + os.fsencode(name) if self.path else os.fsencode(name)

    def _excludes(self, name: str, path: bytes, *, is_directory: bool) -> bool:
        for base, patterns in self.patterns:
            decision = patterns.decide(os.fsencode(name), path[base:], is_directory=is_directory)
            if decision is not None:
                return decision
        return False


def rules_for(directory: Path, repository: Repository, user_excludes: Path | None) -> IgnoreRules | None:
    """Return the rules in a directory of a worktree; None if the repository ignores it. Raises WorkspaceError."""
    rules = IgnoreRules.of(repository, user_excludes).with_own_file()
    for name in directory.relative_to(repository.worktree).parts:
        if rules.ignores(name, is_directory=True):
            return None
        rules = rules.inside(name).with_own_file()
    return rules

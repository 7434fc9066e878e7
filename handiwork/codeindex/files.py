"""The source files of a tree, found without following a link."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from handiwork.codeindex.tree_source import LANGUAGES
from handiwork.errors import WorkspaceError
from handiwork.sandbox.inside.syntax.check import language_of
from handiwork.workspace.changes import Rules, rules_in
from handiwork.workspace.files.safe_open import join
from handiwork.workspace.git.ignore import IgnoreRules
from handiwork.workspace.overlay_view import OverlayView
from handiwork.workspace.selection import JUNK

LARGEST = 1_000_000
"""Bytes of the largest file that is read."""
FILES, DEEPEST = 100_000, 40
"""Maximum number of files, and of directories within each other."""

_SUFFIXES = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".tex": "latex",
    ".inl": "cpp",
    ".tpp": "cpp",
    ".cu": "cpp",
    ".rake": "ruby",
    ".gemspec": "ruby",
    ".phtml": "php",
}
"""The languages of names that ``language_of`` does not know."""
_READ = LANGUAGES | {"python", *_SUFFIXES.values()}
_PRUNED = JUNK | {"venv", ".tox", ".nox", ".eggs", "site-packages", "dist-packages"}


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to index; ``version`` changes whenever the file does."""

    path: str
    language: str
    version: tuple[int, int, int, int]


@dataclass(frozen=True)
class SourceTree:
    """The files below a directory as ``view`` shows them, without those that git ignores.

    Those whose names are not UTF-8 are left out too.
    The rules of git are read in ``base``, a directory that no agent writes to, or the user's own, and in the repository
    around ``source``, of which ``base`` is a copy. ``prune`` are paths of directories that are left out. With ``only``,
    the tree is the file of this name.
    """

    view: OverlayView
    base: Path
    source: Path
    prune: Collection[str] = ()
    only: str = ""

    @classmethod
    def of_directory(cls, directory: Path) -> SourceTree:
        """Return the tree of a directory of the user."""
        return cls(OverlayView([directory]), directory, directory)

    @classmethod
    def of_file(cls, file: Path) -> SourceTree:
        """Return the tree that is one file of the user."""
        return cls(OverlayView([file.parent]), file.parent, file.parent, only=file.name)

    def files(self) -> list[SourceFile]:
        """Return the files in a known language, at most FILES; directories that cannot be read are left out.

        Files over LARGEST bytes, which ``read`` refuses, are among them.
        """
        found: list[SourceFile] = []
        cache: dict[str, Rules] = {}
        pending = [""]
        while pending and len(found) < FILES:
            folder = pending.pop()
            try:
                entries = self.view.entries(folder)
                rules = rules_in(self.base, self.source, folder, cache)
            except (WorkspaceError, OSError):
                continue
            if rules is True or rules is None:
                continue  # ignored, or behind a link
            for entry in entries:
                if not _is_text(entry.name) or (self.only and entry.name != self.only):
                    continue
                path = join(folder, entry.name)
                if entry.kind == "dir":
                    is_read = entry.name not in _PRUNED and path not in self.prune and path.count("/") < DEEPEST
                    if is_read and not _ignores(rules, entry.name, is_directory=True):
                        pending.append(path)
                    continue
                language = _language(entry.name) if entry.kind == "file" else ""
                if language and not _ignores(rules, entry.name, is_directory=False):
                    found.append(SourceFile(path, language, (entry.size, *entry.version)))
        return found[:FILES]

    def read(self, path: str) -> bytes:
        """Return the bytes of a file. Raises WorkspaceError, OSError, also for one that has become too large."""
        with self.view.open(path) as stream:
            data = stream.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise WorkspaceError(f"{path} has more than {LARGEST} bytes")
        return data


def _is_text(name: str) -> bool:
    """Return whether a name is UTF-8, as the index's paths are."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _ignores(rules: Rules, name: str, *, is_directory: bool) -> bool:
    return isinstance(rules, IgnoreRules) and rules.ignores(name, is_directory=is_directory)


def _language(name: str) -> str:
    suffix = Path(name).suffix.lower()
    language = "ruby" if name == "Rakefile" else _SUFFIXES.get(suffix) or language_of(name, b"")
    return language if language in _READ else ""

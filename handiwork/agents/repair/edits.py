"""Edits of a candidate: pieces of files that occur once before and after, so that each can be taken back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from handiwork.events.action import FileEditAction, FileWriteAction
from handiwork.events.base import Action, Model

_COMMENT = re.compile(r"\s*(?://|#(?!!?\[|(?:define|undef|include|if|ifdef|ifndef|elif|else|endif|pragma|error)\b))")
"""A comment of most languages; not an instruction to C's preprocessor, and not an attribute of Rust."""

Texts = dict[str, str]
"""The whole texts of files by path."""


class TextEdit(Model):
    """Replaces ``old``, which occurs once in the file, by ``new``; an empty ``old`` is a file that does not exist."""

    path: str
    old: str
    new: str

    def action(self, prefix: str = "") -> Action:
        """Return the action that makes the edit; ``prefix`` is the way from the shell's directory to the workspace."""
        if not self.old:
            return FileWriteAction(path=prefix + self.path, content=self.new)
        return FileEditAction(path=prefix + self.path, old=self.old, new=self.new)


def edit_between(path: str, before: str, after: str) -> TextEdit | None:
    """Return the edit that turns ``before`` into ``after`` and can be taken back; None if they are equal.

    The edit of a file that does not exist has an empty ``before``.
    """
    if before == after:
        return None
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    first = 0
    while first < min(len(old), len(new)) and old[first] == new[first]:
        first += 1
    same = 0
    while same < min(len(old), len(new)) - first and old[-1 - same] == new[-1 - same]:
        same += 1
    while True:
        pieces = "".join(old[first : len(old) - same]), "".join(new[first : len(new) - same])
        if (not first and not same) or (_occurs_once(pieces[0], before) and _occurs_once(pieces[1], after)):
            return TextEdit(path=path, old=pieces[0], new=pieces[1])
        first, same = max(0, first - 1), max(0, same - 1)


def edits_between(before: Mapping[str, str], after: Mapping[str, str]) -> list[TextEdit]:
    """Return the edits that turn the texts ``before`` into those of ``after``; a path missing before is a new file."""
    edits = (edit_between(path, before.get(path, ""), text) for path, text in after.items())
    return [edit for edit in edits if edit is not None]


def applied(texts: Mapping[str, str], edits: Iterable[TextEdit]) -> Texts:
    """Return the texts with the edits applied."""
    changed = dict(texts)
    for edit in edits:
        changed[edit.path] = changed.get(edit.path, "").replace(edit.old, edit.new, 1)
    return changed


def code_lines(code: str) -> tuple[str, ...]:
    """Return the lines without blank lines and comments, which a model adds to code it copies."""
    lines = (line.rstrip() for line in code.splitlines())
    return tuple(line for line in lines if line and not _COMMENT.match(line))


def _occurs_once(part: str, text: str) -> bool:
    # Not str.count, which misses overlaps: it counts "b\nb" once in "b\nb\nb".
    return part != "" and text.find(part) == text.rfind(part)

"""The choice among candidates: fewest regressions, then the reproduction test, then a vote of equal patches."""

from __future__ import annotations

import ast
import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

from handiwork.agents.agentless.structure import PARSED, parse_python
from handiwork.agents.repair.edits import code_lines
from handiwork.agents.repair.functions import functions

T = TypeVar("T")


class Verdict(NamedTuple):
    """A candidate's normalised ``patch``, "" if it changes nothing, and its validation.

    ``failures`` is the number of selected tests that do not pass with it, None without a report; ``resolves`` tells
    whether the reproduction test says that the issue is resolved, None without one.
    """

    patch: str
    failures: int | None
    resolves: bool | None = None


class Choice(NamedTuple):
    """The number of the chosen candidate, from 0, of equal patches, and of the candidates in the vote."""

    number: int
    votes: int
    voters: int


def choose(verdicts: Sequence[Verdict], selected: int) -> Choice | None:
    """Return the choice among candidates in order; None if all are empty. ``selected`` is the number of tests.

    Kept are the candidates with the fewest failures of all; a missing report counts as the failure of every test. Of
    these, those that pass the reproduction test are kept, if there are any. The most frequent patch wins, of equally
    frequent ones the first. If all that were kept are empty, all others vote.
    """
    failures = [selected if verdict.failures is None else verdict.failures for verdict in verdicts]
    fewest = min(failures, default=0)
    nonempty = [number for number, verdict in enumerate(verdicts) if verdict.patch]
    kept = [number for number in nonempty if failures[number] == fewest]
    kept = [number for number in kept if verdicts[number].resolves] or kept or nonempty
    if not kept:
        return None
    patch, votes = Counter(verdicts[number].patch for number in kept).most_common(1)[0]
    return Choice(next(number for number in kept if verdicts[number].patch == patch), votes, len(kept))


def interleaved(groups: Sequence[Sequence[T]]) -> list[T]:
    """Return the first of each group, then the second of each, and so on."""
    longest = max(map(len, groups), default=0)
    return [group[number] for number in range(longest) for group in groups if number < len(group)]


def normalised_patch(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return the patch between the files without comments, docstrings, layout and line numbers.

    One that only adds a function is compared without the lines around it.
    """
    parts: list[str] = []
    for path in sorted(after):
        old, new = (normalised(path, texts.get(path, "")) for texts in (before, after))
        patch = list(difflib.unified_diff(old, new, lineterm=""))[2:]
        lines = [line for line in patch if not line.startswith("@@")]
        added = [line[1:] for line in lines if line.startswith("+")]
        is_addition = not any(line.startswith("-") for line in lines) and functions("\n".join(added))
        if lines:
            parts.append("\n".join([path, *(added if is_addition else lines)]))
    return "\n".join(parts)


@lru_cache(maxsize=PARSED)
def normalised(path: str, text: str) -> Sequence[str]:
    """Return the lines of a file without comments, blank lines and, in Python, docstrings and layout."""
    tree = parse_python(path, text)
    if tree is None:
        return code_lines(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = list(_without_docstring(node.body)) or [ast.Pass()]
    try:
        return tuple(line for line in ast.unparse(tree).split("\n") if line)
    except RecursionError:
        return code_lines(text)


def _without_docstring(body: Sequence[ast.stmt]) -> Iterable[ast.stmt]:
    for number, node in enumerate(body):
        value = node.value if isinstance(node, ast.Expr) else None
        if number or not (isinstance(value, ast.Constant) and isinstance(value.value, str)):
            yield node

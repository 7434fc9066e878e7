"""The files that a task is about: those that the task names, and those with names of its text in their code."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

_MOST = 60
"""Maximum number of words to search for."""
_COMMON = 20
"""A word is too common to tell files apart if more than five, and more than one in this many, have it."""
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{3,}")
_INNER = re.compile(r"[a-z0-9][A-Z]|[A-Za-z0-9]_[A-Za-z0-9]")
"""What tells a name of code from an English word: a capital or an underscore inside."""
_MARKS = ("`", '"', "'")
_DEFINES = (
    "^[[:space:]]*((abstract|async|default|export|final|private|protected|pub|public|static) +)*"
    r"(class|const|def|enum|fn|func( +\([^()]*\))?|function|interface|let|module|struct|trait|type|var) +"
)
_END = "[[:space:]]*([^[:space:]A-Za-z0-9_`]|$|=|extends|implements|interface|struct)"
"""What follows a name that is defined, and no word of a sentence, such as "class should"."""
_DEFINED = 4
"""How many times more a file with the definition of a name counts than one that only uses it."""
_LONGEST_LINE = 160


@dataclass(frozen=True)
class Match:
    """A line of a file with a word of the task."""

    path: str
    number: int
    line: str
    word: str
    defines: bool


def patterns_of(text: str) -> list[str]:
    """Return extended regular expressions for lines with names of the text: definitions first, then uses.

    Any word may be defined. Uses are those of a name of code: one with a capital or an underscore inside, in quotes, or
    before a bracket.
    """
    names: dict[str, None] = {}
    words: dict[str, None] = {}
    for match in _WORD.finditer(text):
        before, after = text[max(0, match.start() - 1) : match.start()], text[match.end() : match.end() + 1]
        is_name = _INNER.search(match[0]) or after == "(" or (before in _MARKS and after == before)
        (names if is_name else words)[match[0]] = None
    uses = list(names)[:_MOST]
    defined = uses + [f"[{word[0].upper()}{word[0].lower()}]{word[1:]}" for word in list(words)[:_MOST]]
    patterns = [rf"{_DEFINES}({'|'.join(defined)}){_END}"] if defined else []
    return [*patterns, rf"\b({'|'.join(uses)})\b"] if uses else patterns


def matches_in(output: str, pattern: str) -> list[Match]:
    """Return the matches in the output of ``grep -HnZ`` with this pattern."""
    found: list[Match] = []
    searched, defined = (re.compile(text.replace("[:space:]", r"\s")) for text in (pattern, _DEFINES))
    for line in output.splitlines():
        path, _, rest = line.partition("\0")
        number, _, text = rest.partition(":")
        match = searched.search(text) if number.isdecimal() else None
        if match is not None:
            definition = defined.match(text)
            start = definition.end() if definition is not None and match.start() == 0 else 0
            word = _WORD.findall(match[0][start:])[0]
            defines = definition is not None and text.startswith(word, definition.end())
            line = text.strip()[:_LONGEST_LINE]
            found.append(Match(path.removeprefix("./"), int(number), line, word.lower(), defines))
    return found


def related(paths: Sequence[str], text: str, matches: Sequence[Match]) -> Mapping[str, Sequence[Match]]:
    """Return the files that the text is about, the likeliest first, with their matches.

    Files that the text names come first; then those whose matches, and whose own name if it is a word of the text, the
    fewest other files share. Of a common word the definitions count, unless they are common too.
    """
    words = {word.lower() for word in _WORD.findall(text)}
    with_word: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for match in matches:
        files = with_word[match.word]
        files[match.path] = max(files.get(match.path, 1), _DEFINED if match.defines else 1)
    for path in paths:
        if (stem := PurePosixPath(path).stem.lower()) in words:
            with_word[stem][path] = _DEFINED
    most = max(5, len(paths) // _COMMON)
    scores: defaultdict[str, float] = defaultdict(float)
    for files in with_word.values():
        defining = sum(weight == _DEFINED for weight in files.values())
        if len(files) > most:
            for path in [path for path, weight in files.items() if weight < _DEFINED]:
                del files[path]
        for path, weight in files.items() if len(files) <= most else ():
            scores[path] += weight / (defining if weight == _DEFINED else len(files))
    for path in paths:
        name = PurePosixPath(path).name
        if name in text and re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text):
            scores[path] += len(words) + (path in text)
    by_path: defaultdict[str, list[Match]] = defaultdict(list)
    for match in matches:
        if match.path in with_word[match.word] and len(with_word[match.word]) <= most:
            by_path[match.path].append(match)
    likeliest = sorted(scores, key=lambda path: (-scores[path], path))
    return {path: by_path.get(path, []) for path in likeliest}


def block_of(lines: Sequence[str]) -> Sequence[str]:
    """Return the lines of the definition that begins in the first one, none if its end is not among them."""
    depth = _indentation(lines[0])
    for number, line in enumerate(lines[1:], 1):
        if line.strip() and _indentation(line) <= depth:
            if line.lstrip().startswith("}"):
                return lines[: number + 1]
            if not line.lstrip().startswith((")", "]", "{")):  # which go on with the first line
                return lines[:number]
    return ()


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())

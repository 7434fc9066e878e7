"""Patterns of ``.gitignore`` files, matched as in git but by regular expressions that cannot backtrack at length.

A hostile file can contain any pattern, so no expression tries one position of a path twice: between two wildcards only
the earliest match is kept, which loses no match for single bytes, nor for whole names between two ``**``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

_SPECIAL = re.compile(rb"[*?\[\\]")
_CLASS_MEMBERS = {
    b"alnum": "[0-9A-Za-z]",
    b"alpha": "[A-Za-z]",
    b"blank": "[ \\t]",
    b"cntrl": "[\\x00-\\x1f\\x7f]",
    b"digit": "[0-9]",
    b"graph": "[!-~]",
    b"lower": "[a-z]",
    b"print": "[ -~]",
    b"punct": "[!-/:-@\\[-`{-~]",
    b"space": "[ \\t-\\r]",
    b"upper": "[A-Z]",
    b"xdigit": "[0-9A-Fa-f]",
}
_CLASSES = {
    name: frozenset(byte for byte in range(256) if re.fullmatch(members, chr(byte)))
    for name, members in _CLASS_MEMBERS.items()
}


_LONGEST = 10_000
"""Length limit of a pattern in bytes, more than any path has; longer ones are ignored."""


@dataclass(frozen=True)
class _Pattern:
    negated: bool
    only_directories: bool
    whole_path: bool
    source: bytes
    flags: re.RegexFlag

    @cached_property
    def matches(self) -> re.Pattern[bytes]:
        return re.compile(self.source, self.flags)


@dataclass
class Patterns:
    """The patterns of one file, for paths relative to the file's directory."""

    _patterns: list[_Pattern] = field(default_factory=list[_Pattern])
    _literals: set[bytes] = field(default_factory=set[bytes])
    _endings: tuple[bytes, ...] = ()
    _names: re.Pattern[bytes] | None = None
    _paths: re.Pattern[bytes] | None = None

    @classmethod
    def parse(cls, data: bytes, *, ignore_case: bool = False) -> Patterns:
        """Parse the content of an ignore file, dropping patterns that git can never match."""
        patterns = cls()
        names, paths, endings = list[bytes](), list[bytes](), list[bytes]()
        flags = re.DOTALL | (re.IGNORECASE if ignore_case else re.NOFLAG)
        for line in _lines(data):
            negated, line = line[:1] == b"!", line.removeprefix(b"!")
            only_directories, line = line[-1:] == b"/", line.removesuffix(b"/")
            whole_path = b"/" in line
            source = _translate_path(line.removeprefix(b"/")) if whole_path else _translate_name(line)
            if not source:
                continue
            patterns._patterns.append(_Pattern(negated, only_directories, whole_path, source, flags))
            if whole_path:
                paths.append(source)
            elif not ignore_case and not _SPECIAL.search(line):
                patterns._literals.add(line)
            elif not ignore_case and line[:1] == b"*" and not _SPECIAL.search(line[1:]):
                endings.append(line[1:])
            else:
                names.append(source)
        patterns._endings = tuple(endings)
        patterns._names, patterns._paths = (_union(sources, flags) for sources in (names, paths))
        return patterns

    def decide(self, name: bytes, path: bytes, *, is_directory: bool) -> bool | None:
        """Return whether the last matching pattern ignores the path; None if no pattern matches."""
        if not (
            name in self._literals
            or name.endswith(self._endings)
            or (self._names is not None and self._names.fullmatch(name))
            or (self._paths is not None and self._paths.fullmatch(path))
        ):
            return None
        for pattern in reversed(self._patterns):
            if pattern.only_directories and not is_directory:
                continue
            if pattern.matches.fullmatch(path if pattern.whole_path else name):
                return not pattern.negated
        return None


def _union(sources: list[bytes], flags: re.RegexFlag) -> re.Pattern[bytes] | None:
    return re.compile(b"|".join(b"(?:%b)" % source for source in sources), flags) if sources else None


def _lines(data: bytes) -> Iterator[bytes]:
    for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        if 0 < len(line) <= _LONGEST and not line.startswith(b"#"):
            content = line.removesuffix(b"\r").partition(b"\0")[0]
            stripped = content.rstrip(b" ")
            if stripped != content and (len(stripped) - len(stripped.rstrip(b"\\"))) % 2:
                stripped += b" "  # the first of the spaces is escaped
            yield stripped


def _translate_path(pattern: bytes) -> bytes | None:
    """Return the expression for a path; None if it can match nothing."""
    literal = pattern[: match.start()] if (match := _SPECIAL.search(pattern)) else pattern
    rest = pattern[len(literal) :]
    prefix = b""
    if rest.startswith(b"**") and not literal.endswith(b"/"):
        # Git compares the literal prefix first, and treats the rest as a separate pattern.
        prefix, pattern = re.escape(literal), rest
    components = list(_components(pattern))
    source = prefix
    # The literal prefix may be the whole name of the first directory.
    directories = b"(?:[^/]*/)" if prefix else b"(?:[^/]+/)"
    last = len(components) - 1
    deep, group = b"", b""
    for number, (component, more) in enumerate(components):
        if len(component) > 1 and not component.strip(b"*"):
            source += _group(deep, group, is_last=False)
            # Before an escaped slash, git does not let ``**`` match nothing.
            deep, group = directories + (b"*" if more == b"/" else b"+"), b""
            directories = b"(?:[^/]+/)"
            if number == last:
                return source + b".*"
            continue
        name = _translate_name(component)
        if name is None:
            return None
        group += name + (b"/" if number < last else b"")
    return source + _group(deep, group, is_last=True)


def _group(deep: bytes, group: bytes, *, is_last: bool) -> bytes:
    """Return the expression for the names after a ``**``; if more follow, only the earliest match is kept."""
    return deep + group if is_last or not deep else b"(?>%b?%b)" % (deep, group)


def _components(pattern: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Split at slashes outside brackets; yield each name with the slash after it, as written ("" after the last)."""
    start = at = 0
    while at < len(pattern):
        if pattern[at : at + 1] == b"[":
            at = _bracket(pattern, at + 1)[1]
        elif pattern[at : at + 1] == b"/" or pattern[at : at + 2] == b"\\/":
            slash = pattern[at : pattern.index(b"/", at) + 1]
            yield pattern[start:at], slash
            start = at = at + len(slash)
        else:
            at += 2 if pattern[at : at + 1] == b"\\" else 1
    yield pattern[start:], b""


def _translate_name(pattern: bytes) -> bytes | None:
    """Return the expression for one name; None if it can match nothing."""
    pieces: list[list[bytes]] = [[]]  # between stars; each member matches one byte
    at = 0
    while at < len(pattern):
        letter = pattern[at : at + 1]
        at += 1
        if letter == b"*":
            if pieces[-1] or len(pieces) == 1:
                pieces.append([])
        elif letter == b"?":
            pieces[-1].append(b"[^/]")
        elif letter == b"[":
            members, at = _bracket(pattern, at)
            if not members:
                return None
            pieces[-1].append(_one_of(members))
        else:
            if letter == b"\\":
                letter = pattern[at : at + 1]
                at += 1
                if not letter:
                    return None
            pieces[-1].append(re.escape(letter))
    first, *others = [b"".join(piece) for piece in pieces]
    if not others:
        return first
    *middle, last = others
    return first + b"".join(b"(?>[^/]*?%b)" % piece for piece in middle) + b"[^/]*" + last


def _one_of(members: frozenset[int]) -> bytes:
    edges = sorted(byte for byte in members if byte - 1 not in members)
    ends = sorted(byte for byte in members if byte + 1 not in members)
    return b"[%b]" % b"".join(b"\\x%02x-\\x%02x" % pair for pair in zip(edges, ends, strict=True))


def _bracket(pattern: bytes, at: int) -> tuple[frozenset[int], int]:
    """Return the bytes that a bracket matches (none if unterminated) and its end offset; ``at`` is after "["."""
    negated = pattern[at : at + 1] in (b"!", b"^") and at < len(pattern)
    at += negated
    members, previous, start = set[int](), b"", at
    while at < len(pattern):
        letter = pattern[at : at + 1]
        following = pattern[at + 1 : at + 2]
        if letter == b"]" and at > start:
            result = frozenset(range(256)) - members if negated else frozenset(members)
            return result - {ord("/")}, at + 1
        if letter == b"\\":
            members.update(following)
            previous, at = following, at + 2
        elif letter == b"-" and previous and following not in (b"", b"]"):
            upper = pattern[at + 2 : at + 3] if following == b"\\" else following
            members.update(range(previous[0], (upper or previous)[0] + 1))
            previous, at = b"", at + (3 if following == b"\\" else 2)
        elif letter == b"[" and following == b":":
            end = pattern.find(b"]", at + 2)
            if end < 0:
                break
            if pattern[end - 1 : end] != b":" or end - 1 < at + 2:
                members.add(letter[0])
                previous, at = letter, at + 1
                continue
            if pattern[at + 2 : end - 1] not in _CLASSES:
                break
            members |= _CLASSES[pattern[at + 2 : end - 1]]
            previous, at = b"", end + 1
        else:
            members.add(letter[0])
            previous, at = letter, at + 1
    return frozenset(), len(pattern)

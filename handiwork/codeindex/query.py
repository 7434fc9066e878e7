"""The query language: Lucene's, with the fields of blocks.

``max pool`` finds blocks with either word, the best first. ``AND``, ``OR``, ``NOT``, ``+``, ``-`` and parentheses
combine; ``"max pool"`` is a phrase, ``"max pool"~3`` its words at most three places apart; ``Conv*`` and ``Conv?d`` are
wildcards, ``/conv[123]d/`` a regular expression, ``recieve~`` finds words two letters off, ``^2`` weighs twice.
``field: x`` looks in one field; a backslash makes a reserved character literal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal, NoReturn

from handiwork.codeindex.blocks import TYPES

FIELDS = ("text", "type", "file_path", "lines", "name", "prototype", "docstring")
LONGEST, CLAUSES, DEEPEST = 2_000, 100, 20
"""Maximum characters of a query, of terms in it, and of parentheses within each other."""

Occurrence = Literal["should", "must", "must_not"]
TermKind = Literal["word", "phrase", "wildcard", "regex", "fuzzy", "range"]

_TERM_END = frozenset(' \t\r\n()[]{}"^~:')
_FIELD = re.compile(r"([A-Za-z_][\w.]*)\s*:")
_RANGE = re.compile(r"([\[{])\s*(\S+)\s+TO\s+(\S+?)\s*([\]}])")
_COMPARISON = re.compile(r"([<>])(=?)\s*(\d{1,9})(?!\w)")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_EQUALS_TYPE = re.compile(rf"type=({'|'.join(TYPES)})\b")
_OPERATORS = {"AND": "AND", "&&": "AND", "OR": "OR", "||": "OR", "NOT": "NOT", "!": "NOT"}


class QueryError(ValueError):
    """The query is not well formed; the message says where, and how to write it."""


@dataclass(frozen=True, slots=True)
class Term:
    """A term to find in ``field``; None means all text.

    ``text`` is without escapes; that of a "wildcard" is a regular expression, that of a "range" like "10 TO 20".
    ``slop`` is the distance of a phrase's words, or the number of letters a "fuzzy" word may be off.
    """

    field: str | None
    kind: TermKind
    text: str
    slop: int = 0
    boost: float = 1.0


@dataclass(frozen=True, slots=True)
class Group:
    """Clauses, each with whether a block should, must or must not match it."""

    clauses: tuple[tuple[Occurrence, QueryNode], ...]
    boost: float = 1.0


QueryNode = Term | Group


def parse_query(text: str) -> QueryNode:
    """Return the query's tree. Raises QueryError."""
    if len(text) > LONGEST:
        raise QueryError(f"The query has {len(text)} characters, at most {LONGEST} are allowed: ask for fewer words.")
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._at, self._terms = text, 0, 0

    def parse(self) -> QueryNode:
        if not self._text.strip():
            raise QueryError("The query is empty: write the words to look for, like text: pool AND type: CLASS.")
        node = self._disjunction(None, 0)
        if self._at < len(self._text):
            self._fail(f"{self._text[self._at]!r} closes nothing")
        return node

    def _disjunction(self, field: str | None, depth: int) -> QueryNode:
        if depth > DEEPEST:
            self._fail(f"parentheses are nested more than {DEEPEST} deep")
        clauses: list[tuple[Occurrence, QueryNode]] = []
        while True:
            self._blanks()
            if self._at >= len(self._text) or self._text[self._at] == ")":
                break
            if clauses and self._operator("OR"):
                pass
            elif (word := self._any_operator()) in ("AND", "OR"):
                self._fail(f"{word} has nothing on its left")
            clauses.append(self._conjunction(field, depth))
        if not clauses:
            self._fail("there is nothing to look for")
        return clauses[0][1] if len(clauses) == 1 and clauses[0][0] != "must_not" else Group(tuple(clauses))

    def _conjunction(self, field: str | None, depth: int) -> tuple[Occurrence, QueryNode]:
        clauses = [self._clause(field, depth)]
        while self._operator("AND"):
            clauses.append(self._clause(field, depth))
        if len(clauses) == 1:
            return clauses[0]
        required: list[tuple[Occurrence, QueryNode]] = [
            ("must_not" if occurrence == "must_not" else "must", node) for occurrence, node in clauses
        ]
        return "should", Group(tuple(required))

    def _clause(self, field: str | None, depth: int) -> tuple[Occurrence, QueryNode]:
        self._blanks()
        occurrence: Occurrence = "should"
        if self._operator("NOT"):
            occurrence = "must_not"
        elif self._peek() in ("+", "-"):
            occurrence = "must" if self._peek() == "+" else "must_not"
            self._at += 1
        self._blanks()
        if (name := self._field()) is not None:
            field = name
            self._blanks()
        return occurrence, self._boosted(self._primary(field, depth))

    def _field(self) -> str | None:
        match = _FIELD.match(self._text, self._at)
        if match is None:
            return None
        if match[1] not in FIELDS:
            self._fail(
                f"there is no field {match[1]!r}: the fields are {', '.join(FIELDS)}; a colon that belongs to a word "
                f"is written \\:, or the word in quotes"
            )
        self._at = match.end()
        return match[1]

    def _primary(self, field: str | None, depth: int) -> QueryNode:
        self._terms += 1
        if self._terms > CLAUSES:
            self._fail(f"the query has more than {CLAUSES} terms")
        letter = self._peek()
        if letter == "":
            self._fail(f"{'the field ' + field if field else 'the operator'} has nothing after it")
        if letter == "(":
            return self._parenthesis(field, depth)
        if letter == '"':
            return self._phrase(field)
        if letter in "<>" and field == "lines":
            return self._comparison()
        if letter in "[{":
            return self._range(field)
        if letter == "/" and field != "file_path":
            return self._regex(field)
        if letter in ")]}^~:":
            self._fail(f"{letter!r} stands where a word is expected; as part of a word it is written \\{letter}")
        return self._word(field)

    def _parenthesis(self, field: str | None, depth: int) -> QueryNode:
        start = self._at
        self._at += 1
        node = self._disjunction(field, depth + 1)
        if self._peek() != ")":
            self._at = start
            self._fail("the parenthesis is not closed")
        self._at += 1
        return node

    def _phrase(self, field: str | None) -> Term:
        start, letters = self._at, list[str]()
        self._at += 1
        while (letter := self._peek()) != '"':
            if letter == "":
                self._at = start
                self._fail("the quotation mark is not closed")
            letters.append(self._escaped() if letter == "\\" else letter)
            self._at += 1
        if not letters:
            self._at = start
            self._fail("there is nothing between the quotation marks")
        self._at += 1
        slop = self._number_after("~", 0)
        return Term(field, "phrase", "".join(letters), int(min(slop, 100)))

    def _range(self, field: str | None) -> Term:
        match = _RANGE.match(self._text, self._at)
        if match is None:
            self._fail("a range is written [10 TO 20], a bracket as part of a word with a backslash before it")
        if field != "lines":
            self._fail("only the field lines has ranges: lines:[10 TO 20]")
        bounds = [match[2], match[3]]
        if any(bound != "*" and not bound.isdecimal() for bound in bounds) or any(len(bound) > 9 for bound in bounds):
            self._fail("the bounds of a range of lines are numbers, or * for none")
        low = "1" if bounds[0] == "*" else str(int(bounds[0]) + (match[1] == "{"))
        high = "*" if bounds[1] == "*" else str(int(bounds[1]) - (match[4] == "}"))
        self._at = match.end()
        return Term(field, "range", f"{low} TO {high}")

    def _comparison(self) -> Term:
        match = _COMPARISON.match(self._text, self._at)
        if match is None:
            self._fail("lines are compared with a number: lines:>5, lines:>=5, lines:<5 or lines:<=5")
        self._at = match.end()
        bound, step = int(match[3]), 0 if match[2] else 1
        return Term("lines", "range", f"{bound + step} TO *" if match[1] == ">" else f"1 TO {bound - step}")

    def _regex(self, field: str | None) -> Term:
        end = self._at + 1
        while end < len(self._text) and self._text[end] != "/":
            end += 2 if self._text[end] == "\\" else 1
        if end >= len(self._text):
            self._fail("the regular expression is not closed by /; a slash that begins a word is written \\/")
        pattern = self._text[self._at + 1 : end].replace("\\/", "/")
        self._at = end + 1
        return Term(field, "regex", pattern)

    def _word(self, field: str | None) -> Term:
        if field is None and (match := _EQUALS_TYPE.match(self._text, self._at)):
            self._fail(f"a field is written with a colon: type: {match[1]}")
        letters, pattern, is_wildcard = list[str](), list[str](), False
        while (letter := self._peek()) and letter not in _TERM_END:
            if letter in "*?":
                is_wildcard = True
                if letter == "?" or pattern[-1:] != [".*"]:  # many stars in a row take a regular expression forever
                    pattern.append(".*" if letter == "*" else ".")
            else:
                letter = self._escaped() if letter == "\\" else letter
                pattern.append(re.escape(letter))
            letters.append(letter)
            self._at += 1
        if is_wildcard:
            return Term(field, "wildcard", "".join(pattern))
        if self._peek() == "~":
            distance = int(self._number_after("~", 2))
            if distance > 2:
                self._fail("a word may be at most 2 letters off: write ~1 or ~2")
            return Term(field, "fuzzy", "".join(letters), distance)
        if self._peek() == ":":
            self._fail(f"{''.join(letters)!r} is no field: they are {', '.join(FIELDS)}; a colon is written \\:")
        return Term(field, "word", "".join(letters))

    def _boosted(self, node: QueryNode) -> QueryNode:
        if self._peek() != "^":
            return node
        boost = self._number_after("^", 0)
        if not 0 < boost <= 1_000:
            self._fail("a weight is a number from 0 to 1000, like ^2")
        return replace(node, boost=boost)

    def _number_after(self, mark: str, default: float) -> float:
        if self._peek() != mark:
            return 0
        self._at += 1
        number = _NUMBER.match(self._text, self._at)
        if number is None:
            return default
        self._at = number.end()
        return float(number[0])

    def _escaped(self) -> str:
        """Return the character after a backslash; the parser then stands on it."""
        self._at += 1
        if not self._peek():
            self._fail("the query ends with a backslash; a backslash itself is written \\\\")
        return self._peek()

    def _operator(self, name: str) -> bool:
        self._blanks()
        if self._any_operator() != name:
            return False
        self._at += next(
            len(word) for word, operator in _OPERATORS.items() if operator == name and self._starts_with(word)
        )
        return True

    def _any_operator(self) -> str:
        return next((operator for word, operator in _OPERATORS.items() if self._starts_with(word)), "")

    def _starts_with(self, word: str) -> bool:
        if not self._text.startswith(word, self._at):
            return False
        following = self._text[self._at + len(word) : self._at + len(word) + 1]
        return not word.isalpha() or not (following.isalnum() or following in ("_", ":", "*", "?", "."))

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _blanks(self) -> None:
        while self._peek().isspace():
            self._at += 1

    def _fail(self, problem: str) -> NoReturn:
        raise QueryError(f"The query cannot be read at character {self._at + 1}: {problem}.")

"""Answers the query of a logic program in the open world: python3 solve.py FILE

Rules are applied to the facts until nothing new follows. A literal has its truth as its last argument, so that "not
round" is a fact like any other: nothing is false because it is not known.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

HEADINGS = ("Predicates", "Facts", "Rules", "Query")
LITERAL = re.compile(r"\s*(\w+)\s*\(([^()]*)\)\s*")
TRUTH = {"True": True, "False": False}


class ProgramError(Exception):
    """The program cannot be read; the message names the line."""


@dataclass(frozen=True)
class Literal:
    """A predicate of arguments, and whether it holds; an argument that begins with "$" is a variable."""

    predicate: str
    arguments: tuple[str, ...]
    truth: bool

    def variables(self) -> set[str]:
        """Return the variables among the arguments."""
        return {argument for argument in self.arguments if argument.startswith("$")}

    def bound(self, values: Mapping[str, str]) -> Literal:
        """Return the literal with its variables replaced by their values."""
        return Literal(self.predicate, tuple(values.get(one, one) for one in self.arguments), self.truth)

    def negated(self) -> Literal:
        """Return the opposite."""
        return Literal(self.predicate, self.arguments, not self.truth)


@dataclass(frozen=True)
class Rule:
    """If all ``conditions`` hold, so do all ``conclusions``; a fact has no conditions."""

    conditions: Sequence[Literal]
    conclusions: Sequence[Literal]


@dataclass(frozen=True)
class Program:
    """Facts and rules, and the statement in question."""

    rules: Sequence[Rule]
    query: Literal


def read(text: str) -> Program:
    """Return the program of a text; ":::" starts a comment. Raises ProgramError."""
    rules: list[Rule] = []
    query: Literal | None = None
    heading = ""
    for line in text.splitlines():
        code = line.split(":::")[0].strip()
        if not code:
            continue
        if code.rstrip(":") in HEADINGS:
            heading = code.rstrip(":")
        elif heading == "Facts":
            rules.append(Rule((), _literals(code)))
        elif heading == "Rules":
            conditions, arrow, conclusions = code.partition(">>>")
            if not arrow:
                raise ProgramError(f"a rule has the form CONDITION && ... >>> CONCLUSION, not {code!r}")
            rules.append(Rule(_literals(conditions), _literals(conclusions)))
        elif heading == "Query" and query is None:
            (query,) = _literals(code)[:1]
        elif heading != "Predicates":
            raise ProgramError(f"{code!r} is below no heading, or a second query: {', '.join(HEADINGS)}")
    if query is None:
        raise ProgramError("there is no Query:")
    if query.variables():
        raise ProgramError(f"the query has the variable {min(query.variables())}: ask about a name")
    return Program(rules, query)


def answer(program: Program) -> str:
    """Return "True" if the query follows, "False" if its opposite does, "Unknown" if neither does.

    "Contradiction" if both do: then the program is not that of a sound text.
    """
    known = consequences(program)
    match program.query in known, program.query.negated() in known:
        case True, True:
            return "Contradiction"
        case True, False:
            return "True"
        case False, True:
            return "False"
        case _:
            return "Unknown"


def consequences(program: Program) -> set[Literal]:
    """Return all literals without variables that follow from the facts by the rules."""
    literals = [program.query, *(one for rule in program.rules for one in (*rule.conditions, *rule.conclusions))]
    names = sorted({name for one in literals for name in one.arguments if not name.startswith("$")})
    known: set[Literal] = set()
    while True:
        new = {one for rule in program.rules for one in _fired(rule, known, names)} - known
        if not new:
            return known
        known |= new


def _fired(rule: Rule, known: set[Literal], names: Sequence[str]) -> Iterator[Literal]:
    """Yield the conclusions of a rule from the known facts; a variable without a condition stands for every name."""
    for values in _matches(rule.conditions, known, {}):
        for conclusion in rule.conclusions:
            free = sorted(conclusion.variables() - set(values))
            for chosen in product(names, repeat=len(free)):
                yield conclusion.bound({**values, **dict(zip(free, chosen, strict=True))})


def _matches(
    conditions: Sequence[Literal], known: set[Literal], values: Mapping[str, str]
) -> Iterator[Mapping[str, str]]:
    """Yield the values of the variables with which all conditions are known."""
    if not conditions:
        yield values
        return
    first = conditions[0].bound(values)
    for literal in known:
        if (more := _match(first, literal)) is not None:
            yield from _matches(conditions[1:], known, {**values, **more})


def _match(pattern: Literal, literal: Literal) -> dict[str, str] | None:
    """Return the values that make the pattern the literal, None if there are none."""
    if (pattern.predicate, pattern.truth) != (literal.predicate, literal.truth):
        return None
    if len(pattern.arguments) != len(literal.arguments):
        return None
    values: dict[str, str] = {}
    for variable, name in zip(pattern.arguments, literal.arguments, strict=True):
        if values.setdefault(variable, name if variable.startswith("$") else variable) != name:
            return None
    return {variable: name for variable, name in values.items() if variable.startswith("$")}


def _literals(code: str) -> tuple[Literal, ...]:
    return tuple(map(_literal, code.split("&&")))


def _literal(code: str) -> Literal:
    match = LITERAL.fullmatch(code)
    *arguments, truth = [part.strip() for part in match[2].split(",")] if match else [""]
    if match is None or truth not in TRUTH or not arguments or not all(arguments):
        raise ProgramError(
            f"a literal is like Predicate(name, True) or Predicate($x, name, False), not {code.strip()!r}"
        )
    return Literal(match[1], tuple(arguments), TRUTH[truth])


def main(path: str) -> int:
    """Print the answer to the program in a file, or why it has none; return the exit code."""
    try:
        print(answer(read(Path(path).read_text())))  # noqa: T201
    except (OSError, UnicodeDecodeError, ProgramError) as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

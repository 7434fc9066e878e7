"""The existing tests: a test command that names each test, and the tests that its output reports as passed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from handiwork.agents.repair.outcome import plain

PASSED = "PASS|Passed|ok|✓|✔|√"
"""Finds the lines of an output that may report a passed test."""

MOST_TESTS = 500
"""The maximum number of tests that guard a candidate; tests named like the suspicious files come first."""

MOST_REPORTED = 5_000
"""Passed tests that are read from one output."""

LONGEST_NAME = 200
"""Characters of a test's name."""

_NAMING = (
    (re.compile(r"(-m unittest\b(?: discover\b)?)"), r"\1 -v"),
    (re.compile(r"\bmanage\.py test\b"), "manage.py test -v 2"),
    (re.compile(r"\bgo test\b"), "go test -v"),
    (re.compile(r"(?<![\w.:@-])(jest|ctest)\b(?![./:@-])"), r"\1 --verbose"),
    (re.compile(r"(?<![\w.:@-])vitest run\b(?![:-])"), "vitest run --reporter=verbose"),
    (re.compile(r"(?<![\w.:@-])phpunit\b(?![./:@-])"), "phpunit --testdox"),
)
"""The rewrites of test runners' commands that make them name each test.

A folder, script or package may have a runner's name too, as in ``node node_modules/jest/bin/jest.js``.
"""

_TIME = r"(?: (?:\[\d[\d.]* ?m?s\]|\(?\d[\d.]* ?m?s\)?))?$"
"""Ends a line with the duration of a test, which differs from run to run."""

_REPORTS = (
    re.compile(r"^PASSED (\S.*)$"),  # pytest -rp
    re.compile(r"^(\S+::\S.*?) PASSED\b"),  # pytest -v
    re.compile(r"^\s*--- PASS: (\S+)"),  # go
    re.compile(r"^\s*ok \d+(?: - | )(.+?)(?: # .*)?" + _TIME),  # TAP, playwright
    re.compile(r"^(?:test )?(\S.*?) \.\.\. ok$"),  # unittest, cargo
    re.compile(r"^\s*[✓✔√] (.+?)" + _TIME),  # node, mocha, jest, vitest, bun, phpunit
    re.compile(r"^(\S.* > .+) PASSED$"),  # gradle
    re.compile(r"^\s*\d+/\d+ Test +#\d+: (\S+) \.+ +Passed\b"),  # ctest
)

_FILE = re.compile(r"^ *PASS +(?:\[ *[\d.]+s\] +)?(?:\( *\d+/\d+\) +)?(\S.*?)(?: \([\d.]+ m?s\))?$")
"""A line of jest, which names only the files if there are several, or of cargo nextest."""

_LINE = re.compile(r" \(line \d+\)$")
"""Ends the name of a documentation test of cargo; a candidate may move it."""


def reporting(check: str) -> str:
    """Return the test command so that it names each test that passes, if its runner is known, and reads no input."""
    for pattern, verbose in _NAMING:
        check = pattern.sub(verbose, check)
    return f'export PYTEST_ADDOPTS="-rpfE --continue-on-collection-errors $PYTEST_ADDOPTS"; {{ {check}\n}} < /dev/null'


def passed_tests(output: str, check: str, exit_code: int | None) -> list[str]:
    """Return the tests that the output reports as passed; the second of a name ends with " (2)", and so on.

    Many runners report a test's own name without that of its file. If the output names no test, files are the tests;
    if it names none of these, the command itself is the one test, which passes if its exit code is 0.
    """
    names: dict[str, None] = {}
    times = Counter[tuple[re.Pattern[str], str]]()
    lines = plain(output).splitlines()
    for line in lines:
        match = next(filter(None, (pattern.match(line) for pattern in _REPORTS)), None)
        if match is not None:
            name = _LINE.sub("", match[1])[:LONGEST_NAME]
            times[match.re, name] += 1
            number = times[match.re, name]
            names[name if number == 1 else f"{name} ({number})"] = None
    files = dict.fromkeys(match[1] for line in lines if (match := _FILE.match(line)))
    return list(names or files)[:MOST_REPORTED] or ([check] if exit_code == 0 else [])


def nearest(tests: Sequence[str], words: Sequence[str]) -> list[str]:
    """Return at most MOST_TESTS tests, first those with one of the words in their names."""
    named = [test for test in tests if any(word in test for word in words)]
    return list(dict.fromkeys([*named, *tests]))[:MOST_TESTS]

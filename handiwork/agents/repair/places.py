"""Localisation by the failure: which files to read, and which functions may make the check fail."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from handiwork.agents.repair.check import is_protected, is_test, named_files
from handiwork.agents.repair.functions import bare, classes, constants, definitions, functions, inline_tests

READ_MOST = 12
"""Maximum number of files read because of the failure."""

TESTS_READ = 3
"""Maximum number of tests read that the failure does not name."""

Act = Literal["rewrite", "add", "delete"]

_IMPORT = re.compile(
    r"^[ \t]*(?:(?:import|from|use|mod|export|source|include|require\w*|load)\b|\.[ ]|#[ \t]*include\b).*"
    r"|.*\b(?:require|import)[ \t]*\(.*",
    re.MULTILINE,
)
_DATA = {".md", ".rst", ".txt", ".csv", ".json", ".lock", ".svg", ".png", ".pdf", ".log", ".html", ".css"}
_MISSING = (
    re.compile(r"cannot import name '(\w+)'"),
    re.compile(r"name '(\w+)' is not defined"),
    re.compile(r"module '[\w.]+' has no attribute '(\w+)'"),
    re.compile(r"\b(?:\w+\.)*(\w+) is not (?:a function|defined|a constructor)\b"),
    re.compile(r"undefined: (?:\w+\.)*(\w+)"),
    re.compile(r"undefined (?:reference to|method|function|local variable or method) [`']?(?:\w+::)*(\w+)"),
    re.compile(r"implicit declaration of function [‘'`](\w+)"),
    re.compile(r"(?:cannot find (?:function|value)|unresolved import|no (?:\w+ )*item named) `(?:\w+::)*(\w+)"),
    re.compile(r"symbol:\s+(?:method|variable) (\w+)"),
    re.compile(r"(\w[\w-]*): (?:command )?not found"),
)
"""Messages of test runners about a function that does not exist."""
_MISSING_METHODS = (
    re.compile(r"(?<!module )'(?P<owner>\w+)'(?: object)? has no attribute '(?P<name>\w+)'"),
    re.compile(
        r"symbol:\s+method (?P<name>\w+).*\s+"
        r"location:\s+(?:class|interface|variable \w+ of type) (?:\w+\.)*(?P<owner>\w+)"
    ),
    re.compile(
        r"no (?:method|function or associated item) named `(?P<name>\w+)` found for .{0,20}`\W*(?:\w+::)*(?P<owner>\w+)"
    ),
    re.compile(r"type \*?(?:\w+\.)?(?P<owner>\w+) has no field or method (?P<name>\w+)"),
    re.compile(r"Property '(?P<name>\w+)' does not exist on type '(?P<owner>\w+)'"),
)
"""The same about a method of a class."""


class Place(NamedTuple):
    """A function or constant to rewrite, add or delete."""

    path: str
    name: str
    act: Act = "rewrite"


class Project(NamedTuple):
    """The known facts about a project: its check, the check's output, the paths listed, and the files read."""

    check: str
    output: str
    listed: Sequence[str]
    files: Mapping[str, str]

    @property
    def editable(self) -> dict[str, str]:
        """The files read that do not belong to the check, in the order of reading."""
        return {path: text for path, text in self.files.items() if not self.is_protected(path)}

    @property
    def tests(self) -> dict[str, str]:
        """The tests read, also those inside of other files, and the programs of the check itself."""
        named = named_files(self.check, self.listed)
        whole = {p: text for p, text in self.files.items() if is_test(p) or (p in named and self.is_protected(p))}
        inline = {p: "\n\n".join(test.text for test in inline_tests(text)) for p, text in self.editable.items()}
        return {**whole, **{path: text for path, text in inline.items() if text}}

    def is_protected(self, path: str) -> bool:
        """True if the file belongs to the check."""
        return is_protected(path, self.check, self.listed, self.files)


def files_to_read(project: Project, unreadable: set[str]) -> list[str]:
    """Return the files to read next for the failure, an empty list without a further lead.

    First those that the check and its output name, then tests, then imported files, then the neighbours in a small
    project.
    """
    room = READ_MOST - len(project.files)
    known = {*project.files, *unreadable}
    for paths in _leads(project):
        if found := [path for path in paths if path not in known][: max(0, room)]:
            return found
    return []


def suspects(project: Project) -> list[Place]:
    """Return the functions and constants that may make the check fail, the likeliest first.

    First come functions that do not exist, then those that the output names, the last named first, then those that the
    tests name, then those that these use, and at last all others. Of equally likely ones, functions come first.
    """
    editable, tests = project.editable, "\n".join(project.tests.values())
    by_file = {path: definitions(text) for path, text in editable.items()}
    ranks: dict[Place, tuple[int, int]] = {}
    for path, found in by_file.items():
        for name in found:
            mentions = list(_word(bare(name)).finditer(project.output))
            if mentions:
                ranks[Place(path, name)] = (0, -mentions[-1].start())
            elif _word(bare(name)).search(tests):
                ranks[Place(path, name)] = (1, 0)
    depth, called = 2, list(ranks)
    while called:
        bodies = "\n".join(by_file[place.path][place.name].text for place in called)
        names = (Place(path, name) for path, found in by_file.items() for name in found)
        called = [place for place in names if place not in ranks and _word(bare(place.name)).search(bodies)]
        ranks |= dict.fromkeys(called, (depth, 0))
        depth += 1
    rest = {Place(path, name): (depth, 0) for path, found in by_file.items() for name in found}
    values = {Place(path, name) for path, text in editable.items() for name in constants(text)}
    ranked = sorted({**rest, **ranks}.items(), key=lambda item: (item[1][0], item[0] in values, item[1][1]))
    return [*_missing(project), *(place for place, _ in ranked)]


def unread_programs(project: Project, unreadable: set[str]) -> list[str]:
    """Return the listed files that may be repaired and were not read."""
    known = {*project.files, *unreadable}
    return [path for path in _programs(project.listed) if path not in known and not project.is_protected(path)]


def _leads(project: Project) -> Iterator[Sequence[str]]:
    """Yield lists of paths, each to be read before the next one."""
    yield named_files(project.check, project.listed)
    yield _traced(project.listed, project.output)
    programs = _programs(project.listed)
    if not any(map(is_test, project.files)):
        yield [path for path in programs if is_test(path)][:TESTS_READ]
    imports = [
        (other, "\n".join(match[0] for match in _IMPORT.finditer(text))) for other, text in project.files.items()
    ]
    yield [path for path in programs if any(_imports(lines, path, other) for other, lines in imports)]
    folders = {_neighbourhood(path) for path in project.files if is_test(path)}
    yield [path for path in programs if _neighbourhood(path) in folders]
    if len(programs) <= READ_MOST:
        yield programs


def _programs(listed: Sequence[str]) -> list[str]:
    names = {path: PurePosixPath(path) for path in listed}
    return [
        path
        for path, name in names.items()
        if name.suffix.lower() not in _DATA and not name.name.startswith(".") and not name.name.isupper()
    ]


def _neighbourhood(path: str) -> tuple[str, str]:
    """Return the folder and suffix of a file: in some languages files of one folder need no imports."""
    name = PurePosixPath(path)
    return str(name.parent), name.suffix


def _traced(listed: Sequence[str], output: str) -> list[str]:
    """Return the files that an output names with a line number, tests first, then by their last mention.

    The end of a path counts if no other has it: Go and Java print a file's name alone, and the tests of a part of a
    project the path from there.
    """
    times = Counter(end for path in listed for end in _ends(path))
    last: dict[str, int] = {}
    for path in listed:
        for end in _ends(path):
            if end not in output or (end != path and times[end] > 1):
                continue
            before = r"(?<![\w-])" if end == path else r"(?<![\w/.-])(?:\./)?"
            for mention in re.finditer(rf"{before}{re.escape(end)}(?:[:(]|\", line )\d", output):
                last[path] = max(last.get(path, 0), mention.start())
    return sorted(last, key=lambda path: (not is_test(path), last[path]))


def _ends(path: str) -> list[str]:
    """Return the path, and what remains of it without its first folders."""
    parts = path.split("/")
    return ["/".join(parts[number:]) for number in range(len(parts))]


def _imports(lines: str, path: str, importer: str) -> bool:
    """True if the importer's ``lines`` that import something name the file."""
    name = PurePosixPath(path)
    if is_test(path) and name.suffix != PurePosixPath(importer).suffix:
        return False
    if name.stem in ("__init__", "index", "mod") and name.parent.name:
        name = name.parent
    return name.stem in lines and bool(_word(name.stem).search(lines))


def _missing(project: Project) -> list[Place]:
    """Return the functions that the output says do not exist, in the file that is likeliest to get them.

    A method's is that of its class; one of a class that no file to repair has is left out.
    """
    editable = project.editable
    found = [match for pattern in _MISSING_METHODS for match in pattern.finditer(project.output)]
    names = dict.fromkeys(name for pattern in _MISSING for name in pattern.findall(project.output))
    defined = {bare(name) for text in project.files.values() for name in functions(text)}
    places: list[Place] = []
    for owner, name in dict.fromkeys((match["owner"], match["name"]) for match in found):
        whole, home = f"{owner}.{name}", next((p for p, text in editable.items() if owner in classes(text)), "")
        if home and whole not in functions(editable[home]):
            places.append(Place(home, whole, "add"))
    methods = {match["name"] for match in found}
    for name in names:
        if name in defined or name in methods or not editable:
            continue
        lines = [line for text in project.tests.values() for line in text.splitlines() if _word(name).search(line)]
        clues = f"{project.output}\n" + "\n".join(lines)
        stems = {path: PurePosixPath(path).stem for path in editable}
        mentions = {path: len(_word(stem).findall(clues)) for path, stem in stems.items()}
        places.append(Place(max(editable, key=lambda path: mentions[path]), name, "add"))
    return places


def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")

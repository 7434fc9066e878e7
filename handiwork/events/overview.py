"""The overview of a workspace: the names of its files, the text of small ones, and the installed test programs."""

from __future__ import annotations

import heapq
import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from handiwork.events.action import FileReadAction, HookRunAction
from handiwork.events.base import Action, Observation, Run
from handiwork.events.observation import FileReadObservation, HookRunObservation
from handiwork.events.related_files import Match, block_of, matches_in, patterns_of, related

READ = 30
"""The most files of a small workspace, whose smallest files are read although there is no room for all."""
LONGEST = 6_000
"""Bytes of the longest file that is read."""

ADVICE = frozenset({"AGENTS.md", "CLAUDE.md", "SKILL.md"})
"""Files that advise agents: no agent reads them unasked, since their text joins the prompt once the user accepts it."""

PROGRAMS = (
    *("bash", "bats", "bundle", "cargo", "go", "gradle", "just", "make", "mix", "mvn", "node", "nox", "npm", "pytest"),
    *("python3", "sh", "swift", "tox"),
)
"""Programs that run tests."""

RUNNERS = frozenset({"Makefile", "justfile", "package.json"})
"""Files at the top whose text names the command that runs the tests."""

_RELATED = 8
"""Maximum number of files that are shown because the task seems to be about them."""
_LISTED = 4_000
"""Maximum number of files that are listed."""
_DEFINITIONS = 20
"""Maximum number of definitions searched for in a file."""
_LINES = 5
"""Maximum number of lines shown of such a file that is too long."""
_BLOCKS, _BLOCK = 2, 60
"""Maximum number of definitions shown of such a file, and of lines of each."""
_AROUND = 24
"""The most characters that stand beside a path in the list, or around a text."""
_ELSE = 50
"""The most characters of the other lines."""

# They run in a bash of their own, in which neither the shell's functions, nor programs or settings of the workspace,
# take part. If git lists no files, as where a repository around the workspace ignores it, the usual folders of tools
# are left out.
_FILES = (
    "(command git -c core.fsmonitor=false ls-files -zco --exclude-standard "
    "2>/dev/null | LC_ALL=C command grep -za . || command find . "
    r"\( -name .git -o -name node_modules -o -name __pycache__ -o -name .venv \) -prune -o -type f -print0)"
)
_LIST = "(PATH=/usr/local/bin:/usr/bin:/bin; {files} | command xargs -0 -r {program} 2>/dev/null | {end})"
_SIZES = _LIST.format(files=_FILES, program="wc -c --", end=f"command head -n {_LISTED}")
_FIND = f"builtin type -P {' '.join(PROGRAMS)}"  # runs none of them
_ENTRY = re.compile(r"\s*(\d+) (?:\./)?(.+)")


class WorkspaceOverviewAction(Action):
    """List the workspace's files and read some, about ``budget`` characters in all; nothing is changed.

    The files of RUNNERS are read first, and those that ``text`` names, or whose code defines a name of it; of others
    with such names, and of long files, the lines with them are shown, and short definitions whole. In a small workspace
    the smallest files follow. A third of the budget is for the list, which has the number of files instead of the names
    in folders for which there is no room. PROGRAMS are looked up on the PATH.
    """

    runnable: ClassVar[bool] = True
    budget: int
    text: str = ""

    async def execute(self, run: Run) -> Observation:
        """List the files with one command, read the chosen ones, look up the programs. Raises SandboxError."""
        listing = await run(HookRunAction(command=_SIZES, input="", directory="."))
        if not isinstance(listing, HookRunObservation):
            return listing
        sizes = _sizes(listing.text)
        is_cut = len(listing.text.splitlines()) >= _LISTED
        about = related(list(sizes), self.text, await self._matches(run))
        entries = _entries(sizes, about, self.budget // 3)
        left = self.budget - _ELSE - sum(len(entry) + _AROUND for entry in entries)
        files: dict[str, str] = {}
        for path in _chosen(sizes, about, left):
            observation = await run(FileReadAction(path=path))
            if isinstance(observation, FileReadObservation) and observation.blob is None:
                files[path] = observation.content
        blocks = {
            path: await _blocks(run, about[path]) for path in itertools.islice(about, _RELATED) if path not in files
        }
        found = await run(HookRunAction(command=_FIND, input="", directory="."))
        names = {_name(path) for path in found.text.splitlines()}
        return WorkspaceOverviewObservation(
            content=_text(sizes, entries, files, about, blocks, self.budget, is_cut=is_cut),
            paths=tuple(sorted(sizes)),
            files=len(sizes) + is_cut,
            shown=tuple(path for path, size in sizes.items() if path in files or not size),
            programs=tuple(name for name in PROGRAMS if name in names),
        )

    async def _matches(self, run: Run) -> list[Match]:
        found: dict[tuple[str, int], Match] = {}
        for pattern, most in zip(patterns_of(self.text), (_DEFINITIONS, _LINES)):  # noqa: B905 - one may be missing
            # A line of generated code may be as long as a file.
            end = "command cut -b 1-400 | command head -c 200000"
            command = _LIST.format(files=_FILES, program=f"grep -IHnZE -m {most} -e '{pattern}' --", end=end)
            output = await run(HookRunAction(command=command, input="", directory=".", timeout=10))
            for match in matches_in(output.text, pattern):
                found.setdefault((match.path, match.number), match)
        return [match for match in found.values() if _name(match.path) not in ADVICE]


async def _blocks(run: Run, matches: Sequence[Match]) -> dict[int, str]:
    """Return the first short definitions among the matches in a file, by the number of their first line."""
    blocks: dict[int, str] = {}
    for match in (match for match in matches if match.defines):
        read = await run(FileReadAction(path=match.path, start=match.number, end=match.number + _BLOCK))
        if isinstance(read, FileReadObservation) and read.blob is None:
            after = ["."] if read.end >= read.lines else []  # the file's end is that of the definition as well
            block = "\n".join(block_of([*read.content.splitlines(), *after])).rstrip()
            blocks |= {match.number: block} if block else {}
        if len(blocks) == _BLOCKS:
            break
    return blocks


class WorkspaceOverviewObservation(Observation):
    """``content`` has the first names, and texts; ``paths`` are the ``files`` by name, if all are known.

    ``shown`` are those whose text it has, or that are empty; ``programs`` the installed ones of PROGRAMS.
    """

    paths: tuple[str, ...] = ()
    files: int = 0
    shown: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()


def _sizes(listing: str) -> dict[str, int]:
    entries = (_ENTRY.fullmatch(line) for line in listing.splitlines())
    return {entry[2]: int(entry[1]) for entry in entries if entry is not None and entry[2] != "total"}


def _entries(sizes: Mapping[str, int], about: Iterable[str], budget: int) -> list[str]:
    """Return the paths to list, of files and, with "/" at their end, of folders whose files there is no room to list.

    Folders with the first files of ``about`` are opened first, then those near the top.
    """
    inside: defaultdict[str, set[str]] = defaultdict(set)
    for path in sizes:
        for folder in (*_folders(path), path):
            inside["".join(_folders(folder.rstrip("/"))[-1:])].add(folder)
    ranks: dict[str, int] = {}
    for rank, path in enumerate(itertools.islice(about, _RELATED)):
        ranks |= {folder: rank for folder in _folders(path) if folder not in ranks}
    entries, room = {""}, budget - _AROUND
    closed = [(0, 0, 0, "")]
    while closed:
        *_, folder = heapq.heappop(closed)
        cost = sum(len(entry) + _AROUND for entry in inside[folder]) - len(folder) - _AROUND
        if folder and cost > room:
            continue
        entries.remove(folder)
        entries |= inside[folder]
        room -= cost
        for entry in inside[folder] & inside.keys():
            rank = ranks.get(entry, _RELATED)
            heapq.heappush(closed, (rank, entry.count("/"), len(inside[entry]), entry))
    listed = sorted(entries)
    costs = itertools.accumulate(len(entry) + _AROUND for entry in listed)
    return [entry for entry, cost in zip(listed, costs, strict=True) if cost <= budget]


def _folders(path: str) -> list[str]:
    """Return the folders above a path, each with "/" at its end, the outermost first."""
    return [path[: match.end()] for match in re.finditer("/", path)]


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _chosen(sizes: Mapping[str, int], about: Mapping[str, Sequence[Match]], budget: int) -> Sequence[str]:
    readable = {path: size for path, size in sizes.items() if size and _name(path) not in ADVICE}
    whole = [path for path in list(about)[:_RELATED] if not about[path] or any(match.defines for match in about[path])]
    first = [
        path for path in dict.fromkeys([*(path for path in readable if path in RUNNERS), *whole]) if path in readable
    ]
    rest = sorted(readable.keys() - set(first), key=lambda path: (readable[path], path))
    costs = {path: size + len(path) + _AROUND for path, size in readable.items()}
    is_small = len(readable) <= READ or sum(costs.values()) <= budget
    chosen: list[str] = []
    for path in [*first, *(rest if is_small else [])]:
        if sizes[path] <= LONGEST and costs[path] <= budget:
            chosen.append(path)
            budget -= costs[path]
    return sorted(chosen)


def _text(
    sizes: Mapping[str, int],
    entries: Sequence[str],
    files: Mapping[str, str],
    about: Mapping[str, Sequence[Match]],
    blocks: Mapping[str, Mapping[int, str]],
    budget: int,
    *,
    is_cut: bool,
) -> str:
    if not sizes:
        return "The workspace has no files."
    names = [
        f"{entry} ({_lines(files.get(entry))}{sizes[entry]} bytes)" if entry in sizes else _closed(entry, sizes)
        for entry in entries
    ]
    more = sum(path not in entries and not any(folder in entries for folder in _folders(path)) for path in sizes)
    if is_cut:
        names.append("and many more files")
    elif more:
        names.append(f"and {more} more files")
    texts = [f"{path}:\n```\n" + text.removesuffix("\n") + "\n```" for path, text in files.items()]
    text = "\n\n".join(["Files:\n" + "\n".join(names), *texts])
    for path, definitions in blocks.items():
        others = [match for match in about[path] if match.number not in definitions]
        best = sorted(others, key=lambda match: (not match.defines, match.number))[:_LINES]
        lines = "\n".join(f"{m.number}: {m.line}" for m in sorted(best, key=lambda match: match.number))
        parts = [f"From line {number} of {path}:\n```\n{block}\n```" for number, block in definitions.items()]
        for part in [*parts, f"Lines of {path}:\n```\n{lines}\n```"] if lines else parts:
            if len(text) + 2 + len(part) <= budget:
                text += f"\n\n{part}"
    return text


def _closed(folder: str, sizes: Mapping[str, int]) -> str:
    number = sum(path.startswith(folder) for path in sizes)
    return f"{folder} ({number} file{'s' * (number != 1)})"


def _lines(text: str | None) -> str:
    if text is None:
        return ""
    number = len(text.splitlines())
    return f"{number} line{'s' * (number != 1)}, "

"""The overview of a workspace: the names of its files, the text of small ones, and the installed test programs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from handiwork.events.action import FileReadAction, HookRunAction
from handiwork.events.base import Action, Observation, Run
from handiwork.events.observation import FileReadObservation, HookRunObservation

LISTED = 200
"""Maximum number of files named."""
READ = 30
"""Maximum number of files read."""
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

# They run in a bash of their own, in which neither the shell's functions, nor programs or settings of the workspace,
# take part. If git lists no files, as where a repository around the workspace ignores it, the usual folders of tools
# are left out.
_LIST = (
    "(PATH=/usr/local/bin:/usr/bin:/bin; (command git -c core.fsmonitor=false ls-files -zco --exclude-standard "
    "2>/dev/null | LC_ALL=C command grep -za . || command find . "
    r"\( -name .git -o -name node_modules -o -name __pycache__ -o -name .venv \) -prune -o -type f -print0) "
    "| command xargs -0 -r wc -c 2>/dev/null | command head -n 2000)"
)
_FIND = f"builtin type -P {' '.join(PROGRAMS)}"  # runs none of them
_ENTRY = re.compile(r"\s*(\d+) (?:\./)?(.+)")


class WorkspaceOverviewAction(Action):
    """List the workspace's files and read small ones, at most ``budget`` characters in all; nothing is changed.

    Files whose name occurs in ``text`` are read first, then the smallest. PROGRAMS are looked up on the PATH.
    """

    runnable: ClassVar[bool] = True
    budget: int
    text: str = ""

    async def execute(self, run: Run) -> Observation:
        """List the files with one command, read the chosen ones, look up the programs. Raises SandboxError."""
        listing = await run(HookRunAction(command=_LIST, input="", directory="."))
        if not isinstance(listing, HookRunObservation):
            return listing
        sizes = _sizes(listing.text)
        files: dict[str, str] = {}
        remaining = self.budget - sum(len(path) for path in list(sizes)[:LISTED])
        for path in _chosen(sizes, self.text, remaining):
            observation = await run(FileReadAction(path=path))
            if isinstance(observation, FileReadObservation) and observation.blob is None:
                files[path] = observation.content
        found = await run(HookRunAction(command=_FIND, input="", directory="."))
        names = {path.rpartition("/")[2] for path in found.text.splitlines()}
        return WorkspaceOverviewObservation(
            content=_text(sizes, files),
            paths=tuple(sorted(sizes)),
            files=len(sizes),
            shown=tuple(path for path, size in sizes.items() if path in files or not size),
            programs=tuple(name for name in PROGRAMS if name in names),
        )


class WorkspaceOverviewObservation(Observation):
    """``content`` has the first names, and texts; ``paths`` are the ``files`` by name.

    ``shown`` are those whose text it has, or that are empty; ``programs`` the installed ones of PROGRAMS.
    """

    paths: tuple[str, ...] = ()
    files: int = 0
    shown: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()


def _sizes(listing: str) -> dict[str, int]:
    entries = (_ENTRY.fullmatch(line) for line in listing.splitlines())
    return {entry[2]: int(entry[1]) for entry in entries if entry is not None and entry[2] != "total"}


def _chosen(sizes: dict[str, int], text: str, budget: int) -> Sequence[str]:
    def rank(path: str) -> tuple[bool, int]:
        return path not in RUNNERS and path.rpartition("/")[2] not in text, sizes[path]

    chosen: list[str] = []
    readable = (path for path, size in sizes.items() if size and path.rpartition("/")[2] not in ADVICE)
    for path in sorted(readable, key=rank)[:READ]:
        if sizes[path] <= min(LONGEST, budget):
            chosen.append(path)
            budget -= sizes[path]
    return sorted(chosen)


def _text(sizes: dict[str, int], files: dict[str, str]) -> str:
    if not sizes:
        return "The workspace has no files."
    paths = sorted(sizes)
    names = [f"{path} ({_lines(files.get(path))}{sizes[path]} bytes)" for path in paths[:LISTED]]
    if len(paths) > LISTED:
        names.append(f"and {len(paths) - LISTED} more files")
    texts = [f"{path}:\n```\n" + text.removesuffix("\n") + "\n```" for path, text in files.items()]
    return "\n\n".join(["Files:\n" + "\n".join(names), *texts])


def _lines(text: str | None) -> str:
    if text is None:
        return ""
    number = len(text.splitlines())
    return f"{number} line{'s' * (number != 1)}, "

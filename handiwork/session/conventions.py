"""Brings the conventions of the project and the user into a session's log, from which its State and prompts have them.

They are read from the session's copy of the workspace, which no agent writes: an agent cannot add conventions.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from handiwork.agents.totals import Totals
from handiwork.context import agents, devcontainer, instructions, skills
from handiwork.context.characters import one_line
from handiwork.context.conventions import ABOVE, Convention, UnreadableError, digest, opened
from handiwork.context.discovery import ContextFinding, accept_command, at_begin, folders_of, in_folders, judge
from handiwork.context.trust import Trust
from handiwork.errors import WorkspaceError
from handiwork.events.action import CmdRunAction
from handiwork.events.base import Event
from handiwork.events.observation import (
    CmdOutputObservation,
    FileEditObservation,
    FileReadObservation,
    FileWriteObservation,
    IPythonRunCellObservation,
)
from handiwork.events.overview import WorkspaceOverviewObservation
from handiwork.events.record import ContextLoaded, ContextWithheld
from handiwork.sandbox.create import is_isolated
from handiwork.session.config import SessionConfig
from handiwork.settings import settings_file

STORE = "skills"
"""The folder in the data folder with the copies of the user's and packages' skills that sandboxes mount."""

STORE_AROUND = "skills_around"
"""The folder in the data folder with those of the folders around workspaces: sandboxes mount their workspace's only."""

SETUP_TIME = 600.0
"""Seconds for a command of devcontainer.json."""

NAMED, WORDS = 6, 200
"""Paths that one notice names; words of a command that are taken for paths."""

_WORD = re.compile(r"""[^\s'"`=:;|&<>(){}$,]+""")
_UNPROTECTED = "without a sandbox, nothing of a repository runs"


class Conventions:
    """The conventions of one session. Every method raises TrustError for an unusable file of accepted texts."""

    def __init__(self, config: SessionConfig, base: Path, data: Path) -> None:
        """``base`` is the session's copy of the workspace, as the session found it; ``data`` the data folder."""
        self._config, self._base, self._data = config, base, data
        self._workspace, self._trust = Path(config.workspace), Trust(data)
        self._folders: set[str] = set()
        self._is_set_up = False

    async def at_begin(self, totals: Totals) -> list[Event]:
        """Return the events for conventions that load before the first step, or do not, without those in the log."""
        return await asyncio.to_thread(self._at_begin, totals)

    async def joining(self, events: Sequence[Event], totals: Totals) -> list[Event]:
        """Return the events for conventions of folders that these observations are the first to work in."""
        folders: set[str] = set()
        for event in events:
            if paths := list(_paths(event))[:WORDS]:
                cwd = event.cwd if isinstance(event, CmdOutputObservation) else ""
                folders |= folders_of(paths, totals.workspace) | folders_of(paths, totals.workspace, cwd)
        if not (new := folders - self._folders):
            return []
        self._folders |= new
        return await asyncio.to_thread(self._in_folders, new, totals)

    async def setup(self, totals: Totals) -> list[Event]:
        """Return the event of an accepted devcontainer.json that is not in the log yet, and the actions it asks for."""
        return await asyncio.to_thread(self._setup, totals)

    def _at_begin(self, totals: Totals) -> list[Event]:
        found = at_begin(self._workspace, settings_file().parent, copy=self._base)
        findings = judge(found, self._workspace, self._trust)
        # Of the folders that the agent has worked in, the user may have accepted more since.
        below = [path for path in totals.withheld if not path.startswith((ABOVE, "/", f"{agents.FOLDER}/"))]
        folders = {path.rpartition("/")[0] for path in below if path.endswith(instructions.NAMES)}
        loaded = [self._loaded(finding.convention) for finding in findings if finding.state == "loads"]
        withheld = self._withheld(findings, totals)
        here = {event.path for event in loaded}.union(*(event.paths for event in withheld))
        events = [*_gone(here, totals), *_new(loaded, totals), *withheld]
        return [*events, *self._in_folders(folders - {""}, totals, here)]

    def _in_folders(self, folders: Iterable[str], totals: Totals, known: Container[str] = ()) -> list[Event]:
        found = [
            one for one in in_folders(self._base, folders) if one.path not in totals.context and one.path not in known
        ]
        used = sum(len(event.text) for event in totals.context.values() if event.category == "instructions")
        findings = judge(found, self._workspace, self._trust, used)
        loaded = [self._loaded(finding.convention) for finding in findings if finding.state == "loads"]
        return [*_new(loaded, totals), *self._withheld(findings, totals)]

    def _setup(self, totals: Totals) -> list[Event]:
        with opened(self._base) as root:
            found = devcontainer.find(root, self._workspace)
        convention, container = found or (None, None)
        if convention is None or container is None or self._is_set_up:
            return []
        if not self._trust.accepts(self._workspace, convention.path, convention.sha256):
            return []
        if not is_isolated(self._config.sandbox):
            path = convention.path
            told = ContextWithheld(paths=(path,), content=f"{path} is not used: {_UNPROTECTED}")
            return [told] if convention.text and path not in totals.withheld else []
        self._is_set_up = True
        if convention.path in totals.context:  # the shell of a new process has lost the environment alone
            return _runs(container.exports())
        notes = list(convention.notes)
        if container.image is not None and container.image != self._config.image:
            notes.append(f"its image {container.image} is used with --image {devcontainer.REQUEST} only")
        # Each in a shell of its own: one that changes its folder or exits leaves the agent's as it is.
        own_shells = [f"( {command}\n)" for command in container.commands]
        return [self._loaded(convention, notes), *_runs([*container.exports(), *own_shells])]

    def _loaded(self, convention: Convention, notes: Sequence[str] | None = None) -> ContextLoaded:
        path, text = convention.path, convention.text
        problem: tuple[str, ...] = ()
        if convention.kind == "skill" and (convention.origin != "workspace" or path.startswith(ABOVE)):
            try:
                path = str(
                    skills.copy_skill(convention, _store(convention, self._data, self._workspace), self._workspace)
                )
            except (OSError, UnreadableError, WorkspaceError) as error:
                problem = (f"it could not be copied for the sandbox, which cannot read it: {error}",)
        return ContextLoaded(
            category=convention.kind,
            origin=convention.origin,
            path=path,
            text=text,
            sha256=convention.sha256,
            tokens=convention.tokens,
            note="; ".join((*(convention.notes if notes is None else notes), *problem)),
        )

    def _withheld(self, findings: Iterable[ContextFinding], totals: Totals) -> list[ContextWithheld]:
        """Return the notice of conventions that do not load, except those the log has a notice of."""
        others = [
            finding
            for finding in findings
            if finding.state not in ("loads", "on request")
            and not finding.convention.redundant
            and finding.convention.path not in totals.withheld
        ]
        if not others:
            return []
        waiting = [_name(finding) for finding in others if finding.waits_for_user]
        broken = [f"{_name(finding)} ({finding.why})" for finding in others if not finding.waits_for_user]
        command = accept_command(self._workspace)
        lines = [f"not loaded until you accept them: {_listed(waiting)}; see `{command}`"] if waiting else []
        lines += [f"not loaded: {_listed(broken)}"] if broken else []
        paths = tuple(finding.convention.path for finding in others)
        return [ContextWithheld(paths=paths, content="; ".join(lines))]


def install_skills(data: Path, workspace: Path) -> list[Path]:
    """Copy skills that are not in the workspace into the data folder; return the folders to mount for them.

    They are those of the user, of packages, and the accepted ones of the folders around the workspace. Without skills
    there are no folders. A skill that cannot be copied is left out: its event says so. Raises TrustError.
    """
    own = [*skills.of_user(settings_file().parent / skills.USER), *skills.of_packages(), *skills.around(workspace)]
    stores = {data / STORE}
    for finding in judge(own, workspace, Trust(data)):
        # A skill that yields to one with the same name is copied too: after a resume it may be the one that loads.
        if not finding.convention.problem and not finding.waits_for_user:
            stores.add(store := _store(finding.convention, data, workspace))
            with suppress(OSError, UnreadableError, WorkspaceError):
                skills.copy_skill(finding.convention, store, workspace)
    return sorted(store for store in stores if store.is_dir())


def _store(skill: Convention, data: Path, workspace: Path) -> Path:
    """Return the folder of a skill's copy; that of a repository's skill is for sessions in this workspace only."""
    if skill.origin != "workspace":
        return data / STORE
    return data / STORE_AROUND / digest(os.fsencode(workspace))[:16]


def _runs(commands: Iterable[str]) -> list[Event]:
    return [CmdRunAction(command=line, source="environment", timeout=SETUP_TIME) for line in commands]


def _new(loaded: Iterable[ContextLoaded], totals: Totals) -> list[Event]:
    before = {path: event.sha256 for path, event in totals.context.items()}
    return [event for event in loaded if before.get(event.path) != event.sha256]


def _gone(here: Container[str], totals: Totals) -> list[Event]:
    """Return the notice of conventions from outside the session's copy that are not ``here`` any more."""
    gone = [
        event
        for path, event in totals.context.items()
        if path not in here
        and event.category in ("instructions", "skill")
        and (event.origin != "workspace" or path.startswith((ABOVE, "/")))
    ]
    if not gone:
        return []
    # The path of a skill's copy would tell the user nothing.
    names = [
        f"the skill {event.text.partition(':')[0]}" if event.category == "skill" else one_line(event.path)
        for event in gone
    ]
    text = f"deleted, changed or replaced, and no longer loaded as before: {_listed(names)}"
    return [ContextWithheld(paths=tuple(event.path for event in gone), content=text)]


def _name(finding: ContextFinding) -> str:
    return one_line(finding.convention.path) + (" (changed)" if finding.state == "changed" else "")


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _paths(event: Event) -> Iterator[str]:
    """Yield the paths of files that an observation is about; of commands, the words that may be paths."""
    match event:
        case FileReadObservation(path=path) | FileWriteObservation(path=path) | FileEditObservation(path=path):
            yield path
        case WorkspaceOverviewObservation(shown=shown):
            yield from shown
        case CmdOutputObservation(command=text):
            if event.cwd:
                yield f"{event.cwd}/."
            yield from (word for word in _WORD.findall(text) if "/" in word)
        case IPythonRunCellObservation(code=text):
            yield from (word for word in _WORD.findall(text) if "/" in word)
        case _:
            pass

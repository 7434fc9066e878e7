"""Discovery: the conventions that a session in a folder loads, and those it does not load, with the reasons."""

from __future__ import annotations

import os
import posixpath
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from handiwork.context import agents, devcontainer, instructions, skills
from handiwork.context.conventions import LONGEST_TOGETHER, Convention, exists, folders_around, opened
from handiwork.context.trust import Trust, Verdict
from handiwork.workspace.files.safe_open import open_folder

ACCEPT = "handiwork context --accept"

_SERVERS = "servers that a repository names are not started"
_SETTINGS = "hooks and settings of a repository have no effect"
_TEXT = "not a file that Handiwork knows: put the text in AGENTS.md"
_TEXTS = "not a folder that Handiwork knows: put the texts in AGENTS.md"

UNREAD = {
    ".mcp.json": _SERVERS,
    ".cursor/mcp.json": _SERVERS,
    ".vscode/mcp.json": _SERVERS,
    ".claude/settings.json": _SETTINGS,
    ".claude/settings.local.json": _SETTINGS,
    ".codex/config.toml": _SETTINGS,
    ".gemini/settings.json": _SETTINGS,
    "opencode.json": _SETTINGS,
    ".envrc": "direnv is not run",
    ".vscode/tasks.json": "an editor's tasks are not run",
    ".cursorrules": _TEXT,
    ".windsurfrules": _TEXT,
    ".github/copilot-instructions.md": _TEXT,
    "AGENTS.override.md": _TEXT,
    "CLAUDE.local.md": _TEXT,
    "GEMINI.md": _TEXT,
    ".claude/rules": _TEXTS,
    ".cursor/rules": _TEXTS,
    ".github/instructions": _TEXTS,
    ".claude/agents": f"not agents that Handiwork knows: put micro agents in {agents.FOLDER}",
}
"""Files and folders of other tools that no session reads, each with the consequence."""

State = Literal["loads", "nested", "on request", "not accepted", "changed", "left out"]


@dataclass(frozen=True)
class ContextFinding:
    """A convention with its ``state`` in a session, and ``why``.

    "loads": from the session's begin. "nested": once the agent works in its folder. "on request": in no prompt by
    itself: the settings of a devcontainer.json, and a micro agent, which a user, an agent or a trigger names. "not
    accepted" and "changed": the user decides. "left out": never.
    """

    convention: Convention
    state: State
    why: str

    @property
    def waits_for_user(self) -> bool:
        """Whether the user's acceptance would change the state."""
        return self.state in ("not accepted", "changed")


def accept_command(workspace: Path) -> str:
    """Return the command that asks about the texts of a workspace, for a shell in the current directory."""
    return ACCEPT if Path.cwd() == workspace else f"{ACCEPT} {shlex.quote(str(workspace))}"


def at_begin(workspace: Path, user: Path, *, copy: Path | None = None, packages: bool = True) -> list[Convention]:
    """Return the conventions of the user, of packages and of the workspace that may load before the first step.

    The workspace's files are read from its ``copy`` if there is one; ``user`` is the settings folder. Raises
    WorkspaceError.
    """
    found = instructions.of_user(user)
    with opened(copy or workspace) as descriptor:
        top = instructions.in_folder(descriptor)
        found += [*top, *instructions.around(workspace, top)]
        found += [*skills.of_workspace(descriptor), *skills.around(workspace)]
        found += skills.of_user(user / skills.USER)
        found += skills.of_packages() if packages else []
        found += agents.of_repository(descriptor, workspace)
        if (container := devcontainer.find(descriptor, workspace)) is not None:
            found.append(container[0])
    return found


def in_folders(root: Path, folders: Iterable[str]) -> list[Convention]:
    """Return the instructions in folders below the top, the outermost first. Raises WorkspaceError."""
    found: dict[str, Convention] = {}
    with opened(root) as descriptor:
        for folder in sorted(folders, key=_depth):
            try:
                os.close(open_folder(descriptor, folder))
            except OSError:
                continue  # it is not a folder of the workspace, or is a link
            found.update({one.path: one for one in instructions.in_folder(descriptor, folder)})
    return list(found.values())


def everything(root: Path, user: Path, trust: Trust) -> list[ContextFinding]:
    """Return all conventions in a workspace, nested ones too, each with its state. Raises TrustError."""
    with opened(root) as descriptor:
        below = instructions.folders_below(descriptor)
        folders = [folder for folder, names in below if not names.isdisjoint(instructions.NAMES)]
    first = judge(at_begin(root, user), root, trust)
    known = {finding.convention.path for finding in first}
    nested = [convention for convention in in_folders(root, folders) if convention.path not in known]
    return [*first, *(_nested(finding) for finding in judge(nested, root, trust))]


def of_repository(workspace: Path, trust: Trust, *, copy: Path | None = None) -> list[ContextFinding]:
    """Return the micro agents of a workspace and of the folders around it, each with its state.

    The workspace's files are read from its ``copy`` if there is one. Raises TrustError, WorkspaceError.
    """
    with opened(copy or workspace) as descriptor:
        return judge(agents.of_repository(descriptor, workspace), workspace, trust)


def accepted_agents(findings: Iterable[ContextFinding], workspace: Path) -> dict[Path, str]:
    """Return the texts of the accepted micro agents among the findings, by absolute path."""
    accepted = (one.convention for one in findings if one.state == "on request" and one.convention.kind == "agent")
    return {Path(os.path.normpath(workspace / agent.path)): agent.text for agent in accepted}


def judge(conventions: Sequence[Convention], workspace: Path, trust: Trust, used: int = 0) -> list[ContextFinding]:
    """Return each convention with its state; ``workspace`` is the user's directory, for which texts are accepted.

    ``used`` counts the characters of instructions that a session has loaded before. Raises TrustError.
    """
    findings: list[ContextFinding] = []
    names: dict[str, str] = {}
    # Of instructions the user's own count first, of skills with one name the workspace's.
    ordered = sorted(conventions, key=lambda one: (one.origin == "workspace") == (one.kind == "instructions"))
    for convention, verdict in zip(ordered, trust.verdicts(workspace, ordered), strict=True):
        finding = _judge(convention, verdict)
        if finding.state == "loads" and convention.kind == "instructions":
            used += len(convention.text)
            if used > LONGEST_TOGETHER:
                why = f"all instructions together may have {LONGEST_TOGETHER} characters"
                finding = ContextFinding(convention, "left out", why)
        if finding.state == "loads" and convention.kind == "skill":
            other = names.setdefault(convention.text.partition(":")[0], convention.path)
            if other != convention.path:
                finding = ContextFinding(convention, "left out", f"{other} has the same name")
        findings.append(finding)
    order = {id(convention): number for number, convention in enumerate(conventions)}
    return sorted(findings, key=lambda finding: order[id(finding.convention)])


def folders_of(paths: Iterable[str], workspace: str, cwd: str = "") -> set[str]:
    """Return the folders below the top of ``workspace`` in which the files are, with all folders around them.

    ``paths`` and ``cwd`` are as the sandbox sees them; relative paths start at ``cwd``, by default the workspace. One
    that ends with ``/`` or ``/.`` is that of a folder.
    """
    folders: set[str] = set()
    for path in paths:
        absolute = posixpath.normpath(posixpath.join(workspace, cwd, posixpath.dirname(path)))
        if not absolute.startswith(f"{workspace}/"):
            continue
        folder = absolute[len(workspace) + 1 :]
        while folder and folder not in folders:
            folders.add(folder)
            folder = posixpath.dirname(folder)
    return folders


def unread(workspace: Path) -> Iterator[tuple[str, str]]:
    """Yield the paths in and around a workspace that no session in it reads, each with the reason.

    Raises WorkspaceError.
    """
    with opened(workspace) as descriptor:
        yield from _unread_in(descriptor, "")
        yield from devcontainer.unused(descriptor)
        for folder, names in instructions.folders_below(descriptor):
            for place in (agents.FOLDER, *skills.PLACES):
                if place.partition("/")[0] in names and exists(descriptor, f"{folder}/{place}"):
                    yield f"{folder}/{place}", f"below the workspace: a session that starts in {folder} has it"
    for prefix, descriptor in folders_around(workspace):
        yield from _unread_in(descriptor, prefix)


def _unread_in(root: int, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield the paths of one open folder that no session reads; ``prefix`` comes before them."""
    yield from ((prefix + path, why) for path, why in UNREAD.items() if exists(root, path))
    for path in agents.below_folder(root):
        yield prefix + path, f"in a folder of its own: put it in {agents.FOLDER}"


def _judge(convention: Convention, verdict: Verdict) -> ContextFinding:
    if convention.problem:
        return ContextFinding(convention, "left out", convention.problem)
    match verdict:
        case "own":
            why = "yours" if convention.origin == "user" else "of an installed package"
            return ContextFinding(convention, "loads", why)
        case "accepted":
            state: State = "loads" if convention.kind in ("instructions", "skill") else "on request"
            return ContextFinding(convention, state, "accepted by you")
        case "changed":
            return ContextFinding(convention, "changed", f"changed since you accepted it: {ACCEPT}")
        case "new":
            return ContextFinding(convention, "not accepted", f"not accepted: {ACCEPT}")


def _nested(finding: ContextFinding) -> ContextFinding:
    if finding.state != "loads":
        return finding
    folder = finding.convention.folder
    return ContextFinding(finding.convention, "nested", f"accepted by you; joins when the agent works in {folder}/")


def _depth(folder: str) -> tuple[int, str]:
    return folder.count("/"), folder

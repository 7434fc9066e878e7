"""``handiwork context``: the conventions that a session in a folder loads, and those it leaves out, with reasons."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rich.text import Text

from handiwork.agents.micro.catalog import read_catalog
from handiwork.cli.dialog.acceptance import review
from handiwork.cli.errors import say
from handiwork.cli.terminal.jsonlines import write_json
from handiwork.cli.terminal.view import terminal_console
from handiwork.context import devcontainer
from handiwork.context.characters import one_line
from handiwork.context.conventions import Convention, opened, tokens_of
from handiwork.context.discovery import (
    ACCEPT,
    ContextFinding,
    State,
    accept_command,
    accepted_agents,
    everything,
    unread,
)
from handiwork.context.trust import Trust
from handiwork.errors import Exit, WorkspaceError
from handiwork.paths import data_dir, home_dir
from handiwork.settings import SettingsError, settings_file

SECTIONS: Sequence[tuple[str, tuple[State, ...]]] = (
    ("In every prompt of a session in {}:", ("loads",)),
    ("Once the agent works in their folder:", ("nested",)),
    ("Used, and in no prompt by itself:", ("on request",)),
    ("Waiting for you:", ("not accepted", "changed")),
    ("Not loaded:", ("left out",)),
)
WIDEST = 48
"""Columns of the paths; longer ones move the rest of their line."""


def context(path: Path, as_json: bool, accept: bool, yes: bool) -> Exit:
    """Show the conventions that a session in ``path`` loads; ``accept`` asks about waiting ones, ``yes`` accepts them.

    Raises SettingsError, TrustError, WorkspaceError.
    """
    workspace, trust = path.expanduser().resolve(), Trust(data_dir())
    if not workspace.is_dir():
        raise WorkspaceError(f"{workspace} is not a directory: name the one that a session would work in")
    if yes and not accept:
        raise SettingsError("--yes needs --accept: together they accept everything without asking")
    user = settings_file().parent
    if accept:
        _accept([one for one in everything(workspace, user, trust) if one.waits_for_user], workspace, trust, yes)
    findings = _with_catalog(everything(workspace, user, trust), workspace)
    if as_json:
        for finding in findings:
            write_json(json.dumps(_row(finding), ensure_ascii=False))
        for file, why in unread(workspace):
            write_json(json.dumps({"path": file, "state": "left out", "why": why}, ensure_ascii=False))
        return Exit.FINISHED
    console = terminal_console()
    for line in _lines(findings, workspace):
        console.print(line, soft_wrap=True)
    return Exit.FINISHED


def _accept(waiting: Sequence[ContextFinding], workspace: Path, trust: Trust, yes: bool) -> None:
    if not waiting:
        say("there is nothing to accept")
    elif yes:
        trust.answer(workspace, [finding.convention for finding in waiting], accept=True)
        for finding in waiting:
            say(f"accepted {one_line(finding.convention.path)}, SHA-256 {finding.convention.sha256}")
    elif not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise SettingsError("--accept shows the texts and asks, which needs a terminal: add --yes to accept unseen")
    else:
        review(waiting, workspace, trust, terminal_console())
        print()  # noqa: T201 - the list follows


def _with_catalog(findings: Sequence[ContextFinding], workspace: Path) -> list[ContextFinding]:
    """Return the findings with the micro agents and knowledge of the user, and the knowledge of packages.

    Accepted files that are broken, or have the name of a nearer one, are left out.
    """
    accepted = accepted_agents(findings, workspace)
    catalog = read_catalog(accepted)
    usable = [*catalog.agents.values(), *catalog.knowledge.values()]
    broken = {one.source: f"line {one.line}: {one.why}" if one.line else one.why for one in catalog.problems}
    checked: list[ContextFinding] = []
    for finding in findings:
        path = Path(os.path.normpath(workspace / finding.convention.path))
        if path in accepted and path not in catalog.packages:
            why = broken.pop(str(path), "a nearer file has its name")
            checked.append(replace(finding, state="left out", why=why))
        else:
            checked.append(finding)
    for micro in usable:
        package, words = catalog.packages[micro.path], ", ".join(micro.keys.triggers)
        if micro.path not in accepted and (words or not package):
            own = Convention("agent", "package" if package else "user", str(micro.path))
            why = (f"of the package {package}" if package else "yours") + (
                f"; joins at the words {words}" if words else ""
            )
            checked.append(ContextFinding(own, "on request", why))
    for path, why in broken.items():
        checked.append(ContextFinding(Convention("agent", "user", path, problem=why), "left out", why))
    return checked


def _lines(findings: Sequence[ContextFinding], workspace: Path) -> Iterator[Text]:
    others = list(unread(workspace))
    if not findings and not others:
        yield Text(f"A session in {one_line(str(workspace))} loads nothing besides its task.")
        own = one_line(_home(str(settings_file().parent / "AGENTS.md")))
        yield Text(f"Put conventions in its AGENTS.md, or your own in {own}.", "dim")
        return
    widths = [len(_path(finding)) for finding in findings] + [len(path) for path, _ in others]
    width = min(WIDEST, max(widths))
    first = True
    for heading, states in SECTIONS:
        rows = [line for finding in findings if finding.state in states for line in _finding(finding, width, workspace)]
        if states == ("left out",):
            rows += [_line(path, "", why, width, "dim") for path, why in others]
        if rows:
            yield Text(("" if first else "\n") + heading.format(one_line(str(workspace))), "bold")
            yield from rows
            first = False
    tokens = sum(finding.convention.tokens for finding in findings if finding.state == "loads")
    yield Text(f"\nabout {tokens} tokens in every prompt")
    if any(finding.waits_for_user for finding in findings):
        yield Text(f"`{one_line(accept_command(workspace))}` shows what waits for you, and asks", "yellow")


def _finding(finding: ContextFinding, width: int, workspace: Path) -> Iterator[Text]:
    convention, why = finding.convention, finding.why.partition(f": {ACCEPT}")[0]
    if convention.kind == "skill" and convention.size:
        why += f"; {tokens_of(convention.size)} tokens more when the agent reads it"
    waits = finding.waits_for_user
    style = "yellow" if waits else "" if finding.state != "left out" else "dim"
    tokens = f"{convention.tokens} tokens" if convention.tokens else ""
    yield _line(_path(finding), tokens, why, width, style)
    notes: Iterable[str] = convention.notes
    if convention.kind == "devcontainer" and not convention.problem:
        notes = [*_uses(convention.path, workspace), *notes]
    for note in notes:
        yield Text(f"    {one_line(note)}", "bold yellow" if note.startswith("WARNING") else "dim")


def _uses(path: str, workspace: Path) -> Iterator[str]:
    """Yield the commands and the image that a devcontainer.json requests."""
    with opened(workspace) as root:
        found = devcontainer.find(root, workspace)
    if found is None or found[1] is None or found[0].path != path:
        return
    for command in found[1].shell_commands():
        yield f"runs in the sandbox: {' '.join(command.split())}"
    if found[1].image is not None:
        yield f"image {found[1].image}, used with --image {devcontainer.REQUEST} only"


def _line(path: str, tokens: str, why: str, width: int, style: str) -> Text:
    return Text(f"  {path:{width}}  {tokens:>13}  {one_line(why)}".rstrip(), style)


def _path(finding: ContextFinding) -> str:
    return one_line(_home(finding.convention.path))


def _home(path: str) -> str:
    home = home_dir()
    return f"~/{path[len(str(home)) + 1 :]}" if home is not None and path.startswith(f"{home}/") else path


def _row(finding: ContextFinding) -> dict[str, object]:
    convention = finding.convention
    return {
        "path": convention.path,
        "category": convention.kind,
        "origin": convention.origin,
        "state": finding.state,
        "why": finding.why,
        "tokens": convention.tokens,
        "tokens_on_demand": tokens_of(convention.size),
        "sha256": convention.sha256,
        "notes": convention.notes,
    }

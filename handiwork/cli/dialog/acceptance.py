"""Asks the user to accept the conventions of a repository, after showing them."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from handiwork.cli.terminal.output_lines import coloured_diff_line
from handiwork.cli.terminal.view import terminal_console
from handiwork.context.characters import one_line
from handiwork.context.conventions import Convention
from handiwork.context.discovery import ContextFinding, accept_command, at_begin, judge
from handiwork.context.trust import Trust
from handiwork.paths import data_dir
from handiwork.settings import settings_file

OFFER = "read them, and decide on each? (y, or n to work without them) "
QUESTION = "accept {}? (y, n to refuse, q to decide later) "
ABOUT = {
    "instructions": "Accepted, it stands in every prompt, as advice.",
    "skill": "Accepted, its name and description stand in every prompt; the agent may read and run the rest.",
    "agent": "Accepted, it defines an agent that runs when its name is given, or text that joins at a word of yours.",
    "devcontainer": "Accepted, its environment and postCreateCommand are run in the sandbox.",
}


def offer(workspace: Path) -> None:
    """Ask at the terminal about conventions of a session's beginning that are new or changed, and not refused yet.

    Raises TrustError, WorkspaceError.
    """
    trust = Trust(data_dir())
    findings = judge(at_begin(workspace, settings_file().parent, packages=False), workspace, trust)
    waiting = [finding for finding in findings if finding.waits_for_user]
    if not any(not trust.refused(workspace, finding.convention) for finding in waiting):
        return
    console = terminal_console()
    console.print(Text("This folder has conventions for agents that you have not accepted:", "bold"), soft_wrap=True)
    for finding in waiting:
        change = " (changed since you accepted it)" if finding.state == "changed" else ""
        console.print(Text(f"  {one_line(finding.convention.path)}{change}"), soft_wrap=True)
    match _ask(OFFER):
        case True:
            review(waiting, workspace, trust, console)
        case False:
            trust.answer(workspace, [finding.convention for finding in waiting], accept=False)
            told = f"You are asked again when they change; `{one_line(accept_command(workspace))}` asks at once."
            console.print(Text(told, "dim"), soft_wrap=True)
        case None:
            pass


def review(findings: Sequence[ContextFinding], workspace: Path, trust: Trust, console: Console) -> None:
    """Show each text, or its changes, and ask about it. Raises TrustError."""
    for finding in findings:
        convention = finding.convention
        console.print()
        for line in lines_to_judge(finding, trust.accepted_text(workspace, convention.path)):
            console.print(line, soft_wrap=True)
        answer = _ask(QUESTION.format(one_line(convention.path)))
        if answer is None:
            break
        trust.answer(workspace, [convention], accept=answer)


def lines_to_judge(finding: ContextFinding, accepted: str) -> Iterator[Text]:
    """Yield the lines by which a user judges a convention: its effect, its warnings, and its text or its changes."""
    convention = finding.convention
    yield Text(one_line(convention.path), "bold cyan")
    yield Text(ABOUT[convention.kind], "dim")
    for note in convention.notes:
        yield Text(one_line(note), "bold yellow")
    if accepted:
        yield Text("What has changed since you accepted it:", "dim")
        difference = list(difflib.unified_diff(_lines(accepted), _lines(convention.shown), n=3, lineterm=""))[2:]
        yield from (coloured_diff_line(Text(f"  {line}")) for line in difference)
    else:
        yield from _text(convention)


def _text(convention: Convention) -> Iterator[Text]:
    for line in _lines(convention.shown):
        yield Text.assemble(("  | ", "dim"), line)


def _lines(text: str) -> list[str]:
    return text.rstrip("\n").split("\n")


def _ask(question: str) -> bool | None:
    """Return the user's yes or no; None for q, the end of the input, or anything else twice."""
    for _ in range(2):
        sys.stdout.write(question)
        sys.stdout.flush()
        answer = sys.stdin.readline()
        word = answer.strip().lower()
        if word in ("y", "yes"):
            return True
        if word in ("n", "no"):
            return False
        if word in ("q", "quit") or not answer:
            return None
    return None

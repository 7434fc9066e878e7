"""The check of a task: a command that shows whether the work is right."""

from __future__ import annotations

import re

from handiwork.agents.repair.check import named_test, runner, runner_files
from handiwork.agents.state import State
from handiwork.events.action import MessageAction
from handiwork.events.overview import WorkspaceOverviewObservation

_FILE = r"^{}:\n```\n(.*?)^```$"


def check_of(state: State) -> str:
    """Return the test command that the user names last, else the project's as its overview shows; "" without one.

    A command without a word for testing or checking does not count: it may be an example, or the program to write.
    """
    messages = [a.content for a, _ in state.history if isinstance(a, MessageAction) and a.source == "user"]
    named = [check for message in messages if (check := named_test(message))]
    if named:
        return named[-1]
    overview = next((o for _, o in state.history if isinstance(o, WorkspaceOverviewObservation)), None)
    if overview is None:
        return ""
    files = {path: text for path in runner_files(overview.paths) if (text := _text(overview, path))}
    return runner(overview.paths, files) or ""


def _text(overview: WorkspaceOverviewObservation, path: str) -> str:
    match = re.search(_FILE.format(re.escape(path)), overview.text, re.MULTILINE | re.DOTALL)
    return match[1] if match else ""

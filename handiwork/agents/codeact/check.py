"""The check of a task: a command that shows whether the work is right."""

from __future__ import annotations

import re
from dataclasses import replace

from handiwork.agents.repair.check import named_test, programs, runner, runner_files
from handiwork.agents.state import State
from handiwork.events.action import MessageAction
from handiwork.events.overview import WorkspaceOverviewObservation

_FILE = r"^{}:\n```\n(.*?)^```$"


def check_of(state: State) -> str:
    """Return the test command that the user names last, else the project's; "" without one.

    A command without a word for testing or checking does not count: it may be an example, or the program to write.
    """
    messages = [a.content for a, _ in state.history if isinstance(a, MessageAction) and a.source == "user"]
    named = [check for message in messages if (check := named_test(message))]
    return named[-1] if named else _project_check(state)


def with_check(state: State) -> State:
    """Return the state for a prompt, in which the overview of the workspace ends with the project's test command."""
    if not (check := _project_check(state)):
        return state
    history = [
        (action, observation.with_fields(content=f"{observation.content}\n\nThe tests are run with `{check}`."))
        if isinstance(observation, WorkspaceOverviewObservation)
        else (action, observation)
        for action, observation in state.history
    ]
    return replace(state, history=history)


def _project_check(state: State) -> str:
    """Return the test command that the overview of the workspace shows, "" if it shows none that can run."""
    overview = next((o for _, o in state.history if isinstance(o, WorkspaceOverviewObservation)), None)
    if overview is None:
        return ""
    files = {path: text for path in runner_files(overview.paths) if (text := _text(overview, path))}
    check = runner(overview.paths, files) or ""
    return check if {*programs(check)} <= {*overview.programs, "unittest"} else ""


def _text(overview: WorkspaceOverviewObservation, path: str) -> str:
    match = re.search(_FILE.format(re.escape(path)), overview.text, re.MULTILINE | re.DOTALL)
    return match[1] if match else ""

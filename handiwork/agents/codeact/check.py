"""The check of a task: a command that shows whether the work is right."""

from __future__ import annotations

import re

from handiwork.agents.history import messages_of_user
from handiwork.agents.repair.check import is_test, named_files, named_test, programs, runner, runner_files
from handiwork.agents.state import State
from handiwork.events.observation import ErrorObservation, FileWriteObservation
from handiwork.events.overview import WorkspaceOverviewAction, WorkspaceOverviewObservation

_CUT_OFF = ("interrupted", "crashed")
"""The ``error_id`` of an action that did not run, or not to its end."""

_FILE = r"^{}:\n```\n(.*?)^```$"


def check_of(state: State) -> str:
    """Return the test command that the user names last, else the project's; "" without one.

    A command without a word for testing or checking does not count: it may be an example, or the program to write. Nor
    does one that runs a file that the agent has made, unless that is a test.
    """
    made = [
        o.path for _, o in state.history if isinstance(o, FileWriteObservation) and o.created and not is_test(o.path)
    ]
    found = (check for message in messages_of_user(state.history) if (check := named_test(message.content)))
    named = [check for check in found if not named_files(" ".join(check.split()[:2]), made)]
    return named[-1] if named else project_check(overview_of(state))[0]


def first_look(state: State, budget: int) -> WorkspaceOverviewAction | None:
    """Return the action that shows the workspace before the first reply, None if there is one already.

    One that the user has interrupted, or that a crash has cut off, is none. Its text is at most ``budget`` characters,
    and about all that the user has said: the first message may be a "hi".
    """
    looks = (o for action, o in state.history if isinstance(action, WorkspaceOverviewAction))
    if any(not (isinstance(o, ErrorObservation) and o.error_id in _CUT_OFF) for o in looks):
        return None
    text = "\n".join(message.content for message in messages_of_user(state.history))
    return WorkspaceOverviewAction(budget=budget, text=text)


def overview_of(state: State) -> WorkspaceOverviewObservation | None:
    """Return the overview of the workspace, None before it."""
    return next((o for _, o in state.history if isinstance(o, WorkspaceOverviewObservation)), None)


def is_empty(state: State) -> bool:
    """Return whether the workspace had no files when it was looked at."""
    overview = overview_of(state)
    return overview is not None and not overview.files


def project_check(overview: WorkspaceOverviewObservation | None) -> tuple[str, str]:
    """Return the test command that the overview of the workspace shows, "" for none that can run; and what it lacks."""
    if overview is None:
        return "", ""
    files = {path: text for path in runner_files(overview.paths) if (text := shown_text(overview, path))}
    check = runner(overview.paths, files) or ""
    missing = [name for name in programs(check) if name not in (*overview.programs, "unittest")]
    if missing == ["pytest"] and not any(path.endswith(".py") for path in files):
        return "", ""  # unittest may run tests whose text is not known
    return ("", missing[0]) if missing else (check, "")


def shown_text(overview: WorkspaceOverviewObservation, path: str) -> str:
    """Return the text of a file that the overview of the workspace shows, "" if it shows none."""
    match = re.search(_FILE.format(re.escape(path)), overview.text, re.MULTILINE | re.DOTALL)
    return match[1] if match else ""

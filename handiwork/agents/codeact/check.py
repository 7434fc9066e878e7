"""The check of a task: a command that shows whether the work is right."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import PurePosixPath

from handiwork.agents.repair.check import is_test, named_files, named_test, programs, runner, runner_files
from handiwork.agents.state import State
from handiwork.events.action import MessageAction
from handiwork.events.base import Action, Observation
from handiwork.events.observation import AgentDelegateObservation, CmdOutputObservation, FileWriteObservation
from handiwork.events.overview import WorkspaceOverviewAction, WorkspaceOverviewObservation

_NOT_FOUND = 127
_NO_MODULE = re.compile(r"python[\d.]*: No module named ")
_NO_FILE = re.compile(r"^(?:ba|da)?sh: (?:line \d+: )?(?!\S*\bbin/)\S+: No such file or directory$", re.MULTILINE)
_NO_IMPORT = re.compile(
    r"^(?:ModuleNotFoundError|\S*python[\d.]*): No module named '?(\w+)(?![\w.]*__main__)", re.MULTILINE
)
_PROSE = re.compile(r"[:,;.!?]: command not found$", re.MULTILINE)
"""What bash says of a text instead of a command: that its first word, with a mark at its end, is no program."""
_FILE = r"^{}:\n```\n(.*?)^```$"


def check_of(state: State) -> str:
    """Return the test command that the user names last, else the project's; "" without one.

    A command without a word for testing or checking does not count: it may be an example, or the program to write. Nor
    does one that runs a file that the agent has made, unless that is a test.
    """
    messages = [a.content for a, _ in state.history if isinstance(a, MessageAction) and a.source == "user"]
    made = [
        o.path for _, o in state.history if isinstance(o, FileWriteObservation) and o.created and not is_test(o.path)
    ]
    found = (check for message in messages if (check := named_test(message)))
    named = [check for check in found if not named_files(" ".join(check.split()[:2]), made)]
    return named[-1] if named else _project_check(overview_of(state))[0]


def with_facts(state: State) -> State:
    """Return the state for a prompt.

    The overview of the workspace ends with the project's test command, or without network with what is missing for it.
    Without network a command whose program is missing comes with the advice to go on without it, and a text instead of
    a command with the advice to finish, as has a repair that succeeded. After a failed import of a module of the
    workspace, the model is told where it is.
    """
    overview = overview_of(state)
    if overview is None:  # the model is not guided
        return state
    network = state.totals.network
    history: list[tuple[Action, Observation | None]] = []
    for action, observation in state.history:
        fact = ""
        if isinstance(observation, WorkspaceOverviewObservation):
            check, missing = _project_check(observation)
            fact = f"\n\nThe tests are run with `{check}`." if check else ""
            fact += f"\n\nThe tests cannot run here: {missing} is not installed." if missing and not network else ""
        elif is_repair(observation):
            fact = "\nIf the task asks for nothing more, `finish` now."
        elif isinstance(observation, CmdOutputObservation) and _PROSE.search(observation.text):
            fact = "\nThese lines are no commands. What you have to tell belongs in `finish`."
        elif isinstance(observation, CmdOutputObservation) and observation.error:
            fact = _import_path(observation, overview, state.workspace)
            if not (fact or network) and lacks_program(observation):
                fact = "\nIt is not installed: go by the files, and say at the end what could not be run."
        if observation is not None and fact:
            observation = observation.with_fields(content=f"{observation.content}{fact}")
        history.append((action, observation))
    return replace(state, history=history)


def is_repair(observation: Observation | None) -> bool:
    """Return whether the observation is that of a RepairAgent that has made the check pass."""
    match observation:
        case AgentDelegateObservation(agent="RepairAgent", outcome="finished"):
            return True
        case _:
            return False


def lacks_program(observation: CmdOutputObservation) -> bool:
    """Return whether a command failed because a program, or a module that Python runs, is not installed."""
    if observation.exit_code == _NOT_FOUND:
        return not _NO_FILE.search(observation.text)  # a script that is not there is no program
    return observation.error and bool(_NO_MODULE.search(observation.text))


def _import_path(observation: CmdOutputObservation, overview: WorkspaceOverviewObservation, workspace: str) -> str:
    """Return how Python finds a module of the workspace that it did not find, "" if that was not the error."""
    match = _NO_IMPORT.search(observation.content)
    if match is None:
        return ""
    for path in map(PurePosixPath, overview.paths):
        for folder, name in zip(path.parents, reversed(path.parts), strict=False):
            if name in (match[1], f"{match[1]}.py"):
                where = folder if observation.cwd == workspace else PurePosixPath(workspace, folder)
                return f"\n{match[1]} is a module of the workspace: write PYTHONPATH={where} before the command."
    return ""


def first_look(state: State, budget: int) -> WorkspaceOverviewAction | None:
    """Return the action that shows the workspace before the first reply, None if there is one already.

    Its text is at most ``budget`` characters.
    """
    if any(isinstance(action, WorkspaceOverviewAction) for action, _ in state.history):
        return None
    return WorkspaceOverviewAction(budget=budget, text=state.task)


def overview_of(state: State) -> WorkspaceOverviewObservation | None:
    """Return the overview of the workspace, None before it."""
    return next((o for _, o in state.history if isinstance(o, WorkspaceOverviewObservation)), None)


def _project_check(overview: WorkspaceOverviewObservation | None) -> tuple[str, str]:
    """Return the test command that the overview of the workspace shows, "" for none that can run; and what it lacks."""
    if overview is None:
        return "", ""
    files = {path: text for path in runner_files(overview.paths) if (text := _text(overview, path))}
    check = runner(overview.paths, files) or ""
    missing = [name for name in programs(check) if name not in (*overview.programs, "unittest")]
    if missing == ["pytest"] and not any(path.endswith(".py") for path in files):
        return "", ""  # unittest may run tests whose text is not known
    return ("", missing[0]) if missing else (check, "")


def _text(overview: WorkspaceOverviewObservation, path: str) -> str:
    match = re.search(_FILE.format(re.escape(path)), overview.text, re.MULTILINE | re.DOTALL)
    return match[1] if match else ""

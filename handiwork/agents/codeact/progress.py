"""A task's progress, read from its history: the failing command, the files read, the attempts made."""

from __future__ import annotations

import math
import re
from itertools import takewhile
from pathlib import PurePosixPath

from handiwork.agents.state import State
from handiwork.events.action import (
    AgentFinishAction,
    CmdRunAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    IPythonRunCellAction,
)
from handiwork.events.base import Action, Observation
from handiwork.events.observation import (
    CmdOutputObservation,
    ErrorObservation,
    FileEditObservation,
    FileReadObservation,
)

Pair = tuple[Action, Observation | None]

OVERVIEW = (
    "git ls-files -co --exclude-standard 2>/dev/null | head -n 200 | grep . || find * -type f 2>/dev/null | head -n 200"
)
"""Lists the files of the workspace, one per line."""

PATIENCE = 12
"""Replies without an edit after which a model may finish although a command still fails."""

_FAILED = re.compile(r"(\d+) (failed|failures?|errors?)\b")

READ_UNASKED = 5
"""Maximum number of files read without a request from the model."""


def is_test(path: str) -> bool:
    """True if the path is named like a test."""
    name = PurePosixPath(path)
    return name.stem.startswith("test_") or name.stem.endswith(("_test", ".test", ".spec")) or "tests" in name.parts


def listed_files(state: State) -> list[str]:
    """Return the files that the overview listed."""
    for action, observation in state.history:
        if _is_overview(action) and isinstance(observation, CmdOutputObservation):
            return observation.text.splitlines()
    return []


def is_blank(state: State) -> bool:
    """True if the workspace had no files when they were listed, so there is nothing to repair."""
    return not lacks_overview(state) and not listed_files(state)


def _is_overview(action: Action) -> bool:
    return isinstance(action, CmdRunAction) and action.command == OVERVIEW


def visible(state: State) -> list[Pair]:
    """Return the history without reverted edits and all steps between an edit and its reversal.

    A small model repeats its failed attempts if it sees them; without them it starts over.
    """
    pairs: list[Pair] = []
    for pair in state.history:
        start = _reverted_index(pairs, pair[0])
        if start is None:
            pairs.append(pair)
        else:
            del pairs[start:]
    return pairs


def undo(action: FileEditAction) -> FileEditAction:
    """Return the edit that reverts ``action``."""
    return FileEditAction(path=action.path, old=action.new, new=action.old, thought="That did not help.")


def _reverted_index(pairs: list[Pair], action: Action) -> int | None:
    if not isinstance(action, FileEditAction) or action.completion is not None:
        return None
    for position in range(len(pairs) - 1, -1, -1):
        edit = pairs[position][0]
        if isinstance(edit, FileEditAction) and (edit.path, edit.old, edit.new) == (
            action.path,
            action.new,
            action.old,
        ):
            return position
    return None


def useless_edit(state: State) -> FileEditAction | None:
    """Return the edit before the failing command's last run, if that run fails no less than the previous run."""
    pairs = visible(state)
    failure = failing(state)
    if failure is None or len(pairs) < 2 or pairs[-1][1] is not failure[1]:
        return None
    edit = pairs[-2][0]
    if not isinstance(edit, FileEditAction) or not isinstance(pairs[-2][1], FileEditObservation) or not edit.new:
        return None
    previous = next(
        (o for a, o in reversed(pairs[:-2]) if isinstance(a, CmdRunAction) and a.command == failure[0]), None
    )
    return edit if previous is not None and _failures(failure[1].text) >= _failures(previous.text) else None


def _failures(output: str) -> tuple[float, float]:
    """Return (errors, failures) from the test runner's summary; without a summary both are infinite, the worst."""
    counts = {"error": 0.0, "fail": 0.0}
    matches = _FAILED.findall(output)
    for number, kind in matches:
        counts["error" if kind.startswith("error") else "fail"] += int(number)
    return (counts["error"], counts["fail"]) if matches else (math.inf, math.inf)


def attempts(state: State) -> int:
    """Return the number of the model's edits that failed or were reverted."""
    return sum(
        isinstance(action, FileEditAction) and (action.completion is None or isinstance(observation, ErrorObservation))
        for action, observation in state.history
    )


def failing(state: State) -> tuple[str, CmdOutputObservation] | None:
    """Return the command that failed last and has not succeeded since, with its last output; None without one.

    A stopped command counts as failed, unless it waited for input. Without files there is nothing to repair: only
    the command was wrong.
    """
    if is_blank(state):
        return None
    failure: tuple[str, CmdOutputObservation] | None = None
    command, needs_input = "", False
    for action, observation in visible(state):
        if isinstance(action, CmdRunAction) and isinstance(observation, CmdOutputObservation):
            command, needs_input = action.command or command, bool(needs_input and not action.command)
            needs_input = needs_input or observation.status == "input"
            if observation.error and not needs_input:
                failure = (command, observation)
            elif failure is not None and command == failure[0] and observation.status == "done":
                failure = None
    return failure


def patience(state: State, command: str) -> float | None:
    """Return the timeout of a check's next run in seconds; None if it has not run yet.

    A check that did not end by itself gets little time: once its endless loop is repaired, it ends soon.
    """
    runs = [(a, o) for a, o in state.history if isinstance(a, CmdRunAction) and a.command == command and o is not None]
    if not runs:
        return None
    action, observation = runs[0]
    if isinstance(observation, CmdOutputObservation) and observation.status == "done":
        return 15 + 5 * (observation.timestamp - action.timestamp).total_seconds()
    return 15.0


def read_files(state: State) -> dict[str, str]:
    """Return the files that were read whole, with later edits applied, the last read last."""
    files: dict[str, str] = {}
    for action, observation in state.history:
        match action, observation:
            case FileReadAction(path=path), FileReadObservation(start=1, blob=None) if (
                observation.end >= observation.lines
            ):
                files.pop(path, None)
                files[path] = observation.content
            case FileEditAction(path=path, old=old, new=new), FileEditObservation() if path in files:
                files[path] = files[path].replace(old, new, 1)
            case _:
                pass
    return files


def next_to_read(state: State) -> str | None:
    """Return a file to read before the model call: the file of a failed edit, or a file related to a failing check."""
    action, observation = state.history[-1]
    if isinstance(observation, ErrorObservation) and observation.error_id == "not_found":
        return action.path if isinstance(action, FileEditAction) else None
    failure = failing(state)
    if failure is None:
        return None
    files = read_files(state)
    if len(files) >= READ_UNASKED:
        return None
    output = failure[1].text
    traceback_files = _traceback_files(listed_files(state), output.replace(f"{state.workspace}/", ""))
    if not all(map(is_test, traceback_files)):
        return next((path for path in traceback_files if path not in files), None)
    used = "\n".join(text for path, text in files.items() if is_test(path))
    imported = [path for path in listed_files(state) if _module(path) and re.search(rf"\b{_module(path)}\b", used)]
    return next((path for path in [*traceback_files, *imported] if path not in files), None)


def _traceback_files(listed: list[str], output: str) -> list[str]:
    """Return the files that an output names with a line number, tests first, then by their last mention."""
    last: dict[str, int] = {}
    for path in listed:
        for mention in re.finditer(rf"(?<![\w/]){re.escape(path)}(:|\", line )\d", output):
            last[path] = mention.start()
    return sorted(last, key=lambda path: (not is_test(path), last[path]))


def _module(path: str) -> str:
    """Return a Python file's module name as a pattern, "" for other files."""
    name = PurePosixPath(path)
    return re.escape(".".join(name.with_suffix("").parts)) if name.suffix == ".py" and name.stem != "__init__" else ""


def just_edited(state: State) -> bool:
    """True if the last action is a successful edit that does not revert another."""
    pairs = visible(state)
    return isinstance(state.history[-1][1], FileEditObservation) and pairs[-1] is state.history[-1]


def lacks_overview(state: State) -> bool:
    """True if the files were not listed yet, or a condensation removed the list."""
    return not any(
        _is_overview(action) and type(observation) is not Observation for action, observation in state.history
    )


def has_run_something(state: State) -> bool:
    """True once a command besides the overview ran."""
    return any(isinstance(action, CmdRunAction) and not _is_overview(action) for action, _ in state.history)


def may_finish(state: State) -> bool:
    """True once the model has replied and nothing fails, or after ``PATIENCE`` replies without an edit."""
    replies = [action for action, _ in state.history if action.completion is not None]
    if failing(state) is None:
        return bool(replies)
    return sum(not isinstance(action, FileEditAction) for action in replies) >= PATIENCE


def tried_already(state: State, action: Action) -> bool:
    """True if the same edit was made before, or it changes nothing, or the command ran and no file was edited since.

    A final message that the user has already received does not end the task either: the user objected to it.
    """
    if isinstance(action, FileEditAction):
        if _code_lines(action.old) == _code_lines(action.new):
            return True
        earlier = (a for a, _ in state.history if isinstance(a, FileEditAction))
        same = (action.path, action.old, _code_lines(action.new))
        return any((a.path, a.old, _code_lines(a.new)) == same for a in earlier)
    since_edit = takewhile(lambda pair: not isinstance(pair[1], FileEditObservation), reversed(state.history))
    match action:
        case CmdRunAction(command=command):
            return any(isinstance(a, CmdRunAction) and a.command == command for a, _ in since_edit)
        case IPythonRunCellAction(code=code):
            return any(isinstance(a, IPythonRunCellAction) and a.code == code for a, _ in since_edit)
        case FileWriteAction(path=path, content=content):
            return any(isinstance(a, FileWriteAction) and (a.path, a.content) == (path, content) for a, _ in since_edit)
        case AgentFinishAction(outputs=outputs):
            return any(isinstance(a, AgentFinishAction) and a.outputs == outputs for a, _ in state.history)
        case FileReadAction(path=path):
            return any(isinstance(a, FileReadAction) and a.path == path for a, _ in since_edit)
        case _:
            return False


def _code_lines(code: str) -> list[str]:
    """Return the lines without blank lines and comments, which a model adds to code it copies."""
    lines = (line.rstrip() for line in code.splitlines())
    return [line for line in lines if line and not line.lstrip().startswith(("#", "//"))]

"""What the outcome of a step means: facts that a small model does not see in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from handiwork.agents.codeact.check import overview_of, project_check, shown_text
from handiwork.agents.repair.check import INTERPRETERS, named_files, programs
from handiwork.agents.state import State
from handiwork.events.action import FileEditAction, FileWriteAction
from handiwork.events.base import Action, Observation
from handiwork.events.observation import AgentDelegateObservation, CmdOutputObservation, FileWriteObservation
from handiwork.events.overview import WorkspaceOverviewObservation

EDITS = (FileEditAction, FileWriteAction)
"""Actions that write a file."""

_NOT_FOUND = 127
_FATAL = 128
"""The exit code of git; a build that asks git for its version goes on without it, and fails for its own reason."""
_NO_MODULE = re.compile(r"python[\d.]*: No module named ")
_NO_FILE = re.compile(r"^(?:ba|da)?sh: (?:line \d+: )?(?!\S*\bbin/)\S+: No such file or directory$", re.MULTILINE)
_NO_IMPORT = re.compile(
    r"^(?:ModuleNotFoundError|\S*python[\d.]*): No module named '?(\w+)(?![\w.]*__main__)", re.MULTILINE
)
_LACKS = re.compile(
    r"^(?:E +)?(?:ModuleNotFoundError: No module named|ImportError: cannot import name '\w+' from) '(\w+)", re.MULTILINE
)
"""A module that is not installed, or in another version."""
_RAN = re.compile(r"\b\d+ (?:passed|failed)\b|^(?:FAILED \(|OK\b)", re.MULTILINE)
_PROSE = re.compile(r"[:,;.!?]: command not found$", re.MULTILINE)
"""What bash says of a text instead of a command: that its first word, with a mark at its end, is no program."""
_NO_COMMAND = re.compile(r"^(?:ba|da)?sh: (?:line \d+: )?(\w+): command not found$", re.MULTILINE)
_NO_SYNTAX = re.compile(r"^(?:ba|da)?sh: (?:line \d+: )?syntax error near ", re.MULTILINE)
_NO_REPOSITORY = re.compile(r"^fatal: not a git repository", re.MULTILINE)
_IN_SCRIPT = re.compile(r"^(?!(?:/\S*/)?(?:ba|da)?sh: )[^:\n]+: (?:line )?\d+: .*not found$", re.MULTILINE)
"""What a shell says of a word in a script that is no command: the script may be at fault."""
_ABSENT = re.compile(
    r"""(?<![^\s'"`:(])([^\s'"`:(]{1,300})['"]?(?: for reading)?(?=: (?:\[Errno 2\] )?no such file or directory)"""
    r"""|no such file or directory(?::|, \w+| @ \w+ -) ['"]?([^\s'"]{1,300})""",
    re.IGNORECASE,
)
"""The name before or after the message: a compiler or a script begins the line with the name of its own file."""
_ASSERTS = re.compile(r"^assert\b|\bexit\s*\(?\s*1\b", re.MULTILINE)
"""An assertion outside of functions, or an end with an error: a silent run is a success then."""
_SILENT = (
    "It printed nothing. If it should print something, it is wrong: mend it. If it should make a file, look at that."
)
_UNTRIED = "It printed nothing, so its functions are not tested. Print a result for values of the task: "
_DATA = (".csv", ".json", ".jsonl", ".tsv")
_SOURCES = (*_DATA, ".log", ".txt", ".xml")
"""The suffixes of files with data, and of those that data may come from."""
_FEW, _MOST = 4, 0.6
"""The least number of words of data, and the least share of them that their source has."""
_WORD = re.compile(r"[^\W\d_]{2,}")
_FUNCTION = re.compile(r"^def (?!main\b)([a-z]\w*)", re.MULTILINE)


def with_facts(state: State, *, with_empty: bool = True) -> State:
    """Return the state for a prompt.

    Unless ``with_empty``, an overview without files is left out: small models answer any question with it.

    The overview of the workspace ends with the project's test command, or without network with what is missing for it.
    Without network a command whose program is missing comes with the advice to go on without it, and a text instead of
    a command with the advice to finish, as has a repair that succeeded, and Python code with the tool for it. After a
    failed import of a module of the workspace, the model is told where it is; after a command of git outside a
    repository, or one that names a file that is not there, that this is the reason; after a silent run of a file that
    it wrote, what that shows; and after it wrote data that come from another file, that a command does that better.
    """
    overview = overview_of(state)
    if overview is None:  # the model is not guided
        return state
    network = state.totals.network
    history: list[tuple[Action, Observation | None]] = []
    written: dict[str, str] = {}
    for action, observation in state.history:
        if isinstance(observation, WorkspaceOverviewObservation) and not (observation.files or with_empty):
            continue
        fact = ""
        if isinstance(action, FileWriteAction):
            written[action.path] = action.content
        if isinstance(observation, WorkspaceOverviewObservation):
            check, missing = project_check(observation)
            fact = f"\n\nThe tests are run with `{check}`." if check else ""
            fact += f"\n\nThe tests cannot run here: {missing} is not installed." if missing and not network else ""
        elif isinstance(action, FileWriteAction) and _is_new(observation):
            fact = _source(action, overview)
        elif is_repair(observation):
            fact = "\nIf the task asks for nothing more, `finish` now."
        elif isinstance(observation, CmdOutputObservation) and _PROSE.search(observation.text):
            fact = "\nThese lines are no commands. What you have to tell belongs in `finish`."
        elif isinstance(observation, CmdOutputObservation) and (told := _silence(observation, written)):
            fact = told
        elif isinstance(observation, CmdOutputObservation) and observation.error:
            fact = _import_path(observation, overview, state.workspace)
            fact = fact or _absent_input(observation) or _in_python(observation)
            if lacks_repository(observation):
                fact = "\nThere is no git repository here, so there is nothing to commit: go on without git."
            elif not (fact or network) and lacks_program(observation):
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


def _in_python(output: CmdOutputObservation) -> str:
    """Return that the command is Python code, "" if the shell did not stumble over that."""
    try:
        tree = ast.parse(output.command)
    except (SyntaxError, ValueError, RecursionError):
        return ""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    words = {"def", "for", "from", "import", "print", *names}
    is_code = _NO_SYNTAX.search(output.text) or not words.isdisjoint(_NO_COMMAND.findall(output.text))
    return "\nThis is Python code, which `bash` does not run: `ipython` does." if is_code else ""


def lacks_program(observation: CmdOutputObservation) -> bool:
    """Return whether a command failed because a program, or a module that Python runs, is not installed."""
    if observation.exit_code == _NOT_FOUND:
        # A script that is not there is no program.
        return not (_NO_FILE.search(observation.text) or _IN_SCRIPT.search(observation.text))
    return observation.error and bool(_NO_MODULE.search(observation.text))


def lacks_module(state: State, output: str) -> bool:
    """Return whether no test ran because a module, or its right version, is missing and cannot be installed.

    It is none of the workspace, and no code of the agent imports it.
    """
    overview = overview_of(state)
    if state.totals.network or overview is None or _RAN.search(output):
        return False
    texts = [a.content if isinstance(a, FileWriteAction) else a.new for a, _ in state.history if isinstance(a, EDITS)]
    own = {name for path in overview.paths for part in PurePosixPath(path).parts for name in (part, part[:-3])}
    missing = set(_LACKS.findall(output)) - own
    return any(not any(re.search(rf"\b{name}\b", text) for text in texts) for name in missing)


def lacks_repository(observation: CmdOutputObservation) -> bool:
    """Return whether a command of git failed because the folder is in no repository."""
    return observation.exit_code == _FATAL and bool(_NO_REPOSITORY.search(observation.text))


def _silence(output: CmdOutputObservation, written: Mapping[str, str]) -> str:
    """Return what it means that a file which the agent has written prints nothing, "" if the command is no such run.

    For a module of Python a command is shown: small models fill in its arguments.
    """
    files = named_files(output.command, list(written))
    if INTERPRETERS.isdisjoint(programs(output.command)) or not files:
        return ""
    if output.exit_code != 0 or output.text.strip():
        return ""
    if _ASSERTS.search(written[files[-1]]):
        return ""
    path = PurePosixPath(files[-1])
    names = path.with_suffix("").parts
    is_module = path.suffix == ".py" and all(map(str.isidentifier, names))
    functions = _FUNCTION.findall(written[files[-1]]) if is_module else []
    if not functions:
        return f"\n{_SILENT}"
    return f"\n{_UNTRIED}python3 -c 'from {'.'.join(names)} import *; print({functions[-1]}(...))'"


def _is_new(observation: Observation | None) -> bool:
    return isinstance(observation, FileWriteObservation) and observation.created


def _source(write: FileWriteAction, overview: WorkspaceOverviewObservation) -> str:
    """Return that the data of a new file come from another one and should be computed, "" if they do not seem to.

    Small models count, sort and filter by head, and hardly ever right.
    """
    words = set(_WORD.findall(write.content))
    if PurePosixPath(write.path).suffix not in _DATA or len(words) < _FEW:
        return ""
    others = (path for path in overview.shown if PurePosixPath(path).suffix in _SOURCES)
    for path in others:
        if len(words & set(_WORD.findall(shown_text(overview, path)))) > _MOST * len(words):
            told = "What you count, filter, sort or convert yourself is often wrong"
            return f"\nIts values come from {path}. {told}: let a command make {write.path} from {path}."
    return ""


def _absent_input(observation: CmdOutputObservation) -> str:
    """Return that there is no file of a name that stands in the command itself, "" if that was not the error."""
    absent = {name for pair in _ABSENT.findall(observation.text) for name in pair}
    words = (word.strip("\"'") for word in observation.command.split()[1:])
    names = (word for word in words if re.search(r"\w[./]\w", word))
    name = next((word for word in names if word in absent), "")
    told = "Unless the task is about that, the code is not at fault. Try it with a file that is there, or write one"
    return f"\nThere is no file {name}. {told} to /tmp." if name else ""


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

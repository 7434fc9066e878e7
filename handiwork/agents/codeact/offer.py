"""The tools that a reply may call: each has something to act on, and its call is not a mere repetition."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Sequence
from pathlib import PurePosixPath
from typing import Any

from handiwork.agents.base import MalformedReplyError
from handiwork.agents.codeact.check import check_of, overview_of
from handiwork.agents.codeact.facts import EDITS, is_repair
from handiwork.agents.codeact.finish import COMMANDS, LOST, TOO_LONG, UNCHANGED
from handiwork.agents.codeact.turn import done, is_idle, messages_of, turn_of
from handiwork.agents.history import is_from_user
from handiwork.agents.protocols.action_tools import ActionTool
from handiwork.agents.protocols.ask import ENDS, tools_called
from handiwork.agents.repair.check import is_missing, programs
from handiwork.agents.state import State
from handiwork.events.action import (
    CmdRunAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    IPythonRunCellAction,
    MessageAction,
)
from handiwork.events.base import Action
from handiwork.events.observation import (
    CmdOutputObservation,
    ErrorObservation,
    FileEditObservation,
    FileReadObservation,
    FileWriteObservation,
)
from handiwork.events.overview import LONGEST, READ, RUNNERS, WorkspaceOverviewAction, WorkspaceOverviewObservation

NO_ANSWERS = ("write", "edit", "fork", "delegate", "plan_task", "modify_task", "reject")
"""Tools that answer no question."""
COMMANDERS = ("bash", "ipython", "browse")
"""Tools that run something."""

TALK, ANY = "talk", "any"
"""Ways that no model chooses: to answer small talk, at once; and a question that only those before it explain."""

ONLY_ASKED = (
    "Nothing was done: the user has only asked something. `finish` with the answer; code and commands that it shows "
    "belong in its text. If the answer needs a command, run it now."
)

_ECHO = 3
"""The least number of words of a question that is taken for the user's own."""
_WORD = re.compile(r"\w+")
_OTHER_FIELDS = set(Action.model_fields)
_CHANGES = (FileEditObservation, FileWriteObservation)
_REPLACES = "and `write` would replace all of them: nothing was done"
_LONG = 150
"""Lines of a file that is too long to be written again."""


def offered(state: State, tools: Sequence[ActionTool]) -> list[ActionTool]:
    """Return the tools with something to act on.

    The tools for background jobs and cut outputs are left out while there are none. So are `edit`, if there is `write`,
    and `search_code` if the overview shows all files: models rewrite small files more reliably than they edit them, and
    have all of the code before them.
    """
    idle: set[str] = set()
    # A condensed history lacks outputs and the starts of jobs, which are still there.
    started = any(isinstance(action, CmdRunAction) and action.background for action, _ in state.history)
    if not started and not any(job for _, job in state.totals.jobs):
        idle.add("jobs")
    if not state.totals.outputs and _shows_all(state):
        idle.add("read_output")  # in a larger workspace there will be some, and then all of the prompt were another
    if overview_of(state) is not None and _shows_all(state) and not _has_long_file(state):
        idle.add("search_code")
        idle |= {"edit"} if any(tool.name == "write" for tool in tools) else set()
    return _without(tools, idle)


def next_offered(
    state: State, tools: Sequence[ActionTool], again: Collection[str] = (), *, may_end: bool = False
) -> list[ActionTool]:
    """Return the tools for the next reply: those not called ``again``.

    A model that has seen only some of the workspace's files acts before it ends, unless it needs no others
    (``may_end``): small models answer from names alone. A challenge is not answered by an end, unless it is UNCHANGED.
    One that asks for a file as a whole may be answered by `write`, even after a repetition. A turn that has edited a
    file, or had it repaired, is not rejected: a model rejects tasks after the work, for want of a test or of a
    repository. Nor is a repetition followed by a plan: a model plans the work again that it has done. `modify_task`
    needs a plan, and `read_output` an output, but their places in the prompt do not: a local model would read all of a
    changed prompt again.
    """
    without, newest = set(again), state.history[-1][0]
    without |= set() if state.plan.tasks else {"modify_task"}
    without |= set() if state.totals.outputs else {"read_output"}
    without |= {"plan_task"} if again else set()
    if isinstance(newest, MessageAction) and newest.source == "environment" and newest.completion is not None:
        without |= set() if newest.content == UNCHANGED else {"finish"}
        is_lost, is_long = newest.content.startswith(LOST), TOO_LONG in newest.content
        without = without | {"write"} if is_lost and is_long else without - {"write"} if is_lost else without
    refused = state.history[-1][1]
    without |= {"write"} if isinstance(refused, ErrorObservation) and _REPLACES in refused.content else set()
    turn = turn_of(state)
    if done(turn, EDITS) or any(is_repair(observation) for _, observation in turn):
        without.add("reject")
    has_acted = any(action.completion and not isinstance(action, ENDS) for action, _ in state.history)
    if not (may_end or has_acted or _shows_all(state)):
        without |= {"finish", "reject"}
    return _without(tools, without)


def _shows_all(state: State) -> bool:
    """Return whether the overview shows all files of the workspace; True without an overview."""
    overview = overview_of(state)
    return overview is None or len(overview.shown) == overview.files


def shows_subject(state: State) -> bool:
    """Return whether the overview of a larger workspace has a definition, or all, of what the last message is about.

    There it has only the texts of such files and of RUNNERS, for the messages before it.
    """
    message = messages_of(state)[-1]
    looks = (o for a, o in state.history if isinstance(a, WorkspaceOverviewAction) and message in a.text)
    overview = next((look for look in looks if isinstance(look, WorkspaceOverviewObservation)), None)
    if overview is None or overview.files <= READ:
        return False
    whole = any(path not in RUNNERS and f"\n{path}:\n```\n" in overview.text for path in overview.shown)
    return whole or "\n\nFrom line " in overview.text


def _has_long_file(state: State) -> bool:
    """Return whether the agent has written or read a file that is too long for the overview."""
    written = (action.content for action, _ in state.history if isinstance(action, FileWriteAction))
    read = (o.content for _, o in state.history if isinstance(o, FileReadObservation))
    return any(len(text) > LONGEST for text in itertools.chain(written, read))


def for_question(state: State, tools: Sequence[ActionTool], way: str) -> Sequence[ActionTool]:
    """Return the tools for the first reply to a question with this way to the answer, as ``choice`` has them.

    If that is reading, the reply runs no command, else it does not answer yet, unless the answer is known or the tests
    cannot run here. Small models write a calculation in Python, and some of them into `bash`.
    """
    if way == TALK:
        return [tool for tool in tools if tool.name == "finish"]
    if way == "reading":
        return _without(tools, (*NO_ANSWERS, *COMMANDERS))
    if way == "calculating" and (calculators := [tool for tool in tools if tool.name == "ipython"]):
        return calculators
    free = way in (ANY, "knowing") or (way == "running" and not check_of(state))
    return _without(tools, NO_ANSWERS if free else (*NO_ANSWERS, "finish", "ask"))


def check_replaces(state: State, actions: Sequence[Action]) -> None:
    """Raise MalformedReplyError if an action writes a few lines in place of a long file, or of one that was not seen.

    Small models do so with a file that they know by its name or its ends.
    """
    overview = overview_of(state)
    if overview is None:
        return
    reads = {o.path: o.lines for _, o in state.history if isinstance(o, FileReadObservation)}
    seen = {*overview.shown, *(o.path for _, o in state.history if isinstance(o, _CHANGES)), *reads}
    commands = [action.command for action, _ in state.history if isinstance(action, CmdRunAction)]
    told = {o.content for _, o in state.history if isinstance(o, ErrorObservation)}
    for write in (action for action in actions if isinstance(action, FileWriteAction)):
        path = write.path.removeprefix(f"{state.workspace}/").removeprefix("./")
        lines = reads.get(path, 0)
        is_seen = path in seen or any(path in command for command in commands)
        if path in overview.paths and not is_seen:
            raise MalformedReplyError(
                f"{path} has lines that you have not seen, {_REPLACES}. `edit` a part of it, or `read` it first."
            )
        refusal = f"{path} has {lines} lines, {_REPLACES}. `edit` only what the task asks for."
        # Once: the task may ask for a whole new text.
        if lines > _LONG and 2 * len(write.content.splitlines()) < lines and refusal not in told:
            raise MalformedReplyError(refusal)


def check_steered(actions: Sequence[Action], way: str) -> None:
    """Raise MalformedReplyError if the first reply to a question changes files, or runs something where ``way`` reads.

    A server that binds no replies lets such a block through, and it may only illustrate the answer.
    """
    refused = (*EDITS, *COMMANDS) if way in ("reading", TALK) else EDITS
    if way and any(isinstance(action, refused) for action in actions):
        raise MalformedReplyError(ONLY_ASKED)


def _without(tools: Sequence[ActionTool], names: Collection[str]) -> list[ActionTool]:
    return [tool for tool in tools if tool.name not in names]


def repeated(
    state: State, actions: Sequence[Action], tools: Sequence[ActionTool], allowed: Sequence[ActionTool]
) -> set[str]:
    """Return the tools whose earlier calls the actions repeat, with no change in between.

    If none of them is ``allowed``, the tools for commands are returned too: "write PATH" in a block of bash is a write.
    So they are if the reply moves code from `ipython` to `bash`, or back.

    Reading a file that the overview shows is a repetition too, as is another command of a program that is missing, or
    one that installs without network, or a question that the user's own message has asked.
    """
    contents = [_content(action) for action in actions]
    if _is_echo(actions[-1], messages_of(state)):
        return {"ask"}
    if isinstance(actions[-1], ENDS):
        return set()
    commands = [action.command for action in actions if isinstance(action, CmdRunAction)]
    installs = not state.totals.network and any("install" in command.split() for command in commands)
    called = [programs(command) for command in commands if "PYTHONPATH=" not in command]  # the remedy for a module
    if (missing := _missing(state)) and (installs or any(program in missing for program in called)):
        return set(COMMANDERS)
    written = [action.path for action in actions if isinstance(action, FileWriteAction)]
    paths = written if len(written) == len(actions) else []
    earlier: list[Action] = []
    shown: tuple[str, ...] = ()
    for action, observation in reversed(state.history):
        if is_from_user(action):
            break
        if isinstance(observation, WorkspaceOverviewObservation):
            shown = observation.shown
        if action.completion is None:
            continue
        repeats = _content(action) in contents
        earlier += [action] if repeats else []
        if _may_change(action, paths) and not repeats and not is_idle(observation):
            break
    done = [_content(action) for action in earlier]
    reads = [isinstance(action, FileReadAction) and action.path in shown for action in actions]
    if not all(content in done or is_shown for content, is_shown in zip(contents, reads, strict=True)):
        return set()
    names = {name for action in earlier for name in tools_called(state, action, tools)}
    names |= {"read"} if any(reads) else set()
    hidden = names and not any(tool.name in names for tool in allowed)
    moved = earlier and {action.kind for action in earlier}.isdisjoint(action.kind for action in actions)
    return {*names, *COMMANDERS} if hidden or moved else names


def _may_change(action: Action, paths: Sequence[str]) -> bool:
    """Return whether an action may change what a reply does; a reply that writes only ``paths`` depends on their edits.

    Writing the same text again leaves a file unchanged, even after commands and edits of other files. Names are
    compared: ./a.py may be a.py.
    """
    if paths:
        names = {PurePosixPath(path).name for path in paths}
        return isinstance(action, FileEditAction | FileWriteAction) and PurePosixPath(action.path).name in names
    return isinstance(action, (*EDITS, *COMMANDS))


def _is_echo(action: Action, messages: Sequence[str]) -> bool:
    """Return whether the action asks the user in _ECHO or more words of a message of theirs."""
    if not isinstance(action, MessageAction) or not action.wait_for_response:
        return False
    asked, *told = (_WORD.findall(text.lower()) for text in (action.content, *messages))
    # The first word may be another one: "Which lamps are on?" is asked as "What lamps are on?".
    question = " ".join(asked[1:] if len(asked) > _ECHO else asked)
    return len(asked) >= _ECHO and any(f" {question} " in f" {' '.join(text)} " for text in told)


def _missing(state: State) -> list[list[str]]:
    """Return the programs, and modules that Python runs, not found since a command succeeded: it may install them."""
    outputs = [o for _, o in reversed(state.history) if isinstance(o, CmdOutputObservation)]
    failed = itertools.takewhile(lambda output: output.error, outputs)
    return [programs(output.command) for output in failed if is_missing(output.command, output.text)]


def _content(action: Action) -> tuple[str, dict[str, Any]]:
    if isinstance(action, CmdRunAction | IPythonRunCellAction):  # small models put the same code into the other one
        return "", {"code": action.command if isinstance(action, CmdRunAction) else action.code}
    return action.kind, action.model_dump(exclude=_OTHER_FIELDS)

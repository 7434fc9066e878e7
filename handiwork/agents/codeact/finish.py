"""The end of a task: the model's claim is checked once against the facts before the task ends."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from handiwork.agents.base import AgentLLM, MalformedReplyError
from handiwork.agents.codeact.check import check_of, is_empty
from handiwork.agents.codeact.choice import aim_of, choose, kind_of, want_of
from handiwork.agents.codeact.facts import EDITS, lacks_module, lacks_program, lacks_repository
from handiwork.agents.codeact.turn import (
    done,
    follows_answer,
    follows_unchanged,
    messages_of,
    new_files,
    request_of,
    turn_of,
)
from handiwork.agents.protocols import NATIVE, protocol_of
from handiwork.agents.protocols.action_tools import ActionTool
from handiwork.agents.protocols.ask import ENDS, is_small, read
from handiwork.agents.protocols.transcript import calls_of, content_of
from handiwork.agents.rendering import shorten
from handiwork.agents.repair.check import is_missing, moves
from handiwork.agents.repair.files import in_workspace
from handiwork.agents.state import State
from handiwork.events.action import (
    AgentDelegateAction,
    AgentFinishAction,
    AgentRejectAction,
    CmdRunAction,
    FileWriteAction,
    IPythonRunCellAction,
    MessageAction,
)
from handiwork.events.base import Action, Observation
from handiwork.events.observation import (
    CmdOutputObservation,
    FileEditObservation,
    FileWriteObservation,
    IPythonRunCellObservation,
)
from handiwork.llm.types import Completion

_WORD = re.compile(r"\w+")
_DEFINITION = re.compile(
    r"^[ \t]*(?:(?:export|default|public|private|protected|static|final|async|pub) )*"
    r"(?:class|def|enum|fn|func|function|interface|module|struct|trait) (\w+)",
    re.MULTILINE,
)
"""The definition of a name, in most languages."""

EDITING = ("write", "edit")
"""Tools that make EDITS."""
COMMANDS = (CmdRunAction, IPythonRunCellAction, AgentDelegateAction)
"""Actions that may change files, as the snapshots tell."""

LOST = "`write` has replaced all of "
"""How the message of ``lost_lines`` begins."""

TOO_LONG = "too many to write again"
"""What that message says of a file whose lines do not all stand in it."""

_LOSSES = 3
"""The most such messages about one file in a turn."""

_LONG = 500
"""Characters of a message whose kind a small model mistakes: a question about a pasted log is "repair" to it."""
UNCHANGED = (
    "Nothing has been changed or made. If the task asks for a change, make it now; if it asks a question, finish with "
    "the answer."
)
"""The message after an end without a change, if it is unsure whether one was asked for; an end may answer it."""

NOT_DONE = "The task is not done: nothing has been changed or made yet. Do it now."
"""The message after an end without a change, if one is asked for."""

_COMPARES = re.compile(r"\s*(?:git (?:diff|grep)|grep|egrep|fgrep|rg|diff|cmp|pgrep|test|\[)\b")
"""Commands whose exit code 1 is an answer: nothing found, or a difference."""

_PARTS = ("nothing has been changed or made", "if the task asks for a change", "if it asks a question")
"""Parts of these messages, in lower case, that no answer has of its own."""

_MAY_CHECK = (
    "{task}\n\nThe work on this task is over. Should `{check}` be run to see whether it is right (run)? "
    "Not if only information was asked for, or if this must not be run (skip)."
)


def confirmed(llm: AgentLLM, state: State, tools: Sequence[ActionTool]) -> Action | None:
    """Return the finish that the check, or the look for new files, replaced, if that has succeeded; None otherwise."""
    action, observation = state.history[-1]
    completion = state.completions.get(action.completion or 0)
    if completion is None or not isinstance(action, CmdRunAction):
        return None
    names = new_files(state)
    if action.command not in _runs(state, check_of(state)) and not (names and action.command == _look_for(names)):
        return None
    if not isinstance(observation, CmdOutputObservation) or observation.exit_code != 0:  # None: it still runs
        return None
    if state.has_failed(action.completion):  # an edit beside the finish, say
        return None
    return _end_of(llm, state, action, tools)


def _end_of(llm: AgentLLM, state: State, check: CmdRunAction, tools: Sequence[ActionTool]) -> Action | None:
    """Return the finish that the check replaced in its reply; None if the model itself ran the check."""
    actions = _actions_in(llm, state, check, tools)
    itself = any(isinstance(action, CmdRunAction) and action.command == check.command for action in actions)
    return _last_end(actions) if not itself else None


def _end_in(llm: AgentLLM, state: State, challenge: MessageAction, tools: Sequence[ActionTool]) -> Action | None:
    """Return the end that the message replaced in its reply."""
    return _last_end(_actions_in(llm, state, challenge, tools))


def _last_end(actions: Sequence[Action]) -> Action | None:
    return actions[-1].with_fields(tool_call_id=None) if actions and _ends(actions[-1]) else None


def _actions_in(llm: AgentLLM, state: State, action: Action, tools: Sequence[ActionTool]) -> list[Action]:
    """Return the actions of the reply that led to this one, none if it cannot be read."""
    event = state.completions.get(action.completion or 0)
    if event is None:
        return []
    completion = Completion(content_of(event), calls_of(event), event=event.id)
    protocol = NATIVE if completion.tool_calls else protocol_of(llm.capabilities)
    try:
        return read(protocol, completion, tools)
    except MalformedReplyError:
        return []


def _parrots(end: Action) -> bool:
    """Return whether the end only says what the message before it says: small models repeat it as their answer."""
    is_end = isinstance(end, AgentFinishAction | AgentRejectAction)
    text = " ".join(map(str, end.outputs.values())).lower() if is_end else ""
    return any(part in text for part in _PARTS)


async def challenge(
    llm: AgentLLM, state: State, actions: list[Action], tools: Sequence[ActionTool], kind: str = ""
) -> list[Action]:
    """Return the actions to take; the check runs before the end of a task that has changed files.

    ``kind`` is that of the user's request, one of KINDS, if the model has told it before. Without a check, a small
    model sees whether the new files are there that the message names.

    A check may write files as well, which a question must not do, and the task may forbid it: unless the window is
    small, the model says whether it may run. A small model is only asked, more simply, if no change is certain. The
    same tells whether a failure speaks against the end, or may be the answer.

    Once after each message of the user, a message with the facts replaces the end: if the check fails, or for a small
    model if its last command failed, or nothing has changed although the task asks for a change. If the next end only
    repeats that message, the first one stands. An agent whose ``tools`` do not edit ends at once: a failed command may
    be the answer to its task.
    """
    *before, end = actions
    may_edit = any(tool.name in EDITING for tool in tools) and not state.totals.plan_mode
    if not isinstance(end, ENDS) or not may_edit:
        return actions
    turn = turn_of(state)
    small = is_small(llm.capabilities)
    told = [a for a, _ in turn if isinstance(a, MessageAction) and a.source == "environment" and a.completion]
    if others := [message for message in told if not message.content.startswith(LOST)]:
        parrots = small and not before and state.history[-1][0] is others[-1] and _parrots(end)
        first = _end_in(llm, state, others[-1], tools) if parrots else None
        return actions if first is None else [first.with_fields(completion=end.completion)]
    if not _ends(end):
        return actions
    check, changed, edited = check_of(state), _last_change(state, turn), _has_edited(turn, before)
    will_change = any(isinstance(action, (*EDITS, *COMMANDS)) for action in before)
    if check and (will_change or changed):
        runs = _runs(state, check)
        run = _last_run(turn, runs)
        if not will_change and run is not None and run.id >= changed:
            if is_missing(check, run.text) or lacks_module(state, run.text):
                return actions  # a check that says nothing about the work here
            if isinstance(run, CmdOutputObservation) and run.error and isinstance(end, AgentFinishAction):
                if not edited and not await _may_check(llm, state, check, kind, certain=False):
                    return actions
                return [_facts(end, f"The task is not done: `{check}` still fails.\n{shorten(run.text, 2_000)}")]
        elif await _may_check(llm, state, check, kind, certain=edited):
            command = runs[moves(check) or _directory(state) != state.workspace]
            return [*before, CmdRunAction(command=command, completion=end.completion, tool_call_id=end.tool_call_id)]
    elif small and changed and not before and isinstance(end, AgentFinishAction) and (names := new_files(state)):
        look = _look_for(names)
        if not any(isinstance(action, CmdRunAction) and action.command == look for action, _ in turn):
            return [CmdRunAction(command=look, completion=end.completion, tool_call_id=end.tool_call_id)]
    if before and small:
        return before  # the model sees their outcomes before it ends the task
    failure = _failure(turn) or _fault(turn) if small and isinstance(end, AgentFinishAction) else ""
    # A failed command may be the answer to a question.
    if failure and (edited or await _asks_for_change(llm, state, kind)):
        return [_facts(end, f"{failure}\nIf that shows a fault, mend it first.")]
    if small and not changed and isinstance(end, AgentFinishAction):
        text = await why_unfinished(llm, state, kind)
        return [_facts(end, text)] if text else actions
    return actions


async def why_unfinished(llm: AgentLLM, state: State, kind: str = "") -> str:
    """Return what to tell a small model that ends without a change; "" if the user's last message asks for none.

    The model tells the ``kind`` of the request if that is not known. Raises the errors of the model.
    """
    if len(messages_of(state)[-1]) > _LONG and not (kind == "question" and is_empty(state)):
        return UNCHANGED
    if await _asks_for_change(llm, state, kind):
        may_ask = follows_answer(state) or (follows_unchanged(state) and await _wants_answer(llm, state))
        return UNCHANGED if may_ask else NOT_DONE
    return UNCHANGED if new_files(state) else ""


async def lost_lines(llm: AgentLLM, state: State) -> MessageAction | None:
    """Return a message with the lines that the newest write deleted, if it left too little of the file.

    That is less than half of its lines, if the user's message does not ask for a whole file; or a loss of definitions
    of which the message says nothing, if it asks to add something. There are at most _LOSSES messages about a file. The
    lines come last, as small models follow best what they have read last. Of a file too long for that the message says
    how it comes back.
    """
    action, observation = state.history[-1]
    if not isinstance(action, FileWriteAction) or not isinstance(observation, FileWriteObservation):
        return None
    task = messages_of(state)[-1]
    # A second short text replaces the first one, and the lines are still gone.
    writes = [o for _, o in turn_of(state) if isinstance(o, FileWriteObservation) and o.path == observation.path]
    observation = max(reversed(writes), key=lambda write: write.lines)
    is_short = 2 * len(action.content.splitlines()) < observation.lines
    if not is_short and not _lost_definitions(state, action, observation.deleted_text, task):
        return None
    head = f"{LOST}{action.path}, and lines of it are gone."
    if sum(isinstance(a, MessageAction) and a.content.startswith(head) for a, _ in turn_of(state)) == _LOSSES:
        return None
    aim = await aim_of(llm, task, action.path)
    if aim == "whole" or not (is_short or aim == "add"):
        return None
    removes = not observation.undefined_names and _is_removal(state, action, observation.deleted_text, task)
    if aim == "part" and removes:
        return None
    if len(observation.deleted_text.splitlines()) < observation.deleted:
        back = f"First get it back, in a git repository by `git checkout {shlex.quote(action.path)}` in bash."
        text = f"{head} It had {observation.lines} lines, {TOO_LONG}. {back} Then `edit` only what the task asks for:"
        return MessageAction(content=f"{text}\n{task}", source="environment", completion=action.completion)
    again = "Write the whole file again: what the task asks for, and these lines, which are gone:"
    text = f"{head} The task is:\n{task}\n\n{again}\n```\n{observation.deleted_text.rstrip()}\n```"
    return MessageAction(content=text, source="environment", completion=action.completion)


def _lost_definitions(state: State, write: FileWriteAction, deleted: str, task: str) -> bool:
    """Return whether lines define what neither the task nor the write names, nor the turn has put into another file."""
    others = (a for a, _ in turn_of(state) if isinstance(a, FileWriteAction) and a.path != write.path)
    moved = {name for other in others for name in _DEFINITION.findall(other.content)}
    known = {*_WORD.findall(task), *_WORD.findall(write.content), *moved}
    return any(name not in known for name in _DEFINITION.findall(deleted))


def _is_removal(state: State, write: FileWriteAction, deleted: str, task: str) -> bool:
    """Return whether definitions are gone, and the task or the turn's text of another file names all of them."""
    outer = {match[1] for match in _DEFINITION.finditer(deleted) if not match[0][0].isspace()}
    gone = outer - set(_DEFINITION.findall(write.content))
    return bool(gone) and gone <= _named(state, task, but=write.path)


def _named(state: State, task: str, but: str = "") -> set[str]:
    """Return the words of the task and of the texts that the turn has written to files other than ``but``."""
    writes = (action for action, _ in turn_of(state) if isinstance(action, FileWriteAction))
    texts = [task, *(write.content for write in writes if write.path != but)]
    return {word for text in texts for word in _WORD.findall(text)}


def _failure(turn: Sequence[tuple[Action, Observation | None]]) -> str:
    """Return a text with the output of the turn's last command if it failed, and not for want of a program."""
    commands = (CmdOutputObservation, IPythonRunCellObservation)
    last = next((observation for _, observation in reversed(turn) if isinstance(observation, commands)), None)
    if last is None or (isinstance(last, CmdOutputObservation) and (lacks_program(last) or lacks_repository(last))):
        return ""
    if isinstance(last, CmdOutputObservation) and last.exit_code == 1 and _COMPARES.match(last.command):
        return ""
    return f"The last command failed:\n{shorten(last.text, 1_000)}" if last.error else ""


def _fault(turn: Sequence[tuple[Action, Observation | None]]) -> str:
    """Return a text with the errors that the last change of each file in the turn has made, "" if none has."""
    changes = {o.path: o for _, o in turn if isinstance(o, FileWriteObservation | FileEditObservation)}
    faults = ((path, change.syntax_error or "; ".join(change.undefined_names)) for path, change in changes.items())
    return "\n".join(f"Errors of {path}: {fault}" for path, fault in faults if fault)


def _last_change(state: State, turn: Sequence[tuple[Action, Observation | None]]) -> int:
    """Return the id of the last event of the turn that has changed files, 0 if none has.

    Without snapshots, and in a subtask, every command counts as a change.
    """
    snapshot = _last_snapshot(state, turn)
    ids = done(turn, (*EDITS, *COMMANDS) if snapshot is None else EDITS)
    return max([*ids, snapshot or 0])


def _has_edited(turn: Sequence[tuple[Action, Observation | None]], before: Sequence[Action]) -> bool:
    """Return whether the turn has edited files, or the actions ``before`` its end will.

    A snapshot alone does not tell: tests and programs that are only run write caches and logs.
    """
    return any(isinstance(action, EDITS) for action in before) or bool(done(turn, EDITS))


def _last_snapshot(state: State, turn: Sequence[tuple[Action, Observation | None]]) -> int | None:
    """Return the id of the turn's last snapshot that shows a change, 0 if none does; None if there are no snapshots."""
    if not state.totals.snapshots or state.id:
        return None
    return state.totals.last_change if state.totals.last_change > turn[0][0].id else 0


def _ends(action: Action) -> bool:
    return isinstance(action, AgentFinishAction) or (isinstance(action, MessageAction) and action.wait_for_response)


def _facts(end: Action, text: str) -> MessageAction:
    return MessageAction(content=text, source="environment", completion=end.completion, tool_call_id=end.tool_call_id)


async def _may_check(llm: AgentLLM, state: State, check: str, kind: str, *, certain: bool) -> bool:
    """Return whether the check may run; ``certain`` means that the task has surely changed files."""
    if is_small(llm.capabilities):
        return certain or await _asks_for_change(llm, state, kind)
    task = "\n\n".join(messages_of(state))
    answer, _ = await choose(llm, _MAY_CHECK.format(task=task, check=check), ("run", "skip"))
    return answer == "run"


async def _asks_for_change(llm: AgentLLM, state: State, kind: str) -> bool:
    """Return whether the user's last request asks for a change; ask the model if its ``kind`` is not known."""
    if not kind:
        kind, _ = await kind_of(llm, request_of(state))
    return kind != "question"


async def _wants_answer(llm: AgentLLM, state: State) -> bool:
    return await want_of(llm, request_of(state)) == "answer"


def _runs(state: State, check: str) -> tuple[str, str]:
    """Return the check, and the command that runs it in the workspace: `cd` may have led the shell elsewhere."""
    return check, in_workspace(state.workspace, check)


def _last_run(turn: Sequence[tuple[Action, Observation | None]], commands: Sequence[str]) -> Observation | None:
    """Return the newest observation of the last run of one of the commands, None if none ran.

    A run that outlasts the shell's patience ends in a later action, which waits for it or gives it an input.
    """
    run: Observation | None = None
    for action, observation in turn:
        if not isinstance(action, CmdRunAction):
            continue
        still_runs = isinstance(run, CmdOutputObservation) and run.status in ("running", "input")
        if action.command in commands or (still_runs and (action.is_input or not action.command.strip())):
            run = observation
    return run


def _directory(state: State) -> str:
    outputs = (o for _, o in reversed(state.history) if isinstance(o, CmdOutputObservation))
    return next((output.cwd for output in outputs if output.cwd), state.workspace)


def _look_for(files: Sequence[str]) -> str:
    return f"ls {shlex.join(files)}"

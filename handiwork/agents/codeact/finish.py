"""The end of a task: the model's claim is checked once against the facts before the task ends."""

from __future__ import annotations

from collections.abc import Sequence

from handiwork.agents.base import AgentLLM, MalformedReplyError
from handiwork.agents.codeact.check import check_of
from handiwork.agents.codeact.choice import choose
from handiwork.agents.protocols import protocol_of_reply
from handiwork.agents.protocols.action_tools import ActionTool
from handiwork.agents.protocols.ask import is_small, read
from handiwork.agents.protocols.transcript import calls_of, content_of
from handiwork.agents.rendering import shorten
from handiwork.agents.state import State
from handiwork.events.action import (
    AgentDelegateAction,
    AgentFinishAction,
    CmdRunAction,
    FileEditAction,
    FileWriteAction,
    IPythonRunCellAction,
    MessageAction,
)
from handiwork.events.base import Action, Observation
from handiwork.events.observation import CmdOutputObservation, ErrorObservation, IPythonRunCellObservation
from handiwork.llm.types import Completion

EDITS = (FileEditAction, FileWriteAction)
EDITING = ("write", "edit")
"""Tools that make EDITS."""
COMMANDS = (CmdRunAction, IPythonRunCellAction, AgentDelegateAction)
"""Actions that may change files, as the snapshots tell."""

_QUESTION = (
    "{task}\n\nDoes this task ask to change or make something, like files, code or a commit, or only for information?"
)


def confirmed(state: State, tools: Sequence[ActionTool]) -> Action | None:
    """Return the finish that the check replaced, if the check has succeeded; None otherwise."""
    action, observation = state.history[-1]
    completion = state.completions.get(action.completion or 0)
    if completion is None or not isinstance(action, CmdRunAction) or action.command != check_of(state):
        return None
    if not isinstance(observation, CmdOutputObservation) or observation.error:
        return None
    return _end_of(state, action, tools)


def _end_of(state: State, check: CmdRunAction, tools: Sequence[ActionTool]) -> Action | None:
    """Return the finish that the check replaced in its reply; None if the model itself ran the check."""
    event = state.completions[check.completion or 0]
    completion = Completion(content_of(event), calls_of(event), event=event.id)
    try:
        actions = read(protocol_of_reply(completion), completion, tools)
    except MalformedReplyError:
        return None
    itself = any(isinstance(action, CmdRunAction) and action.command == check.command for action in actions)
    return actions[-1].with_fields(tool_call_id=None) if _ends(actions[-1]) and not itself else None


async def challenge(llm: AgentLLM, state: State, actions: list[Action], tools: Sequence[ActionTool]) -> list[Action]:
    """Return the actions to take; the check runs before the end of a task that has changed files.

    Once after each message of the user, a message with the facts replaces the end: if the check fails, or for a small
    model if its last command failed, or nothing has changed although the task asks for a change. An agent whose
    ``tools`` do not edit ends at once: a failed command may be the answer to its task.
    """
    *before, end = actions
    if not _ends(end) or not any(tool.name in EDITING for tool in tools):
        return actions
    turn = _turn(state)
    small = is_small(llm.capabilities)
    if any(isinstance(a, MessageAction) and a.source == "environment" and a.completion for a, _ in turn):
        return actions
    check, changed = check_of(state), _last_change(state, turn)
    will_change = any(isinstance(action, (*EDITS, *COMMANDS)) for action in before)
    if check and (will_change or changed):
        run = next((o for a, o in reversed(turn) if isinstance(a, CmdRunAction) and a.command == check), None)
        if will_change or run is None or run.id < changed:
            return [*before, CmdRunAction(command=check, completion=end.completion, tool_call_id=end.tool_call_id)]
        if isinstance(run, CmdOutputObservation) and run.error and isinstance(end, AgentFinishAction):
            return [_facts(end, f"The task is not done: `{check}` still fails.\n{shorten(run.text, 2_000)}")]
    if before and small:
        return before  # the model sees their outcomes before it ends the task
    if small and isinstance(end, AgentFinishAction) and (failure := _failure(turn)):
        text = f"The last command failed:\n{shorten(failure, 1_000)}\nIf that shows a fault, mend it first."
        return [_facts(end, text)]
    if small and not changed and isinstance(end, AgentFinishAction) and await _asks_for_change(llm, state):
        return [_facts(end, "The task is not done: nothing has been changed or made yet. Do it now.")]
    return actions


def _failure(turn: Sequence[tuple[Action, Observation | None]]) -> str:
    """Return the output of the turn's last command if the command failed."""
    commands = (CmdOutputObservation, IPythonRunCellObservation)
    last = next((observation for _, observation in reversed(turn) if isinstance(observation, commands)), None)
    return last.text if last is not None and last.error else ""


def _turn(state: State) -> list[tuple[Action, Observation | None]]:
    """Return the history since the user's last message."""
    last = max((n for n, (action, _) in enumerate(state.history) if _is_users(action)), default=0)
    return state.history[last:]


def _last_change(state: State, turn: Sequence[tuple[Action, Observation | None]]) -> int:
    """Return the id of the last event of the turn that has changed files, 0 if none has.

    Without snapshots, and in a subtask, every command counts as a change.
    """
    snapshots = state.totals.snapshots and not state.id
    ids = [
        observation.id
        for action, observation in turn
        if observation is not None
        and not isinstance(observation, ErrorObservation)
        and isinstance(action, EDITS if snapshots else (*EDITS, *COMMANDS))
    ]
    if snapshots and turn and state.totals.last_change > turn[0][0].id:
        ids.append(state.totals.last_change)
    return max(ids, default=0)


def _is_users(action: Action) -> bool:
    return isinstance(action, MessageAction) and action.source == "user"


def _ends(action: Action) -> bool:
    return isinstance(action, AgentFinishAction) or (isinstance(action, MessageAction) and action.wait_for_response)


def _facts(end: Action, text: str) -> MessageAction:
    return MessageAction(content=text, source="environment", completion=end.completion, tool_call_id=end.tool_call_id)


async def _asks_for_change(llm: AgentLLM, state: State) -> bool:
    """Ask the model whether the user's last message asks for a change."""
    messages = [a.content for a, _ in state.history if isinstance(a, MessageAction) and a.source == "user"]
    answer, _ = await choose(llm, _QUESTION.format(task=messages[-1]), ("information", "change"))
    return answer == "change"

"""Replies that repeat the one before."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from handiwork.agents.state import State
from handiwork.events.action import AgentFinishAction, AgentRejectAction, MessageAction
from handiwork.events.base import Action

_OTHER_FIELDS = set(Action.model_fields)


def repeats(state: State, actions: Sequence[Action]) -> bool:
    """Return whether the actions are those of the model's last reply again; the end of a task is no repetition."""
    if isinstance(actions[-1], AgentFinishAction | AgentRejectAction | MessageAction):
        return False
    replied = [action for action, _ in state.history if action.completion is not None]
    if not replied:
        return False
    newest = replied[-1].completion
    last = list(takewhile(lambda action: action.completion == newest, reversed(replied)))
    return [_content(action) for action in reversed(last)] == [_content(action) for action in actions]


def _content(action: Action) -> tuple[str, dict[str, Any]]:
    return action.kind, action.model_dump(exclude=_OTHER_FIELDS)

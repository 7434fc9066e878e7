"""A small model's actions in the browser since the user's last message."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from itertools import pairwise

from handiwork.agents.browsing.choices import offered, read
from handiwork.agents.browsing.obvious_moves import Key, key
from handiwork.agents.state import State
from handiwork.events.action import BrowseInteractiveAction, MessageAction
from handiwork.events.observation import BrowserOutputObservation


@dataclass(slots=True)
class TaskHistory:
    """The ``goal``, the ``content`` of the newest page, and the actions so far: ``steps`` in words, the rest by key.

    ``done`` holds the actions without an error, ``vain`` those tried on this very page.
    """

    goal: str
    content: str
    steps: list[str] = field(default_factory=list[str])
    done: list[Key] = field(default_factory=list[Key])
    vain: list[Key] = field(default_factory=list[Key])


def task_history(state: State) -> TaskHistory:
    """Return the history of a task that has opened a page."""
    pairs = [(a, o) for a, o in state.history if isinstance(o, BrowserOutputObservation)]
    said = [a for a, _ in state.history if isinstance(a, MessageAction) and a.source == "user"]
    newest = pairs[-1][1].text
    history = TaskHistory(_goal(state, said), newest)
    since = said[-1].id if said else 0
    for (_, before), (action, after) in pairwise(pairs):
        if not isinstance(action, BrowseInteractiveAction) or action.id < since:
            continue
        shown, known = _known(action.browser_actions, before.text)
        history.steps.append(shown if not after.last_action_error else f"{shown}: failed")
        if not after.last_action_error:
            history.done.append(known)
        if before.text == newest:
            history.vain.append(known)
    return history


def _goal(state: State, said: list[MessageAction]) -> str:
    """Return the user's last message; for a delegate without further messages, its task alone."""
    task = state.inputs.get("task")
    if isinstance(task, str) and len(said) <= 1:
        return task
    return said[-1].content if said else ""


def _known(calls: str, before: str) -> tuple[str, Key]:
    """Return the line and the key of the choice that the calls stand for; other calls stand for themselves."""
    text = _given(calls)
    for choice in offered(read(before)):
        if choice.calls(text) == calls:
            given = text if choice.kind in ("fill", "select") else ""
            return (f"{choice.shown}: {given}" if given else choice.shown), key(choice, given)
    shown = " ".join(calls.split())
    return shown, ("calls", "", shown, "")


def _given(calls: str) -> str:
    """Return the second argument of the first call."""
    try:
        expression = ast.parse(calls.partition("\n")[0], mode="eval").body
        return str(ast.literal_eval(expression.args[1])) if isinstance(expression, ast.Call) else ""
    except (SyntaxError, ValueError, IndexError):
        return ""

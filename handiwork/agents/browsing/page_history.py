"""The history of a browsing task as its agent reads it: the newest page, and the effects of earlier actions."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from handiwork.agents.browsing.choices import page_lines
from handiwork.agents.history import is_from_user
from handiwork.agents.state import State
from handiwork.events.action import BrowseInteractiveAction, BrowseURLAction, MCPCallAction
from handiwork.events.base import Action, Observation
from handiwork.events.observation import BrowserOutputObservation

EARLIER = "(an earlier page, left out)"
NO_CHANGE = "{}, which changed nothing on the page"

Pair = tuple[Action, Observation | None]


def newest_page(state: State) -> BrowserOutputObservation | None:
    """Return the page that was seen last, None if there was none."""
    return next((o for _, o in reversed(state.history) if isinstance(o, BrowserOutputObservation)), None)


def acts_since_message(state: State) -> list[Pair]:
    """Return the agent's acts, in the browser or by an MCP server, since the user's last message, the newest first."""
    recent = takewhile(lambda pair: not is_from_user(pair[0]), reversed(state.history))
    return [pair for pair in recent if isinstance(pair[0], BrowseInteractiveAction | BrowseURLAction | MCPCallAction)]


def readable(state: State, whole: int, *, as_lines: bool) -> State:
    """Return the state with the text of the newest ``whole`` pages only, and a note at acts that changed nothing.

    ``as_lines`` writes a page as lines with names for its elements instead of its accessibility tree.
    """
    pages = [o.id for _, o in state.history if isinstance(o, BrowserOutputObservation)]
    shown = frozenset(pages[-whole:])
    history: list[Pair] = []
    before: BrowserOutputObservation | None = None
    for action, observation in state.history:
        if isinstance(observation, BrowserOutputObservation):
            text = EARLIER
            if observation.id in shown:
                text = page_lines(observation.text) if as_lines else observation.text
            call = observation.last_action.partition("\n")[0]
            outcome = NO_CHANGE.format(call) if call and before is not None and _is_same(before, observation) else call
            facts = {"content": text, "tail": "", "blob": None, "last_action": outcome}
            history.append((action, observation.model_copy(update=facts)))
            before = observation
        else:
            history.append((action, observation))
    return replace(state, history=history)


def last_act(state: State) -> Action:
    """Return the action that led to the newest page. Raises StopIteration without a page."""
    return next(action for action, o in reversed(state.history) if isinstance(o, BrowserOutputObservation))


def changes_nothing_again(state: State, action: Action) -> bool:
    """Return whether the action repeats the last one, which changed nothing on the page."""
    pages = [(a, o) for a, o in state.history if isinstance(o, BrowserOutputObservation)]
    if len(pages) < 2 or not isinstance(action, BrowseInteractiveAction):
        return False
    (_, before), (last, after) = pages[-2:]
    same = isinstance(last, BrowseInteractiveAction) and last.browser_actions == action.browser_actions
    return same and _is_same(before, after) and not action.browser_actions.startswith("noop(")


def _is_same(before: BrowserOutputObservation, after: BrowserOutputObservation) -> bool:
    facts = ("url", "open_pages", "active_page", "dialog", "downloads")
    return before.text == after.text and all(getattr(before, name) == getattr(after, name) for name in facts)

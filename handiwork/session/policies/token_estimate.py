"""Estimate a history's length in tokens: the model's own count if there is one, else characters / 3."""

from __future__ import annotations

from collections.abc import Iterable

from handiwork.agents.history import History, pictures_of
from handiwork.agents.protocols.ask import SMALL_WINDOW
from handiwork.agents.protocols.conventions import SHARE
from handiwork.agents.protocols.transcript import LIMIT, SMALL_LIMIT, limit_of
from handiwork.agents.rendering import observation_text
from handiwork.agents.state import State
from handiwork.context.conventions import CHARACTERS
from handiwork.events.action import MessageAction
from handiwork.events.base import Action, Event, Observation

IMAGE, OVERHEAD = 1_500, 1_500
"""Tokens of an image, and of the system prompt and tools together."""

_SPEAKERS = {"user": "User", "agent": "Developer", "environment": "Note"}
_NO_CONTENT = {*Event.model_fields, "completion", "tool_call_id", "thought", "images"}


def overhead(state: State, window: float | None) -> float:
    """Return the tokens of a prompt beside its history: OVERHEAD, and the conventions, which get a part of a window."""
    conventions = sum(event.tokens for event in state.totals.context.values())
    return OVERHEAD + (conventions if window is None else min(conventions, window * SHARE / CHARACTERS))


def text_of(history: Iterable[tuple[Action, Observation | None]], window: float | None = None) -> str:
    """Return all the steps as text for a model with this ``window``."""
    return "\n\n".join(part for entry in history for part in _texts(*entry, window) if part)


def estimate(history: Iterable[tuple[Action, Observation | None]], window: float | None = None) -> float:
    """Return the steps' number of tokens in a prompt for this ``window``, estimated from their characters."""
    return sum(sum(_tokens(*entry, window)) for entry in history)


def _texts(action: Action, observation: Observation | None, window: float | None) -> tuple[str, str]:
    """Return the texts of the action and of its observation, as a prompt for this window has them."""
    limit = LIMIT if window is None or window > SMALL_WINDOW else SMALL_LIMIT
    if isinstance(action, MessageAction):
        request = f"{_SPEAKERS[action.source]}: {action.content}"
    else:
        fields = action.model_dump_json(exclude=_NO_CONTENT, exclude_defaults=True)
        request = f"{action.thought}\n{action.kind} {fields}".strip()
    return request, "" if observation is None else observation_text(observation, limit_of(action, limit))


def _tokens(action: Action, observation: Observation | None, window: float | None) -> tuple[float, float]:
    request, answer = _texts(action, observation, window)
    images = len(action.images) * IMAGE if isinstance(action, MessageAction) else 0
    return len(request) / CHARACTERS + images, len(answer) / CHARACTERS + len(pictures_of(observation)) * IMAGE


class TokenEstimator:
    """The size of one task's prompts. Reads every step once, and all of them again after a condensation."""

    def __init__(self) -> None:
        self._history: History | None = None
        self._counted: int = 0
        self._completion: int = 0
        self._size = self._estimate = 0.0
        self.scale = 1.0
        """The model's count divided by the estimate."""

    def size(self, state: State, window: float | None = None) -> float:
        """Return the number of tokens of the next prompt; ``window`` is the model's, if it is known."""
        anew = state.history is not self._history
        if anew:
            self._history, self._counted, self._completion = state.history, 0, 0
            self._size = self._estimate = float(overhead(state, window))
        for entry in state.history[self._counted :]:
            self._add(state, *entry, window, anew)
        self._counted = len(state.history)
        if anew:
            # The model may have counted before the history was condensed: its count is then too high.
            self._size = min(self._size, self.scale * self._estimate)
        return self._size

    def _add(
        self, state: State, action: Action, observation: Observation | None, window: float | None, anew: bool
    ) -> None:
        request, answer = _tokens(action, observation, window)
        self._estimate += request + answer
        completion = state.completions.get(action.completion or 0)
        if completion is None or completion.usage.total == completion.usage.output:
            self._size += request + answer
            return
        if completion.id != self._completion:
            self._completion, self._size = completion.id, float(completion.usage.total)
            if not anew:
                self.scale = self._size / (self._estimate - answer)
        self._size += answer

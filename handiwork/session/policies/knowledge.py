"""Knowledge that joins a conversation once a message of the user has one of its triggers as a whole word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from handiwork.agents.history import History, is_from_user
from handiwork.agents.state import State
from handiwork.events.action import MessageAction
from handiwork.events.record import KnowledgeEvent
from handiwork.session.policies.condense import is_notes, quote

if TYPE_CHECKING:
    from handiwork.agents.micro.definition import MicroFile


class Knowledge:
    """The pieces of a session, and the part of the log that was searched for triggers."""

    def __init__(self, pieces: Sequence[MicroFile] = ()) -> None:
        self._pieces = pieces
        self._searched = 0
        # By task and name the id of the event before, by which an event that is not folded yet is known.
        self._previous: dict[tuple[int, str], int] = {}

    def joining(self, root: State) -> list[KnowledgeEvent]:
        """Return the events of the pieces that messages since the last call bring into their conversations.

        A piece that is in a task's conversation does not join it again; while the session does not run, nothing joins.
        """
        if not self._pieces or root.agent_state != "running":
            return []
        events = [event for state in root.tree() for event in self._joining(state)]
        self._searched = root.last_id
        return events

    def _joining(self, state: State) -> Iterator[KnowledgeEvent]:
        for message in _messages_after(state, self._searched):
            for piece in self._pieces:
                trigger = piece.trigger_in(message.content)
                if not trigger or self._has(state, piece):
                    continue
                self._previous[state.id, piece.name] = state.knowledge.get(piece.name, 0)
                yield KnowledgeEvent(
                    name=piece.name, trigger=trigger, place=str(piece.path), content=piece.body, subtask=state.id
                )

    def _has(self, state: State, piece: MicroFile) -> bool:
        """Return whether a conversation has a piece whole, maybe quoted by notes, or is about to have it."""
        event = state.knowledge.get(piece.name, 0)
        return self._previous.get((state.id, piece.name)) == event or _is_in(state.history, event, piece.body)


def _is_in(history: History, event: int, text: str) -> bool:
    # Notes have the id of the last event that they replace.
    return any(quote(text) in action.content if is_notes(action) else action.id == event for action, _ in history)


def _messages_after(state: State, event: int) -> list[MessageAction]:
    """Return the user's messages after an event, in order; for a delegate its task is one."""
    messages: list[MessageAction] = []
    for action, _ in reversed(state.history):
        if action.id <= event:
            break
        if is_from_user(action):
            messages.append(action)
    return messages[::-1]

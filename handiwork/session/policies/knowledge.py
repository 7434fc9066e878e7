"""Knowledge that joins a conversation once a message of the user has one of its triggers as a whole word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from handiwork.agents.state import State
from handiwork.events.action import MessageAction
from handiwork.events.record import KnowledgeEvent

if TYPE_CHECKING:
    from handiwork.agents.micro.definition import MicroFile


class Knowledge:
    """The pieces of a session, and the part of the log that was searched for triggers."""

    def __init__(self, pieces: Sequence[MicroFile] = ()) -> None:
        self._pieces = pieces
        self._searched = 0
        self._joined: set[tuple[int, str]] = set()

    def joining(self, root: State) -> list[KnowledgeEvent]:
        """Return the events of the pieces that messages since the last call bring into their conversations.

        A piece joins each task's conversation once; while the session does not run, nothing joins.
        """
        if not self._pieces or root.agent_state != "running":
            return []
        events = [event for state in root.tree() for event in self._joining(state)]
        self._searched = root.last_id
        return events

    def _joining(self, state: State) -> Iterator[KnowledgeEvent]:
        for message in _messages_after(state, self._searched):
            for piece in self._pieces:
                known = piece.name in state.knowledge or (state.id, piece.name) in self._joined
                if not known and (trigger := piece.trigger_in(message.content)):
                    self._joined.add((state.id, piece.name))
                    yield KnowledgeEvent(
                        name=piece.name, trigger=trigger, place=str(piece.path), content=piece.body, subtask=state.id
                    )


def _messages_after(state: State, event: int) -> list[MessageAction]:
    """Return the user's messages after an event, in order; for a delegate its task is one."""
    messages: list[MessageAction] = []
    for action, _ in reversed(state.history):
        if action.id <= event:
            break
        if isinstance(action, MessageAction) and action.source == "user":
            messages.append(action)
    return messages[::-1]

"""The error type of the action server for mistakes in an action."""

from __future__ import annotations


class ActionError(Exception):
    """The action cannot be executed; the message tells the agent why, ``error_id`` is a stable word for programs."""

    def __init__(self, error_id: str, text: str) -> None:
        super().__init__(text)
        self.error_id = error_id

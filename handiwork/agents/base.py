"""The contract of an agent: ``step(state)`` gives the next action."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar, Protocol

from handiwork.agents.state import State
from handiwork.events.base import Action
from handiwork.llm.types import Capabilities, Completion, JsonSchema, Message, Tool

Step = Action | Sequence[Action]
"""What a step gives: one action, or several that run in order."""


class MalformedReplyError(Exception):
    """The model's reply is no action; the text goes back to the model so that it can mend it."""


class InterruptedCallError(Exception):
    """Raised in a blocking ``step`` whose model call the user interrupted."""


class AgentLLM(Protocol):
    """The model as an agent sees it: every call is recorded, counted against the limits and can be interrupted.

    In an agent whose ``step`` is ``async def``, ``complete`` is awaited; in one with a plain ``def step`` it
    blocks and returns the completion.
    """

    @property
    def capabilities(self) -> Capabilities:
        """What the model can do."""
        ...

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        schema: JsonSchema | None = None,
        temperature: float | None = None,
    ) -> Any:
        """Return the model's Completion, or in an ``async def step`` an awaitable of it."""
        ...


class Agent:
    """An agent of the hub: subclass it, write ``step``, name it in the entry points ``handiwork.agents``.

    Nothing is kept between steps but ``state.extra_data``: after a crash a new object goes on from the log.
    """

    description: ClassVar[str] = ""
    """One line for `handiwork agents`."""

    tools: ClassVar[Sequence[Callable[..., object]]] = ()
    """Functions that the model may call; they run in the sandbox's notebook (see ``handiwork.agents.tools``)."""

    def __init__(self, llm: AgentLLM) -> None:
        self.llm = llm
        self.reset()

    def reset(self) -> None:
        """Forget everything, ready for a new session."""

    def step(self, state: State) -> Step | Awaitable[Step]:
        """Return the next action, or several that run in order.

        Raise MalformedReplyError where the model's reply is no action.
        """
        raise NotImplementedError


__all__ = ["Agent", "AgentLLM", "Completion", "InterruptedCallError", "MalformedReplyError", "Step"]

"""The contract of an agent: ``step(state)`` returns the next action."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, get_args, get_origin

from pydantic import BaseModel
from typing_extensions import TypeVar, get_original_bases

from handiwork.agents.interface import AnyOutputs, Data, TaskInputs
from handiwork.agents.state import State
from handiwork.events.base import Action
from handiwork.llm.types import Capabilities, Completion, Message, ReplyForm, Tool

if TYPE_CHECKING:
    from handiwork.agents.protocols.action_tools import ActionTool

Step = Action | Sequence[Action]
"""The result of a step: one action, or several that run in order."""


class MalformedReplyError(Exception):
    """The model's reply is not an action; the model receives the error's text and can correct the reply."""


class EmptyReplyError(MalformedReplyError):
    """The model's reply has no text and no call."""


class InterruptedCallError(Exception):
    """Raised in a blocking ``step`` whose model call the user interrupted."""


class AgentLLM(Protocol):
    """The agent's interface to the model: every call is recorded, counts against the limits and can be interrupted.

    In an agent whose ``step`` is ``async def``, ``complete`` is awaited; in one with a plain ``def step`` it
    blocks and returns the completion.
    """

    @property
    def capabilities(self) -> Capabilities:
        """The model's capabilities."""
        ...

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        form: ReplyForm | None = None,
        temperature: float | None = None,
    ) -> Any:
        """Return the model's Completion, or in an ``async def step`` an awaitable of it."""
        ...

    def embed(self, texts: Sequence[str], model: str) -> Any:
        """Return the embeddings of texts by the model ``model``, a list of vectors, or an awaitable of it.

        A name without a provider is a model of the session's server.
        """
        ...


class Agent(Generic[Data]):
    """Base class of agents: subclass it, implement ``step``, register it as an entry point in ``handiwork.agents``.

    Only ``state.extra_data`` persists between steps: after a crash a new object resumes from the log. A subclass of
    ``Agent[Notes]``, where ``Notes`` is a pydantic model whose fields all have defaults, reads and changes its data as
    ``state.data``, a Notes; its ``step`` takes a ``State[Notes]``. The log gets a step's change of the data together
    with its actions, or its malformed reply; the change of a step that is interrupted or fails is dropped.
    """

    description: ClassVar[str] = ""
    """One line for `handiwork agents`."""

    tools: ClassVar[Sequence[Callable[..., object]]] = ()
    """Functions and Action classes that the model may call (see ``handiwork.agents.tools``)."""

    toolbox: ClassVar[Sequence[ActionTool]] = ()
    """The tools of an agent whose step asks in a reply protocol; a micro agent that reuses it may leave some out."""

    micro_file: ClassVar[Path | None] = None
    """The Markdown file of a micro agent, None for an agent in Python."""

    model: ClassVar[str | None] = None
    """The name of the model that the agent calls; None is the session's."""

    sends_history: ClassVar[bool] = True
    """False for an agent whose prompts do not grow with its history: the history is not condensed for the window."""

    uses_mcp: ClassVar[bool] = False
    """True for an agent that offers its model the tools of the session's MCP servers (``mcp_tools.with_mcp``)."""

    inputs: ClassVar[type[BaseModel]] = TaskInputs
    """The pydantic model of a delegation's inputs; a delegation whose inputs do not fit does not begin."""

    outputs: ClassVar[type[BaseModel]] = AnyOutputs
    """The pydantic model of the outputs; a finish whose outputs do not fit is an error of the agent."""

    data_model: ClassVar[type[BaseModel] | None] = None
    """The ``Notes`` of an ``Agent[Notes]``; None means that ``state.extra_data`` is any JSON object."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for base in get_original_bases(cls):
            origin = get_origin(base)
            if isinstance(origin, type) and issubclass(origin, Agent):
                cls._set_data_model(*get_args(base))

    @classmethod
    def _set_data_model(cls, model: object) -> None:
        if model is Any or isinstance(model, TypeVar):
            return
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            raise TypeError(
                f"{cls.__name__}: Agent[...] takes a pydantic model that is defined above it, not {model!r}"
            )
        cls.data_model = model

    def __init__(self, llm: AgentLLM) -> None:
        self.llm = llm
        self.reset()

    def reset(self) -> None:
        """Reset the agent for a new session."""

    def step(self, state: State[Data]) -> Step | Awaitable[Step]:
        """Return the next action, or several that run in order.

        Raises MalformedReplyError if the model's reply is not an action.
        """
        raise NotImplementedError

    def at_limit(self, state: State[Data], limit: str) -> Step | None:
        """Return actions that end the task at a limit; None, the default, pauses the session instead.

        ``limit`` is "iterations", "cost", "tokens", "time", or "context" for a conversation that no longer fits the
        model's window. The actions run without the limits, for a minute each; it is called again until one of them
        ends the task, three times at most. No model can be called.
        """
        return None


__all__ = ["Agent", "AgentLLM", "Completion", "EmptyReplyError", "InterruptedCallError", "MalformedReplyError", "Step"]

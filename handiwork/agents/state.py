"""State: what an agent sees of its session, computed from the events and from nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from pydantic import JsonValue

from handiwork.events.action import (
    AgentFinishAction,
    AgentRejectAction,
    AgentState,
    ChangeAgentStateAction,
    MessageAction,
)
from handiwork.events.base import Action, Event, Observation
from handiwork.events.observation import AgentStateChangedObservation, ErrorObservation
from handiwork.events.record import (
    AgentDataEvent,
    CompletionEvent,
    Limits,
    SessionStarted,
    SettingsChanged,
    StepStarted,
    Usage,
)

ENDED: frozenset[AgentState] = frozenset({"finished", "rejected", "stopped", "error"})
"""States that a session leaves only for a new message of the user."""


@dataclass
class State:
    """A fold over the log: ``apply`` every event in order and it says where the session stands.

    ``history`` is (action, observation) pairs in the order of the actions; the observation is None for an
    action that needs none, or has none yet. ``time`` is seconds of running, ``cost`` USD; ``unpriced`` counts
    the completions whose cost is unknown. ``extra_data`` is the agent's own.
    """

    agent: str = ""
    model: str = ""
    sandbox: str = ""
    workspace: str = ""
    limits: Limits = field(default_factory=Limits)
    agent_state: AgentState = "loading"
    change: AgentStateChangedObservation | None = None
    iteration: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: float = 0.0
    unpriced: int = 0
    time: float = 0.0
    history: list[tuple[Action, Observation | None]] = field(default_factory=list[tuple[Action, Observation | None]])
    completions: dict[int, CompletionEvent] = field(default_factory=dict[int, CompletionEvent])
    outputs: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    extra_data: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    last_error: str = ""
    last_id: int = 0
    last_timestamp: datetime | None = None
    _open: dict[int, int] = field(default_factory=dict[int, int])

    @property
    def pending(self) -> list[Action]:
        """The actions that wait for an observation, in order."""
        return [self.history[position][0] for position in self._open.values()]

    @property
    def task(self) -> str:
        """The user's first message."""
        return next((a.content for a, _ in self.history if isinstance(a, MessageAction) and a.source == "user"), "")

    def apply(self, event: Event) -> None:
        """Take up the next event of the log."""
        self._count_time(event)
        self.last_id, self.last_timestamp = event.id, event.timestamp
        match event:
            case Action():
                self._apply_action(event)
            case AgentStateChangedObservation():
                self.agent_state, self.change = event.agent_state, event
                self.last_error = event.content if event.agent_state == "error" else self.last_error
            case Observation():
                self._apply_observation(event)
            case _:
                self._apply_record(event)

    def _count_time(self, event: Event) -> None:
        reopened = isinstance(event, SessionStarted)
        if self.agent_state == "running" and self.last_timestamp is not None and not reopened:
            self.time += max(0.0, (event.timestamp - self.last_timestamp).total_seconds())

    def _apply_action(self, action: Action) -> None:
        match action:
            case ChangeAgentStateAction():
                self.agent_state, self.change = action.agent_state, None
                return
            case MessageAction(source="user"):
                self.agent_state, self.change = "running", None
            case MessageAction(wait_for_response=True):
                self.agent_state = "awaiting_user_input"
            case AgentFinishAction():
                self.agent_state, self.outputs = "finished", action.outputs
            case AgentRejectAction():
                self.agent_state, self.outputs = "rejected", action.outputs
            case _:
                if action.source == "agent":
                    self._open[action.id] = len(self.history)
        self.history.append((action, None))

    def _apply_observation(self, observation: Observation) -> None:
        if isinstance(observation, ErrorObservation):
            self.last_error = observation.content
        position = self._open.pop(observation.cause or 0, None)
        if position is not None:
            self.history[position] = (self.history[position][0], observation)

    def _apply_record(self, record: Event) -> None:
        match record:
            case SessionStarted():
                self.agent, self.model, self.sandbox = record.agent, record.model, record.sandbox
                self.workspace, self.limits = record.workspace, record.limits
            case StepStarted():
                self.iteration += 1
            case CompletionEvent():
                self.completions[record.id] = record
                self.usage = self.usage + record.usage
                self.cost += record.cost or 0.0
                self.unpriced += record.cost is None
            case SettingsChanged():
                self.model = record.model or self.model
                self.limits = record.limits or self.limits
            case AgentDataEvent():
                self.extra_data = record.data
            case _:
                pass

"""State: an agent's view of its task, computed from the events alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, cast

from pydantic import JsonValue

from handiwork.agents.history import History, condense, is_from_user
from handiwork.agents.interface import Data, M, parse
from handiwork.agents.plan import Plan
from handiwork.agents.totals import Totals, Traffic
from handiwork.events.action import (
    AddTaskAction,
    AgentDelegateAction,
    AgentFinishAction,
    AgentRejectAction,
    AgentState,
    AgentThinkAction,
    ChangeAgentStateAction,
    MessageAction,
    ModifyTaskAction,
)
from handiwork.events.base import Action, Event, Observation
from handiwork.events.describe import notice, task_text
from handiwork.events.observation import (
    AgentDelegateObservation,
    AgentStateChangedObservation,
    ErrorObservation,
    ForkObservation,
    HookRejectObservation,
    PlanObservation,
    UserRejectObservation,
)
from handiwork.events.record import (
    AgentDataEvent,
    ApprovalEvent,
    CompletionEvent,
    CondensationEvent,
    KnowledgeEvent,
    Limits,
    LoopEvent,
    NetworkAllowed,
    PermissionsRevoked,
    SessionStarted,
    SettingsChanged,
    StepStarted,
    Usage,
)

ENDED: frozenset[AgentState] = frozenset({"finished", "rejected", "stopped", "error"})
"""States that a task leaves only after a new user message, and a subtask never leaves."""


@dataclass
class State(Generic[Data]):
    """A fold over the log: apply every event in order to the root State to get the session's current state.

    A delegated subtask has its own State in the root's ``subtasks``, keyed by the id of the action that opened it;
    the root's id is 0. ``history`` holds (action, observation) pairs in the order of the actions; the observation is
    None if the action needs none or has none yet. ``history`` is the agent's view and leaves out condensed
    events; the log keeps them all. ``totals`` counts all subtasks together, ``local_*`` this one. ``inputs`` and
    ``outputs`` are a delegate's arguments and results. ``extra_data`` belongs to the agent: a step changes it in place,
    and the log gets the change together with the step's actions. ``data`` is the same as an object of the agent's
    model, if it declares one; only a step's State has it, and only ``data`` is to be changed then. ``knowledge`` has
    the names of the pieces of knowledge that have joined the conversation, each with the id of its newest event.
    """

    id: int = 0
    parent: int = 0
    agent: str = ""
    delegate_level: int = 0
    totals: Totals = field(default_factory=Totals)
    agent_state: AgentState = "loading"
    change: AgentStateChangedObservation | None = None
    local_iteration: int = 0
    local_usage: Usage = field(default_factory=Usage)
    local_cost: float = 0.0
    history: History = field(default_factory=list[tuple[Action, Observation | None]])
    completions: dict[int, CompletionEvent] = field(default_factory=dict[int, CompletionEvent])
    inputs: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    outputs: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    extra_data: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    data: Data = field(default=cast("Any", None), compare=False, repr=False)
    plan: Plan = field(default_factory=Plan)
    loop: LoopEvent | None = None
    knowledge: dict[str, int] = field(default_factory=dict[str, int])
    last_error: str = ""
    subtasks: dict[int, State] = field(default_factory=dict[int, "State"])
    forked: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    _open: list[int] = field(default_factory=list[int])
    _loose: list[int] = field(default_factory=list[int])

    @property
    def pending(self) -> list[Action]:
        """The actions that wait for an observation, in order."""
        return [self.history[self._index(action)][0] for action in self._open]

    @property
    def task(self) -> str:
        """The user's first message."""
        return next((a.content for a, _ in self.history if is_from_user(a)), "")

    @property
    def active(self) -> int:
        """The id of the active subtask (the innermost delegate), or 0. A task that forked stands for its children."""
        state = self
        while state._open and (child := self.subtasks.get(state._open[0])) and child.agent_state not in ENDED:
            state = child
        return state.id

    def has_failed(self, completion: int | None) -> bool:
        """Return whether an action of the completion with this id has failed, or was refused."""
        failures = (ErrorObservation, HookRejectObservation, UserRejectObservation)
        replied = (o for a, o in self.history if completion is not None and a.completion == completion)
        return any(isinstance(observation, failures) for observation in replied)

    @property
    def model(self) -> str:
        """The model's name."""
        return self.totals.model

    @property
    def sandbox(self) -> str:
        """The kind of sandbox."""
        return self.totals.sandbox

    @property
    def workspace(self) -> str:
        """The workspace's path in the sandbox."""
        return self.totals.workspace

    @property
    def skills(self) -> tuple[str, ...]:
        """The lines that document the user's own skills, which the notebook has in addition to the platform's."""
        return self.totals.skills

    @property
    def limits(self) -> Limits:
        """The limits of the whole session."""
        return self.totals.limits

    @property
    def iteration(self) -> int:
        """Steps of the whole session."""
        return self.totals.iteration

    @property
    def usage(self) -> Usage:
        """Tokens of the whole session."""
        return self.totals.usage

    @property
    def cost(self) -> float:
        """USD of the whole session, as far as known."""
        return self.totals.cost

    @property
    def unpriced(self) -> int:
        """The number of completions of unknown cost in the whole session."""
        return self.totals.unpriced

    @property
    def traffic(self) -> Traffic:
        """The traffic control of the whole session's model calls: "normal", "throttling" or "paused"."""
        return self.totals.traffic

    @property
    def time(self) -> float:
        """Seconds the session has been running."""
        return self.totals.time

    @property
    def last_id(self) -> int:
        """The id of the last applied event."""
        return self.totals.last_id

    @property
    def last_timestamp(self) -> datetime | None:
        """The newest time of the applied events."""
        return self.totals.last_timestamp

    def inputs_as(self, model: type[M]) -> M:
        """Return the inputs as an object of the agent's model; those of the session's own task are its "task".

        Raises InterfaceError if they do not fit.
        """
        return parse(model, self.inputs or {"task": self.task}, f"the inputs of {self.agent}")

    def history_range(self, first: int, last: int | None = None) -> History:
        """Return the part of the history whose actions have the ids ``first`` to ``last``; None is the end."""
        return [(a, o) for a, o in self.history if first <= a.id and (last is None or a.id <= last)]

    def tree(self) -> list[State]:
        """Return this State and the States of all subtasks that have not returned their outcome yet."""
        return [self, *self.subtasks.values()]

    def of(self, subtask: int) -> State:
        """Return the State of a subtask, or the root's if the subtask no longer exists."""
        return self.subtasks.get(subtask, self)

    def apply(self, event: Event) -> None:
        """Apply the next event of the log; call this on the root State."""
        self.totals.apply(event, self.agent_state == "running")
        state = self.of(event.subtask)
        match event:
            case SessionStarted():
                self.agent = event.agent
            case ChangeAgentStateAction():
                self.agent_state, self.change = event.agent_state, None
                if event.agent_state == "running":
                    self.loop = None  # a resumed agent may try again
                    asked = (action.id in self.totals.asked for task in self.tree() for action in task.pending)
                    if any(asked):  # a pause, or the end of another child, came before the user's answer
                        self.agent_state = "awaiting_user_confirmation"
            case AgentStateChangedObservation():
                state.agent_state = event.agent_state
                state.change = None if event.agent_state == "running" else event
                if event.agent_state == "error":
                    state.last_error = event.content
            case ApprovalEvent():
                if not self.totals.asked and self.agent_state == "awaiting_user_confirmation":
                    self.agent_state, self.change = "running", None
            case NetworkAllowed() | PermissionsRevoked() | SettingsChanged():
                if text := notice(event):
                    for task in filter(lambda task: task.history, self.tree()):
                        task._add_message(event, text)
            case Action():
                self._open_subtask(event, state)
                from_user = is_from_user(event)
                if from_user and self.agent_state in ("paused", "stopped") and self.change is None:
                    self._stop_children(state)
                state._apply_action(event)
                if from_user:
                    self.agent_state, self.change = "running", None
            case Observation():
                self._close_subtasks(event)
                state._apply_observation(event)
            case _:
                state._apply_record(event)

    def _open_subtask(self, action: Action, parent: State) -> None:
        if not isinstance(action, AgentDelegateAction):
            return
        child = State(
            id=action.id,
            parent=parent.id,
            agent=action.agent,
            delegate_level=parent.delegate_level + 1,
            totals=self.totals,
            agent_state="running",
            inputs=action.inputs,
        )
        task = MessageAction(content=task_text(action.inputs), source="user", id=action.id, timestamp=action.timestamp)
        child.history.append((task, None))
        self.subtasks[action.id] = child
        if action.cause is not None:
            self.forked.setdefault(action.cause, []).append(action.id)

    def _stop_children(self, parent: State) -> None:
        """Stop the children of a task that forked, and their subtasks: the task cannot read a message before they end.

        A pause by the platform, as at a limit, stops none: only an interrupt asks to give up the current action.
        """
        stopped = set(self.forked.get(parent._open[0], ())) if parent._open else set[int]()
        for task in self.subtasks.values():  # a parent comes before its children
            if task.parent in stopped:
                stopped.add(task.id)
            if task.id in stopped and task.agent_state == "running":
                task.agent_state = "stopped"

    def _close_subtasks(self, observation: Observation) -> None:
        cause = observation.cause or 0
        if isinstance(observation, AgentDelegateObservation | ErrorObservation):
            self.subtasks.pop(cause, None)
        if isinstance(observation, ForkObservation | ErrorObservation):
            for child in self.forked.pop(cause, []):
                self.subtasks.pop(child, None)
                self.totals.forget_jobs(child)
        if isinstance(observation, ErrorObservation) and observation.error_id == "sandbox_lost":
            # The children of a fork have sandboxes of their own; other subtasks work in their parent's.
            self.totals.forget_jobs(observation.subtask if self.forked else None)

    def _apply_action(self, action: Action) -> None:
        self._use(action.completion)
        match action:
            case MessageAction(source="user"):
                self.agent_state, self.change, self.loop = "running", None, None
            case MessageAction(wait_for_response=True):
                self.agent_state = "awaiting_user_input"
            case AgentFinishAction():
                self.agent_state, self.outputs = "finished", action.outputs
            case AgentRejectAction():
                self.agent_state, self.outputs = "rejected", action.outputs
            case AgentDelegateAction(source="environment"):
                return  # a child of a ForkAction, which has its own entry in the history
            case MessageAction() | AgentThinkAction():
                pass
            case _:
                self._open.append(action.id)
        self.history.append((action, None))

    def _apply_observation(self, observation: Observation) -> None:
        if isinstance(observation, ErrorObservation):
            self.last_error = observation.content
            if observation.error_id == "malformed" and observation.cause not in self._open:
                self._use(observation.cause)
                reply = AgentThinkAction(
                    id=observation.id, completion=observation.cause, timestamp=observation.timestamp
                )
                self.history.append((reply, observation))
                return
        if observation.cause not in self._open:
            return
        self._open.remove(observation.cause)
        index = self._index(observation.cause)
        action = self.history[index][0]
        self.history[index] = (action, observation)
        if isinstance(observation, PlanObservation):
            self._change_plan(action)

    def _change_plan(self, action: Action) -> None:
        match action:
            case AddTaskAction():
                self.plan.add(action.parent, action.goal, action.subtasks)
            case ModifyTaskAction():
                self.plan.modify(action.task_id, action.state)
            case _:
                pass

    def _apply_record(self, record: Event) -> None:
        match record:
            case StepStarted():
                self.local_iteration += 1
                for loose in self._loose:  # no action in the history came from these completions
                    self.completions.pop(loose, None)
                self._loose.clear()
            case CompletionEvent():
                self.completions[record.id] = record
                self._loose.append(record.id)
                self.local_usage = self.local_usage + record.usage
                self.local_cost += record.cost or 0.0
            case AgentDataEvent():
                self.extra_data = record.data
            case LoopEvent():
                self.loop = record
                self._add_message(record, record.content)
            case KnowledgeEvent():
                self.knowledge[record.name] = record.id
                self._add_message(record, record.content)
            case CondensationEvent():
                self._condense(record)
            case _:
                pass

    def _condense(self, event: CondensationEvent) -> None:
        self.history = condense(self.history, event, frozenset(self._open))
        used = {action.completion for action, _ in self.history}
        self.completions = {key: completion for key, completion in self.completions.items() if key in used}
        if event.how == "rewind":
            self.loop = None

    def _use(self, completion: int | None) -> None:
        if completion in self._loose:
            self._loose.remove(completion)

    def _add_message(self, event: Event, content: str) -> None:
        message = MessageAction(content=content, source="environment", id=event.id, timestamp=event.timestamp)
        self.history.append((message, None))

    def _index(self, action: int) -> int:
        """Return an action's index in the history; search from the end, because pending actions are near it."""
        return next(n for n in range(len(self.history) - 1, -1, -1) if self.history[n][0].id == action)

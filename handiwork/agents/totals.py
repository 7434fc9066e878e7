"""Totals: the spending and limits of a whole session, shared by the task and all its subtasks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from pydantic import JsonValue

from handiwork.events.action import AgentFinishAction, ChangeAgentStateAction, MessageAction
from handiwork.events.base import Action, Event, Observation
from handiwork.events.observation import AgentStateChangedObservation, CmdOutputObservation, JobObservation
from handiwork.events.overview import WorkspaceOverviewAction
from handiwork.events.record import (
    ApprovalEvent,
    CompletionEvent,
    Confirmation,
    ContextLoaded,
    ContextWithheld,
    CostSource,
    EgressEvent,
    HookEvent,
    HookPoint,
    Limits,
    MCPServerEvent,
    NetworkAllowed,
    PermissionsRevoked,
    SessionStarted,
    SettingsChanged,
    SnapshotEvent,
    StepStarted,
    ThrottledEvent,
    UnusedHooks,
    Usage,
)

Traffic = Literal["normal", "throttling", "paused"]
"""Whether model calls run: "throttling" while one waits for a rate limit, "paused" while a limit pauses the session."""

REFUSALS = 5
"""The number of refused hosts that are remembered for the user."""


@dataclass
class HookTotals:
    """The hooks that have run. ``run`` has each with its point, and ``done`` those that were not interrupted.

    ``passed`` lists the hooks that let a pending action pass, by the action's id. ``sent_back`` counts how often in a
    row a hook has sent back the agent of a subtask, ``ended`` lists the hooks that ran since the task ended, and
    ``told`` is True once the user was told since then which hooks never ran.
    """

    run: set[tuple[HookPoint, str]] = field(default_factory=set[tuple[HookPoint, str]])
    done: set[tuple[HookPoint, str]] = field(default_factory=set[tuple[HookPoint, str]])
    passed: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    sent_back: dict[tuple[int, str], int] = field(default_factory=dict[tuple[int, str], int])
    ended: list[str] = field(default_factory=list[str])
    told: bool = False

    def apply(self, event: Event) -> None:
        """Apply the next event of the log."""
        match event:
            case HookEvent():
                self._count(event)
            case UnusedHooks():
                self.told = True
            case MessageAction(source="user"):
                self.sent_back.clear()
                self._begin_again()
            case AgentFinishAction():
                for gate in [gate for gate in self.sent_back if gate[0] == event.subtask]:
                    del self.sent_back[gate]
            case StepStarted():
                self._begin_again()
            case AgentStateChangedObservation():
                pass  # a question about the action, or its answer
            case Observation(cause=int(action)):
                self.passed.pop(action, None)
            case _:
                pass

    def _begin_again(self) -> None:
        self.ended.clear()
        self.told = False

    def _count(self, event: HookEvent) -> None:
        self.run.add((event.point, event.hook))
        if event.problem == "interrupted":
            return
        self.done.add((event.point, event.hook))
        gate = (event.subtask, event.hook)
        match event.point:
            case "before_action" if event.effect == "" and event.cause is not None:
                self.passed.setdefault(event.cause, []).append(event.hook)
            case "before_finish" if event.effect == "sent_back":
                self.sent_back[gate] = self.sent_back.get(gate, 0) + 1
            case "before_finish" if event.effect == "":
                self.sent_back.pop(gate, None)
            case "session_end":
                self.ended.append(event.hook)
            case _:
                pass


@dataclass
class Totals:
    """A fold over the log, like State, of the data that all subtasks share.

    ``time`` is seconds of running, ``cost`` and ``last_cost`` (of the newest priced completion) USD; ``unpriced``
    counts the completions of unknown cost, and ``cost_sources`` lists the sources of costs. ``asked`` lists the ids of
    actions that wait for the user's approval, ``approvals`` holds the answers to actions that have not started,
    ``approval_times`` the times at which approved actions started, and ``rules`` the rules from answers and those kept
    for the project. ``network`` lists the hosts that the sandbox may reach, ``once`` those of them that are allowed
    once, with whether the sandbox has reached them; ``refused`` holds the newest refusals that the user could have
    allowed, by host. ``unasked`` is True once an action ran without a question to the user about network access.
    ``plan_mode`` is None until it was first set. Actions with an id below ``interrupted`` that have not begun will not
    run. ``jobs`` holds the commands not known to have ended, by subtask and job handle ("" for the shell's own
    command). ``outputs`` lists the blobs of outputs too large for their observations. ``mcp`` holds the newest "ready"
    event, or else the newest event, of each MCP server. ``throttled`` holds the subtasks whose call waits for a rate
    limit; ``at_limit`` is True while a limit pauses the session. ``snapshots`` counts those taken; ``last_change`` is
    the id of the newest one that has changed files, the first left aside. ``context`` holds the conventions in the
    prompts by path, and ``withheld`` the paths of those that are not. ``skills`` are the lines that document the user's
    own skills. ``hooks`` are the user's hooks that have run.
    """

    model: str = ""
    base_url: str | None = None
    sandbox: str = ""
    workspace: str = ""
    skills: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    confirmation: Confirmation = "never"
    plan_mode: bool | None = None
    interrupted: int = 0
    iteration: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: float = 0.0
    last_cost: float = 0.0
    unpriced: int = 0
    cost_sources: set[CostSource] = field(default_factory=set[CostSource])
    time: float = 0.0
    asked: list[int] = field(default_factory=list[int])
    approvals: dict[int, ApprovalEvent] = field(default_factory=dict[int, ApprovalEvent])
    approval_times: dict[int, datetime] = field(default_factory=dict[int, datetime])
    rules: list[str] = field(default_factory=list[str])
    network: list[str] = field(default_factory=list[str])
    once: dict[str, bool] = field(default_factory=dict[str, bool])
    refused: dict[str, EgressEvent] = field(default_factory=dict[str, EgressEvent])
    unasked: bool = False
    jobs: dict[tuple[int, str], str] = field(default_factory=dict[tuple[int, str], str])
    outputs: list[str] = field(default_factory=list[str])
    mcp: dict[str, MCPServerEvent] = field(default_factory=dict[str, MCPServerEvent])
    throttled: set[int] = field(default_factory=set[int])
    at_limit: bool = False
    snapshots: int = 0
    last_change: int = 0
    hooks: HookTotals = field(default_factory=HookTotals)
    context: dict[str, ContextLoaded] = field(default_factory=dict[str, ContextLoaded])
    withheld: set[str] = field(default_factory=set[str])
    last_id: int = 0
    last_timestamp: datetime | None = None

    def apply(self, event: Event, running: bool) -> None:
        """Apply the next event of the log; ``running`` tells whether the session ran until this event."""
        # What the user says need not come while a process runs the session: the next event tells.
        said = running and event.source == "user" and not isinstance(event, ChangeAgentStateAction)
        if running and not said and self.last_timestamp is not None and not isinstance(event, SessionStarted):
            self.time += max(0.0, (event.timestamp - self.last_timestamp).total_seconds())
        self.last_id = event.id
        if self.last_timestamp is None:
            self.last_timestamp = event.timestamp
        elif not said:
            # Subtasks that run together append events out of the order of their times.
            self.last_timestamp = max(self.last_timestamp, event.timestamp)
        self._follow_job(event)
        self.hooks.apply(event)
        self._follow_traffic(event)
        self._follow_context(event)
        if isinstance(event, WorkspaceOverviewAction) and event.source == "agent" and event.completion is None:
            self.iteration -= 1  # the agent's first look, which no model has asked for
        match event:
            case SessionStarted():
                self._start(event)
            case NetworkAllowed():
                self._add_hosts(event.hosts, once=event.once)
            case PermissionsRevoked():
                self.rules = [rule for rule in self.rules if rule not in event.rules]
                self._remove_hosts(event.hosts)
            case EgressEvent():
                self._follow_egress(event)
            case ChangeAgentStateAction(agent_state="paused" | "stopped"):
                self.interrupted = event.id
            case StepStarted():
                self.iteration += 1
            case CompletionEvent():
                self._count(event)
            case SnapshotEvent() if event.tree:
                self.snapshots += 1
                if self.snapshots > 1 and event.changed:
                    self.last_change = event.id
            case MCPServerEvent():
                if event.state == "ready" or not self.mcp.get(event.server, event).tools:
                    self.mcp[event.server] = event
            case SettingsChanged():
                if event.model is not None:
                    self.model, self.base_url = event.model, event.base_url
                self.limits = event.limits or self.limits
                self.confirmation = event.confirmation or self.confirmation
                self.plan_mode = self.plan_mode if event.plan_mode is None else event.plan_mode
            case ApprovalEvent():
                self._answer(event)
            case AgentStateChangedObservation(agent_state="awaiting_user_confirmation", cause=int(action)):
                self.asked.append(action)
            case AgentStateChangedObservation(agent_state="running", cause=int(action)):
                if self.approvals.pop(action, None) is not None:  # the action starts
                    self.approval_times[action] = event.timestamp
            case Observation(cause=int(action)):
                self._close(event, action)
            case Action(source="agent" | "environment") if event.runnable and not self._asks_about_network:
                self.unasked = True
            case _:
                pass

    @property
    def _asks_about_network(self) -> bool:
        return self.confirmation == "always" or (self.confirmation == "risky" and bool(self.network))

    def _start(self, event: SessionStarted) -> None:
        self.jobs.clear()  # the new sandbox has none
        self.model, self.sandbox, self.workspace = event.model, event.sandbox, event.workspace
        self.limits, self.confirmation, self.skills = event.limits, event.confirmation, event.skills
        base_url = event.settings.get("base_url")
        self.base_url = base_url if isinstance(base_url, str) else None
        self._add_hosts(_texts(event.settings.get("allow_net")))
        if not event.resumed:  # later the user may have taken some back
            self.rules = _texts(event.settings.get("rules"))

    def _follow_job(self, event: Event) -> None:
        match event:
            case CmdOutputObservation(status="background"):
                self.jobs[event.subtask, event.job] = event.command
            case CmdOutputObservation(status="running" | "input"):
                self.jobs.setdefault((event.subtask, ""), event.command)
            case CmdOutputObservation(job=""):
                self.jobs.pop((event.subtask, ""), None)
            case JobObservation(status="done" | "stopped"):
                self.jobs.pop((event.subtask, event.job), None)
            case _:
                pass

    def forget_jobs(self, child: int | None) -> None:
        """Forget the commands of a child whose sandbox has ended, or of all tasks if ``child`` is None."""
        self.jobs = {key: command for key, command in self.jobs.items() if child is not None and key[0] != child}

    @property
    def traffic(self) -> Traffic:
        """The state of the session's model calls."""
        return "paused" if self.at_limit else "throttling" if self.throttled else "normal"

    def _follow_traffic(self, event: Event) -> None:
        match event:
            case ThrottledEvent():
                self.throttled.add(event.subtask)
            case CompletionEvent() | StepStarted():
                self.throttled.discard(event.subtask)
            case AgentStateChangedObservation(subtask=0):
                self.throttled.clear()
                self.at_limit = event.agent_state == "paused" and event.reason == "limit"
            case SessionStarted() | ChangeAgentStateAction() | MessageAction(source="user"):
                self.throttled.clear()
                self.at_limit = False
            case AgentStateChangedObservation():
                self.throttled.discard(event.subtask)
            case _:
                pass

    def _follow_context(self, event: Event) -> None:
        match event:
            case ContextLoaded():
                self.context[event.path] = event
                self.withheld.discard(event.path)
            case ContextWithheld():
                self.withheld.update(event.paths)
                for path in event.paths:
                    self.context.pop(path, None)
            case _:
                pass

    def _add_hosts(self, hosts: Iterable[str], *, once: bool = False) -> None:
        for host in hosts:
            if once and host not in self.network:
                self.once[host] = False
            elif not once:
                self.once.pop(host, None)
            self.network = list(dict.fromkeys([*self.network, host]))
            self.refused.pop(host, None)

    def _remove_hosts(self, hosts: Iterable[str]) -> None:
        for host in hosts:
            self.once.pop(host, None)
        self.network = [host for host in self.network if host not in hosts]

    def _follow_egress(self, event: EgressEvent) -> None:
        target = (event.host, event.port)
        others = [(name, old) for name, old in self.refused.items() if (old.host, old.port) != target]
        if event.allowed:
            self.once |= {event.pattern: True} if event.pattern in self.once else {}
        elif event.pattern:
            others.append((event.pattern, event))
        self.refused = dict(others[-REFUSALS:])

    def _count(self, completion: CompletionEvent) -> None:
        self.usage = self.usage + completion.usage
        self.cost_sources.add(completion.cost_source)
        if completion.cost is None:
            self.unpriced += 1
        else:
            self.cost += completion.cost
            self.last_cost = completion.cost

    def _close(self, observation: Observation, action: int) -> None:
        self.approvals.pop(action, None)
        self._remove_hosts([host for host, used in self.once.items() if used])
        if action in self.asked:
            self.asked.remove(action)
        if observation.blob is not None:
            self.outputs.append(observation.blob)

    def _answer(self, approval: ApprovalEvent) -> None:
        if approval.action not in self.asked:
            return
        self.asked.remove(approval.action)
        self.approvals[approval.action] = approval
        if approval.allowed and approval.rule is not None and approval.rule not in self.rules:
            self.rules.append(approval.rule)


def _texts(setting: JsonValue) -> list[str]:
    return [str(text) for text in setting] if isinstance(setting, list) else []

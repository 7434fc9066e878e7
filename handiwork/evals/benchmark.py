"""What a benchmark is: instances, how each is put to an agent, and the official rule that scores what came of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from handiwork.agents.state import State
from handiwork.errors import HandiworkError
from handiwork.events.action import AgentFinishAction, AgentRejectAction, MessageAction
from handiwork.events.record import Limits
from handiwork.sandbox.base import Sandbox

Metric = Literal["accuracy", "pass@1", "success rate", "mean score"]
"""What the mean of the instances' scores is called."""


Ask = Callable[[str], Awaitable[str]]

PROVIDED = "provided"
"""The folder beside the workspace that ``Benchmark.provide`` fills."""


class DataError(HandiworkError):
    """The benchmark's data are not there or not what they must be; the text says what to do."""


class UnfitError(Exception):
    """The sandbox cannot be what an instance needs, however often it is tried; the text says why."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One task of a benchmark: ``row`` is its upstream record, ``group`` what the report tells apart (a difficulty).

    ``trial`` counts from 1; a benchmark that draws its tasks at random draws another for each.
    """

    id: str
    row: Mapping[str, Any]
    group: str = ""
    trial: int = 1


@dataclass(frozen=True, slots=True)
class Rollout:
    """What an agent made of an instance: where its session stands, and its sandbox, which still runs.

    ``ask`` puts a prompt to the model that plays the user or judges, at temperature 0. Raises LLMError.
    """

    instance: Instance
    state: State
    sandbox: Sandbox
    ask: Ask

    @property
    def said(self) -> str:
        """The agent's last words: to the user, at its finish, or why it gave up; "" where it said nothing."""
        return last_words(self.state)


def last_words(state: State) -> str:
    """Return what the agent said last: to the user, at its finish, or why it gave up; "" where it said nothing."""
    for action, _ in reversed(state.history):
        match action:
            case AgentFinishAction(outputs=outputs):
                return str(outputs.get("message", ""))
            case AgentRejectAction(outputs=outputs):
                return str(outputs.get("message") or outputs.get("reason") or "")
            case MessageAction(source="agent"):
                return action.content
            case _:
                pass
    return ""


@dataclass(frozen=True, slots=True)
class Score:
    """What the rule says: ``value`` from 0 to 1, the ``answer`` that was scored, and how it came to it."""

    value: float
    answer: str = ""
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Benchmark(ABC):
    """A benchmark; one module below ``benchmarks`` has one.

    ``files`` are the upstream files of a split, as paths in the data folder, with where each is got; ``gated`` says
    what must be done before that is possible, and is empty where nothing must. ``turns`` is how often the simulated
    user answers at the most. ``limits`` are those of one session; with ``fixed_steps`` their iterations are a part of
    the rule: who has used them up is scored for what there is then. ``agent`` is run where none is named,
    the user's where it is "".
    """

    name: ClassVar[str]
    title: ClassVar[str]
    size: ClassVar[str]
    source: ClassVar[str]
    licence: ClassVar[str]
    citation: ClassVar[str]
    metric: ClassVar[Metric] = "accuracy"
    splits: ClassVar[tuple[str, ...]] = ("test",)
    gated: ClassVar[str] = ""
    turns: ClassVar[int] = 0
    limits: ClassVar[Limits] = Limits()
    fixed_steps: ClassVar[bool] = False
    agent: ClassVar[str] = ""

    @abstractmethod
    def files(self, split: str) -> Mapping[str, str]:
        """Return the upstream files of a split: path in the data folder, and the address it is got from."""

    @abstractmethod
    def load(self, data: Path, split: str) -> list[Instance]:
        """Return the instances in the folder ``data``, which has the upstream layout. Raises DataError, OSError."""

    def further_files(self, split: str) -> Sequence[str]:
        """Return the paths in the data folder, beside ``files``, of files and folders that instances use if there."""
        return ()

    def skipped(self, instance: Instance) -> str:
        """Return why the instance cannot be run on this machine, "" where it can."""
        return ""

    def allow_net(self, instance: Instance) -> tuple[str, ...]:
        """Return the hosts that the instance's sandbox may reach, as for ``handiwork run --allow-net``."""
        return ()

    def turn(self, instance: Instance) -> AbstractAsyncContextManager[object]:
        """Return what is held around a rollout of the instance, where others may disturb it."""
        return nullcontext()

    def prepare(self, instance: Instance, workspace: Path) -> None:  # noqa: B027 - few need it
        """Write what the agent finds in its workspace, an empty folder."""

    def provide(self, instance: Instance, folder: Path) -> None:  # noqa: B027 - few need it
        """Write what the sandbox has read-only, an empty folder beside the workspace: what scores the agent."""

    async def set_up(self, instance: Instance, sandbox: Sandbox) -> None:  # noqa: B027 - few need it
        """Make the sandbox, which runs, what the instance says it must be. Raises UnfitError, SandboxError."""

    @abstractmethod
    def instruction(self, instance: Instance) -> str:
        """Return what the agent is asked to do."""

    async def task(self, instance: Instance, sandbox: Sandbox, agent: str) -> str:
        """Return what the agent of that name is asked to do, where that is known only once the sandbox is set up."""
        return self.instruction(instance)

    async def over(self, rollout: Rollout) -> bool:
        """Return whether the task is at its end, whatever the agent would still do; asked after every observation."""
        return False

    async def reply(self, rollout: Rollout, turn: int) -> str | None:
        """Return what the simulated user says after the agent's turn ``turn``, from 1; None where nothing more."""
        return None

    @abstractmethod
    async def score(self, rollout: Rollout) -> Score:
        """Score what the agent left, by the official rule. What it raises is the grader's failure, not the agent's."""

    def more(self, scores: Sequence[Score]) -> dict[str, float]:
        """Return the benchmark's other figures, by their names, over one score or more."""
        return {}

"""The interface of a benchmark: instances, the agent's task for each, and the official rule that scores the result."""

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
from handiwork.events.base import Action
from handiwork.events.describe import describe
from handiwork.events.record import Limits
from handiwork.sandbox.base import Sandbox
from handiwork.workspace.session_files import SessionFiles

Metric = Literal["accuracy", "pass@1", "success rate", "mean score"]
"""The name of the instances' mean score."""


Ask = Callable[[str], Awaitable[str]]

PROVIDED = "provided"
"""The folder beside the workspace that ``Benchmark.provide`` fills."""


class DataError(HandiworkError):
    """The benchmark's data are missing or invalid; the message says how to fix it."""


class UnfitError(Exception):
    """The sandbox cannot meet an instance's requirements, even if retried; the message says why."""


class SkippedError(Exception):
    """An instance cannot run while the machine is as it is now; the message says why."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One task of a benchmark: ``row`` is its upstream record, ``group`` its category in the report, such as a level.

    ``trial`` counts from 1; a benchmark that draws its tasks at random draws a new one for each trial.
    """

    id: str
    row: Mapping[str, Any]
    group: str = ""
    trial: int = 1


@dataclass(frozen=True, slots=True)
class Rollout:
    """An agent's finished work on an instance: the state of its session, and its sandbox, which still runs.

    ``ask`` sends a prompt to the model that plays the user or judges, at temperature 0. Raises LLMError. ``feedback``
    sends one to the model that comments on the agent's steps, and is None in a run without such a model. ``files`` are
    the session's files on this machine, None if the rollout was made without a session. ``turn`` is the number of the
    agent's last turn, from 1, 0 if it is not known; the state's history may lack turns that were condensed.
    """

    instance: Instance
    state: State
    sandbox: Sandbox
    ask: Ask
    feedback: Ask | None = None
    files: SessionFiles | None = None
    turn: int = 0

    @property
    def final_message(self) -> str:
        """The agent's last message: to the user, at its finish, or its reason to give up; "" without one.

        The message of a finish with other outputs, such as MathAgent's ``answer``, is all of them, as the user sees it.
        """
        for action, _ in reversed(self.state.history):
            match action:
                case AgentFinishAction(outputs=outputs):
                    return str(outputs["message"]) if "message" in outputs else describe(action).object
                case AgentRejectAction(outputs=outputs):
                    return str(outputs.get("message") or outputs.get("reason") or "")
                case MessageAction(source="agent"):
                    return action.content
                case _:
                    pass
        return ""

    @property
    def answer(self) -> str:
        """The agent's last message, "" if it gave up: its reason may name a choice by chance."""
        return "" if self.state.agent_state == "rejected" else self.final_message


@dataclass(frozen=True, slots=True)
class Score:
    """The result of scoring: ``value`` from 0 to 1, the scored ``answer``, and details."""

    value: float
    answer: str = ""
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Benchmark(ABC):
    """A benchmark, defined in one module below ``benchmarks``.

    ``files`` are the upstream files of a split, as paths in the data folder with their addresses; ``gated`` describes
    the user's steps before the download, and is "" if there are none. ``turns`` is the maximum number of the simulated
    user's answers. ``limits`` are those of one session; with ``fixed_steps`` their iterations are part of the rule: an
    agent that has used them up is scored on its result so far. ``agent`` is the default agent, "" for the one in the
    user's settings. With ``writable_root`` the tasks change the system itself: in a sandbox with an image the agent is
    root of a container that vanishes afterwards, as ``sandbox.docker`` describes. ``has_feedback`` means that a second
    model may comment on the agent's steps, see ``Rollout.feedback``. ``scoring_seconds`` is the time that its scorer
    may take beyond the usual before a rollout counts as hanging. ``own_data`` is the data folder of a benchmark that
    comes with its data. ``data_folder`` names the folder with its data, "" if that has the benchmark's name.
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
    writable_root: ClassVar[bool] = False
    has_feedback: ClassVar[bool] = False
    scoring_seconds: ClassVar[float] = 0.0
    own_data: ClassVar[Path | None] = None
    data_folder: ClassVar[str] = ""

    @abstractmethod
    def files(self, split: str) -> Mapping[str, str]:
        """Return the upstream files of a split: their paths in the data folder, and their addresses."""

    @abstractmethod
    def load(self, data: Path, split: str) -> list[Instance]:
        """Return the instances in the folder ``data``, which has the upstream layout. Raises DataError, OSError."""

    def further_files(self, split: str) -> Sequence[str]:
        """Return further paths in the data folder, besides ``files``, that instances use if they exist."""
        return ()

    def linked_files(self, data: Path, split: str) -> Mapping[str, str]:
        """Return the files that the fetched ``files`` refer to, as they are given: fetched too, but not required."""
        return {}

    def skipped(self, instance: Instance) -> str:
        """Return why the instance cannot run on this machine, "" if it can."""
        return ""

    def allow_net(self, instance: Instance) -> tuple[str, ...]:
        """Return the hosts that the instance's sandbox may reach, as for ``handiwork run --allow-net``."""
        return ()

    def turn(self, instance: Instance) -> AbstractAsyncContextManager[object]:
        """Return a context held around a rollout of the instance, to keep other rollouts from disturbing it."""
        return nullcontext()

    def image(self, instance: Instance) -> str:
        """Return the Docker image of the instance's sandbox, "" if the run decides on the sandbox.

        Either all instances of a benchmark have an image of their own, or none has; ``prepare`` may make it.
        """
        return ""

    def prepare(self, instance: Instance, workspace: Path) -> None:  # noqa: B027 - few need it
        """Write the files of the agent's workspace, an empty folder."""

    def provide(self, instance: Instance, folder: Path) -> None:  # noqa: B027 - few need it
        """Write files that score the agent into an empty folder beside the workspace, read-only in the sandbox."""

    def mounts(self, instance: Instance) -> Sequence[Path]:
        """Return folders of this machine that the sandbox shows read-only at their own paths."""
        return ()

    def has_rehearsal(self, instance: Instance) -> bool:
        """Return whether ``rehearse`` is to be called for the instance."""
        return False

    async def rehearse(self, instance: Instance, sandbox: Sandbox) -> None:  # noqa: B027 - few need it
        """Try in a second sandbox of the same kind, with its own workspace, whether the instance can be solved in it.

        Called before ``set_up``. Raises UnfitError, SandboxError.
        """

    async def set_up(self, instance: Instance, sandbox: Sandbox) -> None:  # noqa: B027 - few need it
        """Set the running sandbox up as the instance requires. Raises UnfitError, SandboxError."""

    @abstractmethod
    def instruction(self, instance: Instance) -> str:
        """Return the agent's task."""

    async def task(self, instance: Instance, sandbox: Sandbox, agent: str) -> str:
        """Return the task of the agent with that name, if it depends on the sandbox after its set-up."""
        return self.instruction(instance)

    async def over(self, rollout: Rollout) -> bool:
        """Return whether the task has ended, even if the agent would continue; called after every observation."""
        return False

    async def reply(self, rollout: Rollout, turn: int) -> str | None:
        """Return the simulated user's reply to the agent's turn ``turn``, from 1; None to end the conversation."""
        return None

    async def solve(self, instance: Instance, sandbox: Sandbox) -> Action:
        """Carry out the reference solution in the sandbox after its set-up; return the action that ends the task.

        Only the arm "oracle" calls it, and scores 1 on every instance, or the benchmark's docstring says why not; so it
        does if the arm "empty", which ends with an empty message, scores more than 0. A benchmark without reference
        solutions does not define it. Raises UnfitError for an instance without one, SandboxError.
        """
        raise UnfitError(f"{self.name} has no reference solutions")

    @abstractmethod
    async def score(self, rollout: Rollout) -> Score:
        """Score the agent's result by the official rule.

        Raises UnfitError, SandboxError, BrowserError, LLMError. Any other exception is the grader's failure, not the
        agent's.
        """

    def more(self, scores: Sequence[Score]) -> dict[str, float]:
        """Return the benchmark's other figures, by name, over at least one score."""
        return {}

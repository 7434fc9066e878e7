"""One rollout: an agent works on an instance in its own session, and the result is scored."""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
import shutil
import tempfile
import time
import traceback
from collections.abc import Awaitable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from handiwork.agents.state import State
from handiwork.errors import BrowserError, SandboxError
from handiwork.evals.benchmark import PROVIDED, Benchmark, Instance, Rollout, Score, SkippedError, UnfitError
from handiwork.evals.running import arms
from handiwork.evals.running.budget import is_cut
from handiwork.evals.running.conditions import Conditions
from handiwork.evals.running.results import INFRASTRUCTURE, NOT_MEASURED, Outcome, Result
from handiwork.evals.scoring.execution import new_sandbox
from handiwork.events.base import Event
from handiwork.events.codec import to_json
from handiwork.events.observation import ErrorObservation
from handiwork.events.record import CompletionEvent, Usage
from handiwork.llm import create as llms
from handiwork.llm.errors import LLMError
from handiwork.llm.types import LLM, Message
from handiwork.log.blobs import digests_in
from handiwork.log.store import Store
from handiwork.session.config import SessionConfig
from handiwork.session.open import create
from handiwork.session.session import Session

ATTEMPTS, PAUSE = 3, 2.0
"""The number of attempts for failures that are not the agent's, and the seconds before the second one."""

HANGING = 2.0, 300.0
"""Factor and seconds by which a rollout may exceed its deadline: sandbox and scorer take time too."""

ANSWERABLE = frozenset({"finished", "rejected", "awaiting_user_input"})
"""States in which an agent can be answered."""

TITLE = "task"
"""The title of every rollout's session."""

LARGEST_BLOB = 10_000_000
"""Bytes of the largest picture or output that is kept beside a trajectory."""

MALFORMED = 3
"""The number of malformed replies at the end that makes the format the cause of the failure."""

FAILED: Mapping[str | None, Outcome] = {"agent": "agent error", "model": "model", "sandbox": "sandbox"}
"""The outcomes of sessions that failed, by the reason; "platform" for any other."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RolloutJob:
    """A rollout to execute: ``budget`` is its share of the run's budget in USD, all attempts together; None: no cap.

    ``name`` begins the names of its folders, one for each attempt. Agents see the path of their workspace: a name
    derived from the instance could reveal the answer.
    """

    instance: Instance
    trial: int
    budget: float | None = None
    name: str = field(default_factory=lambda: secrets.token_hex(8))


@dataclass(frozen=True, slots=True)
class FinishedRollout:
    """An executed rollout, and its trajectory: the events of its session as JSON lines, and their blobs by digest."""

    result: Result
    trajectory: str
    blobs: Mapping[str, bytes] = field(default_factory=dict[str, bytes])


class SideModel:
    """A model beside the agent's: it plays the user, judges, or gives feedback; it is created at the first call.

    ``cost`` is USD of all but the ``unpriced`` calls, ``usage`` their tokens.
    """

    def __init__(self, model: str, base_url: str | None) -> None:
        self._model, self._base_url = model, base_url
        self._llm: LLM | None = None
        self.cost = 0.0
        self.unpriced = 0
        self.usage = Usage()

    async def ask(self, prompt: str) -> str:
        """Return the model's answer to the prompt, at temperature 0. Raises LLMError."""
        if self._llm is None:
            self._llm = llms.create(self._model, self._base_url)
        answer = await self._llm.complete([Message.text("user", prompt)], temperature=0.0)
        self.cost += answer.cost or 0.0
        self.unpriced += answer.cost is None
        self.usage += answer.usage
        return answer.content

    async def close(self) -> None:
        """Close the model's connections."""
        if self._llm is not None:
            await self._llm.close()


@dataclass(frozen=True, slots=True)
class SideModels:
    """The models beside the agent's: one plays the user or judges, the ``critic`` gives feedback if the run has it."""

    user: SideModel
    critic: SideModel | None

    async def close(self) -> None:
        """Close the models' connections."""
        await self.user.close()
        if self.critic is not None:
            await self.critic.close()


@contextmanager
def rollouts_folder() -> Generator[Path]:
    """Yield a temporary folder for the files of rollouts, which is removed at the end.

    Agents see the path of their workspace: a folder elsewhere could reveal the benchmark.
    """
    with tempfile.TemporaryDirectory(prefix="handiwork-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


async def roll_out(conditions: Conditions, benchmark: Benchmark, job: RolloutJob, parent: Path) -> FinishedRollout:
    """Execute a rollout in a temporary folder below ``parent``; errors become outcomes, not exceptions."""
    began, budget, total = time.monotonic(), job.budget, None
    while True:
        attempt = 1 if total is None else total.attempts + 1
        folder = parent / f"{job.name}{attempt}"
        done = await _attempt(conditions, benchmark, replace(job, budget=budget), folder)
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        total = done.result if total is None else done.result.after(total)
        budget = None if job.budget is None else job.budget - total.spent
        if total.outcome not in INFRASTRUCTURE or attempt == ATTEMPTS or (budget is not None and budget <= 0):
            break
        await asyncio.sleep(PAUSE * 3 ** (attempt - 1))
    return replace(done, result=total.model_copy(update={"seconds": time.monotonic() - began}))


def file_name(instance: str) -> str:
    """Return a name for files of an instance, unique to it."""
    safe = re.sub(r"[^\w.-]", "_", instance)[:100]
    return safe if safe == instance else f"{safe}-{hashlib.sha256(instance.encode()).hexdigest()[:8]}"


async def _attempt(conditions: Conditions, benchmark: Benchmark, job: RolloutJob, folder: Path) -> FinishedRollout:
    result = Result(id=job.instance.id, trial=job.trial, group=job.instance.group, outcome="platform")
    try:
        workspace, provided, data = folder / "workspace", folder / PROVIDED, folder / "data"
        workspace.mkdir(parents=True)
        provided.mkdir()
        instance = replace(job.instance, trial=job.trial)
        await asyncio.to_thread(benchmark.prepare, instance, workspace)
        await asyncio.to_thread(benchmark.provide, instance, provided)
        async with benchmark.turn(instance), Store.open(data) as store:
            config = _config(conditions, benchmark, instance, workspace, job.budget)
            mounts = (*((provided,) if any(provided.iterdir()) else ()), *benchmark.mounts(instance))
            config = config.model_copy(update={"mount_ro": tuple(map(str, mounts))})
            llm = arms.model_of(conditions.agent)
            opened = await create(store, data, config, lambda _: None, TITLE, llm=llm, conventions=False)
            models = SideModels(
                SideModel(conditions.user_model, conditions.user_base_url),
                SideModel(conditions.feedback_model, None) if conditions.feedback_model else None,
            )
            try:
                fields = await _result_fields(conditions, benchmark, replace(job, instance=instance), opened, models)
            finally:
                await opened.close()
                await models.close()
            events = await opened.log.read()
            calls = sum(isinstance(event, CompletionEvent) for event in events)
            fields |= {**_cost_fields(opened.state, models), "calls": calls}
            trajectory = "".join(f"{to_json(event)}\n" for event in events)
            return FinishedRollout(result.model_copy(update=fields), trajectory, await _blobs(store, trajectory))
    except Exception as error:  # noqa: BLE001 - one rollout never ends a run; its result has the error
        outcome, why = _blame(error)
        return FinishedRollout(result.model_copy(update={"outcome": outcome, "why": why}), "")


async def _blobs(store: Store, trajectory: str) -> dict[str, bytes]:
    """Return the blobs that events of the trajectory refer to, without those larger than LARGEST_BLOB."""
    listed = await asyncio.to_thread(store.blobs.listed, digests_in([trajectory]))
    small = [digest for digest, state in listed.items() if state.size <= LARGEST_BLOB]
    return {digest: await store.blobs.get(digest) for digest in small}


async def _result_fields(
    conditions: Conditions, benchmark: Benchmark, job: RolloutJob, opened: Session, models: SideModels
) -> dict[str, Any]:
    """Return the fields of a result about the rollout's end and its score."""
    factor, grace = HANGING
    try:
        patience = factor * conditions.deadline + grace + benchmark.scoring_seconds
        async with asyncio.timeout(patience), opened.hold_lease():
            rollout = await _converse(conditions, benchmark, job.instance, opened, models)
            steps, (outcome, why) = rollout.state.iteration, outcome_of(rollout.state, await opened.log.read())
            if job.budget is not None and is_cut(job.budget, conditions, rollout.state, outcome):
                outcome, why = "stopped", why or "the agent ended its task at its share of the run's budget"
            elif outcome == "limit" and benchmark.fixed_steps and steps == conditions.limits.iterations:
                outcome, why = "submitted", f"its {steps} steps were up"
            if outcome in NOT_MEASURED:
                return {"outcome": outcome, "why": why}
            score = await _grade(_score(benchmark, rollout))
    except Exception as error:  # noqa: BLE001 - as above; the cost so far is kept
        outcome, why = _blame(error)
        return {"outcome": outcome, "why": why}
    scoring = {"score": score.value, "answer": score.answer, "details": score.details}
    return {"outcome": outcome, "why": why, **scoring}


async def _score(benchmark: Benchmark, rollout: Rollout) -> Score:
    """Return the benchmark's score, its answer as text. Raises ValueError for a value that is not from 0 to 1."""
    score = await benchmark.score(rollout)
    value, answer = float(score.value), cast("object", score.answer)
    if not 0 <= value <= 1:  # NaN is not either
        raise ValueError(f"the score is {value}: a Score has a value from 0 to 1")
    return Score(value, "" if answer is None else str(answer), dict(score.details))


class _GraderError(Exception):
    """The scorer failed; the message is its traceback."""


async def _grade(grading: Awaitable[T]) -> T:
    """Return the benchmark's judgement of a rollout.

    Raises UnfitError, SandboxError, BrowserError, LLMError, _GraderError.
    """
    try:
        return await grading
    except (UnfitError, SandboxError, BrowserError, LLMError):
        raise
    except Exception:  # noqa: BLE001 - a scorer may be third-party code
        raise _GraderError(traceback.format_exc(limit=-5)) from None


def _blame(error: Exception) -> tuple[Outcome, str]:
    """Return the outcome for an exception, and its explanation."""
    match error:
        case UnfitError():
            return "unfit", str(error)
        case SkippedError():
            return "skipped", str(error)
        case SandboxError() | BrowserError():
            return "sandbox", str(error)
        case LLMError():
            return "model", str(error)
        case _GraderError():
            return "grader", str(error)
        case TimeoutError():
            return "platform", "it hung: neither its deadline nor its scorer came to an end"
        case _:
            return "platform", "".join(traceback.format_exception(error, limit=-5))


def outcome_of(state: State, events: Sequence[Event]) -> tuple[Outcome, str]:
    """Return the outcome of the session with these events, and its explanation."""
    why = state.change.content if state.change else ""
    if any(isinstance(event, ErrorObservation) and event.error_id == "sandbox_lost" for event in events):
        # The session continued, but on a machine that had lost its programs: its result measures nothing.
        return "sandbox", "the sandbox was lost"
    match state.agent_state:
        case "finished" | "awaiting_user_input":
            return "submitted", "its time was up" if _is_late(state) else ""
        case "rejected":
            return "gave up", str(state.outputs.get("reason", ""))
        case "paused":
            return _paused_outcome(state), why
        case _:
            return FAILED.get(state.change.reason if state.change else None, "platform"), why


def _paused_outcome(state: State) -> Outcome:
    reason = state.change.reason if state.change else None
    last_observations = [observation for _, observation in state.history[-MALFORMED:]]
    if len(last_observations) == MALFORMED and all(
        isinstance(o, ErrorObservation) and o.error_id == "malformed" for o in last_observations
    ):
        return "format"
    if reason == "stuck":
        return "repeat"
    if _is_late(state):
        return "timeout"
    return "limit" if reason in ("limit", "context") else "platform"


def _is_late(state: State) -> bool:
    """Return whether the time limit has come; an agent may then end its task with what it has."""
    return state.limits.time is not None and state.time >= state.limits.time


def _config(
    conditions: Conditions, benchmark: Benchmark, instance: Instance, workspace: Path, budget: float | None
) -> SessionConfig:
    costs = [cost for cost in (conditions.limits.cost, budget) if cost is not None]
    times = [time for time in (conditions.limits.time, conditions.deadline) if time is not None]
    return SessionConfig(
        agent=arms.agent_of(conditions.agent),
        model=conditions.model,
        base_url=conditions.base_url,
        protocol=conditions.protocol,
        workspace=str(workspace),
        sandbox=conditions.sandbox,
        image=benchmark.image(instance) or conditions.image,
        writable_root=benchmark.writable_root,
        allow_net=tuple(dict.fromkeys((*conditions.allow_net, *benchmark.allow_net(instance)))),
        limits=conditions.limits.model_copy(update={"time": min(times), "cost": min(costs, default=None)}),
        temperature=conditions.temperature,
    )


class _EndCheck:
    """Tells a session whether its task has ended; an error in the check ends the session too, and is raised later."""

    def __init__(self, benchmark: Benchmark, rollout: Rollout) -> None:
        self._benchmark, self._rollout = benchmark, rollout
        self.failure: Exception | None = None

    async def __call__(self) -> bool:
        try:
            return await _grade(self._benchmark.over(self._rollout))
        except Exception as error:  # noqa: BLE001 - the session would blame the agent
            self.failure = error
            return True


async def _converse(
    conditions: Conditions, benchmark: Benchmark, instance: Instance, opened: Session, models: SideModels
) -> Rollout:
    """Let the agent and the simulated user talk until one of them ends the conversation."""
    sandbox = await opened.sandbox()
    feedback = None if models.critic is None else models.critic.ask
    rollout = Rollout(instance, opened.state, sandbox, models.user.ask, feedback, opened.files)
    end = _EndCheck(benchmark, rollout)
    if benchmark.has_rehearsal(instance):
        used = opened.config
        async with new_sandbox(
            used.sandbox, image=used.image, writable_root=used.writable_root, allow_net=used.allow_net
        ) as (second, workspace):
            await asyncio.to_thread(benchmark.prepare, instance, workspace)
            await second.start()
            await benchmark.rehearse(instance, second)
    await benchmark.set_up(instance, sandbox)
    prompt: str | None = await benchmark.task(instance, sandbox, opened.state.agent)
    if conditions.agent in arms.ARMS:
        await opened.log.append(await arms.work(conditions.agent, benchmark, instance, sandbox))
    for turn in range(1, benchmark.turns + 2):
        await opened.run(prompt, end)
        rollout = replace(rollout, turn=turn)
        if end.failure is not None:
            raise end.failure
        if turn > benchmark.turns or rollout.state.agent_state not in ANSWERABLE:
            break
        if (prompt := await benchmark.reply(rollout, turn)) is None:
            break
    return rollout


def _cost_fields(state: State, models: SideModels) -> dict[str, Any]:
    user, critic = models.user, models.critic
    feedback = {} if critic is None else {"feedback_cost": critic.cost, "feedback_usage": critic.usage}
    return {
        **feedback,
        "cost": state.cost,
        "unpriced": state.unpriced + user.unpriced + (0 if critic is None else critic.unpriced),
        "user_cost": user.cost,
        "usage": state.usage,
        "steps": state.iteration,
    }

"""The results of a run's rollouts, one line each in ``output.jsonl``, appended as they finish."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue, ValidationError
from pydantic_core import PydanticSerializationError

from handiwork.errors import HandiworkError
from handiwork.events.base import Model
from handiwork.events.record import Usage

FILE = "output.jsonl"

Outcome = Literal[
    "submitted",
    "gave up",
    "repeat",
    "format",
    "limit",
    "timeout",
    "agent error",
    "model",
    "sandbox",
    "platform",
    "grader",
    "unfit",
    "skipped",
    "stopped",
    "interrupted",
]
"""The outcome of a rollout, computed from its log.

Of the agent: it "submitted" an answer, or "gave up" and said so; it was ended because it repeated itself ("repeat"),
because its last replies could not be parsed ("format"), or by a "limit" of steps, tokens or cost, or of time
("timeout"); or it raised an exception ("agent error"). Not of the agent: the "model", the "sandbox" or the "platform"
around them failed, or the scorer did ("grader"); the sandbox cannot meet the instance's requirements ("unfit"); the
instance lacks something that the user can put right ("skipped"); or the rollout reached its share of the run's budget
("stopped"), or was "interrupted" with the run. Then there is no score.
"""

INFRASTRUCTURE: frozenset[Outcome] = frozenset({"model", "sandbox", "platform"})
"""The outcomes that are retried."""

LOST: frozenset[Outcome] = frozenset({*INFRASTRUCTURE, "grader"})
"""The outcomes of rollouts that a failure lost, of the infrastructure or the scorer."""

NOT_MEASURED: frozenset[Outcome] = frozenset({*LOST, "unfit", "skipped", "stopped", "interrupted"})
"""The outcomes that do not measure the agent."""

RETRIED_ON_RESUME: frozenset[Outcome] = NOT_MEASURED - {"unfit"}
"""The outcomes whose rollouts are repeated when the run is resumed."""


class ResultsError(HandiworkError):
    """A file of results cannot be read; the message says where and why."""


class Result(Model):
    """One rollout of an instance: ``trial`` counts from 1; ``score`` is from 0 to 1, None if it was not measured.

    ``cost`` is USD for the agent's model, as far as known (``unpriced`` completions are not), and ``user_cost`` that
    for the model that played the user or judged, ``feedback_cost`` and ``feedback_usage`` are cost and tokens of the
    model that gave feedback, all in all attempts. ``calls`` counts the completions of the agent's model in the last
    attempt. ``seconds`` is wall time, scoring included; ``attempts`` counts starts: more than one after infrastructure
    failures. ``trajectory`` is the file of its events in the run's folder. ``why`` explains an end other than the
    agent's answer.
    """

    id: str
    trial: int = 1
    group: str = ""
    outcome: Outcome
    score: float | None = None
    answer: str = ""
    details: dict[str, JsonValue] = Field(default_factory=dict)
    why: str = ""
    cost: float = 0.0
    unpriced: int = 0
    user_cost: float = 0.0
    feedback_cost: float = 0.0
    feedback_usage: Usage = Usage()
    usage: Usage = Usage()
    steps: int = 0
    calls: int = 0
    seconds: float = 0.0
    attempts: int = 1
    trajectory: str = ""

    def after(self, previous: Result) -> Result:
        """Return this result with the cost, tokens, time and attempts of the previous one added."""
        names = ("cost", "unpriced", "user_cost", "feedback_cost", "feedback_usage", "usage", "seconds", "attempts")
        return self.model_copy(update={name: getattr(previous, name) + getattr(self, name) for name in names})

    @property
    def spent(self) -> float:
        """USD for all models, as far as known."""
        return self.cost + self.user_cost + self.feedback_cost

    @property
    def expected(self) -> str:
        """The right answer, which benchmarks put into the details; "" if there is no single one."""
        return str(self.details.get("truth", ""))

    @property
    def key(self) -> tuple[str, int]:
        """The unique key of the rollout in its run."""
        return self.id, self.trial


def rollout_name(key: tuple[str, int]) -> str:
    """Return the name of a rollout for people: its instance, and its trial unless that is the first."""
    instance, trial = key
    return f"{instance}, trial {trial}" if trial > 1 else instance


class Results:
    """The results of a run in the folder ``out``, without an incomplete last line, which a process may be writing.

    ``by_key`` has the last result of each rollout, with the cost of its earlier ones added: a failed rollout is
    repeated when a run is resumed. ``spent`` is the USD of all results, and ``dearest`` that of the dearest of those
    that were measured or paid for and not interrupted, None without any. Raises ResultsError.
    """

    def __init__(self, out: Path) -> None:
        self.file = out / FILE
        self.by_key: dict[tuple[str, int], Result] = {}
        self.spent = 0.0
        self.dearest: float | None = None
        self._complete = 0
        if self.file.exists():
            self._read()

    def _read(self) -> None:
        data = self.file.read_bytes()
        complete = data[: data.rfind(b"\n") + 1]
        self._complete = len(complete)
        for number, line in enumerate(complete.splitlines(), 1):
            try:
                result = Result.model_validate_json(line)
            except ValidationError as error:
                raise ResultsError(f"{self.file}, line {number} is no result: {error}") from error
            self._count(result)

    def add(self, result: Result) -> None:
        """Append a result in place of an incomplete line; it is on the disk when this returns.

        Only the process that executes the run may call it.
        """
        with self.file.open("ab") as file:
            file.truncate(self._complete)
            file.write(_line(result))
            file.flush()
            self._complete = file.tell()
            os.fsync(file.fileno())
        self._count(result)

    def _count(self, result: Result) -> None:
        self.spent += result.spent
        # Neither an instance that cannot run nor a part of a rollout shows what others will cost.
        if result.outcome != "interrupted" and (result.spent or result.score is not None):
            self.dearest = max(self.dearest or 0.0, result.spent)
        previous = self.by_key.get(result.key)
        self.by_key[result.key] = result if previous is None else result.after(previous)


def _line(result: Result) -> bytes:
    """Return a result as a line of JSON; a lone surrogate becomes U+FFFD, a detail that JSON cannot hold its text."""
    try:
        text = result.model_dump_json()
    except PydanticSerializationError:
        details = {str(name): _json_value(value) for name, value in result.details.items()}
        text = json.dumps({**result.model_dump(exclude={"details"}), "details": details}, ensure_ascii=False)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode() + b"\n"


def _json_value(detail: object) -> object:
    try:
        return json.loads(json.dumps(detail, default=str))
    except (TypeError, ValueError, RecursionError):  # keys that are no text, or circular references
        return str(detail)

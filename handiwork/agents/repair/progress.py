"""A repair's progress, folded from its history: the files read, the runs of the check, the rounds of candidates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import JsonValue

from handiwork.agents.repair.edits import TextEdit, Texts, applied, code_lines
from handiwork.agents.repair.files import LIST, REMOVE, FileProgress, fold
from handiwork.agents.repair.outcome import ENDED, Outcome, outcome_of
from handiwork.agents.state import State
from handiwork.events.action import (
    CmdRunAction,
    FileEditAction,
    FileWriteAction,
    ForkAction,
)
from handiwork.events.base import Action, Model, Observation
from handiwork.events.observation import (
    ChildOutcome,
    CmdOutputObservation,
    ErrorObservation,
    ForkObservation,
)


class Candidate(Model):
    """A possible repair: ``target`` describes the question to the model, ``edits`` apply to the files kept so far.

    ``number`` counts the questions since a candidate was kept, from 0.
    """

    target: str
    edits: tuple[TextEdit, ...]
    number: int = 0

    def is_same_as(self, other: Candidate) -> bool:
        """Return whether both lead to the same code, comments and blank lines aside."""
        return self._code() == other._code()

    def _code(self) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
        return [(edit.path, code_lines(edit.old), code_lines(edit.new)) for edit in self.edits]


@dataclass
class Round:
    """Candidates of one ForkAction and their outcomes in order; without forks they are validated in the workspace.

    ``confirmation`` is the check's outcome with the best one applied to the workspace.
    """

    candidates: list[Candidate]
    outcomes: list[Outcome] = field(default_factory=list[Outcome])
    confirmation: Outcome | None = None

    @property
    def is_complete(self) -> bool:
        """True once all candidates have their outcome, or one of them passes."""
        return len(self.outcomes) == len(self.candidates) or any(outcome.passed for outcome in self.outcomes)

    @property
    def best(self) -> int:
        """The index of the best candidate."""
        return min(range(len(self.outcomes)), key=lambda index: self.outcomes[index].rank)


@dataclass
class RepairProgress(FileProgress):
    """The state of a repair since the user's last task; ``first`` is the check's outcome before any candidate."""

    first: Outcome | None = None
    rounds: list[Round] = field(default_factory=list[Round])
    _started: datetime | None = None
    _output: str = ""

    def apply(self, action: Action, observation: Observation | None, reply: str) -> None:
        """Apply the next entry of the history; ``reply`` is the model's, if it is a choice."""
        super().apply(action, observation, reply)
        if isinstance(action, ForkAction) and isinstance(observation, ForkObservation | ErrorObservation):
            outcomes = map(_child_outcome, observation.outcomes) if isinstance(observation, ForkObservation) else ()
            candidates = [_candidate(inputs) for _, inputs in action.children]
            self.rounds.append(Round(candidates, list(outcomes)))

    @property
    def kept(self) -> list[tuple[Candidate, Outcome]]:
        """The candidates that helped, each with the check's outcome since."""
        return [kept for kept in self._kept_by_round() if kept is not None]

    @property
    def asked(self) -> int:
        """The number of questions since the last kept candidate, which changes the questions."""
        by_round = self._kept_by_round()
        since = next((count for count, kept in enumerate(reversed(by_round)) if kept is not None), len(by_round))
        latest = self.rounds[len(self.rounds) - since :]
        return max((candidate.number + 1 for one in latest for candidate in one.candidates), default=0)

    @property
    def current(self) -> Outcome | None:
        """The check's outcome with the kept edits, None before its first run."""
        return self.kept[-1][1] if self.kept else self.first

    @property
    def base(self) -> Texts:
        """The files with the kept edits."""
        texts = self.originals
        for candidate, _ in self.kept:
            texts = applied(texts, candidate.edits)
        return texts

    @property
    def trial(self) -> Candidate | None:
        """The candidate to apply to the workspace now and check, if any."""
        if not self.rounds or self.current is None:
            return None
        last = self.rounds[-1]
        if not last.is_complete:
            return last.candidates[len(last.outcomes)]
        is_better = last.confirmation is None and last.outcomes[last.best].is_better_than(self.current)
        return last.candidates[last.best] if is_better else None

    def changes(self) -> list[Action]:
        """Return the actions that bring the workspace to ``base`` with the ``trial``'s edits."""
        return self.changes_to(applied(self.base, self.trial.edits) if self.trial else self.base)

    def skip_blocked(self) -> None:
        """Give candidates that cannot be applied to the workspace an outcome."""
        while self.trial and self.blocked & {edit.path for edit in self.trial.edits}:
            refused = Outcome(None, "its files cannot be edited")
            if self.rounds[-1].is_complete:
                self.rounds[-1].confirmation = refused
            else:
                self.rounds[-1].outcomes.append(refused)

    def _kept_by_round(self) -> list[tuple[Candidate, Outcome] | None]:
        kept: list[tuple[Candidate, Outcome] | None] = []
        current = self.first
        for one in self.rounds:
            outcome = one.confirmation if one.is_complete else None
            helped = outcome is not None and current is not None and outcome.is_better_than(current)
            if outcome is not None and helped:
                kept.append((one.candidates[one.best], outcome))
                current = outcome
            else:
                kept.append(None)
        return kept

    def _run(self, action: CmdRunAction, observation: CmdOutputObservation) -> None:
        super()._run(action, observation)
        if LIST in action.command or action.command.startswith(REMOVE):
            return
        if action.command:
            self._started, self._output = action.timestamp, ""
        self._output += observation.text
        if observation.status in ENDED and self._started:
            seconds = (observation.timestamp - self._started).total_seconds()
            self._take(outcome_of(observation, self._output, seconds))

    def _take(self, outcome: Outcome) -> None:
        """Take the outcome of a run of the check in the workspace."""
        if not self.rounds:
            self.first = outcome
        elif self.rounds[-1].is_complete:
            self.rounds[-1].confirmation = outcome
        else:
            self.rounds[-1].outcomes.append(outcome)
            self.skip_blocked()

    def _edit(self, path: str, action: FileEditAction | FileWriteAction, observation: Observation | None) -> None:
        super()._edit(path, action, observation)
        self.skip_blocked()


def progress(state: State) -> RepairProgress:
    """Return the progress since the user's last task."""
    return fold(RepairProgress, state)


def _candidate(inputs: Mapping[str, JsonValue]) -> Candidate:
    return Candidate.model_validate({"target": inputs["task"], "edits": inputs["edits"], "number": inputs["number"]})


def _child_outcome(child: ChildOutcome) -> Outcome:
    values = child.outputs
    code, seconds = values.get("exit_code"), values.get("seconds")
    return Outcome(
        code if isinstance(code, int) else None,
        str(values.get("output", "")),
        float(seconds) if isinstance(seconds, int | float) else None,
    )

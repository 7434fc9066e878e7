"""A repair's progress, folded from its history: the files read, the runs of the check, the rounds of candidates."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import JsonValue

from handiwork.agents.repair.edits import TextEdit, Texts, applied, code_lines, edits_between
from handiwork.agents.repair.outcome import ENDED, Outcome, outcome_of
from handiwork.agents.state import State
from handiwork.events.action import (
    AgentFinishAction,
    AgentRejectAction,
    AgentThinkAction,
    CmdRunAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    ForkAction,
    MessageAction,
    OutputReadAction,
)
from handiwork.events.base import Action, Model, Observation
from handiwork.events.observation import (
    ChildOutcome,
    CmdOutputObservation,
    ErrorObservation,
    FileEditObservation,
    FileReadObservation,
    FileWriteObservation,
    ForkObservation,
    HookRejectObservation,
    OutputReadObservation,
    UserRejectObservation,
)

LIST = "{ git ls-files -co --exclude-standard 2>/dev/null | grep . || find * -type f 2>/dev/null; } | head -n 5000"
"""Lists the files of the workspace, one per line."""

REMOVE = "rm -f -- "
"""Removes a file that a candidate made."""

LONGEST_FILE = 4_000
"""Lines of the longest file that is read."""

MAY_REPEAT = {"crashed", "interrupted", "sandbox_lost"}
"""Errors after which it is unknown whether the action ran."""

Pair = tuple[Action, Observation | None]


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
    """Candidates of one ForkAction and their outcomes in order.

    Without forks (``in_turn``) they are validated one after the other in the workspace. ``confirmation`` is the check's
    outcome with the best one applied to the workspace.
    """

    candidates: list[Candidate]
    in_turn: bool = False
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
class RepairProgress:
    """The state of a repair since the user's last task.

    ``listed`` are the paths of the workspace, None until they are known; of a list too long for one observation
    ``listing`` is the output and ``page`` its first lines. ``prefix`` is the way from the shell's directory to the
    workspace. ``originals`` are the files as they were read first, ``actual`` as they are now; ``stale`` files must be
    read again, ``blocked`` ones cannot be edited. ``pieces`` are the first lines of files too long for one observation,
    and ``lengths`` their numbers of lines. ``replies`` are the model's choices of places, by the thought of their
    actions.
    """

    task: str
    listed: list[str] | None = None
    listing: str = ""
    page: list[str] = field(default_factory=list[str])
    prefix: str = ""
    originals: Texts = field(default_factory=dict[str, str])
    actual: Texts = field(default_factory=dict[str, str])
    pieces: Texts = field(default_factory=dict[str, str])
    lengths: dict[str, int] = field(default_factory=dict[str, int])
    unreadable: set[str] = field(default_factory=set[str])
    stale: set[str] = field(default_factory=set[str])
    blocked: set[str] = field(default_factory=set[str])
    replies: dict[str, str] = field(default_factory=dict[str, str])
    first: Outcome | None = None
    rounds: list[Round] = field(default_factory=list[Round])
    is_refused: bool = False
    _started: datetime | None = None
    _output: str = ""

    def apply(self, action: Action, observation: Observation | None, reply: str) -> None:
        """Apply the next entry of the history; ``reply`` is the model's, if it is a choice."""
        match action, observation:
            case _, UserRejectObservation() | HookRejectObservation():
                self.is_refused = True
            case AgentThinkAction(), None if reply:
                self.replies[action.thought] = reply
            case CmdRunAction(), CmdOutputObservation():
                self._run(action, observation)
            case OutputReadAction(), OutputReadObservation():
                self.page += observation.content.splitlines()
                self.listed = self.page if observation.end >= observation.lines else None
            case OutputReadAction(), ErrorObservation():
                self.listed = self.page
            case FileReadAction(), _:
                self._read(self._inside(action.path), action, observation)
            case FileEditAction() | FileWriteAction(), _:
                self._edit(self._inside(action.path), action, observation)
            case ForkAction(), ForkObservation() | ErrorObservation():
                outcomes = map(_child_outcome, observation.outcomes) if isinstance(observation, ForkObservation) else ()
                candidates = [_candidate(inputs) for _, inputs in action.children]
                self.rounds.append(Round(candidates, isinstance(observation, ErrorObservation), list(outcomes)))
            case _:
                pass

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
        """The candidate that is to be applied to the workspace now and checked, if any."""
        if not self.rounds or self.current is None:
            return None
        last = self.rounds[-1]
        if not last.is_complete:
            return last.candidates[len(last.outcomes)]
        is_better = last.confirmation is None and last.outcomes[last.best].is_better_than(self.current)
        return last.candidates[last.best] if is_better else None

    def changes(self) -> list[Action]:
        """Return the actions that bring the workspace to ``base`` with the ``trial``'s edits."""
        wanted = applied(self.base, self.trial.edits) if self.trial else self.base
        edits = [edit.action(self.prefix) for edit in edits_between(self.actual, wanted)]
        extra = (path for path in self.actual if path not in wanted)
        return [*edits, *(CmdRunAction(command=REMOVE + shlex.quote(self.prefix + path)) for path in extra)]

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

    def _inside(self, path: str) -> str:
        return path.removeprefix(self.prefix)

    def _run(self, action: CmdRunAction, observation: CmdOutputObservation) -> None:
        if LIST in action.command:
            self.listing = observation.blob or ""
            self.listed = None if observation.blob else observation.content.splitlines()
        elif action.command.startswith(REMOVE):
            self.actual.pop(self._inside(shlex.split(action.command)[-1]), None)
        else:
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

    def _read(self, path: str, action: FileReadAction, observation: Observation | None) -> None:
        match observation:
            case FileReadObservation(blob=None, start=start, content=content):
                text = content if start == 1 else self.pieces.get(path, "") + content
                if observation.end >= observation.lines:
                    self.originals.setdefault(path, text)
                    self.actual[path] = text
                    self.stale.discard(path)
                else:
                    self.pieces[path] = text
            case FileReadObservation() if action.end is None:
                self.lengths[path] = observation.lines
                if observation.lines > LONGEST_FILE:
                    self.unreadable.add(path)
            case ErrorObservation(error_id="not_found") if path not in self.originals:
                self.unreadable.add(path)
                self.actual.pop(path, None)
                self.stale.discard(path)
            case ErrorObservation(error_id=error) if error in MAY_REPEAT:
                pass
            case _:
                self.unreadable.add(path)
                self.stale.discard(path)

    def _edit(self, path: str, action: FileEditAction | FileWriteAction, observation: Observation | None) -> None:
        match action, observation:
            case FileEditAction(), FileEditObservation():
                self.actual[path] = self.actual.get(path, "").replace(action.old, action.new, 1)
            case FileWriteAction(), FileWriteObservation():
                self.actual[path] = action.content
            case _:
                self.stale.add(path)
                if not (isinstance(observation, ErrorObservation) and observation.error_id in MAY_REPEAT):
                    self.blocked.add(path)
                    self.skip_blocked()


def progress(state: State) -> RepairProgress:
    """Return the progress since the user's last task: the first message, or one after the end of the task before."""
    start, is_over = 0, True
    words: list[str] = []
    for number, (action, _) in enumerate(state.history):
        if isinstance(action, MessageAction) and action.source == "user":
            if is_over:
                start, words, is_over = number, [], False
            words.append(action.content)
        is_over = is_over or isinstance(action, AgentFinishAction | AgentRejectAction)
    task = state.inputs.get("task")
    result = RepairProgress(task=str(task) if task and start == 0 else "\n".join(words))
    pairs = state.history[start:]
    cwd = next((o.cwd for _, o in pairs if isinstance(o, CmdOutputObservation) and o.cwd), state.workspace)
    if cwd.rstrip("/") != state.workspace.rstrip("/"):
        result.prefix = f"{state.workspace.rstrip('/')}/"
    for action, observation in pairs:
        completion = state.completions.get(action.completion or 0)
        result.apply(action, observation, str(completion.response.get("content") or "") if completion else "")
    return result


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

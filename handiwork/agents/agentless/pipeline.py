"""The artefacts of the stages, computed from the answers of the model and the trials in the history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import ClassVar

from pydantic import Field

from handiwork.agents.agentless.edits import edited_texts
from handiwork.agents.agentless.rank import Choice, Verdict, choose, interleaved, normalised_patch
from handiwork.agents.agentless.regression import nearest
from handiwork.agents.agentless.reproduction import (
    REPRODUCED,
    RESOLVED,
    ScriptLanguage,
    elected,
    language_of,
    script_of,
)
from handiwork.agents.agentless.retrieval import (
    BM25,
    combined,
    named_files,
    named_folders,
    retrieved_files,
)
from handiwork.agents.agentless.structure import Span, parse_locations, programs, spans_of
from handiwork.agents.agentless.trial import TrialOutputs
from handiwork.agents.interface import TaskInputs
from handiwork.agents.repair.edits import TextEdit, Texts, edits_between
from handiwork.agents.repair.files import FileProgress, may_repeat
from handiwork.events.action import AgentThinkAction, CmdRunAction, ForkAction
from handiwork.events.base import Action, Observation
from handiwork.events.observation import CmdOutputObservation, ErrorObservation, ForkObservation

FILES, FOLDERS, RELATED, LOCATIONS = "Suspicious files", "Irrelevant folders", "Related elements", "Edit locations"
NEAREST = "Files by embeddings"
CANDIDATE, EXCLUDED, SCRIPT = "Candidate", "Tests that may change", "Reproduction test"
BASE = "The tests without a change"
"""Labels of the model's replies, which begin the thoughts that have them, and of the trials."""

LONGEST_FILE = 12_000
"""Lines of the longest file that is read; the largest modules of libraries have some thousands."""


class AgentlessInputs(TaskInputs):
    """A delegate's inputs; a subclass with other defaults makes an agent of other settings.

    ``tests`` is the test command, found out if it is empty. ``files`` are the suspicious files taken from each list;
    ``context`` are the lines around a location. There are ``location_samples`` sets of edit locations, for each of them
    ``repair_samples`` candidates, and ``test_samples`` reproduction tests; of both, the first is asked for at
    temperature 0. ``embeddings`` names a model whose embeddings rank the files that BM25 found; "" leaves them as
    they are. ``tries`` are further calls, at temperature 1, for a reply without a valid location. The stages
    ``retrieval``, ``regression`` and ``reproduction`` can be left out. Timeouts are in seconds.
    """

    tests: str = ""
    files: int = Field(default=3, ge=1, le=10)
    context: int = Field(default=10, ge=0, le=100)
    location_samples: int = Field(default=2, ge=1, le=16)
    repair_samples: int = Field(default=4, ge=1, le=64)
    test_samples: int = Field(default=4, ge=1, le=64)
    temperature: float = Field(default=0.8, ge=0, le=2)
    tries: int = Field(default=2, ge=0, le=10)
    retrieval: bool = True
    embeddings: str = ""
    regression: bool = True
    reproduction: bool = True
    test_timeout: float = Field(default=600.0, gt=0)
    script_timeout: float = Field(default=120.0, gt=0)


@dataclass(frozen=True, slots=True)
class PatchCandidate:
    """A candidate: its label, the edits, and its normalised patch; both are empty if the reply gives no edit."""

    label: str
    edits: tuple[TextEdit, ...]
    patch: str


@dataclass
class AgentlessProgress(FileProgress):
    """The progress since the user's last task.

    ``replies`` are by label, "" for a sample without an answer. ``trials`` are the outcomes by label, None for a trial
    that gave none. ``found`` is the output of the retrieval and ``nearest`` its files by embeddings, None before them.
    ``problem`` says why no trial can run.
    """

    longest: ClassVar[int] = LONGEST_FILE

    trials: dict[str, TrialOutputs | None] = field(default_factory=dict[str, "TrialOutputs | None"])
    found: str | None = None
    nearest: list[str] | None = None
    problem: str = ""

    def apply(self, action: Action, observation: Observation | None, reply: str) -> None:
        """Apply the next entry of the history; ``reply`` is the model's, if its action is a thought."""
        match action, observation:
            case AgentThinkAction(), None if action.thought.startswith(NEAREST):
                self.nearest = action.thought.splitlines()[1:]
            case AgentThinkAction(), None:
                self.replies[action.thought.partition(":")[0]] = reply
            case ForkAction(), ForkObservation():
                for (_, inputs), child in zip(action.children, observation.outcomes, strict=True):
                    outputs = TrialOutputs.model_validate(child.outputs) if child.outcome == "finished" else None
                    self.trials[str(inputs["task"])] = outputs
            case ForkAction(), ErrorObservation() if not may_repeat(observation):
                self.problem = observation.content
            case CmdRunAction(), CmdOutputObservation() if BM25 in action.command and not may_repeat(observation):
                self.found = observation.content
            case _:
                super().apply(action, observation, reply)


class Pipeline:
    """The artefacts of all stages so far, computed from the progress; ``check`` is the test command, None for none."""

    def __init__(self, progress: AgentlessProgress, inputs: AgentlessInputs, check: str | None) -> None:
        self.progress, self.inputs, self.check = progress, inputs, check
        self._replies, self._files = progress.replies, progress.originals

    @cached_property
    def programs(self) -> list[str]:
        """The programs of the workspace, without tests."""
        return programs(self.progress.listed or [])

    @cached_property
    def folders(self) -> list[str]:
        """The irrelevant folders."""
        return named_folders(self._replies.get(FOLDERS, ""), self.programs)

    @cached_property
    def found(self) -> list[str]:
        """The suspicious files, the likeliest first; without any the first programs."""
        by_model = named_files(self._replies.get(FILES, ""), self.programs, max(5, self.inputs.files))
        others = self.progress.nearest or self.by_words
        return combined(by_model, others, self.inputs.files) or self.programs[: self.inputs.files]

    @cached_property
    def by_words(self) -> list[str]:
        """The files that BM25 found, the best first."""
        return retrieved_files(self.progress.found or "", self.programs)

    @cached_property
    def files(self) -> Texts:
        """The texts of the suspicious files that could be read."""
        return {path: self._files[path] for path in self.found if path in self._files}

    @property
    def unread(self) -> list[str]:
        """The suspicious files that could not be read: too long, no text, or gone."""
        return [path for path in self.found if path not in self._files]

    def located(self, reply: str) -> dict[str, list[Span]]:
        """Return the lines that a reply names in the suspicious files, without files of which it names none."""
        locations = parse_locations(reply, list(self.files))
        spans = {
            path: spans_of(path, text, locations.get(path, ()), self.inputs.context)
            for path, text in self.files.items()
        }
        return {path: found for path, found in spans.items() if found}

    @cached_property
    def related(self) -> dict[str, list[Span]]:
        """The lines of the related elements by file; all lines if the model names no element that is there."""
        whole = {path: [Span(0, len(text.split("\n")) - 1)] for path, text in self.files.items()}
        return self.located(self._replies.get(RELATED, "")) or whole

    @cached_property
    def locations(self) -> list[dict[str, list[Span]]]:
        """The sets of edit locations; the related elements replace a set in which the model names no existing place."""
        labels = [f"{LOCATIONS} {number}" for number in range(1, self.inputs.location_samples + 1)]
        return [self.located(self._replies[label]) or self.related for label in labels if label in self._replies]

    @cached_property
    def candidates(self) -> list[PatchCandidate]:
        """The candidates so far, the first of each set of locations before the second ones."""
        groups: list[list[PatchCandidate]] = []
        for group, spans in enumerate(self.locations, 1):
            labels = [f"{CANDIDATE} {group}.{number}" for number in range(1, self.inputs.repair_samples + 1)]
            replies = {label: self._replies[label] for label in labels if label in self._replies}
            groups.append([self.candidate(label, reply, spans) for label, reply in replies.items()])
        return interleaved(groups)

    @cached_property
    def distinct(self) -> dict[tuple[TextEdit, ...], str]:
        """The candidates to try: their edits with the label of the first candidate that has them."""
        labels: dict[tuple[TextEdit, ...], str] = {}
        for candidate in self.candidates:
            if candidate.patch:
                labels.setdefault(candidate.edits, candidate.label)
        return labels

    @cached_property
    def passing(self) -> list[str]:
        """The tests that pass without a change, those first that are named like a suspicious file."""
        base = self.progress.trials.get(BASE)
        return nearest(base.passed if base else (), [PurePosixPath(path).stem for path in self.found])

    @cached_property
    def selected(self) -> list[str]:
        """The tests that must still pass: all passing tests except those that may rightly change."""
        excluded = {line.strip(" \t`*-") for line in self._replies.get(EXCLUDED, "").splitlines()}
        return [test for test in self.passing if test not in excluded]

    @cached_property
    def language(self) -> ScriptLanguage:
        """The language of the reproduction tests."""
        return language_of(self.found)

    @cached_property
    def scripts(self) -> dict[str, str]:
        """The reproduction tests so far by label."""
        labels = [f"{SCRIPT} {number}" for number in range(1, self.inputs.test_samples + 1)]
        written = {label: script_of(self._replies[label]) for label in labels if label in self._replies}
        return {label: script for label, script in written.items() if script}

    @cached_property
    def reproducing(self) -> dict[str, str]:
        """The reproduction tests that reproduce the issue in the unchanged code."""
        outcomes = {script: self.progress.trials.get(label) for label, script in self._distinct_scripts.items()}
        verified = {script for script, outcome in outcomes.items() if outcome and outcome.phrases == (REPRODUCED,)}
        return {label: script for label, script in self.scripts.items() if script in verified}

    @property
    def untried(self) -> dict[str, str]:
        """The reproduction tests that have not run in the unchanged code, by label, each text once."""
        texts = self._distinct_scripts
        return {label: script for label, script in texts.items() if label not in self.progress.trials}

    @property
    def _distinct_scripts(self) -> dict[str, str]:
        first = {script: label for label, script in reversed(self.scripts.items())}
        return {label: script for label, script in self.scripts.items() if first[script] == label}

    @cached_property
    def elected(self) -> tuple[str, int] | None:
        """The label of the reproduction test that the vote chose, and its votes; None without one."""
        return elected(self.reproducing, self.language.suffix)

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """The verdicts on the candidates, in order."""
        return [self.verdict(candidate) for candidate in self.candidates]

    def verdict(self, candidate: PatchCandidate) -> Verdict:
        """Return the verdict on a candidate: no report of its trial is a failure of every test."""
        outcome = self._outcome(candidate)
        failures = None if outcome is None or outcome.failed is None else len(outcome.failed)
        resolves = (outcome is not None and outcome.phrases == (RESOLVED,)) if self.elected else None
        return Verdict(candidate.patch, failures, resolves)

    @cached_property
    def choice(self) -> Choice | None:
        """The choice among the candidates, None if all are empty."""
        return choose(self.verdicts, len(self.selected))

    def candidate(self, label: str, reply: str, spans: Mapping[str, Sequence[Span]]) -> PatchCandidate:
        """Return the candidate of a reply; its edits lie in the ``spans`` of the suspicious files."""
        changed = edited_texts(reply, self.files, spans)
        edits = tuple(edits_between(self.files, changed))
        return PatchCandidate(label, edits, normalised_patch(self.files, changed) if edits else "")

    def failed(self, number: int) -> tuple[str, ...]:
        """Return the selected tests that do not pass with a candidate."""
        outcome = self._outcome(self.candidates[number])
        return (outcome.failed or ()) if outcome else ()

    def _outcome(self, candidate: PatchCandidate) -> TrialOutputs | None:
        return self.progress.trials.get(self.distinct.get(candidate.edits, ""))

"""The tables of the CodeNav paper (arXiv:2406.12276), 1 to 5, of runs of its three benchmarks."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from handiwork.errors import HandiworkError
from handiwork.evals.benchmark import Score
from handiwork.evals.benchmarks.apibank.benchmark import APIBank
from handiwork.evals.benchmarks.m3tooleval import benchmark as m3tooleval
from handiwork.evals.benchmarks.mnms import benchmark as mnms
from handiwork.evals.reporting.tables import Table
from handiwork.evals.running.manifest import Manifest
from handiwork.evals.running.results import Result

MNMS, M3, APIBANK = mnms.MnMs(), m3tooleval.M3ToolEval(), APIBank()
BENCHMARKS = {one.name: one for one in (MNMS, M3, APIBANK)}

FIGURES: Mapping[str, Mapping[str, str]] = {
    MNMS.name: {"precision": "tool precision", "recall": "tool recall", "f1": "tool f1"},
    M3.name: {"accuracy": ""},
    APIBANK.name: {"precision": "precision", "recall": "recall", "f1": ""},
}
"""The columns of each benchmark, with the names of the benchmark's figures; "" is the mean score."""

STEPS = "steps"
METHODS = ("tool-use", "code-use")
NO_VALUE = "–"


class NoPaperRunError(HandiworkError):
    """A run is not one of the paper's benchmarks."""


class Setting(NamedTuple):
    """The settings that the runs of a row share."""

    benchmark: str
    split: str
    agent: str
    model: str


class Evaluations(NamedTuple):
    """The evaluations of a setting: each is one trial of all tasks. ``figures`` has its means by column."""

    figures: list[dict[str, float]]
    tasks: int


Settings = Mapping[Setting, Evaluations]


def tables_of(runs: Sequence[tuple[Manifest, Sequence[Result]]]) -> list[Table]:
    """Return the paper's tables that the runs have rows for, and one of the runs. Raises NoPaperRunError."""
    settings = _settings(runs)
    tables = [
        _comparison(settings),
        _ablation(settings, "2. Descriptions on m&m's", MNMS.name, "description", _mnms_lengths(), ("f1", STEPS)),
        _by(settings, "3. Responses to searches on m&m's, by agent", "agent", ("f1", STEPS)),
        _ablation(
            settings, "4. Descriptions on M3ToolEval", M3.name, "description", _m3_lengths(), ("accuracy", STEPS)
        ),
        _by(settings, "5. Models on m&m's", "model", ("precision", "recall", "f1", STEPS)),
        _runs(settings),
    ]
    return [table for table in tables if table.rows]


def _settings(runs: Sequence[tuple[Manifest, Sequence[Result]]]) -> Settings:
    settings: dict[Setting, Evaluations] = {}
    for manifest, results in runs:
        conditions = manifest.conditions
        if conditions.benchmark not in BENCHMARKS:
            names = ", ".join(BENCHMARKS)
            raise NoPaperRunError(f"a run of {conditions.benchmark} has no place in the paper's tables: {names} have")
        setting = Setting(conditions.benchmark, conditions.split, conditions.agent, conditions.model)
        figures, tasks = settings.get(setting, Evaluations([], 0))
        for trial in sorted({result.trial for result in results}):
            measured = [one for one in results if one.trial == trial and one.score is not None]
            if measured:
                figures.append(_figures(conditions.benchmark, measured))
                tasks = max(tasks, len(measured))
        settings[setting] = Evaluations(figures, tasks)
    return {setting: one for setting, one in settings.items() if one.figures}


def _figures(benchmark: str, measured: Sequence[Result]) -> dict[str, float]:
    """Return the columns of one evaluation, shares in per cent."""
    scores = [Score(one.score, one.answer, one.details) for one in measured if one.score is not None]
    more = {**BENCHMARKS[benchmark].more(scores), "": fmean(score.value for score in scores)}
    shares = {column: 100 * more[figure] for column, figure in FIGURES[benchmark].items()}
    return {**shares, STEPS: fmean(one.steps for one in measured)}


def _comparison(settings: Settings) -> Table:
    """Return tool-use beside code-use on each benchmark, a row for each agent and model."""
    columns = ("precision", "recall", "f1", "accuracy", STEPS)
    rows = [
        (f"{_title(name)}, {method}{_suffix(settings, one.agent, one.model)}", *_cells(settings, one, columns))
        for name in BENCHMARKS
        for method in METHODS
        for one in settings
        if (one.benchmark, one.split) == (name, method)
    ]
    return Table("1. Tool-use and code-use", ("", *columns), rows)


def _title(benchmark: str) -> str:
    return BENCHMARKS[benchmark].title.partition(",")[0]


def _ablation(
    settings: Settings, title: str, benchmark: str, what: str, lengths: Mapping[str, int], columns: Sequence[str]
) -> Table:
    """Return the splits of a benchmark that differ in the description, with its characters."""
    rows = [
        (f"{split}{_suffix(settings, one.agent, one.model)}", f"{length:,}", *_cells(settings, one, columns))
        for split, length in lengths.items()
        for one in settings
        if (one.benchmark, one.split) == (benchmark, split)
    ]
    return Table(title, (what, "length", *columns), rows)


def _by(settings: Settings, title: str, field: str, columns: Sequence[str]) -> Table:
    """Return code-use on m&m's by agent or model."""
    rows = [
        (_short(getattr(one, field)), *_cells(settings, one, columns))
        for one in settings
        if (one.benchmark, one.split) == (MNMS.name, "code-use")
    ]
    return Table(title, (field, *columns), rows)


def _runs(settings: Settings) -> Table:
    rows = [
        (one.benchmark, one.split, _short(one.agent), one.model, str(len(evaluations.figures)), str(evaluations.tasks))
        for one, evaluations in settings.items()
    ]
    header = ("benchmark", "split", "agent", "model", "evaluations", "tasks")
    return Table("The runs: means over evaluations ± 2 standard deviations", header, rows, numbers=False)


def _cells(settings: Settings, setting: Setting, columns: Sequence[str]) -> Iterator[str]:
    """Yield the mean of each column and, of several evaluations, twice their standard deviation."""
    for column in columns:
        values = [figures[column] for figures in settings[setting].figures if column in figures]
        spread = f" ± {2 * statistics.stdev(values):.1f}" if len(values) > 1 else ""
        yield f"{fmean(values):.1f}{spread}" if values else NO_VALUE


def _suffix(settings: Settings, agent: str, model: str) -> str:
    """Return a suffix that tells the row from others with the same method: the agent, the model, or both."""
    several = [
        _short(value)
        for value, values in ((agent, {one.agent for one in settings}), (model, {one.model for one in settings}))
        if len(values) > 1
    ]
    return f" ({', '.join(several)})" if several else ""


def _short(name: str) -> str:
    """Return the name of an agent or a model, of a file only its own name."""
    return name.rpartition("/")[2] if name.endswith((".toml", ".py", ".yaml", ".json", ".md", ".jsonl")) else name


def _mnms_lengths() -> dict[str, int]:
    splits = ("no-description", "tool-names", "tool-descriptions", "tool-prototypes", "code-use")
    return {split: len(mnms.description(split)) for split in splits}


def _m3_lengths() -> dict[str, int]:
    return {split: len(m3tooleval.description(split)) for split in ("file-paths", "code-use")}

"""The commands of ``handiwork eval``."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable
from rich.text import Text

from handiwork.agents.registry import CONFIGURED
from handiwork.cli.errors import say
from handiwork.cli.terminal.sanitize import plain
from handiwork.cli.terminal.view import terminal_console
from handiwork.errors import Exit
from handiwork.evals import registry
from handiwork.evals.benchmark import Benchmark, Score
from handiwork.evals.reporting import arms as arm_runs
from handiwork.evals.reporting import compare as comparing
from handiwork.evals.reporting import report as reports
from handiwork.evals.reporting import tables
from handiwork.evals.reporting.summary import Summary, summarise
from handiwork.evals.reporting.tables import Table
from handiwork.evals.running import arms, manifest, plan
from handiwork.evals.running.conditions import Conditions
from handiwork.evals.running.plan import InstanceSelection, RunPlan
from handiwork.evals.running.results import NOT_MEASURED, Result, Results
from handiwork.evals.running.rollout import file_name
from handiwork.evals.running.run import Caps, Engine, Run, RunStoppedError, local
from handiwork.evals.scoring import data
from handiwork.events.base import utc_now
from handiwork.session.config import agent_name
from handiwork.settings import SettingsError, load, model_name


@dataclass(frozen=True, slots=True)
class EvalRequest:
    """The arguments of ``handiwork eval run``."""

    benchmark: str | None
    split: str | None
    data: Path | None
    limit: int | None
    ids: Sequence[str] | None
    trials: int
    user_model: str | None
    feedback_model: str | None
    temperature: float | None
    deadline: float
    out: Path | None


@dataclass(frozen=True, slots=True)
class Execution:
    """The engine that executes rollouts, and the number it executes at a time."""

    engine: Engine
    workers: int


def execution_of(engine: Literal["local", "ray"], ray_address: str | None, workers: int) -> Execution:
    """Return the engine and the number of workers for these flags. Raises SettingsError."""
    if engine == "ray":
        from handiwork.evals.running.ray_engine import on_ray

        return Execution(on_ray(ray_address), workers)
    if ray_address is not None:
        raise SettingsError("--ray-address needs --engine ray")
    return Execution(local, workers)


def list_(folder: Path | None, as_json: bool) -> Exit:
    """Print all benchmarks, each with the splits whose data is available."""
    console = terminal_console()
    for one in registry.all_of():
        data_folder = data.folder_of(one, folder)
        splits = [split for split in one.splits if not data.missing(one, split, data_folder)]
        if as_json:
            about = {name: getattr(one, name) for name in ("name", "title", "size", "source", "metric", "licence")}
            print(json.dumps({**about, "splits": one.splits, "at_hand": splits}))  # noqa: T201
            continue
        availability = f"data available: {', '.join(splits)}" if splits else _ways_to_data(one)
        console.print(Text.assemble((one.name, "bold"), f"  {one.title}"), soft_wrap=True)
        console.print(Text(f"  {one.size} · {one.metric} · {one.licence} · {one.source}", "dim"), soft_wrap=True)
        console.print(Text(f"  {availability}", "green" if splits else "dim"), soft_wrap=True)
    return Exit.FINISHED


def _ways_to_data(benchmark: Benchmark) -> str:
    if benchmark.gated:
        return benchmark.gated
    addresses = (address for split in benchmark.splits for address in benchmark.files(split).values())
    return "downloaded on the first run" if all(addresses) else "not downloaded: get its files, and give --data"


def run(
    request: EvalRequest, flags: Mapping[str, Any], caps: Mapping[str, Any], execution: Execution, as_json: bool
) -> Exit:
    """Plan a run, carry it out, and show its report.

    Raises SettingsError, DataError, SandboxError, BenchmarkNotFoundError.
    """
    benchmark, conditions = conditions_of(request, flags)
    run_plan = asyncio.run(
        plan.new(benchmark, conditions, InstanceSelection(request.limit, request.ids), request.trials, say)
    )
    out = _new_folder(run_plan, request.out)
    manifest.write(out, run_plan.manifest)
    return _execute_and_report(out, run_plan, caps, execution, as_json)


def conditions_of(request: EvalRequest, flags: Mapping[str, Any]) -> tuple[Benchmark, Conditions]:
    """Return the benchmark and the conditions of a run. Raises SettingsError, BenchmarkNotFoundError."""
    if request.benchmark is None:
        raise SettingsError("BENCHMARK is missing: name one that `handiwork eval list` shows")
    settings, benchmark = load(flags), registry.find(request.benchmark)
    agent = agent_name(flags["agent"] or benchmark.agent or settings.agent)
    model = "" if agent in arms.ARMS else model_name(settings.model)
    if request.feedback_model and not benchmark.has_feedback:
        able = ", ".join(one.name for one in registry.all_of() if one.has_feedback)
        raise SettingsError(f"--feedback-model is for {able}: {benchmark.name} has no rule for feedback")
    steps = {} if flags["max_iterations"] is None else {"iterations": flags["max_iterations"]}
    conditions = Conditions(
        benchmark=benchmark.name
        if request.benchmark == benchmark.name
        else str(Path(request.benchmark).expanduser().absolute()),
        split=request.split or benchmark.splits[0],
        data=str(request.data or ""),
        agent=agent,
        model=model,
        base_url=settings.base_url,
        protocol=settings.protocol,
        user_model=model_name(request.user_model or settings.model),
        user_base_url=None if request.user_model else settings.base_url,
        feedback_model=model_name(request.feedback_model or ""),
        temperature=request.temperature,
        limits=benchmark.limits.model_copy(update=steps),
        deadline=request.deadline,
        sandbox=settings.sandbox,
        image=settings.image,
        allow_net=settings.allow_net,
    )
    return benchmark, conditions


def resume(out: Path, caps: Mapping[str, Any], execution: Execution, as_json: bool) -> Exit:
    """Resume the run in a folder. Raises ResultsError, DataError, SandboxError."""
    return _execute_and_report(out, asyncio.run(plan.resume(out, say)), caps, execution, as_json)


def _execute_and_report(
    out: Path, run_plan: RunPlan, caps: Mapping[str, Any], execution: Execution, as_json: bool
) -> Exit:
    """Carry out a run and show its report, also if the run stopped early."""
    code = execute(out, run_plan, Caps(**caps), execution)
    if Results(out).by_key:
        report(out, as_json)
    return code


def _new_folder(run_plan: RunPlan, out: Path | None) -> Path:
    conditions = run_plan.manifest.conditions
    if out is None:
        agent = short_name(conditions.agent)
        name = f"{run_plan.benchmark.name}-{conditions.split}-{agent}-{utc_now():%Y%m%d-%H%M%S}"
        out = Path.cwd() / "evals" / name
    if (out / manifest.FILE).exists():
        raise SettingsError(f"{out} already has a run: resume it with --resume {out}, or name another folder")
    out.mkdir(parents=True, exist_ok=True)
    return out


def short_name(agent: str) -> str:
    """Return the class of an agent that is a file's, the name of a configured agent's file without its ending."""
    name = Path(agent).stem if agent.endswith(CONFIGURED) else agent.rpartition(":")[2]
    return file_name(name)


def execute(out: Path, run_plan: RunPlan, caps: Caps, execution: Execution, *, in_matrix: bool = False) -> Exit:
    """Run the remaining rollouts of a run in its folder; in a matrix the caller says how to resume."""
    console = Console(stderr=True)
    command = "" if in_matrix else f"`handiwork eval run --resume {out}{caps.flags}`"
    with _Bar(console, out, run_plan) as bar:
        eval_run = Run(out, run_plan.manifest, run_plan.benchmark, run_plan.instances, caps, bar.finished)
        bar.begin(eval_run)
        try:
            asyncio.run(eval_run.go(execution.engine, execution.workers))
        except RunStoppedError as stopped:
            bar.stop()
            say(stopped.why if in_matrix else str(stopped))
            return Exit.INFRASTRUCTURE if stopped.failed else Exit.LIMIT
        except KeyboardInterrupt:
            bar.stop()
            say(f"stopped; resume with {command}" if command else "stopped")
            return Exit.INTERRUPTED
    return _exit_code(eval_run, command)


def _exit_code(run: Run, command: str) -> Exit:
    """Return FINISHED if every rollout was measured or unfit and at least one measured; otherwise report the loss."""
    measured = sum(one.score is not None for one in run.results.by_key.values())
    losses = [
        "" if measured else "the run measured nothing",
        f"{run.remaining} of its rollouts failed through no fault of the agent" if run.remaining else "",
    ]
    if not any(losses):
        return Exit.FINISHED
    text = f"handiwork: {'; '.join(filter(None, losses))}: see {run.results.file}"
    retry = f"; retry them with {command}" if run.remaining and command else ""
    Console(stderr=True).print(Text(plain(text + retry), "red"), soft_wrap=True)
    return Exit.INFRASTRUCTURE


def report_on(folders: Sequence[Path], paper: Literal["codenav"] | None, as_json: bool) -> Exit:
    """Report on a run, or show a paper's tables of several. Raises ResultsError, SettingsError, NoPaperRunError."""
    if paper is not None:
        return _report_paper(folders, as_json)
    if len(folders) != 1:
        raise SettingsError("a report is of one run: name one folder, or add --paper codenav for tables of several")
    return report(folders[0], as_json)


def _report_paper(folders: Sequence[Path], as_json: bool) -> Exit:
    from handiwork.evals.reporting import codenav_paper

    runs = [(manifest.read(folder), list(Results(folder).by_key.values())) for folder in folders]
    paper_tables = codenav_paper.tables_of(runs)
    if as_json:
        for table in paper_tables:
            print(json.dumps(table._asdict(), ensure_ascii=False))  # noqa: T201
    else:
        _print_tables(terminal_console(), paper_tables)
    return Exit.FINISHED


def report(folder: Path, as_json: bool) -> Exit:
    """Write the report of the run in a folder, and print it. Raises ResultsError."""
    summary, results = summary_of(folder)
    reports.write(folder, summary, results)
    if as_json:
        print(summary.model_dump_json())  # noqa: T201
    else:
        report_tables = [table for table in tables.of_run(summary) if table.title != tables.THE_RUN]
        show(tables.headline(summary), report_tables, folder / f"{reports.NAME}.html")
    return Exit.FINISHED


def compare(first: Path, second: Path, as_json: bool) -> Exit:
    """Write a comparison of two runs into the second run's folder, and print it. Raises ResultsError, CompareError."""
    comparing.check_same_benchmark(manifest.read(first), manifest.read(second))
    (before, earlier), (after, later) = summary_of(first), summary_of(second)
    comparison = comparing.compare(earlier, later)
    for note in tables.comparison_notes(before, after):
        say(note)
    reports.write_comparison(second, comparison, before, after)
    if as_json:
        print(comparison.model_dump_json())  # noqa: T201
    else:
        title, comparison_tables = (
            tables.difference(comparison, before),
            tables.of_comparison(comparison, before, after),
        )
        show(title, comparison_tables, second / f"{reports.COMPARISON}.html")
    return Exit.FINISHED


def show(title: str, report_tables: Sequence[Table], page: Path) -> None:
    """Print a title, tables, and the path of the page."""
    console = terminal_console()
    console.print(Text(plain(title), "bold"), soft_wrap=True)
    _print_tables(console, report_tables)
    console.print(Text(f"\nfull report: {page}", "dim"), soft_wrap=True)


def _print_tables(console: Console, report_tables: Sequence[Table]) -> None:
    for table in report_tables:
        grid = RichTable(box=None, pad_edge=False, header_style="dim")
        for number, name in enumerate(table.header):
            grid.add_column(plain(name), justify="right" if table.numbers and number else "left")
        for row in table.rows:
            grid.add_row(*(Text(plain(cell)) for cell in row))
        console.print(Text(f"\n{table.title}", "cyan"))
        console.print(grid)


def reproduce(folder: Path, data_folder: Path | None, out: Path | None, execution: Execution, as_json: bool) -> Exit:
    """Repeat the run of a folder, and compare. Raises ResultsError, DataError, SandboxError.

    The data are in ``data_folder``; None means the run's own folder, or where a new run finds them if that is gone.
    """
    then = manifest.read(folder)
    selection = InstanceSelection(ids=then.instances)
    benchmark = registry.find(then.conditions.benchmark)
    if data_folder is None and Path(then.conditions.data).is_dir():
        data_folder = Path(then.conditions.data)
    conditions = then.conditions.model_copy(update={"data": str(data_folder or "")})
    run_plan = asyncio.run(plan.new(benchmark, conditions, selection, then.trials, say))
    for difference in manifest.differences(then, run_plan.manifest):
        say(f"{difference} differs from {folder}")
    new = _new_folder(run_plan, out)
    manifest.write(new, run_plan.manifest)
    code = execute(new, run_plan, Caps(), execution)
    repeated = Results(new).by_key.values()
    if repeated:
        reports.write(new, *summary_of(new))
    if any(one.score is not None for one in repeated):
        compare(folder, new, as_json)
    return code


def summary_of(out: Path) -> tuple[Summary, list[Result]]:
    """Return the summary and the results of the run in a folder. Raises ResultsError."""
    run_manifest = manifest.read(out)
    results = list(Results(out).by_key.values())
    scores = [Score(one.score, one.answer, one.details) for one in results if one.score is not None]
    figures = registry.find(run_manifest.conditions.benchmark).more(scores) if scores else {}
    return summarise(run_manifest.facts, results, figures, arm_runs.beside(out, run_manifest)), results


class _Bar:
    """The progress of a run: rollouts, score, rate, cost, and remaining time."""

    def __init__(self, console: Console, out: Path, run_plan: RunPlan) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[about]}"),
            TimeRemainingColumn(),
            console=console,
        )
        self._out, self._total = out, run_plan.manifest.rollouts
        self._name = run_plan.benchmark.name
        self._console = console

    def __enter__(self) -> _Bar:
        self._console.print(Text(f"results go to {self._out}"), soft_wrap=True)
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop drawing on the terminal."""
        self._progress.stop()

    def begin(self, run: Run) -> None:
        """Show the rollouts that are already done."""
        self._run, self._began, self._ended = run, time.monotonic(), 0
        self._task = self._progress.add_task(
            self._name, total=self._total, completed=self._total - run.remaining, about=self._about()
        )

    def finished(self, result: Result) -> None:
        """Add a new result."""
        self._ended += 1
        if result.outcome in NOT_MEASURED:
            text = f"{result.id}: {result.outcome}: {result.why.strip().splitlines()[-1] if result.why else ''}"
            self._progress.console.print(Text(plain(text), "yellow"), soft_wrap=True)
        self._progress.update(self._task, completed=self._total - self._run.remaining, about=self._about())

    def _about(self) -> str:
        results = self._run.results.by_key.values()
        scores = [result.score for result in results if result.score is not None]
        score = f"score {sum(scores) / len(scores):.3f}" if scores else ""
        rate = f"{60 * self._ended / (time.monotonic() - self._began):.1f} a minute" if self._ended else ""
        spent = f"{self._run.results.spent:.2f} USD" if self._run.results.spent else ""
        return "  ".join(filter(None, [score, rate, spent]))

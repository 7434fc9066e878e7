"""The command ``handiwork eval matrix``."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from handiwork.agents.registry import AgentNotFoundError
from handiwork.agents.registry import find as find_agent
from handiwork.cli.commands.eval import commands
from handiwork.cli.commands.eval.commands import EvalRequest
from handiwork.cli.errors import say
from handiwork.errors import Exit, SandboxError
from handiwork.evals import registry
from handiwork.evals.benchmark import Benchmark, DataError
from handiwork.evals.registry import BenchmarkNotFoundError
from handiwork.evals.reporting import matrix as matrix_reports
from handiwork.evals.reporting import report as reports
from handiwork.evals.reporting.matrix import MatrixSummary, MeasuredCell
from handiwork.evals.reporting.report import ReportContent
from handiwork.evals.running import matrix as matrices
from handiwork.evals.running.arms import EMPTY, ORACLE, has_references
from handiwork.evals.running.matrix import Matrix, MatrixCell
from handiwork.evals.running.results import Results
from handiwork.evals.running.run import Caps
from handiwork.evals.scoring import data
from handiwork.events.base import utc_now
from handiwork.settings import SettingsError


@dataclass(frozen=True, slots=True)
class MatrixRequest:
    """The arguments of ``handiwork eval matrix``: ``agents`` and ``benchmarks`` are lists separated by commas.

    ``data`` is the data folder of every cell.
    """

    agents: str
    benchmarks: str
    data: Path | None
    trials: int
    user_model: str | None
    temperature: float | None
    deadline: float
    out: Path | None


def run(request: MatrixRequest, flags: Mapping[str, Any], cost: float | None, workers: int, as_json: bool) -> Exit:
    """Begin a matrix and carry it out.

    Raises SettingsError, AgentNotFoundError, BenchmarkNotFoundError, DataError, SandboxError.
    """
    matrix = Matrix(cells=tuple(_cells(request, flags)), trials=request.trials)
    out = request.out or Path.cwd() / "evals" / f"matrix-{utc_now():%Y%m%d-%H%M%S}"
    if (out / matrices.FILE).exists():
        raise SettingsError(f"{out} already has a matrix: resume it with --resume {out}, or name another folder")
    asyncio.run(matrices.check(matrix, say))
    out.mkdir(parents=True, exist_ok=True)
    matrices.write(out, matrix)
    return _execute(out, matrix, cost, workers, as_json)


def resume(out: Path, cost: float | None, workers: int, as_json: bool) -> Exit:
    """Resume the matrix in a folder. Raises ResultsError."""
    return _execute(out, matrices.read(out), cost, workers, as_json)


def _execute(out: Path, matrix: Matrix, cost: float | None, workers: int, as_json: bool) -> Exit:
    """Run the cells one after the other and report their results, even if one cannot run or the matrix stops early."""
    execution, code = commands.execution_of("local", None, workers), Exit.FINISHED
    for cell in matrix.cells:
        folder = out / cell.folder
        try:
            run_plan = asyncio.run(matrices.planned(out, matrix, cell, say))
        except (DataError, SandboxError, AgentNotFoundError, BenchmarkNotFoundError) as error:
            say(f"{cell.agent} on {cell.benchmark} cannot run: {error}")
            code = Exit.INFRASTRUCTURE
            continue
        others = sum(Results(out / one.folder).spent for one in matrix.cells if one != cell)
        caps = Caps(cost=None if cost is None else max(cost - others, 0.0))
        cell_code = commands.execute(folder, run_plan, caps, execution, in_matrix=True)
        if Results(folder).by_key:
            reports.write(folder, *commands.summary_of(folder))
            _write(out, matrix)  # a matrix takes hours, and may be killed before its end
        if cell_code is not Exit.FINISHED:
            code = cell_code
        if cell_code in (Exit.LIMIT, Exit.INTERRUPTED):
            break
    _report(out, matrix, as_json)
    if code is not Exit.FINISHED:
        kept = Caps(cost=None if code is Exit.LIMIT else cost)
        command = f"handiwork eval matrix --resume {out}{kept.flags}"
        say(f"the matrix is not complete; continue with `{command}`")
    return code


def _report(out: Path, matrix: Matrix, as_json: bool) -> None:
    """Write the report of the cells that have results, and print it."""
    written = _write(out, matrix)
    if written is None:
        return
    summary, content, page = written
    if as_json:
        print(summary.model_dump_json())  # noqa: T201
    else:
        commands.show(content.title, content.tables, page)


def _write(out: Path, matrix: Matrix) -> tuple[MatrixSummary, ReportContent, Path] | None:
    """Write the report of the cells that have results; return its summary, content and page, None if only arms have."""
    begun = [cell for cell in matrix.cells if Results(out / cell.folder).by_key]
    if all(cell.is_arm for cell in begun):
        return None
    cells = [MeasuredCell(cell, *commands.summary_of(out / cell.folder)) for cell in begun]
    summary = matrix_reports.summarise(cells, [cell for cell in matrix.cells if cell not in begun])
    return summary, *matrix_reports.write(out, cells, summary)


def _cells(request: MatrixRequest, flags: Mapping[str, Any]) -> list[MatrixCell]:
    agents = _items(request.agents, "--agents", "such as CodeActAgent,SWEAgent")
    for agent in agents:
        find_agent(agent)
    cells: list[MatrixCell] = []
    for item in _items(request.benchmarks, "--benchmarks", "such as humanevalfix:20,everyday:dev:24"):
        name, split, limit = _parsed(item)
        benchmark = registry.find(name)
        folder = _data_folder(benchmark, split or benchmark.splits[0], request.data)
        arms = [ORACLE, EMPTY] if has_references(benchmark) else [EMPTY]
        for agent in (*arms, *agents):
            asked = EvalRequest(
                benchmark=name,
                split=split,
                data=folder,
                limit=limit,
                ids=None,
                trials=request.trials,
                user_model=request.user_model,
                feedback_model=None,
                temperature=request.temperature,
                deadline=request.deadline,
                out=None,
            )
            _, conditions = commands.conditions_of(asked, {**flags, "agent": agent})
            labels = f"{benchmark.name}-{conditions.split}", commands.short_name(agent)
            cells.append(MatrixCell(benchmark=labels[0], agent=labels[1], conditions=conditions, limit=limit))
    folders = [cell.folder for cell in cells]
    if twice := next((folder for number, folder in enumerate(folders) if folder in folders[:number]), None):
        raise SettingsError(f"--agents and --benchmarks name {twice.name} on {twice.parent} twice")
    return cells


def _data_folder(benchmark: Benchmark, split: str, folder: Path | None) -> Path | None:
    """Return the folder of --data, None if it has nothing for a benchmark that comes with its data."""
    if benchmark.own_data and data.missing(benchmark, split, data.folder_of(benchmark, folder)):
        return None
    return folder


def _items(text: str, flag: str, example: str) -> list[str]:
    items = [item.strip() for item in text.split(",") if item.strip()]
    if not items:
        raise SettingsError(f"{flag} is missing: name at least one, {example}")
    return items


def _parsed(item: str) -> tuple[str, str | None, int | None]:
    """Return the benchmark, its split and the number of instances of NAME[:SPLIT][:LIMIT]. Raises SettingsError."""
    match = re.fullmatch(r"([^:]+)(?::([^:\d][^:]*))?(?::([1-9]\d*))?", item)
    if match is None:
        raise SettingsError(f"--benchmarks: {item!r} is not of the form NAME[:SPLIT][:LIMIT]")
    return match[1], match[2], int(match[3]) if match[3] else None

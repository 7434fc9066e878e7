"""A matrix: every agent on the same instances of several benchmarks. Each cell is a run, in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import ValidationError

from handiwork.evals import registry
from handiwork.evals.benchmark import DataError
from handiwork.evals.running import manifest, plan
from handiwork.evals.running.arms import ARMS
from handiwork.evals.running.conditions import Conditions
from handiwork.evals.running.plan import InstanceSelection, RunPlan
from handiwork.evals.running.results import ResultsError
from handiwork.events.base import Model

FILE = "matrix.json"


class MatrixCell(Model):
    """One agent or arm on one benchmark: ``agent`` and ``benchmark`` are short names, unique in the matrix.

    ``limit`` is the number of instances, the first that can run; None means all.
    """

    benchmark: str
    agent: str
    conditions: Conditions
    limit: int | None

    @property
    def folder(self) -> Path:
        """The folder of the cell's run, relative to the matrix's."""
        return Path(self.benchmark, self.agent)

    @property
    def is_arm(self) -> bool:
        """Whether it is an arm, not an agent."""
        return self.conditions.agent in ARMS


class Matrix(Model):
    """The cells in the order in which they run, a benchmark's arms before its agents, with ``trials`` of instances."""

    cells: tuple[MatrixCell, ...]
    trials: int


def write(out: Path, matrix: Matrix) -> None:
    """Write the matrix into its folder, atomically."""
    part = out / f"{FILE}.part"
    part.write_text(matrix.model_dump_json(indent=1) + "\n")
    part.rename(out / FILE)


def read(out: Path) -> Matrix:
    """Return the matrix in a folder. Raises ResultsError if there is none."""
    try:
        return Matrix.model_validate_json((out / FILE).read_bytes())
    except FileNotFoundError:
        raise ResultsError(f"{out} has no {FILE}: it is no matrix's folder") from None
    except ValidationError as error:
        raise ResultsError(f"{out / FILE} is no matrix of this version: {error}") from error


async def check(matrix: Matrix, status: Callable[[str], None]) -> None:
    """Plan every cell's run, so that what one lacks is known before the first is paid for; fetch the data.

    Raises DataError, AgentNotFoundError, SandboxError.
    """
    for cell in matrix.cells:
        benchmark, choice = registry.find(cell.conditions.benchmark), InstanceSelection(cell.limit)
        await plan.new(benchmark, cell.conditions, choice, matrix.trials, status)


async def planned(out: Path, matrix: Matrix, cell: MatrixCell, status: Callable[[str], None]) -> RunPlan:
    """Plan a cell's run, or to resume it, on the instances of the benchmark's other cells; write its manifest.

    Raises AgentNotFoundError, SandboxError, and DataError, also if the data are no longer those of the other cells, or
    one of their instances cannot run any more.
    """
    folder = out / cell.folder
    if (folder / manifest.FILE).exists():
        return await plan.resume(folder, status)
    first = _first(out, [one for one in matrix.cells if one.benchmark == cell.benchmark])
    choice = InstanceSelection(cell.limit) if first is None else InstanceSelection(ids=first.instances)
    benchmark = registry.find(cell.conditions.benchmark)
    run_plan = await plan.new(benchmark, cell.conditions, choice, matrix.trials, status)
    if first is not None and run_plan.manifest.data_hash != first.data_hash:
        raise DataError(f"the data of {cell.benchmark} are not those that the matrix began with: begin another matrix")
    if first is not None and (lost := set(first.instances) - set(run_plan.manifest.instances)):
        why = run_plan.manifest.skipped.get(min(lost), "")
        raise DataError(f"{len(lost)} instances of the matrix, such as {min(lost)}, cannot run here any more: {why}")
    folder.mkdir(parents=True, exist_ok=True)
    manifest.write(folder, run_plan.manifest)
    return run_plan


def _first(out: Path, cells: Sequence[MatrixCell]) -> manifest.Manifest | None:
    """Return the manifest of the first of these cells that has one."""
    folders = (out / cell.folder for cell in cells)
    return next((manifest.read(folder) for folder in folders if (folder / manifest.FILE).exists()), None)

"""The matrix: every agent on the same instances, and one report that shows every trajectory."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handiwork.evals import registry
from handiwork.evals.benchmark import DataError
from handiwork.evals.reporting import matrix as reports
from handiwork.evals.reporting import plot
from handiwork.evals.reporting.arms import beside
from handiwork.evals.reporting.matrix import MeasuredCell
from handiwork.evals.reporting.summary import Estimate, Summary, summarise
from handiwork.evals.running import manifest, matrix
from handiwork.evals.running.arms import ARMS
from handiwork.evals.running.conditions import Conditions
from handiwork.evals.running.matrix import Matrix, MatrixCell
from handiwork.evals.running.results import Outcome, Result, Results
from handiwork.evals.running.run import Caps, Run, local
from tests.cli.program import finish
from tests.evals.runs import ADDING, no_status, script, sums

pytestmark = pytest.mark.slow

TEXT = "{http://www.w3.org/2000/svg}text"


def cell(data: Path, agent: str, model: str = "", limit: int | None = None) -> MatrixCell:
    conditions = Conditions(benchmark=ADDING, split="test", data=str(data), agent=agent, model=model, user_model="")
    return MatrixCell(benchmark="adding-test", agent=agent, conditions=conditions, limit=limit)


async def ran(out: Path, of: Matrix, one: MatrixCell) -> MeasuredCell:
    """A cell after its run, or after the rest of it."""
    work, folder = await matrix.planned(out, of, one, no_status), out / one.folder
    await Run(folder, work.manifest, work.benchmark, work.instances, Caps(), lambda _: None).go(local, 2)
    return measured(out, one)


def measured(out: Path, one: MatrixCell) -> MeasuredCell:
    folder, results = out / one.folder, list(Results(out / one.folder).by_key.values())
    run = manifest.read(folder)
    return MeasuredCell(one, summarise(run.facts, results, {}, beside(folder, run)), results)


async def test_a_matrix_has_every_agent_on_the_same_instances_in_one_report(tmp_path: Path) -> None:
    data, out = sums(tmp_path / "data", "a", "ungradable", "b"), tmp_path / "out"
    models = script(tmp_path / "right", finish("4")), script(tmp_path / "wrong", finish("5"))
    agents = [
        cell(data, "CodeActAgent", model, 2).model_copy(update={"agent": name})
        for name, model in zip(("Adder", "Guesser"), models, strict=True)
    ]
    of = Matrix(cells=(*(cell(data, arm, limit=2) for arm in ARMS), *agents), trials=1)
    out.mkdir()
    matrix.write(out, of)
    cells = [await ran(out, of, one) for one in matrix.read(out).cells]
    assert [one.run["instances"] for _, one, _ in cells] == [2, 2, 2, 2]
    assert {tuple(sorted(result.id for result in results)) for *_, results in cells} == {("a", "ungradable")}

    summary = reports.summarise(cells)
    (pair,) = summary.pairs
    assert (pair.first, pair.second) == ("Adder", "Guesser")
    assert (pair.difference.mean, pair.difference.n) == (-1.0, 1)
    _, page = reports.write(out, cells, summary)
    text = (out / "matrix-report.md").read_text()
    for name, score in {"Adder": 1, "Guesser": 0, "oracle": 1, "empty": 0}.items():
        interval = ("0.0 to 79.3", "20.7 to 100.0")[score]
        assert f"| {name} | {100 * score}.0 % ({interval}) | 1 of 2 | 1 |" in text
    assert "| Adder → Guesser | 1 | 100.0 % | 0.0 % | -100.0 points |" in text
    assert "adding-test: Guesser has no score on 1 of 2 instances." in text
    html = page.read_text()
    for first, (name, score) in ((0, ("Adder", 1)), (2, ("Guesser", 0))):
        assert f'"name": "{name} on adding-test: a"' in html
        assert re.search(rf'href="#rollout-{first}" class="\w*">{score}</a>', html)
        assert re.search(rf'href="#rollout-{first + 1}" class="\w*">grader</a>', html)
    assert html.count('"kind": "finish"') == 4  # the trajectories are in the page


async def test_a_resumed_matrix_runs_what_is_missing_and_nothing_else(tmp_path: Path) -> None:
    data, out = sums(tmp_path / "data", "a", "b"), tmp_path / "out"
    out.mkdir()
    one, other = (cell(data, agent, script(tmp_path / agent, finish("4"))) for agent in ("CodeActAgent", "DirectAgent"))
    of = Matrix(cells=(one, other), trials=1)
    first = await ran(out, of, one)
    assert [result.id for result in (await ran(out, of, one)).results] == [result.id for result in first.results]
    lines = (out / one.folder / "output.jsonl").read_text().splitlines(keepends=True)
    (out / one.folder / "output.jsonl").write_text(lines[0] + lines[1][:20])  # as a killed process leaves it
    assert len((await ran(out, of, one)).results) == 2
    assert (out / one.folder / "output.jsonl").read_text().startswith(lines[0])
    sums(data, "a", "b", "c")
    with pytest.raises(DataError, match="the data of adding-test are not those that the matrix began with"):
        await matrix.planned(out, of, other, no_status)


async def test_a_report_in_between_names_the_cells_that_are_missing_and_changes_of_the_code(tmp_path: Path) -> None:
    data, out = sums(tmp_path / "data", "a", "b"), tmp_path / "out"
    out.mkdir()
    one, other, last = (
        cell(data, agent, script(tmp_path / agent, finish("4")))
        for agent in ("CodeActAgent", "DirectAgent", "SWEAgent")
    )
    of = Matrix(cells=(one, other, last), trials=1)
    cells = [await ran(out, of, one), await ran(out, of, other)]
    run = manifest.read(out / one.folder)
    manifest.write(out / one.folder, run.model_copy(update={"code": "0" * 64}))
    lines = (out / one.folder / "output.jsonl").read_text().splitlines(keepends=True)
    (out / one.folder / "output.jsonl").write_text(lines[0])
    cells = [await ran(out, of, one), cells[1]]  # resumed with other code
    reports.write(out, cells, reports.summarise(cells, [last]))
    text = (out / "matrix-report.md").read_text()
    assert "The matrix is not complete: there is no result of SWEAgent on adding-test." in text
    assert "adding-test: DirectAgent ran with another version of Handiwork than CodeActAgent." in text
    assert "CodeActAgent: The run was resumed after a change of Handiwork's code" in text


async def test_a_run_that_has_no_result_yet_is_one_of_the_code_that_resumes_it(tmp_path: Path) -> None:
    data, out = sums(tmp_path / "data", "a"), tmp_path / "out"
    out.mkdir()
    one = cell(data, "CodeActAgent", script(tmp_path / "right", finish("4")))
    of = Matrix(cells=(one,), trials=1)
    now = (await matrix.planned(out, of, one, no_status)).manifest
    manifest.write(out / one.folder, now.model_copy(update={"code": "0" * 64}))
    resumed = (await matrix.planned(out, of, one, no_status)).manifest
    assert (resumed.code, resumed.changed) == (now.code, ())
    assert manifest.read(out / one.folder) == resumed


async def test_an_agent_does_not_run_on_fewer_instances_than_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, out = sums(tmp_path / "data", "a", "b"), tmp_path / "out"
    out.mkdir()
    one, other = (cell(data, agent, script(tmp_path / agent, finish("4"))) for agent in ("CodeActAgent", "DirectAgent"))
    of = Matrix(cells=(one, other), trials=1)
    await ran(out, of, one)
    benchmark = type(registry.find(ADDING))
    monkeypatch.setattr(benchmark, "skipped", lambda _, instance: "node is not installed" * (instance.id == "b"))
    monkeypatch.setattr(registry, "find", lambda _: benchmark())
    with pytest.raises(DataError, match="1 instances of the matrix, such as b, cannot run here any more: node is not"):
        await matrix.planned(out, of, other, no_status)


def test_rollouts_that_a_limit_cut_off_are_counted_as_their_tokens_are_too_low(tmp_path: Path) -> None:
    outcomes: list[tuple[Outcome, str]] = [
        ("timeout", "the time limit of 120 s is reached"),
        ("limit", "the limit of 50 steps is reached"),
        ("submitted", "its time was up"),
        ("submitted", ""),
    ]
    results = [Result(id=why, outcome=one, why=why, score=0.0) for one, why in outcomes]
    run = {"instances": 4, "trials": 1, "metric": "accuracy", "agent": "x", "benchmark": "y"}
    cells = [MeasuredCell(cell(tmp_path, "CodeActAgent"), summarise(run, results, {}), results)]
    reports.write(tmp_path, cells, reports.summarise(cells))
    text = (tmp_path / "matrix-report.md").read_text()
    assert "| measured | lost | cut off |" in text
    assert "| CodeActAgent | 0.0 % (0.0 to 49.0) | 4 of 4 | 0 | 3 |" in text
    assert "adding-test: CodeActAgent: A limit cut off 3 of 4 rollouts: tokens and cost leave out" in text


def summary_of(score: float, tokens: int, cost: float = 0.0, unpriced: int = 0) -> Summary:
    results = [
        Result(id=str(n), outcome="submitted", score=float(n < 10 * score), cost=cost, unpriced=unpriced)
        for n in range(10)
    ]
    run = {"instances": 10, "trials": 1, "metric": "accuracy", "agent": "x", "benchmark": "y"}
    summary = summarise(run, results, {})
    return summary.model_copy(update={"tokens": summary.tokens.model_copy(update={"mean": float(tokens)})})


@pytest.mark.parametrize(
    ("costs", "unpriced", "unit"), [((0.0, 0.0), 0, "tokens"), ((0.0, 0.5), 0, "USD"), ((0.1, 0.5), 3, "tokens")]
)
def test_the_picture_is_in_usd_if_all_costs_are_known_and_there_are_some(
    costs: tuple[float, float], unpriced: int, unit: str
) -> None:
    runs = {"a": summary_of(0.2, 1_000, costs[0], unpriced), "b": summary_of(0.9, 20_000, costs[1])}
    (panel,) = [plot.panel(runs, "the benchmark")]
    assert panel.unit == unit
    picture = ET.fromstring(plot.draw([panel, panel]))
    axes = ["".join(one.itertext()) for one in picture.iter(TEXT) if "mean cost" in "".join(one.itertext())]
    assert axes == [f"the benchmark: mean cost of a rollout, {unit}; score with its 95 % interval"] * 2


def point(label: str, cost: float, score: float) -> plot.Point:
    return plot.Point(label, cost, Estimate(mean=score, n=5, interval=None, method="bootstrap"))


LABELS = st.sampled_from(["CodeActAgent", "SWEAgent", "AgentlessAgent", "SwarmAgent", "A"])
POINTS = st.builds(point, LABELS, st.floats(1.0, 1e6), st.floats(0, 1))


@settings(max_examples=50, deadline=None)
@given(st.lists(POINTS, min_size=1, max_size=6))
def test_no_label_covers_another_or_leaves_the_picture(points: list[plot.Point]) -> None:
    picture = ET.fromstring(plot.draw([plot.Panel(points)]))
    labels = [one for one in picture.iter(TEXT) if one.text in {point.label for point in points}]
    assert len(labels) == len(points)
    boxes: list[tuple[float, float, float]] = []
    for one in labels:
        x, y, width = float(one.attrib["x"]), float(one.attrib["y"]), plot.CHARACTER * len(one.text or "")
        left = {"start": x, "middle": x - width / 2, "end": x - width}[one.attrib["text-anchor"]]
        assert left >= 0
        assert left + width <= 720
        assert 0 < y <= plot.BOTTOM
        for other_left, other_right, other_y in boxes:
            assert left + width <= other_left or other_right <= left or round(abs(y - other_y), 6) >= plot.LINE
        boxes.append((left, left + width, y))

"""``handiwork eval matrix`` as researchers use it."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.program import HANDIWORK, PATIENCE, Program, bash, finish
from tests.evals.runs import ADDING, sums

MINIMAL = str(Path(__file__).parents[2] / "examples/minimal_agent.py:MinimalAgent")
CELLS = [f"adding-test/{agent}" for agent in ("oracle", "empty", "CodeActAgent", "MinimalAgent")]

pytestmark = pytest.mark.slow


@pytest.fixture
def program(program: Program, tmp_path: Path) -> Program:
    """The program with the sums of a benchmark among its data."""
    (tmp_path / "bench").mkdir()
    sums(tmp_path / "bench/adding", "a", "b", "c")
    program.environment["HANDIWORK_BENCHDATA"] = str(tmp_path / "bench")
    return program


def flags(program: Program, out: Path, *replies: dict[str, object]) -> list[str]:
    model = program.script(*(replies or (finish("4"),)))
    agents = f"CodeActAgent,{MINIMAL}"
    return ["eval", "matrix", "--agents", agents, "--benchmarks", f"{ADDING}:2", "--model", model, "--out", str(out)]


def lines(out: Path) -> dict[str, list[str]]:
    files = {cell: out / cell / "output.jsonl" for cell in CELLS}
    return {cell: file.read_text().splitlines() if file.exists() else [] for cell, file in files.items()}


def test_a_matrix_that_is_killed_goes_on_where_it_was(program: Program, tmp_path: Path) -> None:
    out = tmp_path / "out"
    slow = flags(program, out, {**bash("cat sum.txt"), "delay": 0.4}, finish("4"))
    process = subprocess.Popen([HANDIWORK, *slow], env=program.environment, stderr=subprocess.DEVNULL)
    end = time.monotonic() + PATIENCE
    while not lines(out)["adding-test/CodeActAgent"]:
        assert time.monotonic() < end
        time.sleep(0.02)
    process.kill()
    process.wait()
    before = lines(out)
    resumed = program("eval", "matrix", "--resume", str(out), "--json")
    assert resumed.returncode == 0, resumed.stderr
    after = lines(out)
    assert all(after[cell][: len(before[cell])] == before[cell] for cell in CELLS)
    ids = {cell: sorted(json.loads(line)["id"] for line in after[cell]) for cell in CELLS}
    assert all(ran == ["a", "b"] for ran in ids.values()), ids
    summary = json.loads(resumed.stdout)
    assert [one["folder"] for one in summary["cells"]] == CELLS
    assert [one["summary"]["score"]["mean"] for one in summary["cells"]] == [1.0, 0.0, 1.0, 0.0]
    (pair,) = summary["pairs"]
    assert (pair["first"], pair["second"], pair["difference"]["mean"]) == ("CodeActAgent", "MinimalAgent", -1.0)
    names = {file.name for file in out.iterdir()}
    assert {"matrix.json", "matrix-report.md", "matrix-report.html", "matrix-report.json"} <= names


def test_the_budget_is_that_of_all_cells_together(program: Program, tmp_path: Path) -> None:
    out = tmp_path / "out"
    stopped = program(*flags(program, out, {**finish("4"), "cost": 0.6}), "--max-cost", "1")
    assert stopped.returncode == 3
    assert "its --max-cost" in stopped.stderr
    assert f"continue with `handiwork eval matrix --resume {out}`" in stopped.stderr
    assert "eval run --resume" not in stopped.stderr
    assert sum(map(len, lines(out).values())) < 2 * len(CELLS)
    assert program("eval", "matrix", "--resume", str(out), "--max-cost", "9").returncode == 0
    assert [len(one) for one in lines(out).values()] == [2, 2, 2, 2]


def test_a_cell_that_cannot_run_leaves_the_others_and_the_report(program: Program, tmp_path: Path) -> None:
    out, agent = tmp_path / "out", tmp_path / "own.md"
    agent.write_text("---\nname: Own\ndescription: Adds.\ntools: [bash]\n---\nAdd the numbers.\n")
    began = flags(program, out)
    began[began.index("--agents") + 1] = f"{agent},CodeActAgent"
    assert program(*began).returncode == 0
    agent.write_text(agent.read_text().replace("Add the", "Multiply the"))
    shutil.rmtree(out / "adding-test/CodeActAgent")
    (out / "matrix-report.html").unlink()
    resumed = program("eval", "matrix", "--resume", str(out))
    assert resumed.returncode == 4
    assert f"own on adding-test cannot run: the files of {agent} are not those that the run began" in resumed.stderr
    assert len(lines(out)["adding-test/CodeActAgent"]) == 2
    assert (out / "matrix-report.html").exists()


def test_the_data_of_all_cells_can_be_named(program: Program, tmp_path: Path) -> None:
    data, out = (tmp_path / "bench").rename(tmp_path / "elsewhere"), tmp_path / "out"
    assert program(*flags(program, out), "--data", str(data)).returncode == 0
    assert [len(one) for one in lines(out).values()] == [2, 2, 2, 2]


def test_a_benchmark_that_comes_with_its_data_needs_none_in_the_named_folder(program: Program, tmp_path: Path) -> None:
    data, out = (tmp_path / "bench").rename(tmp_path / "elsewhere"), tmp_path / "out"
    began = flags(program, out)
    began[began.index("--benchmarks") + 1] = f"{ADDING}:1,everyday:dev:1"
    done = program(*began, "--data", str(data), "--json")
    assert done.returncode == 0, done.stderr
    cells = [(one["benchmark"], one["agent"]) for one in json.loads(done.stdout)["cells"]]
    assert cells[4:] == [("everyday-dev", agent) for agent in ("oracle", "empty", "CodeActAgent", "MinimalAgent")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--benchmarks", ADDING], "--agents is missing: name at least one, such as CodeActAgent,SWEAgent"),
        (["--agents", "CodeActAgent"], "--benchmarks is missing: name at least one"),
        (["--agents", "NoAgent", "--benchmarks", ADDING], "there is no agent 'NoAgent'"),
        (["--agents", "CodeActAgent", "--benchmarks", "none:3"], "there is no benchmark 'none'"),
        (["--agents", "CodeActAgent", "--benchmarks", f"{ADDING}:0"], "is not of the form NAME[:SPLIT][:LIMIT]"),
        (
            ["--agents", "CodeActAgent", "--benchmarks", f"{ADDING},{ADDING}:2"],
            "--agents and --benchmarks name oracle on adding-test twice",
        ),
        (
            ["--agents", "CodeActAgent", "--benchmarks", f"{ADDING}:2,{ADDING}:dev:2", "--model", "scripted:none"],
            "adding has no split 'dev': it has test",
        ),
        (
            ["--agents", "CodeActAgent", "--benchmarks", ADDING, "--data", "/nowhere"],
            "/nowhere has no sums.jsonl: --data must name a folder",
        ),
        (["--resume", "/nowhere"], "/nowhere has no matrix.json: it is no matrix's folder"),
        (["--resume", "/nowhere", "--trials", "1"], "--trials does not go with --resume, which keeps what was begun"),
        (["--resume", "/nowhere", "--data", "/data"], "--data does not go with --resume, which keeps what was begun"),
    ],
)
def test_what_is_wrong_is_said_at_once(program: Program, arguments: list[str], said: str) -> None:
    done = program("eval", "matrix", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (program.workspace / "evals").exists()

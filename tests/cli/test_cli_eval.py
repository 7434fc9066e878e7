"""``handiwork eval`` as researchers use it: run, killed, resumed, reported, compared, reproduced."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.program import HANDIWORK, PATIENCE, Program, bash, finish
from tests.evals.runs import ADDING, sums

pytestmark = pytest.mark.slow


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return sums(tmp_path / "sums", *(f"sum-{number}" for number in range(6)))


def flags(program: Program, data: Path, out: Path, *replies: dict[str, object]) -> list[str]:
    model = program.script(*(replies or (bash("cat sum.txt"), finish("4"))))
    return ["eval", "run", ADDING, "--data", str(data), "--model", model, "--out", str(out)]


def test_the_benchmarks_are_listed_with_what_they_need(program: Program) -> None:
    listed = [json.loads(line) for line in program("eval", "list", "--json").stdout.splitlines()]
    names = {one["name"] for one in listed}
    assert {"agentbench_os", "bird", "eda", "gaia", "gorilla_apibench", "gpqa"} < names
    assert {"humanevalfix", "mint", "proofwriter", "toolqa"} < names
    assert all(one["size"] and one["source"] and one["metric"] and one["licence"] for one in listed)
    assert "set HF_TOKEN" in program("eval", "list").stdout


def test_a_run_ends_in_a_report(program: Program, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = program(*flags(program, data, out), "--limit", "3", "--workers", "2")
    assert done.returncode == 0, done.stderr
    assert "100.0 %" in done.stdout
    assert {"report.md", "report.json", "report.html", "manifest.json", "output.jsonl"} <= {
        p.name for p in out.iterdir()
    }
    same = json.loads(program("eval", "compare", str(out), str(out), "--json").stdout)
    assert (same["p"], same["better"], same["worse"]) == (1.0, [], [])


def test_a_run_that_is_killed_goes_on_where_it_was(program: Program, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    slow = flags(program, data, out, {**bash("cat sum.txt"), "delay": 0.3}, finish("4"))
    process = subprocess.Popen([HANDIWORK, *slow], env=program.environment, stderr=subprocess.DEVNULL)
    results, end = out / "output.jsonl", time.monotonic() + PATIENCE
    while not results.exists() or len(results.read_text().splitlines()) < 2:
        assert time.monotonic() < end
        time.sleep(0.02)
    process.kill()
    process.wait()
    before = results.read_text().splitlines()
    resumed = program("eval", "run", "--resume", str(out))
    assert resumed.returncode == 0, resumed.stderr
    after = results.read_text().splitlines()
    assert after[: len(before)] == before
    assert sorted(json.loads(line)["id"] for line in after) == [f"sum-{number}" for number in range(6)]


def test_a_run_is_done_again_under_its_conditions(program: Program, data: Path, tmp_path: Path) -> None:
    out, again = tmp_path / "out", tmp_path / "again"
    program(*flags(program, data, out), "--ids", "sum-1, sum-4")
    done = program("eval", "reproduce", str(out), "--out", str(again), "--json")
    found = json.loads(done.stdout)
    assert (found["difference"]["mean"], found["difference"]["n"], found["p"]) == (0.0, 2, 1.0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run"], "say which BENCHMARK"),
        (["run", "nothing"], "there is no benchmark 'nothing': there are agentbench_os"),
        (["run", ADDING, "--split", "dev"], "adding has no split 'dev': it has test"),
        (["run", ADDING, "--data", "/nowhere"], "/nowhere has no sums.jsonl: --data must name a folder"),
        (["run", "gpqa"], "is not given out freely"),
        (["report", "/nowhere"], "/nowhere has no manifest.json: it is no run's folder"),
    ],
)
def test_what_is_wrong_is_said_at_once(program: Program, arguments: list[str], said: str) -> None:
    done = program("eval", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr

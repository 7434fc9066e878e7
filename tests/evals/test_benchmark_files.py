"""Benchmarks in a file of their own: how they are loaded, what is wrong with them, and their changes between runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from handiwork.evals import registry
from handiwork.evals.benchmark import DataError
from handiwork.evals.registry import BenchmarkNotFoundError
from handiwork.evals.running import manifest, plan
from handiwork.evals.running.results import Result, Results
from tests.evals.runs import ADDING, no_status, planned, script, sums

SOURCE = Path(ADDING).read_text()
DATACLASS = "\n\nfrom dataclasses import dataclass\n\n\n@dataclass\nclass Row:\n    id: str\n"


def own(folder: Path, source: str, name: str = "own.py") -> str:
    """The path of a benchmark's file."""
    (folder / name).write_text(source)
    return str(folder / name)


def test_a_benchmark_may_define_dataclasses_and_be_named_like_a_module_in_use(tmp_path: Path) -> None:
    for name in ("own.py", "json.py"):
        assert registry.find(own(tmp_path, SOURCE + DATACLASS, name)).name == "adding"
    assert sys.modules["json"] is json


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (
            SOURCE + "\nimport not_installed\n",
            "own.py cannot be loaded: ModuleNotFoundError: No module named 'not_inst",
        ),
        (SOURCE + "\nclass:\n", "own.py cannot be loaded: SyntaxError: "),
        (SOURCE.replace("def score(", "def grade("), "one class of Benchmark, and has 0; Adding lacks score"),
    ],
    ids=["import", "syntax", "method"],
)
def test_what_is_wrong_with_a_file_is_told(source: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(BenchmarkNotFoundError, match=told):
        registry.find(own(tmp_path, source))


async def test_ids_that_are_no_text_are_told(tmp_path: Path) -> None:
    data = sums(tmp_path / "data")
    (data / "sums.jsonl").write_text('{"id": 1, "a": 1, "b": 3}\n')
    with pytest.raises(DataError, match="adding: id and group of an instance are text, not 1 and 'even'"):
        await planned(data, script(tmp_path / "script"))


async def test_a_resumed_run_tells_that_the_file_has_changed(tmp_path: Path) -> None:
    file, said = own(tmp_path, SOURCE), list[str]()
    work = await planned(sums(tmp_path / "data", "a"), script(tmp_path / "script"), benchmark=file)
    manifest.write(tmp_path, work.manifest)
    await plan.resume(tmp_path, said.append)
    assert said == []
    own(tmp_path, SOURCE.replace("the scorer is broken", "it is broken"))
    await plan.resume(tmp_path, said.append)
    assert said == ["the benchmark's code differs from the run's beginning"]


async def test_a_run_does_not_go_on_without_one_of_its_instances(tmp_path: Path) -> None:
    file = own(tmp_path, SOURCE)
    work = await planned(sums(tmp_path / "data", "a", "b"), script(tmp_path / "script"), benchmark=file)
    manifest.write(tmp_path, work.manifest)
    own(tmp_path, SOURCE.replace("for row in rows]", "for row in rows[1:]]"))
    with pytest.raises(DataError, match="adding has no instance a any more: begin another run"):
        await plan.resume(tmp_path, no_status)


async def test_a_run_does_not_go_on_if_an_unfinished_instance_cannot_run_any_more(tmp_path: Path) -> None:
    file, out = own(tmp_path, SOURCE), tmp_path / "out"
    work = await planned(sums(tmp_path / "data", "a", "b"), script(tmp_path / "script"), benchmark=file)
    out.mkdir()
    manifest.write(out, work.manifest)
    Results(out).add(Result(id="a", outcome="submitted", score=1.0))
    own(tmp_path, SOURCE.replace('startswith("skipped")', 'startswith("a")'))
    await plan.resume(out, no_status)
    own(tmp_path, SOURCE.replace('startswith("skipped")', 'startswith("b")'))
    with pytest.raises(DataError, match="1 instances of the run, such as b, cannot run here any more: it has no sum"):
        await plan.resume(out, no_status)

"""Runs over a real Ray cluster of two nodes on this machine, one of which is killed in the middle."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

import pytest

from tests.cli.program import HANDIWORK, PATIENCE, Program, bash, finish
from tests.evals.runs import ADDING, sums

pytestmark = pytest.mark.slow


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A node that a run joins, with room for one rollout at a time; a test adds another."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    yield made
    made.shutdown()


@pytest.mark.timeout(300)
def test_a_run_loses_nothing_when_a_node_is_killed(program: Program, cluster: Any, tmp_path: Path) -> None:
    ids = [f"sum-{number}" for number in range(12)]
    data, out = sums(tmp_path / "sums", *ids), tmp_path / "out"
    model = program.script({**bash("cat sum.txt"), "delay": 1.0}, finish("4"))
    node = cluster.add_node(num_cpus=1)
    run = ["eval", "run", ADDING, "--data", data, "--model", model, "--out", out, "--workers", "3"]
    flags = ["--engine", "ray", "--ray-address", cluster.address]
    process = Popen([HANDIWORK, *map(str, run), *flags], env=program.environment, stdout=DEVNULL, stderr=PIPE)
    results, end = out / "output.jsonl", time.monotonic() + PATIENCE * 3
    while not results.exists() or len(results.read_text().splitlines()) < 4:
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.05)
    cluster.remove_node(node, allow_graceful=False)
    _, said = process.communicate()
    assert process.returncode == 0, said
    found = [json.loads(line) for line in results.read_text().splitlines()]
    assert sorted(one["id"] for one in found) == sorted(ids)
    assert {(one["outcome"], one["score"]) for one in found} == {("submitted", 1.0)}
    assert all((out / one["trajectory"]).exists() for one in found)


def test_without_a_cluster_it_is_said_what_to_do(program: Program, tmp_path: Path) -> None:
    data = sums(tmp_path / "sums", "a")
    run = ["eval", "run", ADDING, "--data", str(data), "--model", program.script(finish("4"))]
    done = program(*run, "--out", str(tmp_path / "out"), "--engine", "ray", "--ray-address", "127.0.0.1:1")
    assert done.returncode == 4
    assert "there is no Ray cluster at 127.0.0.1:1" in done.stderr
    assert "ray start --head" in done.stderr

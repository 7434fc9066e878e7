"""Probes: two rollouts side by side, as a run starts them, search their sandboxes for what they must not see."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from handiwork.evals.benchmark import Instance
from handiwork.evals.registry import all_of, find
from handiwork.evals.running import plan
from handiwork.evals.running.conditions import Conditions
from handiwork.evals.running.plan import InstanceSelection
from handiwork.events.codec import from_json
from handiwork.events.observation import CmdOutputObservation
from tests.evals import probing
from tests.evals.runs import finished, no_status
from tests.evals.test_arms import data_of

pytestmark = pytest.mark.timeout(600)

SHORTEST = 6
"""The characters of a text that cannot be found by chance."""

IDS = {
    "localisation": ["pallets__flask-4992", "pytest-dev__pytest-7168"],
    "swebench": ["pallets__flask-4992", "pytest-dev__pytest-7168"],
    "agentbench_os": ["std-007-bootstrap-00000", "std-007-bootstrap-00001"],
}
SPLITS = {"eda": "things-dev", "mint": "humaneval", "humanevalfix": "python"}


def repaired_line(row: Mapping[str, Any]) -> str:
    """A line of the right solution that is not in the file with the bug."""
    return next(line for line in row["canonical_solution"].splitlines() if line not in row["buggy_solution"])


def added_lines(patch: str) -> list[str]:
    """The lines of a patch that it adds, of some length."""
    lines = [line[1:].strip() for line in patch.splitlines() if line.startswith("+") and line[:3] != "+++"]
    return [line for line in lines if len(line) > 30]


GOLD: Mapping[str, Callable[[Mapping[str, Any]], list[str]]] = {
    # The databases have the names in a call, but not the call.
    "apibank": lambda row: [json.dumps(dict(call.input)) for call in row["calls"]],
    "agentbench_os": lambda row: [json.dumps(row["evaluation"])[1:60]],
    "biocoder": lambda row: [row["goldenCode"].strip().splitlines()[-1].strip()],
    "bird": lambda row: [row["SQL"]],
    "eda": lambda row: [*row["names"]],
    "everyday": lambda row: [str(row[part].get("script", "")) for part in ("solution", "wrong", "verify")],
    "gaia": lambda row: [row["Final answer"]],
    "gorilla_apibench": lambda row: [row["reference"]],
    "gpqa": lambda row: [row["Correct Answer"]],
    "humanevalfix": lambda row: [repaired_line(row)],
    # The repository has the file itself, but not its repair.
    "localisation": lambda row: added_lines(row["patch"])[:1],
    "mint": lambda row: [row["canonical_solution"].strip()],
    "m3tooleval": lambda row: [str(row["expected_output"])],
    "ml-bench": lambda row: [row["output"].strip()],
    # tests/docker/test_multi_swe_bench.py has a probe in an image of its own.
    "multi-swe-bench": lambda row: [*added_lines(row["fix_patch"])[:1], *added_lines(row["test_patch"])[:1]],
    "mnms": lambda row: [str(plan) for plan in row["plans"]],
    # Pages score what happens on them: they have no answer.
    "miniwob": lambda row: [],
    # The answer is a letter: only the id and the data tell it.
    "proofwriter": lambda row: [],
    "swebench": lambda row: [*added_lines(row["patch"])[:1], *added_lines(row["test_patch"])[:1], *row["FAIL_TO_PASS"]],
    "toolqa": lambda row: [str(row["answer"])],
}
"""The texts of an instance that tell its solution or its tests."""


def needles_of(name: str, instance: Instance) -> dict[str, str]:
    texts = {f"gold {number}": text for number, text in enumerate(GOLD[name](instance.row))}
    # A page of MiniWoB++ has its task's name in it.
    texts |= {} if name == "miniwob" else {"id": instance.id}
    return {f"{label} of {instance.id}": text for label, text in texts.items() if len(text) >= SHORTEST}


@pytest.mark.parametrize(
    "name",
    [
        # In test-slow, tests/evals/test_swebench.py has a probe of one rollout, which takes less time.
        pytest.param(one.name, marks=pytest.mark.campaign if one.name == "swebench" else pytest.mark.slow)
        for one in all_of()
        if not one.name.startswith("webarena")  # their sites are not here
    ],
)
async def test_a_rollout_sees_neither_solution_nor_tests_nor_data_nor_other_rollouts(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Keeps this machine's toolchains, and the packages of its other Pythons, out of the sandboxes.
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    benchmark = find(name)
    split = SPLITS.get(name, benchmark.splits[0])
    data, out = data_of(benchmark, split, tmp_path / "data"), tmp_path / "the-runs-folder"
    conditions = Conditions(
        benchmark=name,
        split=split,
        data=str(data),
        agent=f"{probing.__name__}:{probing.Prober.__name__}",
        model="scripted:/dev/null",
        user_model="",
        limits=benchmark.limits,
    )
    planned = await plan.new(benchmark, conditions, InstanceSelection(2, IDS.get(name)), 1, no_status)
    needles = {"control": probing.CONTROL, "the data folder": str(data), "the run": str(out)}
    for instance in planned.instances.values():
        needles |= needles_of(name, instance)
    assert len(planned.instances) == 2
    monkeypatch.setattr(probing, "needles", needles)
    monkeypatch.setattr(probing, "meeting", asyncio.Barrier(2))
    for result in (await finished(out, planned, workers=2)).values():
        assert result.score is not None, (result.outcome, result.why)
        events = [from_json(line) for line in (out / result.trajectory).read_text().splitlines()]
        answers = [one.content for one in events if isinstance(one, CmdOutputObservation)]
        found = json.loads(answers[1].strip().splitlines()[-1])
        # The control shows that the search finds what is there.
        hits = [hit for hit in found["hits"] if not hit.startswith("control")]
        if name == "swebench":  # an environment may have a later version of the other instance's repository
            hits = [hit for hit in hits if not hit.startswith("gold") or f" of {result.id} " in hit]
        assert hits == []
        assert "control in the workspace" in found["hits"]
        assert (found["left"], found["processes"]) == (1, 1), "it sees another rollout's files or processes"
        if name not in ("everyday", "multi-swe-bench"):  # some tasks have a repository; tests/docker has the other
            assert found["history"] == (1 if name in ("localisation", "swebench") else 0)

"""Multi-SWE-bench: real rows, and the official package's parsers on logs that say what the rows say.

tests/docker/test_multi_swe_bench.py runs an instance of our own in a container.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import chain
from typing import Any

import pytest

from handiwork.evals.benchmark import Instance
from handiwork.evals.benchmarks.multi_swe_bench import grader
from handiwork.evals.benchmarks.multi_swe_bench.benchmark import MultiSWEBench
from handiwork.evals.scoring.execution import ScriptOutput
from handiwork.evals.scoring.patches import Grade
from tests.evals.rollouts import instances

MULTI = MultiSWEBench()
WRITTEN: Mapping[str, Mapping[str, str]] = {
    "jqlang/jq": {"passed": "PASS: {}", "failed": "FAIL: {}", "skipped": "SKIP: {}"},
    "zeromicro/go-zero": {"passed": "--- PASS: {}/a (0.00s)", "failed": "--- FAIL: {}/a", "skipped": "--- SKIP: {}/a"},
    "tokio-rs/bytes": {
        "passed": "test {} ... ok",
        "failed": "test {} ... FAILED",
        "skipped": "test {} ... ignored",
    },
    "sharkdp/fd": {"passed": "test {} ... ok", "failed": "test {} ... FAILED", "skipped": "test {} ... ignored"},
}
"""How the test programs of some repositories write a test's status; go-zero's parser drops the last part of names."""


def every(split: str) -> list[Instance]:
    return instances(MULTI, split)


def written(row: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """A log of these results, as the repository's test program writes it."""
    lines = WRITTEN[f"{row['org']}/{row['repo']}"]
    return "".join(f"{line.format(test)}\n" for status, line in lines.items() for test in result[f"{status}_tests"])


def graded(row: Mapping[str, Any], log: str) -> Grade:
    return grader.grade_log(row, ScriptOutput(0, log))


@pytest.mark.parametrize("split", MULTI.splits)
def test_instances_have_ids_repositories_and_reasons_why_they_cannot_run(split: str) -> None:
    loaded = every(split)
    assert loaded
    for one in loaded:
        assert one.id == f"{one.group.replace('/', '__')}-{one.row['number']}"
        assert MULTI.skipped(one)
        assert one.row["image"].startswith("mswebench/")
        assert one.row["image"] == one.row["image"].lower()


@pytest.mark.parametrize("split", MULTI.splits)
def test_the_instruction_has_the_issues_and_nothing_of_the_repair(split: str) -> None:
    for one in every(split):
        text = MULTI.instruction(one)
        assert all(issue["title"] in text for issue in one.row["resolved_issues"])
        assert one.row["fix_patch"] not in text
        added = [line[1:].strip() for line in one.row["test_patch"].splitlines() if line.startswith("+")]
        assert "\n".join(added) not in text


@pytest.mark.slow
@pytest.mark.parametrize("split", MULTI.splits)
def test_the_package_has_a_parser_for_every_row_and_an_empty_log_resolves_nothing(split: str) -> None:
    for row in {one.group: one.row for one in every(split)}.values():
        grade = graded(row, "")
        assert (grade.resolved, grade.doubtful) == (False, True)
        assert "no test results were captured" in grade.why


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITTEN)
def test_a_log_is_resolved_only_if_every_named_test_is_in_its_class(name: str) -> None:
    rows = [one.row for split in MULTI.splits for one in every(split) if one.group == name]
    assert rows
    for row in rows:
        fixed = row["fix_patch_result"]
        gold = graded(row, written(row, fixed))
        assert (gold.resolved, gold.why, gold.version) == (True, "", "multi-swe-bench==1.1.2")
        # The tests' patch alone repairs nothing.
        assert not graded(row, written(row, row["test_patch_result"])).resolved
        for kind in ("p2p_tests", "f2p_tests", "n2p_tests"):
            for lost in list(row[kind])[:1]:
                lacking = {**fixed, "passed_tests": [test for test in fixed["passed_tests"] if test != lost]}
                without = graded(row, written(row, lacking))
                assert not without.resolved
                assert len(row["f2p_tests"]) + len(row["n2p_tests"]) == 1 or without.tests == {kind: [lost]}
                assert not graded(
                    row, written(row, {**lacking, "failed_tests": [*fixed["failed_tests"], lost]})
                ).resolved


def mocha_report(result: Mapping[str, Any]) -> str:
    """A log of these results, as mocha's JSON reporter writes it."""
    kinds = {"passes": "passed", "failures": "failed", "pending": "skipped"}
    tests = {
        kind: [
            {"title": name, "fullTitle": name, "currentRetry": 0, "duration": 1, "err": {}}
            for name in result[f"{status}_tests"]
        ]
        for kind, status in kinds.items()
    }
    counts = {kind: len(tests[kind]) for kind in kinds}
    stats = {"suites": 1, "tests": sum(counts.values()), "start": "", "end": "", "duration": 1, **counts}
    return f"> mocha\n{json.dumps({'stats': stats, 'tests': [*chain(*tests.values())], **tests}, indent=2)}\n"


@pytest.mark.slow
def test_a_log_of_json_is_read_with_its_nested_records() -> None:
    row = next(one.row for one in every("js") if one.id == "expressjs__express-3695")
    assert graded(row, mocha_report(row["fix_patch_result"])).resolved
    assert not graded(row, mocha_report(row["test_patch_result"])).resolved


@pytest.mark.slow
def test_a_log_that_the_official_parser_fails_on_is_not_resolved_as_upstream() -> None:
    row = next(one.row for one in every("js") if one.id == "expressjs__express-3695")
    broken = graded(row, "  var opts = {}\n             ^\nSyntaxError: Unexpected token\n")
    assert (broken.resolved, broken.doubtful) == (False, True)


@pytest.mark.slow
def test_a_log_in_which_a_test_both_passes_and_fails_is_no_report_upstream_either() -> None:
    (row, *_) = (one.row for one in every("c") if one.group == "jqlang/jq")
    test = next(iter(row["f2p_tests"]))
    both = graded(row, f"{written(row, row['fix_patch_result'])}FAIL: {test}\n")
    assert (both.resolved, both.doubtful) == (False, True)
    assert "should not have common items" in both.why


def test_scoring_has_time_for_three_gradings() -> None:
    assert MULTI.scoring_seconds >= 3 * grader.SECONDS

"""HumanEvalFix: what the agent finds and leaves as files is scored with the benchmark's own tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from handiwork.evals.benchmark import Instance
from handiwork.evals.benchmarks.humanevalfix import LANGUAGES, HumanEvalFix, run, solution_of
from handiwork.events.action import CmdRunAction, FileWriteAction
from handiwork.events.observation import CmdOutputObservation
from tests.evals.rollouts import instances, needs_benchdata, prepared, rollout, sample, some_or_all

pytestmark = [needs_benchdata, pytest.mark.slow]

FIX = HumanEvalFix()

FLAWED_UPSTREAM = {
    "JavaScript/10": "its bug is not found by its tests",
    "CPP/38": "its declaration has half of the function's body",
}
"""Instances where the published canonical solution fails, or the published buggy one passes."""


def runnable(split: str) -> list[Instance]:
    found = [one for one in instances(FIX, split) if not FIX.skipped(one) and one.id not in FLAWED_UPSTREAM]
    if not found:
        pytest.skip(FIX.skipped(instances(FIX, split)[0]))
    return found


async def test_an_agent_repairs_the_file_and_its_own_changes_of_the_tests_do_not_count(tmp_path: Path) -> None:
    instance = runnable("python")[0]
    async with prepared(FIX, instance, tmp_path) as sandbox:
        command = FIX.instruction(instance).split("`")[1]
        failing = await sandbox.execute(CmdRunAction(command=command))
        assert isinstance(failing, CmdOutputObservation)
        assert failing.exit_code == 1
        assert "AssertionError" in failing.content
        await sandbox.execute(FileWriteAction(path="test_solution.py", content="print('all is well')\n"))
        cheated = await FIX.score(rollout(instance, "Done.", sandbox))
        assert cheated.value == 0
        assert "AssertionError" in cheated.details["output"]
        repaired = solution_of(instance.row, "canonical_solution")
        await sandbox.execute(FileWriteAction(path="solution.py", content=repaired))
        score = await FIX.score(rollout(instance, "Done.", sandbox))
        assert (score.value, score.answer) == (1, repaired)
        await sandbox.execute(CmdRunAction(command="rm solution.py"))
        gone = await FIX.score(rollout(instance, "Done.", sandbox))
        assert (gone.value, gone.answer) == (0, "")


@pytest.mark.parametrize("early", ["import sys\nsys.exit(0)\n", "def unfinished(:\n"])
async def test_a_python_program_that_does_not_come_to_its_tests_end_fails(early: str) -> None:
    assert not (await run(runnable("python")[0], early)).passed


async def test_what_an_agent_leaves_for_the_command_line_is_not_run() -> None:
    """The official scorer executes the program without calling it __main__."""
    instance = runnable("python")[0]
    solution = solution_of(instance.row, "canonical_solution") + "\n\nif __name__ == '__main__':\n    input('n? ')\n"
    assert (await run(instance, solution)).passed


async def test_a_javascript_program_must_neither_complain_nor_leave_early() -> None:
    instance = runnable("js")[0]
    right = solution_of(instance.row, "canonical_solution")
    assert not (await run(instance, f"process.exit(0)\n{right}")).passed
    assert not (await run(instance, f"console.log(1)\n{right}")).passed


@pytest.mark.timeout(1200)
@some_or_all
@pytest.mark.parametrize("split", FIX.splits)
async def test_instances_tell_right_from_wrong(split: str, at_most: int) -> None:
    """Of languages that are compiled every fourth at most: one takes seconds."""
    wrong: list[str] = []
    for instance in sample(runnable(split)[:: 1 if split in ("python", "js") else 4], at_most):
        for field, passes in ("canonical_solution", True), ("buggy_solution", False):
            done = await run(instance, solution_of(instance.row, field))
            if done.passed != passes:
                wrong.append(f"{instance.id} {field}: {done.output[-300:]}")
    assert not wrong


@pytest.mark.timeout(600)
@pytest.mark.parametrize("split", FIX.splits)
async def test_the_command_of_the_instruction_shows_the_bug_and_its_repair(split: str, tmp_path: Path) -> None:
    instance = runnable(split)[0]
    language = LANGUAGES[instance.id.split("/")[0]]
    async with prepared(FIX, instance, tmp_path) as sandbox:
        for field, passes in ("buggy_solution", language.folder == "js"), ("canonical_solution", True):
            code = solution_of(instance.row, field)
            await sandbox.execute(FileWriteAction(path=language.solution, content=code))
            done = await sandbox.execute(CmdRunAction(command=language.command, timeout=120))
            assert isinstance(done, CmdOutputObservation)
            assert (done.exit_code == 0) == passes
            # console.assert says what is wrong and does not fail.
            assert ("Assertion failed" in done.content) == (field == "buggy_solution") or language.folder != "js"


MD5 = """\
#include <openssl/md5.h>

int first_byte() {
"""
RIGHT = """\
    unsigned char digest[MD5_DIGEST_LENGTH];
    MD5((const unsigned char*)"a", 1, digest);
    return digest[0];
}
"""
TEST = """\
#include <cassert>

int main() {
    assert(first_byte() == 0x0c);
}
"""


async def test_a_program_that_includes_openssl_is_linked_with_it() -> None:
    row = {"task_id": "CPP/162", "entry_point": "first_byte", "declaration": MD5, "canonical_solution": RIGHT}
    instance = Instance("CPP/162", {**row, "test": TEST})
    assert "-lcrypto" in FIX.instruction(instance)
    if why := FIX.skipped(instance):
        pytest.skip(why)
    done = await run(instance, solution_of(instance.row, "canonical_solution"))
    assert done.passed, done.output


def test_instances_are_told_apart_by_their_kind_of_bug() -> None:
    groups = {one.group for one in instances(FIX)}
    assert "missing logic" in groups
    assert "" not in groups


def test_what_the_machine_lacks_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert FIX.skipped(instances(FIX, "cpp")[0]) == "g++ or c++ not installed"
    assert FIX.skipped(instances(FIX, "java")[0]) == "javac and java not installed"


def test_rust_tasks_that_need_a_crate_are_left_out_and_others_do_not_name_one(tmp_path: Path) -> None:
    for instance in instances(FIX, "rust"):
        code = solution_of(instance.row, "canonical_solution")
        assert "use rand::Rng" not in code
        if "rand::" in code and not FIX.skipped(instance).endswith("not installed"):
            assert FIX.skipped(instance) == "it needs a crate for rand, and rustc alone has none"

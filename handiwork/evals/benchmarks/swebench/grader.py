"""Grades a patch by the official rule, on a fresh checkout in a sandbox that no agent has touched."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from handiwork.errors import SandboxError
from handiwork.evals.benchmarks.swebench import environments, installations
from handiwork.evals.benchmarks.swebench.installations import Subject
from handiwork.evals.scoring import packages
from handiwork.evals.scoring.execution import GRACE, command_in, new_sandbox, write_file
from handiwork.sandbox.base import Sandbox

PACKAGE = "swebench==5.0.2"
_SHA256 = "b7f0416a1e686eca22c2f749b5f816685a202835032f6683080e2b53545bbb62"

SECONDS = 1800.0
"""The time that an instance's tests may take, as upstream."""

LARGEST_LOG = 50_000_000
"""The bytes of the tests' output that are read, from its beginning."""

_GIT_SECONDS = 300.0
"""The time for applying a patch."""

_TIMED_OUT = frozenset({124, 137})
"""Exit codes of ``timeout`` for a command that it ended."""

_APPLY = """
reset() { git checkout -q -- . ; git clean -qfd; }
for command in "git apply --verbose" "git apply --verbose --3way" "git apply --verbose --reject" \\
    "patch --batch --forward --fuzz=5 -p1 -i"; do
  $command /tmp/model.patch && exit 0
  reset
done
git apply --check --reverse /tmp/model.patch
"""
"""Applies a patch by the commands of upstream's run_evaluation.py, one after the other."""

_PATHS = re.compile(r"^diff --git a/(.+) b/(.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Grade:
    """The result of grading: ``why`` explains what is not resolved, ``tests`` is the official status of the tests.

    ``doubtful`` marks a patch without any result of its tests: the machine may have failed, not the patch.
    """

    resolved: bool
    why: str = ""
    doubtful: bool = False
    tests: Mapping[str, Any] = field(default_factory=dict[str, Any])
    version: str = PACKAGE
    log: str = ""


async def grade(row: Mapping[str, Any], subject: Subject, patch: str, seconds: float = SECONDS) -> Grade:
    """Apply a patch and then the instance's own tests, run these for at most ``seconds``, and grade their output.

    An installation of the subject must exist. Raises DataError, SandboxError, and OfficialError if the official package
    cannot grade the output.
    """
    mounts = environments.mounts(subject.recipe)
    async with new_sandbox("bubblewrap", read_only=mounts) as (sandbox, workspace):
        await asyncio.to_thread(installations.put, subject, workspace)
        await sandbox.start()
        if patch:
            await write_file(sandbox, "/tmp/model.patch", patch.encode())
            applied = await _run_git(sandbox, _APPLY)
            if applied.exit_code:
                return Grade(resolved=False, why="the patch does not apply", log=applied.output)
        await write_file(sandbox, "/tmp/test.patch", row["test_patch"].encode())
        put_back = await _run_git(sandbox, _put_back(row["test_patch"]))
        if put_back.exit_code:
            return Grade(resolved=False, why="the tests cannot be put in place", doubtful=True, log=put_back.output)
        tests = await _run(sandbox, f"{subject.recipe.test_command}\n", seconds)
    if tests.exit_code in _TIMED_OUT:
        return Grade(resolved=False, why=f"the tests took more than {seconds:g} s", doubtful=True, log=tests.output)
    return await asyncio.to_thread(_official_grade, row, subject.recipe.parser, tests)


class OfficialError(Exception):
    """The official package failed; the message is the end of its output."""


@dataclass(frozen=True, slots=True)
class _CommandOutput:
    exit_code: int
    output: str


async def _run(sandbox: Sandbox, script: str, seconds: float) -> _CommandOutput:
    """Run a script in the workspace, and return its whole output."""
    await write_file(sandbox, "/tmp/script.sh", script.encode())
    limited = f"timeout -k 10 {seconds:g} bash /tmp/script.sh < /dev/null > /tmp/output.log 2>&1"
    done = await command_in(sandbox, f"({limited})", seconds + GRACE)
    content = bytearray()
    async for piece in sandbox.download("/tmp/output.log"):
        content += piece
        if len(content) > LARGEST_LOG:
            break
    if done.exit_code is None:
        raise SandboxError("the sandbox did not end the tests")
    return _CommandOutput(done.exit_code, content.decode(errors="replace"))


async def _run_git(sandbox: Sandbox, script: str) -> _CommandOutput:
    """Run a script that applies patches: unlike tests, it takes long only on a machine that is too busy."""
    done = await _run(sandbox, script, _GIT_SECONDS)
    if done.exit_code in _TIMED_OUT:
        raise SandboxError(f"git took more than {_GIT_SECONDS:g} s to apply a patch: {done.output[-500:]}")
    return done


def _put_back(test_patch: str) -> str:
    """Return a script that gives the files of the tests the content of the base commit, and then of their patch."""
    paths = dict.fromkeys(path for pair in _PATHS.findall(test_patch) for path in pair)
    lines = ['restore() { git checkout -q HEAD -- "$1" 2> /dev/null || rm -rf -- "$1"; }']
    lines += [f"restore {shlex.quote(path)}" for path in paths]
    return "\n".join([*lines, "git apply --verbose /tmp/test.patch", ""])


def _official_grade(row: Mapping[str, Any], parser: str, tests: _CommandOutput) -> Grade:
    log = f">>>>> Start Test Output\n{tests.output}\n>>>>> End Test Output\n>>>>> Test Exit Code: {tests.exit_code}\n"
    fields = ("instance_id", "repo", "version", "FAIL_TO_PASS", "PASS_TO_PASS")
    case = {"row": {name: row[name] for name in fields}, "parser": parser, "log": log}
    folder, program = packages.fetched(PACKAGE, _SHA256), Path(__file__).with_name("official.py")
    command = [sys.executable, "-I", str(program), str(folder)]
    done = subprocess.run(command, input=json.dumps(case), capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        raise OfficialError(done.stderr[-2000:])
    report = json.loads(done.stdout)
    status = report.get("tests_status", {})
    failed = {kind: tests["failure"] for kind, tests in status.items() if tests["failure"]}
    why = "" if report["resolved"] else "tests fail" if failed else "the tests' output has no results"
    doubtful = not report["resolved"] and not failed
    return Grade(report["resolved"], why, doubtful, failed, f"swebench {report['version']}", tests.output)

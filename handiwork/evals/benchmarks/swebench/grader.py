"""Grades a patch by the official rule, on a fresh checkout in a sandbox that no agent has touched."""

from __future__ import annotations

import asyncio
import re
import shlex
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from handiwork.errors import SandboxError
from handiwork.evals.benchmarks.swebench import environments, installations
from handiwork.evals.benchmarks.swebench.installations import Subject
from handiwork.evals.scoring import packages
from handiwork.evals.scoring.execution import ScriptOutput, new_sandbox, run_script, write_file
from handiwork.evals.scoring.patches import Grade, official_report
from handiwork.sandbox.base import Sandbox

PACKAGE = "swebench==5.0.2"
_SHA256 = "b7f0416a1e686eca22c2f749b5f816685a202835032f6683080e2b53545bbb62"

SECONDS = 1800.0
"""The time that an instance's tests may take, with the installation before them, as upstream."""

_GIT_SECONDS = 300.0
"""The time for applying a patch."""

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

_NOT_INSTALLED = (".py", ".rst", ".md", ".txt")
"""Endings of files that an installation only refers to, but for those with ``_INSTALLING`` names."""

_INSTALLING = "setup"
"""The beginning of the names of modules that build a package, such as setup.py and setup_package.py."""


async def grade(row: Mapping[str, Any], subject: Subject, patch: str, seconds: float = SECONDS) -> Grade:
    """Apply a patch and then the instance's own tests, run these for at most ``seconds``, and grade their output.

    If the patch ``needs_installing``, the repository is installed again before the tests, which run even if that fails;
    upstream does so for every patch. An installation of the subject must exist. Raises DataError, SandboxError, and
    OfficialError if the official package cannot grade the output.
    """
    mounts = environments.mounts(subject.recipe)
    async with new_sandbox("bubblewrap", read_only=mounts) as (sandbox, workspace):
        await asyncio.to_thread(installations.put, subject, workspace)
        await sandbox.start()
        if patch:
            await write_file(sandbox, "/tmp/model.patch", patch.encode())
            applied = await _run_git(sandbox, _APPLY)
            if applied.exit_code:
                return _without_tests("the patch does not apply", applied)
        left, began, installed = seconds, time.monotonic(), None
        if needs_installing(patch):
            installed = await run_script(sandbox, installations.script(subject.recipe), seconds)
            if how := installed.cut_short(seconds):
                return _without_tests(f"the installation {how}", installed)
            left = max(1.0, seconds - (time.monotonic() - began))
        await write_file(sandbox, "/tmp/test.patch", row["test_patch"].encode())
        put_back = await _run_git(sandbox, _put_back(row["test_patch"]))
        if put_back.exit_code:
            return _without_tests("the tests cannot be put in place", put_back)
        tests = await run_script(sandbox, f"{subject.recipe.test_command}\n", left)
    if how := tests.cut_short(seconds):
        return _without_tests(f"the tests {how}", tests)
    graded = await asyncio.to_thread(_official_grade, row, subject.recipe.parser, tests)
    if installed is not None and installed.exit_code and not graded.resolved:
        return replace(graded, doubtful=True)  # the machine may have killed a compiler
    return graded


def needs_installing(patch: str) -> bool:
    """Return whether a patch changes files that an installation is built from, such as those of compiled extensions."""
    paths = {Path(path) for pair in _PATHS.findall(patch) for path in pair}
    return any(not path.name.endswith(_NOT_INSTALLED) or path.name.startswith(_INSTALLING) for path in paths)


def _without_tests(why: str, script: ScriptOutput) -> Grade:
    """Return the grade of a patch whose tests did not come to their end, perhaps because the machine failed."""
    return Grade(resolved=False, version=PACKAGE, why=why, doubtful=True, log=script.output, killed=script.killed)


async def _run_git(sandbox: Sandbox, script: str) -> ScriptOutput:
    """Run a script that applies patches: unlike tests, it takes long only on a machine that is too busy."""
    done = await run_script(sandbox, script, _GIT_SECONDS)
    if how := done.cut_short(_GIT_SECONDS):
        raise SandboxError(f"git {how}, when it applied a patch: {done.output[-500:]}")
    return done


def _put_back(test_patch: str) -> str:
    """Return a script that gives the files of the tests the content of the base commit, and then of their patch."""
    paths = dict.fromkeys(path for pair in _PATHS.findall(test_patch) for path in pair)
    lines = ['restore() { git checkout -q HEAD -- "$1" 2> /dev/null || rm -rf -- "$1"; }']
    lines += [f"restore {shlex.quote(path)}" for path in paths]
    return "\n".join([*lines, "git apply --verbose /tmp/test.patch", ""])


def _official_grade(row: Mapping[str, Any], parser: str, tests: ScriptOutput) -> Grade:
    log = f">>>>> Start Test Output\n{tests.output}\n>>>>> End Test Output\n>>>>> Test Exit Code: {tests.exit_code}\n"
    fields = ("instance_id", "repo", "version", "FAIL_TO_PASS", "PASS_TO_PASS")
    case = {"row": {name: row[name] for name in fields}, "parser": parser, "log": log}
    program = Path(__file__).with_name("official.py")
    report = official_report(program, packages.fetched(PACKAGE, _SHA256), case)
    status = report.get("tests_status", {})
    failed = {kind: tests["failure"] for kind, tests in status.items() if tests["failure"]}
    why = "" if report["resolved"] else "tests fail" if failed else "the tests' output has no results"
    doubtful = not report["resolved"] and not failed
    return Grade(report["resolved"], f"swebench {report['version']}", why, doubtful, failed, tests.output)

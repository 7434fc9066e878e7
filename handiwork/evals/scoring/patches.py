"""Scores an agent's patch by tests that an official package grades: the parts that several benchmarks share."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from handiwork.errors import SandboxError
from handiwork.evals.benchmark import Rollout, Score, UnfitError
from handiwork.workspace.patch import unified_diff

LARGEST_CHANGES = 50_000_000
"""The most bytes of changed text files, before and after together, that are compared."""

OFFICIAL_SECONDS = 300.0
"""The time for an official package to grade an output."""


@dataclass(frozen=True, slots=True)
class Grade:
    """The result of grading: ``why`` explains what is not resolved, ``tests`` is the official status of the tests.

    ``doubtful`` marks a patch without any result of its tests, or without an installation that it needs: the machine
    may have failed, not the patch; ``killed`` one whose tests received SIGKILL. ``version`` names the package that
    graded.
    """

    resolved: bool
    version: str
    why: str = ""
    doubtful: bool = False
    tests: Mapping[str, Any] = field(default_factory=dict[str, Any])
    log: str = ""
    killed: bool = False


class OfficialError(Exception):
    """The official package failed; the message is the end of its output."""


def official_report(program: Path, package: Path, case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the report on a case by a program that runs alone with the folder of an official package.

    Raises OfficialError.
    """
    done = subprocess.run(
        [sys.executable, "-I", str(program), str(package)],
        input=json.dumps(case),
        capture_output=True,
        text=True,
        check=False,
        timeout=OFFICIAL_SECONDS,
    )
    if done.returncode:
        raise OfficialError(done.stderr[-2000:])
    return json.loads(done.stdout)


def check_reference(gold: Grade) -> None:
    """Raise UnfitError unless the reference solution of an instance was resolved, SandboxError if it may be later."""
    if gold.killed:
        raise SandboxError(f"{gold.why}, when they tried the reference solution")
    if not gold.resolved:
        raise UnfitError(f"its own reference solution is not resolved here: {gold.why}\n{gold.log[-1500:]}")


async def score_patch(rollout: Rollout, grade: Callable[[str], Awaitable[Grade]], reference: str) -> Score:
    """Score 1 if the patch of the agent's changes to text files that git does not ignore is resolved.

    A patch whose tests give no results scores 0 only if the ``reference`` patch is resolved right afterwards.

    Raises DataError, SandboxError, OfficialError, WorkspaceError.
    """
    if rollout.files is None:
        raise ValueError("a rollout without files has no patch")
    await rollout.sandbox.interrupt()
    changes = [change for change in await asyncio.to_thread(rollout.files.changes) if not change.binary]
    if sum(side.size for change in changes for side in (change.old, change.new) if side) > LARGEST_CHANGES:
        return Score(0.0, "", {"why": "the agent changed too much text"})
    patch = await asyncio.to_thread(unified_diff, changes)
    if not patch:
        return Score(0.0, "", {"why": "the agent changed nothing"})
    graded = await grade(patch)
    if graded.doubtful and not (await grade(reference)).resolved:
        raise SandboxError(f"{graded.why}, and the reference solution is not resolved now: the machine failed")
    details = {"why": graded.why, "failed": graded.tests, "rule": graded.version, "log": graded.log[-2000:]}
    return Score(float(graded.resolved), patch, details)

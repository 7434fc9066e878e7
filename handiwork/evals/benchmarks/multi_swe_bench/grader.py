"""Grades a patch by the official rule, in a fresh container of the instance's official image."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handiwork.evals.benchmark import Instance
from handiwork.evals.benchmarks.multi_swe_bench.images import HOME
from handiwork.evals.scoring import packages, patches
from handiwork.evals.scoring.execution import ScriptOutput, new_sandbox, run_script, write_file
from handiwork.evals.scoring.patches import Grade, official_report
from handiwork.paths import cache_dir

PACKAGE = "multi-swe-bench==1.1.2"
_SHA256 = "09a5770096d6a035383c5240762ffa8c87b1e8df7d374110de8fb781b4e5a9f9"

SECONDS = 1800.0
"""The time that applying the patches, building and testing may take together."""

_FIELDS = (
    *("org", "repo", "number", "run_result", "test_patch_result"),
    *("p2p_tests", "f2p_tests", "s2p_tests", "n2p_tests"),
)


async def check_reference(instance: Instance) -> None:
    """Raise UnfitError unless an instance's own reference solution is resolved here, now or earlier with this image.

    Raises DataError, SandboxError, OfficialError.
    """
    row = instance.row
    rule = json.dumps({name: row[name] for name in (*_FIELDS, "fix_patch")}, sort_keys=True)
    key = hashlib.sha256(f"{row['image_id']} {PACKAGE} {instance.id} {rule}".encode()).hexdigest()[:20]
    mark = cache_dir() / "multi-swe-bench" / key
    if mark.exists():
        return
    patches.check_reference(await grade(row, row["fix_patch"]))
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()


async def grade(row: Mapping[str, Any], patch: str, seconds: float = SECONDS) -> Grade:
    """Run the image's own script, which applies the tests' patch and this one and runs the tests; grade its output.

    Raises DataError, SandboxError, and OfficialError if the official package cannot grade the output.
    """
    async with new_sandbox("docker", image=row["image"], writable_root=True) as (sandbox, _):
        await sandbox.start()
        await write_file(sandbox, f"{HOME}/fix.patch", patch.encode())
        tests = await run_script(sandbox, f"cd {HOME}; bash {HOME}/fix-run.sh\n", seconds)
    if how := tests.cut_short(seconds):
        why, killed = f"the tests {how}", tests.killed
        return Grade(resolved=False, version=PACKAGE, why=why, doubtful=True, log=tests.output, killed=killed)
    return await asyncio.to_thread(grade_log, row, tests)


def grade_log(row: Mapping[str, Any], tests: ScriptOutput) -> Grade:
    """Grade the output of an instance's script. Raises DataError, OfficialError."""
    program = Path(__file__).with_name("official.py")
    case = {"row": {name: row[name] for name in _FIELDS}, "log": tests.output}
    report = official_report(program, packages.fetched(PACKAGE, _SHA256), case)
    doubtful = not report["captured"]
    return Grade(report["resolved"], PACKAGE, report["why"], doubtful, report["failed"], tests.output)

"""SWE-bench: issues of Python repositories, each resolved if the tests of its real repair pass.

The rule is upstream's (https://github.com/SWE-bench/SWE-bench; parsers and grading are those of the package swebench
5.0.2): every test of FAIL_TO_PASS and PASS_TO_PASS passes after the agent's patch and the test patch were applied to
the base commit, within 30 minutes. A patch that does not apply is not resolved, nor is an empty one. The patch is the
difference of the agent's workspace from its beginning, without ignored and binary files; the agent's own use of git has
no effect.

It differs from upstream in the machine. Without official images an instance runs in Handiwork's sandbox, as an ordinary
user and without any network, on an environment of pinned packages that is built from the recipe in ``kit.json``. An
instance is measured only if its own reference solution is resolved in this environment; this is tried once for each
environment and kept in the cache. The workspace is a repository with one commit, and the repository is installed in its
folder .venv, which is no part of the patch.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pydantic import TypeAdapter

from handiwork.errors import SandboxError
from handiwork.evals.benchmark import Benchmark, DataError, Instance, Rollout, Score, UnfitError
from handiwork.evals.benchmarks.swebench import environments, grader, installations, recipes, repositories
from handiwork.evals.benchmarks.swebench.installations import Subject
from handiwork.evals.scoring import jsonlines
from handiwork.evals.scoring.execution import GRACE, command_in, write_file
from handiwork.evals.scoring.patches import check_reference, score_patch
from handiwork.events.action import AgentFinishAction
from handiwork.events.base import Action
from handiwork.sandbox import create as sandboxes
from handiwork.sandbox.base import Sandbox
from handiwork.sandbox.toolchains import SYSTEM

KIT = "kit.json"
FIELDS = ("instance_id", "repo", "base_commit", "version", "problem_statement")
HIDDEN = ("patch", "test_patch", "FAIL_TO_PASS", "PASS_TO_PASS")

SEARCH_SECONDS = 300.0
"""The time for listing the packages in a sandbox."""

_PATCH = "/tmp/repair.patch"
"""The path of the reference solution in the sandbox of the arm "oracle"."""

_NAMES = TypeAdapter(list[str])


class SWEBench(Benchmark):
    """Issues of twelve Python repositories; the share that is resolved."""

    name = "swebench"
    title = "SWE-bench"
    size = "lite 300, verified 500, full 2,294"
    source = "https://huggingface.co/datasets/princeton-nlp/SWE-bench_Lite"
    licence = "MIT; patches under their projects' licences"
    citation = "Jimenez et al. 2024, SWE-bench: Can Language Models Resolve Real-World GitHub Issues?, arXiv:2310.06770"
    metric = "success rate"
    scoring_seconds = 3 * grader.SECONDS  # the rehearsal, the patch, and the reference after a doubtful one
    splits = ("lite", "verified", "full")
    data_folder = "swe_bench_lite"
    upstream: ClassVar[Mapping[str, str]] = {
        "lite": "swe_bench_lite_test.jsonl",
        "verified": "swe_bench_verified_test.jsonl",
        "full": "swe_bench_test.jsonl",
    }
    """The file of each split: the rows of the data set as JSON lines."""

    def files(self, split: str) -> Mapping[str, str]:
        """Return the rows of the split, and the recipes; upstream has neither in this form."""
        return {self.upstream[split]: "", KIT: ""}

    def further_files(self, split: str) -> Sequence[str]:
        """Return the folder with the repositories."""
        return ("repos",)

    def load(self, data: Path, split: str) -> list[Instance]:
        """Return the issues in the file's order, those of a repository as one group. Raises DataError, OSError."""
        records = json.loads((data / KIT).read_text(encoding="utf-8"))
        kit = {record["instance_id"]: record for record in records}
        versions = {(one.get("repo"), one.get("version")): one for one in records if "install" in one}
        rows = jsonlines.read(data / self.upstream[split], (*FIELDS, *HIDDEN))
        return [_instance(row, kit.get(row["instance_id"]) or _of_version(row, versions), data) for row in rows]

    def skipped(self, instance: Instance) -> str:
        """Return why the instance's environment cannot be built on this machine."""
        obstacle = recipes.obstacle(instance.row["recipe"]) if instance.row["source"] else ""
        return obstacle or why_no_base(instance)

    def prepare(self, instance: Instance, workspace: Path) -> None:
        """Write the repository of the base commit, installed.

        Raises DataError, SkippedError, UnfitError, SandboxError.
        """
        subject = subject_of(instance)
        asyncio.run(installations.install(subject))
        installations.put(subject, workspace)

    def mounts(self, instance: Instance) -> Sequence[Path]:
        """Return the environment of pinned packages, and the libraries of its Python."""
        return environments.mounts(subject_of(instance).recipe)

    async def set_up(self, instance: Instance, sandbox: Sandbox) -> None:
        """Check the environment: it runs here, hides the repair, and the reference solution is resolved in it.

        Raises UnfitError, DataError, SandboxError, OfficialError.
        """
        if not sandboxes.is_isolated(sandbox.name):
            raise UnfitError("without a sandbox an agent could read the reference solutions: choose one with --sandbox")
        python = await command_in(sandbox, f"{recipes.VENV}/bin/python -c 'import site'", GRACE)
        if python.exit_code:
            raise UnfitError(f"the environment's Python does not run in this sandbox: {python.content.strip()}")
        copies = await command_in(sandbox, _find_copies(instance.row["repo"]), SEARCH_SECONDS)
        if copies.status == "timeout":
            raise SandboxError(f"the packages of the sandbox cannot be listed in {SEARCH_SECONDS:g} s")
        if copy := copies.content.strip():
            advice = "It is on the PATH of this machine: run with PATH=/usr/bin:/bin, or in a shell without that Python"
            if any(map(Path(copy).is_relative_to, SYSTEM)):
                advice = "It is one of the system's packages, which every sandbox shows: uninstall it"
            raise UnfitError(f"the sandbox shows another version of the repository, perhaps repaired: {copy}. {advice}")
        await self._rehearse(instance)

    async def _rehearse(self, instance: Instance) -> None:
        subject = subject_of(instance)
        tests = hashlib.sha256(json.dumps([instance.row[name] for name in HIDDEN]).encode()).hexdigest()[:12]
        installed = "-installed" if grader.needs_installing(instance.row["patch"]) else ""
        rule = f"{grader.PACKAGE}{installed}-{tests}"
        if installations.has_passed(subject, rule):
            return
        check_reference(await grader.grade(instance.row, subject, instance.row["patch"]))
        installations.mark_passed(subject, rule)

    def instruction(self, instance: Instance) -> str:
        """Return the issue with the instructions."""
        issue = instance.row["problem_statement"].strip()
        return (
            "The current directory is a Python repository, installed in the virtual environment .venv. Resolve this "
            f"issue by changing the repository's source files:\n\n<issue>\n{issue}\n</issue>\n\n"
            "Hidden tests check the behaviour that the issue asks for. Make your changes in the working tree, check "
            "them, and finish."
        )

    async def solve(self, instance: Instance, sandbox: Sandbox) -> Action:
        """Return the end with an empty answer, after applying the real repair."""
        await write_file(sandbox, _PATCH, instance.row["patch"].encode())
        applied = await command_in(sandbox, f"git apply {_PATCH} && rm {_PATCH}", GRACE)
        if applied.exit_code:
            raise UnfitError(f"the real repair does not apply: {applied.content.strip()}")
        return AgentFinishAction(outputs={"message": ""})

    async def score(self, rollout: Rollout) -> Score:
        """Score 1 if the agent's patch is resolved on a fresh checkout.

        A patch whose tests give no results scores 0 only if the reference solution is resolved right afterwards.

        Raises DataError, SandboxError, OfficialError, WorkspaceError.
        """
        row, subject = rollout.instance.row, subject_of(rollout.instance)
        return await score_patch(rollout, lambda patch: grader.grade(row, subject, patch), row["patch"])


def subject_of(instance: Instance) -> Subject:
    """Return the repository and the recipe of an instance that is not ``skipped``. Raises DataError."""
    return Subject(*base_of(instance), recipes.read(instance.row["recipe"]))


def base_of(instance: Instance) -> tuple[Path, str]:
    """Return the repository of an instance, and the tree of its base commit. Raises DataError if it lacks that."""
    source = Path(instance.row["source"])
    return source, repositories.tree_of(source, (f"refs/heads/{instance.id}", instance.row["base_commit"]))


def why_no_base(instance: Instance) -> str:
    """Return why the data folder has no base commit of an instance, "" if it has it."""
    if instance.row["source"] is None:
        return instance.row["recipe"].get("note") or f"the data folder has no repository {instance.row['repo']}"
    try:
        base_of(instance)
    except DataError as error:
        return str(error)
    return ""


def _of_version(row: Mapping[str, Any], versions: Mapping[Any, Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the recipe of another instance of the repository's version, with the row's tests; {} without one."""
    return recipes.with_tests(versions.get((row["repo"], row["version"]), {}), row["test_patch"])


def _instance(row: Mapping[str, Any], record: Mapping[str, Any], data: Path) -> Instance:
    tests = {name: _names(row[name]) for name in ("FAIL_TO_PASS", "PASS_TO_PASS")}
    source = repositories.source_of(data, row["repo"])
    more = {"recipe": record, "source": source and str(source)}
    return Instance(row["instance_id"], {**row, **tests, **more}, row["repo"])


def _names(value: str | list[str]) -> list[str]:
    """Return the names of tests, which upstream has as a list or as a list in JSON."""
    return _NAMES.validate_json(value) if isinstance(value, str) else value


def _find_copies(repository: str) -> str:
    """Return a command that prints a folder with the metadata of the repository's package outside the workspace."""
    name = repository.rpartition("/")[2].replace("-", "[-_]")
    installed = f"-iname '{name}-[0-9]*.dist-info' -o -iname '{name}-[0-9]*.egg-info'"
    return f'find / \\( -path /proc -o -path "$PWD" \\) -prune -o -type d \\( {installed} \\) -print -quit 2> /dev/null'

"""Multi-SWE-bench: issues of repositories in seven languages, each resolved if the tests of its real repair pass.

The rule is upstream's (https://github.com/multi-swe-bench/multi-swe-bench; log parsers and reports are those of the
package multi-swe-bench 1.1.2). The image's own script applies the tests' patch and the agent's, builds, and runs the
tests. A patch is resolved if the report is valid (tests were captured, none that passed with the tests' patch alone
fails, and at least one is repaired) and each test of p2p_tests, f2p_tests, s2p_tests and n2p_tests is again in its
class. A patch that does not apply together with the tests' patch is not resolved, nor is an empty one. The patch is the
difference of the agent's workspace from its beginning, without ignored and binary files; the agent's own use of git has
no effect.

It differs from upstream in this: containers have no network, and the tests end after 30 minutes (upstream has that
limit only if it does not call Docker itself). An instance is measured only if its own reference solution is resolved
so; this is tried once for each image and kept in the cache. The agent reads all resolved issues; upstream's agents read
the first one. The title and body of the pull request describe the repair, so neither shows them.

The workspace is the repository as the image has it, with its ignored files and a history of one commit. The sandbox is
a container of an image that is derived from the official one, without the repository, its history, the patches and the
scripts. Like upstream's, the rule trusts the output of tests that run in one container with the agent's code; there,
the official image has the repository's later history.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from handiwork.errors import SandboxError
from handiwork.evals.benchmark import Benchmark, DataError, Instance, Rollout, Score, UnfitError
from handiwork.evals.benchmarks.multi_swe_bench import grader, images
from handiwork.evals.scoring import jsonlines
from handiwork.evals.scoring.execution import GRACE, command_in, write_file
from handiwork.evals.scoring.patches import score_patch
from handiwork.events.action import AgentFinishAction
from handiwork.events.base import Action
from handiwork.sandbox.base import Sandbox

FIELDS = (
    *("instance_id", "org", "repo", "number", "resolved_issues", "fix_patch", "run_result", "test_patch_result"),
    *("p2p_tests", "f2p_tests", "s2p_tests", "n2p_tests"),
)

_PATCH = "/tmp/repair.patch"
"""The path of the reference solution in the sandbox of the arm "oracle"."""


class MultiSWEBench(Benchmark):
    """Issues of repositories in C, C++, Go, Java, JavaScript, Rust and TypeScript; the share that is resolved."""

    name = "multi-swe-bench"
    title = "Multi-SWE-bench"
    size = "1,632 in 7 languages"
    source = "https://huggingface.co/datasets/ByteDance-Seed/Multi-SWE-bench"
    licence = "CC0; patches under their projects' licences"
    citation = "Zan et al. 2025, Multi-SWE-bench: A Multilingual Benchmark for Issue Resolving, arXiv:2504.02605"
    metric = "success rate"
    scoring_seconds = 3 * grader.SECONDS  # the rehearsal, the patch, and the reference after a doubtful one
    splits = ("c", "cpp", "go", "java", "js", "rust", "ts")
    writable_root = True
    data_folder: ClassVar[str] = "multi_swe_bench"

    def files(self, split: str) -> Mapping[str, str]:
        """Return the rows of a language; upstream has a file for each repository."""
        return {f"{split}.jsonl": ""}

    def load(self, data: Path, split: str) -> list[Instance]:
        """Return the issues in the file's order, those of a repository as one group. Raises DataError, OSError."""
        rows = jsonlines.read(data / f"{split}.jsonl", FIELDS)
        local: Mapping[str, str] = {}
        obstacle = ""
        try:
            local = images.local_images()
        except (DataError, SandboxError) as error:
            obstacle = str(error)
        return [_instance(row, local, obstacle) for row in rows]

    def skipped(self, instance: Instance) -> str:
        """Return the command that fetches the instance's image, if it is missing."""
        return instance.row["obstacle"]

    def image(self, instance: Instance) -> str:
        """Return the instance's image without the answers."""
        return images.without_answers(instance.row["image_id"])

    def prepare(self, instance: Instance, workspace: Path) -> None:
        """Write the repository, and derive the image of the sandbox. Raises DataError, SandboxError."""
        row = instance.row
        images.derive(row["image_id"], row["repo"])
        images.copy_repository(row["image_id"], row["repo"], workspace)

    async def set_up(self, instance: Instance, sandbox: Sandbox) -> None:
        """Put the workspace in its place in the image, and check that the reference solution is resolved here.

        Raises UnfitError, DataError, SandboxError, OfficialError.
        """
        # Files built earlier contain this path.
        linked = await command_in(sandbox, f'ln -s "$PWD" {images.HOME}/{instance.row["repo"]}', GRACE)
        if linked.exit_code:
            raise SandboxError(f"the workspace cannot be put in its place: {linked.content.strip()}")
        await grader.check_reference(instance)

    def instruction(self, instance: Instance) -> str:
        """Return the issues with the instructions."""
        issues = "".join(
            f"<issue>\n{issue['title']}\n\n{(issue['body'] or '').strip()}\n</issue>\n\n"
            for issue in instance.row["resolved_issues"]
        )
        return (
            "The current directory is a repository, with the tools that build and test it. Resolve this by changing "
            f"the repository's source files:\n\n{issues}Hidden tests check the behaviour that is asked for. They are "
            "added to the repository as a patch, so leave its test files as they are. Make your changes in the working "
            "tree, check them, and finish."
        )

    async def solve(self, instance: Instance, sandbox: Sandbox) -> Action:
        """Return the end with an empty answer, after applying the real repair."""
        await write_file(sandbox, _PATCH, instance.row["fix_patch"].encode())
        applied = await command_in(sandbox, f"git apply --whitespace=nowarn {_PATCH} && rm {_PATCH}", GRACE)
        if applied.exit_code:
            raise UnfitError(f"the real repair does not apply: {applied.content.strip()}")
        return AgentFinishAction(outputs={"message": ""})

    async def score(self, rollout: Rollout) -> Score:
        """Score 1 if the agent's patch is resolved in a fresh container of the official image.

        Raises DataError, SandboxError, OfficialError, WorkspaceError.
        """
        row = rollout.instance.row
        return await score_patch(rollout, lambda patch: grader.grade(row, patch), row["fix_patch"])


def _instance(row: Mapping[str, Any], local: Mapping[str, str], obstacle: str) -> Instance:
    image = f"mswebench/{row['org']}_m_{row['repo']}".lower() + f":pr-{row['number']}"
    image_id = local.get(image, "")
    if not (image_id or obstacle):
        obstacle = f"its image is not here: `docker pull {image}`"
    more = {"image": image, "image_id": image_id, "obstacle": obstacle}
    return Instance(row["instance_id"], {**row, **more}, f"{row['org']}/{row['repo']}")

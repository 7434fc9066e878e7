"""Localisation: the files that an issue of SWE-bench Lite is about, named without repairing it.

An instance is a row of SWE-bench Lite; the question is the issue, and the agent answers with up to five paths of the
repository. It scores 1 if the file that the real repair changes is among the first five; in Lite that is one file. The
first instances are of all repositories in turn, drawn by a seed, so that `--limit 20` is a fair choice of twenty.
Nothing is installed: the workspace is the repository of the base commit.

NoSearchAgent answers the same questions without the code index.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path

from handiwork.agents.codeact import CodeActAgent
from handiwork.agents.codeact.toolbox import TOOLS
from handiwork.evals.benchmark import Benchmark, Instance, Rollout, Score, UnfitError
from handiwork.evals.benchmarks.swebench import repositories
from handiwork.evals.benchmarks.swebench.benchmark import SWEBench, base_of, why_no_base
from handiwork.evals.scoring.answers import finish_with, tagged
from handiwork.events.base import Action
from handiwork.events.record import Limits
from handiwork.sandbox import create as sandboxes
from handiwork.sandbox.base import Sandbox

PATHS, SEED = 5, 19
"""The number of paths of an answer that count, and the seed of the instances' order."""

_CHANGED = re.compile(r"^--- a/(.+)$", re.MULTILINE)
_PATH = re.compile(r"[\w./+-]*\w\.pyx?\b")
"""A source file of Python: a name like `table.join` in an answer is none."""


class NoSearchAgent(CodeActAgent):
    """CodeActAgent without the tool `search_code`."""

    description = "CodeActAgent without its tool search_code, to measure the benefit of the code index."
    toolbox = tuple(tool for tool in TOOLS if tool.name != "search_code")


class Localisation(Benchmark):
    """Issues of Python repositories; the share whose file is among the five that the agent names."""

    name = "localisation"
    title = "SWE-bench Lite, localisation"
    size = SWEBench.size.partition(",")[0]
    source = SWEBench.source
    licence = SWEBench.licence
    citation = SWEBench.citation
    splits = ("lite",)
    data_folder = SWEBench.data_folder
    limits = Limits(iterations=30)

    def files(self, split: str) -> Mapping[str, str]:
        """Return the rows, and the recipes, which name the branches of the repositories."""
        return SWEBench().files(split)

    def further_files(self, split: str) -> Sequence[str]:
        """Return the folder with the repositories."""
        return SWEBench().further_files(split)

    def load(self, data: Path, split: str) -> list[Instance]:
        """Return the issues, one of each repository in turn, those of a repository as one group.

        Raises DataError, OSError.
        """
        by_repository: dict[str, list[Instance]] = {}
        for instance in SWEBench().load(data, split):
            by_repository.setdefault(instance.group, []).append(instance)
        for name, instances in by_repository.items():
            random.Random(f"{SEED} {name}").shuffle(instances)
        turns = zip_longest(*(by_repository[name] for name in sorted(by_repository)))
        return [instance for instance in chain.from_iterable(turns) if instance is not None]

    def skipped(self, instance: Instance) -> str:
        """Return why the repository or its base commit is missing, "" if both are in the data folder."""
        return why_no_base(instance)

    def prepare(self, instance: Instance, workspace: Path) -> None:
        """Write the repository of the base commit. Raises DataError."""
        repositories.check_out(*base_of(instance), workspace)

    async def set_up(self, instance: Instance, sandbox: Sandbox) -> None:
        """Check that the sandbox hides the data. Raises UnfitError."""
        if not sandboxes.is_isolated(sandbox.name):
            raise UnfitError("without a sandbox an agent could read the real repairs: choose one with --sandbox")

    def instruction(self, instance: Instance) -> str:
        """Return the issue, and the form of the answer."""
        issue = instance.row["problem_statement"].strip()
        return (
            "The current directory is a Python repository. Find the source file that has to be changed to resolve this "
            f"issue; change nothing:\n\n<issue>\n{issue}\n</issue>\n\n"
            f"Finish with the paths of the {PATHS} likeliest files, the likeliest first, one a line between <answer> "
            "and </answer>, relative to the current directory."
        )

    async def solve(self, instance: Instance, sandbox: Sandbox) -> Action:
        """Return the end with the files of the real repair."""
        return finish_with("\n".join(changed_files(instance.row["patch"])))

    async def score(self, rollout: Rollout) -> Score:
        """Score 1 if the first five paths have every file that the real repair changes, else 0."""
        gold = changed_files(rollout.instance.row["patch"])
        paths = paths_in(tagged(rollout.final_message), rollout.state.workspace)[:PATHS]
        places = [paths.index(file) + 1 if file in paths else None for file in gold]
        return Score(float(None not in places), "\n".join(paths), {"truth": "\n".join(gold), "places": places})


def changed_files(patch: str) -> list[str]:
    """Return the paths of the files that a patch changes or removes."""
    return _CHANGED.findall(patch)


def paths_in(answer: str, workspace: str) -> list[str]:
    """Return the distinct paths of source files in an answer, relative to the workspace, in their order."""
    paths = (path.removeprefix(f"{workspace.rstrip('/')}/").removeprefix("./") for path in _PATH.findall(answer))
    return list(dict.fromkeys(filter(None, paths)))

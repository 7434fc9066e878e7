"""AgentBench's OS interaction: questions about a Linux machine, and changes to make to it, in a shell.

The rule is upstream's (https://github.com/THUDM/AgentBench, src/server/tasks/os_interaction/task.py): an answer is
compared with the record's; or scripts check the machine after the agent has ended, one after the other, each of which
must exit with 0. An agent has 8 rounds, and its work counts only if it then reports that it is done.

The tasks assume a machine on which the agent is root. With an image the sandbox is such a machine, a container with a
writable root; without one it cannot be that machine for all of them. An instance runs only if its set-up, and then its
own example on a second such machine, succeed; otherwise it has no score. A few tasks ask for a figure that moves by
itself, such as the memory in use: on these the arm "oracle" scores 1 in some runs only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from handiwork.evals.benchmark import Benchmark, DataError, Instance, Rollout, Score, UnfitError
from handiwork.evals.benchmarks.agentbench import scripts
from handiwork.evals.scoring.answers import finish_with, tagged
from handiwork.events.base import Action
from handiwork.events.record import Limits
from handiwork.sandbox import create as sandboxes
from handiwork.sandbox.base import Sandbox

UPSTREAM = "https://raw.githubusercontent.com/THUDM/AgentBench/578c5e9f706fc2dd96188ca6c8cf9095ca0c6528"
ROUNDS = 8

FILES = {
    "std": [
        *("1/stock", "2/environment", "3/ac", "5/new", "6/new", "7/bootstrap"),
        *(f"4/{name}" for name in ("N11", "N225", "N37", "N4", "N41", "Q09", "Q19", "Q30", "Q47", "Q49")),
    ],
    "dev": ["dev"],
}
"""The upstream files of each split, without folder and suffix."""

ENDED = frozenset({"finished", "awaiting_user_input"})
"""States in which an agent has reported its answer, or that it is done."""


class AgentBenchOS(Benchmark):
    """Tasks in the shell of a Linux machine; success rate."""

    name = "agentbench_os"
    title = "AgentBench OS"
    size = "144 std, 26 dev"
    source = "https://github.com/THUDM/AgentBench"
    licence = "Apache-2.0"
    citation = "Liu et al. 2023, AgentBench: Evaluating LLMs as Agents, arXiv:2308.03688"
    metric = "success rate"
    splits = ("std", "dev")
    limits = Limits(iterations=ROUNDS)
    writable_root = True
    upstream: ClassVar[str] = f"{UPSTREAM}/data/os_interaction"
    """The address of the data."""

    def files(self, split: str) -> Mapping[str, str]:
        """Return the files with the tasks."""
        paths = [f"data/{name}.json" for name in FILES[split]]
        return {path: f"{self.upstream}/{path}" for path in paths}

    def further_files(self, split: str) -> Sequence[str]:
        """Return the scripts that tasks refer to."""
        return ("scripts",)

    def load(self, data: Path, split: str) -> list[Instance]:
        """Return the tasks, named as upstream does, by the folder they are in. Raises DataError, OSError."""
        paths = [path for path in sorted(self.files(split)) if (data / path).is_file()]
        if not paths:
            raise DataError(f"{data} has none of {', '.join(self.files(split))}: is it AgentBench's os_interaction?")
        return [instance for path in paths for instance in _instances(data, path, split)]

    def linked_files(self, data: Path, split: str) -> Mapping[str, str]:
        """Return the scripts that tasks refer to and the folder lacks, except known comparisons. Raises DataError."""
        paths = [path for instance in self.load(data, split) for path in _missing_files(instance)]
        return {path: f"{self.upstream}/{path}" for path in paths}

    def skipped(self, instance: Instance) -> str:
        """Return which of the task's scripts are missing in the data folder."""
        missing = _missing_files(instance)
        return f"the data folder has no {', '.join(missing)}" if missing else ""

    def has_rehearsal(self, instance: Instance) -> bool:
        """Return whether the task has an example to try."""
        return _task(instance).example is not None

    async def rehearse(self, instance: Instance, sandbox: Sandbox) -> None:
        """Set the machine up, and check that the task's example passes. Raises UnfitError, SandboxError."""
        await self.set_up(instance, sandbox)
        await scripts.try_out(sandbox, _task(instance))

    async def set_up(self, instance: Instance, sandbox: Sandbox) -> None:
        """Set the machine up. Raises UnfitError, SandboxError."""
        if not sandboxes.is_isolated(sandbox.name):
            raise UnfitError("AgentBench's tasks change the machine they are made on: never without a sandbox.")
        await scripts.make(sandbox, _task(instance))

    def instruction(self, instance: Instance) -> str:
        """Return the task and the form of the answer."""
        return (
            f"{instance.row['description'].strip()}\n\n"
            "Work in the shell of this Linux machine, from the current directory. If the task is to change something, "
            "change it, and finish. If it asks for something, find it out with commands; where it asks for a script "
            "or a command, what that prints is the answer. Then finish with the answer alone, in this form:\n"
            "<answer>ANSWER</answer>\n"
            "For example, the answer to how many files there are is: <answer>220</answer>"
        )

    async def solve(self, instance: Instance, sandbox: Sandbox) -> Action:
        """Return the end with the answer that matches, or with the example's output after running it."""
        task = _task(instance)
        if task.example is None:
            answer = (task.match or {}).get("answer")
            if answer is None:
                raise UnfitError("its answer is a pattern: it has no reference solution")
            return finish_with(answer)
        _, output = await scripts.run(sandbox, task.example)
        return finish_with(output)

    async def score(self, rollout: Rollout) -> Score:
        """Score 1 if the answer, or the agent's change to the machine, is right. Raises SandboxError."""
        answer = tagged(rollout.final_message)
        if rollout.state.agent_state not in ENDED:
            return Score(0.0, answer, {"why": "the agent did not say that it was done"})
        task = _task(rollout.instance)
        if task.match is not None:
            truth = task.match.get("answer", task.match.get("regex"))
            return Score(float(scripts.matches(task.match, answer)), answer, {"truth": truth})
        await rollout.sandbox.interrupt()
        passed, output = await scripts.run_checks(rollout.sandbox, task, answer or scripts.NO_ANSWER)
        return Score(float(passed), answer, {"last output": output})


def _task(instance: Instance) -> scripts.AgentBenchTask:
    return scripts.task_of(instance.row, instance.row["scripts"])


def _missing_files(instance: Instance) -> list[str]:
    """Return the paths of the task's scripts that are missing in the data folder."""
    return [f"scripts/{instance.row['folder']}/{name}" for name in _task(instance).missing_files]


def _instances(data: Path, path: str, split: str) -> Iterator[Instance]:
    """Yield the tasks of a file, with the available scripts of its folder."""
    records = scripts.as_list(json.loads((data / path).read_text(encoding="utf-8")))
    folder = "dev" if split == "dev" else Path(path).parent.name
    prefix = f"{split}-{'001' if split == 'dev' else folder.zfill(3)}-{Path(path).stem}"
    scripts_folder = data / "scripts" / folder
    files = {
        str(file.relative_to(scripts_folder)): file.read_text("utf-8")
        for file in scripts_folder.rglob("*")
        if _is_script(file)
    }
    for number, record in enumerate(records):
        instance = Instance(f"{prefix}-{number:05}", {**record, "folder": folder, "scripts": files}, folder)
        try:
            _task(instance)
        except (DataError, KeyError) as error:
            raise DataError(f"{data / path}, task {number} cannot be read: {error}") from error
        yield instance


def _is_script(file: Path) -> bool:
    return file.suffix in {".py", ".sh"}

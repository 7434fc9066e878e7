"""ML-Bench: a script or Python code that uses a repository of machine learning with given arguments.

The rule is upstream's (https://github.com/gersteinlab/ML-Bench, utils/exec.py). An answer is right if it has the value
of every argument (upper and lower case are the same), if it has the form of the task's type (a script has ``.sh`` or
``.py`` before a space, Python code has neither), and if it exits with 0 or still runs after 10 s in the task's folder
of the repository; after 4 s for vid2vid, and 7 s for code of pytorch-image-models. The rule is weak: a program that
does nothing passes if its comments name the arguments.

It differs from upstream in this. The agent has the repository, as in upstream's setting for agents, and writes its
answer into a file. The answer runs in the agent's own sandbox, with the agent's changes to the repository, because only
that has the image of the run. Upstream's image has a conda environment for each repository; if ``activate`` is on the
PATH it is used, otherwise the Python of the sandbox. An instance is measured only if its own reference answer runs in a
second sandbox of the same kind; else it is unfit.

The reference answer is the field ``output``. The field ``oracle`` is none: it is the part of the README that upstream
shows to models in one setting. 18 of the 200 reference answers at hand lack a value of their own arguments, mostly
because the task words it in another way ("./cased_L-12_H-768_A-12" in "./model/cased..." or "(50,49,512)" with spaces),
so the arm "oracle" scores 0 on these. The split ``quarter`` needs its own file of rows: the rows of ``full`` do not
tell which are in it.
"""

from __future__ import annotations

import ast
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from handiwork.evals.benchmark import Benchmark, DataError, Instance, Rollout, Score, UnfitError
from handiwork.evals.scoring import jsonlines
from handiwork.evals.scoring.answers import read_answer
from handiwork.evals.scoring.execution import ScriptOutput, run_script, write_file
from handiwork.events.action import AgentFinishAction
from handiwork.events.base import Action
from handiwork.sandbox.base import Sandbox

FIELDS = ("github_id", "github", "path", "arguments", "instruction", "type", "id", "prefix_code", "output")
ANSWER = "answer.txt"
REPOS = "repos"
SCRIPT = "Bash Script"

_CONDA = {
    "dgl": "dgl_DS",
    "bert": "bert_DS",
    "lavis": "lavis_DS",
    "if": "if_DS",
    "vid2vid": "V2V_DS",
    "esm": "esm_DS",
    "open_clip": "OP_DS",
    "Time-Series-Library": "TSL_DS",
    "External-Attention-pytorch": "EAP_DS",
    "PyTorch-GAN": "PG_DS",
    "pytorch-image-models": "PIM_DS",
    "learning3d": "L3_DS",
    "muzic": "MZ2_DS",
    "Grounded-Segment-Anything": "GSA2_DS",
}
"""The conda environments of upstream's image, by the names of the repositories."""

_ARGUMENTS = TypeAdapter(dict[str, Any])
_CODE = "temp.py"


class MLBench(Benchmark):
    """Requests to run repositories of machine learning; the share of answers that run and name the arguments."""

    name = "ml-bench"
    title = "ML-Bench"
    size = "full 260, quarter 68"
    source = "https://huggingface.co/datasets/super-dainiu/ml-bench"
    licence = "MIT"
    citation = "Tang et al. 2023, ML-Bench: Evaluating Large Language Models and Agents for ML Tasks, arXiv:2311.09835"
    metric = "pass@1"
    splits = ("full", "quarter")
    data_folder = "ml_bench"

    def files(self, split: str) -> Mapping[str, str]:
        """Return the rows of the split; upstream has them in another format."""
        return {f"ml_bench_{split}.jsonl": ""}

    def further_files(self, split: str) -> Sequence[str]:
        """Return the folder with the repositories."""
        return (REPOS,)

    def load(self, data: Path, split: str) -> list[Instance]:
        """Return the tasks in the file's order, those of a repository as one group. Raises DataError, OSError."""
        rows = jsonlines.read(data / f"ml_bench_{split}.jsonl", FIELDS)
        return [_instance(row, data) for row in rows]

    def skipped(self, instance: Instance) -> str:
        """Return the command that gets the instance's repository, if it is missing."""
        folder = Path(instance.row["repository"])
        if folder.is_dir():
            return ""
        return f"its repository is not here: `git clone {instance.row['github']} {folder}`"

    def prepare(self, instance: Instance, workspace: Path) -> None:
        """Copy the repository without its history."""
        without_git = shutil.ignore_patterns(".git")
        shutil.copytree(instance.row["repository"], workspace, symlinks=True, ignore=without_git, dirs_exist_ok=True)

    def has_rehearsal(self, instance: Instance) -> bool:
        """Return that every instance has one."""
        return True

    async def rehearse(self, instance: Instance, sandbox: Sandbox) -> None:
        """Check that the reference answer runs in the sandbox. Raises UnfitError, SandboxError."""
        done = await execute(instance, instance.row["output"], sandbox)
        if not has_run(done):
            output = done.output[-1500:].strip()
            raise UnfitError(f"the reference answer does not run here, but exits with {done.exit_code}: {output}")

    def instruction(self, instance: Instance) -> str:
        """Return the task, and the file to write the answer to."""
        row = instance.row
        before = (
            f"Run before it, as the README says:\n```bash\n{row['prefix_code']}\n```\n\n" if row["prefix_code"] else ""
        )
        form = "a bash script that runs a program of the repository" if row["type"] == SCRIPT else "Python code"
        return (
            f"{row['instruction'].strip()}\n\nThe current directory is a copy of the repository {row['github']}. "
            f"Write {form} that does it into {ANSWER} in the current directory, and nothing else into that file. It "
            f"will run in the folder {row['path']}. Give every argument that the task names, with the value that it "
            f"names.\n\n{before}"
        ).rstrip()

    async def solve(self, instance: Instance, sandbox: Sandbox) -> Action:
        """Return the end with an empty answer, after writing the reference answer."""
        await write_file(sandbox, ANSWER, instance.row["output"].encode())
        return AgentFinishAction(outputs={"message": ""})

    async def score(self, rollout: Rollout) -> Score:
        """Score 1 if the answer has the arguments and the form, and runs. Raises SandboxError."""
        answer = await read_answer(rollout.sandbox, ANSWER)
        if not answer.strip():
            return Score(0.0, details={"why": f"there is no {ANSWER}"})
        if why := fault(rollout.instance, answer):
            return Score(0.0, answer, {"why": why})
        await rollout.sandbox.interrupt()
        try:
            done = await execute(rollout.instance, answer, rollout.sandbox)
        except OSError as error:  # the agent has changed the folder
            return Score(0.0, answer, {"why": f"it cannot run: {error}"})
        why = "" if has_run(done) else f"it exits with {done.exit_code}"
        return Score(float(not why), answer, {"why": why, "output": done.output[-2000:]})


def fault(instance: Instance, answer: str) -> str:
    """Return the argument that an answer lacks, or the fault of its form, "" without one."""
    for name, value in instance.row["values"].items():
        if str(value).lower() not in answer.lower():
            return f"it lacks {value!r}, the value of {name}"
    if is_script(answer) != (instance.row["type"] == SCRIPT):
        return "it is a script, not Python code" if is_script(answer) else "it is no script that runs a .py or .sh file"
    return ""


def is_script(answer: str) -> bool:
    """Return whether upstream takes an answer for a script."""
    return ".sh " in answer or ".py " in answer


def has_run(done: ScriptOutput) -> bool:
    """Return whether an answer exited with 0, or still ran at its time limit."""
    return done.exit_code == 0 or done.timed_out


async def execute(instance: Instance, answer: str, sandbox: Sandbox) -> ScriptOutput:
    """Run an answer in the task's folder of the sandbox's workspace until its time limit.

    Raises SandboxError, OSError if the folder takes no file.
    """
    # The shell is the agent's, and may be in any folder.
    name, folder = instance.group, f"{sandbox.workspace}/{instance.row['path']}"
    script = is_script(answer)
    seconds = 4 if name == "vid2vid" else 7 if name == "pytorch-image-models" and not script else 10
    if not script:
        await write_file(sandbox, f"{folder}/{_CODE}", answer.encode())
    environment = (
        f"if command -v activate > /dev/null; then source activate {_CONDA.get(name, 'base')}; fi\n"
        'command -v python > /dev/null || python() { python3 "$@"; }\n'
    )
    command = answer if script else f"python {_CODE}"
    return await run_script(sandbox, f"cd {shlex.quote(folder)} || exit 1\n{environment}{command}\n", seconds)


def _instance(row: Mapping[str, Any], data: Path) -> Instance:
    name = row["github"].rstrip("/").rpartition("/")[2]
    try:
        values = _ARGUMENTS.validate_python(ast.literal_eval(row["arguments"]))
    except (SyntaxError, ValueError) as error:
        raise DataError(f"the arguments of {name}, {row['id']}, are no dictionary: get the file again") from error
    more = {"values": values, "repository": str((data / REPOS / name).absolute())}
    return Instance(f"{row['github_id']}-{row['id']}", {**row, **more}, name)

"""The benchmark ``everyday``: small tasks of many kinds, as a user gives them, each with its own verifier.

A task is a TOML file, named KIND-NAME.toml. Its name is the instance's id; a coin, the parity of the first byte of the
name's SHA-256, puts it into the split "dev" (even) or "test" (odd). The tasks for agents of the hub that have one trade
are splits of their own: those in specialists/CommitWriterAgent are the split "CommitWriterAgent", and so on.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from weakref import WeakKeyDictionary

from pydantic import Field, JsonValue, ValidationError

from handiwork.agents.state import State
from handiwork.evals.benchmark import Benchmark, DataError, Instance, Rollout, Score, UnfitError
from handiwork.evals.scoring.execution import new_sandbox, pack, run_limited, unpack, write_file
from handiwork.evals.scoring.programs import Tested, new_nonce
from handiwork.events.action import AgentFinishAction, AgentRejectAction
from handiwork.events.base import Action, Model
from handiwork.sandbox.base import Sandbox
from handiwork.sandbox.create import is_isolated

FOLDER = Path(__file__).parent
TASKS = "tasks"

COIN = ("dev", "test")
SPECIALISTS = (
    *("BrowsingAgent", "CodeNavAgent", "CoderAgent", "CommitWriterAgent", "ManagerAgent", "MathAgent"),
    *("PostgresAgent", "RepoStudyAgent", "StudyRepoForTaskAgent", "TypoFixerAgent", "VerifierAgent"),
)
"""The agents whose tasks are splits."""

SECONDS = 60.0
"""Seconds for the set-up, the verifier, and the check."""

LONGEST_ANSWER = 100_000
"""Bytes of an answer that a verifier gets: a variable of the environment cannot be much longer."""

ORIGINAL, VERIFIER, CASE = "/tmp/original", "/tmp/verifier.py", "/tmp/case.json"
"""Paths in the scoring sandbox."""


class SetUp(Model):
    """A task's ``script`` that completes the workspace, in bash."""

    script: str


class Submission(Model):
    """A way to end a task: a ``script`` run in the workspace, in bash, the last message, and whether to give up.

    ``outputs`` are the agent's besides the message.
    """

    script: str = ""
    answer: str = ""
    outputs: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    outcome: Literal["finished", "rejected"] = "finished"


class Verify(Model):
    """A task's verifier in Python, and patterns of the paths that must keep their content."""

    script: str
    unchanged: tuple[str, ...] = ()


class EverydayTask(Model):
    """The content of a task's file.

    ``follow_ups`` are the user's later messages. ``check`` is a command by which the user sees whether the work is
    done. ``needs`` are programs that a usual machine may lack. ``solution`` scores 1, ``wrong`` 0.
    """

    kind: str
    task: str
    follow_ups: tuple[str, ...] = ()
    check: str = ""
    needs: tuple[str, ...] = ()
    files: dict[str, str] = Field(default_factory=dict)
    set_up: SetUp | None = None
    solution: Submission
    wrong: Submission
    verify: Verify


class Everyday(Benchmark):
    """A developer's everyday tasks; the rule is the verifier of each task.

    The agent gets the task's text and the workspace, and nothing else. The verifier runs on a copy of the workspace as
    the agent left it, at the same path in a new sandbox, with the last message, the outputs and a copy of the workspace
    as it was at the beginning. Its verdict counts for every end of the session: an agent may have done its work before
    it reached a limit.
    """

    name = "everyday"
    title = "Everyday tasks"
    size = (
        "nine of each of 17 kinds, about half of them in each of dev and test; three for each of 11 agents of the hub"
    )
    source = "the package itself"
    licence = "MIT"
    citation = "none: written for Handiwork"
    metric = "success rate"
    splits = (*COIN, *SPECIALISTS)
    turns = 5
    own_data = FOLDER

    def __init__(self) -> None:
        self._originals: WeakKeyDictionary[Sandbox, bytes] = WeakKeyDictionary()
        """The workspace of each sandbox as it was at the beginning, as an archive."""

    def files(self, split: str) -> Mapping[str, str]:
        """Return the folder with the tasks, which comes with the package."""
        return {_folder(split): ""}

    def load(self, data: Path, split: str) -> list[Instance]:
        """Return the tasks of a split, by name. Raises DataError, OSError."""
        files = sorted((data / _folder(split)).glob("*.toml"))
        files = [path for path in files if split in SPECIALISTS or split_of(path.stem) == split]
        return [_instance(path, self.turns) for path in files]

    def skipped(self, instance: Instance) -> str:
        """Return the programs for the task that this machine lacks."""
        missing = [program for program in _task(instance).needs if shutil.which(program) is None]
        return f"{' and '.join(missing)} not installed" if missing else ""

    def prepare(self, instance: Instance, workspace: Path) -> None:
        """Write the task's files."""
        for name, content in _task(instance).files.items():
            path = workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")

    async def set_up(self, instance: Instance, sandbox: Sandbox) -> None:
        """Run the task's own set-up, and keep a copy of the workspace. Raises UnfitError, SandboxError."""
        shown = await run_limited(sandbox, f"test -e {shlex.quote(str(FOLDER / TASKS))}", SECONDS)
        if shown.exit_code == 0 and is_isolated(sandbox.name):
            raise UnfitError(
                f"the sandbox shows the solutions in {FOLDER}: install Handiwork into a virtual environment"
            )
        if set_up := _task(instance).set_up:
            done = await run_limited(sandbox, set_up.script, SECONDS)
            if done.exit_code:
                raise UnfitError(f"the set-up of {instance.id} failed: {done.content.strip()}")
        original = await pack(sandbox)
        if original is None:
            raise UnfitError(f"the workspace of {instance.id} is too large to be copied")
        self._originals[sandbox] = original

    def instruction(self, instance: Instance) -> str:
        """Return the task's text."""
        return _task(instance).task

    async def reply(self, rollout: Rollout, turn: int) -> str | None:
        """Return the user's next message; None after the last."""
        messages = _task(rollout.instance).follow_ups
        return messages[turn - 1] if turn <= len(messages) else None

    async def solve(self, instance: Instance, sandbox: Sandbox) -> Action:
        """Return the end with the solution's outcome, after running its script."""
        solution = _task(instance).solution
        await run_limited(sandbox, solution.script, SECONDS)
        if solution.outcome == "rejected":
            return AgentRejectAction(outputs={"reason": solution.answer})
        return AgentFinishAction(outputs={"message": solution.answer, **solution.outputs})

    async def score(self, rollout: Rollout) -> Score:
        """Score 1 if the verifier accepts the workspace and the last message; the details have the visible check."""
        task, answer = _task(rollout.instance), rollout.final_message
        await rollout.sandbox.interrupt()
        work = await pack(rollout.sandbox)
        if work is None:
            return Score(0.0, answer, {"kind": task.kind, "output": "the workspace is too large to be copied"})
        async with new_sandbox("bubblewrap", Path(rollout.sandbox.workspace)) as (sandbox, _):
            await sandbox.start()
            await unpack(sandbox, self._originals[rollout.sandbox], ORIGINAL)
            await unpack(sandbox, work, sandbox.workspace)
            tested = await _verify(sandbox, task.verify, answer, rollout.state)
            details: dict[str, object] = {"kind": task.kind, "output": tested.output}
            if task.check:
                await unpack(sandbox, work, sandbox.workspace)  # the verifier may have changed files
                details["check"] = (await run_limited(sandbox, task.check, SECONDS)).exit_code == 0
        return Score(float(tested.passed), answer, details)


def split_of(name: str) -> str:
    """Return the split of the task with that name."""
    return COIN[hashlib.sha256(name.encode()).digest()[0] % 2]


def _folder(split: str) -> str:
    return f"specialists/{split}" if split in SPECIALISTS else TASKS


def _instance(file: Path, turns: int) -> Instance:
    try:
        row = tomllib.loads(file.read_text(encoding="utf-8"))
        task = EverydayTask.model_validate(row)
    except (ValidationError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{file} is no task: {error}") from error
    if len(task.follow_ups) > turns:
        raise DataError(f"{file} has {len(task.follow_ups)} follow-up messages, more than {turns}")
    return Instance(file.stem, row, task.kind)


def _task(instance: Instance) -> EverydayTask:
    return EverydayTask.model_validate(instance.row)


async def _verify(sandbox: Sandbox, verify: Verify, answer: str, state: State) -> Tested:
    """Run a verifier in a scoring sandbox. Raises SandboxError."""
    # Neither a NUL nor half of a surrogate pair can be in a variable of the environment.
    text = answer.replace("\0", "").encode(errors="replace")[:LONGEST_ANSWER].decode(errors="ignore")
    outputs, nonce = json.dumps(state.outputs), new_nonce()
    environment: dict[str, str] = {
        "ANSWER": text,
        "OUTPUTS": outputs if len(outputs) <= LONGEST_ANSWER else "{}",
        "OUTCOME": "rejected" if state.agent_state == "rejected" else "finished",
        "ORIGINAL": ORIGINAL,
    }
    case: dict[str, object] = {
        "script": verify.script,
        "unchanged": verify.unchanged,
        "environment": environment,
        "nonce": nonce,
    }
    await write_file(sandbox, VERIFIER, (FOLDER / "verifier.py").read_bytes())
    await write_file(sandbox, CASE, json.dumps(case).encode())
    # By -I the verifier itself imports nothing from the workspace; its script does, after the case has been read.
    command = f'exec < {CASE}; rm {CASE}; exec python3 -I -c "$(cat {VERIFIER})"'
    done = await run_limited(sandbox, command, SECONDS)
    lines = [line.strip() for line in done.content.splitlines()]
    return Tested(done.exit_code == 0 and nonce in lines, done.content.replace(nonce, "").strip())

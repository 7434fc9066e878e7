"""A benchmark for tests of runs: sums, some of which are prepared to go wrong.

Its data are sums.jsonl: lines of {"id", "a", "b"}. What an id begins with says what goes wrong with it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from handiwork.evals.benchmark import Benchmark, Instance, Rollout, Score, SkippedError, UnfitError
from handiwork.events.action import AgentFinishAction
from handiwork.events.base import Action
from handiwork.sandbox.base import Sandbox


class Adding(Benchmark):
    name = "adding"
    title = "Sums"
    size = "as many as there are"
    source = "this file"
    licence = "MIT"
    citation = ""
    turns = 2

    def files(self, split: str) -> Mapping[str, str]:
        return {"sums.jsonl": ""}

    def load(self, data: Path, split: str) -> list[Instance]:
        rows = [json.loads(line) for line in (data / "sums.jsonl").read_text().splitlines()]
        return [Instance(row["id"], row, group="odd" if (row["a"] + row["b"]) % 2 else "even") for row in rows]

    def skipped(self, instance: Instance) -> str:
        return "it has no sum" if instance.id.startswith("skipped") else ""

    def prepare(self, instance: Instance, workspace: Path) -> None:
        if instance.id.startswith("unbuilt"):
            raise SkippedError("its environment cannot be built")
        (workspace / "sum.txt").write_text(f"{instance.row['a']} + {instance.row['b']}\n")

    async def set_up(self, instance: Instance, sandbox: Sandbox) -> None:
        if instance.id.startswith("dies"):
            await sandbox.close()

    def instruction(self, instance: Instance) -> str:
        return "Add what is in sum.txt, and finish with the sum."

    async def task(self, instance: Instance, sandbox: Sandbox, agent: str) -> str:
        return f"{self.instruction(instance)} You are {agent}, and this is trial {instance.trial}."

    async def over(self, rollout: Rollout) -> bool:
        if rollout.instance.id.startswith("unknowable"):
            raise OSError("nobody knows how it stands")
        return rollout.instance.id.startswith("done at once")

    async def reply(self, rollout: Rollout, turn: int) -> str | None:
        return "Try again." if rollout.instance.id.startswith("again") and turn < 2 else None

    async def solve(self, instance: Instance, sandbox: Sandbox) -> Action:
        sum_ = instance.row["a"] + instance.row["b"]
        wrong = instance.id.startswith("flaky") and instance.trial % 2 == 0
        return AgentFinishAction(outputs={"message": str(sum_ + wrong)})

    async def score(self, rollout: Rollout) -> Score:
        if rollout.instance.id.startswith("ungradable"):
            raise ZeroDivisionError("the scorer is broken")
        if rollout.instance.id.startswith("unfit"):
            raise UnfitError("sums cannot be checked here")
        right = str(rollout.instance.row["a"] + rollout.instance.row["b"])
        return Score(float(rollout.final_message == right), rollout.final_message, {"truth": right})

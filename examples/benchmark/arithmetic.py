"""A benchmark of one's own: `handiwork eval run examples/benchmark/arithmetic.py --data examples/benchmark` runs it."""

from collections.abc import Mapping
from pathlib import Path

from handiwork.evals.benchmark import Benchmark, Instance, Rollout, Score
from handiwork.evals.scoring import jsonlines
from handiwork.evals.scoring.answers import finish_with, tagged
from handiwork.events.base import Action
from handiwork.events.record import Limits
from handiwork.sandbox.base import Sandbox

FILE = "arithmetic.jsonl"
"""Lines of {"id", "level", "question", "answer"}, and "ledger", the text of a table, where there is one to read."""

LEDGER = "ledger.csv"


class Arithmetic(Benchmark):
    """Small sums, some over a table in a file; the number must be right."""

    name = "arithmetic"
    title = "Arithmetic"
    size = "12"
    source = "examples/benchmark/arithmetic.jsonl"
    licence = "MIT"
    citation = "none: made up as an example"
    limits = Limits(iterations=10)

    def files(self, split: str) -> Mapping[str, str]:
        """Return the one file; it is got from nowhere."""
        return {FILE: ""}

    def load(self, data: Path, split: str) -> list[Instance]:
        """Return the questions, by level. Raises DataError, OSError."""
        rows = jsonlines.read(data / FILE, ["id", "level", "question", "answer"])
        return [Instance(row["id"], row, row["level"]) for row in rows]

    def prepare(self, instance: Instance, workspace: Path) -> None:
        """Write the table that the question is about."""
        if "ledger" in instance.row:
            (workspace / LEDGER).write_text(instance.row["ledger"])

    def instruction(self, instance: Instance) -> str:
        """Return the question and the form of the answer."""
        where = f" The table is in {LEDGER}." if "ledger" in instance.row else ""
        return f"{instance.row['question']}{where} Finish with the number alone, as <answer>NUMBER</answer>."

    async def solve(self, instance: Instance, sandbox: Sandbox) -> Action:
        """Return the end with the right number, for `--agent oracle`."""
        return finish_with(str(instance.row["answer"]))

    async def score(self, rollout: Rollout) -> Score:
        """Score 1 for the right number, however it is written, else 0."""
        answer = tagged(rollout.final_message)
        try:
            right = float(answer.replace(",", "")) == rollout.instance.row["answer"]
        except ValueError:
            right = False
        return Score(float(right), answer, {"truth": rollout.instance.row["answer"]})

"""ProofWriter, as used by Logic-LM: is a statement true, false or unknown, given facts and rules in plain English?

Theories of depth 5 in the open world, in which a statement that does not follow is unknown. The letter is taken from
the answer as in Logic-LM (https://github.com/teacherpeterpan/Logic-LLM): if the answer contains "The correct option
is:", only the text after the last of these counts (models/model_baseline.py). The letter is that text's first
character, if it is a capital from A to H, regardless of the next one; else the first character after the first of a few
phrases (models/evaluation.py). After a colon, as in "The correct answer is: B.", the letter must stand alone but for a
full stop. An answer without such a letter is wrong.

The splits are the same questions under three conditions. In ``dev`` the agent has the text alone. In ``dev-solver`` it
may write a logic program in Logic-LM's language, and has ``solver`` to answer its query, in place of Logic-LM's Pyke.
In ``dev-forms`` it also has the logic program that GPT-4 wrote for Logic-LM, as in the paper of OpenHands.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handiwork.evals.benchmark import PROVIDED, Benchmark, DataError, Instance, Rollout, Score
from handiwork.evals.benchmarks.proofwriter import solver
from handiwork.evals.scoring.answers import finish_with, tagged
from handiwork.events.base import Action
from handiwork.events.record import Limits
from handiwork.sandbox.base import Sandbox

FILE, FORMS = "dev.json", "ProofWriter_dev_gpt-4.json"
SOLVER, PROGRAM = "solve.py", "program.txt"
UPSTREAM = "https://raw.githubusercontent.com/teacherpeterpan/Logic-LLM/d29f1e5e7203e8826cb9c41ba3003e43dc0b9d34"
FIELDS = ("id", "context", "question", "options", "answer")
LETTERS = "ABCDEFGH"

LABEL = "The correct option is:"
"""The beginning of answers that Logic-LM's prompts ask for."""

PHRASES = (
    "the correct option is",
    "the correct answer is",
    "The correct answer is",
    "The correct option is",
    "Thus, the answer is",
)
"""Phrases before the letter; only the first of them that occurs counts."""


LANGUAGE = """
Facts:
Quiet(Anne, True)
Chases(Dog, Cat, True)
Rules:
Quiet($x, True) && Chases($x, Cat, False) >>> Rough($x, True)
Query:
Rough(Anne, False)
"""
"""An example of a logic program."""


class ProofWriter(Benchmark):
    """Deduction from facts and rules; accuracy of the chosen letter."""

    name = "proofwriter"
    title = "ProofWriter"
    size = "600"
    source = "https://github.com/teacherpeterpan/Logic-LLM"
    licence = "MIT"
    citation = (
        "Tafjord et al. 2021, ProofWriter, arXiv:2012.13048; the 600 are those of Pan et al. 2023, Logic-LM, "
        "arXiv:2305.12295"
    )
    splits = ("dev", "dev-solver", "dev-forms")
    limits = Limits(iterations=20)

    def files(self, split: str) -> Mapping[str, str]:
        """Return the file with the questions, and the one with their logic programs if the split has them."""
        forms = {FORMS: f"{UPSTREAM}/outputs/logic_programs/{FORMS}"} if split == "dev-forms" else {}
        return {FILE: f"{UPSTREAM}/data/ProofWriter/{FILE}", **forms}

    def load(self, data: Path, split: str) -> list[Instance]:
        """Return the questions, by kind of theory: attributes or relations, with or without negation.

        Raises DataError, OSError.
        """
        rows: list[dict[str, Any]] = json.loads((data / FILE).read_text(encoding="utf-8"))
        if any(field not in row for row in rows for field in FIELDS):
            raise DataError(f"{data / FILE} is not a list of records with {', '.join(FIELDS)}: is it Logic-LM's file?")
        programs = _programs(data / FORMS) if split == "dev-forms" else {}
        return [
            Instance(
                row["id"],
                {**row, "split": split, "program": programs.get(row["id"], "")},
                row["id"].removeprefix("ProofWriter_").split("-")[0],
            )
            for row in rows
        ]

    def skipped(self, instance: Instance) -> str:
        """Return that the logic program is missing, if the split has one."""
        lacks = instance.row["split"] == "dev-forms" and not instance.row["program"]
        return f"{FORMS} has no logic program for it" if lacks else ""

    def prepare(self, instance: Instance, workspace: Path) -> None:
        """Write the logic program, if the split has one."""
        if program := instance.row["program"]:
            (workspace / PROGRAM).write_text(program, encoding="utf-8")

    def provide(self, instance: Instance, folder: Path) -> None:
        """Write the solver, if the split has it."""
        if instance.row["split"] != "dev":
            shutil.copyfile(Path(solver.__file__), folder / SOLVER)

    async def task(self, instance: Instance, sandbox: Sandbox, agent: str) -> str:
        """Return the task, with the use of the solver if the split has it."""
        task, split = self.instruction(instance), instance.row["split"]
        if split == "dev":
            return task
        command = f"python3 {Path(sandbox.workspace).parent / PROVIDED / SOLVER}"
        if split == "dev-forms":
            return (
                f"{task}\n\nThe file {PROGRAM} has this as a logic program, written by another model. `{command} "
                f"{PROGRAM}` prints whether its query is True, False or Unknown, or what is wrong with the program. "
                "Correct the program if it does not say what the text says."
            )
        return (
            f"{task}\n\nYou can write this as a logic program into a file: `{command} FILE` prints whether its query "
            "is True, False or Unknown, or what is wrong with the program. The last word of each literal is its truth, "
            f"and a name that begins with $ is a variable, as in this example:\n{LANGUAGE}"
        )

    def instruction(self, instance: Instance) -> str:
        """Return the facts and rules, the question with its options, and the form of the answer."""
        row, options = instance.row, "\n".join(instance.row["options"])
        forms = " or ".join(f"<answer>{option.strip()[0]}</answer>" for option in row["options"])
        return (
            f"Facts and rules:\n{row['context'].strip()}\n\n{row['question'].strip()}\n\n{options}\n\n"
            "Unknown means that neither the statement nor its opposite follows from the facts and rules.\n"
            f"When you are sure, finish with the letter of your choice alone: {forms}"
        )

    async def solve(self, instance: Instance, sandbox: Sandbox) -> Action:
        """Return the end with the right letter."""
        return finish_with(instance.row["answer"].strip(" ()"))

    async def score(self, rollout: Rollout) -> Score:
        """Score 1 for the right letter, else 0."""
        right = rollout.instance.row["answer"].strip(" ()")
        chosen = letter_in(tagged(rollout.answer))
        return Score(float(chosen == right), chosen, {"truth": right})


def _programs(file: Path) -> dict[str, str]:
    """Return the logic programs of Logic-LM's file by the ids of their questions. Raises DataError, OSError."""
    rows: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    if any(not row.get("raw_logic_programs") for row in rows):
        raise DataError(f"{file} is not a list of records with raw_logic_programs: is it Logic-LM's file?")
    return {row["id"]: row["raw_logic_programs"][0] for row in rows}


def letter_in(answer: str) -> str:
    """Return the letter that an answer names by Logic-LM's rule, "" if it names none."""
    answer = answer.split(LABEL)[-1].strip()
    choice = _choice(answer)
    if choice is None and (phrase := next((one for one in PHRASES if one in answer), "")):
        choice = _choice(answer.split(phrase)[1].strip())
    return choice if choice in (*LETTERS,) else ""


def _choice(text: str) -> str | None:
    """Return the choice that a text begins with: a letter, or all that follows a colon; None without either."""
    if text.startswith((*LETTERS,)):
        return text[0]
    return re.sub("[:.]", "", text).strip() if text.startswith(":") else None

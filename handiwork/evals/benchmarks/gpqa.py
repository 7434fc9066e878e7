"""GPQA: expert questions of biology, physics and chemistry with four choices, whose answers a search does not find.

The choices of each record are shuffled by a generator seeded with the record's id, so that every run shows the same
order. The letter is scored; an answer that names none is wrong. The authors' own parser
(https://github.com/idavidrein/gpqa) reads letters in parentheses only: the first after "answer is" and the like, or
else the first of all. Two things differ here: a letter also counts alone, before its choice ("B) iron") and after
"answer is"; and of several letters in one of these places the last counts, so "The answer is (A)? No, the answer is
(C)" is C.
"""

from __future__ import annotations

import csv
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handiwork.evals.benchmark import Benchmark, DataError, Instance, Rollout, Score
from handiwork.evals.scoring.answers import finish_with, tagged
from handiwork.events.base import Action
from handiwork.events.record import Limits
from handiwork.sandbox.base import Sandbox

LETTERS = "ABCD"
RIGHT = "Correct Answer"
COLUMNS = ("Record ID", "Question", RIGHT, "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")

NAMED = (
    re.compile(r"[^\w]*([A-Da-d])[^\w]*"),
    re.compile(r".*\b(?i:answer)(?i:\s+is|\W*:)[^\w]*([A-D])\b.*", re.DOTALL),
    re.compile(r".*\b(?i:answer)[^\w]*([A-D])\b.*", re.DOTALL),
    re.compile(r"[^\w]*([A-D])[).:].*", re.DOTALL),
    re.compile(r".*\(([A-D])\).*", re.DOTALL),
)
"""Patterns of whole answers that name a letter, surest first: alone, "the answer is B", before its choice, "(B)"."""


class GPQA(Benchmark):
    """Graduate-level, Google-proof questions; accuracy of the chosen letter."""

    name = "gpqa"
    title = "GPQA"
    size = "448 main, 546 extended, 198 diamond"
    source = "https://huggingface.co/datasets/Idavidrein/gpqa"
    licence = "CC BY 4.0; not to be shown in plain text where crawlers read"
    citation = "Rein et al. 2023, GPQA: A Graduate-Level Google-Proof Q&A Benchmark, arXiv:2311.12022"
    splits = ("main", "extended", "diamond")
    gated = f"Accept the terms on {source}, and set HF_TOKEN to a token of that account."
    limits = Limits(iterations=20)

    def files(self, split: str) -> Mapping[str, str]:
        """Return the CSV file of the split."""
        return {f"gpqa_{split}.csv": f"{self.source}/resolve/main/gpqa_{split}.csv"}

    def load(self, data: Path, split: str) -> list[Instance]:
        """Return the questions, by high-level domain. Raises DataError, OSError."""
        file = data / f"gpqa_{split}.csv"
        with file.open(encoding="utf-8", newline="") as lines:
            reader = csv.DictReader(lines)
            if missing := set(COLUMNS) - set(reader.fieldnames or ()):
                raise DataError(f"{file} has no column {', '.join(sorted(missing))}: is it the file of GPQA?")
            return [Instance(row["Record ID"], row, row.get("High-level domain") or "") for row in reader]

    def instruction(self, instance: Instance) -> str:
        """Return the question, its choices by letter, and the form of the answer."""
        forms = " or ".join(f"<answer>{letter}</answer>" for letter in LETTERS)
        options = "\n".join(f"{letter}) {choice}" for letter, choice in choices(instance.row).items())
        return (
            "Answer this multiple-choice question. Exactly one choice is right.\n\n"
            f"{instance.row['Question'].strip()}\n\n{options}\n\n"
            f"When you are sure, finish with the letter of your choice alone: {forms}"
        )

    async def solve(self, instance: Instance, sandbox: Sandbox) -> Action:
        """Return the end with the letter of the right choice."""
        return finish_with(_right_letter(instance.row))

    async def score(self, rollout: Rollout) -> Score:
        """Score 1 for the letter of the right choice, else 0."""
        right = _right_letter(rollout.instance.row)
        chosen = letter_in(tagged(rollout.answer))
        return Score(float(chosen == right), chosen, {"truth": right})


def _right_letter(row: Mapping[str, Any]) -> str:
    return next(letter for letter, choice in choices(row).items() if choice == row[RIGHT].strip())


def choices(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the four choices by letter, in the order of every run."""
    texts: list[str] = [row[column].strip() for column in COLUMNS[2:]]
    random.Random(row["Record ID"]).shuffle(texts)
    return dict(zip(LETTERS, texts, strict=True))


def letter_in(answer: str) -> str:
    """Return the letter that an answer names, "" if it names none."""
    first = next((match for pattern in NAMED if (match := pattern.fullmatch(answer))), None)
    return first[1].upper() if first else ""

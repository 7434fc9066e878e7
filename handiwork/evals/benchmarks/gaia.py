"""GAIA: questions for an assistant with tools, each with one short answer; many need the web, some an attached file.

Answers are scored as by ``question_scorer`` of the official leaderboard
(https://huggingface.co/spaces/gaia-benchmark/leaderboard, scorer.py): as a number if the truth is one, element by
element if the truth is a list, else as text without white space, punctuation and case.
"""

from __future__ import annotations

import math
import re
import shutil
import string
from collections.abc import Mapping, Sequence
from pathlib import Path

from handiwork.evals.benchmark import Benchmark, Instance, Rollout, Score
from handiwork.evals.scoring import jsonlines
from handiwork.evals.scoring.answers import finish_with, tagged
from handiwork.events.base import Action
from handiwork.sandbox.base import Sandbox

COMMIT = "897f2dfbb5c952b5c3c1509e648381f9c7b70316"
"""The data set of February 2025, the last version with JSON lines; later ones are Parquet."""

TRUTH, UNKNOWN = "Final answer", "?"
FIELDS = ("task_id", "Question", "Level", TRUTH, "file_name")
MARKER = re.compile("final answer:", re.IGNORECASE)
UNITS = str.maketrans("", "", "$%,")
PUNCTUATION = str.maketrans("", "", string.punctuation)


class GAIA(Benchmark):
    """General AI assistants; share of questions answered right, by level of difficulty."""

    name = "gaia"
    title = "GAIA"
    size = "165 validation, 301 test (without answers)"
    source = "https://huggingface.co/datasets/gaia-benchmark/GAIA"
    licence = "none stated; not to be reshared where crawlers read"
    citation = "Mialon et al. 2023, GAIA: a benchmark for General AI Assistants, arXiv:2311.12983"
    splits = ("validation", "test")
    gated = (
        f"Accept the terms on {source}, and set HF_TOKEN to a token of that account. That gets the questions; for the "
        f"attached files too, clone the data set at commit {COMMIT[:7]} and name its folder with --data."
    )

    def files(self, split: str) -> Mapping[str, str]:
        """Return the file of the questions, which names the attached files."""
        path = f"2023/{split}/metadata.jsonl"
        return {path: f"{self.source}/resolve/{COMMIT}/{path}"}

    def further_files(self, split: str) -> Sequence[str]:
        """Return the attached files."""
        return (f"2023/{split}",)

    def load(self, data: Path, split: str) -> list[Instance]:
        """Return the questions, by level; a row's ``file_path`` is its attached file's. Raises DataError, OSError."""
        file = data / "2023" / split / "metadata.jsonl"
        instances: list[Instance] = []
        for row in jsonlines.read(file, FIELDS):
            attached = str(file.with_name(Path(row["file_name"]).name)) if row["file_name"] else ""
            instances.append(Instance(row["task_id"], row | {"file_path": attached}, f"level {row['Level']}"))
        return instances

    def skipped(self, instance: Instance) -> str:
        """Return why a question cannot be used: its answer or its file is missing."""
        if instance.row[TRUTH].strip() == UNKNOWN:
            return "its answer is not published: only the leaderboard can score it"
        path = instance.row["file_path"]
        if path and not Path(path).is_file():
            return f"its file {Path(path).name} is not beside metadata.jsonl: get the whole data set, and give --data"
        return ""

    def prepare(self, instance: Instance, workspace: Path) -> None:
        """Copy the attached file into the workspace, under a name without the question's id."""
        if path := instance.row["file_path"]:
            shutil.copyfile(path, workspace / _attachment(path))

    def instruction(self, instance: Instance) -> str:
        """Return the question and the form of answer that the official scorer requires."""
        path = instance.row["file_path"]
        attached = f"The attached file is {_attachment(path)}, in your working directory.\n\n" if path else ""
        return (
            f"Answer this question.\n\n{instance.row['Question'].strip()}\n\n{attached}"
            "The answer is a number, a few words, or a list of these separated by commas. Write a number in digits, "
            "without commas in it and without a unit such as $ or %, unless the question asks for it. Write words "
            "without articles and abbreviations. Finish with the answer alone, in this form:\n<answer>ANSWER</answer>"
        )

    async def solve(self, instance: Instance, sandbox: Sandbox) -> Action:
        """Return the end with the true answer."""
        return finish_with(str(instance.row[TRUTH]))

    async def score(self, rollout: Rollout) -> Score:
        """Score 1 for an answer that the official scorer accepts, else 0."""
        answer, truth = answer_in(rollout.final_message), str(rollout.instance.row[TRUTH])
        return Score(float(answer != "" and matches(answer, truth)), answer, {"truth": truth})


def _attachment(path: str) -> str:
    return f"attachment{Path(path).suffix}"


def answer_in(text: str) -> str:
    """Return the tagged answer; without a tag, the text after the last "FINAL ANSWER:", else the whole text."""
    return MARKER.split(tagged(text))[-1].strip()


def matches(answer: str, truth: str) -> bool:
    """Return whether an answer is right by the official rule."""
    if (number := _number(truth)) is not None:
        return _number(answer.translate(UNITS)) == number
    if not re.search("[,;]", truth):
        return _plain(answer).translate(PUNCTUATION) == _plain(truth).translate(PUNCTUATION)
    elements, expected = re.split("[,;]", answer), re.split("[,;]", truth)
    return len(elements) == len(expected) and all(map(_same_element, elements, expected))


def _same_element(element: str, expected: str) -> bool:
    if (number := _number(expected)) is not None:
        return _number(element.translate(UNITS)) == number
    return _plain(element) == _plain(expected)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    # Words such as "nan" and "infinity" are compared as text: the official scorer reads every wrong answer as infinite.
    return number if math.isfinite(number) else None


def _plain(text: str) -> str:
    return re.sub(r"\s", "", text).lower()

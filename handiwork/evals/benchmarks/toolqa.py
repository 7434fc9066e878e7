"""ToolQA: questions on eight sets of data that a model cannot know by heart and must look up or compute.

Scored by upstream's exact match (https://github.com/night-chen/ToolQA, benchmark/ReAct/code/agents_chatgpt.py): the
same text after lower-casing and removing punctuation and the words a, an, the and usd. It does not compare numbers, so
147 is not 147.0: the instruction says when an answer needs a decimal point, and ``more`` has the share with equal
numbers.
"""

from __future__ import annotations

import re
import shutil
import string
from collections.abc import Mapping, Sequence
from pathlib import Path

from handiwork.evals.benchmark import Benchmark, DataError, Instance, Rollout, Score
from handiwork.evals.scoring import jsonlines
from handiwork.evals.scoring.answers import finish_with, tagged
from handiwork.events.base import Action
from handiwork.events.record import Limits
from handiwork.sandbox.base import Sandbox

COMMIT = "acf55534d6dcd81df84df7b5d01ebdd14508367a"
UPSTREAM = f"https://raw.githubusercontent.com/night-chen/ToolQA/{COMMIT}/data/questions"

EASY = ("agenda", "airbnb", "coffee", "dblp", "flight", "gsm8k", "scirex", "yelp")
HARD = {name: name.removeprefix("a") if name == "agenda" else name for name in EASY if name != "gsm8k"}
"""The data sets with hard questions, by the names in upstream's files, one of which has lost its first letter."""

CORPUS = "external_corpus"
FOLDERS = {name: "flights" if name == "flight" else name for name in EASY if name != "gsm8k"}
"""The folder of each data set's corpus; the problems of gsm8k need none."""

PUNCTUATION = str.maketrans("", "", string.punctuation)
FINISH = "Finish["


class ToolQA(Benchmark):
    """Questions that need tools; exact match, by data set."""

    name = "toolqa"
    title = "ToolQA"
    size = "800 easy, 730 hard"
    source = "https://github.com/night-chen/ToolQA"
    licence = "Apache-2.0; gsm8k MIT"
    citation = "Zhuang et al. 2023, ToolQA: A Dataset for LLM Question Answering with External Tools, arXiv:2306.13304"
    splits = ("easy", "hard")
    limits = Limits(iterations=20)

    def files(self, split: str) -> Mapping[str, str]:
        """Return the file of questions of each data set."""
        return {path: f"{UPSTREAM}/{path}" for path in _paths(split).values()}

    def further_files(self, split: str) -> Sequence[str]:
        """Return the corpora."""
        return (CORPUS,)

    def load(self, data: Path, split: str) -> list[Instance]:
        """Return the questions of the available data sets. Raises DataError, OSError."""
        instances: list[Instance] = []
        for name, path in _paths(split).items():
            corpus = str(data / CORPUS / FOLDERS[name]) if name in FOLDERS else ""
            if (data / path).exists():
                for row in jsonlines.read(data / path, ["qid", "question", "answer"]):
                    instances.append(Instance(row["qid"], row | {"corpus": corpus}, name))
        if not instances:
            raise DataError(f"{data} has no questions of the split {split}: give the folder with {split}/ by --data")
        return instances

    def skipped(self, instance: Instance) -> str:
        """Return why a question cannot be used: its corpus is missing."""
        corpus = instance.row["corpus"]
        if not corpus or (Path(corpus).is_dir() and any(Path(corpus).iterdir())):
            return ""
        return f"its corpus {CORPUS}/{Path(corpus).name} is not there: {self.source} says where to get it"

    def prepare(self, instance: Instance, workspace: Path) -> None:
        """Copy the corpus into the workspace, under its own name."""
        if corpus := instance.row["corpus"]:
            shutil.copytree(corpus, workspace / Path(corpus).name)

    def instruction(self, instance: Instance) -> str:
        """Return the question, the place of the corpus, and the form of the answer."""
        corpus = instance.row["corpus"]
        hint = (
            f"The answer is in the files of the folder {Path(corpus).name} in your working directory. Look it up there "
            "and give it as it is written there."
            if corpus
            else "The answer is a number. Write it with a decimal point and without a unit, for example 12.0 or 0.75."
        )
        return (
            f"Answer this question.\n\n{instance.row['question'].strip()}\n\n{hint} "
            "Finish with the answer alone, in this form:\n<answer>ANSWER</answer>"
        )

    async def solve(self, instance: Instance, sandbox: Sandbox) -> Action:
        """Return the end with the true answer."""
        return finish_with(str(instance.row["answer"]))

    async def score(self, rollout: Rollout) -> Score:
        """Score 1 for the same text after normalising, else 0."""
        answer, truth = answer_in(rollout.final_message), str(rollout.instance.row["answer"])
        same = answer != "" and normalise(answer) == normalise(truth)
        details = {"truth": truth, "same_number": same or _same_number(answer, truth)}
        return Score(float(same), answer, details)

    def more(self, scores: Sequence[Score]) -> dict[str, float]:
        """Return the share of answers that are the same text or the same number."""
        same = sum(bool(score.details["same_number"]) for score in scores)
        return {"exact match or same number": same / len(scores)}


def answer_in(text: str) -> str:
    """Return the tagged answer; in that, the content of upstream's ``Finish[...]`` if there is one."""
    answer = tagged(text)
    _, marker, after = answer.rpartition(FINISH)
    return after[: after.rfind("]")].strip() if marker and "]" in after else answer


def normalise(text: str) -> str:
    """Return a text normalised for comparison."""
    bare = text.lower().translate(PUNCTUATION)
    return " ".join(re.sub(r"\b(a|an|the|usd)\b", " ", bare).split())


def _same_number(answer: str, truth: str) -> bool:
    try:
        return float(answer.replace(",", "").strip(" $%")) == float(truth)
    except ValueError:
        return False


def _paths(split: str) -> dict[str, str]:
    names = HARD if split == "hard" else {name: name for name in EASY}
    return {name: f"{split}/{file}-{split}.jsonl" for name, file in names.items()}

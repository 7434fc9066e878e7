"""Gorilla APIBench: name the call that loads a suitable model for a task, from one of three hubs of models.

Scored by the rule of upstream's ``ast_eval_{hf,th,tf}.py`` (https://github.com/ShishirPatil/gorilla): the answer's call
is looked up in the hub's database, and matches the first entry with the same name whose arguments all occur in the
call; the answer is right if that entry's domain is the question's, and a hallucination if there is none. The arguments
that must occur differ by hub. Two slips of upstream's code are not kept: if the answer has no call of an entry's name,
it compares the entry with the part of the answer it looked at last, and for Torch Hub an answer without ``api_call`` is
no hallucination. For Torch Hub upstream reads the call only from the text after ``api_call`` and takes any other answer
as wrong; here a call counts for every hub with or without that word, as the task asks for the call alone.

Upstream finds calls by tree-sitter. Here a call is a dotted name followed by balanced parentheses, as neither the
answers nor the database are all valid Python. On every API, example and reference answer of Hugging Face and Torch Hub,
and every API and example of TensorFlow Hub, both find the same domain, except for calls within quotes or after a quote
that is never closed, which are found only here. The database has some calls twice, with different domains, so that
not even all reference calls, those of the arm "oracle", score (861 of the 904 of Hugging Face, all 186 of Torch Hub).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from handiwork.evals.benchmark import Benchmark, DataError, Instance, Rollout, Score, UnfitError
from handiwork.evals.scoring import jsonlines
from handiwork.evals.scoring.answers import finish_with, tagged
from handiwork.events.base import Action
from handiwork.events.record import Limits
from handiwork.sandbox.base import Sandbox

COMMIT = "6ea57973c7a6097fd7c5915698c54c17c5b1b6c8"
UPSTREAM = f"https://raw.githubusercontent.com/ShishirPatil/gorilla/{COMMIT}"

HUBS: dict[str, tuple[str, str]] = {
    "huggingface": (
        "the Hugging Face Hub",
        "CLASS.from_pretrained('OWNER/MODEL') or pipeline('TASK', model='OWNER/MODEL')",
    ),
    "torchhub": ("PyTorch Hub", "torch.hub.load(repo_or_dir='OWNER/REPOSITORY', model='MODEL', pretrained=True)"),
    "tensorflowhub": ("TensorFlow Hub", "hub.load('https://tfhub.dev/PUBLISHER/MODEL/VERSION')"),
}
"""Each hub's name, and the form of its calls."""

CALL = re.compile(r"(?<![\w.])([^\W\d][\w.]*)\s*\(")
TOKEN = re.compile(r"""'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|[(\[{)\]},]""")
LONGEST = 1000
"""The most characters of a call, since a model that repeats itself opens thousands within each other."""

KEYWORD = re.compile(r"(\w+)\s*=(?!=)\s*(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A call found in a text: its dotted name, the texts of its arguments, its whole text, and its end offset."""

    name: str
    arguments: tuple[str, ...]
    text: str
    end: int


@dataclass(frozen=True, slots=True)
class ApiEntry:
    """An API of a hub's database: the call's name, the texts required in an answer's call, and the API's domain."""

    name: str
    required_texts: tuple[str, ...]
    domain: str
    call: str


class GorillaAPIBench(Benchmark):
    """API calls for machine learning tasks; accuracy of the domain, and the rate of calls that do not exist."""

    name = "gorilla_apibench"
    title = "Gorilla APIBench"
    size = "904 huggingface, 186 torchhub, 685 tensorflowhub"
    source = "https://github.com/ShishirPatil/gorilla"
    licence = "Apache-2.0"
    citation = "Patil et al. 2023, Gorilla: Large Language Model Connected with Massive APIs, arXiv:2305.15334"
    splits = tuple(HUBS)
    limits = Limits(iterations=20)

    def files(self, split: str) -> Mapping[str, str]:
        """Return a hub's questions, their answers, and the hub's database."""
        questions, answers, database = _paths(split)
        path = f"gorilla/eval/eval-data/questions/{split}/{questions.removeprefix('questions/')}"
        return {
            questions: f"{UPSTREAM}/{path}",
            answers: f"{UPSTREAM}/data/{answers}",
            database: f"{UPSTREAM}/data/{database}",
        }

    def load(self, data: Path, split: str) -> list[Instance]:
        """Return the questions of a hub, with the file of its ``database``. Raises DataError, OSError."""
        files = [data / path for path in _paths(split)]
        if missing := [str(file.relative_to(data)) for file in files if not file.is_file()]:
            raise DataError(f"{data} has no {', '.join(missing)}: the split {split} cannot be run without it")
        questions, answers, database = files
        pairs = jsonlines.read(answers, ["api_data"])
        instances: list[Instance] = []
        for row in jsonlines.read(questions, ["question_id", "text"]):
            # Question ids count the lines of the answers from 1; some lines have no question.
            number = int(row["question_id"])
            if not 1 <= number <= len(pairs):
                raise DataError(f"{answers} has no line {number}, which {questions.name} asks: get both whole")
            api = pairs[number - 1]["api_data"]
            more = {
                "domain": api["domain"],
                "reference": api.get("api_call", ""),
                "hub": split,
                "database": str(database),
            }
            instances.append(Instance(f"{split}-{number}", row | more))
        return instances

    def instruction(self, instance: Instance) -> str:
        """Return the question, and the form of a call of the hub."""
        hub, form = HUBS[instance.row["hub"]]
        # The texts end in a line break that upstream has escaped twice.
        question = instance.row["text"].strip().removesuffix("\\n").strip()
        return (
            f"Which API call of {hub} loads a pretrained model that is good for this?\n\n{question}\n\n"
            "Name a model that really exists there. Do not run the call and install nothing. A call has this form:\n"
            f"{form}\n\nFinish with the call alone, on one line, in this form:\n<answer>CALL</answer>"
        )

    async def solve(self, instance: Instance, sandbox: Sandbox) -> Action:
        """Return the end with the call of the question's line in the file of answers. Raises UnfitError without one."""
        if not instance.row["reference"]:
            raise UnfitError(f"{instance.id} has no reference call")
        return finish_with(instance.row["reference"])

    async def score(self, rollout: Rollout) -> Score:
        """Score 1 if the call's API has the question's domain; ``hallucination`` marks a call of no known API."""
        row = rollout.instance.row
        answer = answer_in(rollout.final_message)
        entry = find_entry(answer, read_database(row["database"], row["hub"]))
        details = {
            "domain": row["domain"],
            "hallucination": entry is None,
            "api": entry.call if entry else "",
            "api_domain": entry.domain if entry else "",
        }
        return Score(float(entry is not None and entry.domain == row["domain"]), answer, details)

    def more(self, scores: Sequence[Score]) -> dict[str, float]:
        """Return the share of answers that are no API of the hub."""
        hallucinations = sum(bool(score.details["hallucination"]) for score in scores)
        return {"hallucination rate": hallucinations / len(scores)}


def answer_in(text: str) -> str:
    """Return the part of an answer with its call: the tagged text, and in that upstream's field if it has one."""
    answer = tagged(text)
    fields = answer.split("api_call")
    return fields[1].split("api_provider")[0].strip() if len(fields) > 1 else answer


def find_entry(answer: str, database: Sequence[ApiEntry]) -> ApiEntry | None:
    """Return the first entry whose call the answer contains, None if it contains none."""
    by_name: dict[str, ApiCall] = {}
    for call in calls(answer):
        # Of several calls with a name upstream sees the last in the text, and the outer before the inner.
        if call.name not in by_name or call.end > by_name[call.name].end:
            by_name[call.name] = call
    for entry in database:
        call = by_name.get(entry.name)
        if call and all(argument in call.text for argument in entry.required_texts):
            return entry
    return None


def calls(text: str) -> Iterator[ApiCall]:
    """Yield the calls in a text, including nested ones; an unclosed one extends for LONGEST characters."""
    for match in CALL.finditer(text):
        depth, begin, arguments, end = 0, match.end(), list[str](), min(len(text), match.end() + LONGEST)
        for token in TOKEN.finditer(text, match.end() - 1, end):
            if token[0] in "([{":
                depth += 1
            elif token[0] in ")]}":
                depth -= 1
            if depth == 0 or (depth == 1 and token[0] == ","):
                arguments.append(text[begin : token.start()])
                begin = token.end()
            if depth == 0:
                end = token.end()
                break
        else:
            arguments.append(text[begin:end])
        stripped = tuple(argument.strip() for argument in arguments if argument.strip())
        yield ApiCall(match[1], stripped, text[match.start() : end], end)


def required_texts(call: ApiCall, hub: str) -> tuple[str, ...]:
    """Return the parts of a database's call that must occur in an answer's, by the hub's own rule."""
    values: list[str] = []
    for argument in call.arguments:
        keyword = KEYWORD.fullmatch(argument)
        name, value = (keyword[1], keyword[2]) if keyword else ("", argument)
        match hub:
            case "torchhub":
                values += [value] if "repo_or_dir" in argument or "model" in argument else []
            case "tensorflowhub":
                values.append(value if name == "model" else argument)
            case _:
                values.append(value)
    return tuple(value.strip("'") for value in values)


@lru_cache(maxsize=len(HUBS))
def read_database(file: str, hub: str) -> tuple[ApiEntry, ...]:
    """Return the matchable APIs of a hub: those that are a call with required arguments."""
    entries: list[ApiEntry] = []
    for row in jsonlines.read(Path(file), ["api_call", "domain"]):
        call = next(calls(row["api_call"]), None)
        if call and row["api_call"].startswith(call.text) and (required := required_texts(call, hub)):
            entries.append(ApiEntry(call.name, required, row["domain"], row["api_call"]))
    return tuple(entries)


def _paths(hub: str) -> tuple[str, str, str]:
    answers = "tensorflow" if hub == "tensorflowhub" else hub
    return f"questions/questions_{hub}_0_shot.jsonl", f"apibench/{answers}_eval.json", f"api/{hub}_api.jsonl"

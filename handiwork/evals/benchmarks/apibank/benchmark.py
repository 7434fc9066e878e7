"""API-Bank, level 1: the calls that a dialogue between a user and an assistant still needs.

The rule is that of CodeNav (arXiv:2406.12276, A.3): of each dialogue whose last user message is followed by calls the
agent gets everything up to that message, with the databases as the calls before it left them, and makes the remaining
calls. Precision and recall are those of the names of its calls, counted with multiplicity; the score is their F1.
Upstream's own check of each call (https://github.com/AlibabaResearch/DAMO-ConvAI, api-bank) is a further figure: for
each remaining call, whether the agent made one with the same name whose arguments and result upstream's check accepts.
The agent's calls are carried out again for that on this machine, in the state before the call.

The APIs are Handiwork's own, written from the benchmark's specifications, databases and recorded results. Upstream asks
two services of the internet for translations and the dictionary; here the APIs know the recorded answers. The recorded
dialogues name devices by numbers that an older ``device_id`` had; a switch takes them as names.
"""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from handiwork.evals.benchmark import Benchmark, DataError, Instance, Rollout, Score
from handiwork.evals.benchmarks.apibank import apis, check
from handiwork.evals.benchmarks.apibank.apis.knowledge import LANGUAGES
from handiwork.evals.benchmarks.apibank.check import MemoryDatabases, RecordedCall
from handiwork.evals.scoring import codebase, jsonlines
from handiwork.evals.scoring.answers import read_answer
from handiwork.evals.scoring.execution import write_file
from handiwork.events.action import AgentFinishAction
from handiwork.events.base import Action
from handiwork.events.record import Limits
from handiwork.sandbox.base import Sandbox

PACKAGE = Path(__file__).parent / "apis"

DIALOGUES, DATABASES = "level-1-given-desc", "init_database"
RECORD = "apis/calls.jsonl"
"""The agent's calls, in its workspace."""
MOST = 1_000
"""The agent's calls that are read."""

GUIDELINES = """\
Guidelines:
1. Import a class from apis in Python, make an instance without arguments, and use its method call and no other, for \
example `from apis import GetToday; GetToday().call()`. A call returns a dictionary with "output" and "exception".
2. The APIs can do everything that is needed: write none, change none, and call only those that are needed.
3. Write times as 2023-03-21 15:00:00 and dates as 2023-03-21. This year is 2023."""


class APIBank(Benchmark):
    """Dialogues that need calls of 53 APIs; F1 of the calls."""

    name = "apibank"
    title = "API-Bank, level 1"
    size = "186"
    source = "https://github.com/AlibabaResearch/DAMO-ConvAI/tree/main/api-bank"
    licence = "Apache-2.0"
    citation = "Li et al. 2023, API-Bank: A Comprehensive Benchmark for Tool-Augmented LLMs, arXiv:2304.08244"
    metric = "mean score"
    splits = ("code-use", "tool-use")
    limits = Limits(iterations=20)
    fixed_steps = True
    data_folder = "api_bank"

    def files(self, split: str) -> Mapping[str, str]:
        """Return the folders of the dialogues and of the databases."""
        return {DIALOGUES: "", DATABASES: ""}

    def load(self, data: Path, split: str) -> list[Instance]:
        """Return the dialogues in which calls follow the user's last message, by name. Raises DataError, OSError."""
        dialogues = {file.stem: jsonlines.read(file, ["role"]) for file in sorted((data / DIALOGUES).glob("*.jsonl"))}
        if not dialogues:
            raise DataError(f"{data / DIALOGUES} has no dialogues: get the folder whole")
        recorded = _recorded(turn for turns in dialogues.values() for turn in turns)
        instances: list[Instance] = []
        for name, turns in dialogues.items():
            last = max((number for number, turn in enumerate(turns) if turn["role"] == "User"), default=-1)
            if remaining := check.calls_in(turns[last + 1 :]):
                row = {"turns": turns[: last + 1], "calls": remaining, "recorded": recorded}
                instances.append(Instance(name, row | {"databases": str(data / DATABASES), "split": split}))
        return instances

    def prepare(self, instance: Instance, workspace: Path) -> None:
        """Put the code base into the workspace, with the databases as the calls of the dialogue so far left them."""
        folder = codebase.install(PACKAGE, workspace) / "databases"
        folder.mkdir()
        state = state_of(instance.row)
        for file in Path(instance.row["databases"]).glob("*.json"):
            state.changed.setdefault(file.stem, state.read(file.stem))
        for name, content in state.changed.items():
            (folder / f"{name}.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")

    def instruction(self, instance: Instance) -> str:
        """Return the dialogue, the description of the APIs, and the instructions."""
        dialogue = "\n".join(_line(turn) for turn in instance.row["turns"])
        return (
            "You are the assistant (AI) in this dialogue with a user:\n\n"
            f"<dialogue>\n{dialogue}\n</dialogue>\n\n"
            "Make the calls of APIs that are needed now to do what the user asks for. What the dialogue shows as "
            f"called has been called.\n\n{description(instance.row['split'])}\n\n{GUIDELINES}\n\n"
            "When the calls are made, finish with your reply to the user."
        )

    async def solve(self, instance: Instance, sandbox: Sandbox) -> Action:
        """Write the dialogue's remaining calls into the record of calls."""
        lines = (json.dumps({"api_name": call.name, "input": dict(call.input)}) for call in instance.row["calls"])
        await write_file(sandbox, RECORD, "\n".join(lines).encode())
        return AgentFinishAction(outputs={"message": "The calls are made."})

    async def score(self, rollout: Rollout) -> Score:
        """Score the F1 of the calls that the agent made."""
        return grade(rollout.instance.row, made_calls(await read_answer(rollout.sandbox, RECORD)))

    def more(self, scores: Sequence[Score]) -> dict[str, float]:
        """Return precision, recall, and the share of calls that upstream's check accepts."""
        calls = sum(int(str(score.details["calls"])) for score in scores)
        accepted = sum(int(str(score.details["accepted"])) for score in scores)
        means = {name: mean(float(str(score.details[name])) for score in scores) for name in ("precision", "recall")}
        return {**means, "calls that the original check accepts": accepted / calls}


def description(split: str) -> str:
    """Return the description of the APIs for a split: their names and purposes, for tool-use also their calls."""
    classes: list[type] = [getattr(apis, name) for name in apis.__all__]
    head = "The Python package apis in your working directory has these APIs, each of them a class:"
    if split == "code-use":
        return "\n".join([head, *(f"{one.__name__}: {inspect.getdoc(one)}" for one in classes)])
    lines = [head]
    for one in classes:
        call = getattr(one, "call")  # noqa: B009 - each API has its own
        signature = inspect.signature(call)
        signature = signature.replace(parameters=list(signature.parameters.values())[1:])
        prototype = f"{one.__name__}().call{signature}".replace("'", "")
        lines += [prototype, *(f"    {text}" for text in (inspect.getdoc(one), _first_line(call)))]
    return "\n".join(lines)


def state_of(row: Mapping[str, Any]) -> MemoryDatabases:
    """Return the databases as the calls of a dialogue so far left them."""
    databases = MemoryDatabases(Path(row["databases"]))
    databases.changed.update(row["recorded"])
    for call in check.calls_in(row["turns"]):
        check.replay(call, databases)
    return databases


def made_calls(record: str) -> list[RecordedCall]:
    """Return the calls that the agent's record has; the agent may have written anything into it."""
    calls: list[RecordedCall] = []
    for line in record.split("\n")[:MOST]:
        try:
            entry = json.loads(line)
            calls.append(RecordedCall(str(entry["api_name"]), {str(k): v for k, v in entry["input"].items()}))
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
            continue
    return calls


def grade(row: Mapping[str, Any], made: Sequence[RecordedCall]) -> Score:
    """Score the agent's calls against the dialogue's remaining ones."""
    gold: list[RecordedCall] = row["calls"]
    matches = sum((Counter(call.name for call in made) & Counter(call.name for call in gold)).values())
    precision, recall = matches / len(made) if made else 0.0, matches / len(gold)
    f1 = 2 * precision * recall / (precision + recall) if matches else 0.0
    details = {
        "truth": ", ".join(call.name for call in gold),
        "precision": precision,
        "recall": recall,
        "calls": len(gold),
        "accepted": accepted_calls(row, made),
    }
    return Score(f1, ", ".join(call.name for call in made), details)


def accepted_calls(row: Mapping[str, Any], made: Sequence[RecordedCall]) -> int:
    """Return how many of the remaining calls the agent made as upstream's check accepts them, each call of it once."""
    databases, unused, accepted = state_of(row), list(made), 0
    for gold in row["calls"]:
        right = next((call for call in unused if check.is_right(call, gold, databases.copy())), None)
        if right is not None:
            unused.remove(right)
            accepted += 1
        check.replay(gold, databases)
    return accepted


def _recorded(turns: Iterator[Mapping[str, Any]]) -> dict[str, Any]:
    """Return databases with the answers of internet services that the dialogues recorded."""
    databases: dict[str, Any] = {"Dictionary": {}, "Translate": {}}
    for call in check.calls_in(list(turns)):
        if call.name == "Dictionary" and call.output is not None:
            databases["Dictionary"][str(call.input["keyword"]).strip().lower()] = call.output
        if call.name == "Translate" and call.output is not None:
            language = str(call.input.get("tgt_lang", "en")).strip().lower()
            texts = databases["Translate"].setdefault(LANGUAGES.get(language, language), {})
            texts[str(call.input["src"]).strip().lower()] = call.output
    return databases


def _line(turn: Mapping[str, Any]) -> str:
    if turn["role"] != "API":
        return f"{turn['role']}: {turn['text']}"
    arguments = ", ".join(f"{name}={value!r}" for name, value in turn["param_dict"].items())
    return f"API: {turn['api_name']}({arguments}) returned {turn['result']['output']!r}"


def _first_line(member: object) -> str:
    return (inspect.getdoc(member) or "").partition("\n")[0]

"""m&m's: plans of one to three calls of multi-modal tools for a request, scored by the tools in them.

The rule is that of upstream's evaluation (https://github.com/RAIVNLab/mnms, evaluation/evaluator.py) as CodeNav
(arXiv:2406.12276, A.1) applies it: the tools of the agent's plan, each counted once, are compared with those of the
reference plan, or of the alternative plan that they match best. The score of a request is its F1; ``more`` has the
published figures: precision, recall and F1 of each tool over all requests, and then their mean over the tools. A tool
that neither a reference nor an agent has used has no part in that mean; the whole set uses all. Upstream finds the
calls of a plan only in lines that assign one call to a variable; here calls count anywhere in the code.

The plan is the agent's ``code_summary``, as CodeNav's agent gives it, or the Python block of its last message. The
models behind the tools are not needed: the tools of ``mnm``, which are Handiwork's own, return placeholders, and no
plan is run for its score. The splits differ in the task's description of the tools: CodeNav's library description
("code-use"), a list of the tools with which no search is needed ("tool-use"), and, for its second table, nothing, or
names, descriptions or prototypes beside the search.
"""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple, cast

from handiwork.evals.benchmark import Benchmark, DataError, Instance, Rollout, Score
from handiwork.evals.scoring import codebase, jsonlines
from handiwork.evals.scoring.answers import fenced
from handiwork.evals.scoring.codebase import Level
from handiwork.events.action import AgentFinishAction
from handiwork.events.base import Action
from handiwork.events.record import Limits
from handiwork.sandbox.base import Sandbox

PACKAGE = Path(__file__).parent / "mnm"
FILE = "test_human_verified_filtered.json"
REVISION = "e9cb0112a0a88788fc7559e27cdf40646f30ad3f"

LIBRARY = """\
The Python package mnm in your working directory has one file, tool_api.py, with functions for images, texts and sounds:
- texts: generate, summarize, classify, answer a question from a text
- understanding images: classify (only the 1000 categories of ImageNet), caption, answer a question about an image, \
detect objects (boxes and labels), segment objects (masks and labels), read the text in an image
- making and editing images: generate from a description, edit by an instruction (also to replace or remove a thing, \
without detecting it first), crop, blur the background, keep the colour of objects only
- looking up: facts about dates, years and numbers, movies, weather, coordinates of a city, Wikipedia; how well two \
names go together
- lists of objects that have been detected or segmented: count, select one, tag, replace by an emoji
- sounds: transcribe speech"""

PLAIN = "The Python package mnm in your working directory has one file, tool_api.py, with functions for this."
LISTS: dict[str, Level] = {
    "tool-use": "prototypes",
    "tool-names": "names",
    "tool-descriptions": "descriptions",
    "tool-prototypes": "prototypes",
}
"""How much the splits with a list of the tools tell of each."""

GUIDELINES = """\
Guidelines:
1. Use the functions of mnm.tool_api and define none.
2. Search for the names of functions; do not search for the values of arguments.
3. Where a text is to be written or an answer to be found, there is a function for it: do not do it yourself.
4. Most tasks need one to three calls.
5. The models behind the functions are not on this machine: calls return placeholders. What counts is the plan."""


class MnMs(Benchmark):
    """Requests that need one to three multi-modal tools; F1 of the tools in the plan."""

    name = "mnms"
    title = "m&m's"
    size = "882"
    source = "https://huggingface.co/datasets/zixianma/mnms"
    licence = "MIT"
    citation = (
        "Ma et al. 2024, m&m's: A Benchmark to Evaluate Tool-Use for multi-step multi-modal Tasks, arXiv:2403.11085"
    )
    metric = "mean score"
    splits = ("code-use", "no-description", *LISTS)
    limits = Limits(iterations=20)

    def files(self, split: str) -> Mapping[str, str]:
        """Return the file of the plans that people have verified, filtered to those that run."""
        return {FILE: f"{self.source}/resolve/{REVISION}/{FILE}"}

    def load(self, data: Path, split: str) -> list[Instance]:
        """Return the requests in the file's order, by the number of calls. Raises DataError, OSError."""
        instances: list[Instance] = []
        for row in _rows(data / FILE):
            try:
                plans = [_plan(row["plan_str"]), *map(_names, _literal(row.get("alt_plans_str") or "[]"))]
            except (KeyError, SyntaxError, TypeError, ValueError) as error:
                raise DataError(f"{data / FILE} has a request with no plan ({error}): get the file again") from error
            calls = len(plans[0])
            more = {"request": row["user_request"], "plans": plans, "split": split}
            instances.append(Instance(str(row["id"]), more, f"{calls} call{'s' * (calls != 1)}"))
        return instances

    def prepare(self, instance: Instance, workspace: Path) -> None:
        """Put the code base into the workspace."""
        codebase.install(PACKAGE, workspace)

    def instruction(self, instance: Instance) -> str:
        """Return the request, the description of the code base, and the form of the plan."""
        return (
            f"{instance.row['request'].strip()}\n\n{description(instance.row['split'])}\n\n{GUIDELINES}\n\n"
            "Solve this by a plan: Python code in which each line assigns the result of one call to a variable, for "
            "example `output0 = image_captioning(image='1.jpg')` and then "
            "`output1 = text_summarization(text=output0['text'])`. Finish with the plan in a block that begins with "
            "```python and ends with ```."
        )

    async def solve(self, instance: Instance, sandbox: Sandbox) -> Action:
        """Return the end with the tools of the first reference plan, without arguments, which do not count."""
        lines = (f"output{number} = {tool}()" for number, tool in enumerate(instance.row["plans"][0]))
        return AgentFinishAction(outputs={"message": "\n".join(["```python", *lines, "```"])})

    async def score(self, rollout: Rollout) -> Score:
        """Score the F1 of the tools in the plan."""
        return grade(rollout.instance.row["plans"], plan_of(rollout))

    def more(self, scores: Sequence[Score]) -> dict[str, float]:
        """Return precision, recall and F1 of the tools, each the mean over the tools, and the share of exact plans."""
        counts = {name: Counter[str]() for name in ("right", "made", "wanted")}
        for score in scores:
            made, wanted = (set(cast("list[str]", score.details[name])) for name in ("tools", "wanted"))
            for name, tools in (("right", made & wanted), ("made", made), ("wanted", wanted)):
                counts[name].update(tools)
        used = sorted(counts["made"].keys() | counts["wanted"].keys())
        each = [_ratios(*(counts[name][tool] for name in counts)) for tool in used]
        macro = {f"tool {name}": mean(getattr(one, name) for one in each) if each else 0.0 for name in Ratios._fields}
        return {**macro, "exact plans": sum(bool(score.details["exact"]) for score in scores) / len(scores)}


class Ratios(NamedTuple):
    """Precision, recall and their harmonic mean; each is 0 if it is not defined."""

    precision: float
    recall: float
    f1: float


def description(split: str) -> str:
    """Return the description of the code base for a split."""
    if split in LISTS:
        only = " These are all of them, so do not look for others:" if split == "tool-use" else " They are:"
        return f"{PLAIN}{only}\n{codebase.describe(codebase.tools_of(PACKAGE), LISTS[split])}"
    return LIBRARY if split == "code-use" else PLAIN


def plan_of(rollout: Rollout) -> str:
    """Return the code of the agent's plan, "" without one."""
    summary = rollout.state.outputs.get("code_summary")
    text = summary if isinstance(summary, str) and summary.strip() else rollout.final_message
    return fenced(text, "python", "py", "python3", "") or text


def grade(plans: Sequence[Sequence[str]], code: str) -> Score:
    """Score the tools in a plan's code against the reference plan that they match best."""
    made = calls_in(code)

    def ratios(plan: Sequence[str]) -> Ratios:
        return _ratios(len(set(made) & set(plan)), len(set(made)), len(set(plan)))

    best = max(plans, key=lambda plan: (ratios(plan).f1, made == list(plan)))
    figures = ratios(best)
    details = {
        "truth": ", ".join(best),
        **figures._asdict(),
        "tools": sorted(set(made)),
        "wanted": sorted(set(best)),
        "exact": made == list(best),
    }
    return Score(figures.f1, ", ".join(made), details)


def calls_in(code: str) -> list[str]:
    """Return the tools that a plan calls, in the order of its lines; of code that is not Python, line by line."""
    try:
        trees = [ast.parse(code)]
    except (MemoryError, RecursionError, SyntaxError, ValueError):
        trees = list(_lines(code))
    calls = [
        (number, node.lineno, node.end_col_offset or 0, name)
        for number, tree in enumerate(trees)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and (name := _called(node.func)) in TOOLS
    ]
    return [name for *_, name in sorted(calls)]


def _lines(code: str) -> Iterator[ast.Module]:
    for line in code.splitlines():
        try:
            yield ast.parse(line.strip())
        except (MemoryError, RecursionError, SyntaxError, ValueError):
            continue


def _called(function: ast.expr) -> str:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _ratios(right: int, made: int, wanted: int) -> Ratios:
    precision, recall = right / made if made else 0.0, right / wanted if wanted else 0.0
    return Ratios(precision, recall, 2 * precision * recall / (precision + recall) if right else 0.0)


def _rows(file: Path) -> list[dict[str, Any]]:
    """Return the records of a file with a list of them, or with one on each line."""
    with file.open(encoding="utf-8") as text:
        is_list = text.read(1) == "["
    return json.loads(file.read_text(encoding="utf-8")) if is_list else jsonlines.read(file)


def _literal(text: str) -> Any:
    """Return the value that upstream has written as Python."""
    return ast.literal_eval(text)


def _plan(text: str) -> list[str]:
    return _names(_literal(text))


def _names(nodes: Sequence[Mapping[str, Any]]) -> list[str]:
    return [str(node["name"]).replace(" ", "_") for node in nodes]


TOOLS = frozenset(tool.name for tool in codebase.tools_of(PACKAGE))
"""The names of the 33 tools."""

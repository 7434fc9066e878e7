"""M3ToolEval: tasks of five domains that need several tools and several calls; the final answer counts.

The rule is that of upstream's tasks/base.py (https://github.com/xingyaoww/code-act, scripts/eval/m3tooleval): an answer
is right if it equals the expected one as it is, as a number, or as a Python value. Upstream's code has two mistakes,
and ``more`` has its figure too: a missing ``or`` keeps it from comparing Python values except by their text, so that
[1, 2] is not [1.0, 2.0]; and it cuts the decimals off an expected number, so that 237 is right for 237.942. Here
numbers are equal but for the last bits of a float, values in lists and dictionaries likewise, and a task that asks for
the form xx.xx takes the number rounded to two decimals.

Upstream tells an agent that its answer is wrong and lets it try again, within 10 turns in all; here, as for CodeNav
(arXiv:2406.12276), an agent answers once. The tools of ``m3eval`` are Handiwork's own, written from the benchmark's
specifications of them. The splits differ in the task's description of the tools: CodeNav's library description
("code-use"), a description of each tool ("tool-use"), or the paths of the files alone ("file-paths").
"""

from __future__ import annotations

import ast
import math
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from handiwork.evals.benchmark import Benchmark, Instance, Rollout, Score
from handiwork.evals.scoring import codebase, jsonlines
from handiwork.evals.scoring.answers import finish_with, tagged
from handiwork.events.base import Action
from handiwork.events.record import Limits
from handiwork.sandbox.base import Sandbox

PACKAGE = Path(__file__).parent / "m3eval"

TASKS, TABLES, PAGES = "tasks.jsonl", "travel_tables.json", "web_browsing/web_pages.jsonl"

CONTENTS = {
    "browser.py": "a class that browses the pages of a small web site",
    "dna_sequencer.py": "functions for sequences of plant DNA: validate, count, transcribe and translate",
    "message_decoder.py": "functions that decode messages: from hexadecimal text, reversed text, the Caesar cipher",
    "trade_calculator.py": "functions for trade: convert currencies, calculate tariffs, values and expressions",
    "travel_planner.py": "functions that plan a journey: find flights, find hotels, calculate the budget",
}
"""The modules with their contents."""

GUIDELINES = """\
Guidelines:
1. Each task needs the tools of one file only. Import them in Python, for example \
`from m3eval.message_decoder import reverse_string`.
2. To browse, make one WebBrowser and keep it. A page shows a few of its lines: [Viewing page m of n] with m below n \
means that scrolling down shows more. Read what you need from what it shows, a click or a scroll at a time."""

TWO_DECIMALS = "xx.xx"
CLOSE = 1e-9
"""The relative difference between equal numbers."""
LONGEST = 10_000
"""Characters of an answer that is read as a Python value."""


class M3ToolEval(Benchmark):
    """Tasks of five domains with tools; success rate, by domain."""

    name = "m3tooleval"
    title = "M3ToolEval"
    size = "82"
    source = "https://github.com/xingyaoww/code-act"
    licence = "MIT"
    citation = "Wang et al. 2024, Executable Code Actions Elicit Better LLM Agents, arXiv:2402.01030"
    metric = "success rate"
    splits = ("code-use", "tool-use", "file-paths")
    limits = Limits(iterations=20)

    def files(self, split: str) -> Mapping[str, str]:
        """Return the tasks and the tables of the tools; upstream has most of them as Python code."""
        return {TASKS: "", TABLES: "", PAGES: ""}

    def load(self, data: Path, split: str) -> list[Instance]:
        """Return the tasks in the file's order, by domain. Raises DataError, OSError."""
        fields = ("name", "family", "instruction", "expected_output", "expected_output_type")
        rows = jsonlines.read(data / TASKS, fields)
        return [Instance(row["name"], row | {"data": str(data), "split": split}, row["family"]) for row in rows]

    def prepare(self, instance: Instance, workspace: Path) -> None:
        """Put the code base of all tools into the workspace, with their tables."""
        package, data = codebase.install(PACKAGE, workspace), Path(instance.row["data"])
        for table in (TABLES, PAGES):
            shutil.copyfile(data / table, package / Path(table).name)

    def instruction(self, instance: Instance) -> str:
        """Return the task, the description of the code base, and the form of the answer."""
        return (
            f"{instance.row['instruction'].strip()}\n\n{description(instance.row['split'])}\n\n{GUIDELINES}\n\n"
            "Finish with the answer alone, for example a single number, in this form:\n<answer>ANSWER</answer>"
        )

    async def solve(self, instance: Instance, sandbox: Sandbox) -> Action:
        """Return the end with the expected answer."""
        return finish_with(str(expected_of(instance.row)))

    async def score(self, rollout: Rollout) -> Score:
        """Score 1 if the answer is right; ``as upstream`` in the details is the verdict of upstream's code."""
        row, answer = rollout.instance.row, tagged(rollout.final_message)
        expected = expected_of(row)
        is_right = bool(answer) and correct(answer, expected, TWO_DECIMALS in row["instruction"])
        details = {"truth": str(expected), "as upstream": bool(answer) and correct_upstream(answer, expected)}
        return Score(float(is_right), answer, details)

    def more(self, scores: Sequence[Score]) -> dict[str, float]:
        """Return the success rate by upstream's code."""
        return {
            "success rate as upstream's code has it": sum(bool(s.details["as upstream"]) for s in scores) / len(scores)
        }


def description(split: str) -> str:
    """Return the description of the code base for a split."""
    head = "The Python package m3eval in your working directory has tools for this."
    if split == "tool-use":
        tools = codebase.describe(codebase.tools_of(PACKAGE), "prototypes")
        return f"{head} These are all of them, so do not look for others:\n{tools}"
    files = (f"m3eval/{file}" + (f" - {about}" if split == "code-use" else "") for file, about in CONTENTS.items())
    return "\n".join([f"{head} Its files:", *files])


def expected_of(row: Mapping[str, Any]) -> Any:
    """Return a task's expected answer in its original type: JSON has no tuples."""
    value = row["expected_output"]
    return tuple(value) if row["expected_output_type"] == "tuple" else value


def correct(answer: str, expected: Any, two_decimals: bool = False) -> bool:
    """Return whether an answer is the expected one: the same text, or a Python value that is the same."""
    return _same(answer, expected, two_decimals) or _same(_literal(answer), expected, two_decimals)


def _same(value: Any, expected: Any, two_decimals: bool) -> bool:
    if isinstance(expected, (list, tuple)):
        wanted = cast("Sequence[Any]", expected)
        values = cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else ()
        return len(values) == len(wanted) and all(map(_same, values, wanted, [two_decimals] * len(wanted)))
    if isinstance(expected, dict):
        wanted_items = cast("dict[Any, Any]", expected)
        items = cast("dict[Any, Any]", value) if isinstance(value, dict) else {}
        return items.keys() == wanted_items.keys() and all(
            _same(items[key], wanted_items[key], two_decimals) for key in wanted_items
        )
    if isinstance(expected, bool) or isinstance(value, bool):
        return value is expected
    number, wanted_number = _number(value), _number(expected)
    if number is None or wanted_number is None:
        return value == expected
    if two_decimals and round(number, 2) == round(wanted_number, 2):
        return True
    return math.isclose(number, wanted_number, rel_tol=CLOSE)


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _literal(answer: str) -> Any:
    """Return the Python value that an answer writes, None if it writes none."""
    try:
        return ast.literal_eval(answer[:LONGEST].strip())
    except (MemoryError, RecursionError, SyntaxError, TypeError, ValueError):
        return None


def correct_upstream(answer: str, expected: Any) -> bool:
    """Return the verdict of upstream's code, faults included."""
    try:
        if answer == expected or _converted(answer) == _converted(expected):
            return True
    except (OverflowError, TypeError):  # a list or a dictionary is no number
        return answer == str(expected)
    literal = _literal(answer)
    return str(answer if literal is None else literal) == str(expected)


def _converted(value: Any) -> Any:
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            pass
    return value

"""MINT: reasoning and code, with one chance to correct a wrong proposal, and optional feedback of a second model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from handiwork.agents.state import State
from handiwork.evals.benchmark import Benchmark, Instance, Rollout, Score
from handiwork.evals.benchmarks.mint import feedback
from handiwork.evals.scoring import jsonlines
from handiwork.evals.scoring.answers import fenced, finish_with, tagged
from handiwork.evals.scoring.arithmetic import Value, value_of
from handiwork.evals.scoring.programs import run_program
from handiwork.events.action import AgentFinishAction, AgentRejectAction, MessageAction
from handiwork.events.base import Action
from handiwork.events.record import Limits
from handiwork.sandbox.base import Sandbox

_RAW = "https://raw.githubusercontent.com/xingyaoww/mint-bench/3f7f12c10bf763be1e6dbdeb42feb57624121f61/"
_NUMBER = r"[-+]?[\d,]*\.*\d+"

_UNITS = (
    rf"({_NUMBER}) [^0-9 ]+",
    rf"[^0-9 ]+ ({_NUMBER})",
    rf"({_NUMBER})\D{{1,2}}",
    rf"[^-+\d]{{1,2}}({_NUMBER})",
)

STEPS, PROPOSALS = 5, 2
"""An agent's steps and proposals (the paper, section 2.2; max_steps and max_propose_solution upstream)."""

SECONDS = 10
"""Seconds for a solution and its tests together."""

CODE = ("mbpp", "humaneval")

FORMS = {
    "gsm8k": "a number",
    "math": "a number",
    "mmlu": "the letter of the right option",
    "theoremqa": "a number, a list of numbers such as [1, 2, 3], or True or False",
    "mbpp": "the whole Python code",
    "humaneval": "the whole Python code, with imports and the function's first line",
}
"""The form of an answer in each set."""


class Mint(Benchmark):
    """Six sets of tasks of MINT; the simulated user says whether a proposal is right.

    With a feedback model the agent is also stopped after each of its steps, and reads that model's comment on it.

    The rules are those of upstream's mint/tasks and mint/envs: 5 steps in all, of which 2 may be proposals; ``correct``
    describes right answers. Every step of the agent counts. In two ways it is stricter than upstream's
    code, which reads answers from a tag only: an answer without a tag must be the answer and nothing else; and the
    letter of an option must be named, while upstream looks for it anywhere in the text, so that any sentence with a "c"
    in it is right if c is. ``more`` returns the accuracy by upstream's code. In one way it is milder: a formula of
    theoremqa may use sqrt, pi and the like by name; otherwise it may use less Python than upstream's eval runs, see
    ``arithmetic.value_of``.
    """

    name = "mint"
    title = "MINT"
    size = "gsm8k 48, math 100, mmlu 76, theoremqa 49, mbpp 91, humaneval 45"
    source = "https://github.com/xingyaoww/mint-bench"
    licence = "Apache-2.0"
    citation = "Wang et al., MINT: Evaluating LLMs in Multi-turn Interaction, ICLR 2024, arXiv:2309.10691"
    metric = "success rate"
    splits = tuple(FORMS)
    turns = STEPS - 1
    has_feedback = True
    limits = Limits(iterations=STEPS)

    def files(self, split: str) -> Mapping[str, str]:
        """Return the one file of the set."""
        path = f"{split}/test_prompts.json"
        return {path: f"{_RAW}data/processed/{path}"}

    def load(self, data: Path, split: str) -> list[Instance]:
        """Return the tasks of a set, in the file's order. Raises DataError, OSError."""
        rows = jsonlines.read(data / split / "test_prompts.json", ("id", "prompt", "reference"))
        return [Instance(f"{split}/{row['id']}", row | {"set": split}, split) for row in rows]

    def instruction(self, instance: Instance) -> str:
        """Return the task, and how and how often to answer."""
        row = instance.row
        task = row["prompt"].replace('"""', "") if row["set"] == "mbpp" else row["prompt"]
        head = "Complete this code:\n\n" if row["set"] == "humaneval" else ""
        return (
            f"{head}{task.strip()}\n\n"
            f"You have {STEPS} steps; in some you can run Python to work the answer out. You can propose an answer "
            f"{PROPOSALS} times, and are told whether it is right. {_answer_form(instance)}"
        )

    async def over(self, rollout: Rollout) -> bool:
        """Return whether the agent stops for feedback: after a step without a proposal, unless it was the last one."""
        state = rollout.state
        return rollout.feedback is not None and not state.pending and 0 < state.iteration < STEPS

    async def reply(self, rollout: Rollout, turn: int) -> str | None:
        """Return that the proposal is wrong, if it is and a step is left for another, and the feedback on the step."""
        state, instance = rollout.state, rollout.instance
        remaining, more = STEPS - state.iteration, PROPOSALS - _proposals(state)
        wrong = "" if state.change is not None and state.change.reason == "over" else _verdict(rollout.answer)
        if remaining < 1 or more < 1 or (wrong and (await self.score(rollout)).value == 1):
            return None
        left = (
            f"You have {remaining} step{'s' * (remaining > 1)} left and can propose {more} more "
            f"answer{'s' * (more > 1)}. {_answer_form(instance)}"
        )
        said = [wrong] if wrong else []
        if rollout.feedback is None:
            return " ".join([*said, left])
        comment = await rollout.feedback(feedback.prompt(instance, state, wrong))
        return "\n".join([*said, feedback.message(comment), left])

    async def solve(self, instance: Instance, sandbox: Sandbox) -> Action:
        """Return the end with the reference, for code upstream's own solution."""
        return finish_with(_reference(instance.row))

    async def score(self, rollout: Rollout) -> Score:
        """Score 1 if the last proposal is right."""
        row, text = rollout.instance.row, rollout.answer.strip()
        answer = tagged(text)
        if row["set"] in CODE:
            code = _code(answer)
            if not code.strip():
                return Score(0.0, details={"output": "there is no code"})
            result = await run_program(code, row["reference"], SECONDS)
            return Score(float(result.passed), code, {"output": result.output[-2000:]})
        right = bool(answer) and correct(row, answer, whole=answer == text)
        upstream = {"as upstream": bool(answer) and upstream_choice(row, answer)} if row["set"] == "mmlu" else {}
        return Score(float(right), answer, {"truth": str(row["reference"]), **upstream})

    def more(self, scores: Sequence[Score]) -> dict[str, float]:
        """Return, for mmlu, the success rate by upstream's code."""
        outcomes = [score.details["as upstream"] for score in scores if "as upstream" in score.details]
        return {"success rate as upstream's code has it": sum(outcomes) / len(outcomes)} if outcomes else {}


def _reference(row: Mapping[str, Any]) -> str:
    match row["set"]:
        case "mbpp":
            return row["code"].replace("\r\n", "\n")
        case "humaneval":
            return f"{row['prompt']}\n{row['canonical_solution']}"
        case _:
            return str(row["reference"])


def correct(row: Mapping[str, Any], answer: str, whole: bool = False) -> bool:
    """Return whether an answer is right; ``whole`` if it is the agent's whole text rather than the content of a tag.

    gsm8k and math: within 5 % of the reference if both are numbers, else the reference occurs in it. mmlu: it names the
    right option, by its letter or by its text. theoremqa: as TheoremQA's scorer, numbers within 4 % if the reference is
    no integer, lists in any order.
    """
    reference = row["reference"]
    match row["set"]:
        case "mmlu":
            return _choice(row, answer)
        case "theoremqa":
            return _same(value_of(_theorem_answer(answer)), reference)
        case _:
            return _near(str(reference).strip().lower(), answer.lower(), whole)


def _proposals(state: State) -> int:
    """Return how many answers the agent has proposed: each ends a turn, as a message to the user does."""
    return sum(
        isinstance(action, AgentFinishAction | AgentRejectAction)
        or (isinstance(action, MessageAction) and action.wait_for_response)
        for action, _ in state.history
    )


def _verdict(text: str) -> str:
    """Return what a wrong proposal is told; like upstream, it does not call one wrong that lacks the answer's form."""
    is_whole = tagged(text) == text.strip()
    return "Nothing in that stands between <answer> and </answer>." if is_whole else "That answer is wrong."


def _answer_form(instance: Instance) -> str:
    return f"Finish with your answer between <answer> and </answer>: {FORMS[instance.row['set']]}, and nothing else."


def _code(answer: str) -> str:
    return fenced(answer, "python", "py", "python3", "") or answer


def _near(reference: str, answer: str, whole: bool) -> bool:
    try:
        return abs(float(reference) - float(answer)) <= 0.05 * abs(float(reference))
    except ValueError:
        return reference == answer if whole else reference in answer


def _options(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts of a question's options, by their letters in lower case."""
    parts = row["prompt"].split("Options: ")[-1].split(" , ")
    pairs = [part.strip("[]' ").partition(")") for part in parts]
    return {letter.strip().lower(): text.strip().lower().strip(".").strip() for letter, _, text in pairs}


def _choice(row: Mapping[str, Any], answer: str) -> bool:
    answer, reference, options = answer.strip().lower(), row["reference"].strip().lower(), _options(row)
    letters = set(re.findall(r"(?<![a-z])([a-z]) ?\)", answer)) & set(options)
    if single := re.fullmatch(
        r"\W*(?:(?:the )?(?:correct |right )?(?:option|answer|choice)(?: is)?\W*)?([a-z])\W*", answer
    ):
        letters = {single[1]}
    if letters:
        return letters == {reference}
    right = options.get(reference, "")
    wrong = [text for text in options.values() if text not in right]
    return bool(right) and right in answer and not any(text in answer for text in wrong)


def upstream_choice(row: Mapping[str, Any], answer: str) -> bool:
    """Return whether upstream's code takes an answer to a question of mmlu as right."""
    answer, reference = answer.strip().lower(), row["reference"].strip().lower()
    answer = "a" if "a)" in answer or "a )" in answer else answer
    # Upstream ends an option at its first bracket.
    options = {letter: text.partition(")")[0].strip() for letter, text in _options(row).items()}
    right, wrong = options.get(reference, ""), [*options.values()]
    for text in wrong:  # as upstream, which skips the option after each that it removes
        if text in right:
            wrong.remove(text)
    is_named = _contains_number(answer, right) and not any(_contains_number(answer, text) for text in wrong)
    return reference in answer or is_named


def _contains_number(answer: str, text: str) -> bool:
    """Return whether the answer contains the text, or is within 5 % of it if both are numbers without a sign."""
    if answer.isdigit() and text.isdigit() and abs(float(text) - float(answer)) <= 0.05 * float(text):
        return True
    return text in answer


def _theorem_answer(text: str) -> str:
    """Return an answer without the usual text around a number: units, equations, approximations."""
    text = re.split(r"[=≈]", text)[-1].strip()
    text = re.sub(r"[`$°]|approximately", "", text).strip()
    if re.search(r"True|False", text) or text in ("true", "yes", "false", "no"):
        return str("True" in text or text in ("true", "yes"))
    text = text.split(" or ")[0]
    for unit in _UNITS:
        text = match[1] if (match := re.fullmatch(unit, text)) else text
    text = re.sub(r" [x×] ", "*", text.replace("10^", "10**"))
    if re.fullmatch(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?", text):
        text = text.replace(",", "")
    if option := re.search(r"([a-d]) ?\)", text) or re.fullmatch(r"\s*([a-dA-D])\s*", text):
        text = f"'({option[1].lower()})'"
    return text


def _same(value: Value | None, reference: Value) -> bool:
    match reference:
        case bool():
            return value == reference
        case str():
            return value in (reference, f"({reference})")
        case list():
            values, expected = _numbers(value), _numbers(reference)
            return len(values) == len(expected) > 0 and all(map(_same, values, expected))
        case _:
            if not isinstance(value, int | float) or not isfinite(value):
                return False
            near = abs(value - reference) <= 0.04 * abs(reference)
            return near if isinstance(reference, float) else round(value) == reference


def _numbers(value: Value | None) -> list[int | float]:
    """Return the sorted numbers of a list with numbers only, an empty list for any other value."""
    parts = value if isinstance(value, list) else []
    numbers = [part for part in parts if isinstance(part, int | float)]
    return sorted(numbers) if len(numbers) == len(parts) else []

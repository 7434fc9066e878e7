"""WebArena's scoring of an answer, an address and the contents of a page.

The rules are those of upstream's evaluation_harness/evaluators.py and helper_functions.py
(https://github.com/web-arena-x/webarena, which libwebarena 0.0.5 on PyPI has too). The judge gets the same question in
other words, and is the run's user model, while upstream's is GPT-4; a judgement without any of the words scores 0, as
in BrowserGym, and so does an empty answer, without asking. Upstream splits an answer into words with NLTK, to find a
reference of one character; ``words`` follows NLTK's rules for marks, but takes every full stop before white space for
a sentence's end.
"""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, urlparse

from handiwork.evals.benchmark import Ask

OR = " |OR| "
"""Separates alternatives."""

NOT_POSSIBLE = "N/A"
"""The answer to an impossible task."""

_FUZZY = """Help a teacher to mark a student's answer to a question. The student may say it in other words or in \
another form: what matters is whether the answer means the same as the reference answer.
question: {intent}
reference answer: {reference}
Wherever there is 'N/A', it means 'not achievable'.
student answer: {answer}
End with your judgement: correct, incorrect or partially correct."""

_UNACHIEVABLE = """task: {intent}
actual unachievable reason: {reference}
reported unachievable reason: {answer}
The task above cannot be achieved, for the actual unachievable reason. Somebody tried it, could not complete it, and \
gave the reported unachievable reason. Compare the two: does the reported reason agree with the actual one, be it only \
implicitly? If it does, reply 'same', otherwise reply 'different'."""


async def string_match(task: Mapping[str, Any], answer: str, ask: Ask) -> float:
    """Score an answer; ``ask`` sends a question to the judging model. Raises LLMError."""
    answer = clean(answer)
    if not answer:
        return 0.0
    score = 1.0
    for approach, reference in task["eval"]["reference_answers"].items():
        match approach:
            case "exact_match":
                score *= exact_match(reference, answer)
            case "must_include":
                score *= all(must_include(text, answer, as_word=len(reference) == 1) for text in reference)
            case "fuzzy_match" if reference == NOT_POSSIBLE:
                score *= exact_match(reference, answer) or await _unachievable(task, answer, ask)
            case "fuzzy_match":
                for text in reference:
                    score *= score and await _fuzzy(task["intent"], text, answer, ask)
            case _:
                raise ValueError(f"task {task['task_id']} has the unknown matching rule {approach}")
    return score


def url_match(evaluation: Mapping[str, Any], url: str) -> float:
    """Score the address of the agent's open page: it must contain the reference's host, path and queries."""
    rule = evaluation.get("url_note", "GOLD in PRED")
    if rule != "GOLD in PRED":
        raise ValueError(f"{rule!r} is no known rule to match addresses")
    references = [_parts(text) for text in evaluation["reference_url"].split(OR)]
    base, query = _parts(url)
    expected: dict[str, set[str]] = defaultdict(set)
    for _, queries in references:
        for name, values in queries.items():
            expected[name].update(values)
    right = all(values & set(query.get(name, ())) for name, values in expected.items())
    return float(right and any(reference in base for reference, _ in references))


def match_contents(contents: Mapping[str, Any], text: str) -> float:
    """Score the text of a page against the required contents."""
    text = html.unescape(text)
    if "exact_match" in contents:
        return exact_match(contents["exact_match"], text)
    if "must_include" not in contents:
        raise ValueError(f"{', '.join(contents)} is no known rule to match contents")
    phrases: Sequence[str] = contents["must_include"]
    return float(all(any(must_include(phrase, text) for phrase in alternatives.split(OR)) for alternatives in phrases))


def clean(answer: str) -> str:
    """Return an answer in lower case, without white space and one pair of quotation marks around it."""
    answer = answer.strip()
    if (answer.startswith("'") and answer.endswith("'")) or (answer.startswith('"') and answer.endswith('"')):
        answer = answer[1:-1]
    return answer.lower()


def exact_match(reference: str, answer: str) -> float:
    """Score 1 if the two are the same."""
    return float(clean(answer) == clean(reference))


def must_include(reference: str, answer: str, *, as_word: bool = False) -> float:
    """Score 1 if the answer contains the reference; a single character, ``as_word``, must be a word of its own."""
    reference, answer = clean(reference), clean(answer)
    return float(reference in (words(answer) if as_word and len(reference) == 1 else answer))


def words(text: str) -> list[str]:
    """Return the words and marks of a text."""
    for pattern, with_spaces in (
        (r"[«»“”‘’„]|`+|\"|[;@#$%&?!*]|[][(){}<>]|--|\.{2,}", r" \g<0> "),
        (r"([^.])(\.)(?=[])}>\"'»”’ ]*(\s|$))", r"\1 \2 "),
        (r"([:,])(?=\D|$)", r" \1 "),
        (r"([^' ])('s|'m|'d|'ll|'re|'ve|n't|')(?= )", r"\1 \2 "),
    ):
        text = re.sub(pattern, with_spaces, f"{text} ")
    return text.split()


def _parts(url: str) -> tuple[str, dict[str, list[str]]]:
    parsed = urlparse(url.rstrip("/"))
    return parsed.netloc + parsed.path, parse_qs(parsed.query)


async def _fuzzy(intent: str, reference: str, answer: str, ask: Ask) -> float:
    judgement = (await ask(_FUZZY.format(intent=intent, reference=reference, answer=answer))).lower()
    return float("correct" in judgement and "partially correct" not in judgement and "incorrect" not in judgement)


async def _unachievable(task: Mapping[str, Any], answer: str, ask: Ask) -> float:
    reason = task["eval"].get("string_note", "")
    judgement = (await ask(_UNACHIEVABLE.format(intent=task["intent"], reference=reason, answer=answer))).lower()
    return float("same" in judgement and "different" not in judgement)

"""The strategies by which the last node decides on the answers that reach it.

"references" asks the model for an answer with all answers as references. "majority_vote" takes the answer that most
agree on, "random_choice" any. "self_consistency" and "select_best" let the model choose one: the one most consistent
with the others, or the best.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random

from handiwork.agents.swarm.graph import DECISION, Strategy, SwarmNode

CHOICES: Mapping[Strategy, str] = {
    "self_consistency": (
        "Several answers to one task follow, each with a number. Compare what they conclude, and choose the answer "
        "that agrees with most of the others. Reply with its number alone."
    ),
    "select_best": (
        "Several answers to one task follow, each with a number. Check each, and choose the one that is most likely to "
        "be right and complete. Reply with its number alone."
    ),
}
"""The instructions of the strategies in which the model chooses a number."""

_TAGGED = re.compile(r"<([a-z][\w-]*)>((?:(?!<\1>).)*)</\1>$", re.IGNORECASE | re.DOTALL)
_FENCE = re.compile(r"^[ \t]*`{3,}[^\n]*\n(.*?)^[ \t]*`{3,}[ \t]*$", re.MULTILINE | re.DOTALL)
_LABEL = re.compile(r"^(?:the )?(?:final )?answer(?: is)?\s*[:=]?\s+", re.IGNORECASE)
_MARKS = re.compile(r"</?[a-z][\w-]*>|\*\*|__|`", re.IGNORECASE)


def asks_model(node: SwarmNode, strategy: Strategy) -> bool:
    """Return whether the node's output depends on its instruction."""
    return node.operation != DECISION or strategy not in ("majority_vote", "random_choice")


def takes_examples(node: SwarmNode, strategy: Strategy) -> bool:
    """Return whether outputs of the node are examples for its prompt.

    They are not if another agent gives the output, which gets no examples, or if the model replies with the number of
    an answer.
    """
    return node.operation not in ("web", "delegate") and (node.operation != DECISION or strategy not in CHOICES)


def vote_key(answer: str) -> str:
    """Return the conclusion of an answer in a form in which equal conclusions are equal.

    It is the last line that has more than marks, or all that the last tag encloses, or the last fenced block, if the
    answer ends with one. Tags, emphasis, a label like "Answer:", a full stop at the end, and differences of case and
    space do not count.
    """
    text = answer.strip()
    tagged = _TAGGED.search(text)
    if tagged is not None:
        text = tagged[2].strip()
    if text.endswith("```") and (blocks := _FENCE.findall(text)):
        return "\n".join(line.rstrip() for line in blocks[-1].strip().splitlines())
    parts = [text] if tagged is not None else text.splitlines()[::-1]
    return next((plain for part in parts if (plain := _plain(part))), "")


def _plain(text: str) -> str:
    line = _MARKS.sub("", text).strip(" \t\n*_$#>")
    return " ".join(_LABEL.sub("", line).removesuffix(".").strip(" \t*_$").casefold().split())


def majority(answers: Sequence[str], random: Random) -> str:
    """Return the first answer with the conclusion that most answers have; ``random`` decides a tie.

    An answer without a conclusion has no vote if another has one.
    """
    keys = [vote_key(answer) for answer in answers]
    votes = list(filter(None, keys)) or keys
    most = max(votes.count(key) for key in votes)
    tied = list(dict.fromkeys(key for key in votes if votes.count(key) == most))
    return answers[keys.index(random.choice(tied))]


def chosen(reply: str, answers: Sequence[str], random: Random) -> str:
    """Return the answer with the first number, counted from 1, in the model's reply.

    Without such a number, or if that answer is empty, it is the majority's.
    """
    number = re.search(r"\d+", reply)
    if number is not None and 1 <= int(number[0]) <= len(answers) and (answer := answers[int(number[0]) - 1]):
        return answer
    return majority(answers, random)

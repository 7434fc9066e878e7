"""Detect repetition at the end of an agent's history."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice, takewhile

from handiwork.events.action import AgentThinkAction, CmdRunAction, IPythonRunCellAction, JobAction, MessageAction
from handiwork.events.base import Action, Event, Observation
from handiwork.events.describe import describe
from handiwork.events.observation import (
    CmdOutputObservation,
    ErrorObservation,
    IPythonRunCellObservation,
    JobObservation,
    PlanObservation,
)
from handiwork.events.record import LoopEvent, LoopRule

WINDOW = 12
"""The number of newest entries in which repetitions are counted."""
RECENT = 3 * WINDOW
"""The number of newest entries that are looked at: some are messages of the platform, or the agent's own."""
LEAST: dict[LoopRule, int] = {"repeat": 4, "error": 3, "monologue": 3, "cycle": 3, "mix": WINDOW, "waiting": 10}
"""The number of repetitions that counts as being stuck."""
LONGEST_CYCLE = 4
"""The most different actions of a cycle or a mix: WINDOW has room for each three times."""
RETRY_TEMPERATURE, PATIENCE = 0.8, 2
"""The temperature of model calls after a detected loop, and the number of replies an agent has to leave the loop."""

_QUESTION = "{} Go on, rewind to before the loop, give it a hint, or stop."
_SENTENCES: dict[LoopRule, str] = {
    "repeat": "The same was done {times} times with the same result: {what}.",
    "error": "The same failed {times} times in a row: {what}.",
    "monologue": "The same was said {times} times with nothing done in between: {what}.",
    "cycle": "The same {length} things were done in turn {times} times with the same results: {what}.",
    "mix": "The last {times} actions were the same {length} things in mixed order with the same results: {what}.",
    "waiting": "Waiting for more output of the running program gave nothing {times} times in a row.",
}
_MAX_LENGTH = 80
_PICTURES = {"screenshot", "marked_screenshot"}  # a blinking cursor changes them; the text has the content
_SYNTAX_ERRORS = {"SyntaxError", "IndentationError", "TabError"}

# A time in whole seconds stays: it may be a counter that shows progress.
_NOISE = re.compile(
    r"""(?P<time> \b (?:\d+h)? (?:\d+m)? \d+\.\d+ [ ]? (?:s|secs?|seconds)\b (?:[ ]\(\d+:\d\d:\d\d\))?
                | \b \d+ (?:\.\d+)? [ ]? (?:ms|us|µs|ns)\b)
      | (?P<address> \b 0x[0-9a-fA-F]{8,16}\b)
      | (?P<folder> /tmp/tmp[\w.]{8,} | /pytest-of-[^/\s]+/pytest-\d+)
      | (?P<cell> \b In[ ]?\[\d+\])""",
    re.VERBOSE,
)

Pair = tuple[Action, Observation | None]


@dataclass(frozen=True, slots=True)
class Repetition:
    """A repetition: ``first`` is the id of its first action, ``times`` the number of repetitions.

    A cycle counts its actions as one. ``description`` is a sentence for the model and the user.
    """

    first: int
    rule: LoopRule
    times: int
    description: str

    @property
    def event(self) -> LoopEvent:
        """The record of the repetition, with its text for the agent and the user."""
        return LoopEvent(first=self.first, rule=self.rule, times=self.times, content=self.description)

    @property
    def question(self) -> str:
        """The question to the user if the agent does not leave it."""
        return _QUESTION.format(self.description)

    def is_new(self, told: LoopEvent | None) -> bool:
        """Return whether it began after the last one reported to the agent."""
        return told is None or self.first > told.id

    def persists(self, told: LoopEvent | None, history: Sequence[Pair]) -> bool:
        """Return whether the agent is still in it, PATIENCE replies after the report."""
        if told is None:
            return False
        since = takewhile(lambda pair: pair[0].id > told.id, islice(reversed(history), RECENT))
        return len({action.completion or action.id for action, _ in _of_model(list(since))}) >= PATIENCE


def find_loop(history: Sequence[Pair]) -> Repetition | None:
    """Return the repetition at the end of the history; None if the newest action or its result is new.

    A user's message ends a repetition. Messages of the environment are skipped, as is what the agent does by itself
    between the model's replies. Two results are equal if their outputs differ only in times with a fraction, memory
    addresses and names of temporary folders. The text of a plan after the same change does not count.
    """
    newest = _window(history)
    if not newest:
        return None
    rule = _rule(newest[0])
    same = _same_failure if rule == "error" else _same
    times = len(list(takewhile(lambda pair: same(newest[0], pair), newest)))
    if times >= LEAST[rule]:
        return _repetition(rule, times, newest[times - 1], _describe_action(newest[0]))
    return _cycle(newest) or _mix(newest)


def _cycle(newest: Sequence[Pair]) -> Repetition | None:
    if len(newest) < 2 or _same(newest[0], newest[1]):
        return None
    for length in range(2, LONGEST_CYCLE + 1):
        turns = takewhile(lambda pairs: _same(*pairs), zip(newest[length:], cycle(newest[:length])))
        times = 1 + len(list(turns)) // length
        # A wait in turn with a sleep is no loop before it fills the window.
        least = WINDOW // length if any(map(_is_waiting, newest[:length])) else LEAST["cycle"]
        if times >= least:
            what = _describe_actions(newest[:length])
            return _repetition("cycle", times, newest[length * times - 1], what, length)
    return None


def _mix(newest: Sequence[Pair]) -> Repetition | None:
    """Return the repetition if few different actions fill the window, the newest one not for the first time."""
    if len(newest) < LEAST["mix"] or not any(_same(newest[0], pair) for pair in newest[1:]):
        return None
    different: list[Pair] = []
    for pair in newest:
        if not any(_same(pair, other) for other in different):
            different.append(pair)
    if len(different) > LONGEST_CYCLE:
        return None
    return _repetition("mix", len(newest), newest[-1], _describe_actions(different), len(different))


def _repetition(rule: LoopRule, times: int, first: Pair, what: str, length: int = 1) -> Repetition:
    sentence = _SENTENCES[rule].format(times=times, what=what, length=length)
    return Repetition(first[0].id, rule, times, sentence)


def _window(history: Sequence[Pair]) -> Sequence[Pair]:
    """Return the agent's last actions, newest first."""
    pairs = takewhile(lambda pair: pair[0].source != "user", islice(reversed(history), RECENT))
    return _of_model([pair for pair in pairs if not _is_warning(pair[0])])[:WINDOW]


def _of_model(pairs: Sequence[Pair]) -> Sequence[Pair]:
    """Return the actions that the model has written, without the agent's own between them; all if it wrote none."""
    return [pair for pair in pairs if pair[0].completion is not None] or pairs


def _is_warning(action: Action) -> bool:
    return isinstance(action, MessageAction) and action.source == "environment"


def _rule(pair: Pair) -> LoopRule:
    """Return the rule that applies to repetitions of this entry."""
    action, observation = pair
    if isinstance(action, MessageAction):
        return "monologue"
    if isinstance(observation, ErrorObservation):
        return "error"
    if isinstance(observation, IPythonRunCellObservation) and observation.error in _SYNTAX_ERRORS:
        return "error"
    return "waiting" if _is_waiting(pair) else "repeat"


def _is_waiting(pair: Pair) -> bool:
    """Return whether the action only waits for a command, a cell or a job that still runs."""
    match pair:
        case CmdRunAction(is_input=False, command=text), CmdOutputObservation(status="running"):
            return not text.strip()
        case IPythonRunCellAction(code=text), IPythonRunCellObservation(status="running"):
            return not text.strip()
        case JobAction(operation="read"), JobObservation(status="running"):
            return True
        case _:
            return False


def _same(pair: Pair, other: Pair) -> bool:
    (action, result), (other_action, other_result) = pair, other
    if _is_waiting(pair) and result is not None and result.text.strip():
        return False  # new output, though it may look like the last
    return _equal(action, other_action) and _same_result(result, other_result)


def _same_failure(pair: Pair, other: Pair) -> bool:
    (action, result), (other_action, other_result) = pair, other
    if isinstance(result, ErrorObservation) and not isinstance(action, AgentThinkAction):
        return isinstance(other_result, ErrorObservation) and _equal(action, other_action)
    return _same(pair, other)  # for a malformed reply only the error is known


def _same_result(result: Observation | None, other: Observation | None) -> bool:
    if result is None or other is None:
        return result is other
    if isinstance(result, PlanObservation) and isinstance(other, PlanObservation):
        return True
    texts = ((result.content, other.content), (result.tail, other.tail))
    return (
        _equal(result, other)
        and result.blob == other.blob
        and all(a == b or _without_noise(a) == _without_noise(b) for a, b in texts)
    )


def _equal(event: Event, other: Event) -> bool:
    """Return whether two events have the same type and own fields; position in the log and texts may differ.

    So may the job of an observation: each start of a command in the background has another.
    """
    common = (Action if isinstance(event, Action) else Observation).model_fields
    given = _PICTURES if isinstance(event, Action) else {*_PICTURES, "job"}
    names = (name for name in type(event).model_fields if name not in common and name not in given)
    if type(event) is not type(other) or any(getattr(event, name) != getattr(other, name) for name in names):
        return False
    return not isinstance(event, AgentThinkAction) or event.thought == getattr(other, "thought", "")


def _without_noise(text: str) -> str:
    return _NOISE.sub(lambda match: f"<{match.lastgroup}>", text)


def _describe_actions(newest: Sequence[Pair]) -> str:
    *before, last = map(_describe_action, reversed(newest))
    return f"{', '.join(before)}, and {last}"


def _describe_action(pair: Pair) -> str:
    """Return a short description of the action."""
    action, observation = pair
    if isinstance(action, AgentThinkAction) and observation:
        return "a reply that is no action"
    verb, object_, _ = describe(action)
    return f"{verb} `{_short(object_)}`" if object_ else verb


def _short(text: str) -> str:
    # Several lines joined into one would be another command, and models run what stands here.
    line, *more = text.strip().split("\n", 1)
    return line if len(line) <= _MAX_LENGTH and not more else f"{line[: _MAX_LENGTH - 3]}..."

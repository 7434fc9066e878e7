"""Keep the conversation within the model's window: collapse old observations first, then replace old steps by notes.

The conversation only grows between two condensations, so that the provider's prompt cache stays valid.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeGuard

from handiwork.agents.base import AgentLLM
from handiwork.agents.history import History, condense, is_from_user, lasting
from handiwork.agents.protocols.ask import ask_in_form
from handiwork.agents.rendering import shorten
from handiwork.agents.state import State
from handiwork.events.action import MessageAction
from handiwork.events.base import Action
from handiwork.events.record import CondensationEvent, CondensationKind
from handiwork.llm.errors import ContextWindowError
from handiwork.llm.strict_json import parse
from handiwork.llm.types import JsonSchema, Message
from handiwork.session.policies.token_estimate import CHARACTERS, TokenEstimator, estimate, overhead, text_of
from handiwork.session.secrets import ANNOUNCED

FULL, TARGET, RECENT = 0.75, 0.5, 0.25
"""Shares of the window: above FULL the history is condensed, to TARGET; the newest steps, up to RECENT, stay whole."""

NEWEST = 2
"""Steps that stay whole, at any length, while other steps can be shortened."""

LONGEST_REPLY, LONGEST_NOTES, LONGEST_BOUND_NOTES = 8_192, 12_000, 2_000
"""Tokens kept free for a reply; characters of the notes; characters of notes that a schema keeps short."""

HEADING = "Earlier steps are left out here to save room. Notes on them:"
PLAN = "The plan as it was then:"
TOLD = "The platform told you before:"
WISHES = "The user said meanwhile:"
QUOTE = "> "

ASK = """\
Below are the first steps of a developer's work. They are about to be deleted, and the work goes on from your notes.

{steps}

Write the notes now, at most {words} words: facts only, exact names of files, functions and commands.
- the goal, and what the user wishes, word for word
- what was done and found
- the files changed, and how
- what fails now
- the next steps"""

CANNOT = (
    "The conversation no longer fits the model's window{size}, and it cannot be made shorter: {why}. "
    "Go on with a model that has a larger window, or begin anew with a smaller task."
)


class CannotCondenseError(Exception):
    """The conversation cannot be shortened to fit the window; the text tells the user the remedy."""


class NotesLLM(AgentLLM, Protocol):
    """The model that writes the notes."""

    async def open(self) -> None:
        """Find out the model's capabilities."""
        ...


class Condenser:
    """Condenses one task's history before its steps as needed; the caller appends the event to the log.

    Without ``sends_history`` the prompts do not grow with the history, and only an overflow condenses it.
    """

    def __init__(self, llm: NotesLLM, *, sends_history: bool = True) -> None:
        self._llm, self._sends_history = llm, sends_history
        self._estimator = TokenEstimator()

    async def condense(self, state: State, *, overflow: bool = False) -> CondensationEvent | None:
        """Return the condensation that the history needs; None if it fits the window, or the window is unknown.

        ``overflow``: the model has just refused the history as too long. Raises CannotCondenseError, and the errors of
        the model's ``complete``.
        """
        if not overflow and not self._sends_history:
            return None
        await self._llm.open()
        window = self._llm.capabilities.window
        if overflow:
            # The history exceeds the window, regardless of its estimated size.
            size = overhead(state, window) + estimate(state.history, window)
            draft = _Draft(state, min(window or size, size), size, window)
        elif window is None or (size := self._estimator.size(state, window)) <= FULL * _room(window):
            return None
        else:
            draft = _Draft(state, window, size, window)
        for cut, share in zip(draft.cuts(), (FULL, 1.0), strict=True):
            if event := draft.collapse(cut, TARGET * draft.window):
                return event
            if draft.worth_notes(cut, share * _room(draft.window)):
                return await self._notes(draft, cut)
        if not overflow and size <= _room(draft.window):
            return None
        if event := draft.collapse(len(state.history), size - 1):
            return event
        raise self._error("only the task and the newest step are left")

    async def _notes(self, draft: _Draft, cut: int) -> CondensationEvent:
        steps = draft.replaceable(cut)
        notes = (await self._ask(draft, cut)).strip()
        if not notes:
            raise self._error("the model's notes on the first steps were empty")
        told = shorten(_told(draft.state, steps), draft.longest_notes // 2)
        wishes = shorten(_wishes(steps), draft.longest_notes)
        plan = draft.state.plan
        summary = f"{HEADING}\n{notes}" + (f"\n\n{PLAN}\n{plan.text()}" if plan.tasks else "")
        summary += f"\n\n{TOLD}\n{told}" if told else ""
        summary += f"\n\n{WISHES}\n{wishes}" if wishes else ""
        if len(summary) >= len(text_of(steps, draft.model_window)):
            raise self._error("the model's notes on the first steps are as long as the steps themselves")
        return CondensationEvent(first=steps[0][0].id, last=steps[-1][0].id, summary=summary)

    async def _ask(self, draft: _Draft, cut: int) -> str:
        """Return the model's notes on the steps before ``cut``, which are shortened to fit its window."""
        longest, schema = draft.longest_notes, None
        if not self._llm.capabilities.tools and self._llm.capabilities.schema:
            longest = min(longest, LONGEST_BOUND_NOTES)
            schema = _schema(longest)
        steps = draft.replaceable(cut)
        room = int(_room(draft.window) * CHARACTERS) - longest - len(ASK)
        for share in (1, 2, 4):
            text = text_of(steps, draft.model_window)
            if len(text) > room // share:
                text = shorten(text_of(condense(steps, _condensation(steps, "collapse"), frozenset())), room // share)
            ask = ASK.format(steps=text, words=longest // 7)
            try:
                completion = await ask_in_form(self._llm, Message.text("user", ask), schema)
            except ContextWindowError:
                continue
            return completion.content if schema is None else _parse_notes(completion.content)
        raise self._error("even its first steps are too long to be summed up")

    def _error(self, reason: str) -> CannotCondenseError:
        window = self._llm.capabilities.window
        size = "" if window is None else f" of {window} tokens"
        return CannotCondenseError(CANNOT.format(size=size, why=reason))


@dataclass(frozen=True)
class _Draft:
    """The possible condensations of one history of ``size`` tokens for a ``window`` of tokens.

    ``model_window`` is the model's own, by which a prompt shows outputs; None if it is unknown.
    """

    state: State
    window: float
    size: float
    model_window: float | None

    def cuts(self) -> Iterator[int]:
        """Yield the numbers of first entries to condense: all but the recent steps, then all but the newest."""
        history, scale = self.state.history, self._scale
        recent = max(0, len(history) - NEWEST)
        recent_size = scale * estimate(history[recent:], self.model_window)
        while recent:
            recent_size += scale * estimate([history[recent - 1]], self.model_window)
            if recent_size > RECENT * self.window:
                break
            recent -= 1
        yield self._reply_boundary(recent)
        yield self._reply_boundary(max(0, len(history) - 1))

    def _reply_boundary(self, cut: int) -> int:
        """Return the cut, moved back so that it does not separate the actions of one reply."""
        history = self.state.history
        while 0 < cut < len(history) and history[cut][0].completion is not None:
            if history[cut - 1][0].completion != history[cut][0].completion:
                break
            cut -= 1
        return cut

    def replaceable(self, cut: int) -> History:
        """Return the first ``cut`` entries that notes can replace: all but what is ``lasting`` and pending actions."""
        entries = self.state.history[:cut]
        last = max((action.id for action, _ in entries), default=0)
        kept = lasting(self.state.history, last) | {action.id for action in self.state.pending}
        return [entry for entry in entries if entry[0].id not in kept]

    def collapse(self, cut: int, limit: float) -> CondensationEvent | None:
        """Return the event that collapses the first entries; None if more than ``limit`` tokens or no fewer remain."""
        if not cut:
            return None
        event = _condensation(self.state.history[:cut], "collapse")
        remaining = self._scale * (
            overhead(self.state, self.window)
            + estimate(condense(self.state.history, event, frozenset()), self.model_window)
        )
        return event if remaining <= min(limit, self.size - 1) else None

    def worth_notes(self, cut: int, limit: float) -> bool:
        """Return whether at most ``limit`` tokens would remain with notes in place of the first entries."""
        freed = self._scale * (estimate(self.replaceable(cut), self.model_window) - self.longest_notes / CHARACTERS)
        return freed > 0 and self.size - freed <= limit

    @property
    def longest_notes(self) -> int:
        """The notes' maximal length in characters."""
        return min(LONGEST_NOTES, int(self.window * CHARACTERS) // 8)

    @property
    def _scale(self) -> float:
        return self.size / (overhead(self.state, self.window) + estimate(self.state.history, self.model_window))


def _room(window: float) -> float:
    """Return the window without the tokens kept for the reply."""
    return window - min(LONGEST_REPLY, window / 8)


def _condensation(entries: History, how: CondensationKind) -> CondensationEvent:
    return CondensationEvent(first=entries[0][0].id, last=entries[-1][0].id, how=how)


def is_notes(action: Action) -> TypeGuard[MessageAction]:
    """Return whether the action is the message with notes on earlier steps."""
    return isinstance(action, MessageAction) and action.source == "environment" and action.content.startswith(HEADING)


def quote(text: str) -> str:
    """Return a text as notes quote it."""
    return "\n".join(QUOTE + line for line in text.splitlines())


def _told(state: State, steps: History) -> str:
    """Return the names of secrets and the knowledge in these steps, and what earlier notes quote of them."""
    names, knowledge = "", list[str]()
    for action, _ in steps:
        if is_notes(action):
            quoted = _quoted(action, TOLD).partition(f"\n\n{WISHES}\n")[0]
            first, _, rest = quoted.partition("\n")
            is_announced = first.startswith(QUOTE + ANNOUNCED)
            names = first if is_announced else names
            knowledge.append(rest if is_announced else quoted)
        elif not isinstance(action, MessageAction) or action.source != "environment":
            continue
        elif action.content.startswith(ANNOUNCED):  # each process announces them: the newest count
            names = quote(action.content)
        elif action.id in state.knowledge.values():
            knowledge.append(quote(action.content))
    return "\n".join(filter(None, (names, *knowledge)))


def _wishes(steps: History) -> str:
    """Return the user's messages in these steps, word for word, and the messages that earlier notes quote."""
    texts: list[str] = []
    for action, _ in steps:
        if is_notes(action):
            texts.append(_quoted(action, WISHES))
        elif is_from_user(action):
            texts.append(quote(action.content))
    return "\n".join(filter(None, texts))


def _quoted(notes: MessageAction, heading: str) -> str:
    """Return what follows a heading of the notes; the last one counts, since the model may copy one into its notes."""
    _, found, quoted = notes.content.rpartition(f"\n\n{heading}\n")
    return quoted if found else ""


def _schema(longest: int) -> JsonSchema:
    notes = {"type": "string", "maxLength": longest}
    return {"type": "object", "properties": {"notes": notes}, "required": ["notes"], "additionalProperties": False}


def _parse_notes(reply: str) -> str:
    try:
        return str(parse(reply)["notes"])
    except (ValueError, KeyError, TypeError):
        return reply

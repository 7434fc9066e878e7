"""A trajectory in readable form for a report: the agent's thoughts, actions and observations, in order."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from handiwork.events.action import AgentThinkAction
from handiwork.events.base import Action, Event, Observation, UnknownEvent
from handiwork.events.codec import from_json
from handiwork.events.describe import describe
from handiwork.events.observation import (
    AgentStateChangedObservation,
    BrowserOutputObservation,
    CmdOutputObservation,
    ErrorObservation,
    FileReadObservation,
    HookRejectObservation,
    IPythonRunCellObservation,
    UserRejectObservation,
)
from handiwork.events.record import (
    CompletionEvent,
    CondensationEvent,
    KnowledgeEvent,
    LoopEvent,
    StepStarted,
    ThrottledEvent,
)
from handiwork.workspace.files.names import UNSEEN

MOST = 20_000
"""The most characters of one text in a report; the trajectory's file has all."""

_COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


@dataclass(slots=True)
class Moment:
    """An action with its observation, or a fact in between, which has only a ``note``.

    ``step`` counts the agent's steps from 1, 0 is before the first; ``subtask`` is the id of the action that opened the
    subtask, 0 the root. ``bad`` marks a failure.
    """

    step: int
    subtask: int
    who: str
    thought: str = ""
    kind: str = ""
    does: str = ""
    sees: str = ""
    note: str = ""
    bad: bool = False


def read(file: Path) -> list[dict[str, Any]]:
    """Return the moments of the trajectory in a file, as JSON; an invalid line becomes a moment with the error."""
    builder = _MomentBuilder()
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                builder.take(from_json(line))
            except ValueError:
                builder.note(Event(), f"line {number} of the trajectory is no event", bad=True)
    return [asdict(moment) for moment in builder.moments]


def harmless(text: str) -> str:
    """Return a text without colours, with unseen characters made visible, and shortened in its middle if it is long."""
    text = UNSEEN.sub("\ufffd", _COLOURS.sub("", text).replace("\r\n", "\n"))
    if len(text) <= MOST:
        return text
    half = MOST // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters are left out ...]\n{text[-half:]}"


class _MomentBuilder:
    """Builds moments from events, in order."""

    def __init__(self) -> None:
        self.moments: list[Moment] = []
        self._step = 0
        self._actions: dict[int, Moment] = {}
        self._replies: dict[int, CompletionEvent] = {}

    def take(self, event: Event) -> None:
        match event:
            case StepStarted():
                self._step += 1
            case CompletionEvent():
                self._replies[event.id] = event
                for attempt in event.failed_attempts:
                    self.note(event, f"asked again after: {attempt}")
            case LoopEvent():
                self.note(event, f"it repeats itself: {event.content}")
            case KnowledgeEvent():
                self.note(event, f"knowledge {event.name} joined, for the word {event.trigger}")
            case ThrottledEvent():
                self.note(event, event.content)
            case CondensationEvent():
                self.note(event, f"for the model, events {event.first} to {event.last} are made shorter ({event.how})")
            case AgentStateChangedObservation(content=content) if content:
                self.note(event, f"{event.agent_state}: {content}", bad=event.agent_state == "error")
            case AgentStateChangedObservation():
                pass
            case UnknownEvent():
                self.note(event, f"an event of a newer version: {event.unknown.get('type')}")
            case Action():
                self._act(event)
            case Observation():
                self._observe(event)
            case _:
                pass

    def note(self, event: Event, text: str, bad: bool = False) -> None:
        self.moments.append(Moment(self._step, event.subtask, "environment", note=harmless(text), bad=bad))

    def _act(self, action: Action) -> None:
        reply = self._replies.pop(action.completion, None) if action.completion else None
        thoughts = [*(_thinking(reply) if reply else []), action.thought.strip()]
        kind, *texts = describe(action)
        does = "" if isinstance(action, AgentThinkAction) else "\n".join(filter(None, texts))
        moment = Moment(self._step, action.subtask, action.source, kind=kind, does=harmless(does))
        moment.thought = harmless("\n\n".join(filter(None, thoughts)))
        self.moments.append(moment)
        self._actions[action.id] = moment

    def _observe(self, event: Observation) -> None:
        moment = self._actions.pop(event.cause or 0, None) or self._add_moment(event)
        moment.sees = harmless(event.text)
        match event:
            case CmdOutputObservation():
                status = "" if event.status == "done" else event.status
                moment.note = ", ".join(filter(None, [status, f"exit {event.exit_code}" if event.error else ""]))
                moment.bad = event.error or event.status == "timeout"
            case IPythonRunCellObservation(error=str() as error):
                moment.note, moment.bad = harmless(error), True
            case BrowserOutputObservation():
                parts = event.url, event.last_action_error, event.dialog and f"a dialog is open: {event.dialog}"
                moment.note, moment.bad = harmless("; ".join(filter(None, parts))), bool(event.last_action_error)
            case FileReadObservation():
                moment.note = f"lines {event.start} to {event.end} of {event.lines}"
            case ErrorObservation() | UserRejectObservation() | HookRejectObservation():
                moment.bad = True
            case _:
                pass

    def _add_moment(self, event: Observation) -> Moment:
        """Return the moment of an observation without an action, perhaps with the malformed reply that caused it."""
        moment = Moment(self._step, event.subtask, "environment")
        if reply := self._replies.pop(event.cause or 0, None):
            calls = reply.response.get("tool_calls")
            parts = [*_thinking(reply), str(reply.response.get("content") or ""), _json(calls) if calls else ""]
            moment.who, moment.kind = "agent", "a reply that was not understood"
            moment.does = harmless("\n\n".join(filter(None, parts)))
        self.moments.append(moment)
        return moment


def _thinking(reply: CompletionEvent) -> list[str]:
    parts = cast("list[dict[str, Any]]", reply.response.get("thinking") or [])
    return [str(part.get("content") or "").strip() for part in parts]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)

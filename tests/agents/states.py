"""States made from events, as a session would have logged them, and how a conversation is shown in golden files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from handiwork.agents.codeact.toolbox import TOOLS
from handiwork.agents.protocols import NATIVE
from handiwork.agents.protocols.action_tools import with_functions
from handiwork.agents.protocols.ask import read
from handiwork.agents.state import State
from handiwork.agents.tools import Function
from handiwork.events.action import CmdRunAction, FileEditAction, FileReadAction, MessageAction
from handiwork.events.base import Action, Event, Observation
from handiwork.events.observation import CmdOutputObservation, FileEditObservation, FileReadObservation
from handiwork.events.record import CompletionEvent, SessionStarted
from handiwork.llm.types import Completion, Message

GOLDEN = Path(__file__).parent / "golden"


def state_of(*events: Event) -> State:
    """Fold the events in order: an observation answers the action before it, an action a completion before it."""
    state, action = State(), 0
    before: Event = SessionStarted(agent="CodeActAgent", model="m", sandbox="bubblewrap", workspace="/home/me/project")
    state.apply(before.with_fields(id=1))
    for number, event in enumerate(events, start=2):
        placed = event.with_fields(id=number)
        if isinstance(event, Observation):
            placed = placed.with_fields(cause=number - 1 if isinstance(before, CompletionEvent) else action)
        elif isinstance(event, Action):
            action = number
            if isinstance(before, CompletionEvent):
                placed = placed.with_fields(completion=number - 1)
        state.apply(placed)
        before = event
    return state


def task(text: str = "The tests fail.") -> MessageAction:
    return MessageAction(content=text, source="user")


def ran(command: str, output: str, exit_code: int) -> tuple[Event, Event]:
    return CmdRunAction(command=command), CmdOutputObservation(command=command, content=output, exit_code=exit_code)


def file_read(path: str, content: str) -> tuple[Event, Event]:
    lines = content.count("\n")
    return FileReadAction(path=path), FileReadObservation(path=path, content=content, start=1, end=lines, lines=lines)


def edited(path: str, old: str, new: str) -> tuple[Event, Event]:
    return FileEditAction(path=path, old=old, new=new), FileEditObservation(path=path, content=f"-{old}\n+{new}\n")


def native_actions(completion: Completion, functions: Sequence[Function] = ()) -> list[Action]:
    """Return CodeAct's actions for a completion with native tool calls."""
    return read(NATIVE, completion, with_functions(TOOLS, functions))


def reply(content: str, *calls: dict[str, str]) -> CompletionEvent:
    return CompletionEvent(model="m", response={"content": content, "tool_calls": list(calls), "thinking": []})


def shown(messages: Sequence[Message]) -> str:
    """Return a conversation as text, for people to read."""
    out: list[str] = []
    for message in messages:
        out.append(f"--- {message.role}" + (f" answers {message.tool_call_id}" if message.tool_call_id else ""))
        out += [part.text or f"<image {part.blob}>" for part in message.content]
        out += [f"call {call.id}: {call.name} {call.arguments}" for call in message.tool_calls]
    return "\n".join(out) + "\n"


def check_golden(name: str, text: str) -> None:
    """Compare with the golden file; GOLDEN=write writes it instead."""
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("GOLDEN") == "write":
        file.write_text(text)
    assert text == file.read_text()

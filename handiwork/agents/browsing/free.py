"""Browsing by pictures, with calls in free text: the model's conversation, and the calls in its replies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from handiwork.agents.base import MalformedReplyError
from handiwork.agents.pages import line
from handiwork.agents.prompts import render
from handiwork.agents.protocols.message_cache import MessageCache
from handiwork.agents.rendering import observation_text
from handiwork.agents.state import State
from handiwork.events.action import BrowseInteractiveAction, MessageAction
from handiwork.events.base import Action, Observation, Part
from handiwork.events.observation import BrowserOutputObservation, ErrorObservation
from handiwork.llm.types import Completion, Message

PAGE = 30_000
"""Maximum characters of a page."""
PAGES = 2
"""Number of newest pages shown whole; of earlier pages only the address and the action's outcome remain."""

_BLOCK = re.compile(r"```[^\n`]*\n(.*?)(?:```|\Z)|```([^\n`]+)```", re.DOTALL)
_CALL = re.compile(r"\b[a-z_]+\(")


def messages(state: State, cache: MessageCache) -> list[Message]:
    """Return the conversation so far, with the screenshots of the newest page."""
    cache.begin()
    conversation = [*cache.get_or_build(0, (), _system)]
    pages = [o.id for _, o in state.history if isinstance(o, BrowserOutputObservation)]
    whole = set(pages[-PAGES:])
    newest = pages[-1] if pages else None
    for action, observation in state.history:
        completion = state.completions.get(action.completion or 0)
        reply = cast("str", completion.response.get("content") or "") if completion is not None else ""
        seen = observation.id if observation is not None else None
        source = (action, observation, reply, seen in whole, seen is not None and seen == newest)
        conversation += cache.get_or_build(action.id, source, _messages)
    return conversation


def calls(completion: Completion) -> BrowseInteractiveAction:
    """Return a reply's action: its last block of calls, with the text before as thought. Raises MalformedReplyError."""
    blocks = [found for found in _BLOCK.finditer(completion.content) if _CALL.search(found[0])]
    if not blocks:
        raise MalformedReplyError(
            "Your reply has no block with a call. End it with one like\n```\nclick('a12')\n```\n"
            "or, when you are done, with send_msg_to_user('...') in a block."
        )
    last = blocks[-1]
    thought = completion.content[: last.start()].strip()
    asked = (last[1] or last[2] or "").strip()
    return BrowseInteractiveAction(browser_actions=asked, thought=thought, completion=completion.event)


def _system() -> Iterator[Message]:
    yield Message.text("system", render("browsing/free"))


def _messages(
    action: Action, observation: Observation | None, reply: str, whole: bool, newest: bool
) -> Iterator[Message]:
    if isinstance(action, MessageAction) and action.source != "agent":
        yield Message("user", (Part(text=action.content), *action.images))
        return
    if reply:
        yield Message.text("assistant", reply)
    match observation:
        case BrowserOutputObservation():
            text = observation_text(observation, PAGE) if whole else _shortly(observation)
            images = [part for part in (observation.screenshot, observation.marked_screenshot) if part and newest]
            yield Message("user", (Part(text=text), *images))
        case ErrorObservation(error_id="malformed"):
            yield Message.text("user", observation.content)
        case Observation():
            yield Message.text("user", observation_text(observation, PAGE))
        case None:
            pass


def _shortly(observation: BrowserOutputObservation) -> str:
    """Return an earlier page's outcome and address on one line, which the page's texts cannot break."""
    outcome = f"error: {line(observation.last_action_error)}" if observation.last_action_error else "done"
    return f"[an earlier page, left out; {outcome}; url: {line(observation.url)}]"

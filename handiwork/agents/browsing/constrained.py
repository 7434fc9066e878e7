"""Browsing for small models: a choice from what the page offers, bound to a JSON schema, and never the same twice."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from handiwork.agents.base import AgentLLM, MalformedReplyError
from handiwork.agents.browsing.choices import Choice, choices
from handiwork.agents.browsing.elements import elements
from handiwork.agents.browsing.sense import Move, key, next_move, quoted
from handiwork.agents.pages import line
from handiwork.agents.prompts import render
from handiwork.agents.rendering import shorten
from handiwork.agents.state import State
from handiwork.events.action import AgentFinishAction, AgentRejectAction, BrowseInteractiveAction, MessageAction
from handiwork.events.base import Action
from handiwork.events.observation import BrowserOutputObservation
from handiwork.llm.types import JsonSchema, Message

PAGE = 2_000
"""Characters of a page's texts that a small model is shown, about 600 tokens."""
OFFERED = 40
"""Choices that a small model can have at a time."""
STEPS = 20
"""Actions after which it ends: more do not help a small model."""
DONE = "done"

EXAMPLE = (
    Message.text(
        "user",
        "Goal: Write to Eve Moss that the parcel came.\n\nDone so far:\n- click [7] link 'Contacts'\n\n"
        "Page:\n'Eve Moss'\n'Your message'\n\nChoose:\nclick [4] link 'Home'\nclick [9] link 'Delete'\n"
        "fill [11] textbox 'Your message'\nclick [12] button 'Send'",
    ),
    Message.text("assistant", '{"do": "fill [11] textbox \'Your message\'", "text": "The parcel came."}'),
    Message.text(
        "user",
        "Goal: How many seats are left?\n\nDone so far:\n- click [3] link 'Evening show'\n\n"
        "Page:\n'Evening show, 14 seats left'\n\nChoose:\nclick [4] link 'Home'\nclick [9] button 'Book'\ndone",
    ),
    Message.text("assistant", '{"do": "done", "message": "14"}'),
)
"""A box that is filled, and an answer that is read."""


async def step(llm: AgentLLM, state: State) -> Action:
    """Return the next action: what anybody would do, else the model's choice of what was not tried in vain."""
    past = _past(state)
    page = past[-1][1]
    if len(past) > STEPS:
        return AgentRejectAction(outputs={"reason": f"the goal was not reached in {STEPS} steps"})
    goal = _goal(state)
    offered = choices(page.content)
    done = _done(past)
    sensible = next_move(goal, offered, done)
    if sensible is not None:
        return _action(sensible.choice, sensible.text)
    left = [choice for choice in offered if choice.kind == "fill" or key(choice) not in done][:OFFERED]
    may_finish = len(past) > 1 or "?" in goal or not left
    messages = (Message.text("system", render("browsing/constrained")), *EXAMPLE, _question(goal, past, left, may_finish))
    completion = await llm.complete(messages, schema=schema(goal, left, may_finish))
    return parse(completion.content, left).placed(completion=completion.event)


def _action(choice: Choice, text: str) -> Action:
    return BrowseInteractiveAction(browser_actions=choice.calls(text))


Past = list[tuple[BrowseInteractiveAction | None, BrowserOutputObservation]]
"""What was done since the user's last message, and the page after each; None where it was no call."""


def _past(state: State) -> Past:
    found: Past = []
    for action, observation in reversed(state.history):
        if isinstance(observation, BrowserOutputObservation):
            found.insert(0, (action if isinstance(action, BrowseInteractiveAction) else None, observation))
        if isinstance(action, MessageAction) and action.source == "user" and found:
            break
    return found


def _goal(state: State) -> str:
    said = [a.content for a, _ in state.history if isinstance(a, MessageAction) and a.source == "user"]
    task = state.inputs.get("task")
    return task if isinstance(task, str) and len(said) == 1 else said[-1] if said else ""


def _done(past: Past) -> list[tuple[str, ...]]:
    """Return what was done, as it is known on later pages too."""
    done: list[tuple[str, ...]] = []
    for (_, before), (action, after) in zip(past, past[1:], strict=False):
        if action is None:
            continue
        for choice in choices(before.content):
            for text in ("", *_given(action)):
                if choice.calls(text) == action.browser_actions and (choice.kind != "scroll" or after.content == before.content):
                    done.append(key(choice, text))
    return done


def _given(action: BrowseInteractiveAction) -> list[str]:
    import ast

    call = ast.parse(action.browser_actions).body[0]
    return [str(a.value) for a in call.value.args[1:] if isinstance(a, ast.Constant)]


def _question(goal: str, past: Past, left: Sequence[Choice], may_finish: bool) -> Message:
    page = past[-1][1]
    texts = [repr(node.name) for node in elements(page.content) if not node.bid or node.name and node.role == "heading"]
    did = [f"- {action.browser_actions}" for action, _ in past[1:] if action is not None][-5:]
    lines = [choice.shown for choice in left] + ["done"] * may_finish
    return Message.text(
        "user",
        f"Goal: {goal}\n\nDone so far:\n{chr(10).join(did) or '- nothing'}\n\n"
        f"Page:\n{shorten(chr(10).join(texts), PAGE)}\n\nChoose:\n{chr(10).join(lines)}",
    )


def schema(goal: str, left: Sequence[Choice], may_finish: bool) -> JsonSchema:
    """Return what may be replied: one of the choices, with a text where it needs one."""
    variants: list[JsonSchema] = []
    plain = [choice.shown for choice in left if choice.kind not in ("fill", "select")]
    if plain:
        variants.append(_variant(do={"enum": plain}))
    if fills := [choice.shown for choice in left if choice.kind == "fill"]:
        variants.append(_variant(do={"enum": fills}, text={"type": "string", "minLength": 1, "maxLength": 100}))
    for choice in left:
        if choice.kind == "select":
            variants.append(_variant(do={"const": choice.shown}, option={"enum": list(choice.options)}))
    if may_finish:
        variants.append(_variant(do={"const": DONE}, message={"type": "string", "maxLength": 300}))
    return {"anyOf": variants}


def _variant(**properties: JsonSchema) -> JsonSchema:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def parse(reply: str, left: Sequence[Choice]) -> Action:
    """Return the action of a reply. Raises MalformedReplyError."""
    try:
        found = json.loads(reply)
        if found["do"] == DONE:
            return AgentFinishAction(outputs={"message": str(found["message"])})
        choice = next(choice for choice in left if choice.shown == found["do"])
        return _action(choice, str(found.get("text") or found.get("option") or ""))
    except (ValueError, KeyError, TypeError, StopIteration) as error:
        raise MalformedReplyError(f"Your reply is not one of the JSON objects asked for: {error}") from None

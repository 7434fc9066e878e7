"""Browsing for small models: choices from the page, bound to a JSON schema, none tried in vain twice."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from handiwork.agents.base import AgentLLM, MalformedReplyError
from handiwork.agents.browsing.choices import ElementChoice, Page, offered, read
from handiwork.agents.browsing.obvious_moves import held_back, key, missing, next_move, quoted
from handiwork.agents.browsing.task_history import TaskHistory, task_history
from handiwork.agents.prompts import render
from handiwork.agents.rendering import shorten
from handiwork.agents.state import State
from handiwork.events.action import AgentFinishAction, AgentRejectAction, BrowseInteractiveAction
from handiwork.events.base import Action
from handiwork.llm.strict_json import parse as parse_json
from handiwork.llm.types import JsonSchema, Message

PAGE = 2_500
"""Maximum characters of a page for a small model, about 700 tokens."""
OFFERED = 40
"""Maximum number of choices for a small model."""
STEPS = 25
"""Actions after which the agent gives up: more do not help a small model."""
DONE = "done"

_TEXT, _MESSAGE = 120, 300
_SHORT = 40
"""Shorter texts are shown even if the goal contains them."""
_ASKS = re.compile(r"\?|\b(what|how many|how much|tell|report|find out)\b", re.IGNORECASE)
_AGAIN = re.compile(r"\b(next|prev|previous|more|older|newer|back)\b|[<>«»+-]$", re.IGNORECASE)
"""Names of elements that are used repeatedly."""

EXAMPLE = (
    Message.text(
        "user",
        "Goal: Write to Eve Moss that the parcel came.\n\nDone so far:\nclick [7] link 'Contacts'\n\n"
        "Page:\nEve Moss\n- click [4] link 'Home'\n- click [9] link 'Delete'\nYour message\n"
        "- fill [11] textbox 'Your message'\n- click [12] button 'Send'",
    ),
    Message.text("assistant", '{"do": "fill [11] textbox \'Your message\'", "text": "The parcel came."}'),
    Message.text(
        "user",
        "Goal: How many seats are left?\n\nDone so far:\nclick [3] link 'Evening show'\n\n"
        "Page:\nEvening show, 14 seats left\n- click [4] link 'Home'\n- click [9] button 'Book'\n- done",
    ),
    Message.text("assistant", '{"do": "done", "message": "14"}'),
)
"""Worked examples: fill a box, and read an answer."""


@dataclass(frozen=True, slots=True)
class Situation:
    """The facts for a small model's decision: the choices ``left`` on the page, and whether it may finish."""

    goal: str
    page: Page
    left: tuple[ElementChoice, ...]
    may_finish: bool
    did: tuple[str, ...]


async def step(llm: AgentLLM, state: State) -> Action:
    """Return the next action: the obvious move, else the model's choice among moves not tried in vain."""
    history = task_history(state)
    if len(history.steps) > STEPS:
        return AgentRejectAction(outputs={"reason": f"the goal was not reached in {STEPS} steps"})
    page = read(history.content)
    move = next_move(history.goal, page, history.done, history.vain)
    if move is not None:
        return BrowseInteractiveAction(browser_actions=move.choice.calls(move.text))
    now = situation(history, page)
    completion = await llm.complete(messages(now), schema=schema(now))
    return parse(completion.content, now).with_fields(completion=completion.event)


def situation(history: TaskHistory, page: Page) -> Situation:
    """Return the model's situation, without choices already tried on this very page or still too early."""
    tried = {known[:3] for known in history.vain}
    done = {known[:3] for known in history.done if not _AGAIN.search(known[2])}
    out = {choice.shown for choice in held_back(history.goal, page, history.done)}
    if quoted(history.goal):  # the goal names its target: other items of a menu only lead to it
        menus = {choice.bid for choice in offered(page) if choice.kind == "hover"}
        out |= {choice.shown for choice in offered(page) if choice.kind == "click" and choice.bid in menus}
    can = [choice for choice in offered(page) if choice.shown not in out and key(choice)[:3] not in tried]
    can = [choice for choice in can if choice.kind in ("scroll", "fill") or key(choice)[:3] not in done]
    empty = any(choice.kind == "fill" and not choice.value for choice in can)
    unsent = bool(history.done) and history.done[-1][0] == "fill" and any(choice.kind == "click" for choice in can)
    complete = len(history.steps) > 1 and not (out or empty or unsent or missing(history.goal, history.done))
    may_finish = not can or complete or _ASKS.search(history.goal) is not None
    return Situation(history.goal, page, tuple(can[:OFFERED]), may_finish, tuple(history.steps[-5:]))


def messages(now: Situation) -> list[Message]:
    """Return the conversation; the part that changes with every step comes last, so that the rest is computed once."""
    lines = [part if isinstance(part, str) else f"- {part.shown}" for part in now.page if _is_shown(part, now)]
    shown = shorten("\n".join(lines), PAGE)
    done = f"\n- {DONE}" * now.may_finish
    did = "\n".join(now.did) or "nothing"
    asked = f"Goal: {now.goal}\n\nDone so far:\n{did}\n\nPage:\n{shown}{done}"
    return [Message.text("system", render("browsing/constrained")), *EXAMPLE, Message.text("user", asked)]


def _is_shown(part: str | ElementChoice, now: Situation) -> bool:
    return part in now.left if isinstance(part, ElementChoice) else len(part) < _SHORT or part not in now.goal


def schema(now: Situation) -> JsonSchema:
    """Return the schema of replies: one of the choices, with a text if it needs one."""
    plain = [choice.shown for choice in now.left if choice.kind not in ("fill", "select")]
    variants = [_variant(do={"enum": plain})] if plain else []
    for choice in now.left:
        if choice.kind == "fill":
            variants.append(_variant(do={"const": choice.shown}, text={"type": "string", "maxLength": _TEXT}))
        elif choice.kind == "select":
            variants.append(_variant(do={"const": choice.shown}, option={"enum": list(choice.options)}))
    if now.may_finish:
        variants.append(_variant(do={"const": DONE}, message={"type": "string", "maxLength": _MESSAGE}))
    return {"anyOf": variants}


def _variant(**properties: JsonSchema) -> JsonSchema:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def parse(reply: str, now: Situation) -> Action:
    """Return the action of a reply. Raises MalformedReplyError."""
    try:
        found = parse_json(reply)
        if found["do"] == DONE:
            return AgentFinishAction(outputs={"message": str(found["message"])})
        choice = _chosen(now.left, found["do"])
        return BrowseInteractiveAction(
            browser_actions=choice.calls(str(found.get("text") or found.get("option") or ""))
        )
    except (ValueError, KeyError, TypeError, LookupError) as error:
        raise MalformedReplyError(f"Your reply is not one of the JSON objects asked for: {error}") from None


def _chosen(left: Sequence[ElementChoice], shown: object) -> ElementChoice:
    for choice in left:
        if choice.shown == shown:
            return choice
    raise LookupError(f"there is no choice {shown!r}")

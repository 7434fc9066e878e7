"""The questions at the terminal when a session waits or is paused, and the effects of the answers."""

from __future__ import annotations

import difflib
import math
import re

from rich.text import Text

from handiwork.agents.state import State
from handiwork.cli.dialog.remote_session import RemoteSession
from handiwork.cli.dialog.slash_commands import Ask, SlashCommands
from handiwork.cli.terminal.output_lines import coloured_diff_line
from handiwork.cli.terminal.sanitize import exact, plain
from handiwork.cli.terminal.subtasks import short_name
from handiwork.cli.terminal.transcript import Transcript
from handiwork.cli.terminal.view import View
from handiwork.events.action import FileEditAction, MessageAction
from handiwork.events.base import Action
from handiwork.events.describe import amount_text
from handiwork.session import user_events
from handiwork.session.approval.rules import rule_for
from handiwork.session.session import Session

QUESTION = "\nwhat next? (a message to the agent, empty to continue, q to stop) "
ANSWER = "\nyour answer: "
PLAN = "\nEnter accepts the plan; or say what to change: "
ALLOW = "allow? (y once, a for this session, n or a reason to refuse, q to decide later) "
STUCK = (
    "\nwhat next? (g to continue, r to rewind the agent to before the loop (files stay), "
    "q to stop, or a hint to the agent) "
)
CONTEXT = "\nwhat next? (/model NAME to use a larger context window, empty to continue, q to stop) "
LIMIT = "\nraise the limit of {name}? (r for {raised}, a number, none for no limit, empty to keep it and stop) "


class Questions:
    """Asks the question a waiting or paused session needs answered; appends the answers to its log."""

    def __init__(self, opened: Session | RemoteSession, view: View, ask: Ask) -> None:
        self._log, self._first, self._view = opened.log, opened.config.limits, view
        self._slash = SlashCommands(opened.log, view.console, ask)

    def are_needed(self, state: State) -> bool:
        """Return whether the session needs more than a message of the user's to continue."""
        reason = state.change.reason if state.change is not None else ""
        waits = state.agent_state == "awaiting_user_confirmation"
        return waits or reason in ("limit", "context") or user_events.is_stuck(state)

    async def __call__(self, state: State) -> str | None:
        """Return a message to the agent, "" to continue without one, None to leave the session."""
        reason = state.change.reason if state.change is not None else ""
        with self._view.still():
            if state.agent_state == "awaiting_user_confirmation":
                return await self._approvals(state)
            if state.agent_state == "awaiting_user_input":
                return await self._reply(state)
            if reason == "limit":
                return await self._limit(state)
            if user_events.is_stuck(state):
                return await self._stuck(state)
            return await self._slash.answer(CONTEXT if reason == "context" else QUESTION)

    async def _reply(self, state: State) -> str | None:
        plan = user_events.proposes_plan(state)
        question = PLAN if plan else ANSWER
        question = question if self._view.stepped else f"\n{_last_message(state)}{question}"
        while (answer := await self._slash.answer(question)) == "" and not plan:
            pass
        if answer == "":
            await self._log.append(*user_events.accepted_plan(state))
        return answer

    async def _approvals(self, state: State) -> str | None:
        actions = user_events.actions_to_approve(state)
        why = await user_events.approval_reasons(self._log, actions)
        for action in actions:
            heading = self._view.transcript.subtasks.heading(action.subtask).removeprefix("-> ")
            agent = heading or plain(short_name(state.agent))
            self._view.console.print(Text(f"\n{agent} wants to do this:", "bold yellow"))
            for line in action_lines(action):
                self._view.console.print(line, soft_wrap=True)
            self._slash.say(f"  {exact(why.get(action.id, ''))}", "yellow")
            self._slash.say(f"  a allows for this session: {_short(rule_for(action))}", "dim")
            while (answer := await self._slash.answer(ALLOW)) == "":
                pass
            if answer is None:
                return None
            word = answer.lower()
            allowed, always = word in ("y", "yes", "a", "always"), word in ("a", "always")
            comment = "" if allowed or word in ("n", "no") else answer
            await self._log.append(user_events.approval(action, allowed, comment, always))
        return ""

    async def _limit(self, state: State) -> str | None:
        name = user_events.reached_limit(state)
        raised = user_events.raised_limit(state, name, self._first)
        question = LIMIT.format(name="steps" if name == "iterations" else name, raised=amount_text(name, raised))
        while answer := await self._slash.answer(question):
            try:
                value = raised if answer == "r" else _number(answer)
                change = user_events.changed_limit(state, name, value)
            except ValueError as error:
                self._slash.say(f"  {error}")
                continue
            await self._log.append(change)
            return ""
        return None

    async def _stuck(self, state: State) -> str | None:
        while (answer := await self._slash.answer(STUCK)) == "":
            pass
        if answer == "r":
            await self._log.append(user_events.rewind_event(state))
        return "" if answer in ("g", "r") else answer


def action_lines(action: Action) -> list[Text]:
    """Return the lines of an action, complete and exact enough to judge it."""
    texts = {key: exact(value) for key, value in action if isinstance(value, str)}
    lines = Transcript(full=True).lines(action.with_fields(**texts, subtask=0))
    if isinstance(action, FileEditAction):
        old, new = action.old.split("\n"), action.new.split("\n")
        changed = list(difflib.unified_diff(old, new, n=len(old), lineterm=""))[3:]
        lines += [coloured_diff_line(Text(f"  {exact(line)}")) for line in changed]
    return lines


def _short(rule: str) -> str:
    """Return a rule for the user to read; refer to the action above for a rule of several lines."""
    return exact(rule) if "\n" not in rule else f"{rule.split()[0]} the one above"


def _number(text: str) -> float | None:
    if text == "none":
        return None
    try:
        number = float(re.sub(r",(?=\d{3}\b)", "", text).lstrip("$"))  # only between thousands: 2,5 is not 25
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f'"{text}" is not a number')
    return number


def _last_message(state: State) -> str:
    """Return the agent's last message, safe to print."""
    messages = (action.content for action, _ in reversed(state.history) if isinstance(action, MessageAction))
    return plain(next(messages, ""))

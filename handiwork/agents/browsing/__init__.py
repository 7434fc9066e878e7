"""Agents for the web: they read pages and act on them in the sandbox's browser."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from handiwork.agents.base import Agent, Step
from handiwork.agents.browsing import free
from handiwork.agents.browsing.constrained import step as constrained_step
from handiwork.agents.protocols.message_cache import MessageCache
from handiwork.agents.state import State
from handiwork.events.action import (
    AgentFinishAction,
    AgentRejectAction,
    BrowseInteractiveAction,
    BrowseURLAction,
    MessageAction,
)
from handiwork.events.base import Action
from handiwork.events.observation import BrowserOutputObservation, ErrorObservation

ERRORS = 5
"""Failures in a row after which the agent gives up."""

LOOK = "noop(0)"
"""A call that changes nothing and shows the page."""


class BrowsingInputs(BaseModel):
    """The inputs of a delegation: ``url`` is the page to begin at, the one that is open if it is empty."""

    model_config = ConfigDict(extra="forbid")

    task: str
    url: str = ""


class BrowsingOutputs(BaseModel):
    """The outputs: what the agent has to say about the task."""

    message: str


class BrowsingAgent(Agent):
    """Works in the browser by its accessibility tree; the replies of models without native tools are bound to a schema.

    It finishes with the output "message", or rejects with "reason".
    """

    description = "Works in the web browser: reads pages, fills in forms, finds answers."
    inputs, outputs = BrowsingInputs, BrowsingOutputs
    pictures: ClassVar[bool] = False

    def reset(self) -> None:
        """Clear the message cache."""
        self._made = MessageCache()

    async def step(self, state: State) -> Step:
        """Look at the page first, finish after a message to the user, else ask the model."""
        if (follows := self._follows(state)) is not None:
            return follows
        if not self.llm.capabilities.tools and not self.pictures:
            return await constrained_step(self.llm, state)
        messages = free.messages(state, self._made, pictures=self.pictures)
        action = free.calls(await self.llm.complete(messages))
        return action.with_fields(marks=self.pictures)

    def _follows(self, state: State) -> Action | None:
        """Return the next action if it needs no model call."""
        if self.pictures and not self.llm.capabilities.vision:
            name = type(self).__name__
            return AgentRejectAction(
                outputs={"reason": f"{name} needs a model that sees pictures: take another model, or BrowsingAgent."}
            )
        recent = list(_since_message(state))
        last = recent[0] if recent else None
        pages = [o for _, o in state.history if isinstance(o, BrowserOutputObservation)]
        if isinstance(last, ErrorObservation) and not pages:
            return AgentRejectAction(outputs={"reason": f"No page could be opened: {last.text}"})
        if isinstance(last, BrowserOutputObservation) and last.infeasible:
            return AgentRejectAction(outputs={"reason": last.infeasible})
        if isinstance(last, BrowserOutputObservation) and last.messages:
            return AgentFinishAction(outputs={"message": "\n".join(last.messages)})
        failed = list(takewhile(_is_failure, recent))
        if len(failed) >= ERRORS:
            why = failed[0].last_action_error if isinstance(failed[0], BrowserOutputObservation) else failed[0].text
            return AgentRejectAction(outputs={"reason": f"{ERRORS} actions in a row failed, the last with: {why}"})
        if any(isinstance(a, BrowseURLAction | BrowseInteractiveAction) for a, _ in state.history):
            return None
        if url := state.inputs_as(BrowsingInputs).url:
            return BrowseURLAction(url=url, marks=self.pictures)
        return BrowseInteractiveAction(browser_actions=LOOK, marks=self.pictures)


class VisualBrowsingAgent(BrowsingAgent):
    """A BrowsingAgent that also sees two screenshots of the page, one with the elements' bids on it."""

    description = "Works in the web browser with screenshots too; needs a model with vision."
    pictures = True


def _since_message(state: State) -> Iterator[BrowserOutputObservation | ErrorObservation]:
    """Yield the browser's observations and errors since the user's last message, the newest first."""
    for action, observation in reversed(state.history):
        if isinstance(action, MessageAction) and action.source == "user":
            return
        if isinstance(observation, BrowserOutputObservation | ErrorObservation):
            yield observation


def _is_failure(observation: BrowserOutputObservation | ErrorObservation) -> bool:
    return isinstance(observation, ErrorObservation) or bool(observation.last_action_error)

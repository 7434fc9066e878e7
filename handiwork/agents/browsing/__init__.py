"""Agents for the web: they read pages and act on them in the sandbox's browser."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import takewhile
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from handiwork.agents.base import Agent, Step
from handiwork.agents.browsing import free
from handiwork.agents.browsing.page_history import (
    acts_since_message,
    changes_nothing_again,
    last_act,
    newest_page,
    readable,
)
from handiwork.agents.browsing.prompt import prompt
from handiwork.agents.browsing.toolset import ON_ELEMENTS, TOOLS, tools_on
from handiwork.agents.history import is_from_user, is_sent_back
from handiwork.agents.protocols import JSON, NATIVE, ReplyProtocol, protocol_of
from handiwork.agents.protocols.ask import ask, is_small, tools_called
from handiwork.agents.protocols.mcp_tools import with_mcp
from handiwork.agents.protocols.message_cache import MessageCache
from handiwork.agents.state import State
from handiwork.events.action import (
    AgentFinishAction,
    AgentRejectAction,
    BrowseInteractiveAction,
    BrowseURLAction,
)
from handiwork.events.base import Action
from handiwork.events.observation import BrowserOutputObservation, ErrorObservation
from handiwork.llm.types import Message

ERRORS = 5
"""Failures in a row after which the agent gives up."""
STEPS = 60
"""Acts after a message of the user, in the browser or by an MCP server, after which the agent gives up."""
RETRY_TEMPERATURE = 0.8
"""The temperature of a second call, if the reply repeats an act that changed nothing."""
LOOK, BLANK = "noop(0)", "about:blank"
"""A call that changes nothing and shows the page."""

_WHOLE, _WHOLE_SMALL = 2, 1
"""Number of newest pages shown whole, in general and in a small window."""
_AROUND = "\"'`()<>[]{},;:!?"
"""Characters that stand around an address in a sentence."""


class BrowsingInputs(BaseModel):
    """The inputs of a delegation: ``url`` is the first page; if empty, that in ``task``, or else the open one."""

    model_config = ConfigDict(extra="forbid")

    task: str
    url: str = ""


class BrowsingOutputs(BaseModel):
    """The outputs: the agent's message about the task."""

    message: str


class BrowsingAgent(Agent):
    """Works in the browser by its accessibility tree: the model chooses every act, in any protocol.

    It opens an address in the task first, or else looks at the open page; a page that was open before a task of the
    user stays open. It finishes with the output "message", or rejects with "reason".
    """

    description = "Works in the web browser: reads pages, fills in forms, finds answers."
    inputs, outputs = BrowsingInputs, BrowsingOutputs
    uses_mcp = True
    pictures: ClassVar[bool] = False

    def reset(self) -> None:
        """Clear the message cache."""
        self._message_cache = MessageCache()

    async def step(self, state: State) -> Step:
        """Open the page first, give up after too many steps, else ask the model."""
        if (follows := self._follows(state)) is not None:
            return follows
        if self.pictures:
            action = free.calls(await self.llm.complete(free.messages(state, self._message_cache)))
            return action.with_fields(marks=True)
        actions = await self._ask(state)
        if len(actions) == 1 and changes_nothing_again(state, actions[0]):
            actions = await self._ask(state, RETRY_TEMPERATURE, without=tools_called(state, last_act(state), TOOLS))
        return actions

    async def _ask(self, state: State, temperature: float | None = None, without: Collection[str] = ()) -> list[Action]:
        """Return the model's next actions; of the tools ``without``, those that act on no element are not offered."""
        capabilities = self.llm.capabilities
        protocol, small = protocol_of(capabilities, short=True), is_small(capabilities)
        as_lines = small or protocol is not NATIVE
        page = newest_page(state)
        tree, dialog = (page.text, bool(page.dialog)) if page else ("", False)
        tools = with_mcp(tools_on(tree, enumerated=protocol is JSON, dialog=dialog), state)
        allowed = [tool for tool in tools if tool.name not in without or tool.name in ON_ELEMENTS]
        described = with_mcp(TOOLS, state)
        descriptions = tuple(tool.tool for tool in described)

        def first(protocol: ReplyProtocol, small: bool) -> Sequence[Message]:
            def build(*_: object) -> Iterator[Message]:
                return prompt(protocol, small, described)

            return self._message_cache.get_or_build(0, (protocol.name, small, descriptions), build)

        view = readable(state, _WHOLE_SMALL if small else _WHOLE, as_lines=as_lines)
        choose = partial(protocol_of, short=True)
        return await ask(self.llm, view, self._message_cache, first, tools, temperature, offered=allowed, choose=choose)

    def _follows(self, state: State) -> Action | None:
        """Return the next action if it needs no model call."""
        if self.pictures and not self.llm.capabilities.vision:
            name = type(self).__name__
            return AgentRejectAction(
                outputs={"reason": f"{name} needs a model that sees pictures: take another model, or BrowsingAgent."}
            )
        recent = list(_since_message(state))
        last = recent[0] if recent else None
        if isinstance(last, ErrorObservation) and newest_page(state) is None:
            return AgentRejectAction(outputs={"reason": f"No page could be opened: {last.text}"})
        if isinstance(last, BrowserOutputObservation) and last.infeasible:
            return AgentRejectAction(outputs={"reason": last.infeasible})
        if isinstance(last, BrowserOutputObservation) and last.messages:
            return AgentFinishAction(outputs={"message": "\n".join(last.messages)})
        failed = list(takewhile(_is_failure, recent))
        if len(failed) >= ERRORS:
            why = failed[0].last_action_error if isinstance(failed[0], BrowserOutputObservation) else failed[0].text
            return AgentRejectAction(outputs={"reason": f"{ERRORS} actions in a row failed, the last with: {why}"})
        if len(acts_since_message(state)) >= STEPS:
            return AgentRejectAction(outputs={"reason": f"The task was not done in {STEPS} steps."})
        return self._first_page(state)

    def _first_page(self, state: State) -> Action | None:
        """Return the action that opens a page, or looks at the open one; None once there is one.

        A page that was open before the session's task stays open; a delegate opens the address of its own task.
        """
        acts = sum(isinstance(action, BrowseURLAction | BrowseInteractiveAction) for action, _ in state.history)
        address = address_in(state.task, state.workspace)
        if acts == 0:
            url = state.inputs_as(BrowsingInputs).url or (address if state.delegate_level else "")
            look = BrowseInteractiveAction(browser_actions=LOOK, marks=self.pictures)
            return BrowseURLAction(url=url, marks=self.pictures) if url else look
        page = newest_page(state)
        if acts == 1 and address and page is not None and page.url == BLANK:
            return BrowseURLAction(url=address, marks=self.pictures)
        return None


class VisualBrowsingAgent(BrowsingAgent):
    """A BrowsingAgent that also sees two screenshots of the page, one with the elements' bids on it."""

    description = "Works in the web browser with screenshots too; needs a model with vision."
    pictures = True
    uses_mcp = False  # its replies are calls of the browser alone


def address_in(task: str, workspace: str) -> str:
    """Return the first address in a task, as a URL; "" without one.

    The path of an .html file is the address of that file of the workspace.
    """
    for word in task.split():
        address = word.lstrip(_AROUND).rstrip(f"{_AROUND}.")
        address += ")" * (address.count("(") - address.count(")"))  # its own, as in /wiki/Mercury_(planet)
        if address.lower().startswith(("http://", "https://", "file://")):
            return address
        if address.lower().endswith((".html", ".htm")) and ":" not in address:
            return f"file://{posixpath.normpath(posixpath.join(workspace, address))}"
    return ""


def _since_message(state: State) -> Iterator[BrowserOutputObservation | ErrorObservation]:
    """Yield the browser's observations and errors since the user's last message, the newest first."""
    for action, observation in reversed(state.history):
        if is_from_user(action) or is_sent_back(action):
            return
        if isinstance(observation, BrowserOutputObservation | ErrorObservation):
            yield observation


def _is_failure(observation: BrowserOutputObservation | ErrorObservation) -> bool:
    return isinstance(observation, ErrorObservation) or bool(observation.last_action_error)

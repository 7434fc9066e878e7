"""CodeActAgent, the general-purpose agent: it talks to the user, runs bash and Python, edits files, reads pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from handiwork.agents.base import Agent, Step
from handiwork.agents.codeact.check import check_of, with_check
from handiwork.agents.codeact.choice import kind_of
from handiwork.agents.codeact.finish import challenge, confirmed
from handiwork.agents.codeact.offer import next_offered, offered, repeated
from handiwork.agents.codeact.prompt import prompt_messages
from handiwork.agents.codeact.toolbox import TOOLS
from handiwork.agents.protocols import ReplyProtocol
from handiwork.agents.protocols.action_tools import ActionTool, with_functions
from handiwork.agents.protocols.ask import ask, is_small
from handiwork.agents.protocols.mcp_tools import with_mcp
from handiwork.agents.protocols.message_cache import MessageCache
from handiwork.agents.state import State
from handiwork.events.action import AgentDelegateAction
from handiwork.events.base import Action
from handiwork.events.overview import WorkspaceOverviewAction
from handiwork.llm.types import Message

BUDGET, SMALL_BUDGET = 24_000, 12_000
"""Characters of the overview, in general and for a small window."""

RETRY_TEMPERATURES = (0.6, 1.0)
"""Temperatures of the retries after a reply that repeats an earlier action."""


class CodeActAgent(Agent):
    """Acts by code, with the same tools in every protocol; a subclass's ``tools`` join them."""

    description = "The general-purpose agent: runs bash and Python, edits files, reads pages, talks to you."
    uses_mcp = True

    toolbox = TOOLS

    def reset(self) -> None:
        """Clear the message cache."""
        self._message_cache = MessageCache()

    async def step(self, state: State) -> Step:
        """Ask the model for the next actions.

        A model without native tool calls, or with a small window, is guided: its first action is an overview of the
        workspace, and after a reply that repeats an earlier action it is asked again, at a higher temperature and
        without the repeated tool. Other models explore by themselves, and may repeat a call to wait.
        """
        guided = not self.llm.capabilities.tools or is_small(self.llm.capabilities)
        if guided and not any(isinstance(action, WorkspaceOverviewAction) for action, _ in state.history):
            budget = SMALL_BUDGET if is_small(self.llm.capabilities) else BUDGET
            return WorkspaceOverviewAction(budget=budget, text=state.task)
        may_delegate = any(tool.name == "delegate" for tool in self.toolbox)
        if guided and may_delegate and (delegation := await self._repair(state)) is not None:
            return delegation
        tools = with_functions(self.toolbox, self.tools)
        tools = with_mcp(tools, state) if self.uses_mcp else tools
        tools = offered(state, tools) if guided else tools
        if (end := confirmed(self.llm, state, tools)) is not None:
            return end
        allowed = next_offered(state, tools) if guided else tools
        actions = await self._ask(state, tools, allowed)
        for temperature in RETRY_TEMPERATURES if guided else ():
            if not (again := repeated(state, actions, tools)):
                break
            allowed = next_offered(state, allowed, again)
            actions = await self._ask(state, tools, allowed, temperature)
        return await challenge(self.llm, state, actions, self.toolbox)

    async def _repair(self, state: State) -> Action | None:
        """Return the delegation to RepairAgent if the model chooses it for the task at its beginning."""
        check = check_of(state)
        begun = any(action.completion for action, _ in state.history)
        if not check or begun or state.delegate_level or state.totals.plan_mode:
            return None
        kind, completion = await kind_of(self.llm, state.task)
        if kind != "repair":
            return None
        inputs: dict[str, JsonValue] = {"task": state.task, "check": check}
        return AgentDelegateAction(agent="RepairAgent", inputs=inputs, completion=completion or None)

    async def _ask(
        self,
        state: State,
        tools: Sequence[ActionTool],
        allowed: Sequence[ActionTool],
        temperature: float | None = None,
    ) -> list[Action]:
        """Ask with a prompt of all ``tools``; the request offers the ``allowed`` ones."""

        def prompt(protocol: ReplyProtocol, small: bool) -> Sequence[Message]:
            capabilities = self.llm.capabilities
            descriptions = tuple(tool.tool for tool in tools)
            senses = (capabilities.vision, capabilities.hearing)
            network = tuple(state.totals.network)
            source = (protocol.name, small, senses, state.workspace, state.skills, network, descriptions)

            def build(*_: object) -> Iterable[Message]:
                return prompt_messages(protocol, small, state, tools, capabilities)

            return self._message_cache.get_or_build(0, source, build)

        return await ask(self.llm, with_check(state), self._message_cache, prompt, tools, temperature, offered=allowed)

"""CodeActAgent, the general-purpose agent: it talks to the user, runs bash and Python, edits files, reads pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from handiwork.agents.base import Agent, Step
from handiwork.agents.codeact.check import check_of, first_look, is_empty, overview_of
from handiwork.agents.codeact.choice import Choice, kind_of, want_of, way_of
from handiwork.agents.codeact.facts import with_facts
from handiwork.agents.codeact.finish import challenge, confirmed, lost_lines
from handiwork.agents.codeact.offer import (
    ANY,
    TALK,
    check_replaces,
    check_steered,
    for_question,
    next_offered,
    offered,
    repeated,
    shows_subject,
)
from handiwork.agents.codeact.prompt import has_example, prompt_messages
from handiwork.agents.codeact.toolbox import TOOLS
from handiwork.agents.codeact.turn import follows_answer, is_small_talk, new_files, request_of, turn_of
from handiwork.agents.protocols import ReplyProtocol
from handiwork.agents.protocols.action_tools import ActionTool, with_functions
from handiwork.agents.protocols.ask import RETRY_TEMPERATURES, ask, is_small
from handiwork.agents.protocols.example import check_not_copied, copies_example
from handiwork.agents.protocols.mcp_tools import with_mcp
from handiwork.agents.protocols.message_cache import MessageCache
from handiwork.agents.state import State
from handiwork.events.action import AgentDelegateAction, FileWriteAction
from handiwork.events.base import Action
from handiwork.llm.types import Capabilities, Message

BUDGET, SMALL_BUDGET = 24_000, 12_000
"""Characters of the overview, in general and for a small window."""


def overview_budget(capabilities: Capabilities) -> int:
    """Return the characters of the overview: in a very small window one for each token, a third of it."""
    return min(SMALL_BUDGET, capabilities.window or SMALL_BUDGET) if is_small(capabilities) else BUDGET


class CodeActAgent(Agent):
    """Acts by code, with the same tools in every protocol; a subclass's ``tools`` join them."""

    description = "The general-purpose agent: runs bash and Python, edits files, reads pages, talks to you."
    uses_mcp = True

    toolbox = TOOLS

    def reset(self) -> None:
        """Clear the message cache, the kind of the last request, and the last request that is surely a question."""
        self._message_cache = MessageCache()
        self._known, self._question = ("", ""), ""

    async def step(self, state: State) -> Step:
        """Ask the model for the next actions.

        A model without native tool calls, or with a small window, is guided: its first action is an overview of the
        workspace, unless the user only says hello. After a reply that repeats an earlier action it is asked again, at a
        higher temperature and without the repeated tool; after one that copies the prompt's example, without the
        example. Other models explore by themselves, and may repeat a call to wait.
        """
        guided = not self.llm.capabilities.tools or is_small(self.llm.capabilities)
        talks = guided and self._is_general and is_small_talk(state)
        if guided and not talks and (look := first_look(state, overview_budget(self.llm.capabilities))) is not None:
            return look
        kind, completion = await self._kind(state) if guided and not talks else ("", 0)
        if kind == "repair" and self._may_repair(state):
            inputs: dict[str, JsonValue] = {"task": state.task, "check": check_of(state)}
            return AgentDelegateAction(agent="RepairAgent", inputs=inputs, completion=completion or None)
        tools = with_functions(self.toolbox, self.tools)
        tools = with_mcp(tools, state) if self.uses_mcp else tools
        tools = offered(state, tools) if guided else tools
        if (end := confirmed(self.llm, state, tools)) is not None:
            return end
        if is_small(self.llm.capabilities) and (loss := await lost_lines(self.llm, state)) is not None:
            return loss
        way = TALK if talks else await self._way(state, kind)
        may_end = talks or (way == "reading" and shows_subject(state))
        allowed = next_offered(state, tools, may_end=may_end) if guided else tools
        if way:
            allowed = for_question(state, allowed, way)
        elif self._asks_without_files(state):
            allowed = for_question(state, allowed, ANY)
        actions, example = await self._ask(state, tools, allowed), True
        check_steered(actions, way)
        for temperature in RETRY_TEMPERATURES if guided else ():
            again = repeated(state, actions, tools, allowed)
            copied = copies_example(self.llm.capabilities, actions, state.history)
            if not again and not copied:
                break
            allowed, example = next_offered(state, allowed, again, may_end=may_end), example and not copied
            actions = await self._ask(state, tools, allowed, temperature, example=example)
        # A file that is written without the example before the model is no copy.
        suspects = [action for action in actions if example or not isinstance(action, FileWriteAction)]
        check_not_copied(self.llm.capabilities, suspects, state.history)
        check_replaces(state, actions)
        if talks:
            return actions
        request, known = self._known
        return await challenge(self.llm, state, actions, self.toolbox, known if request == request_of(state) else "")

    async def _kind(self, state: State) -> Choice:
        """Ask for the kind of the user's message before the first reply to it, if the kind matters."""
        first = not any(action.completion for action, _ in turn_of(state))
        if first and (self._may_steer(state) or self._may_repair(state)):
            kind, completion = await kind_of(self.llm, request_of(state))
            self._known = request_of(state), kind
            return kind, completion
        return "", 0

    async def _way(self, state: State, kind: str) -> str:
        """Return the way to the answer of a question, "" if the message is none or the model finds its own way.

        A folder without files has nothing to change or to repair: such a message counts as a question more easily.
        """
        request, bare = request_of(state), is_empty(state)
        is_question = kind == "question"
        if not (is_question or (bare and kind == "change")) or not self._may_steer(state) or new_files(state):
            return ""
        if is_question and follows_answer(state):
            return ANY
        want = await want_of(self.llm, request)
        if want != "answer" and not (bare and is_question and want != "new"):
            return ""
        self._known, self._question = (request, "question"), request
        return await way_of(self.llm, request, has_files=not bare)

    def _asks_without_files(self, state: State) -> bool:
        return is_empty(state) and self._question == request_of(state)

    def _may_steer(self, state: State) -> bool:
        """Return whether to choose the tools for a question: a small model has the text of files, or there are none."""
        overview = overview_of(state)
        if overview is None or not (is_small(self.llm.capabilities) and self._is_general):
            return False
        return bool(overview.shown) or is_empty(state)

    @property
    def _is_general(self) -> bool:
        """Whether the user talks with this agent, as with no micro agent."""
        return has_example(self.toolbox) and not self.tools

    def _may_repair(self, state: State) -> bool:
        """Return whether RepairAgent may do the task: at its beginning, if there is a check."""
        begun = any(action.completion for action, _ in state.history)
        may_delegate = any(tool.name == "delegate" for tool in self.toolbox)
        return may_delegate and not (begun or state.delegate_level or state.totals.plan_mode) and bool(check_of(state))

    async def _ask(
        self,
        state: State,
        tools: Sequence[ActionTool],
        allowed: Sequence[ActionTool],
        temperature: float | None = None,
        *,
        example: bool = True,
    ) -> list[Action]:
        """Ask with a prompt of all ``tools``; the request offers the ``allowed`` ones."""

        def prompt(protocol: ReplyProtocol, small: bool) -> Sequence[Message]:
            capabilities = self.llm.capabilities
            descriptions = tuple(tool.tool for tool in tools)
            senses = (capabilities.vision, capabilities.hearing)
            network = tuple(state.totals.network)
            source = (protocol.name, small, senses, state.workspace, state.skills, network, descriptions, example)

            def build(*_: object) -> Iterable[Message]:
                return prompt_messages(protocol, small, state, tools, capabilities, example=example)

            return self._message_cache.get_or_build(0, source, build)

        cache = self._message_cache
        return await ask(
            self.llm,
            with_facts(state, with_empty=not self._asks_without_files(state)),
            cache,
            prompt,
            tools,
            temperature,
            offered=allowed,
            keep_tools=True,
        )

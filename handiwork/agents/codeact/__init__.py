"""CodeActAgent, the generalist: it converses, runs bash, edits files and finishes."""

from __future__ import annotations

from handiwork.agents.base import Agent, Step
from handiwork.agents.codeact import native
from handiwork.agents.codeact.constrained import step as constrained_step
from handiwork.agents.codeact.message_cache import MessageCache
from handiwork.agents.state import State


class CodeActAgent(Agent):
    """Acts by code, with the model's native tool calls where it has them, else with replies bound to a JSON schema.

    A subclass with ``tools`` offers them to the model beside its own, where it has tool calls.
    """

    description = "The generalist: converses, runs bash and Python, edits files, finishes."

    def reset(self) -> None:
        """Forget the rendered messages."""
        self._made = MessageCache()

    async def step(self, state: State) -> Step:
        """Ask the model for the next action."""
        if not self.llm.capabilities.tools:
            return await constrained_step(self.llm, state, self._made)
        messages = native.messages(state, self._made, vision=self.llm.capabilities.vision)
        completion = await self.llm.complete(messages, native.tools(self.tools))
        return native.actions(completion, self.tools)

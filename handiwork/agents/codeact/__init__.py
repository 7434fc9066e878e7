"""CodeActAgent, the general-purpose agent: it talks to the user, runs bash and Python, and edits files."""

from __future__ import annotations

from handiwork.agents.base import Agent, Step
from handiwork.agents.codeact import native
from handiwork.agents.codeact.constrained import step as constrained_step
from handiwork.agents.codeact.message_cache import MessageCache
from handiwork.agents.state import State


class CodeActAgent(Agent):
    """Acts by code, with native tool calls if the model has them, else with replies bound to a JSON schema.

    A subclass's ``tools`` join the built-in ones, for models with tool calls only.
    """

    description = "The general-purpose agent: runs bash and Python, edits files, talks to you."

    def reset(self) -> None:
        """Clear the message cache."""
        self._message_cache = MessageCache()

    async def step(self, state: State) -> Step:
        """Ask the model for the next action."""
        if not self.llm.capabilities.tools:
            return await constrained_step(self.llm, state, self._message_cache)
        messages = native.messages(state, self._message_cache, vision=self.llm.capabilities.vision)
        completion = await self.llm.complete(messages, native.tools(self.tools))
        return native.actions(completion, self.tools)

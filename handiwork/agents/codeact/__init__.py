"""CodeActAgent, the generalist: it converses, runs bash, edits files and finishes."""

from __future__ import annotations

from handiwork.agents.base import Agent, Step
from handiwork.agents.codeact import native
from handiwork.agents.codeact.constrained import step as constrained_step
from handiwork.agents.state import State
from handiwork.llm.types import Message


class CodeActAgent(Agent):
    """Acts by code, with the model's native tool calls where it has them, else with replies bound to a JSON schema."""

    description = "The generalist: converses, runs bash, edits files, finishes."

    def reset(self) -> None:
        """Forget the rendered messages."""
        self._made: dict[int, Message] = {}

    async def step(self, state: State) -> Step:
        """Ask the model for the next action."""
        if not self.llm.capabilities.tools:
            return await constrained_step(self.llm, state, self._made)
        completion = await self.llm.complete(native.messages(state, self._made), native.TOOLS)
        return native.actions(completion)

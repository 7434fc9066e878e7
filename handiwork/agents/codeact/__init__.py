"""CodeActAgent, the generalist: it converses, runs bash, edits files and finishes."""

from __future__ import annotations

from handiwork.agents.base import Agent, AgentLLM, Step
from handiwork.agents.codeact.constrained import ConstrainedReplies
from handiwork.agents.codeact.native import NativeTools
from handiwork.agents.state import State


class CodeActAgent(Agent):
    """Acts by code, with the model's native tool calls where it has them, else with replies bound to a JSON schema."""

    description = "The generalist: converses, runs bash, edits files, finishes."

    def __init__(self, llm: AgentLLM) -> None:
        self.protocol = NativeTools() if llm.capabilities.tools else ConstrainedReplies()
        super().__init__(llm)

    def reset(self) -> None:
        """Forget the rendered messages."""
        self.protocol.reset()

    async def step(self, state: State) -> Step:
        """Ask the model for the next action."""
        protocol = self.protocol
        completion = await self.llm.complete(
            protocol.messages(state), protocol.tools, protocol.schema, protocol.temperature(state)
        )
        return protocol.actions(completion)

"""The MinimalAgent of the OpenHands paper (Figure 3): run it with `--agent examples/minimal_agent.py:MinimalAgent`."""

import re

from handiwork.agents.base import Agent
from handiwork.agents.rendering import observation_text
from handiwork.agents.state import State
from handiwork.events.action import AgentFinishAction, CmdRunAction, MessageAction
from handiwork.events.base import Action
from handiwork.llm.types import Message

SYSTEM = "Solve the task. Reply with one command in <execute_bash>...</execute_bash>; with <finish/> when it is done."


class MinimalAgent(Agent):
    """Converses and runs bash; its step blocks, as in the paper."""

    def step(self, state: State) -> Action:
        """Ask the model for the next action, with the whole history as messages."""
        messages = [Message.text("system", SYSTEM)]
        for action, observation in state.history:
            if isinstance(action, CmdRunAction):
                messages.append(Message.text("assistant", f"<execute_bash>{action.command}</execute_bash>"))
                messages.append(Message.text("user", observation_text(action, observation)))
            elif isinstance(action, MessageAction):
                role = "user" if action.source == "user" else "assistant"
                messages.append(Message.text(role, action.content))

        reply = self.llm.complete(messages).content
        if command := re.search(r"<execute_bash>(.*?)</execute_bash>", reply, re.DOTALL):
            return CmdRunAction(command=command[1].strip(), thought=reply[: command.start()].strip())
        if "<finish/>" in reply:
            return AgentFinishAction(thought=reply)
        return MessageAction(content=reply, wait_for_response=True)

"""The MinimalAgent of the OpenHands paper (Figure 3): run it with `--agent examples/minimal_agent.py:MinimalAgent`."""

import re

from handiwork.agents.base import Agent
from handiwork.agents.rendering import observation_text
from handiwork.agents.state import State
from handiwork.events import action as actions
from handiwork.events.base import Action
from handiwork.llm.types import Message

SYSTEM = "Solve the task. Reply with bash, Python or browser actions in <execute_bash>...</execute_bash>, \
<execute_ipython>...</execute_ipython> or <execute_browse>...</execute_browse>; with <finish/> when it is done."


class MinimalAgent(Agent):
    """Converses, runs bash and Python, and browses; its step blocks, as in the paper."""

    def step(self, state: State) -> Action:
        """Ask the model for the next action, with the whole history as messages."""
        messages = [Message.text("system", SYSTEM)]
        for action, observation in state.history:
            text = action.content if isinstance(action, actions.MessageAction) else action.thought
            messages.append(Message.text("user" if action.source == "user" else "assistant", text))
            if observation is not None:
                messages.append(Message.text("user", observation_text(observation)))

        reply = self.llm.complete(messages).content
        if block := re.search(r"<execute_(bash|ipython|browse)>(.*?)</execute_\1>", reply, re.DOTALL):
            if block[1] == "bash":
                return actions.CmdRunAction(command=block[2].strip(), thought=reply)
            if block[1] == "ipython":
                return actions.IPythonRunCellAction(code=block[2].strip(), thought=reply)
            return actions.BrowseInteractiveAction(browser_actions=block[2].strip(), thought=reply)
        if "<finish/>" in reply:
            return actions.AgentFinishAction(thought=reply)
        return actions.MessageAction(content=reply, wait_for_response=True)

"""ManagerAgent: it chooses among the micro agents, and delegates to them."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from handiwork.agents.base import Agent, Step
from handiwork.agents.codeact.toolbox import TOOLS
from handiwork.agents.micro.catalog import read_catalog
from handiwork.agents.micro.definition import TASK, MicroFile
from handiwork.agents.micro.fields import model_of
from handiwork.agents.prompts import system_prompt
from handiwork.agents.protocols.action_tools import ActionTool
from handiwork.agents.protocols.ask import ask
from handiwork.agents.protocols.example import example_messages
from handiwork.agents.protocols.mcp_tools import with_mcp
from handiwork.agents.protocols.message_cache import MessageCache
from handiwork.agents.state import State
from handiwork.events.action import AgentDelegateAction
from handiwork.llm.types import Tool

_ENDS = ("ask", "finish", "reject")

_EXAMPLE = (
    ("The notes in docs/ have spelling mistakes.", ("That is for typo_fixer.", "typo_fixer", {"task": "docs/"})),
    (
        "TypoFixerAgent finished. summary: docs/walks.md: brige is bridge now.",
        ("It has mended them.", "finish", {"message": "docs/walks.md had one mistake: brige is bridge now."}),
    ),
)
"""What small models see before the task: texts, each with the reply's thought, tool and arguments."""


class ManagerAgent(Agent):
    """Delegates all work: its tools are the micro agents of the user and of packages, with their inputs."""

    description = "Chooses among the micro agents, and delegates the task or its parts to them."
    uses_mcp = True

    def reset(self) -> None:
        """Clear the message cache and read the micro agents."""
        self._message_cache = MessageCache()
        agents = [delegation_tool(micro) for _, micro in sorted(read_catalog().agents.items())]
        self._tools = (*agents, *(tool for tool in TOOLS if tool.name in _ENDS))

    async def step(self, state: State) -> Step:
        """Ask the model which agent is next, or for the end."""
        tools = with_mcp(self._tools, state)
        has_fixer = any(tool.name == "typo_fixer" for tool in tools)
        example = partial(example_messages, example=_EXAMPLE if has_fixer else ())
        prompt = system_prompt("manager/system", self._message_cache, state, tools, example)
        return await ask(self.llm, state, self._message_cache, prompt, tools)


def delegation_tool(micro: MicroFile) -> ActionTool:
    """Return the tool that delegates to a micro agent: `commit_writer` for CommitWriterAgent, with its inputs."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", micro.name.removesuffix("Agent")).lower()
    schema: dict[str, Any] = {"properties": {}, **model_of(f"{micro.name}Inputs", micro.inputs).model_json_schema()}
    gives = f" It gives {', '.join(micro.keys.outputs)}." if micro.keys.outputs else ""

    def make(arguments: dict[str, Any]) -> AgentDelegateAction:
        return AgentDelegateAction(agent=micro.name, inputs=arguments)

    return ActionTool(Tool(name, f"{micro.keys.description}{gives}".strip(), schema), make, body=TASK)

"""What a micro agent's prompt has before the task: the outputs of its context, and for small windows an example."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast
from unittest.mock import ANY

import pytest

from handiwork.agents.codeact import CodeActAgent
from handiwork.agents.codeact.prompt import prompt_messages
from handiwork.agents.micro.agent import agent_class
from handiwork.agents.micro.definition import parse
from handiwork.agents.planner import PlannerAgent
from handiwork.agents.protocols import JSON
from handiwork.agents.protocols.base import ReplyProtocol
from handiwork.agents.protocols.text_reply import TextProtocol
from handiwork.agents.state import State
from handiwork.events.action import AddTaskAction, AgentFinishAction, CmdRunAction, FileEditAction
from handiwork.events.base import Action
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.types import Capabilities
from tests.agents.states import ran, shown, state_of, task

TEXT = Capabilities(tools=False, schema=False, window=8_192)
OUTPUTS = """outputs:
  done: boolean
  count: integer
  share: number
  text: string
  level: {type: string, enum: [low, high]}
  only: {type: string, enum: [one]}
  names: {type: array, items: string}
  more: object
  note: {type: string, default: ""}
"""


def micro(keys: str) -> Any:
    return agent_class(parse(Path("Mine.md"), f"---\n{keys}---\nDo it: {{{{ task }}}}\n"), lambda _: CodeActAgent)


async def commands(state: State, llm: ScriptedLLM, keys: str) -> list[str]:
    """The commands of the agent's next step."""
    actions = cast("list[Action]", await micro(keys)(llm).step(state))
    return [action.command for action in actions if isinstance(action, CmdRunAction)]


@pytest.mark.parametrize("protocol", [TextProtocol(), JSON], ids=["text", "json"])
@pytest.mark.parametrize(
    "keys",
    [
        "tools: [bash, edit]\noutputs: {summary: string}\n",
        "tools: ipython\noutputs: {answer: integer}\n",
        "tools: bash\noutputs: {completed: boolean, summary: string}\n",
        f"tools: [bash]\n{OUTPUTS}",
    ],
)
def test_the_replies_of_the_example_call_the_agents_own_tools(keys: str, protocol: ReplyProtocol) -> None:
    tools = micro(keys).toolbox
    messages = prompt_messages(protocol, True, state_of(task()), tools, TEXT)
    replies = [message.content[0].text or "" for message in messages if message.role == "assistant"]
    calls = [call for reply in replies for call in protocol.read(reply, (), tools).calls]
    by_name = {tool.name: tool for tool in tools}
    actions = [by_name[call.name].make(json.loads(call.arguments)) for call in calls]
    assert len(actions) == len(replies)
    kinds = [type(action) for action in actions]
    end = AgentFinishAction
    assert kinds in ([FileEditAction, end], [ANY, end, ANY, end], [end, ANY, end])


def test_an_agent_that_only_reads_has_no_example() -> None:
    messages = list(prompt_messages(TextProtocol(), True, state_of(task()), micro("tools: read\n").toolbox, TEXT))
    assert [message.role for message in messages] == ["system"]


async def test_a_planner_with_chosen_tools_can_still_plan() -> None:
    micro_file = parse(Path("Mine.md"), "---\nagent: PlannerAgent\ntools: [bash, read]\n---\nDo it: {{ task }}\n")
    llm = ScriptedLLM([{"tool_calls": [{"name": "plan_task", "arguments": {"goal": "look"}}]}])
    (planned,) = cast("list[Action]", await agent_class(micro_file, lambda _: PlannerAgent)(llm).step(state_of(task())))
    assert isinstance(planned, AddTaskAction)


async def test_the_context_runs_before_the_first_request_and_once() -> None:
    keys, llm = "context: [git log -n 5, git diff]\n", ScriptedLLM([{"content": "Hello."}])
    log, diff = ran("git log -n 5", "Begin\n", 0), ran("git diff", "+1\n", 0)
    assert await commands(state_of(task("Mend add.")), llm, keys) == ["git log -n 5", "git diff"]
    assert await commands(state_of(task("Mend add."), *log), llm, keys) == ["git diff"]  # after a crash
    assert not llm.requests
    assert await commands(state_of(task("Mend add."), *log, *diff), llm, keys) == []
    prompt = shown(llm.requests[0])
    assert prompt.index("$ git log -n 5\nBegin") < prompt.index("$ git diff\n+1") < prompt.index("Do it: Mend add.")

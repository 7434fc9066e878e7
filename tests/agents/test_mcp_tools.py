"""What the tools of MCP servers cost a prompt."""

from __future__ import annotations

import json

import pytest

from handiwork.agents.protocols import JSON, NATIVE, TEXT, ReplyProtocol
from handiwork.agents.protocols.mcp_tools import with_mcp
from handiwork.agents.state import State
from handiwork.events.action import MCPToolsAction
from handiwork.events.record import MCPServerEvent, MCPTool
from handiwork.session.mcp.results import look_up

ARGUMENT = "an_argument_that_only_the_schema_has"
SCHEMA = json.dumps({"type": "object", "properties": {ARGUMENT: {"description": "words " * 300}}})


def server(count: int) -> MCPServerEvent:
    """A server whose tools have long descriptions and long schemas."""
    tools = (
        MCPTool(name=f"tool_{n}", description=f"Do thing {n}. {'At length. ' * 100}", arguments=SCHEMA)
        for n in range(count)
    )
    return MCPServerEvent(server="many", state="ready", tools=tuple(tools))


def prompt(protocol: ReplyProtocol, count: int) -> str:
    """Return what a request says about the tools."""
    state = State()
    state.apply(server(count))
    tools = with_mcp((), state)
    return f"{protocol.instructions(tools, compact=False)}{protocol.request(tools)}".replace("\\n", "\n")


@pytest.mark.parametrize("protocol", [NATIVE, TEXT, JSON])
def test_fifty_tools_cost_a_line_each(protocol: ReplyProtocol) -> None:
    one, fifty = prompt(protocol, 1), prompt(protocol, 50)
    assert fifty.count("\n") - one.count("\n") == 49
    assert len(fifty) - len(one) < 49 * len("- many tool_10: Do thing 10\n.")
    assert "- many tool_49: Do thing 49" in fifty
    assert ARGUMENT not in fifty
    assert "At length" not in fifty


def test_a_look_up_shows_the_schemas_of_the_named_tools_alone() -> None:
    shown = look_up({"many": server(50)}, MCPToolsAction(server="many", tools=("tool_7", "tool_9"))).content
    assert shown.count(ARGUMENT) == 2
    assert shown.startswith("tool_7: Do thing 7. At length.")

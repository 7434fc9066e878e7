"""A hook's matcher has whole names of actions, tools or agents, and a pattern for what the action is about."""

from __future__ import annotations

from typing import Any

import pytest

from handiwork.agents.codeact.toolbox import TOOLS as TOOLBOX
from handiwork.agents.protocols.mcp_tools import MCP_TOOLS
from handiwork.events.action import (
    BrowseURLAction,
    CmdRunAction,
    FileReadAction,
    FileWriteAction,
    IPythonRunCellAction,
    MCPCallAction,
    MCPToolsAction,
)
from handiwork.events.base import Action
from handiwork.hooks import TOOLS, UNSEEN, Hook

RUN = CmdRunAction(command="cd x\ngit push -f")
WRITE = FileWriteAction(path="src/a.py", content="")
CALL = MCPCallAction(server="files", tool="write_file")


def hook(matcher: str, **more: Any) -> Hook:
    return Hook.model_validate({"event": "before_action", "command": "true", "matcher": matcher, **more})


@pytest.mark.parametrize(
    ("matcher", "action", "tool", "matches"),
    [
        ("", RUN, "", True),
        ("*", RUN, "", True),
        ("CmdRunAction", RUN, "", True),
        ("bash", RUN, "", True),
        ("cmd_run", RUN, "", True),
        ("Cmd", RUN, "bash", False),
        ("CmdRunActions", RUN, "", False),
        ("cmdrunaction", RUN, "", False),
        ("write|edit", WRITE, "", True),
        ("write|edit", RUN, "", False),
        ("my_tool", IPythonRunCellAction(code="1"), "my_tool", True),
        ("my_tool", IPythonRunCellAction(code="1"), "", False),
        ("bash(git push*)", RUN, "", False),
        ("bash(*git push*)", RUN, "", True),
        ("*(*.py)", WRITE, "", True),
        ("write(*.PY)", WRITE, "", False),
        ("write(a.py)", WRITE, "", False),
        ("read(src/?.py)", FileReadAction(path="src/a.py", start=3), "", True),
        ("browse(https://*)", BrowseURLAction(url="https://example.org"), "", True),
        ("mcp_call", CALL, "", True),
        ("mcp_call(files write*)", CALL, "", True),
        ("mcp_call(files read*)", CALL, "", False),
        ("bash(echo (1))", CmdRunAction(command="echo (1)"), "", True),
    ],
)
def test_a_matcher_means_whole_names(matcher: str, action: Action, tool: str, matches: bool) -> None:
    assert hook(matcher).matches(action, tool) is matches


@pytest.mark.parametrize(
    ("matcher", "own", "delegate"),
    [("", True, False), ("*", True, True), ("CodeActAgent", True, True), ("Code|Agent", False, False)],
)
def test_a_gate_without_a_matcher_is_for_the_sessions_own_agent(matcher: str, own: bool, delegate: bool) -> None:
    gate = hook(matcher, event="before_finish")
    assert (gate.gates("CodeActAgent", 0), gate.gates("/a/b.py:CodeActAgent", 7)) == (own, delegate)


def test_the_names_of_tools_are_codeacts() -> None:
    made: dict[str, str] = {}
    for tool in TOOLBOX:
        schema: Any = tool.tool.parameters
        values = {"string": "list", "integer": 1, "number": 1, "boolean": False, "array": ["a"], "object": {}}
        fields = {name: field.get("enum", [values[field["type"]]])[0] for name, field in schema["properties"].items()}
        made[tool.name] = tool.make(fields).kind
    made |= {"mcp_tools": MCPToolsAction.__name__, "mcp_call": MCPCallAction.__name__}
    assert {name: kind for name, kind in made.items() if kind not in UNSEEN} == TOOLS
    assert set(MCP_TOOLS) <= set(TOOLS)


def test_names_that_nothing_has_are_known_as_such() -> None:
    assert hook("bash|FileEditAction|run_test|MessageAction|finish|*").unknown_names() == [
        "run_test",
        "MessageAction",
        "finish",
    ]

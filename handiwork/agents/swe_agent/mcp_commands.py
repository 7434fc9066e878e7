"""The commands by which SWEAgent's model uses MCP servers: the tools of protocols/mcp_tools.py as command lines."""

from __future__ import annotations

import json
import shlex
from contextlib import suppress
from typing import Any, cast

from handiwork.agents.base import MalformedReplyError
from handiwork.agents.protocols.mcp_tools import CALL, LOOK_UP, with_mcp
from handiwork.agents.state import State
from handiwork.agents.swe_agent.bundles import BundleArgument, BundleTool
from handiwork.events.action import MCPCallAction, MCPToolsAction
from handiwork.events.base import Action

_SERVER = BundleArgument(name="server")
COMMANDS = (
    BundleTool(name=LOOK_UP, arguments=(_SERVER, BundleArgument(name="tool", required=False))),
    BundleTool(name=CALL, arguments=(_SERVER, BundleArgument(name="tool"), BundleArgument(name="arguments"))),
)


def docs_of(state: State) -> str:
    """Return the part of the prompt about the session's MCP servers, "" without one."""
    texts = zip(COMMANDS, with_mcp((), state), strict=False)
    return "".join(f"\n{command.form}\n  {tool.tool.description}" for command, tool in texts)


def action_of(command: str) -> MCPToolsAction | MCPCallAction | None:
    """Return the action that a command line stands for; None for one of the shell. Raises MalformedReplyError."""
    words = command.split(None, 3)
    match words:
        case [name, server, *tools] if name == LOOK_UP and len(tools) < 2:
            return MCPToolsAction(server=server, tools=tuple(tools))
        case [name, server, tool, *arguments] if name == CALL:
            return MCPCallAction(server=server, tool=tool, arguments=_object(arguments[0] if arguments else "{}"))
        case [name, *_] if name in (LOOK_UP, CALL):
            raise MalformedReplyError(f"Nothing was run. Usage: {next(c.form for c in COMMANDS if c.name == name)}")
        case _:
            return None


def command_of(action: Action) -> str:
    """Return the command line of an action, "" for one of another kind."""
    match action:
        case MCPToolsAction():
            return " ".join([LOOK_UP, action.server, *action.tools])
        case MCPCallAction():
            return f"{CALL} {action.server} {action.tool} {json.dumps(action.arguments, ensure_ascii=False)}"
        case _:
            return ""


def _object(text: str) -> dict[str, Any]:
    """Return the JSON object in a text, which may be quoted as for a shell. Raises MalformedReplyError."""
    with suppress(ValueError):
        text = " ".join(shlex.split(text)) if text[:1] in ("'", '"') else text
    with suppress(ValueError):
        value: object = json.loads(text)
        if isinstance(value, dict):
            return cast("dict[str, Any]", value)
    raise MalformedReplyError(f"Nothing was run: the arguments of {CALL} must be a JSON object, not {text[:200]!r}.")

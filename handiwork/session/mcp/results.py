"""The answers of an MCP server as events: its tools, and the result of a call, both bounded in size."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from handiwork.events.action import MCPCallAction, MCPToolsAction
from handiwork.events.base import Observation, Part
from handiwork.events.observation import ErrorObservation, MCPCallObservation, MCPToolsObservation
from handiwork.events.pictures import LONGEST_SIDE, longest_side
from handiwork.events.record import MCPServerEvent, MCPTool
from handiwork.sandbox.client import IMAGE_BEGINNINGS, IMAGE_COUNT, IMAGE_LIMIT, KEEP, LEFT_OUT

if TYPE_CHECKING:
    import mcp_types as types

TOOLS = 300
"""Tools of one server, at most."""

DESCRIPTION, SCHEMA, ALL_SCHEMAS = 4_000, 20_000, 400_000
"""Characters of a tool's description, of the JSON of its schema, and of all schemas of a server; longer are dropped."""

SHOWN = 30_000
"""Characters of one answer to a look-up of tools."""

SaveBytes = Callable[[bytes], Awaitable[str]]
"""Saves bytes as a blob and returns its SHA-256 in hex."""

_NAME = re.compile(r"[A-Za-z0-9_./-]{1,128}")


def tools_of(listed: list[types.Tool]) -> tuple[tuple[MCPTool, ...], str]:
    """Return a server's tools, and which were left out, "" for none."""
    tools: list[MCPTool] = []
    dropped = [tool.name[:50] for tool in listed if not _NAME.fullmatch(tool.name)]
    room = ALL_SCHEMAS
    for tool in listed:
        if tool.name in dropped or len(tools) == TOOLS:
            continue
        schema = json.dumps(tool.input_schema, ensure_ascii=False)
        schema = schema if len(schema) <= min(SCHEMA, room) else "{}"
        room -= len(schema)
        tools.append(MCPTool(name=tool.name, description=(tool.description or "")[:DESCRIPTION], arguments=schema))
    problems = [f"tools with unusual names are left out: {', '.join(map(repr, dropped[:5]))}"] * bool(dropped)
    problems += [f"only the first {TOOLS} tools are used"] * (len(listed) - len(dropped) > TOOLS)
    return tuple(tools), "; ".join(problems)


async def observation_of(action: MCPCallAction, result: types.CallToolResult, save: SaveBytes) -> Observation:
    """Return the observation of a call: its texts together, long ones as a blob, its pictures as blobs."""
    texts: list[str] = []
    images: list[Part] = []
    for part in result.content:
        if part.type != "image":
            texts.append(_text(part))
        elif (picture := _picture(part.data, part.mime_type)) is None or len(images) == IMAGE_COUNT:
            texts.append(LEFT_OUT)
        else:
            images.append(Part(blob=await save(picture), media_type=part.mime_type))
    if not result.content and result.structured_content is not None:
        texts.append(json.dumps(result.structured_content, ensure_ascii=False))
    return MCPCallObservation(
        server=action.server,
        tool=action.tool,
        images=tuple(images),
        error=result.is_error,
        **await _bounded("\n".join(texts), save),
    )


def look_up(servers: Mapping[str, MCPServerEvent], action: MCPToolsAction) -> Observation:
    """Return the schemas of the tools that the action names, or an ErrorObservation that lists the names there are."""
    server = servers.get(action.server)
    if server is None or not server.tools:
        known = ", ".join(name for name, each in servers.items() if each.tools) or "none"
        why = "" if server is None else f" It {server.state}: {server.content}."
        if server is not None and server.state == "ready":
            why = " It has no tools."
        text = f"There is no MCP server {action.server!r} to use.{why} There are: {known}."
        return ErrorObservation(content=text, error_id="no_server")
    names = {tool.name for tool in server.tools}
    if unknown := [name for name in action.tools if name not in names]:
        return ErrorObservation(content=unknown_tool(server, unknown[0]), error_id="no_tool")
    shown = [tool for tool in server.tools if not action.tools or tool.name in action.tools]
    parts: list[str] = []
    for number, tool in enumerate(shown):
        text = f"{tool.name}: {tool.description}\narguments: {tool.arguments}"
        if sum(map(len, parts)) + len(text) > SHOWN and parts:
            parts.append(f"Ask for these by name: {', '.join(each.name for each in shown[number:])}")
            break
        parts.append(text)
    return MCPToolsObservation(server=action.server, content="\n\n".join(parts))


def unknown_tool(server: MCPServerEvent, tool: str) -> str:
    """Return the message about a tool that the server does not have."""
    names = ", ".join(each.name for each in server.tools)
    return f"The MCP server {server.server} has no tool {tool!r}. It has: {names}."


def _text(part: Any) -> str:
    match part.type:
        case "text":
            return part.text
        case "resource_link":
            return f"[resource {part.name}: {part.uri}]"
        case "resource":
            text = getattr(part.resource, "text", None)
            return text if isinstance(text, str) else f"[resource {part.resource.uri}, which is no text]"
        case kind:
            return f"[{kind} is left out: only text and pictures are read]"


def _picture(data: str, media_type: str) -> bytes | None:
    """Return the bytes of a picture that models accept, None for any other."""
    beginning = IMAGE_BEGINNINGS.get(media_type)
    if beginning is None or len(data) > 2 * IMAGE_LIMIT:
        return None
    try:
        picture = base64.b64decode(data)
    except ValueError:
        return None
    if not picture.startswith(beginning) or len(picture) > IMAGE_LIMIT or longest_side(picture) > LONGEST_SIDE:
        return None
    return picture


async def _bounded(text: str, save: SaveBytes) -> dict[str, Any]:
    """Return the fields of a text: the whole, or its two ends and the blob that holds it."""
    data = text.encode(errors="replace")
    head, tail = KEEP["head"], KEEP["tail"]
    if len(data) <= head + tail:
        return {"content": data.decode(), "size": len(data)}
    ends = (data[:head].decode(errors="ignore"), data[-tail:].decode(errors="ignore"))
    return {"content": ends[0], "tail": ends[1], "size": len(data), "blob": await save(data)}

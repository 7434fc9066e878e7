"""Hooks: the user's commands before and after actions, before an agent finishes, and at a session's begin and end.

They are ``[[hooks]]`` tables of the user's settings file, and of no other: no repository, variable, flag, session or
server request can add one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Self

from pydantic import Field, field_validator, model_validator

from handiwork.events.action import MCPCallAction
from handiwork.events.base import EVENT_TYPES, Action, Model
from handiwork.events.record import HookPlace, HookPoint

TOOLS = {
    "bash": "CmdRunAction",
    "jobs": "JobAction",
    "read_output": "OutputReadAction",
    "read": "FileReadAction",
    "write": "FileWriteAction",
    "edit": "FileEditAction",
    "search_code": "CodeSearchAction",
    "ipython": "IPythonRunCellAction",
    "browse": "BrowseURLAction",
    "plan_task": "AddTaskAction",
    "modify_task": "ModifyTaskAction",
    "delegate": "AgentDelegateAction",
    "fork": "ForkAction",
    "mcp_tools": "MCPToolsAction",
    "mcp_call": "MCPCallAction",
}
"""CodeActAgent's tools and those of MCP servers, each with the action it becomes, in every protocol."""

UNSEEN = frozenset(
    f"{name}Action" for name in ("AgentFinish", "AgentReject", "AgentThink", "ChangeAgentState", "HookRun", "Message")
)
"""Actions that are not carried out, so that no hook runs before or after them."""

SUBJECTS = ("command", "path", "code", "url", "browser_actions", "agent")
"""The fields of actions that a pattern is matched with; an action's subject is the first that it has."""

NAME_LIMIT = 60
_NAME = r"(?:\*|[A-Za-z_]\w*)"
_MATCHER = re.compile(rf"(?P<names>{_NAME}(?:\|{_NAME})*)(?:\((?P<pattern>.+)\))?", re.ASCII | re.DOTALL)


class Hook(Model):
    """One ``[[hooks]]`` table.

    ``matcher`` has whole names separated by ``|``, "*" for all: at actions those of actions (CmdRunAction) or tools
    (bash), optionally with a pattern for their command or path in parentheses behind the last: "write|edit(*.py)".
    Before a finish they are names of agents; without a matcher only the session's own agent is meant. ``timeout`` is in
    seconds. ``max_refusals`` is how many times in a row a hook before a finish may send the agent back.
    """

    event: HookPoint
    command: str = Field(max_length=30_000)
    matcher: str = ""
    name: str = Field(default="", max_length=NAME_LIMIT)
    timeout: float = Field(default=60.0, gt=0, le=3600)
    where: HookPlace = "sandbox"
    max_refusals: int = Field(default=3, ge=0, le=100)

    @field_validator("command")
    @classmethod
    def _some_command(cls, value: str) -> str:
        if not value.strip() or "\0" in value:
            raise ValueError("it must be a shell command")
        return value

    @field_validator("name")
    @classmethod
    def _one_line(cls, value: str) -> str:
        if not value.isprintable():
            raise ValueError("it must be one line of printable characters")
        return value

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if self.event in ("session_start", "session_end") and self.matcher:
            raise ValueError(f"a {self.event} hook has nothing to match: leave out the matcher")
        if self.matcher and not _MATCHER.fullmatch(self.matcher):
            raise ValueError(
                f"the matcher {self.matcher!r} is not understood: write whole names like bash|CmdRunAction, with a "
                'pattern behind them in parentheses if you like: "bash(git push*)"'
            )
        if self.event == "before_finish" and self.pattern:
            raise ValueError("the matcher of a before_finish hook has names of agents, and no pattern")
        if self.max_refusals != 3 and self.event != "before_finish":
            raise ValueError("max_refusals is for before_finish hooks")
        return self

    @property
    def title(self) -> str:
        """The name that people read: the one set, else the start of the command."""
        return self.name or " ".join(self.command.split())[:NAME_LIMIT]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the matcher."""
        return tuple(self.matcher.partition("(")[0].split("|"))

    @property
    def pattern(self) -> str:
        """The matcher's pattern with the wildcards * ? [], "" for none."""
        return self.matcher.partition("(")[2].removesuffix(")")

    def matches(self, action: Action, tool: str = "") -> bool:
        """Return whether the hook runs before or after the action, which the model called by the name ``tool``."""
        named = self.names == ("",) or not {*self.names}.isdisjoint(
            {"*", *_names_of(action.kind), *([tool] if tool else [])}
        )
        return named and (not self.pattern or fnmatchcase(subject(action), self.pattern))

    def gates(self, agent: str, subtask: int) -> bool:
        """Return whether the hook runs before this agent finishes its task (0) or subtask."""
        if not self.matcher:
            return subtask == 0
        return "*" in self.names or agent.rpartition(":")[2] in self.names

    def unknown_names(self) -> list[str]:
        """Return the matcher's names that no installed action and no tool of CodeActAgent has."""
        if self.event not in ("before_action", "after_action"):
            return []
        kinds = {kind for kind in EVENT_TYPES if kind.endswith("Action")} - UNSEEN
        known = {name for kind in kinds for name in _names_of(kind)}
        return [name for name in self.names if name not in {*known, "*", ""}]


def subject(action: Action) -> str:
    """Return the text that patterns are matched with: a command, path, code or address, or an MCP server and tool."""
    if isinstance(action, MCPCallAction):
        return f"{action.server} {action.tool}"
    values = (getattr(action, name, None) for name in SUBJECTS)
    return next((value for value in values if isinstance(value, str)), "")


def _names_of(kind: str) -> Iterator[str]:
    """Yield the names of a kind of action: its own, and those of the tools that become it."""
    yield kind
    yield re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind.removesuffix("Action")).lower()
    yield from (tool for tool, made in TOOLS.items() if made == kind)

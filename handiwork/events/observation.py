"""The observations: the results of actions."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, JsonValue

from handiwork.events.action import (
    AgentState,
    BrowseInteractiveAction,
    BrowseURLAction,
    CmdRunAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    HookRunAction,
    IPythonRunCellAction,
    JobAction,
)
from handiwork.events.base import Action, Model, Observation, Part

StateReason = Literal["limit", "model", "sandbox", "agent", "user", "stuck", "context", "over"]
CmdStatus = Literal["done", "running", "input", "exited", "interrupted", "time_limit", "timeout", "background"]
ReachedLimit = Literal["", "memory", "processes", "file_size", "disk", "machine_disk", "time"]
JobStatus = Literal["running", "done", "stopped"]


class CmdOutputObservation(Observation):
    """Output of a shell command; ``content`` is stdout and stderr, interleaved as printed.

    ``status``: "done"; "running" (the command still runs); "input" (it waits for input); "exited" (the shell itself
    exited and was restarted in the same directory); "interrupted" (by the user); "time_limit" (stopped by that of the
    session); "timeout" (by its own); "background" (it runs as ``job``). ``exit_code`` is None while the command runs.
    ``cwd`` is the shell's directory. ``limit`` is the limit of the sandbox, or the timeout, that the command reached.
    """

    answers = (CmdRunAction,)
    repeats = ("command",)

    command: str
    exit_code: int | None
    status: CmdStatus = "done"
    cwd: str = ""
    job: str = ""
    limit: ReachedLimit = ""

    @property
    def error(self) -> bool:
        """Whether the command exited with a code that is not 0."""
        return self.exit_code not in (0, None)


class JobObservation(Observation):
    """State of the background command ``job``; ``content`` is its output since the last read.

    For the operation "list" ``content`` has a line for each job. ``exit_code`` is None while the command runs.
    """

    answers = (JobAction,)
    repeats = ("operation", "job")

    operation: Literal["list", "read", "stop"]
    job: str = ""
    status: JobStatus | None = None
    exit_code: int | None = None


class OutputReadObservation(Observation):
    """Lines ``start`` to ``end`` of an output that has ``lines``; ``output`` is its blob."""

    output: str
    start: int = 1
    end: int = 0
    lines: int = 0


class IPythonRunCellObservation(Observation):
    """Output of a notebook cell: text in ``content``, pictures in ``images``, and if it raised the exception's name."""

    answers = (IPythonRunCellAction,)
    repeats = ("code",)

    code: str
    images: tuple[Part, ...] = ()
    error: str | None = None
    status: CmdStatus = "done"


class FileReadObservation(Observation):
    """Lines ``start`` to ``end`` of ``path``; ``lines`` is the file's number of lines."""

    answers = (FileReadAction,)
    repeats = ("path",)

    path: str
    start: int = 1
    end: int = 0
    lines: int = 0


class FileWriteObservation(Observation):
    """A file was written; ``created`` tells whether it is new, ``unchanged`` whether it had this text already.

    Of the ``lines`` that it had, ``deleted`` are gone; ``deleted_text`` has the first of those.
    ``syntax_error`` is its first syntax error, like "line 3: '(' was never closed", "" if none is found;
    ``undefined_names``, of Python without one, new names that nothing defines, like "line 3: undefined name 'os'".
    """

    answers = (FileWriteAction,)
    repeats = ("path",)

    path: str
    created: bool = False
    unchanged: bool = False
    lines: int = 0
    deleted: int = 0
    deleted_text: str = ""
    syntax_error: str = ""
    undefined_names: tuple[str, ...] = ()


class FileEditObservation(Observation):
    """A file was edited; ``content`` is the change as a unified diff, ``line`` its first line, counted from 1.

    ``syntax_error`` is the first syntax error that the file now has, and ``undefined_names`` are the new undefined
    names, as in FileWriteObservation.
    """

    answers = (FileEditAction,)
    repeats = ("path",)

    path: str
    line: int = 1
    syntax_error: str = ""
    undefined_names: tuple[str, ...] = ()


class HookRunObservation(Observation):
    """Output of a hook's command; ``exit_code`` is None if the command was stopped before its end."""

    answers = (HookRunAction,)

    exit_code: int | None


class BrowserOutputObservation(Observation):
    """The browser's page after an action; ``content`` is the page as text, the screenshots are blobs.

    ``open_pages`` are the tabs' URLs and ``active_page`` the index of the one shown; ``focused_element`` is a bid.
    ``last_action`` is the action and ``last_action_error`` the reason why it failed. ``messages`` are the action's
    messages to the user, ``infeasible`` is the reason why the task cannot be done, ``dialog`` the page's dialog that
    waits for an answer, ``downloads`` the paths of new files, ``console`` the page's new errors.
    """

    answers = (BrowseURLAction, BrowseInteractiveAction)

    url: str
    title: str = ""
    screenshot: Part | None = None
    marked_screenshot: Part | None = None
    open_pages: tuple[str, ...] = ()
    active_page: int = -1
    focused_element: str = ""
    last_action: str = ""
    last_action_error: str = ""
    messages: tuple[str, ...] = ()
    infeasible: str = ""
    dialog: str = ""
    downloads: tuple[str, ...] = ()
    console: tuple[str, ...] = ()

    @classmethod
    def repeated(cls, action: Action) -> dict[str, Any]:
        """Return the action as a call of the browser's action language."""
        match action:
            case BrowseURLAction(url=url):
                return {"last_action": f"goto({url!r})"}
            case BrowseInteractiveAction(browser_actions=calls):
                return {"last_action": calls}
            case _:
                return {}


class CodeSearchObservation(Observation):
    """The best code blocks that match ``query``, of ``total``; ``content`` has their places and texts."""

    query: str
    total: int


NOT_EXACT = "No block matches exactly; these have some of the words, or words that begin with them."
"""What a search says if it is not exact, as in CodeBlocksObservation."""


class CodeBlock(Model):
    """A block of code: lines ``first`` to ``last`` of a file, 1-based and inclusive.

    ``name`` is what it defines, with the classes around a method, and "" if it defines nothing. ``prototype`` is what
    stands before its body.
    """

    file_path: str
    type: str
    first: int
    last: int
    name: str = ""
    prototype: str = ""
    docstring: str = ""
    code: str = ""

    @property
    def line(self) -> str:
        """The block in one line: its prototype, or else its first line."""
        return (self.prototype or self.code.partition("\n")[0])[:200]


class CodeBlocksObservation(Observation):
    """The best ``blocks`` that match a query, of ``total``; ``extended`` tells that none matches exactly."""

    total: int
    blocks: tuple[CodeBlock, ...] = ()
    extended: bool = False


class MCPCallObservation(Observation):
    """The result of a tool of an MCP server: text in ``content``, pictures in ``images``.

    ``error`` tells that the tool itself reports a failure.
    """

    server: str
    tool: str
    images: tuple[Part, ...] = ()
    error: bool = False


class MCPToolsObservation(Observation):
    """Tools of an MCP server; ``content`` has the description of each and the JSON schema of its arguments."""

    server: str


class AgentDelegateObservation(Observation):
    """A subtask ended with an ``outcome`` and ``outputs``."""

    agent: str
    outcome: AgentState = "finished"
    outputs: dict[str, JsonValue] = Field(default_factory=dict)


class ChildOutcome(Model):
    """The end of one child of a ForkAction; ``diff`` is its changes to its own copy of the workspace."""

    agent: str
    outcome: AgentState
    outputs: dict[str, JsonValue] = Field(default_factory=dict)
    diff: str = ""


class ForkObservation(Observation):
    """The children of a ForkAction have ended; ``outcomes`` are in the order they were asked for."""

    outcomes: tuple[ChildOutcome, ...] = ()


class PlanObservation(Observation):
    """The plan was changed; ``content`` is the whole plan as text."""


NOT_ALLOWED = "The user did not allow it."
"""What a refusal says without a comment of the user."""


class UserRejectObservation(Observation):
    """The user refused the action; ``content`` is the user's comment, or NOT_ALLOWED."""


class HookRejectObservation(Observation):
    """The user's hook ``hook`` refused the action; ``content`` tells the agent so, with the hook's output."""

    hook: str


class AgentStateChangedObservation(Observation):
    """The session's agent is now in ``agent_state``; ``content`` is the reason as text, ``reason`` as one word."""

    agent_state: AgentState
    reason: StateReason


class ErrorObservation(Observation):
    """The action failed; ``content`` tells the agent why.

    ``error_id`` is a stable word for programs, like "not_unique" or "sandbox_lost".
    """

    error_id: str = ""

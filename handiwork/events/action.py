"""The actions that an agent or a user can ask for."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, JsonValue

from handiwork.events.base import Action, Part

AgentState = Literal[
    "loading",
    "running",
    "awaiting_user_input",
    "awaiting_user_confirmation",
    "paused",
    "stopped",
    "finished",
    "rejected",
    "error",
]
BrowserView = Literal["visible", "full", "text"]
TaskState = Literal["open", "in_progress", "completed", "abandoned", "verified"]


class MessageAction(Action):
    """A message, from the user to the agent or from the agent to the user.

    With ``wait_for_response`` the agent stops until the user answers.
    """

    content: str
    images: tuple[Part, ...] = ()
    wait_for_response: bool = False


class CmdRunAction(Action):
    """Run ``command`` in the sandbox's bash.

    With ``is_input`` the text is sent to the running program, which waits for input. An empty command reads more
    output of the running command. With ``background`` the observation comes at once, with a handle for JobAction.
    After ``timeout`` seconds the command is stopped; None means the session's default, for a background command no
    timeout.
    """

    runnable: ClassVar[bool] = True
    command: str
    is_input: bool = False
    background: bool = False
    timeout: float | None = Field(default=None, gt=0)


class JobAction(Action):
    """List the background commands, "read" the output of ``job`` since the last read, or "stop" it."""

    runnable: ClassVar[bool] = True
    operation: Literal["list", "read", "stop"]
    job: str = ""


class OutputReadAction(Action):
    """Read lines ``start`` to ``end``, 1-based and inclusive, of an output that was too large to be shown whole.

    ``output`` is its handle: the first characters, 8 or more, of the blob. With ``pattern``, a regular expression
    with one repetition at most and no groups, only the lines that match it.
    """

    output: str
    start: int = Field(default=1, ge=1)
    end: int | None = Field(default=None, ge=1)
    pattern: str = ""


class CodeSearchAction(Action):
    """Find blocks of the workspace's code, like functions and classes, by ``query``.

    It has words, or Lucene's syntax with the fields text, type, name, file_path, lines, prototype and docstring.
    """

    runnable: ClassVar[bool] = True
    query: str


class CodeBlocksAction(CodeSearchAction):
    """Return the ``count`` best blocks themselves, of the files below ``folders`` of the workspace; none are all."""

    folders: tuple[str, ...] = ()
    count: int = Field(default=100, ge=1, le=1_000)


class IPythonRunCellAction(Action):
    """Run ``code`` as one cell of the sandbox's notebook; ``timeout`` is in seconds."""

    runnable: ClassVar[bool] = True
    code: str
    timeout: float | None = Field(default=None, gt=0)


class FileReadAction(Action):
    """Read lines ``start`` to ``end`` of a text file, 1-based and inclusive; ``end`` None is the last line."""

    runnable: ClassVar[bool] = True
    path: str
    start: int = Field(default=1, ge=1)
    end: int | None = Field(default=None, ge=1)


class FileWriteAction(Action):
    """Write ``content`` as the whole of a text file, making its parent directories."""

    runnable: ClassVar[bool] = True
    path: str
    content: str


class FileEditAction(Action):
    """Replace ``old``, which must occur exactly once in the file, by ``new``; nothing else is touched."""

    runnable: ClassVar[bool] = True
    path: str
    old: str
    new: str


class HookRunAction(Action):
    """Run ``command``, a hook of the user's or the platform's own, in a bash of its own in ``directory``.

    ``input`` is its standard input. The platform sends it to a sandbox, and interrupts it after ``timeout`` seconds; it
    is never in a log.
    """

    runnable: ClassVar[bool] = True
    command: str
    input: str
    directory: str
    timeout: float | None = Field(default=None, gt=0)


class BrowseURLAction(Action):
    """Open ``url`` in the sandbox's browser; ``view`` and ``marks`` are as in BrowseInteractiveAction."""

    runnable: ClassVar[bool] = True
    url: str
    view: BrowserView = "visible"
    marks: bool = False


class BrowseInteractiveAction(Action):
    """Run ``browser_actions``, one or more calls of the BrowserGym action language, in the sandbox's browser.

    ``view`` selects the text of the observation: the part of the page's accessibility tree inside the window
    ("visible"), the whole tree ("full"), or the page's text for reading ("text"). With ``marks`` the observation has a
    screenshot in which each element bears its bid.
    """

    runnable: ClassVar[bool] = True
    browser_actions: str
    view: BrowserView = "visible"
    marks: bool = False


class MCPCallAction(Action):
    """Call ``tool`` of the MCP server ``server``, one of the user's settings, with ``arguments``."""

    runnable: ClassVar[bool] = True
    server: str
    tool: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)


class MCPToolsAction(Action):
    """Look up the arguments of ``tools`` of the MCP server ``server``; without names, of all its tools."""

    server: str
    tools: tuple[str, ...] = ()


class AgentDelegateAction(Action):
    """Hand a subtask over to ``agent`` and wait for its outputs."""

    agent: str
    inputs: dict[str, JsonValue] = Field(default_factory=dict)


class ForkAction(Action):
    """Run several subtasks side by side, each an (agent, inputs) pair on its own copy of the workspace."""

    children: tuple[tuple[str, dict[str, JsonValue]], ...]


class AgentFinishAction(Action):
    """The agent says the task is done; ``outputs`` go to the user or the delegating agent."""

    outputs: dict[str, JsonValue] = Field(default_factory=dict)


class AgentRejectAction(Action):
    """The agent says the task cannot or should not be done; ``outputs['reason']`` says why."""

    outputs: dict[str, JsonValue] = Field(default_factory=dict)


class AgentThinkAction(Action):
    """A thought with no effect, kept in the history."""


class AddTaskAction(Action):
    """Add a task with the goal ``goal`` to the plan, below task ``parent`` ("" is the top); ``subtasks`` are goals."""

    parent: str
    goal: str
    subtasks: tuple[str, ...] = ()


class ModifyTaskAction(Action):
    """Set the state of a task of the plan, and with it of those below or above; ``task_id`` is like "0.1"."""

    task_id: str
    state: TaskState


class ChangeAgentStateAction(Action):
    """Ask the session to run, pause or stop."""

    agent_state: AgentState

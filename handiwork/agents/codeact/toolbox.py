"""CodeAct's tools: their descriptions for the model, and the action each call becomes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from handiwork.events.action import (
    AddTaskAction,
    AgentDelegateAction,
    AgentFinishAction,
    BrowserView,
    BrowseURLAction,
    CmdRunAction,
    FileEditAction,
    IPythonRunCellAction,
    JobAction,
    ModifyTaskAction,
    OutputReadAction,
    TaskState,
)
from handiwork.events.base import Action
from handiwork.llm.types import JsonSchema, Tool


def _schema(required: list[str], **properties: tuple[str, str] | JsonSchema) -> JsonSchema:
    return {
        "type": "object",
        "properties": {
            name: spec if isinstance(spec, dict) else {"type": spec[0], "description": spec[1]}
            for name, spec in properties.items()
        },
        "required": required,
        "additionalProperties": False,
    }


TOOLS = (
    Tool(
        "bash",
        "Run a command in the sandbox's bash session and return its output. An empty command waits for more output "
        "of a program that is still running, and with a timeout stops it when that is over.",
        _schema(
            ["command"],
            command=("string", "The command, one line or several."),
            is_input=(
                "boolean",
                "True to send the text to the running program instead; C-c, C-d and C-z are keys.",
            ),
            background=(
                "boolean",
                "True to start it and go on at once, for servers and long work: jobs lists, reads and stops such.",
            ),
            timeout=("number", "Seconds after which it is stopped."),
        ),
    ),
    Tool(
        "jobs",
        "List the commands that were started in the background, read what one printed since you last read it, or "
        "stop one.",
        _schema(
            ["operation"],
            operation={"type": "string", "enum": ["list", "read", "stop"]},
            job=("string", 'Which one, to read or stop it, like "job1".'),
        ),
    ),
    Tool(
        "read_output",
        "Show lines of an output that was too large to be shown whole.",
        _schema(
            ["output"],
            output=("string", "The output's name, as given where it was cut."),
            start=("integer", "The first line, from 1."),
            end=("integer", "The last line."),
            pattern=("string", "Show only lines that match it: a regular expression, one repetition, no groups."),
        ),
    ),
    Tool(
        "edit",
        "Replace a text that occurs exactly once in a file. Make a new file with bash.",
        _schema(
            ["path", "old", "new"],
            path=("string", "The file, absolute or from the shell's directory."),
            old=("string", "The exact text to replace, with enough lines around it to be unique."),
            new=("string", "The text to put there."),
        ),
    ),
    Tool(
        "ipython",
        "Run a cell of Python in the sandbox's notebook and return what it prints, its last expression and pictures. "
        "An empty cell waits for one that is still running.",
        _schema(
            ["code"],
            code=("string", "The cell; %magics and !commands work, input() does not."),
            timeout=("number", "Seconds after which it is stopped."),
        ),
    ),
    Tool(
        "browse",
        "Open a page in the sandbox's browser and return its text. For reading pages whose address you know; for work "
        "in the browser that takes several steps, like searching a site, filling a form or trying out a web "
        "application, use `delegate` with the agent BrowsingAgent.",
        _schema(
            ["url"],
            url=("string", "The address: http, https, or file for a page of the workspace."),
            view={
                "type": "string",
                "enum": list(get_args(BrowserView)),
                "description": "What to return: the page's words (text, if none is given), or its accessibility tree, "
                "of what the window shows (visible) or of all (full).",
            },
        ),
    ),
    Tool(
        "add_task",
        "Add a task to your plan, which the user sees. The answer is the whole plan, with the id of every task.",
        _schema(
            ["goal"],
            goal=("string", "What is to be done, in a few words."),
            parent=("string", "The id of the task it belongs to; none for a task of its own."),
            subtasks={"type": "array", "items": {"type": "string"}, "description": "The goals of its parts."},
        ),
    ),
    Tool(
        "modify_task",
        "Set the state of a task of your plan.",
        _schema(
            ["task_id", "state"],
            task_id=("string", 'Its id, like "0.1".'),
            state={"type": "string", "enum": list(get_args(TaskState))},
        ),
    ),
    Tool(
        "delegate",
        "Hand a part of the work that stands for itself over to another agent, which works on the same files with a "
        "history of its own. Only its outcome comes back.",
        _schema(
            ["task"],
            task=("string", "What it is to do and to report, with all it has to know."),
            agent=("string", "Its name; CodeActAgent if none is given. BrowsingAgent works in the web browser."),
            url=("string", "For BrowsingAgent: the page to begin at, if it is not the one that is open."),
        ),
    ),
    Tool(
        "finish",
        "End the task.",
        _schema(["message"], message=("string", "What you did and found, for the user.")),
    ),
)

Makers = dict[str, Callable[[dict[str, Any]], Action]]
"""Functions that turn a call's arguments into an action, by tool name."""

MAKERS: Makers = {
    "bash": lambda a: CmdRunAction(
        command=a["command"],
        is_input=a.get("is_input", False),
        background=a.get("background", False),
        timeout=a.get("timeout"),
    ),
    "jobs": lambda a: JobAction(operation=a["operation"], job=a.get("job") or ""),
    "read_output": lambda a: OutputReadAction(
        output=a["output"], start=a.get("start") or 1, end=a.get("end"), pattern=a.get("pattern") or ""
    ),
    "edit": lambda a: FileEditAction(path=a["path"], old=a["old"], new=a["new"]),
    "ipython": lambda a: IPythonRunCellAction(code=a["code"], timeout=a.get("timeout")),
    "add_task": lambda a: AddTaskAction(parent=a.get("parent") or "", goal=a["goal"], subtasks=a.get("subtasks") or ()),
    "modify_task": lambda a: ModifyTaskAction(task_id=a["task_id"], state=a["state"]),
    "browse": lambda a: BrowseURLAction(url=a["url"], view=a.get("view") or "text"),
    "delegate": lambda a: AgentDelegateAction(
        agent=a.get("agent") or "CodeActAgent",
        inputs={"task": a["task"]} | ({"url": a["url"]} if a.get("url") else {}),
    ),
    "finish": lambda a: AgentFinishAction(outputs={"message": a["message"]}),
}

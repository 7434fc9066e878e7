"""CodeAct's tools: their descriptions for the model, and the action each call becomes."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, cast, get_args

from handiwork.agents.protocols.action_tools import ActionTool, parameters
from handiwork.agents.registry import names_a_file
from handiwork.events.action import (
    AddTaskAction,
    AgentDelegateAction,
    AgentFinishAction,
    AgentRejectAction,
    BrowserView,
    BrowseURLAction,
    CmdRunAction,
    CodeSearchAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    ForkAction,
    IPythonRunCellAction,
    JobAction,
    MessageAction,
    ModifyTaskAction,
    OutputReadAction,
    TaskState,
)
from handiwork.llm.types import Tool


def _children(arguments: dict[str, Any]) -> ForkAction:
    tasks = arguments["tasks"]
    if not isinstance(tasks, list):
        raise TypeError("tasks is a list of texts")
    return ForkAction(children=tuple((_AGENT, {"task": task}) for task in cast("list[Any]", tasks)))


def _delegation(arguments: dict[str, Any]) -> AgentDelegateAction:
    others: Any = arguments.get("inputs") or {}
    if not isinstance(others, dict):
        raise TypeError("inputs is an object")
    url = {"url": arguments["url"]} if arguments.get("url") else {}
    inputs = {**cast("dict[str, Any]", others), **url, "task": arguments["task"]}
    agent = str(arguments.get("agent") or _AGENT)
    if names_a_file(agent):
        raise ValueError("agent is the name of an installed agent, not a file or module")
    return AgentDelegateAction(agent=agent, inputs=inputs)


_AGENT = "CodeActAgent"

_SEARCH = ActionTool(
    Tool(
        "search_code",
        "Find the workspace's functions, classes and other blocks of code by words of theirs; return the best with "
        "their code.",
        parameters(
            ["query"],
            query=(
                "string",
                "Words, or Lucene syntax with the fields type, name, file_path and text: type: CLASS AND name: Parser*",
            ),
        ),
    ),
    lambda a: CodeSearchAction(query=a["query"]),
)

TOOLS: Sequence[ActionTool] = (
    ActionTool(
        Tool(
            "bash",
            "Run a command in the sandbox's bash session and return its output. An empty command waits for more output "
            "of a program that is still running, and with a timeout stops it when that is over.",
            parameters(
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
        lambda a: CmdRunAction(
            command=a["command"],
            is_input=a.get("is_input", False),
            background=a.get("background", False),
            timeout=a.get("timeout"),
        ),
        body="command",
    ),
    ActionTool(
        Tool(
            "jobs",
            "List the commands that were started in the background, read what one printed since you last read it, or "
            "stop one.",
            parameters(
                ["operation"],
                operation={"type": "string", "enum": ["list", "read", "stop"]},
                job=("string", 'Which one, to read or stop it, like "job1".'),
            ),
        ),
        lambda a: JobAction(operation=a["operation"], job=a.get("job") or ""),
    ),
    ActionTool(
        Tool(
            "read_output",
            "Show lines of an output that was too large to be shown whole.",
            parameters(
                ["output"],
                output=("string", "The output's name, as given where it was cut."),
                start=("integer", "The first line, from 1."),
                end=("integer", "The last line."),
                pattern=("string", "Show only lines that match it: a regular expression, one repetition, no groups."),
            ),
        ),
        lambda a: OutputReadAction(
            output=a["output"], start=a.get("start") or 1, end=a.get("end"), pattern=a.get("pattern") or ""
        ),
    ),
    ActionTool(
        Tool(
            "read",
            "Show a text file, or lines of it.",
            parameters(
                ["path"],
                path=("string", "The file, absolute or from the shell's directory."),
                start=("integer", "The first line, from 1."),
                end=("integer", "The last line."),
            ),
        ),
        lambda a: FileReadAction(path=a["path"], start=a.get("start") or 1, end=a.get("end")),
    ),
    *([_SEARCH] if find_spec("tantivy") else []),  # the extra that it needs
    ActionTool(
        Tool(
            "write",
            "Write a whole file, new or in place of the old one, with all its lines. For new and for small files.",
            parameters(
                ["path", "content"],
                path=("string", "The file, absolute or from the shell's directory."),
                content=("string", "All of its text, also what stays."),
            ),
        ),
        lambda a: FileWriteAction(path=a["path"], content=a["content"]),
        body="content",
    ),
    ActionTool(
        Tool(
            "edit",
            "Replace a text that occurs exactly once in a file.",
            parameters(
                ["path", "old", "new"],
                path=("string", "The file, absolute or from the shell's directory."),
                old=("string", "The exact text to replace, with enough lines around it to be unique."),
                new=("string", "The text to put there."),
            ),
        ),
        lambda a: FileEditAction(path=a["path"], old=a["old"], new=a["new"]),
        body=("old", "new"),
    ),
    ActionTool(
        Tool(
            "ipython",
            "Run a cell of Python in the sandbox's notebook and return what it prints, its last expression and "
            "pictures. An empty cell waits for one that is still running.",
            parameters(
                ["code"],
                code=("string", "The cell; %magics and !commands work, input() does not."),
                timeout=("number", "Seconds after which it is stopped."),
            ),
        ),
        lambda a: IPythonRunCellAction(code=a["code"], timeout=a.get("timeout")),
        body="code",
    ),
    ActionTool(
        Tool(
            "browse",
            "Open a page in the sandbox's browser and return its text. For reading pages whose address you know; for "
            "work in the browser that takes several steps, like searching a site, filling a form or trying out a web "
            "application, use `delegate` with the agent BrowsingAgent.",
            parameters(
                ["url"],
                url=("string", "The address, or the path of a page, absolute or from the shell's directory."),
                view={
                    "type": "string",
                    "enum": list(get_args(BrowserView)),
                    "description": "What to return: the page's words (text, if none is given), or its accessibility "
                    "tree, of what the window shows (visible) or of all (full).",
                },
            ),
        ),
        lambda a: BrowseURLAction(url=a["url"], view=a.get("view") or "text"),
    ),
    ActionTool(
        Tool(
            "plan_task",
            "Add a task to your plan, which the user sees. The answer is the whole plan, with the id of every task.",
            parameters(
                ["goal"],
                goal=("string", "What is to be done, in a few words."),
                parent=("string", "The id of the task it belongs to; none for a task of its own."),
                subtasks={"type": "array", "items": {"type": "string"}, "description": "The goals of its parts."},
            ),
        ),
        lambda a: AddTaskAction(parent=a.get("parent") or "", goal=a["goal"], subtasks=a.get("subtasks") or ()),
        body="goal",
    ),
    ActionTool(
        Tool(
            "modify_task",
            "Set the state of a task of your plan.",
            parameters(
                ["task_id", "state"],
                task_id=("string", 'Its id, like "0.1".'),
                state={"type": "string", "enum": list(get_args(TaskState))},
            ),
        ),
        lambda a: ModifyTaskAction(task_id=a["task_id"], state=a["state"]),
    ),
    ActionTool(
        Tool(
            "delegate",
            "Hand a part of the work that stands for itself over to another agent. It works on the same files with a "
            "history of its own, and only its outcome comes back. BrowsingAgent works in the web browser, RepairAgent "
            "searches for a repair until a test command succeeds.",
            parameters(
                ["task"],
                task=("string", "What it is to do and to report, with all it has to know."),
                agent=("string", f"Its name; {_AGENT} if none is given."),
                url=("string", "For BrowsingAgent: the page to begin at, if it is not the one that is open."),
                inputs=("object", 'Its other inputs by name, like {"check": "make test"} for RepairAgent.'),
            ),
        ),
        _delegation,
        body="task",
    ),
    ActionTool(
        Tool(
            "fork",
            "Try several ways at once. Each task goes to an agent of its own with its own copy of the files, and their "
            "outcomes and changes come back; your files stay as they are.",
            parameters(
                ["tasks"],
                tasks={"type": "array", "items": {"type": "string"}, "description": "A task for each, complete."},
            ),
        ),
        _children,
    ),
    ActionTool(
        Tool(
            "ask",
            "Ask the user something that you cannot find out.",
            parameters(["question"], question=("string", "The question.")),
        ),
        lambda a: MessageAction(content=a["question"], wait_for_response=True),
        body="question",
    ),
    ActionTool(
        Tool(
            "finish",
            "End the task: it is done, or the question answered.",
            parameters(["message"], message=("string", "What you did and found, for the user.")),
        ),
        lambda a: AgentFinishAction(outputs={"message": a["message"]}),
        body="message",
    ),
    ActionTool(
        Tool(
            "reject",
            "End the task because it cannot be done, or should not.",
            parameters(["reason"], reason=("string", "Why, for the user.")),
        ),
        lambda a: AgentRejectAction(outputs={"reason": a["reason"], "message": a["reason"]}),
        body="reason",
    ),
)

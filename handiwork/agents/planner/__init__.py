"""PlannerAgent: it makes a plan of tasks first, then works through it one task at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from handiwork.agents.base import Agent, MalformedReplyError, Step
from handiwork.agents.codeact import overview_budget
from handiwork.agents.codeact.check import first_look
from handiwork.agents.codeact.toolbox import TOOLS
from handiwork.agents.codeact.turn import turn_of
from handiwork.agents.history import History, is_told
from handiwork.agents.plan import DONE, Plan, Task
from handiwork.agents.prompts import system_prompt
from handiwork.agents.protocols.action_tools import ActionTool
from handiwork.agents.protocols.ask import ask, is_small
from handiwork.agents.protocols.example import check_not_copied, example_messages
from handiwork.agents.protocols.mcp_tools import MCP_TOOLS, with_mcp
from handiwork.agents.protocols.message_cache import MessageCache
from handiwork.agents.state import State
from handiwork.events.action import (
    AddTaskAction,
    AgentFinishAction,
    CmdRunAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    MessageAction,
    ModifyTaskAction,
)
from handiwork.events.base import Action, Observation
from handiwork.events.observation import CmdOutputObservation, ErrorObservation
from handiwork.events.overview import WorkspaceOverviewAction

LAST, SMALL_LAST = 20, 6
"""The steps that a prompt shows, in general and for a small window."""

_WORK = ("bash", "read_output", "read", "search_code", "write", "edit", "ipython", "browse")
_PLAN = ("plan_task", "modify_task")
_ENDS = ("ask", "finish", "reject")

_NO_PLAN = "There is no plan yet. Make one with `plan_task`: few tasks, each with a result that can be checked."
_GOAL = "Let greet.sh greet by the name it is given"
_NOW = f"The plan:\n[>] 0 {_GOAL}\n\nNow: task 0, {_GOAL}"
_EXAMPLE = (
    (
        'Files:\ngreet.sh (1 line, 13 bytes)\n\ngreet.sh:\n```\necho "Hello"\n```\n\n'
        f'`sh greet.sh Ann` prints "Hello". It should greet by name.\n\n{_NO_PLAN}',
        ("One task is enough.", "plan_task", {"goal": _GOAL}),
    ),
    (_NOW, ("I write the file anew, with $1.", "write", {"path": "greet.sh", "content": 'echo "Hello, $1"\n'})),
    (
        f"greet.sh is written.\n\n{_NOW}\ngreet.sh is changed: run something that shows whether it works.",
        ("I run it to check.", "bash", {"command": "sh greet.sh Ann"}),
    ),
    (
        f"Hello, Ann\n[exit code 0]\n\n{_NOW}\n"
        "If its result is there and checked, set it with `modify_task` 0 completed.",
        ("It prints the name.", "modify_task", {"task_id": "0", "state": "completed"}),
    ),
    (
        f"The plan:\n[x] 0 {_GOAL}\n\nAll tasks are done. Call `finish` with what was done.",
        ("That was the only task.", "finish", {"message": "greet.sh greets by the name it is given."}),
    ),
)
"""What small models see before the task: texts, each with the reply's thought, tool and arguments."""


class PlannerAgent(Agent):
    """Shows the model the task, the last steps and the plan; the plan comes last, with its next task.

    The agent itself starts the next open task, and completes a task whose subtasks are done. Without a plan the model
    can only plan, and it can finish once no task is open. A model with a small window first sees the workspace's
    files, and works after it has planned: it would add the same task again and again.
    """

    description = "Makes a plan first, and works through its tasks one by one; its prompts stay short."
    sends_history = False
    uses_mcp = True
    toolbox = tuple(tool for tool in TOOLS if tool.name in (*_WORK, *_PLAN, *_ENDS))

    def reset(self) -> None:
        """Clear the message cache."""
        self._message_cache = MessageCache()

    async def step(self, state: State) -> Step:
        """Move on in the plan, or ask the model for the next actions."""
        if (change := next_change(state.plan)) is not None:
            return change
        small_window = is_small(self.llm.capabilities)
        if small_window and (look := first_look(state, overview_budget(self.llm.capabilities))) is not None:
            return look
        last = SMALL_LAST if small_window else LAST
        # A micro agent may name its tools; without those for the plan the agent cannot begin.
        planning = (tool for tool in TOOLS if tool.name in _PLAN and tool not in self.toolbox)
        toolbox = (*self.toolbox, *planning)
        tools = with_mcp(toolbox, state) if self.uses_mcp else toolbox
        situation = MessageAction(content=_situation(state), source="environment")
        state.history = [*recent(state.history, last), (situation, None)]
        example = partial(example_messages, example=_EXAMPLE)
        prompt = system_prompt("planner/system", self._message_cache, state, tools, example)
        offered = _offered(state.plan, tools)
        if small_window and _has_planned(state.history) and open_leaves(state.plan):
            offered = [tool for tool in offered if tool.name not in _PLAN]
        actions = await ask(self.llm, state, self._message_cache, prompt, tools, offered=offered)
        check_not_copied(self.llm.capabilities, actions, state.history)
        names = ", ".join(f"{task.id} {task.goal}" for task in open_leaves(state.plan))
        if names and any(isinstance(action, AgentFinishAction) for action in actions):
            raise MalformedReplyError(f"Open tasks of the plan: {names}. Do them, or set them abandoned, then finish.")
        return actions


def next_change(plan: Plan) -> ModifyTaskAction | None:
    """Return the plan change that needs no model: a task is completed with its subtasks, or the next one starts."""
    for task in _tasks(plan.tasks):
        if task.subtasks and task.state not in DONE and all(part.state in DONE for part in task.subtasks):
            return ModifyTaskAction(task_id=task.id, state="completed")
    leaves = open_leaves(plan)
    if leaves and not any(task.state == "in_progress" for task in leaves):
        return ModifyTaskAction(task_id=leaves[0].id, state="in_progress")
    return None


def open_leaves(plan: Plan) -> list[Task]:
    """Return the tasks without parts that are not done, in order."""
    return [task for task in _tasks(plan.tasks) if not task.subtasks and task.state not in DONE]


def recent(history: History, last: int) -> History:
    """Return the user's messages, the overview of the workspace and the ``last`` steps, whole replies of the model.

    The agent's own changes of the plan are left out, because the plan itself follows.
    """
    shown = [pair for pair in history if not (isinstance(pair[0], ModifyTaskAction) and not pair[0].completion)]
    start = max(0, len(shown) - last)
    while 0 < start < len(shown) and shown[start][0].completion == shown[start - 1][0].completion is not None:
        start -= 1  # a reply is shown with all its calls or not at all
    return [*(pair for pair in shown[:start] if _always_shown(pair[0])), *shown[start:]]


def _always_shown(action: Action) -> bool:
    return is_told(action) or isinstance(action, WorkspaceOverviewAction)


def _has_planned(history: History) -> bool:
    """Return whether the model's last action added a task."""
    last = next((action for action, _ in reversed(history) if action.completion), None)
    return isinstance(last, AddTaskAction)


def _tasks(tasks: Sequence[Task]) -> Iterator[Task]:
    for task in tasks:
        yield from _tasks(task.subtasks)
        yield task


def _offered(plan: Plan, tools: Sequence[ActionTool]) -> list[ActionTool]:
    """Return the tools for the next reply: to plan, to work, or to end."""
    if not plan.tasks:
        names = ("plan_task", "ask", "reject")
    elif open_leaves(plan):
        names = (*_WORK, *MCP_TOOLS, *_PLAN, "ask", "reject")
    else:
        names = ("plan_task", "finish", "reject")
    return [tool for tool in tools if tool.name in names]


def _situation(state: State) -> str:
    """Return the end of the prompt: the plan, the task at hand, and a hint that fits the last action."""
    if not state.plan.tasks:
        return _NO_PLAN
    text = f"The plan:\n{state.plan.text()}\n\n"
    task = next((task for task in open_leaves(state.plan) if task.state == "in_progress"), None)
    if task is None:
        if not any(isinstance(action, AddTaskAction) for action, _ in turn_of(state)):
            return (
                f"{text}No task is from the user's last message yet. Add one with `plan_task` for what it asks; if it "
                "asks for nothing more, call `finish`."
            )
        return f"{text}All tasks are done. Call `finish` with what was done, or add a task if something is missing."
    return f"{text}Now: task {task.id}, {task.goal}\n{_hint(task, *state.history[-1])}"


def _hint(task: Task, action: Action, observation: Observation | None) -> str:
    complete = f"If its result is there and checked, set it with `modify_task` {task.id} completed."
    match action, observation:
        case (_, ErrorObservation()) | (CmdRunAction(), CmdOutputObservation(error=True)):
            return "The last action failed: find out why before you go on."
        case (FileWriteAction() | FileEditAction(), _):
            return f"{action.path} is changed: run something that shows whether it works. {complete}"
        case (FileReadAction(), _):
            return "Use what you have read for the next action."
        case _:
            return complete

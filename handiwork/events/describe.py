"""Describe an action in the same words for people and models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from pydantic import JsonValue

from handiwork.events.action import (
    AddTaskAction,
    AgentDelegateAction,
    AgentFinishAction,
    AgentRejectAction,
    AgentThinkAction,
    BrowseInteractiveAction,
    BrowseURLAction,
    ChangeAgentStateAction,
    CmdRunAction,
    CodeSearchAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    ForkAction,
    IPythonRunCellAction,
    JobAction,
    MCPCallAction,
    MCPToolsAction,
    MessageAction,
    ModifyTaskAction,
    OutputReadAction,
)
from handiwork.events.base import Action, Event
from handiwork.events.code_memory import (
    RecallCodeAction,
    RecallDocstringsAction,
    RememberCodeAction,
    RememberDocstringsAction,
    SummarizeCodeAction,
)
from handiwork.events.overview import WorkspaceOverviewAction
from handiwork.events.record import NetworkAllowed, PermissionsRevoked, SettingsChanged

PLANNING = (
    "Plan mode is on: read what you need, and change nothing. Commands that may change something are refused. Then "
    "finish with your plan as the message: the steps, and the files that each one changes. The user accepts the plan, "
    "or tells you what to change in it."
)
NOT_PLANNING = "Plan mode is off: you may change things again."


class Description(NamedTuple):
    """A verb in the imperative, its object, and further text of the action, as in "write", "a.py", ..."""

    verb: str
    object: str = ""
    body: str = ""


def describe(action: Action) -> Description:
    """Return the description of the action; one of a user's own agent is described by its type and fields."""
    match action:
        case CmdRunAction(command=command):
            if not command.strip() and not action.is_input:
                return Description("wait for more output")
            return Description("type" if action.is_input else "start" if action.background else "run", command)
        case JobAction(operation=operation):
            return Description("list jobs") if operation == "list" else Description(operation, action.job)
        case OutputReadAction():
            matching = f", matching {action.pattern}" if action.pattern else ""
            return Description("read output", f"{action.output}{_lines(action.start, action.end)}{matching}")
        case CodeSearchAction(query=query):
            return Description("search the code", query)
        case IPythonRunCellAction(code=code):
            return Description("run in the notebook", code)
        case RecallCodeAction():
            return Description("recall earlier tasks")
        case RecallDocstringsAction() | RememberDocstringsAction():
            return Description("recall" if isinstance(action, RecallDocstringsAction) else "remember", "docstrings")
        case RememberCodeAction():
            return Description("remember the solution")
        case SummarizeCodeAction(code=code):
            return Description("keep the solution", "", code)
        case FileReadAction():
            return Description("read", f"{action.path}{_lines(action.start, action.end)}")
        case FileWriteAction():
            return Description("write", action.path, action.content)
        case FileEditAction():
            return Description("edit", action.path, f"--- old\n{action.old}\n--- new\n{action.new}")
        case WorkspaceOverviewAction():
            return Description("look at the workspace")
        case BrowseURLAction():
            return Description("browse", action.url)
        case BrowseInteractiveAction():
            return Description("act in the browser", action.browser_actions)
        case MCPCallAction(server=server, tool=tool, arguments=arguments):
            return Description("call", f"{server} {tool} {json.dumps(arguments, ensure_ascii=False)}")
        case MCPToolsAction(server=server, tools=tools):
            return Description("look up tools", " ".join([server, *tools]))
        case MessageAction():
            return Description("say", action.content)
        case AgentThinkAction():
            return Description("think", action.thought)
        case AddTaskAction():
            return Description("add task", action.goal, "\n".join(action.subtasks))
        case ModifyTaskAction():
            return Description("set task", f"{action.task_id} to {action.state.replace('_', ' ')}")
        case AgentDelegateAction():
            return Description(f"delegate to {action.agent}", task_text(action.inputs))
        case ForkAction():
            return Description("delegate to", ", ".join(agent for agent, _ in action.children))
        case AgentFinishAction(outputs=outputs) | AgentRejectAction(outputs=outputs):
            return Description("finish" if isinstance(action, AgentFinishAction) else "reject", _texts(outputs))
        case ChangeAgentStateAction():
            return Description("ask for", action.agent_state.replace("_", " "))
        case _:
            fields = action.model_dump(mode="json", exclude=set(Action.model_fields))
            return Description(action.kind, json.dumps(fields, ensure_ascii=False))


def task_text(inputs: Mapping[str, JsonValue]) -> str:
    """Return the text of a delegate's task: its "task" input, then its other inputs."""
    others = [f"{key}: {value}" for key, value in inputs.items() if key != "task"]
    return "\n".join([str(inputs.get("task", "")), *others]).strip()


def state_text(state: str) -> str:
    """Return the name of a session's state, as in the web app; other texts stay as they are."""
    names = {
        "loading": "starting",
        "awaiting_user_input": "waits for your answer",
        "awaiting_user_confirmation": "needs your approval",
        "error": "failed",
    }
    return names.get(state, state)


def amount_text(name: str, value: float) -> str:
    """Return an amount with the unit of the limit ``name``, a field of Limits."""
    return {"iterations": f"{value:g} steps", "cost": f"${value:g}", "tokens": f"{value:,.0f} tokens"}.get(
        name, f"{value:.0f} s"
    )


def change_text(event: SettingsChanged | NetworkAllowed | PermissionsRevoked) -> str:
    """Return one line about the user's change of a session."""
    match event:
        case NetworkAllowed(hosts=hosts, once=once):
            return f"changed: the sandbox may reach {', '.join(hosts)}{' once' if once else ''}"
        case PermissionsRevoked(rules=rules, hosts=hosts):
            return f"taken back: {', '.join([*rules, *hosts])}"
        case SettingsChanged(limits=limits):
            amounts = {} if limits is None else limits.model_dump(exclude_none=True)
            texts = [amount_text(name, value) for name, value in amounts.items()] or ["none"]
            settings = {
                "model": event.model,
                "limits": None if limits is None else ", ".join(texts),
                "confirmation": event.confirmation,
                "plan mode": {None: None, True: "on", False: "off"}[event.plan_mode],
            }
            return f"changed: {'; '.join(f'{name}: {value}' for name, value in settings.items() if value)}"


def notice(event: Event) -> str:
    """Return the text that tells the agent about a change by the user; "" if the agent need not know."""
    match event:
        case SettingsChanged(plan_mode=bool(planning)):
            return PLANNING if planning else NOT_PLANNING
        case NetworkAllowed(hosts=hosts, once=once):
            return f"The user lets the sandbox reach {', '.join(hosts)}{' once' if once else ''}."
        case PermissionsRevoked(hosts=hosts) if hosts:
            return f"The sandbox may no longer reach {', '.join(hosts)}."
        case _:
            return ""


def _texts(outputs: Mapping[str, JsonValue]) -> str:
    texts = [v if isinstance(v, str) else f"{k}: {json.dumps(v, ensure_ascii=False)}" for k, v in outputs.items()]
    return "\n".join(texts)


def _lines(start: int, end: int | None) -> str:
    return "" if start == 1 and end is None else f", line {start} to {end or 'the last'}"

"""An agent class made of a micro agent's definition and the agent that it reuses."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from handiwork.agents.base import Agent, Step
from handiwork.agents.history import is_from_user
from handiwork.agents.interface import AnyOutputs, problems_text
from handiwork.agents.micro.definition import MicroFile
from handiwork.agents.micro.fields import FieldSpec, model_of
from handiwork.agents.protocols.action_tools import ActionTool
from handiwork.agents.state import State
from handiwork.events.action import AgentFinishAction, CmdRunAction
from handiwork.events.base import Action
from handiwork.llm.types import Tool

ENDS = ("finish", "reject")
"""Tools that every micro agent has."""

MCP = "mcp"
"""Stands for the tools of the session's MCP servers."""


def agent_class(micro: MicroFile, find: Callable[[str], type[Agent]]) -> type[Agent]:
    """Return the agent class of a file; ``find`` returns the reused agent by its name.

    It is a subclass of the reused agent, with the file's rendered prompt as the task's first message. If the file names
    tools, it has only those, `finish` and `reject`; "mcp" stands for the tools of MCP servers. If the file declares
    outputs, `finish` takes them. If the file names a context, its commands run before the first request to the model.
    Raises MicroFileError for tools, outputs or a context that the reused agent does not support, and the errors of
    ``find``.
    """
    base = find(micro.keys.agent)
    inputs = model_of(f"{micro.name}Inputs", micro.inputs)
    fields: dict[str, Any] = {
        "__doc__": micro.keys.description,
        "__module__": __name__,
        "description": micro.keys.description,
        "inputs": inputs,
        "outputs": model_of(f"{micro.name}Outputs", micro.keys.outputs) if micro.keys.outputs else AnyOutputs,
        "micro_file": micro.path,
        "toolbox": _toolbox(micro, base),
        "uses_mcp": base.uses_mcp and (micro.keys.tools is None or MCP in micro.keys.tools),
        "model": micro.keys.model or base.model,
        "step": _step_of(base, micro, inputs),
    }
    return cast("type[Agent]", type(micro.name, (base,), fields))


def _step_of(base: type[Agent], micro: MicroFile, inputs: type[BaseModel]) -> Callable[..., Any]:
    """Return the step, which waits or blocks as the reused agent's does."""
    if inspect.iscoroutinefunction(base.step):

        async def step(self: Agent, state: State) -> Step:
            if commands := _context_commands(state, micro):
                return commands
            return await cast("Awaitable[Step]", base.step(self, with_prompt(state, micro, inputs)))

        return step

    def blocking_step(self: Agent, state: State) -> Step:
        if commands := _context_commands(state, micro):
            return commands
        return cast("Step", base.step(self, with_prompt(state, micro, inputs)))

    return blocking_step


def _context_commands(state: State, micro: MicroFile) -> list[Action]:
    """Return the commands of the file's context that have not run yet; none after the model's first reply."""
    if any(action.completion for action, _ in state.history):
        return []
    ran = {action.command for action, _ in state.history if isinstance(action, CmdRunAction)}
    return [CmdRunAction(command=command) for command in micro.keys.context if command not in ran]


def with_prompt(state: State, micro: MicroFile, inputs: type[BaseModel]) -> State:
    """Return the step's state, whose first message of the user is now the prompt. Raises InterfaceError."""
    prompt = micro.prompt(dict(state.inputs_as(inputs)))
    for number, (action, observation) in enumerate(state.history):
        if is_from_user(action):
            first = (action.with_fields(content=prompt), observation)
            # A new list: the step's State is a copy, but its history is the session's own.
            state.history = [*state.history[:number], first, *state.history[number + 1 :]]
            break
    return state


def _toolbox(micro: MicroFile, base: type[Agent]) -> Sequence[ActionTool]:
    keys = micro.keys
    names = [tool.name for tool in base.toolbox]
    for key in ("tools", "outputs", "context"):
        if key in micro.front.values and not set(ENDS) <= set(names):
            raise micro.error((key,), f"{keys.agent} has a fixed set of tools: remove {key}, or reuse CodeActAgent")
    known = [*names, *([MCP] if base.uses_mcp else [])]
    unknown = next((n for n, name in enumerate(keys.tools or ()) if name not in known), None)
    if keys.tools is not None and unknown is not None:
        problem = f"{keys.agent} has no tool {keys.tools[unknown]!r}; it has: {', '.join(known)}"
        raise micro.error(("tools", unknown), problem)
    chosen = names if keys.tools is None else [*keys.tools, *ENDS]
    finish = _finish(micro) if keys.outputs else None
    return tuple(
        finish if finish is not None and tool.name == "finish" else tool for tool in base.toolbox if tool.name in chosen
    )


def _finish(micro: MicroFile) -> ActionTool:
    """Return `finish` with the outputs as arguments; the first text among them is the body of a text block."""
    outputs = micro.keys.outputs
    model = model_of(f"{micro.name}Outputs", outputs)
    schema: dict[str, Any] = {"properties": {}, **model.model_json_schema(), "additionalProperties": False}
    texts = [name for name, spec in outputs.items() if spec.type == "string" and spec.enum is None]
    body = next((name for name in texts if outputs[name].required), None)
    # A prompt of the text protocol has no schema: the outputs' descriptions stand in the tool's.
    described = "; ".join(
        f"{name}: {spec.description.rstrip('.')}" for name, spec in outputs.items() if spec.description
    )
    description = f"End the task: it is done{f' ({described})' if described else ''}."
    return ActionTool(Tool("finish", description, schema), partial(_end, model, outputs), body)


def _end(model: type[BaseModel], outputs: Mapping[str, FieldSpec], arguments: dict[str, Any]) -> Action:
    """Return the end of the task. Raises ValueError, whose text the model receives."""
    try:
        values = model.model_validate(arguments)
    except ValidationError as error:
        raise ValueError(f"{problems_text(error)}; finish takes {', '.join(outputs)}") from None
    return AgentFinishAction(outputs=values.model_dump(mode="json"))

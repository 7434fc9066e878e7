"""SWEAgent, the agent of the SWE-agent paper: a windowed viewer, a guarded editor and one command in each reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import takewhile
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, JsonValue

from handiwork.agents.base import Agent, MalformedReplyError, Step
from handiwork.agents.codeact.finish import NOT_DONE, UNCHANGED, why_unfinished
from handiwork.agents.codeact.turn import turn_of
from handiwork.agents.history import is_from_user, is_sent_back
from handiwork.agents.protocols import JSON, NATIVE
from handiwork.agents.protocols.action_tools import ActionTool
from handiwork.agents.protocols.ask import RETRY_TEMPERATURES, actions_of, check_closed, is_small
from handiwork.agents.protocols.mcp_tools import with_mcp
from handiwork.agents.protocols.message_cache import MessageCache
from handiwork.agents.protocols.transcript import LIMIT, SMALL_LIMIT
from handiwork.agents.repair.files import may_repeat
from handiwork.agents.state import State
from handiwork.agents.swe_agent.bundles import BundleArgument, BundleTool
from handiwork.agents.swe_agent.command_filter import why_blocked
from handiwork.agents.swe_agent.config import Parser, SWEConfig, default_config, load_config
from handiwork.agents.swe_agent.conversation import SWEStep, is_state_command, last_steps, messages, read_history
from handiwork.agents.swe_agent.install import (
    BundleFolder,
    InstallToolsAction,
    InstallToolsObservation,
    PatchAction,
    PatchObservation,
)
from handiwork.agents.swe_agent.mcp_commands import COMMANDS, action_of
from handiwork.agents.swe_agent.parsers import BLOCKS, GRAMMAR, ONE_CALL, TEXT_FORM, WHOLE, parse_text
from handiwork.agents.swe_agent.templates import render
from handiwork.events.action import AgentFinishAction, AgentRejectAction, CmdRunAction, MessageAction
from handiwork.events.base import Action, Observation
from handiwork.events.observation import CmdOutputObservation, ErrorObservation, UserRejectObservation
from handiwork.llm.errors import UnsupportedError
from handiwork.llm.types import Capabilities, Completion, ReplyForm, Tool

SUBMISSION, FORFEIT = "<<SWE_AGENT_SUBMISSION>>", "###SWE-AGENT-EXIT-FORFEIT###"
"""Lines that a tool prints to end the task."""

END_KEYS = ("C-c", "C-d", "C-\\")
"""The keys that end a program, each sent if those before did not: a shell inside the shell ends by C-d."""

_NO_TOOL = "command not found"

STATUS = {"time": "exit_total_execution_time", "context": "exit_context"}
"""SWE-agent's words for the limits at which it submits; all others are "exit_cost"."""

BASH = BundleTool(
    name="bash",
    signature="<command>",
    docstring="Run a command of bash.",
    arguments=(BundleArgument(name="command", description="The command.", argument_format="{{value}}"),),
    end_name="",
)

FUNCTION_FORM = "Reply with a short thought, and call exactly one tool."


class SWEOutputs(BaseModel):
    """The outputs: the ``patch``, and SWE-agent's word for the end as ``exit_status``."""

    message: str
    patch: str
    exit_status: str = "submitted"


class SWENotes(BaseModel):
    """The agent's data between steps: the folder of its tools inside the sandbox."""

    folder: str = ""


class SWEAgent(Agent[SWENotes]):
    """Asks for one thought and one command at a time; a subclass's ``config`` is another configuration."""

    description = "SWE-agent's way: a windowed viewer, guarded edits, one command a turn; submits a patch."
    outputs = SWEOutputs
    uses_mcp = True
    config: ClassVar[SWEConfig | None] = None

    def reset(self) -> None:
        """Clear the message cache, and forget that the shell has the tools: a new process has a new shell."""
        self._cache = MessageCache()
        self._has_tools = False
        self._config = self.config or default_config()
        self._tools = [*([BASH] if self._config.tools.enable_bash_tool else []), *self._config.commands]

    async def step(self, state: State[SWENotes]) -> Step:
        """Install the tools, then ask the model for the next command, or submit."""
        if not state.data.folder and (install := self._install(state)) is not None:
            return install
        if not _is_challenge(state.history[-1][0]) and (end := self._end(state)) is not None:
            return await self._challenge(state, end) or end
        return self._mended_shell(state) or await self._ask(state)

    async def _challenge(self, state: State[SWENotes], end: Step) -> Action | None:
        """Return a message in place of a small model's first submission without a change, if the user asks for one."""
        if not isinstance(end, PatchAction) or not end.submitted or not is_small(self.llm.capabilities):
            return None
        patch = _output(last_steps(read_history(state, self._config))[-1]).split(SUBMISSION)[1]
        if patch.strip() or any(_is_challenge(action) for action, _ in turn_of(state)):
            return None
        text = await why_unfinished(self.llm, state)
        return MessageAction(content=text, source="environment") if text else None

    def at_limit(self, state: State[SWENotes], limit: str) -> Step | None:
        """Submit the changes; the limit may have ended the reading of a patch that the model submitted."""
        installed = (o.folder for _, o in state.history if isinstance(o, InstallToolsObservation))
        folder = state.data.folder or next(installed, "")
        if not folder:
            return None
        action, observation = _last(state)
        if isinstance(action, PatchAction):
            has_patch = isinstance(observation, PatchObservation) and not observation.problem
            again = action.submitted and not has_patch
            return PatchAction(folder=folder, status=action.status) if again else self._finish(state)
        return PatchAction(folder=folder, status=f"submitted ({STATUS.get(limit, 'exit_cost')})")

    def _install(self, state: State[SWENotes]) -> Step | None:
        """Return the actions that install the tools; None once they are, or the rejection if they cannot be."""
        pair = next((pair for pair in reversed(state.history) if isinstance(pair[0], InstallToolsAction)), None)
        observation = None if pair is None else pair[1]
        if isinstance(observation, InstallToolsObservation) and not observation.missing:
            state.data.folder = observation.folder
            return None
        if isinstance(observation, InstallToolsObservation):
            names = ", ".join(observation.missing)
            return _reject(f"The tools {names} cannot be run in the sandbox. {observation.content}".strip())
        if observation is not None and not may_repeat(observation):
            return _reject(observation.text)
        self._has_tools = True
        tools = self._config.tools
        install = InstallToolsAction(
            bundles=tuple(BundleFolder(path=str(one.path), hidden=one.hidden) for one in self._config.bundles),
            root=state.workspace,
            variables=self._config.variables,
            registry={**tools.registry_variables, "PROBLEM_STATEMENT": state.task},
            reset=tuple(one if isinstance(one, str) else " && ".join(one) for one in tools.reset_commands),
            timeout=tools.install_timeout,
        )
        ignored = "\n".join(f"- {note}" for note in self._config.ignored)
        notice = [MessageAction(content=f"Keys of the configuration that have no effect here:\n{ignored}")]
        return [*(notice if ignored else []), install, *self._state_commands()]

    def _state_commands(self) -> list[Action]:
        command = self._config.state_command
        return [CmdRunAction(command=command, timeout=self._config.tools.execution_timeout)] if command else []

    def _mended_shell(self, state: State[SWENotes]) -> list[Action]:
        """Return the commands after which the shell is as before the last reply: free, and with its environment."""
        pairs: list[tuple[Action, Observation | None]] = []
        for action, observation in reversed(state.history):
            pairs.append((action, observation))
            if is_from_user(action) or isinstance(action, InstallToolsAction) or self._is_reply(action):
                break
        restore = f". {state.data.folder}/env.sh"
        done = {action.command for action, _ in pairs if isinstance(action, CmdRunAction)}
        outputs = [observation for _, observation in pairs if isinstance(observation, CmdOutputObservation)]
        newest = next((one for action, one in pairs if not is_state_command(action, self._config)), None)
        if _is_busy(newest) and (keys := next((keys for keys in END_KEYS if keys not in done), "")):
            return [CmdRunAction(command=keys, is_input=True), *self._state_commands()]
        is_new = any(
            output.status == "exited" or (output.command == self._config.state_command and _NO_TOOL in output.text)
            for output in outputs
        )
        is_new = is_new or any(isinstance(one, ErrorObservation) and may_repeat(one) for _, one in pairs)
        if not self._has_tools or (is_new and restore not in done):
            self._has_tools = True
            return [CmdRunAction(command=restore), *self._state_commands()]
        return []

    def _is_reply(self, action: Action) -> bool:
        return action.completion is not None and not is_state_command(action, self._config)

    def _end(self, state: State[SWENotes]) -> Step | None:
        """Return the end of the task if it is due: the patch is read first, then the agent finishes."""
        action = _last(state)[0]
        if isinstance(action, PatchAction):
            return self._finish(state)
        steps, tools = last_steps(read_history(state, self._config)), self._config.tools
        if not steps:
            return None
        lines = _output(steps[-1]).splitlines() if isinstance(action, CmdRunAction) else []
        replies_failed = _count_last(steps, lambda step: not step.command)
        timeouts = _count_last(steps, lambda step: _status(step) == "timeout")
        if lines.count(SUBMISSION) > 1:
            return PatchAction(folder=state.data.folder, submitted=True)
        if FORFEIT in lines:
            status = "exit_forfeit"
        elif replies_failed > self._config.max_requeries:
            status = "exit_format"
        elif timeouts >= tools.max_consecutive_execution_timeouts:
            status = "exit_command_timeout"
        elif sum(_seconds(step, state.totals.approval_times) for step in steps) > tools.total_execution_timeout:
            status = "exit_total_execution_time"
        else:
            return None
        return PatchAction(folder=state.data.folder, status=f"submitted ({status})")

    def _finish(self, state: State[SWENotes]) -> Action:
        """Return the finish with the patch; the shell no longer has the tools."""
        self._has_tools = False
        action, observation = _last(state)
        assert isinstance(action, PatchAction)
        replies = [step for step in read_history(state, self._config) if not step.message]
        thought = next((step.thought for step in reversed(replies) if step.thought), "")
        problem = observation.problem if isinstance(observation, PatchObservation) else "it could not be read"
        has_patch = isinstance(observation, PatchObservation) and not observation.problem
        outputs: dict[str, JsonValue] = {
            "message": "\n\n".join(filter(None, [thought, f"There is no patch: {problem}" if problem else ""])),
            "patch": observation.content if observation is not None and has_patch else "",
            "exit_status": action.status,
        }
        return AgentFinishAction(outputs=outputs)

    def _form(self, capabilities: Capabilities) -> Parser:
        """Return the parser for the model: that of the configuration, unless the model cannot write for it."""
        form = self._config.tools.parse_function.type
        if form == "auto" and not capabilities.tools and capabilities.protocol == "json":
            return "json"
        if form in ("auto", "function_calling"):
            return "function_calling" if capabilities.tools else "thought_action"
        return form

    async def _ask(self, state: State[SWENotes]) -> Step:
        """Ask the model for the next command; return it, and the command that prints the prompt's variables.

        A model with a small window is asked again, at a higher temperature, after a command that has just failed or has
        just run twice.
        """
        commands = [tool.action_tool(self._config.tools.execution_timeout) for tool in self._tools]
        tools = with_mcp(commands, state)
        action = await self._reply(state, tools)
        for temperature in RETRY_TEMPERATURES if is_small(self.llm.capabilities) else ():
            if not self._is_repeated(state, action):
                break
            action = await self._reply(state, tools, temperature)
        return [action, *self._state_commands()]

    def _is_repeated(self, state: State[SWENotes], action: Action) -> bool:
        command = action.command if isinstance(action, CmdRunAction) else ""
        steps = last_steps(read_history(state, self._config))
        same = list(takewhile(lambda step: step.command == command != "", reversed(steps)))
        return len(same) > 1 or any(map(_has_failed, same))

    async def _reply(
        self, state: State[SWENotes], tools: Sequence[ActionTool], temperature: float | None = None
    ) -> Action:
        while True:
            capabilities = self.llm.capabilities
            form = self._form(capabilities)
            limit = SMALL_LIMIT if is_small(capabilities) else LIMIT
            prompt = messages(
                state,
                self._config,
                self._cache,
                form,
                _reply_form(form, tools),
                limit=limit,
                capabilities=capabilities,
            )
            try:
                request = _request(form, tools, capabilities)
                completion: Completion = await self.llm.complete(prompt, *request, temperature=temperature)
            except UnsupportedError:
                if self._form(self.llm.capabilities) == form and self.llm.capabilities == capabilities:
                    raise
                continue
            return self._action(form, completion, tools)

    def _action(self, form: Parser, completion: Completion, tools: Sequence[ActionTool]) -> Action:
        """Return the action of a reply. Raises MalformedReplyError, also for a blocked command."""
        try:
            action = self._read(form, completion, tools)
        except MalformedReplyError as error:
            template = self._config.tools.parse_function.error_message or self._config.tools.format_error_template
            text = render(template, exception_message=str(error)) if template else str(error)
            if completion.finish_reason == "length":
                text = f"Your reply reached its length limit and was cut: write less. {text}"
            raise MalformedReplyError(text) from None
        if not isinstance(action, CmdRunAction):
            return action.with_fields(completion=completion.event or None)
        command = action.command
        if why := why_blocked(command, self._config.tools.filter):
            raise MalformedReplyError(why)
        endings = self._config.tools.multi_line_command_endings.items()
        for tool in [*self._tools, *(BundleTool(name=name, end_name=end) for name, end in endings)]:
            command = tool.guarded(command)
        return action.with_fields(command=command, completion=completion.event or None)

    def _read(self, form: Parser, completion: Completion, tools: Sequence[ActionTool]) -> Action:
        if form not in ("function_calling", "json"):
            has_mcp = len(tools) > len(self._tools)
            known = {tool.name: tool for tool in (*self._tools, *(COMMANDS if has_mcp else ()))}
            thought, command = parse_text(form, completion.content, known)
            check_closed(completion, blocks=form in BLOCKS)
            if form in WHOLE and completion.finish_reason == "length":
                raise MalformedReplyError("Nothing was run: the command has no end.")
            if has_mcp and (action := action_of(command)) is not None:
                return action.with_fields(thought=thought)
            return CmdRunAction(command=command, thought=thought, timeout=self._config.tools.execution_timeout)
        protocol = NATIVE if form == "function_calling" else JSON
        reply = protocol.read(completion.content, completion.tool_calls, tools)
        check_closed(completion, blocks=False)
        if len(reply.calls) != 1:
            raise MalformedReplyError(ONE_CALL.format(count=len(reply.calls) or "none"))
        (action,) = actions_of(reply.calls, reply.text, tools)
        return action


def _is_challenge(action: Action) -> bool:
    return isinstance(action, MessageAction) and action.content in (UNCHANGED, NOT_DONE)


def _last(state: State[SWENotes]) -> tuple[Action, Observation | None]:
    """Return the end of the history, without messages of the platform after it, unless a hook sends the agent back."""
    return next(
        pair
        for pair in reversed(state.history)
        if is_sent_back(pair[0]) or not (isinstance(pair[0], MessageAction) and pair[0].source == "environment")
    )


def _request(
    form: Parser, tools: Sequence[ActionTool], capabilities: Capabilities
) -> tuple[Sequence[Tool], ReplyForm | None]:
    if form in ("function_calling", "json"):
        return (NATIVE if form == "function_calling" else JSON).request(tools)
    return (), GRAMMAR if form == "thought_action" and capabilities.grammar else None


def _reply_form(form: Parser, tools: Sequence[ActionTool]) -> str:
    """Return the part of the shipped prompt that explains how to reply."""
    match form:
        case "function_calling":
            return FUNCTION_FORM
        case "json":
            return JSON.instructions(tools, compact=True)
        case _:
            return TEXT_FORM


def _count_last(steps: Sequence[SWEStep], test: Callable[[SWEStep], bool]) -> int:
    return len(list(takewhile(test, reversed(steps))))


def _status(step: SWEStep) -> str:
    return step.observation.status if isinstance(step.observation, CmdOutputObservation) else ""


def _output(step: SWEStep) -> str:
    return step.observation.text if isinstance(step.observation, CmdOutputObservation) else ""


def _has_failed(step: SWEStep) -> bool:
    return isinstance(step.observation, CmdOutputObservation) and step.observation.error


def _seconds(step: SWEStep, approval_times: Mapping[int, datetime]) -> float:
    """Return how long the command ran; ``approval_times`` is when actions started that waited for the user."""
    if not step.command or isinstance(step.observation, ErrorObservation | UserRejectObservation | None):
        return 0.0
    return (step.observation.timestamp - approval_times.get(step.action.id, step.action.timestamp)).total_seconds()


def _is_busy(observation: Observation | None) -> bool:
    """Return whether a program still runs in the shell."""
    if isinstance(observation, CmdOutputObservation):
        return observation.status in ("input", "running")
    return isinstance(observation, ErrorObservation) and observation.error_id == "busy"


def _reject(reason: str) -> AgentRejectAction:
    return AgentRejectAction(outputs={"reason": reason, "message": reason})


def load_agent(path: Path) -> type[SWEAgent]:
    """Return the agent of a configuration file. Raises SWEConfigError."""
    return type(SWEAgent.__name__, (SWEAgent,), {"config": load_config(path), "__doc__": f"SWEAgent by {path}."})

"""The conversation of SWEAgent: the task, then each reply with its output, shortened by the history processors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from pydantic import JsonValue

from handiwork.agents.history import is_from_user, is_sent_back
from handiwork.agents.protocols import NATIVE
from handiwork.agents.protocols.conventions import convention_messages
from handiwork.agents.protocols.message_cache import MessageCache
from handiwork.agents.protocols.transcript import calls_of, content_of, user_message
from handiwork.agents.rendering import observation_text
from handiwork.agents.state import State
from handiwork.agents.swe_agent.config import SWEConfig, TemplateConfig
from handiwork.agents.swe_agent.demonstrations import Demonstration
from handiwork.agents.swe_agent.mcp_commands import command_of, docs_of
from handiwork.agents.swe_agent.processors import SWETurn, without_failures
from handiwork.agents.swe_agent.templates import render
from handiwork.events.action import (
    AgentFinishAction,
    AgentThinkAction,
    CmdRunAction,
    MCPCallAction,
    MCPToolsAction,
    MessageAction,
)
from handiwork.events.base import Action, Observation, Part
from handiwork.events.observation import CmdOutputObservation, ErrorObservation, UserRejectObservation
from handiwork.events.record import CompletionEvent
from handiwork.llm.types import Capabilities, Message

_GUARDED = re.compile(r"^Your (?:proposed )?edit has introduced new|^Your changes have NOT been applied", re.MULTILINE)
"""The output of refused edits, of the shipped bundle and of SWE-agent's own."""

_SYNTAX = re.compile(r"bash: (?:eval: )?(?:line \d+: )?(?:syntax error|unexpected EOF)")

_DEMONSTRATION = re.compile(r"\{\{\s*demonstration\b")
"""A template that needs a demonstration; without one it is left out."""


REPLIES = CmdRunAction | MCPToolsAction | MCPCallAction | AgentThinkAction
"""The actions that replies become; a reply without an action becomes a thought."""


@dataclass(frozen=True)
class SWEStep:
    """A part of the history: a model's reply with its outcome, or a ``message`` of the user or the platform.

    ``variables`` are those of the prompt after the command.
    """

    action: Action
    observation: Observation | None
    completion: CompletionEvent | None
    variables: Mapping[str, Any]
    message: bool = False

    @property
    def command(self) -> str:
        """The reply's command, "" for a reply that was no action."""
        return self.action.command if isinstance(self.action, CmdRunAction) else command_of(self.action)

    @property
    def thought(self) -> str:
        """The reply's thought, or all of a reply that was no action."""
        if isinstance(self.action, AgentThinkAction) and self.completion is not None:
            return content_of(self.completion)
        return self.action.thought

    @property
    def failed(self) -> bool:
        """Whether the reply was malformed, blocked or refused by a guard."""
        if isinstance(self.action, AgentThinkAction):
            return isinstance(self.observation, ErrorObservation)
        text = self.observation.text if isinstance(self.observation, CmdOutputObservation) else ""
        failed = isinstance(self.observation, CmdOutputObservation) and self.observation.error
        return failed and bool(_GUARDED.search(text) or _SYNTAX.search(text))


def read_history(state: State, config: SWEConfig) -> list[SWEStep]:
    """Return the replies and messages of the history, in order; the platform's own commands only set variables."""
    steps: list[SWEStep] = []
    variables: dict[str, Any] = {}
    seen_task = False
    for action, observation in state.history:
        if is_state_command(action, config):
            variables = {**variables, **_variables_of(observation)}
            if steps and not steps[-1].message:
                steps[-1] = replace(steps[-1], variables=variables)
            continue
        if isinstance(observation, CmdOutputObservation) and observation.cwd:
            variables = {**variables, "working_dir": observation.cwd}
        completion = state.completions.get(action.completion or 0)
        is_message = isinstance(action, MessageAction) and action.source != "agent"
        if is_message and not seen_task and action.source == "user":
            seen_task = True
            continue
        is_reply = completion is not None and isinstance(action, REPLIES)
        if is_message or is_reply or isinstance(action, AgentFinishAction):
            steps.append(SWEStep(action, observation, completion, variables, is_message or not is_reply))
    return steps


def first_variables(state: State, config: SWEConfig) -> dict[str, Any]:
    """Return the variables of the prompt before the first command."""
    pair = next((pair for pair in state.history if is_state_command(pair[0], config)), None)
    return _variables_of(None if pair is None else pair[1])


def is_state_command(action: Action, config: SWEConfig) -> bool:
    """Return whether the action is the command that prints the variables of the prompt."""
    return isinstance(action, CmdRunAction) and bool(config.state_command) and action.command == config.state_command


def messages(
    state: State,
    config: SWEConfig,
    cache: MessageCache,
    form: str,
    reply_form: str,
    *,
    limit: int,
    capabilities: Capabilities = Capabilities(),  # noqa: B008 - frozen
) -> list[Message]:
    """Return the conversation for the model, which replies in the ``form`` that ``reply_form`` tells it.

    The conventions that the session has loaded stand before the task. ``limit`` is the length of an output in
    characters, if the configuration has no smaller one.
    """
    writer = _TemplateWriter(state, config, form, reply_form, min(limit, config.templates.max_observation_length))
    steps = read_history(state, config)
    turns = [SWETurn(step.command, writer.output(step), step.failed) for step in steps if not step.message]
    kept = without_failures(turns)
    shown = [turns[number] for number in kept]
    for processor in config.history_processors:
        shown = processor.process(shown)
    by_step = dict(zip(kept, shown, strict=True))
    cache.begin()

    vision, docs = capabilities.vision, docs_of(state)

    def build_head(*_: object) -> list[Message]:
        return writer.head(vision)

    *system, task = cache.get_or_build("head", (form, reply_form, state.task, docs, vision), build_head)
    result = [*system, *convention_messages(state, cache, capabilities.window), task]
    number = -1
    for step in steps:
        number += not step.message
        turn = None if step.message else by_step.get(number)
        if step.message or turn is not None:
            source = (form, step.action, step.completion, turn, json.dumps(step.variables, sort_keys=True, default=str))

            def build(*_: object, step: SWEStep = step, turn: SWETurn | None = turn) -> list[Message]:
                return list(writer.step(step, turn, form))

            result += cache.get_or_build(step.action.id, source, build)
    return result


class _TemplateWriter:
    """Writes the parts of the conversation by the templates."""

    def __init__(self, state: State, config: SWEConfig, form: str, reply_form: str, limit: int) -> None:
        self._state, self._config, self._limit = state, config, limit
        self._templates: TemplateConfig = config.templates
        self._form, self._demonstrations = form, config.demonstrations
        docs = "\n".join(tool.docs(config.variables) for tool in config.commands) + docs_of(state)
        self._constants = {
            **config.variables,
            "command_docs": docs,
            "form": form,
            "reply_form": reply_form,
            **dict.fromkeys(("problem_statement", "issue"), state.task),
            "max_observation_length": limit,
            **dict.fromkeys(("open_file", "diff"), ""),
            "working_dir": state.workspace,
        }

    def head(self, vision: bool) -> list[Message]:
        """Return the system message, the demonstrations and the task."""
        variables = first_variables(self._state, self._config)
        templates = self._templates
        demonstration = templates.demonstration_template or ""
        earlier: list[Message] = []
        shown: list[str] = []
        if templates.put_demos_in_history:
            native = self._form == "function_calling"
            fitting = filter(self._fits, self._demonstrations)
            earlier = [message for each in fitting for message in each.messages(native=native)]
        elif _DEMONSTRATION.search(demonstration):
            texts = [each.text for each in self._demonstrations]
            shown = [self._render(demonstration, {**variables, "demonstration": text}) for text in texts]
        else:
            shown = [self._render(demonstration, variables)]
        shown += [self._render(templates.instance_template, variables)]
        shown += [self._render(templates.strategy_template or "", variables)]
        text = "\n\n".join(filter(None, map(str.strip, shown)))
        task = next((a for a, _ in self._state.history if is_from_user(a)), None)
        images = task.images if task is not None and vision else ()
        system = Message.text("system", self._render(self._templates.system_template, variables).strip())
        return [*([system] if system.content else []), *earlier, Message("user", (Part(text=text), *images))]

    def _fits(self, demonstration: Demonstration) -> bool:
        """Return whether the demonstration has replies in the form of the model's own, if the agent chose that form."""
        if self._config.tools.parse_function.type != "auto" or self._form == "thought_action":
            return True
        return self._form == "function_calling" and demonstration.has_calls

    def output(self, step: SWEStep) -> str:
        """Return the text of a reply's outcome, without its frame."""
        observation = step.observation
        if isinstance(observation, CmdOutputObservation):
            text = observation.text.rstrip("\n")
            if observation.status == "timeout":
                seconds = step.action.timeout if isinstance(step.action, CmdRunAction) else None
                note = self._render(
                    self._templates.command_cancelled_timeout_template,
                    {**step.variables, "command": step.command, "timeout": f"{seconds or 0:g}"},
                )
                return f"{text}\n{note}".lstrip()
            if observation.status in ("input", "running"):
                return f"{text}\nThe command waited for input, which nobody gives here, and was stopped.".lstrip()
            if not text.strip() and observation.error:
                return f"Your command printed nothing and failed with exit code {observation.exit_code}."
            return text
        if isinstance(observation, UserRejectObservation):
            return f"The user did not allow this command: {observation.content}"
        return observation_text(observation, self._limit).removeprefix("Error: ")

    def step(self, step: SWEStep, turn: SWETurn | None, form: str) -> Iterator[Message]:
        """Yield the messages of a part of the history."""
        if turn is None:
            if isinstance(step.action, AgentFinishAction):
                yield Message.text("assistant", str(step.action.outputs.get("message", "")) or "I have submitted.")
            elif isinstance(step.action, MessageAction):
                yield user_message(step.action)
            return
        assert step.completion is not None
        calls = calls_of(step.completion)
        content = content_of(step.completion)
        native = form == "function_calling"
        if calls and native:
            thinking = cast("list[dict[str, JsonValue]]", step.completion.response.get("thinking") or [])
            yield Message.text("assistant", content, tool_calls=calls, thinking=tuple(thinking))
        elif calls:
            yield Message.text("assistant", f"{content}\n```\n{step.command}\n```".lstrip())
        else:
            yield Message.text("assistant", content)
        text = self._framed(step, turn)
        for call in [call.id for call in calls] if calls and native else [None]:
            yield NATIVE.outcome(text, call)

    def _framed(self, step: SWEStep, turn: SWETurn) -> str:
        """Return the output in its template."""
        if turn.collapsed or isinstance(step.action, AgentThinkAction):
            return turn.text
        templates = self._templates
        if not turn.text.strip() and templates.next_step_no_output_template is not None:
            return self._render(templates.next_step_no_output_template, step.variables)
        values = {**step.variables, "observation": turn.text}
        if len(turn.text) > self._limit:
            values["elided_chars"] = len(turn.text) - self._limit
            return self._render(templates.next_step_truncated_observation_template, values)
        return self._render(templates.next_step_template, values)

    def _render(self, template: str, variables: Mapping[str, Any]) -> str:
        values = {**self._constants, **variables}
        place = f"(Current directory: {values['working_dir']})"
        # Small models open a file whose name stands here, also "n/a".
        opened = f"(Open file: {values['open_file']})\n" if values["open_file"] not in ("", "n/a") else ""
        return render(template, **{**values, "state_line": f"{opened}{place}"})


def _variables_of(observation: Observation | None) -> dict[str, Any]:
    """Return the variables in a state command's output: JSON objects one after the other, later ones win."""
    variables: dict[str, Any] = {}
    text = observation.text if isinstance(observation, CmdOutputObservation) else ""
    position = text.find("{")
    while position >= 0:
        try:
            value, end = json.JSONDecoder().raw_decode(text, position)
        except ValueError:
            end, value = position + 1, None
        if isinstance(value, dict):
            variables |= cast("dict[str, Any]", value)
        position = text.find("{", end)
    return variables


def last_steps(steps: Sequence[SWEStep]) -> list[SWEStep]:
    """Return the replies since the last message of the user, or of a hook that sends the agent back."""
    result: list[SWEStep] = []
    for step in reversed(steps):
        if step.message and (step.action.source == "user" or is_sent_back(step.action)):
            break
        if not step.message:
            result.append(step)
    return result[::-1]

"""Ask the model for the next actions, in the protocol that it and its server support."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from handiwork.agents.base import AgentLLM, EmptyReplyError, MalformedReplyError
from handiwork.agents.protocols import NATIVE, ReplyProtocol, protocol_of, protocol_of_reply
from handiwork.agents.protocols.action_tools import ActionTool
from handiwork.agents.protocols.conventions import convention_messages
from handiwork.agents.protocols.message_cache import MessageCache
from handiwork.agents.protocols.native import has_open_call
from handiwork.agents.protocols.transcript import LIMIT, SMALL_LIMIT, calls_of, content_of, conversation
from handiwork.agents.state import State
from handiwork.events.action import AgentFinishAction, AgentRejectAction, MessageAction
from handiwork.events.base import Action
from handiwork.llm.errors import EmptyAnswerError, OutputLimitError, UnsupportedError
from handiwork.llm.strict_json import parse
from handiwork.llm.types import Capabilities, Completion, JsonSchema, Message, ToolCall

SMALL_WINDOW = 32_768
"""Tokens of the largest window that gets compact prompts and short observations."""

UNKNOWN_WINDOW = 64_000
"""The assumed window in tokens of a model that does not tell its own."""

EMPTY = "Your reply was empty. Go on with the task, or end it."
ALL_THOUGHT = "Your reply reached its length limit before its answer began. Think less, and take one small step."
"""What the model is told instead of an answer that cannot be used, once in a row."""

RETRY_TEMPERATURES = (0.6, 1.0)
"""Temperatures of the retries after a reply that repeats an earlier action."""

ENDS = (AgentFinishAction, AgentRejectAction, MessageAction)
"""Actions that end a task, or wait for the user: each answers the events before it, so it may be repeated."""

MESSAGES = ("finish", "reject", "ask")
"""Tools whose calls are a message: one that was cut is still one, while half a command or file must not take effect."""

Prompt = Callable[[ReplyProtocol, bool], Sequence[Message]]
"""Returns the messages before a conversation, for a protocol and for a small window or not."""

ChooseProtocol = Callable[[Capabilities], ReplyProtocol]
"""Returns the protocol for a model, the same object for the same capabilities."""


def is_small(capabilities: Capabilities) -> bool:
    """Return whether the model's window is small."""
    return capabilities.window is not None and capabilities.window <= SMALL_WINDOW


async def ask(
    llm: AgentLLM,
    state: State,
    cache: MessageCache,
    prompt: Prompt,
    tools: Sequence[ActionTool],
    temperature: float | None = None,
    *,
    offered: Sequence[ActionTool] | None = None,
    keep_tools: bool = False,
    choose: ChooseProtocol = protocol_of,
) -> list[Action]:
    """Return the model's next actions; plain text is a message to the user, who answers.

    The conventions that the session has loaded stand between the ``prompt`` and the conversation. The request offers
    the ``offered`` tools, by default all; a server that binds the reply enforces that. With ``keep_tools`` a native
    request offers all first, and only these if the reply calls another one: as tools stand at the beginning of what the
    model reads, it would read all of the conversation again whenever they change. If the server refuses a feature of
    the protocol, ``choose`` picks another one. Raises MalformedReplyError, for the first reply in a row without an
    answer too, as the model gives no other to the same prompt, and the errors of the model.
    """
    while True:
        capabilities = llm.capabilities
        protocol = choose(capabilities)
        small = is_small(capabilities)
        messages = conversation(
            state,
            cache,
            protocol,
            [*prompt(protocol, small), *convention_messages(state, cache, capabilities.window)],
            vision=capabilities.vision,
            limit=SMALL_LIMIT if small else LIMIT,
        )
        try:
            all_first = keep_tools and protocol is NATIVE
            request = protocol.request(tools if all_first else offered or tools)
            completion: Completion = await llm.complete(messages, *request, temperature=temperature)
            if all_first and offered and _calls_other(completion, tools, offered):
                completion = await llm.complete(messages, *protocol.request(offered), temperature=temperature)
        except UnsupportedError as error:
            if llm.capabilities == capabilities:
                raise UnsupportedError(f"{error}; `--protocol auto` lets another protocol take its place") from error
            continue
        except (EmptyAnswerError, OutputLimitError) as error:
            last = state.history[-1][1] if state.history else None
            if last is not None and last.content in (EMPTY, ALL_THOUGHT):
                raise  # the model has been told already
            raise EmptyReplyError(EMPTY if isinstance(error, EmptyAnswerError) else ALL_THOUGHT) from error
        return read(protocol, completion, tools)


async def ask_in_form(
    llm: AgentLLM, question: Message, form: JsonSchema | None, temperature: float | None = None
) -> Completion:
    """Return the answer to a question that itself describes the JSON of ``form``; a server that can binds it to that.

    Raises the errors of the model.
    """
    if form is not None and llm.capabilities.schema:
        with suppress(UnsupportedError):
            return await llm.complete([question], form=form, temperature=temperature)
    return await llm.complete([question], temperature=temperature)


def read(protocol: ReplyProtocol, completion: Completion, tools: Sequence[ActionTool]) -> list[Action]:
    """Return the actions of a completion. Raises MalformedReplyError."""
    try:
        reply = protocol.read(completion.content, completion.tool_calls, tools)
        in_blocks = protocol.name == "text" and bool(reply.calls)
        check_closed(completion, blocks=in_blocks and reply.calls[-1].name not in MESSAGES)
        if not reply.calls:
            actions: list[Action] = [MessageAction(content=reply.text, wait_for_response=True)]
        else:
            actions = actions_of(reply.calls, reply.text, tools)
    except MalformedReplyError as error:
        if completion.finish_reason == "length":
            raise MalformedReplyError(f"Your reply reached its length limit and was cut: write less. {error}") from None
        raise
    return [action.with_fields(completion=completion.event or None) for action in actions]


def is_cut(completion: Completion, *, blocks: bool) -> bool:
    """Return whether the text was cut inside a call: in tags, or in a fenced block if calls may be ``blocks``.

    Models that stop by themselves often leave the last fence or tag out.
    """
    if completion.finish_reason != "length" or completion.tool_calls:
        return False
    text = completion.content.rstrip()
    return has_open_call(text) or (blocks and not text.endswith("```"))


def check_closed(completion: Completion, *, blocks: bool) -> None:
    """Raise MalformedReplyError if the text was cut inside a call: half a command or file must not take effect."""
    if is_cut(completion, blocks=blocks):
        raise MalformedReplyError("Nothing was done: the last call has no end.")


def tools_called(state: State, action: Action, tools: Sequence[ActionTool]) -> list[str]:
    """Return the names of the tools that the completion of this action calls."""
    event = state.completions.get(action.completion or 0)
    if event is None:
        return []
    completion = Completion(content_of(event), calls_of(event))
    return _called(completion, protocol_of_reply(completion), tools)


def _called(completion: Completion, protocol: ReplyProtocol, tools: Sequence[ActionTool]) -> list[str]:
    """Return the names of the tools that a completion calls, none if it cannot be read."""
    try:
        reply = protocol.read(completion.content, completion.tool_calls, tools)
    except MalformedReplyError:
        return []
    return [call.name for call in reply.calls]


def _calls_other(completion: Completion, tools: Sequence[ActionTool], offered: Sequence[ActionTool]) -> bool:
    """Return whether a completion of a native request calls a tool that is not ``offered``."""
    other = {tool.name for tool in tools} - {tool.name for tool in offered}
    return not other.isdisjoint(_called(completion, NATIVE, tools))


def actions_of(calls: Sequence[ToolCall], thought: str, tools: Sequence[ActionTool]) -> list[Action]:
    """Return an action for each call, finishing last. Raises MalformedReplyError if one of them is invalid."""
    by_name = {tool.name: tool for tool in tools}
    try:
        actions = [_action(call, thought, by_name) for call in calls]
    except MalformedReplyError as error:
        if len(calls) == 1:
            raise
        raise MalformedReplyError(f"None of the {len(calls)} calls of your reply was carried out: {error}") from None
    return sorted(actions, key=lambda action: isinstance(action, AgentFinishAction))


def _action(call: ToolCall, thought: str, by_name: dict[str, ActionTool]) -> Action:
    tool = by_name.get(call.name)
    if tool is None:
        raise MalformedReplyError(f"There is no tool {call.name!r}. There are: {', '.join(by_name)}.")
    try:
        action = tool.make(parse(call.arguments or "{}"))
    except KeyError as error:
        raise MalformedReplyError(f"The call of {call.name} lacks the argument {error}.") from None
    except (ValueError, TypeError) as error:
        raise MalformedReplyError(f"The arguments of {call.name} do not fit: {error}") from None
    return action.with_fields(thought=thought, tool_call_id=call.id or None)

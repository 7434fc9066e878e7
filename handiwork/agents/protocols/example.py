"""Worked examples in prompts for small windows: small models follow those better than instructions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from handiwork.agents.base import MalformedReplyError
from handiwork.agents.history import History, messages_of_user
from handiwork.agents.protocols import JSON, NATIVE, ReplyProtocol, protocol_of
from handiwork.agents.protocols.action_tools import ActionTool
from handiwork.agents.protocols.ask import ENDS, is_small
from handiwork.agents.protocols.text_reply import block
from handiwork.events.action import FileWriteAction, MessageAction
from handiwork.events.base import Action
from handiwork.events.observation import ErrorObservation
from handiwork.llm.types import Capabilities, Message

ExampleReply = tuple[str, str, Mapping[str, Any]]
"""A thought, the name of a tool, and the arguments of its call."""

FILES = ("greet.sh", "notes.txt")
"""The files of the examples."""

COMMIT, COMMITTED = "I commit that file alone.", "It is committed, the notes are not."
"""The thoughts of the examples' commit and after it, which models copy even for tasks that ask for none."""

_OTHER_FIELDS = set(Action.model_fields)


def example_messages(
    protocol: ReplyProtocol, tools: Sequence[ActionTool], example: Iterable[tuple[str, ExampleReply]]
) -> Iterator[Message]:
    """Yield each text of the example as the user's, and the reply to it as the protocol writes it."""
    by_name = {tool.name: tool for tool in tools}
    for text, (thought, name, arguments) in example:
        yield Message.text("user", text, example=True)
        if protocol is JSON:
            reply = json.dumps({"thought": thought, "action": name, **arguments})
        else:
            reply = f"{thought}\n\n{block(by_name[name], arguments)}"
        yield Message.text("assistant", reply, example=True)


def copies_example(capabilities: Capabilities, actions: Iterable[Action], history: History) -> bool:
    """Return whether a model that saw an example names a file of it that the task does not have, or copies its commit.

    Small models that do not know how to go on copy the rest of the example. Files of the task are those that the user
    or an observation names, and those that the agent has written.
    """
    if not is_small(capabilities) or protocol_of(capabilities) is NATIVE:
        return False
    actions = list(actions)
    if any(action.thought.strip() in (COMMIT, COMMITTED) for action in actions) and not _asks_to_commit(history):
        return True
    # A copied file has the example's path; a program may well have a file of this name in its text.
    texts = [
        action.path if isinstance(action, FileWriteAction) else action.model_dump_json(exclude=_OTHER_FIELDS)
        for action in actions
    ]
    named = [file for file in FILES if any(file in text for text in texts)]
    return any(not any(file in known for known in _texts(history)) for file in named)


def check_not_copied(capabilities: Capabilities, actions: Iterable[Action], history: History) -> None:
    """Raise MalformedReplyError if an action copies the example, unless it is an end: only its message is wrong then.

    The error names no file of the example, which models would repeat.
    """
    acting = [action for action in actions if not isinstance(action, ENDS)]
    if copies_example(capabilities, acting, history):
        raise MalformedReplyError("Nothing was done. Go on with the user's task.")


def _asks_to_commit(history: History) -> bool:
    texts = (message.content.lower() for message in messages_of_user(history))
    return any(word in text for text in texts for word in ("commit", "git"))


def _texts(history: History) -> Iterator[str]:
    for action, observation in history:
        if isinstance(action, MessageAction) and action.source != "agent":
            yield action.content
        if isinstance(action, FileWriteAction) and not isinstance(observation, ErrorObservation):
            yield f"{action.path}\n{action.content}"
        if observation is not None:
            yield observation.content

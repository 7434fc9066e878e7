"""Brings conversations into a form every provider accepts: roles in order, every tool call answered.

Created messages are cached by the identity of their source messages: the same conversation with more messages yields
the same objects again, and the wire form's prefix stays identical to the byte, so that prompt caches hit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

from handiwork.events.base import Part
from handiwork.llm.errors import TemplateRule
from handiwork.llm.types import Message

NOT_DONE = "Not carried out: another call of this reply failed or came before it, or the user has written meanwhile."
"""The answer to a call without one: a session answers all those that it has begun."""

_LATE_ANSWER = "Result of an earlier tool call:"
_GO_ON = Message.text("user", "Go on.")
_BEGIN = Message.text("user", "Begin.")
_ACKNOWLEDGEMENT = Message.text("assistant", "OK.")


class Normaliser:
    """Brings conversations into the order that providers require.

    ``rules`` are those of the model's chat template. For "alternating" the assistant says OK between a tool's answer
    and a user message.
    """

    def __init__(self) -> None:
        self.rules: set[TemplateRule] = set()
        self._singles: WeakKeyDictionary[Message, list[Message]] = WeakKeyDictionary()
        self._merged: WeakKeyDictionary[Message, tuple[list[Message], Message]] = WeakKeyDictionary()
        self._split: WeakKeyDictionary[Message, tuple[Message, Message]] = WeakKeyDictionary()
        self._created: WeakKeyDictionary[Message, dict[str, Message]] = WeakKeyDictionary()

    def normalise(self, messages: Sequence[Message]) -> list[Message]:
        """Return the conversation in normal form, with the original messages if they already conform.

        There is one system message, first; later ones become user messages. User and assistant alternate, starting and
        ending with user (or tool): neighbours of one role are merged, empty messages left out. Every tool call is
        followed by its answer, or by a note that it was not carried out; an answer without a call becomes a user
        message; images of answers follow in a user message.
        """
        head = 0
        while head < len(messages) and messages[head].role == "system":
            head += 1
        answered = self._answer_calls(messages[head:])
        body = self._alternate(list(self._single_calls(answered)) if "single calls" in self.rules else answered)
        system = [message for message in messages[:head] if _has_content(message)]
        if system and "no system" in self.rules:
            return [self._merge([self._as_user(self._merge(system), ""), body[0]]), *body[1:]]
        return ([self._merge(system)] if system else []) + body

    def _answer_calls(self, messages: Sequence[Message]) -> list[Message]:
        out: list[Message] = []
        waiting: dict[str, int] = {}
        unanswered: dict[int, tuple[Message, str]] = {}
        images: dict[int, Message] = {}
        for message in messages:
            if message.role == "tool":
                index = waiting.pop(message.tool_call_id or "", None)
                if index is None:
                    out.append(self._as_user(message, _LATE_ANSWER))
                    continue
                del unanswered[index]
                out[index], picture = self._split_images(message)
                if picture is not None:
                    images[index] = picture
            elif message.role == "system":
                out.append(self._as_user(message, ""))
            elif _has_content(message) or message.tool_calls:
                out.append(message)
                for call in message.tool_calls:
                    waiting[call.id] = len(out)
                    unanswered[len(out)] = (message, call.id)
                    out.append(message)  # placeholder for the answer
        for index, (message, call_id) in unanswered.items():
            out[index] = self._answer_of_none(message, call_id)
        return self._insert_images(out, images) if images else out

    def _insert_images(self, messages: list[Message], images: dict[int, Message]) -> list[Message]:
        out: list[Message] = []
        pending_images: list[Message] = []
        for index, message in enumerate(messages):
            if message.role != "tool":
                out += pending_images
                pending_images = []
            out.append(message)
            if index in images:
                pending_images.append(images[index])
        return out + pending_images

    def _alternate(self, messages: list[Message]) -> list[Message]:
        out: list[Message] = []
        run: list[Message] = []
        for message in messages:
            if run and (message.role != run[0].role or message.role == "tool" or run[-1].tool_calls):
                out.append(self._merge(run))
                run = []
            run.append(message)
        if run:
            out.append(self._merge(run))
        if "alternating" in self.rules:
            out = list(_acknowledge(out))
        if not out or out[0].role != "user":
            out.insert(0, _BEGIN)
        if out[-1].role == "assistant":
            out.append(_GO_ON)
        return out

    def _single_calls(self, messages: Sequence[Message]) -> Iterator[Message]:
        """Yield the messages, each call of an answer in one of its own, before its result."""
        later: list[Message] = []
        for message in messages:
            if message.role == "assistant":
                first, *later = self._split_calls(message)
                yield first
            else:
                yield message
                if message.role == "tool" and later:
                    yield later.pop(0)

    def _split_calls(self, message: Message) -> list[Message]:
        if len(message.tool_calls) < 2:
            return [message]
        if message not in self._singles:
            first, *others = message.tool_calls
            rest = [Message("assistant", (), tool_calls=(call,)) for call in others]
            self._singles[message] = [replace(message, tool_calls=(first,)), *rest]
        return self._singles[message]

    def _merge(self, run: list[Message]) -> Message:
        if len(run) == 1:
            return run[0]
        first, rest = run[0], run[1:]
        cached = self._merged.get(first)
        if cached is not None and cached[0] == rest:
            return cached[1]
        merged = replace(
            first,
            content=tuple(part for message in run for part in message.content),
            tool_calls=tuple(call for message in run for call in message.tool_calls),
            thinking=tuple(part for message in run for part in message.thinking),
        )
        self._merged[first] = (rest, merged)
        return merged

    def _split_images(self, message: Message) -> tuple[Message, Message | None]:
        pictures = tuple(part for part in message.content if part.blob is not None)
        if not pictures:
            return message, None
        if message not in self._split:
            texts = tuple(part for part in message.content if part.blob is None)
            note = Part(text="(An image follows.)")
            self._split[message] = (replace(message, content=(*texts, note)), Message("user", pictures))
        return self._split[message]

    def _as_user(self, message: Message, heading: str) -> Message:
        created = self._created.setdefault(message, {})
        if "user" not in created:
            parts = (Part(text=heading), *message.content) if heading else message.content
            created["user"] = Message("user", parts)
        return created["user"]

    def _answer_of_none(self, message: Message, call_id: str) -> Message:
        created = self._created.setdefault(message, {})
        if call_id not in created:
            created[call_id] = Message.text("tool", NOT_DONE, tool_call_id=call_id)
        return created[call_id]


def _has_content(message: Message) -> bool:
    """Return whether there is more than blanks, which some providers refuse."""
    return any(part.blob is not None or (part.text or "").strip() for part in message.content)


def _acknowledge(messages: Sequence[Message]) -> Iterator[Message]:
    previous_role = ""
    for message in messages:
        if previous_role == "tool" and message.role == "user":
            yield _ACKNOWLEDGEMENT
        yield message
        previous_role = message.role

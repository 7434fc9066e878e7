"""Replies in XML, CodeNav's own form: a thought, the type of the action, and its content, which is written as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from handiwork.agents.base import MalformedReplyError
from handiwork.agents.protocols import JSON, NATIVE, ModelReply, ReplyProtocol, protocol_of
from handiwork.agents.protocols.action_tools import ActionTool
from handiwork.agents.protocols.native import calls_in
from handiwork.events.base import Part
from handiwork.llm.types import Capabilities, Grammar, Message, ReplyForm, Tool, ToolCall

CONTENT = "content"
"""The only argument of each tool."""

FORM = """\
Each reply is exactly one action, in this form and with nothing else around it:

<thought>
What you know, and what you do next and why.
</thought>
<type>
One of: {types}
</type>
<content>
The content of the action, as it is: no escapes, no fences.
</content>"""

_CONTENT = re.compile(r"<content>(?:(.*)</content>|(.*))", re.DOTALL)
_SECOND = re.compile(r"</content>.*<type>.*</type>.*<content>", re.DOTALL)
_CDATA = re.compile(r"<!\[CDATA\[(.*)\]\]>", re.DOTALL)
_FENCED = re.compile(r"```\w*\n(.*?)(?:\n```(?:\n.*)?)?", re.DOTALL)

_GRAMMAR = r"""root ::= "<thought>\n" line{1,6} "</thought>\n<type>\n" type "\n</type>\n<content>\n" body* "</content>"
line ::= [^<\n] [^\n]{0,300} "\n"
body ::= [^<\n] [^\n]* "\n" | "<" [^/\n] [^\n]* "\n" | "\n"
"""


class XmlProtocol:
    """Text with the elements thought, type and content; the last may be empty, but not be missing.

    If it is ``bound``, the server binds the reply to a grammar.
    """

    name = "text"

    def __init__(self, *, bound: bool = False) -> None:
        self._bound = bound

    def instructions(self, tools: Sequence[ActionTool], *, compact: bool) -> str:
        """Return the form of a reply; the prompt itself describes the types."""
        return FORM.format(types=", ".join(tool.name for tool in tools))

    def request(self, tools: Sequence[ActionTool]) -> tuple[Sequence[Tool], ReplyForm | None]:
        """Return no tools, and the grammar if the reply is bound."""
        names = " | ".join(json.dumps(tool.name) for tool in tools)
        return (), Grammar(f"{_GRAMMAR}type ::= {names}\n") if self._bound else None

    def read(self, content: str, calls: Sequence[ToolCall], tools: Sequence[ActionTool]) -> ModelReply:
        """Return the reply. Raises MalformedReplyError with the rule that it breaks."""
        outside = _CONTENT.sub("", content)
        thought, kind = _element("thought", outside), _element("type", outside)
        if kind is None and (reply := calls_in(content, tools)) is not None:
            return reply
        if not thought:
            raise MalformedReplyError("The thought is missing: begin with <thought> and say what you do next and why.")
        if not kind:
            raise MalformedReplyError(f"The type is missing: write <type>, {_types(tools)}, and </type>.")
        if kind not in {tool.name for tool in tools}:
            raise MalformedReplyError(f"There is no action of the type {kind[:40]!r}: write {_types(tools)}.")
        if _SECOND.search(content):
            raise MalformedReplyError("A reply has exactly one action: stop after </content>, the response follows.")
        match = _CONTENT.search(content)
        if match is None:
            raise MalformedReplyError(f"The content is missing: {kind} needs <content> and </content>.")
        return ModelReply(thought, (ToolCall("", kind, json.dumps({CONTENT: _plain(match[1] or match[2] or "")})),))

    def reply(self, reply: ModelReply) -> Message:
        """Return the assistant's message: the elements of the first call."""
        if not reply.calls:
            return Message.text("assistant", reply.text)
        call = reply.calls[0]
        try:
            content = str(json.loads(call.arguments or "{}").get(CONTENT, ""))
        except (ValueError, AttributeError):
            content = call.arguments
        elements = ("thought", reply.text), ("type", call.name), (CONTENT, content)
        return Message.text("assistant", "\n".join(f"<{name}>\n{text}\n</{name}>" for name, text in elements))

    def outcome(self, text: str, call: str | None, images: tuple[Part, ...] = ()) -> Message:
        """Return a user message."""
        return Message("user", (Part(text=text), *images))


XML, BOUND_XML = XmlProtocol(), XmlProtocol(bound=True)


def choose_protocol(capabilities: Capabilities) -> ReplyProtocol:
    """Return the best protocol for a model, XML instead of text in blocks."""
    protocol = protocol_of(capabilities)
    if protocol in (NATIVE, JSON):
        return protocol
    return BOUND_XML if capabilities.grammar else XML


def _element(name: str, text: str) -> str | None:
    match = re.search(rf"<{name}>(.*?)</{name}>", text, re.DOTALL)
    return None if match is None else match[1].strip()


def _types(tools: Sequence[ActionTool]) -> str:
    return f"one of {', '.join(tool.name for tool in tools)}"


def _plain(content: str) -> str:
    """Return the content without what models wrap it in: blank lines, CDATA, a fence with words after it."""
    text = content.strip("\n").rstrip()
    for pattern in (_CDATA, _FENCED):
        if match := pattern.fullmatch(text.strip()):
            text = match[1].strip("\n")
    return text

"""The messages before a conversation of BrowsingAgent: the system prompt, and for small windows a worked example.

Small models follow examples better than instructions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from handiwork.agents.browsing.toolset import TOOLS
from handiwork.agents.prompts import render
from handiwork.agents.protocols import NATIVE, Reply, ReplyProtocol
from handiwork.llm.types import Message, ToolCall

_CONVERSATION = (
    (
        "Write to Eve Moss that the parcel came. How many letters has she written?",
        "I open the contacts.",
        "click",
        {"bid": "[7] link 'Contacts'"},
    ),
    (
        "Done: click('7')\nurl: http://mail.example/contacts\n\nEve Moss, 14 letters\n- [4] link 'Home'\n"
        "- [9] button 'Delete'\nYour message\n- [11] textbox 'Your message'\n- [12] button 'Send'",
        "I write the message first.",
        "fill",
        {"bid": "[11] textbox 'Your message'", "text": "The parcel came."},
    ),
    (
        "Done: fill('11', 'The parcel came.')\nurl: http://mail.example/contacts\n\nEve Moss, 14 letters\n"
        "- [4] link 'Home'\n- [9] button 'Delete'\nYour message\n"
        "- [11] textbox 'Your message' with 'The parcel came.'\n- [12] button 'Send'",
        "Now I send it.",
        "click",
        {"bid": "[12] button 'Send'"},
    ),
    (
        "Done: click('12')\nurl: http://mail.example/contacts\n\nYour message was sent.\n- [4] link 'Home'",
        "It is sent, and she has written 14 letters.",
        "finish",
        {"message": "14"},
    ),
)
_START = "url: http://mail.example/\n\nWelcome\n- [7] link 'Contacts'\n- [8] link 'Calendar'"


def prompt(protocol: ReplyProtocol, small: bool) -> Iterator[Message]:
    """Yield the messages for a protocol, and for a ``small`` window or not."""
    template = "browsing/compact" if small else "browsing/system"
    instructions = protocol.instructions(TOOLS, compact=small)
    native = protocol is NATIVE
    yield Message.text("system", render(template, instructions=instructions, native=native, lines=not native))
    if small and not native:
        yield from _example(protocol)


def _example(protocol: ReplyProtocol) -> Iterator[Message]:
    for number, (text, thought, name, arguments) in enumerate(_CONVERSATION):
        yield Message.text("user", text)
        if number == 0:
            yield Message.text("user", _START)
        yield protocol.reply(Reply(thought, (ToolCall("", name, json.dumps(arguments)),)))

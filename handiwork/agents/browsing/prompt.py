"""The messages before a conversation of BrowsingAgent: the system prompt, and for small windows a worked example.

Small models follow examples better than instructions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from handiwork.agents.prompts import render
from handiwork.agents.protocols import NATIVE, ModelReply, ReplyProtocol
from handiwork.agents.protocols.action_tools import ActionTool
from handiwork.llm.types import Message, ToolCall

_CONTACTS = "url: http://mail.example/contacts\n\nEve Moss\n- [4] link 'Home'\n- [9] button 'Delete'\nYour message\n"
_CONVERSATION = (
    (
        "How many seats are left for the evening show?",
        "url: http://shows.example/evening\n\nEvening show, 14 seats left\n- [4] link 'Home'\n- [9] button 'Book'",
        "The page says it.",
        "finish",
        {"message": "14"},
    ),
    (
        "Write to Eve Moss that the parcel came.",
        "url: http://mail.example/\n\nWelcome\n- [7] link 'Contacts'\n- [8] link 'Calendar'",
        "I open the contacts.",
        "click",
        {"bid": "[7] link 'Contacts'"},
    ),
    (
        "",
        f"Done: click('7')\n{_CONTACTS}- [11] textbox 'Your message'\n- [12] button 'Send'",
        "I write the message first.",
        "fill",
        {"bid": "[11] textbox 'Your message'", "text": "The parcel came."},
    ),
    (
        "",
        f"Done: fill('11', 'The parcel came.')\n{_CONTACTS}- [11] textbox 'Your message' with 'The parcel came.'\n"
        "- [12] button 'Send'",
        "Now I send it.",
        "click",
        {"bid": "[12] button 'Send'"},
    ),
    (
        "",
        "Done: click('12')\nurl: http://mail.example/contacts\n\nYour message was sent.\n- [4] link 'Home'",
        "The message is sent.",
        "finish",
        {"message": "I wrote to Eve Moss that the parcel came."},
    ),
)
"""Two tasks: the user's message, the page, and the reply's thought, tool and arguments."""


def prompt(protocol: ReplyProtocol, small: bool, tools: Sequence[ActionTool]) -> Iterator[Message]:
    """Yield the messages for a protocol with the tools, and for a ``small`` window or not."""
    template = "browsing/compact" if small else "browsing/system"
    instructions = protocol.instructions(tools, compact=small)
    native = protocol is NATIVE
    yield Message.text("system", render(template, instructions=instructions, native=native, lines=not native))
    if small and not native:
        yield from _example(protocol)


def _example(protocol: ReplyProtocol) -> Iterator[Message]:
    for task, page, thought, name, arguments in _CONVERSATION:
        yield from (Message.text("user", text) for text in (task, page) if text)
        yield protocol.reply(ModelReply(thought, (ToolCall("", name, json.dumps(arguments)),)))

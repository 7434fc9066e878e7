"""Replies in XML: what is read, and which rule a reply that cannot be read breaks."""

from __future__ import annotations

import json

import pytest

from handiwork.agents.base import MalformedReplyError
from handiwork.agents.codenav import TOOLS
from handiwork.agents.codenav.xml_reply import BOUND_XML, XML, choose_protocol
from handiwork.agents.protocols import JSON, NATIVE
from handiwork.llm.types import Capabilities, Grammar


def xml(thought: str, kind: str, content: str) -> str:
    return f"<thought>{thought}</thought>\n<type>{kind}</type>\n<content>\n{content}\n</content>"


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (
            xml("I run it.", "code", "if a < b and b > c:\n    print('&amp;')"),
            "if a < b and b > c:\n    print('&amp;')",
        ),
        (xml("I run it.", "code", "```python\nx = 1\n```"), "x = 1"),
        (xml("I run it.", "code", "```python\nx = 1\nx\n```\n\nIt prints:\n```\n1\n```\nThat is all."), "x = 1\nx"),
        (xml("I run it.", "code", "```python\nx = 1\n\nx"), "x = 1\n\nx"),
        (xml("I run it.", "code", 'x = """\n```\n"""'), 'x = """\n```\n"""'),
        (xml("I run it.", "code", "<![CDATA[\nx = 1\n]]>"), "x = 1"),
        (xml("I run it.", "code", "page = '<content></content>'"), "page = '<content></content>'"),
        (xml("I run it.", "code", "x = '<type>'"), "x = '<type>'"),
        ("<thought>I run it.</thought><type> code </type><content>x = 1", "x = 1"),
        ("Well.\n" + xml("I run it.", "code", "    indented()\n"), "    indented()"),
    ],
)
def test_the_content_is_taken_as_it_is_written(text: str, content: str) -> None:
    reply = XML.read(text, (), TOOLS)
    (call,) = reply.calls
    assert (reply.text, call.name, json.loads(call.arguments)) == ("I run it.", "code", {"content": content})
    again = XML.read(XML.reply(reply).content[0].text or "", (), TOOLS)
    assert again == reply


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("I search.", "The thought is missing"),
        ("<type>code</type><content>1</content>", "The thought is missing"),
        (xml("  ", "code", "1"), "The thought is missing"),
        ("<thought>I run it.</thought><content>1</content>", "The type is missing"),
        (
            xml("I look.", "browse", "1"),
            "no action of the type 'browse': write one of search, code, code_summary, done",
        ),
        ("<thought>I run it.</thought><type>code</type>", "The content is missing"),
        (xml("I run it.", "code", "1") + "\nRESPONSE: 1\n" + xml("Done.", "done", "True"), "exactly one action"),
    ],
)
def test_a_reply_that_breaks_a_rule_is_told_which(text: str, rule: str) -> None:
    with pytest.raises(MalformedReplyError, match=rule):
        XML.read(text, (), TOOLS)


def test_xml_stands_for_text_alone() -> None:
    chosen = [
        choose_protocol(Capabilities()),
        choose_protocol(Capabilities(tools=False)),
        choose_protocol(Capabilities(tools=False, schema=False)),
        choose_protocol(Capabilities(tools=False, schema=False, grammar=True)),
        choose_protocol(Capabilities(tools=False, protocol="text")),
    ]
    assert chosen == [NATIVE, JSON, XML, BOUND_XML, XML]
    assert XML.request(TOOLS) == ((), None)
    form = BOUND_XML.request(TOOLS)[1]
    assert isinstance(form, Grammar)
    assert 'type ::= "search" | "code" | "code_summary" | "done"' in form

"""The parsers of replies, by SWE-agent's names."""

from __future__ import annotations

import pytest

from handiwork.agents.base import MalformedReplyError
from handiwork.agents.swe_agent.bundles import BundleArgument, BundleTool
from handiwork.agents.swe_agent.parsers import parse_text

GREP = BundleTool(
    name="grep_code",
    signature='grep_code "<term>" [<dir>]',
    arguments=(BundleArgument(name="term"), BundleArgument(name="dir", required=False)),
)
REPLACE = BundleTool(
    name="edit",
    signature="edit <search> [<replace-all>]",
    arguments=(
        BundleArgument(name="search"),
        BundleArgument(name="replace-all", type="boolean", required=False),
    ),
)
EDIT = BundleTool(
    name="edit",
    signature="edit <first>:<last>\n<text>\nend_of_edit\n",
    arguments=(
        BundleArgument(name="first", type="integer"),
        BundleArgument(name="last", type="integer"),
        BundleArgument(name="text"),
    ),
    end_name="end_of_edit",
)
TOOLS = {tool.name: tool for tool in (GREP, EDIT)}


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        ("thought_action", "I look.\n```\nls -a\n```", ("I look.", "ls -a")),
        ("thought_action", "Not\n```\nls\n```\nbut\n```bash\npwd\n```\n", ("Not\n```\nls\n```\nbut", "pwd")),
        ("thought_action", "Cut\n```\nls", ("Cut", "ls")),
        ("thought_action", "DISCUSSION\r\nx\r\n```\r\nls\r\n```", ("DISCUSSION\nx", "ls")),
        ("xml_thought_action", "I look.\n<command>\nls -a\n</command>", ("I look.", "ls -a")),
        (
            "xml_function_calling",
            "I look.\n<function=grep_code>\n<parameter=term>a b</parameter>\n</function>",
            ("I look.", "grep_code 'a b'"),
        ),
        ("action", "grep_code x", ("", "grep_code x")),
        ("action_only", "ls\n", ("", "ls")),
        ("identity", "ls\n", ("", "ls")),
        ("single_bash_code_block", "A\n```python\nx\n```\n```bash\nls\n```", ("A\n```python\nx\n```", "ls")),
        ("all_bash_code_blocks", "A\n```bash\nls\n```\n```bash\npwd\n```", ("A", "ls\npwd")),
    ],
)
def test_a_reply_of_the_right_form(form: str, text: str, expected: tuple[str, str]) -> None:
    assert parse_text(form, text, TOOLS) == expected


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("thought_action", "I look."),
        ("thought_action", "I look.\n```\n\n```"),
        ("xml_thought_action", "<command></command>"),
        ("xml_function_calling", "<function=other></function>"),
        ("xml_function_calling", "<function=grep_code></function>"),
        ("action", "ls"),
        ("action_only", " "),
        ("single_bash_code_block", "```bash\na\n```\n```bash\nb\n```"),
        ("all_bash_code_blocks", "```\na\n```"),
    ],
)
def test_a_reply_of_another_form_is_malformed(form: str, text: str) -> None:
    with pytest.raises(MalformedReplyError, match=r"[Nn]othing was run"):
        parse_text(form, text, TOOLS)


def test_the_command_of_a_call() -> None:
    assert GREP.command({"term": "it's", "dir": "src"}) == """grep_code 'it'"'"'s' src"""
    assert EDIT.command({"first": 1, "last": 2, "text": "  <x>\n{y}\n"}) == "edit 1:2\n  <x>\n{y}\nend_of_edit"
    assert REPLACE.command({"search": "a b", "replace-all": True}) == "edit 'a b' True"
    assert REPLACE.command({"search": "a"}) == "edit a"
    assert EDIT.command({"first": 1, "last": 2, "text": ""}) == "edit 1:2\nend_of_edit"
    with pytest.raises(KeyError, match="term"):
        GREP.command({})
    with pytest.raises(ValueError, match="no argument other"):
        GREP.command({"term": "x", "other": 1})


def test_a_text_of_several_lines_becomes_a_here_document() -> None:
    command = "cd src\nedit 1:2\n  echo $HOME\nend_of_edit"
    assert EDIT.guarded(command) == "cd src\nedit 1:2 << 'end_of_edit'\n  echo $HOME\nend_of_edit"
    assert EDIT.guarded(EDIT.guarded(command)) == EDIT.guarded(command)
    assert EDIT.guarded("edit 1:2") == "edit 1:2"

"""Replies that are text: how the model is told to write them, and the parsers, by SWE-agent's names of their forms."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from handiwork.agents.base import MalformedReplyError
from handiwork.agents.swe_agent.bundles import BundleTool
from handiwork.llm.types import Grammar

Parsed = tuple[str, str]
"""A thought and a command."""

BLOCKS = frozenset({"thought_action", "single_bash_code_block", "all_bash_code_blocks"})
"""The parsers of replies whose commands stand in fenced blocks."""

WHOLE = frozenset({"action", "action_only", "identity"})
"""The parsers of replies that are a command and nothing else."""

TEXT_FORM = "Reply with a short thought, and then one command between two lines of three backticks, ```."
"""Small models copy an example that stands here."""

GRAMMAR = Grammar(
    'root ::= thought "```\\n" first line* "```"\n'
    'thought ::= ( [^`\\n] [^\\n]{0,300} "\\n" ){1,3}\n'
    'first ::= [^`\\n\\t ] [^\\n]* "\\n"\n'
    'line ::= [^`\\n] [^\\n]* "\\n" | "\\n"\n'
)
"""Binds a reply to a thought and one command, on servers that support grammars."""

THOUGHT_ACTION = """\
Your reply was not understood: it must have one thought and one command, like this:

I look at the files first.
```
ls -a
```

Nothing was run. Write one thought, and one command between two lines of three backticks."""

XML_THOUGHT_ACTION = """\
Your reply was not understood: it must have one thought and one command, like this:

I look at the files first.
<command>
ls -a
</command>

Nothing was run. Write one thought, and one command between the tags."""

XML_FUNCTION = """\
Your reply was not understood: it must have one thought and one call, like this:

I look at the files first.
<function=bash>
<parameter=command>ls -a</parameter>
</function>

Nothing was run. Write one thought and one call of a function there is."""

ONE_CALL = "Nothing was run: each reply calls exactly one tool, and yours calls {count}. Write the reply again."

ONE_BASH_BLOCK = "Nothing was run: each reply has exactly one block that begins with ```bash, and yours has {count}."

_FENCE = re.compile(r"^[ \t]*```[ \t]*([\w+-]*)[ \t]*$")
_COMMAND = re.compile(r"<command>\n?(.*?)\n?</command>", re.DOTALL)
_FUNCTION = re.compile(r"<function=([^>\s]+)>(.*?)</function>", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\s]+)>\n?(.*?)\n?</parameter>", re.DOTALL)


def thought_action(text: str) -> Parsed:
    """Return the text before the last fenced block, and the block. Raises MalformedReplyError without one."""
    blocks = _blocks(text)
    commands = [(start, body) for start, _, body in blocks if body.strip()]
    if not commands:
        raise MalformedReplyError(THOUGHT_ACTION)
    start, command = commands[-1]
    return "\n".join(text.split("\n")[:start]).strip(), command.strip("\n").rstrip()


def _bash_blocks(text: str, most: int | None) -> Parsed:
    blocks = [(start, body) for start, word, body in _blocks(text) if word == "bash" and body.strip()]
    if not blocks or (most is not None and len(blocks) > most):
        raise MalformedReplyError(ONE_BASH_BLOCK.format(count=len(blocks) or "none"))
    return "\n".join(text.split("\n")[: blocks[0][0]]).strip(), "\n".join(body.strip("\n") for _, body in blocks)


def _xml_thought_action(text: str) -> Parsed:
    found = list(_COMMAND.finditer(text))
    if not found or not found[-1][1].strip():
        raise MalformedReplyError(XML_THOUGHT_ACTION)
    return text[: found[-1].start()].strip(), found[-1][1].strip("\n")


def _whole(text: str) -> Parsed:
    if not text.strip():
        raise MalformedReplyError("Nothing was run: your reply was empty. Write one command.")
    return "", text.strip()


def _known(text: str, names: Sequence[str]) -> Parsed:
    thought, command = _whole(text)
    if command.split()[0] not in names:
        raise MalformedReplyError(f"Nothing was run: your reply must be one of the commands {', '.join(names)}.")
    return thought, command


def function_call(text: str, tools: Mapping[str, BundleTool]) -> Parsed:
    """Return the thought, and the command of the one call in tags. Raises MalformedReplyError."""
    found = list(_FUNCTION.finditer(text))
    if len(found) != 1 or found[0][1] not in tools:
        raise MalformedReplyError(XML_FUNCTION)
    tool = tools[found[0][1]]
    values = {match[1]: match[2] for match in _PARAMETER.finditer(found[0][2])}
    try:
        return text[: found[0].start()].strip(), tool.command(values)
    except (KeyError, ValueError) as error:
        raise MalformedReplyError(f"Nothing was run: the call of {tool.name} does not fit: {error}.") from None


def parse_text(form: str, text: str, tools: Mapping[str, BundleTool]) -> Parsed:
    """Return the thought and the command of a reply in the form that a parser reads. Raises MalformedReplyError."""
    parsers: Mapping[str, Callable[[str], Parsed]] = {
        "thought_action": thought_action,
        "xml_thought_action": _xml_thought_action,
        "xml_function_calling": lambda text: function_call(text, tools),
        "action": lambda text: _known(text, list(tools)),
        "action_only": _whole,
        "identity": _whole,
        "single_bash_code_block": lambda text: _bash_blocks(text, 1),
        "all_bash_code_blocks": lambda text: _bash_blocks(text, None),
    }
    return parsers[form](text.replace("\r\n", "\n"))


def _blocks(text: str) -> list[tuple[int, str, str]]:
    """Return the fenced blocks: the line of the fence, the word after it, and the text; the last may be open."""
    blocks: list[tuple[int, str, str]] = []
    opened: tuple[int, str] | None = None
    lines = text.split("\n")
    body: list[str] = []
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        if fence and opened is None:
            opened, body = (number, fence[1].lower()), []
        elif fence and opened is not None and not fence[1]:
            blocks.append((*opened, "\n".join(body)))
            opened = None
        elif opened is not None:
            body.append(line)
    if opened is not None:
        blocks.append((*opened, "\n".join(body)))
    return blocks

"""Replies in plain text, whose fenced blocks are calls of tools: for models that have neither tools nor schemas."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from typing import Any, cast

from handiwork.agents.base import MalformedReplyError
from handiwork.agents.protocols.action_tools import ActionTool, typed
from handiwork.agents.protocols.base import ModelReply
from handiwork.agents.protocols.grammar import grammar
from handiwork.agents.protocols.native import calls_in
from handiwork.events.base import Part
from handiwork.llm.strict_json import parse
from handiwork.llm.types import Message, ReplyForm, Tool, ToolCall

ALIASES = {"sh": "bash", "shell": "bash"}
"""Words that models write after the fence for a tool of another name."""

QUOTES = frozenset({"text", "txt", "output", "plaintext", "console", "log"})
"""Words after the fence of blocks that only quote something."""

NO_TOOL = (
    "Nothing was done: a block of your reply begins with ```{word}, which is no tool.{advice} Write every block of "
    "your reply again."
)

WRITE = " To write a file, begin the block with ```write PATH and put all of the file's text into it."

PLACEHOLDER = (
    "Nothing was done: {word} in the form of a block stands for the {name} itself. Write the block again with it."
)

NO_COMMAND = (
    "Nothing was done: `{name}` is no command. Begin a block with ```{name}, and put the {body} between its fences."
)

SPACES = (
    "Nothing was done: ```{name} takes one path, and `{head}` is several words. Write a path with spaces in quotes."
)

CHANGE = (
    "Nothing was done: ```{name} takes all of the file's text, and this is only a change of it. Write the block again "
    "with the whole text."
)

_RUNNERS = ("bash", "ipython")
"""Tools whose names are programs too."""

_BEGIN = "You act by fenced blocks in your reply. The first word after the fence names the tool; options follow it:"

_FENCE = re.compile(r"([ \t]*)(`{3,})[ \t]*([^`]*?)[ \t]*")
_SHELL = re.compile(r"(?:bash|sh|shell)\b", re.IGNORECASE)
_MARKDOWN = re.compile(r"(?:finish|reject|ask)\b|write\b.*\.(?:md|mdx|markdown)['\"]?$", re.IGNORECASE)
_HEREDOC = re.compile(r"(?<!<)<<(?!<)-?[ \t]*(?:'([^'\n]+)'|\"([^\"\n]+)\"|\\?([A-Za-z_]\w*))")
_REPLACEMENT = re.compile(r"(<{5,9}) ?SEARCH\n(.*?)^>{5,9} ?REPLACE", re.DOTALL | re.MULTILINE)
_DIVIDER = re.compile(r"^(={5,9})\n", re.MULTILINE)
_PLACE = re.compile(r"(.+?):(\d+)(?:[-:](\d+))?:?")
"""A path with the number of a line, or of the first and last, as programs print it."""
_DIFF = re.compile(r"\s*(?:diff --git .*\n(?:index .*\n)?)?--- .+\n\+\+\+ .+\n@@ -\d")


class TextProtocol:
    """Text with fenced blocks; the first word after the fence is a tool, the rest are its short arguments.

    If it is ``bound``, the server binds the reply to a grammar: a thought, and one block of a tool.
    """

    name = "text"

    def __init__(self, *, bound: bool = False) -> None:
        self._bound = bound

    def instructions(self, tools: Sequence[ActionTool], *, compact: bool) -> str:
        """Return the form of a block, and each tool's block."""
        parts = [_BEGIN]
        for tool in tools:
            description = tool.tool.description.split(". ")[0].rstrip(".") if compact else tool.tool.description
            # Small models copy options that stand inside the block's form.
            options = ", ".join(f"{name}=..." for name in _options(tool))
            parts.append(f"{description}{f' (options: {options})' if options else ''}:\n{_form(tool)}")
        return "\n\n".join(parts)

    def request(self, tools: Sequence[ActionTool]) -> tuple[Sequence[Tool], ReplyForm | None]:
        """Return no tools, and the grammar if the reply is bound."""
        return (), grammar(tools) if self._bound else None

    def read(self, content: str, calls: Sequence[ToolCall], tools: Sequence[ActionTool]) -> ModelReply:
        """Return the reply. Raises MalformedReplyError for an empty reply or a block that does not fit its tool."""
        if not content.strip():
            raise MalformedReplyError("Your reply was empty. Act by a block, or `finish`.")
        by_name = {tool.name: tool for tool in tools}
        prose: list[str] = []
        found: list[ToolCall] = []
        other = ""
        for info, body in _pieces(_with_first_fence(content, by_name)):
            word, *rest = info.split(maxsplit=1)
            tool = by_name.get(ALIASES.get(word.lower(), word.lower()))
            if tool is None and word != "-" and word.lower() not in QUOTES:
                other = other or word
            elif tool is None:
                prose.append(body)
            else:
                tool, head, body = _inner(tool, " ".join(rest), body, by_name)
                found += _block_calls(_meant(tool, body, tools), head, body)
        reply = None if found else calls_in(content, tools)
        if other and reply is None:
            advice = WRITE if "write" in by_name else f" The tools are {', '.join(by_name)}."
            raise MalformedReplyError(NO_TOOL.format(word=other, advice=advice))
        if found:
            return ModelReply("\n".join(prose).strip(), tuple(found))
        return reply or ModelReply(content)

    def reply(self, reply: ModelReply) -> Message:
        """Return the assistant's message: the text, then a block for each call, its arguments as JSON."""
        blocks = [f"```{call.name}\n{call.arguments}\n```" for call in reply.calls]
        return Message.text("assistant", "\n\n".join([reply.text, *blocks]).strip())

    def outcome(self, text: str, call: str | None, images: tuple[Part, ...] = ()) -> Message:
        """Return a user message."""
        return Message("user", (Part(text=text), *images))


def block(tool: ActionTool, arguments: Mapping[str, Any]) -> str:
    """Return a call with all required arguments and no others as a block in the tool's form."""
    properties = tool.tool.parameters["properties"]
    positional = _positional(tool)
    if any(properties[name].get("type") == "array" for name in positional):
        return f"```{tool.name}\n{json.dumps(arguments)}\n```"
    values = [arguments[name] for name in positional]
    words = [shlex.quote(value) if isinstance(value, str) else json.dumps(value) for value in values]
    match tool.body:
        case str(name):
            lines = [str(arguments[name]).rstrip("\n")]
        case (old, new):
            lines = ["<<<<<<< SEARCH", arguments[old], "=======", arguments[new], ">>>>>>> REPLACE"]
        case None:
            lines = []
    return "\n".join([" ".join([f"```{tool.name}", *words]), *lines, "```"])


def inside_documents(lines: Sequence[str]) -> Iterator[int]:
    """Yield the indices of the lines that belong to here-documents."""
    waiting: list[str] = []
    for number, line in enumerate(lines):
        if waiting:
            yield number
            if line.strip() == waiting[0]:
                waiting.pop(0)
        else:
            waiting = [next(filter(None, match)) for match in _HEREDOC.findall(line)]


def _form(tool: ActionTool) -> str:
    arguments = tool.tool.parameters["properties"]
    positional = _positional(tool)
    if lists := [name for name in positional if arguments[name].get("type") == "array"]:
        fields = ", ".join(f'"{name}": [...]' if name in lists else f'"{name}": ...' for name in positional)
        return f"```{tool.name}\n{{{fields}}}\n```"
    return block(tool, {name: name.upper() for name in (*positional, *tool.body_arguments)})


def _positional(tool: ActionTool) -> list[str]:
    """Return the required arguments that stand after the tool's name."""
    return [name for name in tool.tool.parameters.get("required", ()) if name not in tool.body_arguments]


def _options(tool: ActionTool) -> list[str]:
    """Return the arguments that may stand after the tool's name as NAME=VALUE."""
    required = tool.tool.parameters.get("required", ())
    return [
        name for name in tool.tool.parameters["properties"] if name not in tool.body_arguments and name not in required
    ]


def _with_first_fence(text: str, names: Container[str]) -> str:
    """Return the text with its first fence, if the model left it out before a tool's name."""
    first, _, rest = text.lstrip().partition("\n")
    words = first.split()
    bare = bool(words) and words[0] in names
    return f"```{text.lstrip()}" if bare and rest.count("```") % 2 else text


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield (info, body) of each block, and ("-", text) of the text between.

    The lines of an indented block lose the indentation of its fence.
    """
    lines, prose = text.split("\n"), list[str]()
    while lines:
        line = lines.pop(0)
        match = _FENCE.fullmatch(line.rstrip("\r"))
        if not match or not match[3]:
            prose.append(line)
            continue
        yield "-", "\n".join(prose)
        end = _end(lines, len(match[1]), len(match[2]), match[3].strip())
        yield match[3].strip(), "\n".join(one.removeprefix(match[1]) for one in lines[:end])
        prose = []
        del lines[: end + 1]
    yield "-", "\n".join(prose)


def _end(lines: Sequence[str], indent: int, length: int, info: str) -> int:
    """Return the index of the line that closes a block, the number of lines if none does.

    A fence in a here-document of a command belongs to it, unless the document has no end, and so does one in a
    docstring, which is indented by four more than the block's, unless no other closes it. A fence with an info string
    opens an inner block, which ends at the next fence without one. In a text of Markdown, fences without an info string
    come in pairs, too: of an odd number of them, the last one closes the block.
    """
    documents = set(inside_documents(lines)) if _SHELL.match(info) else set[int]()
    deep = {number for number, line in enumerate(lines) if len(line) - len(line.lstrip()) >= indent + 4}
    for inside in (documents | deep, deep, set[int]()):
        closing, inner = list[int](), 0
        for number, line in enumerate(lines):
            match = _FENCE.fullmatch(line.rstrip("\r")) if number not in inside else None
            if match is None:
                continue
            if match[3]:
                if closing:
                    break
                inner += len(match[2]) == length
            elif inner and len(match[2]) == length:
                inner -= 1
            elif len(match[2]) >= length and not inner:
                closing.append(number)
        if closing:
            return closing[-1] if len(closing) % 2 and _MARKDOWN.match(info) else closing[0]
    return len(lines)


def _inner(tool: ActionTool, head: str, body: str, tools: Mapping[str, ActionTool]) -> tuple[ActionTool, str, str]:
    """Return the block of another tool that a block of bash or ipython holds without its fence, else the block itself.

    Models write "write PATH" and a text as if it were a command, and "browse URL" as if it were a line of Python.
    Raises MalformedReplyError for the name alone of a tool that takes a text, like "finish".
    """
    first, _, text = body.strip("\n").partition("\n")
    word, *arguments = first.split() or [""]
    other = tools.get(word)
    if other is None or tool.name not in _RUNNERS:
        return tool, head, body
    if isinstance(other.body, str) and not _positional(other) and other.name not in _RUNNERS:
        if not (text := body.strip().removeprefix(word).strip()):
            raise MalformedReplyError(NO_COMMAND.format(name=word, body=other.body))
        return (other, "", text) if tool.name == "bash" else (tool, head, body)
    if len(arguments) != len(_positional(other)):
        return tool, head, body
    if other.body is None:
        # bash's own `read` takes the name of a variable; in Python two words in a row are an error.
        is_inner = bool(arguments) and not text and (tool.name == "ipython" or not arguments[0].isidentifier())
    else:
        is_inner = tool.name == "bash" and bool(text.strip())
    return (other, " ".join(arguments), text) if is_inner else (tool, head, body)


def _meant(tool: ActionTool, body: str, tools: Sequence[ActionTool]) -> ActionTool:
    """Return the tool that replaces text instead, if the body is nothing but replacements."""
    replacing = next((other for other in tools if isinstance(other.body, tuple)), None)
    if replacing is None or not isinstance(tool.body, str) or _positional(tool) != _positional(replacing):
        return tool
    return replacing if _only_replaces(body) else tool


def _only_replaces(body: str) -> bool:
    return bool(body.strip()) and not _REPLACEMENT.sub("", body + "\n").strip()


def _replacements(body: str) -> Iterator[tuple[str, str]]:
    """Yield the old and the new text of each replacement.

    Lines of equals signs also underline headings: the divider is as long as the mark before it, and of several such
    the middle one, as mostly both texts have the headings.
    """
    for match in _REPLACEMENT.finditer(body):
        lines = list(_DIVIDER.finditer(match[2]))
        if dividers := [line for line in lines if len(line[1]) == len(match[1])] or lines:
            divider = dividers[(len(dividers) - 1) // 2]
            yield match[2][: divider.start()], match[2][divider.end() :]


def _is_change(body: str, path: str) -> bool:
    """Return whether the body is a change of a file instead of its text."""
    return _only_replaces(body) or (bool(_DIFF.match(body)) and not path.endswith((".diff", ".patch")))


def _block_calls(tool: ActionTool, head: str, body: str) -> Iterator[ToolCall]:
    if tool.body is None and not head and "\n" not in body.strip() and not body.lstrip().startswith("{"):
        head, body = body.strip(), ""  # as the text of other tools, it stands between the fences
    arguments = _head_arguments(tool, head)
    _check_placeholders(tool, arguments, body)
    if tool.body is None or (body.lstrip().startswith("{") and _is_object(body, tool, arguments)):
        arguments |= _object(body) if body.strip() else {}
        yield _call(tool, arguments)
    elif isinstance(tool.body, str):
        if tool.body == "content" and _is_change(body, str(arguments.get("path"))):
            raise MalformedReplyError(CHANGE.format(name=tool.name))
        if not body.strip() and not _positional(tool):
            # The text stands in the line of the fence.
            body = str(arguments.get(tool.body, "" if arguments else head))
        yield _call(tool, arguments | {tool.body: body + "\n" * (tool.body == "content" and bool(body))})
    else:
        pairs = list(_replacements(body + "\n"))
        if not pairs:
            raise MalformedReplyError(f"A block of {tool.name} has this form:\n{_form(tool)}")
        for old, new in pairs:
            yield _call(tool, arguments | {tool.body[0]: old.removesuffix("\n"), tool.body[1]: new.removesuffix("\n")})


def _check_placeholders(tool: ActionTool, arguments: Mapping[str, Any], body: str) -> None:
    """Raise MalformedReplyError if the model has copied the words for a path, a URL or a text from a block's form."""
    copied = [name for name in ("path", "url") if str(arguments.get(name)).lower() == name]
    copied += [name for name in tool.body_arguments if body.strip() == name.upper()]
    if copied:
        raise MalformedReplyError(PLACEHOLDER.format(word=copied[0].upper(), name=copied[0]))


def _call(tool: ActionTool, arguments: Mapping[str, Any]) -> ToolCall:
    return ToolCall("", tool.name, json.dumps(arguments))


def _head_arguments(tool: ActionTool, head: str) -> dict[str, Any]:
    properties = tool.tool.parameters["properties"]
    remaining = _positional(tool)
    if remaining == ["path"]:
        head = re.sub(r"\\+(?=[\w.@-])", "/", head)  # of Windows; before another mark it is an escape
    try:
        words = shlex.split(head)
    except ValueError:
        words = head.split()
    if tool.body is None and remaining == ["query"] and len(words) > 1:
        return {"query": head}
    numbers = [name for name in _options(tool) if tool.body is None and properties[name].get("type") == "integer"]
    arguments: dict[str, Any] = {}
    if numbers and words and (place := _PLACE.fullmatch(words[0])):
        words = [*filter(None, place.groups()), *words[1:]]
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name in properties:
            arguments[name] = typed(properties[name], value)
        elif remaining:
            argument = remaining.pop(0)
            arguments[argument] = typed(properties[argument], word)
        elif numbers and word.isdecimal():
            arguments[numbers.pop(0)] = int(word)
        elif tool.body is not None and "path" in arguments and not _is_remark(word, str(arguments["path"])):
            raise MalformedReplyError(SPACES.format(name=tool.name, head=head))
    return arguments


def _is_remark(word: str, path: str) -> bool:
    """Return whether a word after a path is a remark, like "(new)", and no part of a path with spaces."""
    return "." in path and not {".", "/"} & set(word)


def _is_object(body: str, tool: ActionTool, given: Collection[str]) -> bool:
    """Return whether the body is a JSON object of the tool's arguments, instead of the text of one.

    Those that are ``given`` stand after the tool's name: an object that has them again is a text.
    """
    try:
        value = parse(body)
    except ValueError:
        return False
    names = set(cast("dict[str, Any]", value)) if isinstance(value, dict) else set[str]()
    return bool(names) and names <= set(tool.tool.parameters["properties"]) - set(given)


def _object(body: str) -> dict[str, Any]:
    try:
        value = parse(body)
    except ValueError as error:
        raise MalformedReplyError(f"The arguments in a block are a JSON object: {error}") from None
    if not isinstance(value, dict):
        raise MalformedReplyError("The arguments in a block are a JSON object.")
    return cast("dict[str, Any]", value)

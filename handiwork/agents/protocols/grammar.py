"""The grammar of replies in plain text, for servers that bind a reply to one: a thought, and one block of a tool."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence

from handiwork.agents.protocols.action_tools import ActionTool
from handiwork.llm.types import Grammar, JsonSchema

THOUGHT_LINES, LINE = 6, 300
"""Maximum lines of a thought, and characters of each."""

CODE = ("command", "code")
"""Arguments that have no blocks inside."""

_RULES = rf"""root ::= thought block
thought ::= ( [^`\n] [^\n]{{0,{LINE}}} "\n" ){{1,{THOUGHT_LINES}}} "\n"?
word ::= bare+ | quoted
bare ::= [^ \t\n`"']
quoted ::= "'" [^\n']* "'"
string ::= "\"" ( [^"\\\n] | "\\" ["\\/nt] )* "\""
list ::= "[" string ( ", " string )* "]"
line ::= [^`\n] [^\n]* "\n" | "`" [^`\n] [^\n]* "\n"
blank ::= "\n"{{0,3}}
inner ::= "```" [a-zA-Z] [^\n]* "\n" ( blank line )* "```\n"
code ::= line ( blank line )* blank
body ::= line ( blank ( line | inner ) )* blank
part ::= ( blank ( [^`<=>\n] [^\n]* "\n" | "`" [^`\n]* "\n" | [<=>] [^<=>\n] [^\n]* "\n" ) )* blank
change ::= "<<<<<<< SEARCH\n" part "=======\n" part ">>>>>>> REPLACE\n"
"""
"""A line of a body begins no block; an inner block, like one of a Markdown file, has a word after its fence."""


def grammar(tools: Sequence[ActionTool]) -> Grammar:
    """Return the grammar, in GBNF, of replies that call one of the tools."""
    names = [f"tool-{number}" for number in range(len(tools))]
    rules = [f"{name} ::= {' '.join(_form(tool))}" for name, tool in zip(names, tools, strict=True)]
    return Grammar("\n".join([f"{_RULES}block ::= {' | '.join(names)}", *rules]) + "\n")


def _form(tool: ActionTool) -> Iterator[str]:
    """Yield the symbols of a tool's block: its name and short arguments, and its body."""
    yield json.dumps(f"```{tool.name}")
    properties = tool.tool.parameters["properties"]
    required = tool.tool.parameters.get("required", ())
    short = [name for name in required if name not in tool.body_arguments]
    if any(properties[name].get("type") == "array" for name in short):
        yield rf'"\n{{" {_members(properties, short)} "}}\n```"'
        return
    for name in short:
        yield f'" " {_value(name, properties[name])}'
    if short == ["query"]:
        yield '( " " word )*'
    if options := [json.dumps(f" {name}=") for name in properties if name not in required]:
        yield f"( ( {' | '.join(options)} ) word )*"
    yield rf'"\n" {_lines(tool)} "```"'


def _lines(tool: ActionTool) -> str:
    match tool.body:
        case None:
            return ""
        case str(name):
            return "code" if name in CODE else "body"
        case _:
            return "change+"


def _value(name: str, schema: JsonSchema) -> str:
    """Return the symbols of a short argument; a small model copies the placeholder that the tool's form has for it."""
    if "enum" not in schema:
        return f"( {_other_than(name.upper())} | quoted )"
    return f"( {' | '.join(json.dumps(shlex.quote(str(value))) for value in schema['enum'])} )"


def _members(properties: JsonSchema, names: Sequence[str]) -> str:
    """Return the symbols of the members of a JSON object: texts and lists of texts, or else anything on one line."""
    members: list[str] = []
    for name in names:
        schema = properties[name]
        is_list = schema.get("type") == "array"
        if (schema.get("items", {}) if is_list else schema).get("type") != "string":
            return r"[^\n]*"
        members.append(f"{json.dumps(json.dumps(name) + ': ')} {'list' if is_list else 'string'}")
    return ' ", " '.join(members)


def _other_than(placeholder: str) -> str:
    """Return the symbols of a bare word that does not begin with this one: kept from PATH, models write PATH1."""
    first, rest = placeholder[0], placeholder[1:]
    other = rf"""[^{first} \t\n`"'] bare*"""
    return f'{other} | "{first}" ( {_other_than(rest)} )?' if rest else other

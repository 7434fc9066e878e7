"""The reference pages of the site, as Markdown made from the code: commands, settings, events, HTTP API, errors."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import typer

import handiwork
from handiwork.cli.main import app, root
from handiwork.errors import HandiworkError
from handiwork.events.base import Action, Event, Observation, Record
from handiwork.events.codec import EVENT_TYPES
from handiwork.hooks import Hook
from handiwork.server.app import OPERATIONS
from handiwork.server.openapi import document
from handiwork.settings import FLAGS, PREFIX, MCPServerSettings, SessionSettings, Settings

Schema = dict[str, Any]
BASES: tuple[type[Event], ...] = (Action, Observation, Record)


def pages() -> dict[str, str]:
    """Return the Markdown of each page by its path in the site's sources."""
    return {
        "reference/commands.md": commands(),
        "reference/settings.md": settings(),
        "reference/events.md": events(),
        "reference/api.md": api(),
        "reference/errors.md": errors(),
    }


def commands() -> str:
    """Return the page of the commands: each with its help, its arguments and its options."""
    program = typer.main.get_command(app)
    about = "`handiwork COMMAND --help` prints the same."
    return "\n".join(["# Commands", "", about, "", *_command(program, "handiwork")])


def _command(command: Any, name: str, parent: Any = None) -> Iterator[str]:
    context = typer.Context(command, info_name=name.rpartition(" ")[2], parent=parent)
    yield from [f"## {name}", "", *_help(inspect.cleandoc(command.help or "")), ""]
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    yield from ["```text", usage, "```", ""]
    rows = [record for parameter in command.params if (record := parameter.get_help_record(context))]
    if rows:
        yield from [*_table(("argument or option", "meaning"), [(_code(row[0]), _cell(row[1])) for row in rows]), ""]
    for sub in getattr(command, "commands", {}).values():
        yield from _command(sub, f"{name} {sub.name}", context)


def _help(text: str) -> Iterator[str]:
    """Yield the lines of a command's help; a paragraph after a line \\b keeps its lines, in a block."""
    for paragraph in text.split("\n\n"):
        first, _, rest = paragraph.partition("\n")
        if first == "\b":
            yield from ["```text", rest, "```", ""]
        else:
            yield from [paragraph.replace("<", "&lt;"), ""]


def settings() -> str:
    """Return the page of the settings, with the tables of the settings file."""
    # The module's name is that of a function beside it, which the program must have taken first.
    from handiwork.cli.commands.machine.config import meanings

    about = {**meanings(SessionSettings), **meanings(Settings)}
    defaults = {name: field.get_default(call_default_factory=True) for name, field in Settings.model_fields.items()}
    rows = [
        (_code(name), _code(FLAGS.get(name, _flag(name))), _value(default), _cell(about[name]))
        for name, default in sorted(defaults.items())
    ]
    return "\n".join(
        [
            "# Settings",
            "",
            "A setting is a key of `~/.config/handiwork/config.toml`, an environment variable "
            f"(`{PREFIX}MAX_COST` for `max_cost`), which overrides the file, or a flag, which overrides both. "
            "`handiwork config` shows all of them with their sources, and sets them.",
            "",
            *_table(("setting", "flag", "default", "meaning"), rows),
            "",
            "## `[mcp.NAME]`",
            "",
            *_model(MCPServerSettings.model_json_schema()),
            "## `[[hooks]]`",
            "",
            *_model(Hook.model_json_schema()),
        ]
    )


def _flag(name: str) -> str:
    flag = f"--{name.replace('_', '-')}"
    program: Any = typer.main.get_command(app)
    return flag if any(flag in parameter.opts for parameter in program.commands["run"].params) else ""


def events() -> str:
    """Return the page of the events, by kind."""
    text = [
        "# Events",
        "",
        "A session's log holds events. `handiwork show --json` prints each as a JSON object, the WebSocket of the "
        'server sends the same: `{"type": "CmdRunAction", "id": 12, ...}`.',
        "",
        "## All events",
        "",
        *_model(Event.model_json_schema()),
    ]
    known = [kind for kind in EVENT_TYPES.values() if kind.__module__.startswith("handiwork.events.")]
    for base in BASES:
        text += [f"## {base.__name__}s", "", *_model(base.model_json_schema(), Event.model_json_schema())]
        for kind in sorted((kind for kind in known if issubclass(kind, base)), key=lambda kind: kind.kind):
            text += [f"### {kind.kind}", "", *_model(kind.model_json_schema(), base.model_json_schema())]
    return "\n".join(text)


def api() -> str:
    """Return the page of the HTTP API: its operations, then the objects that they take and give."""
    whole = document(OPERATIONS)
    text = ["# HTTP API", "", "`/api/openapi.json` of a running server is this page for programs. ", ""]
    text[2] += "[The server](../server.md#the-api) explains the token, errors and WebSockets."
    for path, operations in whole["paths"].items():
        for method, operation in operations.items():
            text += _operation(f"{method.upper()} {path}", operation)
    text += ["## Objects", ""]
    for name, schema in sorted(whole["components"]["schemas"].items()):
        text += [f"### {name}", "", *_model(schema)]
    return "\n".join(text)


def _operation(title: str, operation: Schema) -> Iterator[str]:
    yield from [f"## `{title}`", "", _cell(operation["summary"]), ""]
    rows = [
        (_code(one["name"]), _type(one["schema"]), _default(one["schema"], one["required"]),
         _cell(one["schema"].get("description", "")))
        for one in operation["parameters"]
        if one["in"] == "query"
    ]  # fmt: skip
    if rows:
        yield from [*_table(("query", "type", "default", "meaning"), rows), ""]
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        yield from [f"Body: {_type(content['schema'])} as `{kind}`.", ""]
    for status, response in operation["responses"].items():
        if status.startswith("2"):
            ((kind, content),) = response["content"].items()
            yield from [f"Answer {status}: {_type(content['schema']) or 'bytes'} as `{kind}`.", ""]
    refused = [status for status in operation["responses"] if not status.startswith("2")]
    yield from [f"Errors: {', '.join(refused)}.", ""]


def errors() -> str:
    """Return the page of the exit codes and of the errors, each with its exit code and HTTP status."""
    codes = (inspect.getdoc(root) or "").rpartition("\b\n")[2]
    for module in walk_packages(handiwork.__path__, "handiwork."):
        if not module.name.startswith(("handiwork.evals", "handiwork.sandbox.inside", "handiwork.skills")):
            import_module(module.name)
    rows = [
        (_code(kind.__name__), str(int(kind.exit_code)), str(kind.status), _cell(inspect.getdoc(kind) or ""))
        for kind in sorted(set(_subclasses(HandiworkError)), key=lambda kind: kind.__name__)
        if kind.__module__.startswith("handiwork.")
    ]
    return "\n".join(
        [
            "# Errors",
            "",
            "A command that fails prints one message on stderr, which names the problem and the remedy, and exits with "
            "the code of the error; the server answers with its HTTP status. "
            "[Troubleshooting](../troubleshooting.md) has the messages that users meet most.",
            "",
            codes,
            "A session that a failing model stops exits with 4 as well.",
            "",
            *_table(("error", "exit code", "HTTP status", "meaning"), rows),
        ]
    )


def _subclasses(kind: type[HandiworkError]) -> Iterator[type[HandiworkError]]:
    for sub in kind.__subclasses__():
        yield sub
        yield from _subclasses(sub)


def _model(schema: Schema, base: Schema | None = None) -> Iterator[str]:
    """Yield the description of an object and the table of its fields, without those of ``base`` that are the same."""
    if text := schema.get("description"):
        yield from [re.sub(r"``(.+?)``", r"`\1`", text.replace("<", "&lt;")), ""]
    if "enum" in schema:
        yield from [f"One of {_type(schema)}.", ""]
    known = (base or {}).get("properties", {})
    rows = [
        (_code(name), _type(field), _default(field, name in schema.get("required", ())),
         _cell(field.get("description", "")))
        for name, field in schema.get("properties", {}).items()
        if field != known.get(name)
    ]  # fmt: skip
    if rows:
        titles = ("field", "type", "default", "meaning")
        if not any(row[3] for row in rows):
            titles, rows = titles[:3], [row[:3] for row in rows]
        yield from [*_table(titles, rows), ""]


def _default(schema: Schema, required: bool) -> str:
    return "required" if required else _value(schema["default"]) if "default" in schema else ""


def _type(schema: Schema) -> str:
    """Return a schema's type in words, in one cell; objects link to their section of the page if it is the API's."""
    if ref := schema.get("$ref"):
        name = str(ref).rpartition("/")[2]
        if name == "JsonValue":
            return "any"
        return f"[{name}](#{name.lower()})" if str(ref).startswith("#/components") else name
    if "enum" in schema:
        return ", ".join(_value(value) for value in schema["enum"])
    if "const" in schema:
        return _value(schema["const"])
    if parts := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
        return " or ".join(dict.fromkeys(_type(part) or "any" for part in parts))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {})) or 'any'}"
    if schema.get("type") == "object" and isinstance(extra := schema.get("additionalProperties"), dict):
        return f"object of {_type(extra) or 'any'}"  # pyright: ignore[reportUnknownArgumentType] (JSON)
    return str(schema.get("format") or schema.get("type", ""))


def _value(value: Any) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return _code(str(value).lower())
        case "" | () | [] | {}:
            return "empty"
        case _:
            return _code(str(value))


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|") if text else ""


def _cell(text: str) -> str:
    """Return text in one line, safe in a table's cell; what the code writes as reStructuredText becomes Markdown."""
    line = re.sub(r"``(.+?)``", r"`\1`", " ".join(text.split()))
    return line.replace("|", "\\|").replace("<", "&lt;").replace("*.", "\\*.")


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    for row in (titles, ["---"] * len(titles), *rows):
        yield f"| {' | '.join(row)} |"

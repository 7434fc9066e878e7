"""``handiwork config``: shows the settings, and changes the user's settings file."""

from __future__ import annotations

import ast
import inspect
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.text import Text

from handiwork.cli.errors import say
from handiwork.cli.terminal.jsonlines import write_json
from handiwork.cli.terminal.sanitize import plain
from handiwork.cli.terminal.view import terminal_console
from handiwork.errors import Exit
from handiwork.session import skills
from handiwork.session.config import agent_name
from handiwork.session.secrets import specification
from handiwork.settings import (
    PREFIX,
    SessionSettings,
    Settings,
    SettingsError,
    keeps_server,
    load,
    parsed,
    set_defaults,
    settings_file,
    written,
)

TABLES = ("mcp", "forges")
"""The settings that are tables, which nobody writes on a command line."""

_ABSOLUTE: dict[str, Callable[[str], str]] = {
    "agent": agent_name,
    "mount_ro": lambda path: str(Path(path).expanduser().absolute()),
    "secrets": specification,
    "skills": skills.absolute,
}
"""The settings with paths, which must hold from every directory."""


@dataclass(frozen=True)
class SettingRow:
    """A setting with its value as text, its source ("default", the name of a variable or a file), and its meaning."""

    name: str
    value: str
    source: str
    about: str


def config(name: str | None, values: Sequence[str] | None, unset: bool, as_json: bool) -> Exit:
    """Show all settings or one, or change one in the settings file. Raises SettingsError."""
    if name is not None and name not in Settings.model_fields:
        raise SettingsError(f"unknown setting {name!r}; known: {', '.join(Settings.model_fields)}")
    if values or unset:
        _change(name, values or (), unset)
        return Exit.FINISHED
    rows = [row for row in settings_rows() if name in (None, row.name)]
    if as_json:
        for row in rows:
            write_json(json.dumps(asdict(row), ensure_ascii=False))
        return Exit.FINISHED
    console = terminal_console()
    width = max(len(row.value) for row in rows) if name is None else 0
    for row in rows:
        line = Text.assemble((f"{row.name:22}", "bold"), f"{plain(row.value):{min(width, 40)}}  ", (row.source, "dim"))
        console.print(line, soft_wrap=True)
        if name is not None:
            console.print(Text(row.about), soft_wrap=True)
    return Exit.FINISHED


def settings_rows() -> list[SettingRow]:
    """Return all settings, in the order of the documentation. Raises SettingsError."""
    settings, in_file = load({}), written()
    abouts = {**meanings(SessionSettings), **meanings(Settings)}

    def source(name: str) -> str:
        if os.environ.get(variable := f"{PREFIX}{name.upper()}"):
            return variable
        return str(settings_file()) if name in in_file else "default"

    names = sorted(Settings.model_fields)
    return [SettingRow(name, _text(getattr(settings, name)), source(name), abouts.get(name, "")) for name in names]


def _change(name: str | None, values: Sequence[str], unset: bool) -> None:
    if name is None or (values and unset):
        raise SettingsError("--unset takes the name of one setting and no value, like: handiwork config model --unset")
    if name in TABLES and not unset:
        raise SettingsError(f"{name} is a table: write [{name}] in {settings_file()}")
    value = None if unset else parsed(name, [_ABSOLUTE.get(name, str)(value) for value in values])
    in_file = written()
    changes: dict[str, Any] = {name: value} if not unset or name in in_file else {}
    model = value or Settings.model_fields["model"].default
    drops_url = name == "model" and "base_url" in in_file and not keeps_server(model, in_file.get("model", ""))
    if changes or drops_url:
        set_defaults(changes | ({"base_url": None} if drops_url else {}))
    if drops_url:
        say(f"base_url is no longer set in {settings_file()}: it was set for another model")
    say(f"{name} is {'no longer set' if unset else _text(value)} in {settings_file()}")
    if os.environ.get(variable := f"{PREFIX}{name.upper()}"):
        say(f"the variable {variable} overrides it")


def _text(value: Any) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case tuple() | list() | dict():
            return " ".join(map(str, value)) or "none"  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] (its elements have names)
        case _:
            return str(value)


def meanings(settings: type[SessionSettings]) -> dict[str, str]:
    """Return the docstring below each field of the class, in one line."""
    (definition,) = ast.parse(inspect.getsource(settings)).body
    assert isinstance(definition, ast.ClassDef)
    found: dict[str, str] = {}
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = " ".join(text.split())
            case _:
                pass
    return found

"""The decorator of the program's commands."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from importlib import import_module
from typing import Any, NoReturn, cast

import typer

from handiwork.cli.errors import guarded
from handiwork.errors import Exit, HandiworkError

_SAME = (
    *("agent", "model", "base_url", "protocol", "sandbox", "image", "mount_ro", "allow_net"),
    *("max_iterations", "max_cost", "max_tokens", "max_time"),
)
SETTINGS = {"secret": "secrets", "confirm": "confirmation", "plan": "plan_mode", **{name: name for name in _SAME}}
"""The parameters of commands that set a setting, each with the setting's name."""

Body = Callable[..., Exit | Coroutine[Any, Any, Exit] | None]


def command(app: typer.Typer, body: str = "", *, name: str | None = None) -> Callable[[Body], Body]:
    """Add a command with the decorated function's parameters and help; errors become a message and an exit code.

    ``body``, like "run:resume", names a function of handiwork.cli.commands that carries the command out and is
    imported when the command runs; without it the decorated function does. The body gets the arguments by name, and
    runs on an event loop if it is async. If it has a parameter ``flags``, that is a dict with those of the arguments
    that are SETTINGS.
    """

    def add(declaration: Body) -> Body:
        @wraps(declaration)
        def run(**arguments: Any) -> None:
            carry_out(body or declaration, arguments)

        app.command(name)(run)
        return declaration

    return add


def carry_out(body: str | Body, arguments: dict[str, Any]) -> NoReturn:
    """Run a command's body, as ``command`` describes it, and exit with its code."""

    def call() -> Exit:
        _check_encoding(arguments)
        function = _imported(body) if isinstance(body, str) else body
        if "flags" in inspect.signature(function).parameters:
            arguments["flags"] = {SETTINGS[key]: arguments.pop(key) for key in SETTINGS if key in arguments}
        code = function(**arguments)
        if code is not None and not isinstance(code, Exit):
            import asyncio

            code = asyncio.run(code)
        return code or Exit.FINISHED

    guarded(call)


def _check_encoding(arguments: Mapping[str, Any]) -> None:
    """Raise HandiworkError for a text that is not UTF-8, which no log could keep."""
    for name, value in arguments.items():
        for text in cast("list[object]", value) if isinstance(value, list) else [value]:
            if isinstance(text, str) and any("\ud800" <= character <= "\udfff" for character in text):
                raise HandiworkError(f"{name} is not UTF-8: convert it, for example with iconv -f latin1 -t utf-8")


def _imported(body: str) -> Body:
    """Import a command's body without garbage collections, which find nothing among a module's new objects."""
    module, _, attribute = body.partition(":")
    gc.disable()
    try:
        return getattr(import_module(f"handiwork.cli.commands.{module}"), attribute)
    finally:
        gc.freeze()
        gc.enable()

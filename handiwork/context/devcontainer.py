"""devcontainer.json, as containers.dev specifies it: the properties that a session uses, and those it ignores.

Used are ``containerEnv`` and ``remoteEnv``, ``postCreateCommand``, which runs in the sandbox, and ``image``, for a
session that asks for it. Nothing in the file runs on the host: ``initializeCommand`` never runs, and no value gets a
variable of the host.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from handiwork.context.characters import one_line, visible
from handiwork.context.conventions import Convention, UnreadableError, digest, read_file, text_of, warnings

PLACES = (".devcontainer/devcontainer.json", ".devcontainer.json")

MEANINGLESS = frozenset({"$schema", "name", "customizations", "shutdownAction", "overrideCommand", "hostRequirements"})
"""Properties that change nothing about a sandbox without a window."""

REQUEST = "devcontainer"
"""The image name that stands for the image of the workspace's devcontainer.json."""

HOST = "initializeCommand"
USED = frozenset({"image", "containerEnv", "remoteEnv", "postCreateCommand"})

_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Devcontainer:
    """The part of a devcontainer.json that a session uses; ``left_out`` lists the rest."""

    image: str | None
    environment: Mapping[str, str]
    commands: tuple[str, ...]
    left_out: tuple[str, ...]

    def text(self) -> str:
        """Return the commands that a session runs in its sandbox, one after another."""
        return "\n".join(self.shell_commands())

    def shell_commands(self) -> Iterator[str]:
        """Yield the commands: one that exports the environment, then those after creation."""
        if self.environment:
            yield "export " + " ".join(f"{name}={value}" for name, value in self.environment.items())
        yield from self.commands


def find(root: int) -> tuple[Convention, Devcontainer | None] | None:
    """Return the devcontainer.json of an open workspace and its content, None if it has none."""
    for path in PLACES:
        try:
            content = read_file(root, path)
        except UnreadableError as error:
            return Convention("devcontainer", "workspace", path, problem=str(error)), None
        if content is None:
            continue
        try:
            text = text_of(content)
            parsed = parse(text)
        except UnreadableError as error:
            broken = Convention("devcontainer", "workspace", path, sha256=digest(content), problem=str(error))
            return broken, None
        notes = (*warnings(text), *parsed.left_out)
        return (
            Convention("devcontainer", "workspace", path, parsed.text(), visible(text), digest(content), notes=notes),
            parsed,
        )
    return None


def parse(text: str) -> Devcontainer:
    """Return the content of a devcontainer.json, JSON with comments. Raises UnreadableError."""
    try:
        data: object = json.loads(without_comments(text))
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"it is not JSON with comments: {one_line(str(error))}") from None
    if not isinstance(data, dict):
        raise UnreadableError("it is not a JSON object")
    fields = cast("dict[str, Any]", data)
    left_out = [f"{HOST} would run on this machine and never does"] if HOST in fields else []
    unsupported = sorted(fields.keys() - USED - MEANINGLESS - {HOST})
    left_out += [f"not supported: {', '.join(one_line(name) for name in unsupported)}"] if unsupported else []
    environment: dict[str, str] = {}
    for key in ("containerEnv", "remoteEnv"):
        variables: object = fields.get(key) or {}
        if not isinstance(variables, dict):
            raise UnreadableError(f"its {key} is not an object")
        for name, value in cast("dict[str, object]", variables).items():
            quoted = _quoted(value) if _IDENTIFIER.fullmatch(name) else None
            if quoted is None:
                left_out.append(f"the variable {one_line(name)} has a name or value that is not supported")
            else:
                environment[name] = quoted
    image = fields.get("image")
    if image is not None and not (isinstance(image, str) and re.fullmatch(r"[\w][\w./:@-]*", image, re.ASCII)):
        raise UnreadableError("its image is not the name of an image")
    return Devcontainer(image, environment, tuple(_commands(fields.get("postCreateCommand"))), tuple(left_out))


def without_comments(text: str) -> str:
    """Return JSON without the comments and trailing commas of JSON with comments; lines keep their numbers.

    Takes time in proportion to the text, for any text.
    """
    pieces: list[str] = []
    comma, at = -1, 0
    while at < len(text):
        end = _end_of_token(text, at)
        piece, at = text[at:end], end
        if piece.startswith(("//", "/*")):
            pieces.append("\n" * piece.count("\n"))
            continue
        if piece in ("}", "]") and comma >= 0:
            pieces[comma] = ""
        comma = len(pieces) if piece == "," else comma if piece.isspace() else -1
        pieces.append(piece)
    return "".join(pieces)


def _end_of_token(text: str, at: int) -> int:
    """Return the end of the string, comment or single character that begins at ``at``."""
    if text[at] == '"':
        end = at + 1
        while end < len(text) and text[end] != '"':
            end += 2 if text[end] == "\\" else 1
        return end + 1
    if text.startswith("//", at):
        end = text.find("\n", at)
        return len(text) if end < 0 else end
    if text.startswith("/*", at):
        end = text.find("*/", at + 2)
        return len(text) if end < 0 else end + 2
    return at + 1


def _commands(value: object) -> Iterator[str]:
    """Yield the commands of a lifecycle property: a shell line, a list of arguments, or an object of both."""
    match value:
        case None:
            return
        case str():
            command = value
        case list() if all(isinstance(part, str) for part in cast("list[object]", value)):
            command = shlex.join(cast("list[str]", value))
        case dict():
            for part in cast("dict[str, object]", value).values():
                if isinstance(part, dict):
                    raise UnreadableError("its postCreateCommand is no command")
                yield from _commands(part)
            return
        case _:
            raise UnreadableError("its postCreateCommand is no command")
    if "\0" in command:
        raise UnreadableError("its postCreateCommand has a NUL")
    if command.strip():
        yield command


def _quoted(value: object) -> str | None:
    """Return a value as the shell reads it; None if it needs a variable of the host, or is not text.

    Of the variables only ``${containerEnv:NAME}`` has a meaning in a sandbox: that of the shell's own variable.
    """
    if not isinstance(value, str) or "\0" in value:
        return None
    quoted, end = "", 0
    for variable in _VARIABLE.finditer(value):
        kind, _, name = variable[1].partition(":")
        if kind != "containerEnv" or not _IDENTIFIER.fullmatch(name):
            return None
        quoted += _literal(value[end : variable.start()]) + f'"${{{name}}}"'
        end = variable.end()
    return quoted + _literal(value[end:]) if end else shlex.quote(value)


def _literal(text: str) -> str:
    return shlex.quote(text) if text else ""

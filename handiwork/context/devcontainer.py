"""devcontainer.json, as containers.dev specifies it: the properties that a session uses, and those it ignores.

Used are ``containerEnv`` and ``remoteEnv``, ``postCreateCommand``, which runs in the sandbox, and ``image``, for a
session that asks for it. Nothing in the file runs on the host: ``initializeCommand`` never runs, and no value gets a
variable of the host. Of the variables of the specification, those for the workspace's folder and
``${containerEnv:NAME}``, the variable of the sandbox's shell, have a value.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from handiwork.context.characters import one_line, visible
from handiwork.context.conventions import Convention, UnreadableError, digest, exists, read_file, text_of, warnings
from handiwork.workspace.files.safe_open import entries_beneath, join

FOLDER, FILE = ".devcontainer", "devcontainer.json"
PLACES = (f"{FOLDER}/{FILE}", f".{FILE}")

MEANINGLESS = frozenset({"$schema", "name", "customizations", "shutdownAction", "overrideCommand", "hostRequirements"})
"""Properties that change nothing about a sandbox without a window."""

REQUEST = "devcontainer"
"""The image name that stands for the image of the workspace's devcontainer.json."""

HOST = "initializeCommand"
USED = frozenset({"image", "containerEnv", "remoteEnv", "postCreateCommand"})

_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_OF_SPECIFICATION = re.compile(r"\w+:[A-Za-z_].*|devcontainerId", re.ASCII)
"""Names of variables that an editor would replace; any other ``${...}`` in a command is for the shell."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN_PATH = re.compile(r"[\w@%+=:,./ -]*")
"""Paths in which the shell replaces nothing."""


@dataclass(frozen=True)
class Devcontainer:
    """The part of a devcontainer.json that a session uses; ``left_out`` lists the rest.

    Of the ``environments`` a later one may use the variables of those before.
    """

    image: str | None
    environments: tuple[Mapping[str, str], ...]
    commands: tuple[str, ...]
    left_out: tuple[str, ...]

    def text(self) -> str:
        """Return the commands that a session runs in its sandbox, one after another."""
        return "\n".join(self.shell_commands())

    def shell_commands(self) -> Iterator[str]:
        """Yield the commands: those that export the environments, then those after creation."""
        yield from self.exports()
        yield from self.commands

    def exports(self) -> Iterator[str]:
        """Yield the commands that export the environments; every new shell needs them."""
        for variables in filter(None, self.environments):
            yield "export " + " ".join(f"{name}={value}" for name, value in variables.items())


def find(root: int, workspace: Path) -> tuple[Convention, Devcontainer | None] | None:
    """Return the devcontainer.json of an open workspace and its content, None if it has none.

    ``root`` may be a copy of the ``workspace``. A file in a folder of .devcontainer counts if it is the only one.
    """
    below = _below(root)
    for path in (*PLACES, *(below if len(below) == 1 else ())):
        try:
            content = read_file(root, path)
        except UnreadableError as error:
            return Convention("devcontainer", "workspace", path, problem=str(error)), None
        if content is None:
            continue
        try:
            text = text_of(content)
            parsed = parse(text, str(workspace))
        except UnreadableError as error:
            broken = Convention("devcontainer", "workspace", path, sha256=digest(content), problem=str(error))
            return broken, None
        notes = (*warnings(text), *parsed.left_out)
        return (
            Convention("devcontainer", "workspace", path, parsed.text(), visible(text), digest(content), notes=notes),
            parsed,
        )
    return None


def unused(root: int) -> Iterator[tuple[str, str]]:
    """Yield the paths of the files that a session in an open workspace does not use, each with the reason."""
    below = _below(root)
    first, *others = [*(path for path in PLACES if exists(root, path)), *below] or [""]
    if first in PLACES:
        yield from ((path, f"{first} counts") for path in others)
    elif others:
        why = f"one of {len(below)} in {FOLDER}: a session uses the only one, or {PLACES[0]}"
        yield from ((path, why) for path in below)


def _below(root: int) -> list[str]:
    """Return the paths of the files in the folders of .devcontainer."""
    try:
        entries = entries_beneath(root, FOLDER)
    except OSError:
        return []  # there is none, or it is a link
    names = sorted(name for name, status in entries if stat.S_ISDIR(status.st_mode))
    paths = (join(join(FOLDER, name), FILE) for name in names)
    return [path for path in paths if exists(root, path)]


def parse(text: str, workspace: str) -> Devcontainer:
    """Return the content of a devcontainer.json, JSON with comments. Raises UnreadableError.

    ``workspace`` is the path of the workspace's folder in the sandbox.
    """
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
    folders = _folders(workspace)
    environments: list[dict[str, str]] = []
    for key in ("containerEnv", "remoteEnv"):
        variables: object = fields.get(key) or {}
        if not isinstance(variables, dict):
            raise UnreadableError(f"its {key} is not an object")
        environments.append({})
        for name, value in cast("dict[str, object]", variables).items():
            try:
                environments[-1][name] = _value(name, value, folders)
            except _UnsupportedError as error:
                left_out.append(f"the variable {one_line(name)} is left out: {error}")
    image = fields.get("image")
    if image is not None and not (isinstance(image, str) and re.fullmatch(r"[\w][\w./:@-]*", image, re.ASCII)):
        raise UnreadableError("its image is not the name of an image")
    commands: list[str] = []
    for command in _commands(fields.get("postCreateCommand")):
        try:
            commands.append(_shell_line(command, folders))
        except _UnsupportedError as error:
            left_out.append(f"a postCreateCommand is left out: {error}")
    return Devcontainer(image, tuple(environments), tuple(commands), tuple(left_out))


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


def _commands(value: object) -> Iterator[str | list[str]]:
    """Yield the commands of a lifecycle property: a shell line, a list of arguments, or an object of both."""
    match value:
        case None:
            return
        case str():
            command, text = value, value
        case list() if all(isinstance(part, str) for part in cast("list[object]", value)):
            command = cast("list[str]", value)
            text = "".join(command)
        case dict():
            for part in cast("dict[str, object]", value).values():
                if isinstance(part, dict):
                    raise UnreadableError("its postCreateCommand is no command")
                yield from _commands(part)
            return
        case _:
            raise UnreadableError("its postCreateCommand is no command")
    if "\0" in text:
        raise UnreadableError("its postCreateCommand has a NUL")
    if text.strip():
        yield command


class _UnsupportedError(Exception):
    """A variable or a command cannot be used in a sandbox; the text gives the reason."""


def _folders(workspace: str) -> dict[str, str]:
    """Return the variables for the folder that the agent works in; it has the same path for the user and the agent."""
    kinds = ("containerWorkspaceFolder", "localWorkspaceFolder")
    names = {f"{kind}Basename": os.path.basename(workspace) for kind in kinds}
    return dict.fromkeys(kinds, workspace) | names


def _value(name: str, value: object, folders: Mapping[str, str]) -> str:
    """Return the value of an environment variable as the shell reads it. Raises _UnsupportedError."""
    if not _IDENTIFIER.fullmatch(name) or not isinstance(value, str) or "\0" in value:
        raise _UnsupportedError("it has a name or value that is not supported")
    for variable in _VARIABLE.finditer(value):
        if variable[1] not in folders and not _shell_name(variable[1]):
            raise _UnsupportedError(f"{one_line(variable[0])} is not supported")
    return _word(value, folders)


def _shell_line(command: str | list[str], folders: Mapping[str, str]) -> str:
    """Return a command as the shell reads it. Raises _UnsupportedError.

    In a list each part is one word; a text is the shell's own, so the folders' names stand in it as they are.
    """
    for variable in _VARIABLE.finditer(command if isinstance(command, str) else " ".join(command)):
        if _OF_SPECIFICATION.fullmatch(variable[1]) and not _shell_name(variable[1]):
            raise _UnsupportedError(f"{one_line(variable[0])} is not supported")
        if isinstance(command, str) and not _PLAIN_PATH.fullmatch(folders.get(variable[1], "")):
            raise _UnsupportedError("the workspace's path has characters with a meaning in the shell: use a list")
    if isinstance(command, list):
        return " ".join(_word(part, folders) for part in command)
    return _VARIABLE.sub(lambda one: folders.get(one[1]) or _parameter(one[1]) or one[0], command)


def _word(text: str, folders: Mapping[str, str]) -> str:
    """Return a text as one word of the shell, with the values of its variables."""
    word, end = "", 0
    for variable in _VARIABLE.finditer(text):
        parameter = _parameter(variable[1])
        word += _literal(text[end : variable.start()])
        word += f'"{parameter}"' if parameter else _literal(folders.get(variable[1], variable[0]))
        end = variable.end()
    return word + _literal(text[end:]) if end else shlex.quote(text)


def _parameter(variable: str) -> str:
    """Return the shell's parameter for ``containerEnv:NAME``, "" for other variables."""
    name = _shell_name(variable)
    return f"${{{name}}}" if name else ""


def _shell_name(variable: str) -> str:
    kind, _, name = variable.partition(":")
    return name if kind == "containerEnv" and _IDENTIFIER.fullmatch(name) else ""


def _literal(text: str) -> str:
    return shlex.quote(text) if text else ""

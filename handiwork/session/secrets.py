"""The secrets of a session: the sources of their values, and the actions that may use them.

A secret is ``NAME``, whose value is that of the environment variable NAME, or ``NAME=@FILE``. The log has this text
only; values stay in memory and are read again when a session is reopened.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from handiwork.errors import HandiworkError
from handiwork.events.action import CmdRunAction, IPythonRunCellAction
from handiwork.events.base import Action

SHORTEST, DIFFERENT, LONGEST = 8, 5, 16_384
"""A value's minimum of characters, its minimum of different characters, and its maximum of bytes."""

ANNOUNCED = "These secrets are set for the commands and cells that name them, and for no others: "
"""The beginning of the message to the agent about the available secrets."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
# Variables that bash, the loader or Python read themselves: a command that names one does not mean a secret.
_RESERVED = re.compile(
    r"PATH|HOME|PWD|OLDPWD|USER|SHELL|TERM|IFS|ENV|LANG|TMPDIR|UID|EUID|PPID|RANDOM|SECONDS|PS[0-4]|PROMPT_COMMAND"
    r"|(?:BASH|LC_|LD_|PYTHON|HANDIWORK_|__hw_).*"
)


class SecretError(HandiworkError):
    """A secret cannot be used; the text names it and the remedy, and never contains its value."""


@dataclass(frozen=True)
class Secrets:
    """The values by name. An action may use a secret only by naming it: ``$NAME``, ``${NAME}``, ``"NAME"``."""

    values: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    def named_by(self, action: Action) -> dict[str, str]:
        """Return the values of the secrets that the action names."""
        if not self.values:
            return {}
        return {name: self.values[name] for name in names_in(action, self.values)}


def names_in(action: Action, names: Iterable[str]) -> list[str]:
    """Return the ``names`` of secrets that the action names; only commands and cells can."""
    match action:
        case CmdRunAction(is_input=False):
            text = action.command
        case IPythonRunCellAction():
            text = action.code
        case _:
            return []
    return [name for name in names if re.search(rf"\$(?:\{{[#!]?)?{name}\b|(['\"]){name}\1", text, re.ASCII)]


def specification(text: str) -> str:
    """Return the secret's specification with its file's path made absolute. Raises SecretError."""
    name, equals, source = text.partition("=")
    if not _NAME.fullmatch(name) or _RESERVED.fullmatch(name):
        raise SecretError(f"{name!r} cannot name a secret: give it another name, like GITHUB_TOKEN")
    if equals and not source.startswith("@"):
        raise SecretError(
            f"the value of {name} does not belong on the command line, where others can read it: "
            f"set the variable {name} and give --secret {name}, or give --secret {name}=@FILE"
        )
    return f"{name}=@{Path(source[1:]).expanduser().absolute()}" if equals else name


def load(specifications: Iterable[str]) -> Secrets:
    """Read the secrets' current values. Raises SecretError that names every missing or unusable secret."""
    values: dict[str, str] = {}
    problems: list[str] = []
    for text in specifications:
        name, _, source = text.partition("=")
        try:
            values[name] = _validate(name, _from_file(name, source[1:]) if source else _from_environment(name))
        except SecretError as error:
            problems.append(str(error))
    if problems:
        raise SecretError("\n".join(problems))
    return Secrets(values)


def announcement(secrets: Secrets) -> str:
    """Return the message to the agent about the available secrets."""
    names = ", ".join(f"${name}" for name in secrets.values)
    return (
        f"{ANNOUNCED}{names}. "
        "You never see a value: where one would stand there is [secret NAME]. Do not write them into files that stay."
    )


def _from_environment(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise SecretError(
            f"the secret {name} is missing: set the environment variable {name}, or give --secret {name}=@FILE"
        )
    return value


def _from_file(name: str, file: str) -> str:
    try:
        data = Path(file).read_bytes()[: LONGEST + 2]
        return data.decode()
    except OSError as error:
        raise SecretError(f"the secret {name} is missing: {file} cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise SecretError(f"the secret {name} cannot be taken: {file} is not UTF-8 text") from None


def _validate(name: str, value: str) -> str:
    """Return the value without its final line break. Raises SecretError if it cannot be used."""
    value = value.rstrip("\r\n")
    if "\0" in value or len(value.encode("utf-8", "surrogateescape")) > LONGEST:
        raise SecretError(f"the secret {name} cannot be taken: it has NUL bytes, or more than {LONGEST} bytes")
    if len(value) < SHORTEST or len(set(value)) < DIFFERENT:
        raise SecretError(
            f"the secret {name} is too simple: it needs {SHORTEST} characters and {DIFFERENT} different ones, or it "
            "would be taken out of ordinary text everywhere"
        )
    return value

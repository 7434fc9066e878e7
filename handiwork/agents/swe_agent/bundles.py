"""Tool bundles in SWE-agent's format: folders with a ``config.yaml``, executables in ``bin/``, perhaps ``install.sh``.

``config.yaml`` has ``tools`` by name, each with ``signature``, ``docstring``, ``arguments`` and perhaps ``end_name``,
the line that ends an argument of several lines; and ``state_command``, which prints variables for the prompt as JSON,
or writes them into the file that SWE_AGENT_STATE_FILE names.
"""

from __future__ import annotations

import io
import re
import shlex
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import yaml
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from handiwork.agents.interface import problems_text
from handiwork.agents.protocols.action_tools import ActionTool, parameters
from handiwork.agents.swe_agent.templates import SWEConfigError, render
from handiwork.events.action import CmdRunAction
from handiwork.llm.types import JsonSchema, Tool

SHIPPED = Path(__file__).parent / "tools"
"""The folder of the bundles that come with the agent."""

SUPPORT = "support"
"""The bundle that is always installed, last on PATH: the patch, and a linter for systems without flake8."""

LARGEST = 20_000_000
"""Bytes of all files of the bundles together."""

DEPTH = 2
"""The folders above a configuration in which its bundles are looked up, if it is in no git repository."""

_PLACEHOLDER = re.compile(r'"?<([\w-]+)>"?')
_VARIABLE = re.compile(r"\{(\w+)\}")
_OPTIONAL = re.compile(r"\[\s*(<[\w-]+>)\s*\]")
_SWE_AGENT_ROOT = re.compile(rb"(?<![\w./-])/root(?=[/'\"\s]|$)")


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class BundleArgument(_Entry):
    """An argument of a tool; ``argument_format`` is a Jinja template of its ``value`` in the command."""

    name: str
    type: str = "string"
    description: str = ""
    required: bool = True
    enum: tuple[str, ...] | None = None
    items: dict[str, JsonValue] | None = None
    argument_format: str = "{{value}}"

    @property
    def usage(self) -> str:
        """The argument's form on the command line, if it is not just the value."""
        option = self.argument_format.partition("{{")[0].strip()
        return f" Written as {option} VALUE." if option else ""

    @property
    def json_schema(self) -> JsonSchema:
        """The JSON schema of its values."""
        extra: JsonSchema = {} if self.enum is None else {"enum": list(self.enum)}
        items: JsonSchema = {} if self.items is None else {"items": self.items}
        return {"type": self.type, "description": self.description, **extra, **items}


class BundleTool(_Entry):
    """A tool of a bundle: a command, or a form of one that ends at the line ``end_name``."""

    name: str
    signature: str | None = None
    docstring: str | None = None
    arguments: tuple[BundleArgument, ...] = ()
    end_name: str | None = None

    @property
    def form(self) -> str:
        """How the command is written."""
        words = (f"<{one.name}>" if one.required else f"[<{one.name}>]" for one in self.arguments)
        return (self.signature or " ".join([self.name, *words])).strip()

    def docs(self, variables: Mapping[str, str]) -> str:
        """Return the tool's part of the prompt; a name of ``variables`` in braces stands for its value."""
        lines = [self.form, "  " + " ".join((self.docstring or "").split())]
        for argument in self.arguments:
            if argument.description:
                kind = f"{argument.type}, {'required' if argument.required else 'optional'}"
                lines.append(f"  - {argument.name} ({kind}): {' '.join(argument.description.split())}{argument.usage}")
        return _VARIABLE.sub(lambda match: variables.get(match[1], match[0]), "\n".join(lines).rstrip())

    def command(self, values: Mapping[str, Any]) -> str:
        """Return the command of a call with these arguments. Raises ValueError, KeyError for one that is missing."""
        known = {argument.name: argument for argument in self.arguments}
        if unknown := values.keys() - known.keys():
            raise ValueError(f"{self.name} has no argument {', '.join(sorted(unknown))}")
        words: dict[str, str] = {}
        for name, argument in known.items():
            if values.get(name) is None:
                if argument.required:
                    raise KeyError(name)
                words[name] = ""
                continue
            value = values[name]
            if self.end_name and isinstance(value, str):
                value = value.removesuffix("\n")
            if argument.enum is not None and value not in argument.enum:
                raise ValueError(f"{name} must be one of {', '.join(argument.enum)}")
            quoted = shlex.quote(value) if isinstance(value, str) and self.end_name is None else value
            words[name] = render(argument.argument_format, value=quoted)
        form = _OPTIONAL.sub(r"\1", self.form)
        for name in [name for name in words if self.end_name and words[name] == ""]:
            form = form.replace(f"<{name}>\n", "")  # a text without lines, not one empty line
        return _PLACEHOLDER.sub(lambda match: words.get(match[1], match[0]), form).strip()

    def action_tool(self, timeout: float) -> ActionTool:
        """Return the tool for the reply protocols; a call becomes the command."""
        required = [argument.name for argument in self.arguments if argument.required]
        schemas = {argument.name: argument.json_schema for argument in self.arguments}
        tool = Tool(self.name, " ".join((self.docstring or self.form).split()), parameters(required, **schemas))
        return ActionTool(tool, lambda a: CmdRunAction(command=self.guarded(self.command(a)), timeout=timeout))

    def guarded(self, command: str) -> str:
        """Return the command with its text of several lines as a here-document, which bash does not interpret."""
        if not self.end_name:
            return command
        name, end = re.escape(self.name), re.escape(self.end_name)
        form = re.compile(rf"^([ \t]*{name}\b[^\n]*)\n(.*?)^{end}[ \t]*$", re.DOTALL | re.MULTILINE)
        match = form.search(command)
        if match is None or "<<" in match[1]:
            return command
        document = f"{match[1].rstrip()} << '{self.end_name}'\n{match[2]}{self.end_name}"
        return command[: match.start()] + document + command[match.end() :]


class _BundleFile(_Entry):
    tools: dict[str, dict[str, Any]] = Field(default_factory=dict[str, dict[str, Any]])
    state_command: str | None = None


class Bundle:
    """A bundle of a folder."""

    def __init__(self, path: Path, hidden: Sequence[str] = ()) -> None:
        """Read the folder's ``config.yaml``; ``hidden`` tools are not offered. Raises SWEConfigError."""
        self.path, self.name, self.hidden = path, path.name, tuple(hidden)
        file = read_yaml(path / "config.yaml")
        try:
            read = _BundleFile.model_validate(file)
            tools = [BundleTool.model_validate({**tool, "name": name}) for name, tool in read.tools.items()]
        except ValidationError as error:
            raise SWEConfigError(f"{path / 'config.yaml'}: {problems_text(error)}") from None
        self.state_command = read.state_command
        self.tools = [tool for tool in tools if tool.name not in hidden]

    @property
    def installs(self) -> bool:
        """Whether the bundle has an ``install.sh``."""
        return (self.path / "install.sh").is_file()

    @cached_property
    def files(self) -> dict[str, bytes]:
        """The folder's files by path. Raises SWEConfigError if they are too large or a link leads out of the folder."""
        paths = [path for path in sorted(self.path.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]
        root = self.path.resolve()
        if outside := next((path for path in paths if not path.resolve().is_relative_to(root)), None):
            raise SWEConfigError(f"{outside} is a link that leads out of the bundle {self.path}: copy the file instead")
        if sum(path.stat().st_size for path in paths) > LARGEST:
            raise SWEConfigError(f"the bundle {self.path} has more than {LARGEST:,} bytes")
        return {path.relative_to(self.path).as_posix(): path.read_bytes() for path in paths}


def find_bundle(name: str, near: Path | None, hidden: Sequence[str] = ()) -> Bundle:
    """Return the bundle of a folder, given from the folder ``near`` or one above it, or a shipped one.

    A published configuration names its bundles from the root of SWE-agent's repository, like ``tools/search``, so the
    search ends at the root of the repository that holds ``near``, and without one DEPTH folders above ``near``. Raises
    SWEConfigError.
    """
    path = Path(name).expanduser()
    found = find_file(f"{name}/config.yaml", near) if near is not None else None
    folder = SHIPPED / path.name if found is None else found.parent
    if not (folder / "config.yaml").is_file():
        known = ", ".join(sorted(one.parent.name for one in SHIPPED.glob("*/config.yaml")))
        raise SWEConfigError(f"there is no bundle {name} with a config.yaml; shipped: {known}")
    return Bundle(folder, hidden)


def find_file(name: str, near: Path) -> Path | None:
    """Return the file of a path given from the folder ``near``, or from the nearest one above it that has it."""
    # Joined to a folder, an absolute path stays itself.
    places = [parent / Path(name).expanduser() for parent in _up_to_root(near)]
    return next((place for place in places if place.is_file()), None)


def _up_to_root(folder: Path) -> list[Path]:
    """Return the folder and those above it in its git repository, without one DEPTH, the nearest first."""
    folders = [folder, *folder.parents]
    root = next((place for place, parent in enumerate(folders) if (parent / ".git").exists()), DEPTH)
    return folders[: root + 1]


def pack(bundles: Sequence[Bundle], folder: str) -> bytes:
    """Return a zip archive of the bundles, and of the support, for the ``folder`` inside the sandbox.

    Published bundles keep their files in /root, which a sandbox may not have: in text files that path becomes the
    folder's. Raises SWEConfigError.
    """
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in _members(bundles):
            moved = data if b"\0" in data else _SWE_AGENT_ROOT.sub(folder.encode(), data)
            file.writestr(name, moved)
    return archive.getvalue()


def _members(bundles: Sequence[Bundle]) -> Iterator[tuple[str, bytes]]:
    for bundle in bundles:
        yield from ((f"tools/{bundle.name}/{name}", data) for name, data in bundle.files.items())
    support = SHIPPED / SUPPORT / "bin"
    yield from ((f"tools/{SUPPORT}/bin/{path.name}", path.read_bytes()) for path in sorted(support.iterdir()))
    lint = SHIPPED / "windowed_edit_linting/lib/lint.py"
    yield f"tools/{SUPPORT}/bin/flake8", lint.read_bytes()


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the object of a YAML file. Raises SWEConfigError."""
    try:
        value = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SWEConfigError(f"{path} cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise SWEConfigError(f"{path} must hold keys and values")
    return cast("dict[str, Any]", value)

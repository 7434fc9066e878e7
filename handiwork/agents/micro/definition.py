"""The definition of a micro agent or of a piece of knowledge, read from its file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from traceback import extract_tb
from typing import Annotated, Any, cast

import jinja2
from jinja2 import meta, nodes
from jinja2.sandbox import SandboxedEnvironment
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from handiwork.agents.micro.fields import AnyField, FieldSpec, problem_of
from handiwork.errors import HandiworkError
from handiwork.front_matter import FrontMatter, FrontMatterError, split

TASK = "task"
"""The input that every micro agent has, from the user or a delegating agent."""

_AGENT_KEYS = ("inputs", "outputs", "tools", "context", "model")
"""Keys that knowledge cannot have; OpenHands' files of knowledge name an ``agent``, which has no effect."""
_ENVIRONMENT = SandboxedEnvironment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
# A prompt may be a repository's, and is rendered on the user's machine: it can neither call anything nor build a text
# or a loop that takes long.
_ENVIRONMENT.globals.clear()
_ALLOWED = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.List, nodes.Tuple),
    *(nodes.If, nodes.For, nodes.CondExpr, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Test),
    *(nodes.Filter, nodes.Concat, nodes.Add, nodes.Sub, nodes.Neg, nodes.Getattr, nodes.Getitem, nodes.Slice),
)
_FILTERS = (
    *("count", "default", "first", "join", "last", "length", "list", "lower", "sort", "title", "tojson", "trim"),
    *("unique", "upper"),
)
_LOOPS = 2  # deep


class MicroFileError(HandiworkError):
    """A micro agent's file is invalid; the text names the file, the line from 1, the problem and the remedy."""

    def __init__(self, path: Path, line: int, problem: str) -> None:
        super().__init__(f"{path}:{line}: {problem}")
        self.path, self.line, self.problem = path, line, problem


def _as_list(value: object) -> object:
    """Return a list of words; a single word becomes a list. Raises ValueError for any other value."""
    words: object = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in cast("list[object]", words)):
        raise ValueError("write words, like [git, commit]")
    return cast("object", words)


Words = Annotated[tuple[str, ...], BeforeValidator(_as_list)]


class Keys(BaseModel):
    """The keys of the front matter."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")
    description: str = ""
    # No file.py:Class, which would be imported outside of the sandbox: the file may be a repository's.
    agent: str = Field(default="CodeActAgent", pattern=r"^\w+$")
    inputs: dict[str, AnyField] = Field(default_factory=dict[str, FieldSpec])
    outputs: dict[str, AnyField] = Field(default_factory=dict[str, FieldSpec])
    tools: Words | None = None
    context: Words = ()
    model: str | None = None
    triggers: Words = ()


@dataclass(frozen=True)
class MicroFile:
    """A valid file: its ``path``, its keys, and its prompt or knowledge as ``body``."""

    path: Path
    keys: Keys
    front: FrontMatter

    @property
    def name(self) -> str:
        """The name of the agent or of the piece of knowledge."""
        return self.keys.name

    @property
    def body(self) -> str:
        """The prompt or the knowledge."""
        return self.front.body

    def error(self, keys: Sequence[int | str], problem: str) -> MicroFileError:
        """Return the error about a value of the front matter."""
        return MicroFileError(self.path, self.front.line(keys), problem)

    @property
    def inputs(self) -> dict[str, FieldSpec]:
        """The inputs; ``task`` is added, and may be empty, if the file does not declare it."""
        task = {TASK: FieldSpec(description="What to do.", default="")}
        return self.keys.inputs if TASK in self.keys.inputs else task | self.keys.inputs

    def prompt(self, values: dict[str, Any]) -> str:
        """Return the body with the inputs' values in it. Raises MicroFileError if it does not fit them."""
        try:
            return _ENVIRONMENT.from_string(self.body).render(values).strip()
        except Exception as error:  # noqa: BLE001 - a template may fail in any way
            lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == "<template>"]
            line = self.front.body_line + (lines[-1] or 1) - 1 if lines else self.front.body_line
            raise MicroFileError(self.path, line, f"the prompt cannot be written: {error}") from None

    @cached_property
    def _trigger(self) -> re.Pattern[str]:
        words = "|".join(re.escape(word) for word in self.keys.triggers)
        return re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE)

    def trigger_in(self, text: str) -> str:
        """Return the first trigger that the text has as a whole word, as the text writes it; "" without one."""
        match = self._trigger.search(text) if self.keys.triggers else None
        return match[0] if match else ""


def parse(path: Path, text: str) -> MicroFile:
    """Return the definition in a file with this text. Raises MicroFileError, which names the line."""
    try:
        front = split(text)
    except FrontMatterError as error:
        raise MicroFileError(path, error.line, str(error)) from None
    try:
        keys = Keys.model_validate({"name": path.stem, **front.values})
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(step) for step in first["loc"])
        problem = f"unknown key {name!r}; known: {', '.join(Keys.model_fields)}"
        if first["type"] != "extra_forbidden" or len(first["loc"]) > 1:
            said = first["msg"].removeprefix("Value error, ")
            problem = f"{name}: {said[0].lower()}{said[1:]}"
        raise MicroFileError(path, front.line(first["loc"]), problem) from None
    micro = MicroFile(path, keys, front)
    _check(micro)
    return micro


def _check(micro: MicroFile) -> None:
    front, keys = micro.front, micro.keys
    if not micro.body:
        raise micro.error((), "the file has no text below its front matter: write the prompt or the knowledge there")
    if "triggers" in front.values:
        if not keys.triggers or not all(word.strip() for word in keys.triggers):
            raise micro.error(("triggers",), "triggers needs a word, like triggers: [git]")
        if useless := next((key for key in _AGENT_KEYS if key in front.values), None):
            raise micro.error((useless,), f"{useless} is for agents, and a file with triggers is knowledge: remove one")
        return
    for kind, fields in (("inputs", keys.inputs), ("outputs", keys.outputs)):
        for name, spec in fields.items():
            if problem := problem_of(name, spec):
                raise micro.error((kind, name), problem)
    _check_prompt(micro)


def _check_prompt(micro: MicroFile) -> None:
    """Raise MicroFileError for a template that is broken or names an input that the file does not declare."""
    first = micro.front.body_line
    try:
        tree = _ENVIRONMENT.parse(micro.body)
        if not_allowed := _not_allowed(tree):
            line, problem = not_allowed
            raise MicroFileError(micro.path, first + line - 1, problem)
    except jinja2.TemplateSyntaxError as error:
        raise MicroFileError(micro.path, first + error.lineno - 1, str(error.message)) from None
    except RecursionError:
        raise MicroFileError(micro.path, first, "the prompt is nested too deep: simplify it") from None
    unknown = meta.find_undeclared_variables(tree) - set(micro.inputs)
    if unknown:
        name = min(unknown)
        line = next(node.lineno for node in tree.find_all(nodes.Name) if node.name == name)
        problem = f"{name!r} is not an input: declare it below inputs; the inputs are {', '.join(micro.inputs)}"
        raise MicroFileError(micro.path, first + line - 1, problem)


def _not_allowed(node: nodes.Node, loops: int = 0) -> tuple[int, str] | None:
    """Return the line of a part of a template that no prompt may have, and the problem."""
    loops += isinstance(node, nodes.For)
    if not isinstance(node, _ALLOWED):
        return node.lineno, f"a prompt cannot have {type(node).__name__.lower()}: it has if, for, inputs and filters"
    if loops > _LOOPS:
        return node.lineno, f"a prompt cannot have more than {_LOOPS} loops in one another"
    if isinstance(node, nodes.Filter) and not _is_simple(node):
        return node.lineno, f"a prompt has the filters {', '.join(_FILTERS)}, with texts as arguments"
    for child in node.iter_child_nodes():
        if (problem := _not_allowed(child, loops)) is not None:
            return problem
    return None


def _is_simple(node: nodes.Filter) -> bool:
    texts = all(isinstance(argument, nodes.Const) and isinstance(argument.value, str) for argument in node.args)
    return node.name in _FILTERS and texts and not (node.kwargs or node.dyn_args or node.dyn_kwargs)

"""Front matter: the YAML between two lines ``---`` at the head of a Markdown file, with the line of every key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import yaml

FENCE = "---"

LONGEST, DEEPEST = 16_000, 10
"""Characters of front matter; levels of its lists and mappings."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the one in C needs libyaml


class FrontMatterError(Exception):
    """A file's front matter is invalid; ``line`` is that of the file, from 1, and the text is the problem."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line


@dataclass(frozen=True)
class FrontMatter:
    """The parts of a Markdown file: the ``values`` of its front matter, and its ``body`` from line ``body_line``."""

    values: dict[str, Any]
    body: str
    body_line: int
    _root: yaml.Node

    def line(self, keys: Sequence[int | str]) -> int:
        """Return the line of the value that the keys lead to; unknown keys at the end are ignored."""
        node, line = self._root, 2
        for key in keys:
            child = next(((k, v) for name, k, v in _children(node) if name == key), None)
            if child is None:
                break
            line, node = _line(child[0]), child[1]
        return line


def split(text: str) -> FrontMatter:
    """Split a file's text, which is not trusted, into front matter and body. Raises FrontMatterError."""
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != FENCE:
        raise FrontMatterError(1, f"there is no front matter: begin the file with a line {FENCE} and YAML")
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE), None)
    if end is None:
        raise FrontMatterError(1, f"the front matter has no end: close it with a line {FENCE}")
    source = "\n".join(lines[1:end])
    if len(source) > LONGEST:
        raise FrontMatterError(2, f"the front matter has more than {LONGEST} characters")
    try:
        _check_structure(source)
        loader = _Loader(source)
        root = loader.get_single_node()
        values: object = {} if root is None else loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise FrontMatterError(2 + (mark.line if mark else 0), f"the YAML is invalid: {error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise FrontMatterError(2, f"the YAML is invalid: {error}") from None
    if root is None or not isinstance(root, yaml.MappingNode) or not isinstance(values, dict):
        raise FrontMatterError(2, "the front matter is not a list of KEY: VALUE lines")
    _check_keys(root)
    fields = {str(key): value for key, value in cast("dict[object, Any]", values).items()}
    body = "\n".join(lines[end + 1 :])
    blank = len(body) - len(body.lstrip("\n"))
    return FrontMatter(fields, body.strip(), end + 2 + blank, root)


def _check_structure(source: str) -> None:
    """Raise FrontMatterError for YAML that takes long to read: aliases expand without end, depth is read slowly."""
    depth = 0
    for event in cast("Iterator[yaml.Event]", yaml.parse(source, _Loader)):  # pyright: ignore[reportUnknownMemberType] (untyped)
        line = cast("int", event.start_mark.line) + 2
        if isinstance(event, yaml.AliasEvent):
            raise FrontMatterError(line, "the front matter has an alias, which is not supported: write the value again")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise FrontMatterError(line, f"the front matter is nested more than {DEEPEST} deep")


def _check_keys(node: yaml.Node) -> None:
    """Raise FrontMatterError for a mapping's duplicate key, of which YAML would keep the last."""
    seen: set[object] = set()
    for name, key, value in _children(node):
        if name in seen:
            raise FrontMatterError(_line(key), f"the key {name!r} is here twice")
        seen.add(name)
        _check_keys(value)


def _children(node: yaml.Node) -> Iterator[tuple[int | str, yaml.Node, yaml.Node]]:
    """Yield the name of each part of a node, the node of its key, and that of its value."""
    if isinstance(node, yaml.MappingNode):
        for key, value in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
            yield str(key.value), key, value
    elif isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(cast("list[yaml.Node]", node.value)):
            yield number, item, item


def _line(node: yaml.Node) -> int:
    return cast("int", node.start_mark.line) + 2

"""Front matter: the YAML between two lines ``---`` at the head of a Markdown file, with the line of every key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from handiwork.errors import HandiworkError

FENCE = "---"
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the one in C needs libyaml


class MicroFileError(HandiworkError):
    """A micro agent's file is invalid; the text names the file, the line from 1, the problem and the remedy."""

    def __init__(self, path: Path, line: int, problem: str) -> None:
        super().__init__(f"{path}:{line}: {problem}")


@dataclass(frozen=True)
class FrontMatter:
    """The parts of a Markdown file: the ``values`` of its front matter, and its ``body`` from line ``body_line``."""

    path: Path
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
            line, node = cast("int", child[0].start_mark.line) + 2, child[1]
        return line

    def error(self, keys: Sequence[int | str], problem: str) -> MicroFileError:
        """Return the error about a value of the front matter."""
        return MicroFileError(self.path, self.line(keys), problem)


def split(path: Path, text: str) -> FrontMatter:
    """Return the parts of the file at ``path`` with this text. Raises MicroFileError."""
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != FENCE:
        raise MicroFileError(path, 1, f"there is no front matter: begin the file with a line {FENCE} and YAML")
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE), None)
    if end is None:
        raise MicroFileError(path, 1, f"the front matter has no end: close it with a line {FENCE}")
    source = "\n".join(lines[1:end])
    loader = _Loader(source)
    try:
        root = loader.get_single_node()
        values: object = {} if root is None else loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise MicroFileError(path, 2 + (mark.line if mark else 0), f"the YAML is invalid: {error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise MicroFileError(path, 2, f"the YAML is invalid: {error}") from None
    if root is None or not isinstance(root, yaml.MappingNode) or not isinstance(values, dict):
        raise MicroFileError(path, 2, "the front matter is not a list of KEY: VALUE lines")
    _check_keys(path, root)
    body = "\n".join(lines[end + 1 :])
    blank = len(body) - len(body.lstrip("\n"))
    return FrontMatter(path, cast("dict[str, Any]", values), body.strip(), end + 2 + blank, root)


def _check_keys(path: Path, node: yaml.Node) -> None:
    """Raise MicroFileError for a key that a mapping has twice, which YAML would take the last of."""
    seen: set[object] = set()
    for name, key, value in _children(node):
        if name in seen:
            raise MicroFileError(path, cast("int", key.start_mark.line) + 2, f"the key {name!r} is here twice")
        seen.add(name)
        _check_keys(path, value)


def _children(node: yaml.Node) -> Iterator[tuple[int | str, yaml.Node, yaml.Node]]:
    """Yield the name of each part of a node, the node of its key, and that of its value."""
    if isinstance(node, yaml.MappingNode):
        for key, value in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
            yield str(key.value), key, value
    elif isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(cast("list[yaml.Node]", node.value)):
            yield number, item, item

"""Documentation of skills for the model, a line each, from their signatures and docstrings; their code is not run."""

from __future__ import annotations

import ast
import inspect
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from . import MODULES


class SkillLine(NamedTuple):
    """A skill's name, and its line like "scroll_down(): Move the window of the open file down by 100 lines."."""

    name: str
    line: str


@lru_cache(maxsize=1)
def documentation() -> tuple[SkillLine, ...]:
    """Return the lines of the platform's skills."""
    lines: list[SkillLine] = []
    for module, names in MODULES.items():
        found = {skill.name: skill for skill in skills_in(Path(__file__).with_name(f"{module}.py").read_text())}
        lines += [found[name] for name in names]
    return tuple(lines)


def skills_in(source: str) -> list[SkillLine]:
    """Return the skills of a Python file: its public functions, or those in its ``__all__``.

    Raises SyntaxError for a file that is no Python, and ValueError for a function without a docstring.
    """
    tree = ast.parse(source)
    definitions = [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    exported = _exported(tree)
    return [
        _skill_line(node)
        for node in definitions
        if (not node.name.startswith("_") if exported is None else node.name in exported)
    ]


def _exported(tree: ast.Module) -> list[str] | None:
    """Return the names in ``__all__``, None without one."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return list(ast.literal_eval(node.value))
    return None


def _skill_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> SkillLine:
    text = ast.get_docstring(node)
    if not text:
        raise ValueError(
            f"the function {node.name} has no docstring, which describes it to the model: add one, or name the "
            f"function _{node.name}"
        )
    arguments = node.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if argument is not None:
            argument.annotation = None
    summary = " ".join(inspect.cleandoc(text).split("\n\n")[0].split())
    wait = "await " if isinstance(node, ast.AsyncFunctionDef) else ""
    return SkillLine(node.name, f"{wait}{node.name}({ast.unparse(arguments)}): {summary}")

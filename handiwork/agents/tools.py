"""An agent's own tools: Python functions that a model may call and that run in the sandbox's notebook.

A tool is a plain function with type hints and a docstring, which the model reads. The notebook receives the function's
source, so the function imports modules in its body and takes and returns JSON values.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
import textwrap
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, cast

from pydantic import JsonValue, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from handiwork.agents.base import MalformedReplyError
from handiwork.events.action import IPythonRunCellAction
from handiwork.llm.types import Tool

Function = Callable[..., object]


def tools_of(functions: Iterable[Function]) -> tuple[Tool, ...]:
    """Return the functions' tool descriptions. Raises TypeError for a function that cannot be a tool."""
    return tuple(map(_tool, functions))


def call(function: Function, arguments: JsonValue) -> IPythonRunCellAction:
    """Return the cell that defines ``function`` and calls it; the cell prints a returned string verbatim.

    The definition comes with every call: the notebook may have been restarted meanwhile. Raises
    MalformedReplyError for arguments that do not fit, and TypeError for a function that cannot be a tool.
    """
    if not isinstance(arguments, dict):
        raise MalformedReplyError(f"The arguments of {function.__name__} must be an object.")
    try:
        fitting = _adapter(function).validate_python(arguments)
        values: dict[str, Any] = json.loads(json.dumps(to_jsonable_python(fitting), allow_nan=False))
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise MalformedReplyError(f"The arguments of {function.__name__} do not fit: {problems}.") from None
    except ValueError as error:
        raise MalformedReplyError(f"The arguments of {function.__name__} do not fit: {error}.") from None
    given = ", ".join(f"{name}={value!r}" for name, value in values.items())
    called = f"{'await ' * inspect.iscoroutinefunction(function)}{function.__name__}({given})"
    shown = f"(lambda result: print(result) if isinstance(result, str) else result)({called})"
    return IPythonRunCellAction(code=f"{_source(function)}\n\n{shown}")


@cache
def _tool(function: Function) -> Tool:
    description = inspect.getdoc(function)
    if not description:
        raise _unfit(function, "has no docstring, from which the model learns what it does")
    _source(function)
    schema = _adapter(function).json_schema()
    return Tool(function.__name__, description, {"properties": {}, **schema})


@cache
def _adapter(function: Function) -> TypeAdapter[dict[str, Any]]:
    """Return a TypeAdapter that validates the function's arguments without a call of the function."""
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise _unfit(function, f"has the parameter {parameter.name}, which cannot be given by name")

    def given(**arguments: object) -> dict[str, object]:
        return arguments

    try:
        return TypeAdapter(cast(Any, functools.wraps(function)(given)))
    except (PydanticUserError, NameError) as error:
        raise _unfit(function, f"has a type that JSON cannot say: {error}") from error


@cache
def _source(function: Function) -> str:
    """Return the definition without decorators and annotations, whose names the notebook does not know."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError) as error:
        raise _unfit(function, "has no source that can be read") from error
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef) or function.__closure__:
        raise _unfit(function, "is not a plain function that stands for itself")
    definition.decorator_list.clear()
    definition.returns = None
    arguments = definition.args
    for argument in (*arguments.args, *arguments.kwonlyargs):
        argument.annotation = None
    return ast.unparse(definition)


def _unfit(function: Function, why: str) -> TypeError:
    return TypeError(f"{getattr(function, '__name__', function)} cannot be a tool: it {why}.")

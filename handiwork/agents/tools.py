"""An agent's own tools: Python functions and Action classes that a model may call; the model reads their docstrings.

A function runs in the sandbox's notebook, which receives its source: it imports modules in its body, and takes and
returns JSON values. An Action class is a tool with the class's name (``run_tests`` for ``RunTestsAction``) and its own
fields as arguments.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
import re
import textwrap
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, JsonValue, PydanticUserError, TypeAdapter, ValidationError, create_model
from pydantic_core import to_jsonable_python
from typing_extensions import TypeIs

from handiwork.agents.base import MalformedReplyError
from handiwork.agents.interface import problems_text
from handiwork.events.action import IPythonRunCellAction
from handiwork.events.base import Action
from handiwork.llm.types import Tool

_INHERITED = frozenset(Action.model_fields)

Function = Callable[..., object]
"""A function, or an Action class."""


def tools_of(functions: Iterable[Function]) -> tuple[Tool, ...]:
    """Return the functions' and Action classes' tool descriptions. Raises TypeError for one that cannot be a tool."""
    return tuple(map(_tool, functions))


def name_of(function: Function) -> str:
    """Return the name by which a model calls the function or Action class."""
    if not _is_action(function):
        return function.__name__
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", function.__name__.removesuffix("Action")).lower()


def call(function: Function, arguments: JsonValue) -> Action:
    """Return the action for a call of the function or Action class.

    A function becomes a cell that defines it, because the notebook may have restarted since the last call, and calls
    it; the cell prints a returned string verbatim. Raises MalformedReplyError for invalid arguments, and TypeError for
    a function that cannot be a tool.
    """
    name = name_of(function)
    if not isinstance(arguments, dict):
        raise MalformedReplyError(f"The arguments of {name} must be an object.")
    try:
        if _is_action(function):
            return function(**dict(_fields(function).model_validate(arguments)))
        validated = _adapter(function).validate_python(arguments)
        values: dict[str, Any] = json.loads(json.dumps(to_jsonable_python(validated), allow_nan=False))
    except ValidationError as error:
        raise MalformedReplyError(f"The arguments of {name} do not fit: {problems_text(error)}.") from None
    except ValueError as error:
        raise MalformedReplyError(f"The arguments of {name} do not fit: {error}.") from None
    argument_list = ", ".join(f"{name}={value!r}" for name, value in values.items())
    call_expression = f"{'await ' * inspect.iscoroutinefunction(function)}{name}({argument_list})"
    print_expression = f"(lambda result: print(result) if isinstance(result, str) else result)({call_expression})"
    return IPythonRunCellAction(code=f"{_source(function)}\n\n{print_expression}")


@cache
def _tool(function: Function) -> Tool:
    description = inspect.cleandoc(function.__doc__ or "")
    if not description:
        raise _unfit(function, "has no docstring, which is its description for the model")
    if _is_action(function):
        schema = _fields(function).model_json_schema()
    else:
        _source(function)
        schema = _adapter(function).json_schema()
    return Tool(name_of(function), description, {"properties": {}, **schema})


def _is_action(function: Function) -> TypeIs[type[Action]]:
    return isinstance(function, type) and issubclass(function, Action)


@cache
def _fields(action: type[Action]) -> type[BaseModel]:
    """Return a pydantic model of the class's own fields: the LLM sets no inherited field, like thought or timestamp."""
    fields = {name: (field.annotation, field) for name, field in action.model_fields.items() if name not in _INHERITED}
    return create_model(action.__name__, __config__=ConfigDict(extra="forbid"), **cast(Any, fields))


@cache
def _adapter(function: Function) -> TypeAdapter[dict[str, Any]]:
    """Return a TypeAdapter that validates the function's arguments without calling it."""
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise _unfit(function, f"has the parameter {parameter.name}, which cannot be passed by name")

    def signature_stub(**arguments: object) -> dict[str, object]:
        return arguments

    try:
        return TypeAdapter(cast(Any, functools.wraps(function)(signature_stub)))
    except (PydanticUserError, NameError) as error:
        raise _unfit(function, f"has a type that JSON cannot express: {error}") from error


@cache
def _source(function: Function) -> str:
    """Return the definition without decorators and annotations, whose names the notebook does not know."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError) as error:
        raise _unfit(function, "has no readable source") from error
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef) or function.__closure__:
        raise _unfit(function, "is not a plain function without a closure")
    definition.decorator_list.clear()
    definition.returns = None
    arguments = definition.args
    for argument in (*arguments.args, *arguments.kwonlyargs):
        argument.annotation = None
    return ast.unparse(definition)


def _unfit(function: Function, why: str) -> TypeError:
    return TypeError(f"{getattr(function, '__name__', function)} cannot be a tool: it {why}.")

"""Computes the value of a numeric answer without running it as a program."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

Value = bool | int | float | str | list["Value"]
_ComplexValue = bool | int | float | complex | str | list["_ComplexValue"]

Number = int | float | complex

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left / right,
    ast.FloorDiv: lambda left, right: left // right,
    ast.Mod: lambda left, right: left % right,
    ast.Pow: lambda left, right: left**right,
}
_NAMES = {"pi": math.pi, "e": math.e, "inf": math.inf}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(math, name) for name in ("sqrt", "exp", "log", "log2", "log10", "sin", "cos", "tan", "pow")},
    "abs": abs,
    "complex": complex,
}


def value_of(text: str) -> Value | None:
    """Return the value of a number, True, False, a string, a list of these, or a formula of numbers; else None.

    A formula may use + - * / // % **, abs and complex, and the names of the module ``math`` that a school calculator
    has; the value of a complex number is its real part. All other names and calls, comparisons, conditions, indices,
    comprehensions and keyword arguments are refused. A result too large for a float has no value.
    """
    try:
        return _real(_value(ast.parse(text.strip(), mode="eval").body))
    except (SyntaxError, ValueError, ArithmeticError, TypeError, RecursionError, MemoryError):
        return None


def _real(value: _ComplexValue) -> Value:
    match value:
        case complex():
            return value.real
        case list():
            return [_real(part) for part in value]
        case _:
            return value


def _value(node: ast.expr) -> _ComplexValue:
    match node:
        case ast.Constant(value=bool() | int() | float() | complex() | str() as value):
            if isinstance(value, int):
                float(value)
            return value
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return [_value(part) for part in parts]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _number(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            # As floats, so that a tower of powers overflows at once and not after an hour.
            return _OPERATORS[type(op)](_to_float(left), _to_float(right))
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in _NAMES:
            return _NAMES[name]
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=arguments, keywords=[]) if (
            name in _FUNCTIONS
        ):
            return _FUNCTIONS[name](*map(_number, arguments))
        case _:
            raise ValueError("it is no formula")


def _number(node: ast.expr) -> Number:
    value = _value(node)
    if not isinstance(value, int | float | complex):
        raise ValueError("it is no number")
    return value


def _to_float(node: ast.expr) -> float | complex:
    value = _number(node)
    return value if isinstance(value, complex) else float(value)

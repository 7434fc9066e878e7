"""Computes what an answer says in figures, without running it as a program."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable

Value = bool | int | float | str | list["Value"]

_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left / right,
    ast.Pow: math.pow,
}
_NAMES = {"pi": math.pi, "e": math.e, "inf": math.inf}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    name: getattr(math, name) for name in ("sqrt", "exp", "log", "log2", "log10", "sin", "cos", "tan", "pow")
}


def value_of(text: str) -> Value | None:
    """Return the value of a number, True, False, a string, a list of these, or a formula of numbers; else None.

    A formula has + - * / **, and the names of the module ``math`` that a school calculator has. What is too large for
    a float has no value.
    """
    try:
        return _value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ArithmeticError, TypeError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr) -> Value:
    match node:
        case ast.Constant(value=bool() | int() | float() | str() as value):
            if not isinstance(value, str):
                float(value)
            return value
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return [_value(part) for part in parts]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _number(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            # As floats, so that a tower of powers is too large at once and not after an hour.
            return _OPERATORS[type(op)](float(_number(left)), float(_number(right)))
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in _NAMES:
            return _NAMES[name]
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=arguments) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*map(_number, arguments))
        case _:
            raise ValueError("it is no formula")


def _number(node: ast.expr) -> float:
    value = _value(node)
    if not isinstance(value, int | float):
        raise ValueError("it is no number")
    return value

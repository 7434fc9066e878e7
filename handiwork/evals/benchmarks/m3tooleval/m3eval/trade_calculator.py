"""Tools for trade between planets: currencies, tariffs and final values."""

from __future__ import annotations

import ast
from collections.abc import Callable

BINARY: dict[type[ast.AST], Callable[[float, float], float]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left / right,
    ast.FloorDiv: lambda left, right: left // right,
    ast.Mod: lambda left, right: left % right,
    ast.Pow: lambda left, right: left**right,
}


def convert_currency(base_price: float, conversion_rate: float) -> float:
    """Convert the price of a commodity to the local currency."""
    return base_price * conversion_rate


def calculate_tariff(price: float, tariff_rate: float) -> float:
    """Calculate the tariff on a converted price; the rate is in percent."""
    return price * tariff_rate / 100


def estimate_final_value(price: float, tariff: float) -> float:
    """Estimate the final trade value of a price: the price and the tariff on it together."""
    return price + tariff


def calculator(expression: str) -> float | str:
    """Evaluate an arithmetic expression: "2 + (3 * 4)" gives 14. An expression without a value gives a message."""
    try:
        return _value(ast.parse(expression.strip(), mode="eval").body)
    except (ArithmeticError, SyntaxError, TypeError, ValueError):
        return f"Failed to evaluate expression: {expression}"


def find_minimum(*args: float) -> float:
    """Return the smallest of the arguments."""
    return min(args)


def find_maximum(*args: float) -> float:
    """Return the largest of the arguments."""
    return max(args)


def _value(node: ast.expr) -> float:
    if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
        return BINARY[type(node.op)](_value(node.left), _value(node.right))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    raise ValueError("only numbers and + - * / // % ** and parentheses are allowed")

"""APIs of everyday services: hotels, arithmetic, the date, mail."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from .api import DATE, Api, ApiError, api_call, filled, next_key, parsed

TODAY = "2023-03-31"
"""The date that the dialogues of the data take for today."""

OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left / right,
}

ADDRESS = re.compile(r"[\w.+-]+@\w[\w-]*(\.\w[\w-]*)+", re.ASCII)


class BookHotel(Api):
    """Book rooms of a hotel. More than two adults need two rooms."""

    @api_call
    def call(
        self,
        hotel_name: str,
        check_in_time: str,
        check_out_time: str,
        room_count: int,
        adult_count: int,
        child_count: int,
    ) -> str:
        """Book the rooms from one date to another, such as 2023-03-21, and return the id of the order."""
        if parsed(check_in_time, DATE) > parsed(check_out_time, DATE):
            raise ApiError("The check-in time cannot be later than the check-out time.")
        if int(adult_count) > 2 > int(room_count):
            raise ApiError("The number of adults is greater than 2. Two rooms are ordered.")
        orders = self.databases.read("Hotel")
        key = next_key(orders)
        orders[key] = {
            "hotel_name": filled(hotel_name, "The hotel name cannot be empty."),
            "check_in_time": check_in_time,
            "check_out_time": check_out_time,
            "room_count": int(room_count),
            "adult_count": int(adult_count),
            "child_count": int(child_count),
        }
        self.databases.write("Hotel", orders)
        return key


class Calculator(Api):
    """Calculate the result of a formula with integers, + - * / and parentheses."""

    @api_call
    def call(self, formula: str) -> float:
        """Return the result of a formula such as '(1 + 2) * 3'."""
        try:
            return float(_value(ast.parse(formula.strip(), mode="eval").body))
        except (ArithmeticError, RecursionError, SyntaxError, ValueError):
            raise ApiError("invalid formula") from None


class GetToday(Api):
    """Get the current date."""

    @api_call
    def call(self) -> str:
        """Return the current date."""
        return TODAY


class SendEmail(Api):
    """Send an email to an address."""

    @api_call
    def call(self, receiver: str, subject: str, content: str) -> str:
        """Send the email, and return "success"."""
        if not ADDRESS.fullmatch(receiver.strip()):
            raise ApiError("Email address of the receiver is invalid.")
        filled(subject, "Subject cannot be empty.")
        filled(content, "Content cannot be empty.")
        return "success"


def _value(node: ast.expr) -> float:
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](_value(node.left), _value(node.right))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    raise ValueError("only numbers, + - * / and parentheses are allowed")

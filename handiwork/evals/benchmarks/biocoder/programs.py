"""The programs of a comparison: a function in its context, whose slots read random values from the environment.

The grammar is that of upstream's fuzzer: a slot ``<|TYPE;NAME=VALUE,VALUE;NAME=VALUE|>`` has the type ``int`` or
``float`` (``range``, by default from -100,000 to 100,000), ``string`` (``length``, one number or a range, by default
10; ``type``, a set of characters; ``custom``, texts to repeat) or ``bool`` (``type``, by default lower). A string's
``quotes`` say nothing here, as its value is no literal.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Mapping

from handiwork.evals.benchmark import DataError

MARK = "<<insert solution here>>"
"""The place of the function in a context."""

_SLOT = re.compile(r"<\|(.*?)\|>", re.DOTALL)
_LIMIT = "100000"
_LETTERS = {
    "ascii": string.ascii_letters,
    "alpha": string.ascii_lowercase,
    "alphanumeric": string.ascii_lowercase + string.digits,
    "alphanumeric_special": string.ascii_lowercase + string.digits + string.punctuation,
    "alphanumeric_allcases": string.ascii_letters + string.digits,
}
_BOOLS = {"upper": ("True", "False"), "python": ("True", "False"), "lower": ("true", "false"), "int": ("1", "0")}

READERS: Mapping[str, Mapping[str, str]] = {
    "python": {
        "int": 'int(os.environ["{}"])',
        "float": 'float(os.environ["{}"])',
        "string": 'os.environ["{}"]',
        "bool": '(os.environ["{}"] in ("True", "true", "1"))',
    },
    "java": {
        "int": 'Integer.parseInt(System.getenv("{}"))',
        "float": 'Float.parseFloat(System.getenv("{}"))',
        "string": 'System.getenv("{}")',
        "bool": 'Boolean.parseBoolean(System.getenv("{}"))',
    },
}
"""Upstream's expressions for the value of a variable, but for Python's bool, which upstream reads as true always."""


def program(context: str, function: str, language: str) -> str:
    """Return the context with a function in its place, and with slots that read variables. Raises DataError."""
    readers = READERS[language]
    numbers = iter(range(len(_SLOT.findall(context))))
    code = _SLOT.sub(lambda slot: readers[_parts(slot[1])[0]].format(_variable(next(numbers))), context)
    before, mark, after = code.partition(MARK)
    if not mark:
        raise DataError(f"a context has no {MARK}: get the file again")
    if before and not before.endswith("\n"):  # in a class
        function = function.replace("\n", "\n    ")
    return f"{before}{function}{after}"


def draw(context: str, source: random.Random) -> dict[str, str]:
    """Return random values of the variables that the slots of a context read. Raises DataError."""
    slots: list[str] = _SLOT.findall(context)
    return {_variable(number): _value(slot, source) for number, slot in enumerate(slots)}


def _variable(number: int) -> str:
    return f"SLOT{number}"


def _parts(slot: str) -> tuple[str, dict[str, list[str]]]:
    """Return the type of a slot, and its arguments."""
    kind, *arguments = slot.split(";")
    if kind not in READERS["python"]:
        raise DataError(f"a context has a slot of the unknown type {kind!r}: get the file again")
    pairs = (argument.partition("=") for argument in arguments)
    return kind, {name: value.split(",") for name, _, value in pairs}


def _value(slot: str, source: random.Random) -> str:
    kind, arguments = _parts(slot)
    low, high = arguments.get("range", [f"-{_LIMIT}", _LIMIT])[:2]
    match kind:
        case "int":
            return str(source.randint(int(low), int(high)))
        case "float":
            return str(source.uniform(float(low), float(high)))
        case "bool":
            name = arguments.get("type", ["lower"])[0]
            if name not in _BOOLS:
                raise DataError(f"a context has a slot of the unknown bool type {name!r}: get the file again")
            return source.choice(_BOOLS[name])
        case _:
            lengths = [int(length) for length in arguments.get("length", ["10"])]
            letters = arguments.get("custom") or _LETTERS.get(arguments.get("type", [""])[0], string.ascii_letters)
            return "".join(source.choice(letters) for _ in range(source.randint(lengths[0], lengths[-1])))

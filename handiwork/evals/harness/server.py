"""Loads the Python solution in solution.py, and serves its functions to tester.py."""

from __future__ import annotations

import io
import json
import numbers
import operator
import os
import pickle
import sys
import types
from typing import Any, cast

PLAIN: dict[str, list[str]] = {}
"""The classes whose objects are copied, besides None and bytes: ``main`` gets them from tester.py."""

BASES: tuple[Any, ...] = (str, bytes, tuple, list, dict, set, frozenset, int, float)

objects: list[Any] = []
"""The objects that stay in this process; tester.py knows their indices."""


def is_plain(kind: type) -> bool:
    """Return whether objects of a class are copied to tester.py."""
    return kind in (type(None), bytes) or kind.__qualname__ in PLAIN.get(kind.__module__, ())


class Pickler(pickle.Pickler):
    """Pickles plain values; objects of their subclasses become values of the base, others stay in this process."""

    def persistent_id(self, obj: Any) -> int | None:
        """Return the index of an object that stays in this process."""
        kind = cast("type[object]", type(obj))
        if is_plain(kind) or (kind is type and is_plain(obj)) or isinstance(obj, (*BASES, numbers.Real)):
            return None
        objects.append(obj)
        return len(objects) - 1

    def reducer_override(self, obj: Any, /) -> Any:
        """Return the call that rebuilds an object of a subclass as one of its base."""
        if isinstance(obj, type) or is_plain(cast("type[object]", type(obj))):
            return NotImplemented
        if isinstance(obj, numbers.Integral):
            return int, (int(obj),)
        base: Any = next((one for one in BASES if isinstance(obj, one)), float)
        return base, (base(obj),)


class Unpickler(pickle.Unpickler):
    """Unpickles messages from tester.py."""

    def persistent_load(self, pid: Any) -> Any:
        """Return the object with an index."""
        return objects[pid]


def dump_message(answer: Any) -> bytes:
    """Return an answer as a message."""
    message = io.BytesIO()
    Pickler(message).dump(answer)
    return message.tell().to_bytes(8, "big") + message.getvalue()


def _call(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    return function(*arguments, **keywords)


def main() -> None:
    """Load the solution, send its names, and answer questions until there are no more."""
    PLAIN.update(json.loads(sys.argv[3]))
    questions, answers = os.fdopen(int(sys.argv[1]), "rb"), os.fdopen(int(sys.argv[2]), "wb")
    names: dict[str, Any] = {}
    with open("solution.py") as file:
        exec(compile(file.read(), "solution.py", "exec"), names)  # noqa: S102 - the sandbox is meant for this
    entries = [(n, o.__name__ if isinstance(o, types.ModuleType) else "") for n, o in names.items()]
    answers.write(dump_message(("value", [one for one in entries if one[0] != "__builtins__"])))
    answers.flush()
    operations: dict[str, Any] = {
        "call": _call,
        "getattr": getattr,
        "getitem": operator.getitem,
        "iter": iter,
        "next": next,
        "global": names.__getitem__,
    }
    while size := int.from_bytes(questions.read(8), "big"):
        operation, *operands = Unpickler(io.BytesIO(questions.read(size))).load()
        try:
            message = dump_message(("value", operations[operation](*operands)))
        except BaseException as error:  # noqa: BLE001 - tester.py raises it in the tests
            message = dump_message(("error", type(error).__name__, str(error)))
        answers.write(message)
        answers.flush()


if __name__ == "__main__":
    main()

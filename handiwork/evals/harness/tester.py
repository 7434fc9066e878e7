"""Runs the tests of a Python solution that server.py has loaded in another process, and prints a nonce at their end.

Arguments and results are copied as plain values: no object of the solution takes part in a comparison, and its
process sees neither the tests nor the nonce.
"""

from __future__ import annotations

import builtins
import ctypes
import importlib
import io
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

PR_SET_DUMPABLE = 4

PLAIN = {
    "builtins": [
        "bool",
        "bytearray",
        "complex",
        "dict",
        "float",
        "frozenset",
        "int",
        "list",
        "range",
        "set",
        "slice",
        "str",
        "tuple",
    ],
    "collections": ["Counter", "OrderedDict", "defaultdict", "deque"],
    "datetime": ["date", "datetime", "time", "timedelta"],
    "decimal": ["Decimal"],
    "fractions": ["Fraction"],
}
"""The classes whose objects are copied; others stay in their process, and are used through a Remote."""


class Remote:
    """An object in the solution's process; it equals only itself."""

    def __init__(self, server: Server, number: int) -> None:
        self.__dict__.update(_server=server, _number=number)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Call the object with copies of the arguments."""
        return self.__dict__["_server"].ask("call", self, arguments, keywords)

    def __getattr__(self, name: str) -> Any:
        return self.__dict__["_server"].ask("getattr", self, name)

    def __getitem__(self, key: Any) -> Any:
        return self.__dict__["_server"].ask("getitem", self, key)

    def __iter__(self) -> Iterator[Any]:
        return self.__dict__["_server"].ask("iter", self)

    def __next__(self) -> Any:
        return self.__dict__["_server"].ask("next", self)


class Server:
    """The process of the solution."""

    def __init__(self) -> None:
        questions_read, questions_write = os.pipe()
        answers_read, answers_write = os.pipe()
        command = [sys.executable, "-u", "-B", "server.py", str(questions_read), str(answers_write), json.dumps(PLAIN)]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=(questions_read, answers_write))
        os.close(questions_read)
        os.close(answers_write)
        self._questions, self._answers = os.fdopen(questions_write, "wb"), os.fdopen(answers_read, "rb")

    def ask(self, *question: Any) -> Any:
        """Return the server's answer to a question. Raises the solution's exceptions."""
        message = io.BytesIO()
        _Pickler(message).dump(question)
        self._questions.write(message.tell().to_bytes(8, "big") + message.getvalue())
        self._questions.flush()
        return self.answer()

    def answer(self) -> Any:
        """Return the next answer of the server."""
        size = int.from_bytes(self._answers.read(8), "big")
        if not size:
            raise RuntimeError("the solution's process has ended")
        status, *values = _Unpickler(self, io.BytesIO(self._answers.read(size))).load()
        if status == "value":
            return values[0]
        kind = getattr(builtins, values[0], None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            raise kind(values[1])
        raise RuntimeError(f"{values[0]}: {values[1]}")

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


class _Pickler(pickle.Pickler):
    def persistent_id(self, obj: Any) -> int | None:
        return obj.__dict__["_number"] if type(obj) is Remote else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, server: Server, message: io.BytesIO) -> None:
        super().__init__(message)
        self._server = server

    def persistent_load(self, pid: Any) -> Remote:
        return Remote(self._server, int(pid))

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        if global_name not in PLAIN.get(module_name, ()):
            raise pickle.UnpicklingError(f"{module_name}.{global_name} does not cross")
        return getattr(importlib.import_module(module_name), global_name)


def main() -> None:
    """Run the tests of case.json, which is deleted before the solution is loaded."""
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # other processes cannot read this one's memory
    with open("case.json") as file:
        case = json.load(file)
    os.unlink("case.json")
    server = Server()
    names: dict[str, Any] = {}
    for name, module in server.answer():
        if module in sys.stdlib_module_names:
            names[name] = importlib.import_module(module)
        else:
            names[name] = server.ask("global", name)
    exec(compile(case["tests"], "tests", "exec"), names)  # noqa: S102 - the benchmark's tests, in a sandbox
    server.end()
    print(f"\n{case['nonce']}", flush=True)  # noqa: T201


if __name__ == "__main__":
    try:
        main()
    except BaseException as error:  # noqa: BLE001 - any exception of a test fails the solution
        raise SystemExit(f"{type(error).__name__}: {error}") from None

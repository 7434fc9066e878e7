"""What all APIs share: their databases, the checks of their arguments, and the record of their calls."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
TIME, DATE = "%Y-%m-%d %H:%M:%S", "%Y-%m-%d"


class ApiError(Exception):
    """A call failed; the message is its result's exception."""


class Databases:
    """The databases of the APIs: JSON files in a folder, read at each call and written at each change.

    ``calls`` is the file that records the calls.
    """

    def __init__(self, folder: Path = FOLDER / "databases", calls: Path | None = FOLDER / "calls.jsonl") -> None:
        self.folder, self.calls = folder, calls

    def read(self, name: str) -> Any:
        """Return a database, {} if there is none."""
        file = self.folder / f"{name}.json"
        return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}

    def write(self, name: str, content: Any) -> None:
        """Replace a database."""
        (self.folder / f"{name}.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")

    def record(self, result: dict[str, Any]) -> None:
        """Add a call to the record."""
        if self.calls is not None:
            with self.calls.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result, ensure_ascii=False, default=str) + "\n")


class Api:
    """An API; its ``call`` is decorated with ``api_call``."""

    def __init__(self, databases: Databases | None = None) -> None:
        self.databases = databases or Databases()

    def username(self, token: str) -> str:
        """Return the name of the user with a token. Raises ApiError."""
        for name, account in self.databases.read("Account").items():
            if account["token"] == token:
                return name
        raise ApiError("The token is invalid.")


def api_call(call: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """Decorate the method ``call`` of an API: record the call, and return its arguments, its output or its error."""
    signature = inspect.signature(call)

    @wraps(call)
    def wrapper(self: Api, *args: Any, **kwargs: Any) -> dict[str, Any]:
        arguments = signature.bind(self, *args, **kwargs).arguments
        arguments.pop("self")
        output = error = None
        try:
            output = call(self, **arguments)
        except (ApiError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as failure:
            error = str(failure)
        result = {"api_name": type(self).__name__, "input": dict(arguments), "output": output, "exception": error}
        self.databases.record(result)
        return result

    return wrapper


def parsed(text: str, form: str) -> str:
    """Return a time or date in its usual form: 2023-3-1 is 2023-03-01. Raises ValueError."""
    year, dash, rest = text.strip().partition("-")
    return datetime.strptime(f"{year.zfill(4)}{dash}{rest}", form).strftime(form)


def filled(text: str, message: str) -> str:
    """Return a text without the white space around it. Raises ApiError with the message if nothing is left."""
    if not text.strip():
        raise ApiError(message)
    return text.strip()


def identifier(*parts: Any) -> str:
    """Return eight digits that are the same for the same parts."""
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()
    return str(int(digest, 16) % 10**8).zfill(8)


def next_key(database: dict[str, Any]) -> str:
    """Return the number of a new entry."""
    return str(max(map(int, database), default=0) + 1)

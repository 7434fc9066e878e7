"""Compares what two queries find in an SQLite database, in a process of its own; it imports nothing of ours.

Standard input is JSON: ``database``, a path, and the ``predicted`` and the ``gold`` query. Standard output is JSON:
``equal``, whether both found the same set of rows; ``error``, what SQLite says against the predicted query; ``gold``,
what it says against the other.
"""

from __future__ import annotations

import json
import resource
import sqlite3
import sys
from urllib.parse import quote

MEMORY = 2 * 1024**3
"""Bytes of address space, so that a query with endless rows ends as an error and not with the machine."""

ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)


def main() -> None:
    """Do it."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    asked = json.load(sys.stdin)
    # Neither writing nor attaching another file: the file is open for reading, and all but reading is refused.
    database = sqlite3.connect(f"file:{quote(asked['database'])}?mode=ro", uri=True)
    database.set_authorizer(_allowed)
    found: dict[str, set[tuple[object, ...]]] = {}
    told: dict[str, object] = {"equal": False, "error": "", "gold": ""}
    for which, error in ("predicted", "error"), ("gold", "gold"):
        try:
            found[which] = set(database.execute(asked[which]))
        except (sqlite3.Error, sqlite3.Warning, MemoryError, ValueError) as problem:
            told[error] = str(problem) or type(problem).__name__
    told["equal"] = len(found) == 2 and found["predicted"] == found["gold"]
    json.dump(told, sys.stdout)


def _allowed(what: int, *_: str | None) -> int:
    return sqlite3.SQLITE_OK if what in ALLOWED else sqlite3.SQLITE_DENY


if __name__ == "__main__":
    main()

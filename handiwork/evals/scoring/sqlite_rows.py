"""Compares the rows of two queries on an SQLite database, in a separate process; imports none of our modules.

Standard input is JSON: ``database``, a path, and the ``predicted`` and the ``gold`` query. Standard output is JSON:
``equal``, whether both found the same set of rows; ``error``, SQLite's error for the predicted query; ``gold``, its
error for the other.
"""

from __future__ import annotations

import json
import resource
import sqlite3
import sys
from urllib.parse import quote

MEMORY = 2 * 1024**3
"""Bytes of address space, so that a query with endless rows fails without exhausting the machine."""

ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)


def main() -> None:
    """Compare the queries from standard input."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    asked = json.load(sys.stdin)
    # Neither writing nor attaching another file: the file is opened read-only, and all operations but reading are
    # denied.
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

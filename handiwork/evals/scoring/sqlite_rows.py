"""Compares the rows of two queries on an SQLite database, in a separate process; imports none of our modules.

Standard input is JSON: ``database``, a path, the ``predicted`` and the ``gold`` query, and the ``seconds`` of CPU time
after which SIGXCPU ends the process. Standard output is JSON: ``equal``, whether both found the same set of rows;
``error``, SQLite's error for the predicted query; ``gold``, its error for the other.
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
    request = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_CPU, (request["seconds"], request["seconds"] + 1))
    # Neither writing nor attaching another file: the file is opened read-only, and all operations but reading are
    # denied.
    database = sqlite3.connect(f"file:{quote(request['database'])}?mode=ro", uri=True)
    database.set_authorizer(_authorize)
    rows: dict[str, set[tuple[object, ...]]] = {}
    report: dict[str, object] = {"equal": False, "error": "", "gold": ""}
    for query, error in ("predicted", "error"), ("gold", "gold"):
        try:
            rows[query] = set(database.execute(request[query]))
        except (sqlite3.Error, sqlite3.Warning, MemoryError, ValueError) as failure:
            report[error] = str(failure) or type(failure).__name__
    report["equal"] = len(rows) == 2 and rows["predicted"] == rows["gold"]
    json.dump(report, sys.stdout)


def _authorize(operation: int, *_: str | None) -> int:
    return sqlite3.SQLITE_OK if operation in ALLOWED else sqlite3.SQLITE_DENY


if __name__ == "__main__":
    main()

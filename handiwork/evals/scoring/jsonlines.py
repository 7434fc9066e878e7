"""Reads upstream files of JSON lines."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from handiwork.evals.benchmark import DataError

RECORD = TypeAdapter(dict[str, Any])


def read(file: Path, fields: Collection[str] = ()) -> list[dict[str, Any]]:
    """Return the records of a file, one for each non-empty line; all have the ``fields``.

    Raises DataError if a line is not such a record, OSError.
    """
    records: list[dict[str, Any]] = []
    # The file itself is iterated: str.splitlines() would also break at characters that JSON allows in a string.
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = RECORD.validate_json(line)
            except ValidationError as error:
                raise DataError(f"{file}, line {number} is no JSON object: get the file again") from error
            if lacking := [field for field in fields if field not in record]:
                raise DataError(f"{file}, line {number} has no {', '.join(lacking)}: is it the file of this benchmark?")
            records.append(record)
    return records

"""Check that an answer quotes the notes, and that the quotations stand at the places that it names."""

from __future__ import annotations

import re
from pathlib import Path

NOTES = Path(__file__).resolve().parent

_REFERENCE = re.compile(r"\[([\w.-]+):(\d+)-(\d+)\]")
_QUOTATION = re.compile(r'"([^"]+)"\s*(\[[^\]]*\])?')


def passage(reference: str) -> str:
    """Return the lines of a note that a reference like "[recall.md:3-4]" names, in one line.

    Raises ValueError if it is no reference, or the note has no such lines.
    """
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        raise ValueError(f"{reference or 'nothing'} is no reference: write it like [recall.md:3-4]")
    name, first, last = match[1], int(match[2]), int(match[3])
    path = NOTES / name
    if not path.is_file():
        raise ValueError(f"{reference}: there is no note {name}")
    lines = path.read_text().splitlines()
    if not 1 <= first <= last <= len(lines):
        raise ValueError(f"{reference}: {name} has the lines 1 to {len(lines)}")
    return " ".join(" ".join(lines[first - 1 : last]).split())


def faults(answer: str) -> list[str]:
    """Return the faults of an answer's quotations: none, without a reference, or not at the place that it names."""
    quotations = _QUOTATION.findall(answer)
    found = [] if quotations else ["the answer quotes nothing"]
    for words, reference in quotations:
        words = " ".join(words.split())
        try:
            if words not in passage(reference):
                found.append(f'{reference} has not the words "{words}"')
        except ValueError as error:
            found.append(f'"{words}": {error}')
    return found

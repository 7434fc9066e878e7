"""Removes secrets from stored and displayed data, in any of their forms."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

from handiwork.events.base import Event, Observation
from handiwork.log.redaction.encodings import ROW, Form, Unit, forms, plain

LINE = 16
"""Minimum length of a secret's line that is redacted even on its own."""

E = TypeVar("E", bound=Event)

_SURE, _EXACT = 4, 32
"""Matched units that make a secret likely, so its text is held back, and certain, so it is redacted."""


class Redactor:
    """Replaces secrets with ``[secret NAME]``. Without secrets it does nothing and costs nothing.

    It guards against accidents, not against a program that deliberately writes a secret in an encoding of its own.
    """

    def __init__(self) -> None:
        self._secrets: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None
        self._names: list[str] = []

    def learn(self, secrets: Mapping[str, str]) -> None:
        """Redact these secrets too from now on; their names are ASCII without quotes or backslashes."""
        self._secrets |= secrets
        found = sorted(
            ((form, name) for name, secret in self._secrets.items() for form in _forms(secret)),
            key=lambda pair: -len(pair[0].units),  # if two begin alike, the longer one must win
        )
        if not found:
            return
        names = [name for form, name in found for _ in form.units[0].beginnings]
        width = max(_width(form.units) for form, _ in found) + ROW
        # The empty group at the end of each branch identifies it; a group around the branch would slow the search.
        pattern = re.compile("|".join(f"{branch}()" for form, _ in found for branch in _branches(form)))
        begun = re.compile("|".join(start for form, _ in found for start in _begun(form)))
        beginning = re.compile("|".join(start for form, _ in found for start in _beginnings(form)))
        unsure = max(_width(form.units[:_SURE]) for form, _ in found)
        ending = re.compile("|".join(_joined(form.units[-_SURE:]) for form, _ in found))
        # At once, and the pattern last: other threads redact meanwhile.
        self._names, self._width, self._begun, self._beginning = names, width, begun, beginning
        self._unsure, self._ending, self._pattern = unsure, ending, pattern

    @property
    def knows_none(self) -> bool:
        """Whether there are no secrets to redact."""
        return self._pattern is None

    def text(self, text: str) -> str:
        """Return the text without secrets."""
        return text if self._pattern is None else self._pattern.sub(self._mark, text)

    def json(self, text: str) -> str:
        """Return the JSON text of an event without secrets; its type and the names of its fields stay."""
        if self._pattern is None or self._pattern.search(text) is None:
            return text
        fields = cast("dict[str, Any]", json.loads(text))
        clear = {key: value if key == "type" else self._clear(value) for key, value in fields.items()}
        return json.dumps(clear, ensure_ascii=False, separators=(",", ":"))

    def ends(self, event: E) -> E:
        """Return the event; if its output was cut, without possible parts of secrets at either side of the cut."""
        if self._pattern is None or not isinstance(event, Observation) or event.blob is None:
            return event
        head, rest = self.split(event.content)
        head += rest if len(rest) < _SURE else ""
        endings = [found.end() for found in self._ending.finditer(event.tail[: self._width])]
        tail = self.text(event.tail[endings[-1] if endings else 0 :])
        if (head, tail) == (event.content, event.tail):
            return event
        longer = len((head + tail).encode(errors="replace")) - len(
            (event.content + event.tail).encode(errors="replace")
        )
        return event.model_copy(update={"content": head, "tail": tail, "size": max(0, event.size + longer)})

    def bytes(self, data: bytes) -> bytes:
        """Return the bytes of a file without secrets."""
        return self.text(data.decode("latin-1")).encode("latin-1")

    def pieces(self) -> Pieces:
        """Return a redactor of one text, or of one file's bytes, that arrives in pieces."""
        return Pieces(self)

    def split(self, text: str) -> tuple[str, str]:
        """Return the redacted text as far as it is certain, and the rest, which may be the beginning of a secret."""
        if self._pattern is None:
            return text, ""
        begun = self._begun.search(text, max(0, len(text) - self._width + 1))
        certain = len(text) if begun is None else begun.start()
        beginning = self._beginning.search(text, max(0, len(text) - self._unsure))
        certain = certain if beginning is None else min(certain, beginning.start())
        parts: list[str] = []
        done = 0
        for found in self._pattern.finditer(text):
            if found.start() >= certain:
                break
            parts += text[done : found.start()], self._mark(found)
            done = found.end()
        certain = max(certain, done)
        return "".join((*parts, text[done:certain])), text[certain:]

    def _mark(self, found: re.Match[str]) -> str:
        assert found.lastindex is not None
        return f"[secret {self._names[found.lastindex - 1]}]"

    def _clear_string(self, text: str) -> str:
        """Return a string of JSON without secrets, including those that are found only in its escaped form."""
        clear = self.text(text)
        escaped = json.dumps(clear, ensure_ascii=False)[1:-1]
        if self._pattern is None or (found := self._pattern.search(escaped)) is None:
            return clear
        try:
            return str(json.loads(f'"{self.text(escaped)}"'))
        except ValueError:  # the secret begins or ends inside an escape
            return self._mark(found)

    def _clear(self, value: Any) -> Any:
        match value:
            case str():
                return self._clear_string(value)
            case list():
                return [self._clear(each) for each in cast("list[Any]", value)]
            case dict():
                return {
                    self._clear_string(key): self._clear(each) for key, each in cast("dict[str, Any]", value).items()
                }
            case _:
                return value


class Pieces:
    """Redacts a text in pieces: a possible beginning of a secret is held back until it is certain, or the text ends."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""

    def feed(self, text: str) -> str:
        """Add a piece and return the redacted text that is certain now."""
        clear, self._held = self._redactor.split(self._held + text)
        return clear

    def end(self) -> str:
        """Return the redacted rest."""
        rest, self._held = self._redactor.text(self._held), ""
        return rest

    def feed_bytes(self, data: bytes) -> bytes:
        """Add a piece of a file, like ``feed`` for text."""
        if self._redactor.knows_none:
            return data
        return self.feed(data.decode("latin-1")).encode("latin-1")

    def end_bytes(self) -> bytes:
        """Return the redacted rest of a file."""
        return self.end().encode("latin-1")


def _forms(secret: str) -> Iterator[Form]:
    yield from forms(secret)
    lines = [line.strip() for line in secret.splitlines()]
    if len(lines) > 1:
        # The first and last lines of a PEM file are the same for all keys.
        yield from (plain(line) for line in lines if len(line) >= LINE and not line.startswith("-----"))


def _width(units: Sequence[Unit]) -> int:
    return sum(unit.width for unit in units)


def _branches(form: Form) -> Iterator[str]:
    """Yield expressions that match the form; to save time, they only count the later units of a long one."""
    exact = form.units[1:_EXACT] if form.any_unit else form.units[1:]
    left = len(form.units) - 1 - len(exact)
    rest = _joined(exact) + (f"{form.any_unit}{{0,{left}}}" if left else "")
    yield from (beginning + rest + form.rest for beginning in form.units[0].beginnings)


def _begun(form: Form) -> Iterator[str]:
    """Yield expressions that match the form's beginning, long enough to be rare."""
    yield from (beginning + _joined(form.units[1:_SURE]) for beginning in form.units[0].beginnings)


def _beginnings(form: Form) -> Iterator[str]:
    """Yield expressions that match a possible beginning of the form, cut by the end of the text."""
    inner = ""
    for unit in reversed(form.units[1:_SURE]):
        inner = rf"(?:{unit.part}\Z|{unit.expression}{inner})"
    first = form.units[0]
    for beginning in first.beginnings:
        character = beginning[:2] if beginning.startswith("\\") else beginning[0]
        if character != beginning:
            yield rf"{character}[^\s]{{0,{first.width}}}\Z"
        yield beginning + inner


def _joined(units: Sequence[Unit]) -> str:
    return "".join(unit.expression for unit in units)

"""Reader and writer of git's configuration files, without running git or following includes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

Setting = tuple[str, str | None]
"""Name, such as "remote.origin.url", and value; None for a name without "=", which git takes for true."""

_SECTION = re.compile(rb'\[([-.a-zA-Z0-9]+)(?:[ \t]+"((?:[^"\\\n]|\\[^\n])*)")?\]')
_NAME = re.compile(rb"([a-zA-Z][-a-zA-Z0-9]*)[ \t]*(=?)")
_ESCAPES = {b"t": b"\t", b"b": b"\b", b"n": b"\n", b"\\": b"\\", b'"': b'"'}


class ConfigError(Exception):
    """A file does not have the syntax of git's configuration."""


def parse_config(data: bytes) -> list[Setting]:
    """Return the settings of a configuration file in order. Raises ConfigError."""
    return list(_settings(data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n") + b"\n"))


def format_config(settings: Iterable[Setting]) -> bytes:
    """Return a configuration file with these settings."""
    lines: list[str] = []
    for full_name, value in settings:
        section, _, name = full_name.rpartition(".")
        section, dot, subsection = section.partition(".")
        lines.append(f"[{section} {_quote(subsection)}]" if dot else f"[{section}]")
        lines.append(f"\t{name}" if value is None else f"\t{name} = {_quote(value)}")
    return "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape")


def _settings(data: bytes) -> Iterator[Setting]:
    section, at = "", 0
    while at < len(data):
        if data[at : at + 1].isspace():
            at += 1
        elif data[at : at + 1] in (b"#", b";"):
            at = data.index(b"\n", at)
        elif match := _SECTION.match(data, at):
            section, at = match[1].decode().lower(), match.end()
            if match[2] is not None:
                section += "." + _text(re.sub(rb"\\(.)", rb"\1", match[2]))
        elif (match := _NAME.match(data, at)) and section:
            value, at = _value(data, match.end()) if match[2] else (None, match.end())
            if value is None and data[at : at + 1] != b"\n":
                raise ConfigError(f"bad setting at byte {at}")
            yield f"{section}.{match[1].decode().lower()}", value
        else:
            raise ConfigError(f"bad line at byte {at}")


def _value(data: bytes, at: int) -> tuple[str, int]:
    """Return the value that begins at ``at``, and the offset of its line's end."""
    value, spaces, quoted = bytearray(), 0, False
    while True:
        letter, at = data[at : at + 1], at + 1
        if letter == b"\n":
            if quoted:
                raise ConfigError(f"a quote does not end at byte {at}")
            return _text(bytes(value)), at - 1
        if letter.isspace() and not quoted:
            spaces += bool(value)
            continue
        if letter in (b"#", b";") and not quoted:
            at = data.index(b"\n", at)
            continue
        value += b" " * spaces
        spaces = 0
        if letter == b'"':
            quoted = not quoted
        elif letter == b"\\":
            escaped, at = data[at : at + 1], at + 1
            if escaped == b"\n" and at < len(data):
                continue
            if escaped not in _ESCAPES:
                raise ConfigError(f"bad escape at byte {at}")
            value += _ESCAPES[escaped]
        else:
            value += letter


def _text(value: bytes) -> str:
    return value.decode(errors="surrogateescape")


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'

"""The hosts a sandbox may reach: the patterns that users write, and the form of a host's name that is compared.

A pattern is ``example.org`` (that name alone), ``*.example.org`` (every name below it, but not itself), a preset
(``pypi``, ``npm``, ``debian``), or ``all``. It means ports 80 and 443; ``example.org:8080`` means port 8080 alone.
``10.0.0.5:8080`` or ``[fd00::5]:8080`` is that address at that port, the only way to hosts outside the internet.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from handiwork.sandbox.egress.addresses import why_never

PORTS = frozenset({80, 443})
"""The ports of a pattern that names none."""

PRESETS: dict[str, tuple[str, ...]] = {
    "pypi": ("pypi.org", "files.pythonhosted.org"),
    "npm": ("registry.npmjs.org",),
    "debian": ("deb.debian.org", "security.debian.org"),
}
"""Hosts of package registries, by preset."""

ALL = "all"

Host = str | ipaddress.IPv4Address | ipaddress.IPv6Address
"""A name in lower case, in ASCII and without a trailing dot; or an address."""

_NAME_LENGTH = 253
_PORT = re.compile("[0-9]{1,5}")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
# The system's resolver reads such names as addresses in old forms.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


class HostError(ValueError):
    """The text is neither a host nor a pattern; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """Allows ``host`` (a name, ``*.`` and a name, ``all`` or an address) at ``ports``; ``text`` is the user's input."""

    text: str
    host: Host
    ports: frozenset[int]

    def matches(self, host: Host, port: int) -> bool:
        """Return whether the ``canonical`` host is allowed at the port; only ``all`` and itself match an address."""
        if port not in self.ports:
            return False
        if self.host == ALL:
            return True
        if not isinstance(host, str) or not isinstance(self.host, str):
            return host == self.host
        return host.endswith(self.host[1:]) if self.host.startswith("*.") else host == self.host


def canonical(text: str) -> Host:
    """Return a requested host in the one form that is compared. Raises HostError."""
    if text.startswith("[") and text.endswith("]"):
        return _address(text[1:-1], text)
    if not text.isascii():
        raise HostError(f"{text!a} is not a host's name: write non-ASCII characters as xn--...")
    name = text.lower().removesuffix(".")
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _address(name, text)
    if len(name) > _NAME_LENGTH or not all(map(_LABEL.fullmatch, labels)):
        raise HostError(f"{text!a} is not a host's name")
    return name


def parse(text: str) -> tuple[Pattern, ...]:
    """Return the patterns in a user's text; a preset has several. Raises HostError."""
    source = text.strip()
    host, colon, port = source.rpartition(":")
    if not colon:
        host = source
    elif not (_PORT.fullmatch(port) and 0 < int(port) < 65536):
        raise HostError(f'"{source}" is not a host: name it alone, as example.org, or with a port, example.org:8080')
    ports = frozenset({int(port)}) if colon else PORTS
    host = host.lower()
    if colon and (address := _literal(host)) is not None:
        if reason := why_never(address):
            raise HostError(f'"{source}" is never reached: the address is {reason}')
        return (Pattern(source, address, ports),)
    if host == ALL:
        return (Pattern(source, ALL, ports),)
    return tuple(Pattern(source, _pattern(name, source), ports) for name in PRESETS.get(host, (host,)))


def allowing(patterns: list[Pattern], host: Host, port: int) -> Pattern | None:
    """Return a pattern that allows the host at the port: one that is the host itself, else the first."""
    matching = [pattern for pattern in patterns if pattern.matches(host, port)]
    return next((pattern for pattern in matching if pattern.host == host), matching[0] if matching else None)


def _pattern(text: str, source: str) -> str:
    """Return the name, or the wildcard, in the form that is compared."""
    star = "*." if text.startswith("*.") else ""
    name = text.removeprefix("*.")
    if "*" in name:
        raise HostError(f'"{source}": a * stands for the beginning of a name only, as in *.example.org; or say all')
    try:
        host = canonical(name.encode("idna").decode())
    except UnicodeError as error:
        raise HostError(f'"{source}" is not a host\'s name: {error}') from error
    if not isinstance(host, str):
        raise HostError(f'"{source}" is an address: name the host, or give the port too, as 10.0.0.5:8080')
    if host == ALL:
        raise HostError(f'"{source}" is not a host: to allow every host write all')
    return star + host


def _literal(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the text's address, None if it is not an address."""
    try:
        host = canonical(text)
    except HostError:
        return None
    return None if isinstance(host, str) else host


def _address(text: str, source: str) -> Host:
    try:
        if ":" in text and "%" not in text:
            return ipaddress.IPv6Address(text)
        return ipaddress.IPv4Address(text)
    except ValueError:
        raise HostError(f"{source!a} is not an address in its usual form") from None

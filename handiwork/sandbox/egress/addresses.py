"""Decides whether an address is on the internet, and not on this machine, its network or its cloud's inner side."""

from __future__ import annotations

import ipaddress
import socket

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# The documentation networks are not listed: only networks that assign them to their mirrors use them.
_REFUSED_4 = {
    ipaddress.IPv4Network(network): kind
    for network, kind in {
        "0.0.0.0/8": "unspecified",
        "10.0.0.0/8": "private",
        "100.64.0.0/10": "private",
        "127.0.0.0/8": "loopback",
        "168.63.129.16/32": "a cloud's own service",
        "169.254.0.0/16": "link-local",
        "172.16.0.0/12": "private",
        "192.0.0.0/24": "reserved",
        "192.88.99.0/24": "reserved",
        "192.168.0.0/16": "private",
        "198.18.0.0/15": "private",
        "224.0.0.0/4": "multicast",
        "240.0.0.0/4": "reserved",
    }.items()
}
_REFUSED_6 = {
    ipaddress.IPv6Network(network): kind
    for network, kind in {
        "::/128": "unspecified",
        "::1/128": "loopback",
        "::ffff:0:0/96": "IPv4-mapped",
        "2001::/23": "reserved",
        "2002::/16": "a tunnel's",
        "fc00::/7": "private",
        "fe80::/10": "link-local",
        "ff00::/8": "multicast",
    }.items()
}
_GLOBAL_6 = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def why_refused(address: Address) -> str | None:
    """Return the reason to refuse an address, as an adjective or a possessive; None to allow it."""
    if address.version == 6 and address in _NAT64:
        # Networks with IPv6 only write an IPv4 address this way, in the last four bytes.
        address = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address.version == 4:
        reason = next((kind for network, kind in _REFUSED_4.items() if address in network), None)
    else:
        reason = next((kind for network, kind in _REFUSED_6.items() if address in network), None)
        if reason is None and address not in _GLOBAL_6:
            reason = "reserved"
    return reason or ("this machine's own" if _is_own(address) else None)


NAMEABLE = frozenset({"private", "loopback", "this machine's own"})
"""Kinds of addresses that are reached if the user names the address itself."""


def why_never(address: Address) -> str | None:
    """Return the reason to refuse an address even if the user names it; None to allow it."""
    reason = why_refused(address)
    return None if reason in NAMEABLE else reason


def _is_own(address: Address) -> bool:
    """Return whether a connection to the address would come back to this machine; sends nothing."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))
            return probe.getsockname()[0] == str(address)
    except OSError:
        return False  # the address has no route

"""Which addresses are refused whatever name they belong to."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handiwork.sandbox.egress.addresses import why_refused


@pytest.mark.parametrize(
    ("address", "why"),
    [
        *(("127.0.0.1", "loopback"), ("127.8.8.8", "loopback"), ("::1", "loopback"), ("0.0.0.0", "unspecified")),
        *(("::", "unspecified"), ("10.1.2.3", "private"), ("172.31.0.1", "private"), ("192.168.1.1", "private")),
        *(("100.64.0.1", "private"), ("fd00:ec2::254", "private"), ("169.254.169.254", "link-local")),
        *(("fe80::1", "link-local"), ("224.0.0.1", "multicast"), ("ff02::1", "multicast")),
        *(("255.255.255.255", "reserved"), ("240.0.0.1", "reserved"), ("192.0.0.192", "reserved")),
        *(("168.63.129.16", "a cloud's own service"), ("::ffff:8.8.8.8", "IPv4-mapped"), ("::7f00:1", "reserved")),
        *(("2002:7f00:1::", "a tunnel's"), ("2001:0:1::", "reserved"), ("64:ff9b::7f00:1", "loopback")),
        *(("64:ff9b::a9fe:a9fe", "link-local"), ("fec0::1", "reserved")),
    ],
)
def test_what_is_not_on_the_internet_is_refused(address: str, why: str) -> None:
    assert why_refused(ipaddress.ip_address(address)) == why


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "93.184.216.34", "172.32.0.1", "2606:2800:220:1::1", "64:ff9b::808:808"]
)
def test_what_is_on_the_internet_is_not(address: str) -> None:
    assert why_refused(ipaddress.ip_address(address)) is None


@settings(deadline=None)
@given(st.ip_addresses(v=4))
def test_nothing_that_the_registries_call_private_passes(address: ipaddress.IPv4Address) -> None:
    documentation = map(ipaddress.IPv4Network, ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"))
    if not any(address in network for network in documentation) and not address.is_global:
        assert why_refused(address)
    assert why_refused(ipaddress.IPv6Address(f"::ffff:{address}"))
    if why_refused(address):
        assert why_refused(ipaddress.IPv6Address(f"64:ff9b::{address}"))


@settings(deadline=None)
@given(st.ip_addresses(v=6))
def test_only_global_unicast_passes(address: ipaddress.IPv6Address) -> None:
    if why_refused(address) is None:
        assert any(address in ipaddress.IPv6Network(network) for network in ("2000::/3", "64:ff9b::/96"))

"""The address in the server's link is one at which a browser reaches it."""

from __future__ import annotations

import socket

import pytest

from handiwork.server.serve import address_for_links


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_a_host_is_named_as_it_was_given(host: str) -> None:
    assert address_for_links(host) == host


@pytest.mark.parametrize(("host", "family"), [("0.0.0.0", socket.AF_INET), ("::", socket.AF_INET6)])
def test_all_interfaces_are_named_by_an_address_of_this_machine(host: str, family: socket.AddressFamily) -> None:
    address = address_for_links(host)
    if address == host:
        pytest.skip("this machine has no route to others")
    socket.create_server((address, 0), family=family).close()

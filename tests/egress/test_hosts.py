"""What a pattern allows: the hosts it means, and none that only look like them."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from handiwork.sandbox.egress.addresses import why_never
from handiwork.sandbox.egress.hosts import HostError, canonical, parse

few = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
# Few labels, so that names often are parts of others.
labels = st.sampled_from(["a", "b", "ab", "a-b", "org", "xn--a", "0a", "_a"])
names = st.lists(labels, min_size=1, max_size=4).map(".".join)


def allows(pattern: str, host: str, port: int = 443) -> bool:
    try:
        return any(one.matches(canonical(host), port) for one in parse(pattern))
    except HostError:
        return False


@few
@given(names, st.sampled_from([str.upper, str.title, str.lower]), st.sampled_from(["", "."]))
def test_a_name_allows_itself_however_it_is_written(name: str, in_case: Callable[[str], str], dot: str) -> None:
    assert allows(name, in_case(name) + dot)
    assert allows(in_case(name) + dot, name)


@few
@given(names, names)
def test_a_name_allows_no_other(name: str, other: str) -> None:
    assume(name != other)
    assert not allows(name, other)


@few
@given(names, labels, names)
def test_a_wildcard_allows_what_is_below_it_and_nothing_else(name: str, label: str, other: str) -> None:
    assert allows(f"*.{name}", f"{label}.{name}")
    assert allows(f"*.{name}", f"{label}.{label}.{name}")
    assert not allows(f"*.{name}", name)
    assert not allows(f"*.{name}", f"{label}{name}") or f"{label}{name}".endswith(f".{name}")
    assert allows(f"*.{name}", other) == other.endswith(f".{name}")


@few
@given(st.text(max_size=30))
def test_any_text_is_a_host_that_stays_the_same_or_an_error(text: str) -> None:
    try:
        host = canonical(text)
    except HostError:
        return
    if isinstance(host, str):
        assert canonical(host) == host == host.lower()
        assert host.isascii()
        assert not allows("example.org", text) or host == "example.org"


@few
@given(st.ip_addresses())
def test_only_all_allows_addresses_and_one_that_is_named_with_its_port(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    text = str(address) if address.version == 4 else f"[{address}]"
    assert allows("all", text)
    assert allows(f"{text}:8080", text, 8080) == (why_never(address) is None)
    assert not allows(f"{text}:8080", text, 80)
    assert not any(allows(pattern, text) for pattern in ("pypi", "example.org", "*.org", f"*.{text}", text))


@few
@given(st.ip_addresses(), st.ip_addresses())
def test_an_address_allows_no_other_and_no_name(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address, other: ipaddress.IPv4Address | ipaddress.IPv6Address
) -> None:
    assume(address != other)
    text, another = (str(one) if one.version == 4 else f"[{one}]" for one in (address, other))
    assert not allows(f"{text}:80", another, 80)
    assert not allows(f"{text}:80", "example.org", 80)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *(("169.254.169.254:80", "link-local"), ("0.0.0.0:80", "unspecified"), ("168.63.129.16:80", "a cloud's own")),
        *(("[::ffff:10.0.0.1]:80", "IPv4-mapped"), ("[fe80::1]:80", "link-local"), ("224.0.0.1:80", "multicast")),
    ],
)
def test_some_addresses_cannot_even_be_named(text: str, why: str) -> None:
    with pytest.raises(HostError, match=why):
        parse(text)


@pytest.mark.parametrize(
    "host",
    [
        *("example.org.evil.com", "evilexample.org", "example.org-evil.com", "www.example.org", "example.com"),
        *("example.org..", ".example.org", "example.org@evil.com", "user:example.org", "example.org%2eevil.com"),
        *("example.org\0.evil.com", "example.org evil.com", "example\uff0eorg", "ex\u0430mple.org", "example\u3002org"),
        *("xn--exmple-4nf.org", "xn--example-.org", "", ".", "-example.org", "[example.org]", "a" * 300 + ".org"),
    ],
)
def test_what_only_looks_like_the_name_is_not_it(host: str) -> None:
    assert not allows("example.org", host)


@pytest.mark.parametrize(
    "host", ["127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "127.0.0.1.", "1.2.3", "[::1%25lo]", "[::1"]
)
def test_addresses_in_old_forms_are_no_names(host: str) -> None:
    with suppress(HostError):
        assert not isinstance(canonical(host), str)


def test_a_pattern_is_for_the_ports_of_the_web_unless_it_names_one() -> None:
    assert allows("example.org", "example.org", 80)
    assert allows("example.org", "example.org", 443)
    assert not allows("example.org", "example.org", 22)
    assert not allows("all", "example.org", 22)
    assert allows("example.org:22", "example.org", 22)
    assert not allows("example.org:22", "example.org", 443)


def test_a_pattern_may_be_written_in_any_alphabet() -> None:
    assert allows("m\u00fcnchen.example", "xn--mnchen-3ya.example")
    assert allows("*.M\u00dcNCHEN.example", "www.xn--mnchen-3ya.example")
    assert not allows("ex\u0430mple.org", "example.org")  # a Cyrillic letter


@pytest.mark.parametrize("preset", ["pypi", "npm", "debian", "PyPI"])
def test_a_preset_is_several_hosts_and_not_a_name(preset: str) -> None:
    hosts = [pattern.host for pattern in parse(preset)]
    assert hosts
    assert all(allows(preset, host) and not allows(preset, f"{host}.evil.com") for host in hosts)
    assert not allows(preset, preset)


@pytest.mark.parametrize(
    "text",
    [
        *("", "*", "*.", "a*.org", "*.*.org", "example.*", "https://example.org", "example.org/path", "1.2.3.4"),
        *("[::1]", "::1", "example.org:0", "example.org:70000", "example.org:http", "a b", "10.0.0.0/8", "exa_\n.org"),
        *("::1:80", "127.1:80", "10.0.0.1:", "10.0.0.0/8:80", "2130706433:80", "all.", "all。"),
    ],
)
def test_what_is_no_pattern_is_told_so(text: str) -> None:
    with pytest.raises(HostError, match=r"\w"):
        parse(text)

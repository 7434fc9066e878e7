"""Whatever a program in the sandbox sends to the proxy is refused, or goes to a host that is allowed."""

from __future__ import annotations

import asyncio
import ipaddress
import random
import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.sandbox.egress.addresses import why_never, why_refused
from handiwork.sandbox.egress.hosts import HostError, allowing, canonical, parse
from handiwork.sandbox.egress.request import MalformedRequestError, Request, read_request
from tests.fuzz.settings import fuzz_seed, fuzz_settings

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
ALLOWED = [pattern for text in ("example.org", "*.example.net", "10.0.0.5:8080") for pattern in parse(text)]
HOSTS = [
    *("example.org", "EXAMPLE.org.", "a.example.net", "example.net", "evil.org", "example.org.evil.org", "localhost"),
    *("10.0.0.5", "10.0.0.6", "[::1]", "[::ffff:10.0.0.5]", "127.0.0.1", "2130706433", "0x7f.1", "xn--e", "[", ""),
]
PORTS = ["", ":80", ":443", ":8080", ":0", ":65536", ":99999999999", f":{'9' * 5000}", ":x", ":-1", ":\u0663"]
PIECES = [
    *(b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b"@", b"/", b"?", b"#", b"%00", b"\xff", b"\xe2\x80\xa8"),
    *(b"example.org", b"evil.org", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"HTTP/1.1", b"GET "),
]


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def request(chance: random.Random) -> bytes:
    """Return a request to a proxy, most of them with something wrong."""
    host = chance.choice(HOSTS) + chance.choice(PORTS)
    target = host if chance.random() < 0.5 else f"http://{chance.choice(['', 'user:pass@'])}{host}/path?q#f"
    method = "CONNECT" if target is host else chance.choice(["GET", "POST", "HEAD", "get", "X" * 40])
    headers = chance.choices([f"Host: {chance.choice(HOSTS)}", "X: y", "Content-Length: 3", "Proxy-Thing: z"], k=2)
    data = bytearray("\r\n".join([f"{method} {target} HTTP/1.1", *headers, "", ""]).encode())
    for _ in range(chance.choice([0, 0, 1, 2, 5])):
        at = chance.randrange(len(data) + 1)
        to = at + chance.randrange(6)
        data[at:to] = chance.choice([b"", bytes(data[at:to]) * 2, chance.randbytes(to - at), chance.choice(PIECES)])
    return bytes(data)


async def read(data: bytes) -> Request | None:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    return await read_request(reader)


def decided(asked: Request) -> bool:
    """Return whether the request is let through, and check that only the allowed are."""
    try:
        host = canonical(asked.host)
    except HostError:
        return False
    if allowing(ALLOWED, host, asked.port) is None:
        return False
    name = asked.host.lower().removesuffix(".")
    if name == "10.0.0.5":
        assert asked.port == 8080
    else:
        assert name == "example.org" or re.fullmatch(r"([a-z0-9_-]+\.)+example\.net", name)
        assert asked.port in (80, 443)
    return True


@fuzz_seed
@fuzz_settings
@given(st.integers(0, 2**64))
def test_no_bytes_are_let_through_to_a_host_that_is_not_allowed(runner: asyncio.Runner, seed: int) -> None:
    chance = random.Random(seed)
    data = request(chance) if seed % 10 else chance.randbytes(chance.randrange(200))
    try:
        asked = runner.run(read(data))
    except MalformedRequestError:
        return
    if asked is None or not decided(asked) or not asked.method:
        return
    # What is passed on is one request, to the host that was decided on, and nothing that another server could split.
    head = asked.head(asked.path)
    lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    assert not re.search(rb"[\r\n]", head.replace(b"\r\n", b""))
    assert [line for line in lines if line.lower().startswith(b"host:")] == [f"Host: {asked.authority}".encode()]
    assert sum(line.lower().startswith(b"content-length") for line in lines) <= 1
    assert not any(line.lower().startswith(b"transfer-encoding") for line in lines)


@fuzz_seed
@fuzz_settings
@given(st.integers(0, 2**64))
def test_any_text_is_a_pattern_or_an_error_and_allows_no_other_host(seed: int) -> None:
    chance = random.Random(seed)
    characters = chance.choices("aAzé0-_.*:[]/@ \t\0\u0663\u3002\uff0e\ud800", k=chance.randrange(12))
    text = chance.choice(["", "*.", "all", "pypi"]) + chance.choice([*HOSTS, ""]) + "".join(characters)
    text += chance.choice(PORTS)
    port = chance.choice([-1, 0, 80, 443, 8080, 70_000])
    try:
        patterns = parse(text)
    except HostError:
        return
    assert all(pattern.ports <= frozenset(range(1, 65536)) for pattern in patterns)
    if text.strip().lower() != "all" and not text.strip().lower().startswith("all:"):
        assert allowing(list(patterns), "nobody-allowed-this.example", port) is None


@fuzz_seed
@fuzz_settings
@given(st.integers(0, 2**128 - 1), st.booleans())
def test_no_address_of_this_machine_or_its_network_is_taken_for_the_internet_s(number: int, old: bool) -> None:
    address = ipaddress.IPv4Address(number % 2**32) if old else ipaddress.IPv6Address(number)
    if why_refused(address) is None:
        inner = (address.is_loopback, address.is_link_local, address.is_multicast, address.is_unspecified)
        assert not any(inner)
        assert not any(address in ipaddress.ip_network(net) for net in ("10.0.0.0/8", "192.168.0.0/16", "fc00::/7"))
        assert why_never(address) is None

"""What the proxy lets out of a sandbox, to where, and what it says where it does not."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.egress.world import OTHER, PUBLIC, way_out

ESTABLISHED = "HTTP/1.1 200 Connection established"


async def test_an_allowed_host_is_reached_by_a_tunnel(tmp_path: Path) -> None:
    async with way_out(tmp_path, "example.org") as way:
        assert await way.tunnel("Example.ORG.:443") == ESTABLISHED
        assert way.received == [b"GET /inner HTTP/1.0\r\n\r\n"]
        assert way.world.connected == [(PUBLIC, 443)]
        (event,) = way.events
        assert (event.host, event.port, event.allowed) == ("example.org", 443, True)
        assert event.reason == f"allowed by example.org, at {PUBLIC}"


async def test_an_allowed_host_is_asked_for_a_page_as_itself(tmp_path: Path) -> None:
    async with way_out(tmp_path, "example.org") as way:
        secret = "Proxy-Authorization: Basic eA=="
        answer = await way.get("http://example.org/a?b=c", "Host: evil.com", "Accept: text/*", secret)
        assert answer.endswith("here I am\n")
        (request,) = way.received
        assert request == (
            b"GET /a?b=c HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\nAccept: text/*\r\n\r\n"
        )  # no word of evil.com, nor what was for the proxy


async def test_a_body_is_passed_on_and_nothing_after_it(tmp_path: Path) -> None:
    got: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        got.append(await reader.readexactly(5))
        await asyncio.sleep(0.05)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        writer.close()
        got.append(await reader.read())

    async with way_out(tmp_path, "example.org") as way, await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        way.world._port = server.sockets[0].getsockname()[1]
        await way.ask(
            b"POST http://example.org/ HTTP/1.1\r\nContent-Length: 5\r\n\r\nhelloCONNECT evil.com:443 HTTP/1.1\r\n\r\n"
        )
    assert got == [b"hello", b""]


async def test_a_refusal_says_why_and_what_the_user_can_do(tmp_path: Path) -> None:
    async with way_out(tmp_path, "example.org") as way:
        for answer in (await way.tunnel("evil.com:443"), await way.get("http://evil.com/")):
            assert answer.startswith("HTTP/1.1 403 Forbidden")
            assert "evil.com:" in answer
            assert "handiwork allow evil.com" in answer
        assert "handiwork allow evil.com:8080" in await way.tunnel("evil.com:8080")
        assert not way.world.connected
        assert [(event.host, event.allowed) for event in way.events] == [("evil.com", False)] * 3


async def test_without_anything_allowed_nothing_is_reached(tmp_path: Path) -> None:
    async with way_out(tmp_path) as way:
        assert "403" in await way.tunnel("example.org:443")
        assert not way.world.connected


async def test_an_open_tunnel_ends_when_its_host_is_no_longer_allowed(tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data)
        writer.close()

    async with way_out(tmp_path, "example.org") as way, await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        way.world._port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_unix_connection(way.socket)
        writer.write(b"CONNECT example.org:443 HTTP/1.1\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(ESTABLISHED.encode())
        writer.write(b"echo")
        assert await reader.readexactly(4) == b"echo"
        way.allowed.clear()
        assert await asyncio.wait_for(reader.read(), 20) == b""
        writer.close()


async def test_a_host_can_be_allowed_while_it_runs(tmp_path: Path) -> None:
    async with way_out(tmp_path) as way:
        assert "403" in await way.tunnel("example.org:443")
        way.allowed.append("*.org")
        assert await way.tunnel("example.org:443") == ESTABLISHED


@pytest.mark.parametrize("allowed", ["example.org", "all"])
@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "10.0.0.1", "::1", "::ffff:127.0.0.1", "0.0.0.0"])
async def test_an_allowed_name_does_not_lead_inwards(tmp_path: Path, allowed: str, address: str) -> None:
    async with way_out(tmp_path, allowed, names={"example.org": [[address]]}) as way:
        assert "not on the internet" in await way.tunnel("example.org:443")
        assert "not on the internet" in await way.get("http://example.org/")
        assert not way.world.connected
        assert not any(event.allowed for event in way.events)


async def test_a_name_that_changes_is_looked_up_once(tmp_path: Path) -> None:
    names = {"example.org": [[PUBLIC], ["127.0.0.1"], ["169.254.169.254"]]}
    async with way_out(tmp_path, "example.org", names=names) as way:
        assert await way.tunnel("example.org:443") == ESTABLISHED
        assert "loopback" in await way.tunnel("example.org:443")
        assert "link-local" in await way.tunnel("example.org:443")
        assert way.world.connected == [(PUBLIC, 443)]


async def test_of_several_addresses_only_the_public_ones_are_tried(tmp_path: Path) -> None:
    async with way_out(tmp_path, "example.org", names={"example.org": [["127.0.0.1", OTHER, "10.0.0.1"]]}) as way:
        assert await way.tunnel("example.org:443") == ESTABLISHED
        assert way.world.connected == [(OTHER, 443)]


@pytest.mark.parametrize("authority", [f"{PUBLIC}:443", "[2606:2800:220:1::1]:443"])
async def test_a_public_address_is_reached_by_all_only(tmp_path: Path, authority: str) -> None:
    async with way_out(tmp_path, "example.org", "*.org", "pypi") as way:
        assert "addresses are not reached" in await way.tunnel(authority)
        way.allowed.append("all")
        assert await way.tunnel(authority) == ESTABLISHED


@pytest.mark.parametrize(
    "authority",
    [
        *("127.0.0.1:443", "127.1:443", "2130706433:443", "0x7f000001:443", "169.254.169.254:80", "[::1]:443"),
        *("[::ffff:127.0.0.1]:443", "[fe80::1%1]:443", "localhost:443", "0:443", "example.org\\@evil.com:443"),
    ],
)
async def test_even_all_does_not_lead_inwards(tmp_path: Path, authority: str) -> None:
    async with way_out(tmp_path, "all", names={"localhost": [["127.0.0.1", "::1"]]}) as way:
        assert "403" in await way.tunnel(authority)
        assert not way.world.connected
        assert [event.allowed for event in way.events] == [False]


@pytest.mark.parametrize("authority", ["10.0.0.5:8080", "127.0.0.1:8080", "[fd00::5]:8080", "[::1]:80"])
async def test_an_inner_address_is_reached_where_the_very_address_and_port_are_allowed(
    tmp_path: Path, authority: str
) -> None:
    host, _, port = authority.rpartition(":")
    proxy = {"ALL_PROXY": "http://proxy.corp"}
    async with way_out(tmp_path, "all", names={"inner.org": [[host.strip("[]")]]}, environment=proxy) as way:
        assert f"the user can allow it while this runs: handiwork allow {authority}" in await way.tunnel(authority)
        way.allowed.append(authority)
        assert await way.tunnel(authority) == ESTABLISHED
        assert (await way.get(f"http://{authority}/")).endswith("here I am\n")
        assert way.world.connected == [(host.strip("[]"), int(port))] * 2
        assert way.events[-1].reason == f"allowed by {authority}"
        assert "403" in await way.tunnel(f"{host}:9")
    async with way_out(tmp_path, authority, f"inner.org:{port}", names={"inner.org": [[host.strip("[]")]]}) as way:
        refusal = await way.tunnel(f"inner.org:{port}")
        assert "not on the internet" in refusal
        assert f"only its address can be allowed, and asked for: {authority})" in refusal
        assert not way.world.connected


async def test_an_address_of_no_use_but_harm_is_not_offered(tmp_path: Path) -> None:
    async with way_out(tmp_path, "all") as way:
        assert "handiwork allow" not in await way.tunnel("169.254.169.254:80")


async def test_a_host_that_is_not_there_is_no_matter_of_permission(tmp_path: Path) -> None:
    async with way_out(tmp_path, "nowhere.org") as way:
        assert (await way.tunnel("nowhere.org:443")).startswith("HTTP/1.1 502")


async def test_a_name_without_addresses_is_refused(tmp_path: Path) -> None:
    async with way_out(tmp_path, "example.org", names={"example.org": [[]]}) as way:
        assert "no address" in await way.tunnel("example.org:443")


async def test_while_nobody_runs_the_session_nothing_leaves(tmp_path: Path) -> None:
    async with way_out(tmp_path, "example.org") as way:
        way.running = False
        assert "the session stands still" in await way.tunnel("example.org:443")
        assert not way.world.connected


@pytest.mark.parametrize(
    "request_",
    [
        *(b"hello\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET https://example.org/ HTTP/1.1\r\n\r\n"),
        *(b"CONNECT example.org HTTP/1.1\r\n\r\n", b"CONNECT example.org:x HTTP/1.1\r\n\r\n"),
        *(b"CONNECT :443 HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\r\n\r\n", b"GET http://example.org/ HTTP/2\r\n\r\n"),
        *(b"GET http://example.org/\nX: y HTTP/1.1\r\n\r\n", b"GET http://example.org/ HTTP/1.1\r\nX: y\nZ: w\r\n\r\n"),
        *(
            b"GET http://example.org/ HTTP/1.1\r\n folded: x\r\n\r\n",
            b"GET http://example.org/ HTTP/1.1\r\nX : y\r\n\r\n",
        ),
        b"POST http://example.org/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST http://example.org/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"GET http://example.org/ HTTP/1.1\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
    ],
)
async def test_what_is_not_clearly_a_request_is_not_carried_out(tmp_path: Path, request_: bytes) -> None:
    async with way_out(tmp_path, "all", "example.org") as way:
        assert (await way.ask(request_)).startswith("HTTP/1.1 4")
        assert not way.world.connected


class TestAProxyOfTheMachinesOwn:
    async def test_is_asked_for_tunnels_by_name(self, tmp_path: Path) -> None:
        environment = {"HTTPS_PROXY": "http://me:pass@proxy.corp:3129", "no_proxy": "localhost,.inner.org"}
        greeting = b"HTTP/1.1 200 OK\r\n\r\n"
        async with way_out(tmp_path, "example.org", environment=environment, greeting=greeting) as way:
            assert await way.tunnel("example.org:443") == ESTABLISHED
            assert way.world.connected == [("proxy.corp", 3129)]
            assert way.received[0] == (
                b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n"
                b"Proxy-Authorization: Basic bWU6cGFzcw==\r\n\r\n"
            )
            assert way.events[0].reason == "allowed by example.org, by this machine's own proxy"

    async def test_is_asked_for_pages_by_their_whole_address(self, tmp_path: Path) -> None:
        async with way_out(tmp_path, "example.org", environment={"http_proxy": "proxy.corp:3129"}) as way:
            assert (await way.get("http://example.org/a")).endswith("here I am\n")
            assert way.received[0].startswith(b"GET http://example.org/a HTTP/1.1\r\nHost: example.org\r\n")

    async def test_is_not_asked_for_what_is_not_allowed_nor_for_inner_addresses(self, tmp_path: Path) -> None:
        async with way_out(tmp_path, "example.org", environment={"ALL_PROXY": "http://proxy.corp"}) as way:
            assert "403" in await way.tunnel("evil.com:443")
            way.allowed.append("all")
            assert "403" in await way.tunnel("169.254.169.254:80")
            assert not way.world.connected

    async def test_is_passed_by_where_no_proxy_says_so(self, tmp_path: Path) -> None:
        environment = {"https_proxy": "http://proxy.corp", "no_proxy": "foo.com, .org"}
        async with way_out(tmp_path, "example.org", environment=environment) as way:
            assert await way.tunnel("example.org:443") == ESTABLISHED
            assert way.world.connected == [(PUBLIC, 443)]

    async def test_that_refuses_or_speaks_another_protocol_is_said(self, tmp_path: Path) -> None:
        greeting = b"HTTP/1.1 407 Who are you\r\n\r\n"
        proxy = {"https_proxy": "http://proxy.corp"}
        async with way_out(tmp_path, "example.org", environment=proxy, greeting=greeting) as way:
            assert "407 Who are you" in await way.tunnel("example.org:443")
        async with way_out(tmp_path, "example.org", environment={"https_proxy": "socks5://proxy.corp:1080"}) as way:
            assert "https_proxy" in await way.tunnel("example.org:443")

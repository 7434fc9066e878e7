"""The only way out of a sandbox is its proxy, and programs inside find it by themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from handiwork.events.record import EgressEvent
from handiwork.sandbox.bubblewrap.sandbox import BubblewrapSandbox
from handiwork.sandbox.egress.proxy import Egress
from tests.egress.world import Way, way_out
from tests.sandbox.helpers import PYTHON, Box, output, run

PUBLIC = "93.184.216.34"

ESCAPES = {
    "tcp": f"socket.create_connection(('{PUBLIC}', 443), 2)",
    "udp": f"socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('{PUBLIC}', 53))",
    "dns": "socket.getaddrinfo('example.org', 443)",
    "ipv6": "socket.create_connection(('2606:2800:220:1::1', 443), 2)",
    "ipv6 udp": "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b'x', ('2606:2800:220:1::1', 53))",
    "multicast": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('224.0.0.1', 53))",
    "raw": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "metadata": "socket.create_connection(('169.254.169.254', 80), 2)",
}


async def started(box: Box, way: Way) -> BubblewrapSandbox:
    sandbox = box.make(egress=way.egress)
    await sandbox.start()
    return sandbox


async def test_nothing_leaves_but_through_the_proxy(box: Box, tmp_path: Path) -> None:
    async with way_out(tmp_path, "all") as way:
        sandbox = await started(box, way)
        for name, escape in ESCAPES.items():
            done = await run(sandbox, f'{PYTHON} -c "import socket; {escape}"')
            assert done.exit_code == 1, name
            assert "rror: [Errno" in done.text, name
        assert not way.events
        assert not way.world.connected


async def test_an_allowed_host_is_reached_and_others_are_not(box: Box, tmp_path: Path) -> None:
    async with way_out(tmp_path, "example.org") as way:
        sandbox = await started(box, way)
        assert await output(sandbox, "curl -sS http://example.org/a") == "here I am"
        assert "handiwork allow evil.com" in await output(sandbox, "curl -sS http://evil.com/")
        by_python = "import urllib.request as u; print(u.urlopen('http://example.org/b').read().decode(), end='')"
        assert await output(sandbox, f'{PYTHON} -c "{by_python}"') == "here I am"
        told = await run(sandbox, f"{PYTHON} -c \"import urllib.request as u; u.urlopen('https://evil.com/')\"")
        assert "Tunnel connection failed: 403 Forbidden (evil.com:443 is refused" in told.text
        assert [(event.host, event.allowed) for event in way.events] == [
            *(("example.org", True), ("evil.com", False), ("example.org", True), ("evil.com", False))
        ]


async def test_a_host_can_be_allowed_while_the_sandbox_runs(box: Box, tmp_path: Path) -> None:
    async with way_out(tmp_path) as way:
        sandbox = await started(box, way)
        assert "refused" in await output(sandbox, "curl -sS http://example.org/")
        way.allowed.append("example.org")
        assert await output(sandbox, "curl -sS http://example.org/") == "here I am"


async def test_its_own_services_are_reached_without_the_proxy(box: Box, tmp_path: Path) -> None:
    async with way_out(tmp_path, "all") as way:
        sandbox = await started(box, way)
        await output(sandbox, f"echo mine > page; {PYTHON} -m http.server 8123 >/dev/null 2>&1 &")
        get = "curl -s --retry 20 --retry-connrefused --retry-delay 1"
        for host in ("localhost", "127.0.0.1", "0.0.0.0"):
            assert await output(sandbox, f"{get} http://{host}:8123/page") == "mine"
        assert not way.events


async def test_the_proxys_socket_is_all_of_the_machine_that_is_seen(box: Box, tmp_path: Path) -> None:
    async with way_out(tmp_path, "all") as way:
        sandbox = await started(box, way)
        assert set((await output(sandbox, "ls /run/handiwork")).split()) <= {"proxy", "certificates.pem"}
        assert await output(sandbox, "rm -f /run/handiwork/proxy 2>/dev/null || echo kept") == "kept"
        certificates = await output(sandbox, "for v in SSL_CERT_FILE PIP_CERT GIT_SSL_CAINFO; do echo ${!v}; done")
        assert len(set(certificates.split())) <= 1


async def test_it_is_there_again_when_the_sandbox_was_started_again(box: Box, tmp_path: Path) -> None:
    async with way_out(tmp_path, "example.org") as way:
        sandbox = await started(box, way)
        await sandbox.start()
        assert await output(sandbox, "curl -sS http://example.org/a") == "here I am"


async def test_without_a_way_out_there_is_none(box: Box) -> None:
    sandbox = box.make()
    await sandbox.start()
    assert await output(sandbox, "env | grep -i proxy; ls /run") == ""


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_pip_finds_its_registry_by_itself(box: Box) -> None:
    events: list[EgressEvent] = []

    async def record(event: EgressEvent) -> bool:
        events.append(event)
        return True

    sandbox = box.make(egress=Egress(lambda: ["pypi"], record))
    await sandbox.start()
    done = await run(sandbox, "python3 -m pip download --no-deps --no-cache-dir --retries 1 -d got iniconfig; ls got")
    if any("cannot be resolved" in event.reason for event in events):
        pytest.skip("this machine does not reach the registry")
    assert "iniconfig-" in done.text.splitlines()[-1], done
    assert {event.allowed for event in events} == {True}
    refused = await run(sandbox, "python3 -m pip download --no-deps --retries 1 -i https://evil.com/simple iniconfig")
    assert refused.exit_code != 0
    assert "handiwork allow evil.com" in refused.text

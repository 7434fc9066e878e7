"""In every image, as in bubblewrap, the proxy is the only way out, and pip finds it by itself."""

from __future__ import annotations

import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from handiwork.events.record import EgressEvent
from handiwork.sandbox.egress.proxy import Egress
from scripts.harness.images import image
from tests.docker.conftest import IMAGES
from tests.egress.world import way_out
from tests.sandbox.helpers import PYTHON, Box, output, run
from tests.sandbox.test_egress import ESCAPES

PACKAGE = "iniconfig"
PIP = f"{PYTHON} -m pip"  # the bundle's, so that an image needs none
ONCE = "--no-deps --no-cache-dir --retries 1"

pytestmark = [pytest.mark.usefixtures("docker_daemon"), pytest.mark.parametrize("name", [*IMAGES, "bubblewrap"])]


@pytest.fixture
def anywhere(box: Box, name: str) -> Box:
    box.image = None if name == "bubblewrap" else image(name)
    return box


def registry() -> tuple[str, str]:
    """What to allow for the index that this machine's pip is configured for, and pip's option that names it."""
    asked = ["pip", "config", "get", "global.index-url"]
    index = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return (urlsplit(index).netloc.rpartition("@")[2], f"--index-url {index}") if index else ("pypi", "")


async def test_pip_installs_from_an_allowed_registry(anywhere: Box) -> None:
    events: list[EgressEvent] = []

    async def record(event: EgressEvent) -> bool:
        events.append(event)
        return True

    allowed, index = registry()
    sandbox = anywhere.make(egress=Egress(lambda: [allowed], record))
    await sandbox.start()
    installed = await run(sandbox, f"{PIP} install {ONCE} {index} --target got {PACKAGE}")
    if any("cannot be resolved" in event.reason for event in events):
        pytest.skip("this machine does not reach the registry")
    assert installed.exit_code == 0, installed
    assert PACKAGE in (await output(sandbox, "ls got")).split()
    assert events
    assert all(event.allowed and event.reason.startswith(f"allowed by {allowed}") for event in events)


async def test_what_is_not_allowed_is_refused_and_how_to_allow_it_is_said(anywhere: Box, tmp_path: Path) -> None:
    async with way_out(tmp_path) as way:
        sandbox = anywhere.make(egress=way.egress)
        await sandbox.start()
        refused = await run(sandbox, f"{PIP} download {ONCE} --index-url https://example.org/simple {PACKAGE}")
        assert refused.exit_code != 0
        assert "handiwork allow example.org" in refused.text
        assert {(event.host, event.port, event.allowed) for event in way.events} == {("example.org", 443, False)}
        way.allowed.append("example.org")
        get = "import urllib.request as u; print(u.urlopen('http://example.org/').read().decode(), end='')"
        assert await output(sandbox, f'{PYTHON} -c "{get}"') == "here I am"
        assert way.events[-1].allowed


async def test_nothing_leaves_but_through_the_proxy(anywhere: Box, tmp_path: Path) -> None:
    async with way_out(tmp_path, "all") as way:
        sandbox = anywhere.make(egress=way.egress)
        await sandbox.start()
        for name, escape in ESCAPES.items():
            done = await run(sandbox, f'{PYTHON} -c "import socket; {escape}"')
            assert done.exit_code == 1, name
            assert "rror: [Errno" in done.text, name
        assert not way.events
        assert not way.world.connected
        assert await output(sandbox, "rm -f /run/handiwork/proxy 2>/dev/null || echo kept") == "kept"


async def test_without_a_proxy_there_is_no_way_at_all(anywhere: Box) -> None:
    sandbox = anywhere.make()
    await sandbox.start()
    assert await output(sandbox, "env | grep -i _proxy=h; ls /run | grep -x handiwork || true") == ""
    done = await run(sandbox, f"{PYTHON} -c \"import urllib.request as u; u.urlopen('http://93.184.216.34/')\"")
    assert "unreachable" in done.text

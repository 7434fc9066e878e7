"""A Docker daemon that sees no file of this machine: the same sandbox, whose files are carried there and back."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from handiwork.errors import SandboxError
from handiwork.events.record import EgressEvent
from handiwork.log.store import Store
from handiwork.sandbox import bundle
from handiwork.sandbox.base import Sandbox
from handiwork.sandbox.docker import cli as docker_cli
from handiwork.sandbox.docker import remote_bundle as docker_bundle
from handiwork.sandbox.docker.remote_files import FOLDER, VolumeRecord
from handiwork.sandbox.egress.proxy import Egress
from handiwork.session.time_travel.fork import fork
from handiwork.workspace.layers import layers_of, upper_dir
from scripts.harness.daemon import daemon_elsewhere
from scripts.harness.images import image
from tests.docker.test_any_image import (
    test_a_command_in_the_background,
    test_a_program_that_waits_for_input_gets_it,
    test_an_interrupt_leaves_the_shell_as_it_was,
    test_bash,
    test_files,
    test_nothing_of_the_system_can_be_changed_and_nothing_is_reached,
    test_the_notebook,
)
from tests.docker.test_owners_that_die_in_docker import CHECKOUT, containers, docker, volumes
from tests.sandbox.helpers import Box, new_box, output, run
from tests.snapshots.workbench import Workbench, outputs

__all__ = [
    "test_a_command_in_the_background",
    "test_a_program_that_waits_for_input_gets_it",
    "test_an_interrupt_leaves_the_shell_as_it_was",
    "test_bash",
    "test_files",
    "test_nothing_of_the_system_can_be_changed_and_nothing_is_reached",
    "test_the_notebook",
]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.docker,
    pytest.mark.timeout(600),
    pytest.mark.usefixtures("elsewhere", "nothing_is_left"),
]


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[str]:
    with daemon_elsewhere([Path("/tmp"), bundle.bundle_root(), bundle.inside_code()]) as also:
        if left := left_volumes():
            docker("volume", "rm", *left)  # by tests that were killed
        yield also


def left_volumes() -> set[str]:
    return volumes() - set(docker("volume", "ls", "--quiet", "--filter", f"label={docker_bundle.LABEL}"))


@pytest.fixture
async def nothing_is_left(elsewhere: str, box: Box) -> AsyncIterator[None]:
    """Nothing but the bundle's volume."""
    yield
    await box.stack.aclose()
    assert (containers(), left_volumes()) == (set(), set())


@pytest.fixture(params=["bookworm"])
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def sandbox(elsewhere: str, box: Box, name: str) -> Sandbox:
    box.image = image(name)
    made = box.make()
    await made.start()
    return made


CHANGES = """
mkdir -p new/deep .hidden; echo x > new/deep/file; echo y > .hidden/y; chmod 4755 new/deep/file; chmod 1777 new
rm README; rm -r src; mkdir src; echo again > src/other; ln -s /etc/passwd link; ln -s ../.. src/up; mkfifo pipe
printf 'a\\nb' > "$(printf 'odd\\n\\377name')"; echo secret > locked; chmod 000 locked
mkdir -p closed/in; echo z > closed/in/z; chmod 555 closed; echo home > ~/kept; ln new/deep/file hard
"""

LISTED = (
    "ls -AlR --time-style=full-iso . ~ | sed -E '/^(total|d|p)/d; s/^([^ ]+) +[0-9]+ /\\1 /; /^l/s/ 20.* -> / -> /'"
)
"""Shows all but the number of a file's names, which become files of their own, and what only files keep."""


def described(root: Path) -> dict[str, tuple[object, ...]]:
    """Type, permissions, bytes and link target of everything in an upper layer, and what it hides."""
    found: dict[str, tuple[object, ...]] = {}
    for folder, names, files in os.walk(os.fsencode(root)):
        for path in (os.path.join(folder, name) for name in (*names, *files)):
            status = os.lstat(path)
            content: object = None
            if stat.S_ISLNK(status.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(status.st_mode):
                content = Path(os.fsdecode(path)).read_bytes()
            elif stat.S_ISDIR(status.st_mode):
                content = "user.overlay.opaque" in os.listxattr(path)
            mode = 0 if stat.S_ISLNK(status.st_mode) else status.st_mode & 0o1777
            what = stat.S_IFMT(status.st_mode), mode, status.st_rdev
            found[os.fsdecode(os.path.relpath(path, os.fsencode(root)))] = (*what, content)
    return found


async def test_what_is_changed_there_is_here_as_if_the_daemon_were(box: Box, tmp_path: Path) -> None:
    box.image = image("bookworm")
    there = box.make()
    await there.start()
    async with new_box(tmp_path / "local") as local:
        here = local.make()
        await here.start()
        for sandbox in (here, there):
            await output(sandbox, CHANGES)
        expected = described(upper_dir(local.session_dir))
        at_once = described(upper_dir(box.session_dir))
        for sandbox in (here, there):
            await output(
                sandbox, "rm -r new; chmod 755 closed; rm -r closed; mv src/other src/third; mv .hidden src/up2"
            )
        await there.close()
        await here.close()
        later = described(upper_dir(local.session_dir))
    assert at_once == expected
    assert "new/deep/file" in at_once
    assert described(upper_dir(box.session_dir)) == later
    assert (box.session_dir / "home/kept").read_text() == "home\n"


async def test_a_session_goes_on_with_its_files(box: Box, sandbox: Sandbox) -> None:
    await output(sandbox, f"{CHANGES}chmod u-s new/deep/file")
    listed = await output(sandbox, LISTED)
    await sandbox.close()
    assert left_volumes() == set()
    again = box.make()
    await again.start()
    assert await output(again, LISTED) == listed
    assert await output(again, "cat ~/kept src/other; { echo x >> locked; } 2> /dev/null || true") == "home\nagain"


async def test_a_directory_that_is_not_copied_is_laid_under(box: Box, elsewhere: str) -> None:
    box.image = image("bookworm")
    (box.project / "web/modules").mkdir(parents=True)
    (box.project / "web/modules/one").write_text("one\n")
    (box.session_dir / "base/web").mkdir(parents=True)
    (box.session_dir / "base/README").write_text("read me\n")
    sandbox = box.make(mounts=["web/modules"])
    await sandbox.start()
    assert await output(sandbox, "cat web/modules/one; echo two > web/modules/two; rm web/modules/one") == "one"
    await sandbox.close()
    upper = layers_of(box.session_dir, "web/modules") / "upper"
    assert (upper / "two").read_text() == "two\n"
    assert not (upper / "one").is_file()
    assert (box.project / "web/modules/one").exists()


OWNER = """
import asyncio, sys
from pathlib import Path
from handiwork.events.action import CmdRunAction
from handiwork.sandbox.create import create
from handiwork.sandbox.egress.proxy import Egress
from handiwork.workspace.layers import SandboxPaths
from tests.sandbox.helpers import Blobs, run

async def main():
    image, session, project = sys.argv[1:]
    places = SandboxPaths(Path(session), Path(project), Path(session, "base"))
    sandbox = create("docker", places, Blobs().save, image=image)
    await sandbox.start()
    await run(sandbox, "echo first > first; rm README")
    writing = "n=0; while true; do n=$((n + 1)); echo $n >> count; [ $n = 500 ] && echo ready; done"
    action = CmdRunAction(command=writing, timeout=1000)
    await sandbox.execute(action, lambda text: print(text, end="", flush=True))

asyncio.run(main())
"""


async def test_nothing_is_lost_by_kill_9_of_the_owner(box: Box, elsewhere: str) -> None:
    box.image = image("bookworm")
    box.make()  # has made the base
    owner = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", OWNER, box.image, str(box.session_dir), str(box.project)),
        stdout=asyncio.subprocess.PIPE,
        cwd=CHECKOUT,
    )
    try:
        assert owner.stdout is not None
        assert b"ready" in await owner.stdout.readline()
    finally:
        owner.send_signal(signal.SIGKILL)
        await owner.wait()
    while containers():
        await asyncio.sleep(0.1)
    assert len(left_volumes()) == 1
    assert not (upper_dir(box.session_dir) / "count").exists()
    other = box.session_dir.with_name("other")
    other.mkdir(mode=0o700)
    unrelated = Box(other, box.project, box.blobs, box.stack, box.image).make()
    await unrelated.start()
    await unrelated.close()
    assert len(left_volumes()) == 1
    again = box.make()
    await again.start()
    assert len((upper_dir(box.session_dir) / "count").read_text().split()) >= 500
    assert (await output(again, "cat first; ls README 2>/dev/null || echo gone")) == "first\ngone"
    assert not VolumeRecord.path(box.session_dir).with_name("elsewhere-fresh").exists()


async def test_a_start_that_was_cut_while_files_were_sent_takes_nothing_for_deleted(box: Box, sandbox: Sandbox) -> None:
    await output(sandbox, "echo kept > kept")
    await sandbox.close()
    daemon = docker("info", "--format", "{{.ID}}")[0]
    docker("volume", "create", f"--label={FOLDER}={box.session_dir}", "handiwork-session-half")
    VolumeRecord(daemon, "somewhere", "handiwork-session-half").save(box.session_dir)
    again = box.make()
    await again.start()
    assert await output(again, "cat kept README") == "kept\nread me"


async def test_what_waits_on_another_daemon_is_said(box: Box, elsewhere: str) -> None:
    box.image = image("bookworm")
    VolumeRecord("another", "tcp://there:2376", "handiwork-session-x", whole=True).save(box.session_dir)
    with pytest.raises(
        SandboxError, match="in the volume handiwork-session-x of the Docker daemon at tcp://there:2376"
    ):
        await box.make().start()


async def test_a_container_that_is_lost_is_started_again_with_all_files(box: Box, sandbox: Sandbox) -> None:
    (mine,) = docker("ps", "--quiet", "--filter", "name=handiwork-")
    running = asyncio.create_task(run(sandbox, "echo kept > kept; sleep 1000"))
    looking = ["docker", "exec", mine, "cat", f"{box.project}/kept"]
    while subprocess.run(looking, capture_output=True, check=False).stdout != b"kept\n":
        await asyncio.sleep(0.1)
    docker("kill", mine)
    with pytest.raises(SandboxError, match="lost"):
        await running
    await sandbox.start()
    assert await output(sandbox, "cat kept") == "kept"


async def test_what_cannot_be_had_there_is_said(box: Box, elsewhere: str, tmp_path: Path) -> None:
    box.image = image("bookworm")
    with pytest.raises(SandboxError, match="cannot work in place"):
        await box.in_place().start()
    with pytest.raises(SandboxError, match=f"so {tmp_path} cannot be mounted"):
        await box.make(read_only=[tmp_path]).start()
    sandbox = box.make(egress=Egress(lambda: ["pypi"], recorded))
    await sandbox.start()
    assert await output(sandbox, "echo [$https_proxy$HTTP_PROXY$SSL_CERT_FILE]") == "[]"


async def recorded(event: EgressEvent) -> bool:
    return True


async def test_a_daemon_behind_a_socket_of_this_machine(
    box: Box, elsewhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `ssh -L` forwards one, or as a container is given that of its host."""
    box.image = image("bookworm")
    monkeypatch.setenv("DOCKER_HOST", elsewhere)
    assert not await docker_cli.is_elsewhere()
    sandbox = box.make()
    await sandbox.start()
    assert await output(sandbox, "echo x > new; echo here") == "here"
    assert (upper_dir(box.session_dir) / "new").exists()
    async with sandbox.terminal((24, 80)) as terminal:
        await terminal.write(b"echo typed > typed; exit\n")
        while await terminal.read():
            pass
    assert (upper_dir(box.session_dir) / "typed").read_text() == "typed\n"
    docker("kill", *docker("ps", "--quiet"))
    await sandbox.close()
    assert VolumeRecord.load(box.session_dir) is not None
    again = box.make()
    await again.start()
    assert await output(again, "cat new typed") == "x\ntyped"
    await again.close()


async def test_a_context_that_leads_there(
    box: Box, elsewhere: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = os.environ["DOCKER_HOST"]
    box.image = image("bookworm")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    docker("context", "create", "there", f"--docker=host={host}")
    docker("context", "use", "there")
    monkeypatch.delenv("DOCKER_HOST")
    assert await docker_cli.is_elsewhere()
    monkeypatch.setenv("DOCKER_CONTEXT", "default")
    assert not await docker_cli.is_elsewhere()


async def test_snapshots_and_forks(tmp_path: Path, elsewhere: str) -> None:
    async with Store.open(tmp_path / "data") as store:
        bench = Workbench(tmp_path, store)
        log = await bench.ran(
            "echo one > one; rm README; export X=kept",
            "echo two > one; ln -s one two",
            sandbox="docker",
            image=image("bookworm"),
        )
        first, _ = outputs(await log.read())
        assert await bench.output(log, "cat one; readlink two") == "two\none\n"
        child = await fork(store, bench.data, log, first)
        assert await bench.output(child, "cat one; echo *; echo $X") == "one\none src\nkept\n"
    assert (containers(), left_volumes()) == (set(), set())

"""A Docker daemon that sees no file of this machine: the same sandbox, whose files are carried there and back."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from handiwork.log.store import Store
from handiwork.sandbox import bundle, docker_bundle, docker_cli
from handiwork.sandbox.base import Sandbox, SandboxError
from handiwork.sandbox.docker_elsewhere import FOLDER, Record
from handiwork.sandbox.layers import layers_of, upper_dir
from handiwork.session.forks import fork
from tests.docker.daemon import daemon_elsewhere
from tests.docker.images import image
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

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.usefixtures("elsewhere", "nothing_is_left")]


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[None]:
    with daemon_elsewhere([Path("/tmp"), bundle.bundle_root(), bundle.inside_code()]):
        yield


def left_volumes() -> set[str]:
    return volumes() - set(docker("volume", "ls", "--quiet", "--filter", f"label={docker_bundle.LABEL}"))


@pytest.fixture
async def nothing_is_left(elsewhere: None, box: Box) -> AsyncIterator[None]:
    """Nothing but the bundle's volume."""
    yield
    await box.stack.aclose()
    assert (containers(), left_volumes()) == (set(), set())


@pytest.fixture(params=["bookworm"])
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def sandbox(elsewhere: None, box: Box, name: str) -> Sandbox:
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


def described(root: Path) -> dict[str, tuple[object, ...]]:
    """Type, permissions, owner, bytes and link target of everything in an upper layer, and what it hides."""
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
            what = stat.S_IFMT(status.st_mode), status.st_mode & 0o1777, status.st_rdev, status.st_uid, status.st_gid
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
    await output(sandbox, CHANGES)
    listed = await output(sandbox, "ls -AlR --time-style=+ . ~ | grep -v ^total")
    await sandbox.close()
    assert left_volumes() == set()
    again = box.make()
    await again.start()
    assert await output(again, "ls -AlR --time-style=+ . ~ | grep -v ^total") == listed
    assert await output(again, "cat ~/kept src/other; cat new/deep/file >> locked || true") == "home\nagain"


async def test_a_directory_that_is_not_copied_is_laid_under(box: Box, elsewhere: None) -> None:
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
from handiwork.sandbox.layers import Places
from tests.sandbox.helpers import Blobs, run

async def main():
    image, session, project = sys.argv[1:]
    places = Places(Path(session), Path(project), Path(session, "base"))
    sandbox = create("docker", places, Blobs().save, image=image)
    await sandbox.start()
    await run(sandbox, "echo first > first; rm README")
    writing = "n=0; while true; do n=$((n + 1)); echo $n > count; [ $n = 500 ] && echo ready; done"
    action = CmdRunAction(command=writing, timeout=1000)
    await sandbox.execute(action, lambda text: print(text, end="", flush=True))

asyncio.run(main())
"""


async def test_nothing_is_lost_by_kill_9_of_the_owner(box: Box, elsewhere: None) -> None:
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
    assert int((upper_dir(box.session_dir) / "count").read_text()) >= 500
    assert (await output(again, "cat first count; ls README 2>/dev/null || echo gone")).startswith("first\n")
    assert not Record.path(box.session_dir).with_name("elsewhere-fresh").exists()


async def test_a_start_that_was_cut_while_files_were_sent_takes_nothing_for_deleted(box: Box, sandbox: Sandbox) -> None:
    await output(sandbox, "echo kept > kept")
    await sandbox.close()
    daemon = docker("info", "--format", "{{.ID}}")[0]
    docker("volume", "create", f"--label={FOLDER}={box.session_dir}", "handiwork-session-half")
    Record(daemon, "somewhere", "handiwork-session-half").save(box.session_dir)
    again = box.make()
    await again.start()
    assert await output(again, "cat kept README") == "kept\nread me"


async def test_what_waits_on_another_daemon_is_said(box: Box, elsewhere: None) -> None:
    box.image = image("bookworm")
    Record("another", "tcp://there:2376", "handiwork-session-x", whole=True).save(box.session_dir)
    with pytest.raises(
        SandboxError, match="in the volume handiwork-session-x of the Docker daemon at tcp://there:2376"
    ):
        await box.make().start()


async def test_a_container_that_is_lost_is_started_again_with_all_files(box: Box, sandbox: Sandbox) -> None:
    (mine,) = docker("ps", "--quiet", "--filter", "name=handiwork-")
    running = asyncio.create_task(run(sandbox, "echo kept > kept; sleep 1000"))
    while not docker("exec", mine, "cat", f"{box.project}/kept"):
        await asyncio.sleep(0.1)
    docker("kill", mine)
    with pytest.raises(SandboxError, match="lost"):
        await running
    await sandbox.start()
    assert await output(sandbox, "cat kept") == "kept"


async def test_what_cannot_be_had_there_is_said(box: Box, elsewhere: None, tmp_path: Path) -> None:
    box.image = image("bookworm")
    with pytest.raises(SandboxError, match="cannot work in place"):
        await box.in_place().start()
    with pytest.raises(SandboxError, match=f"so {tmp_path} cannot be mounted"):
        await box.make(read_only=[tmp_path]).start()


async def test_a_daemon_behind_a_forwarded_socket(
    box: Box, elsewhere: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `ssh -L` makes one: the socket is of this machine, the daemon is not."""
    host, _, port = os.environ["DOCKER_HOST"].removeprefix("tcp://").partition(":")
    box.image = image("bookworm")

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(host, port)
        await asyncio.gather(copy(reader, there_writer), copy(there_reader, writer), return_exceptions=True)

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()

    async with await asyncio.start_unix_server(forward, tmp_path / "docker.sock"):
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
        sandbox = box.make()
        await sandbox.start()
        assert await output(sandbox, "echo x > new; echo here") == "here"
        assert (upper_dir(box.session_dir) / "new").exists()
        await sandbox.close()


async def test_a_context_that_leads_there(
    box: Box, elsewhere: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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


async def test_snapshots_and_forks(tmp_path: Path, elsewhere: None) -> None:
    async with Store.open(tmp_path / "data") as store:
        bench = Workbench(tmp_path, store)
        log = await bench.ran(
            "echo one > one; rm README; X=kept",
            "echo two > one; ln -s one two",
            sandbox="docker",
            image=image("bookworm"),
        )
        first, _ = outputs(await log.read())
        assert await bench.output(log, "cat one; readlink two") == "two\none\n"
        child = await fork(store, bench.data, log, first)
        assert await bench.output(child, "cat one; ls; echo $X") == "one\none\nsrc\nkept\n"
    assert (containers(), left_volumes()) == (set(), set())

"""What a sandbox cannot see, reach or do. Nothing here tries to write to the kernel: it asks what is writable."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from handiwork.sandbox.base import Sandbox
from tests.sandbox.helpers import PYTHON, new_box, output, run

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the user's things are."""
    return tmp_path_factory.mktemp("machine")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox(machine: Path) -> AsyncIterator[Sandbox]:
    """One for all the tests here that only ask."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-host-secret")
        async with new_box(machine) as box:
            made = box.make()
            await made.start()
            yield made


async def call(sandbox: Sandbox, number: int, *arguments: str) -> str:
    """Make a system call inside and return the name of its error, or "allowed"."""
    code = (
        "import ctypes, errno; c = ctypes.CDLL(None, use_errno=True); "
        f"r = c.syscall({', '.join([str(number), *arguments])}); "
        "print(errno.errorcode[ctypes.get_errno()] if r < 0 else 'allowed')"
    )
    return await output(sandbox, f'{PYTHON} -c "{code}"')


async def test_the_users_other_files_are_not_there(sandbox: Sandbox, machine: Path) -> None:
    (machine / "me/secret").write_text("x")
    assert await output(sandbox, f"ls -A {machine}/me") == "project"
    assert (await run(sandbox, f"ls {machine}/me/secret {machine}/sessions")).exit_code != 0
    home = Path.home()
    seen = set((await output(sandbox, f"ls -A {home} 2>/dev/null || true")).split())
    assert not seen & {".ssh", ".aws", ".gnupg", ".netrc", ".config", ".docker", ".npmrc", ".gitconfig", ".bashrc"}
    assert await output(sandbox, "ls -A ~") == ""


async def test_programs_can_look_up_the_sandboxs_own_name(sandbox: Sandbox) -> None:
    code = "import socket; print(socket.gethostbyname(socket.gethostname()))"
    assert await output(sandbox, f"{PYTHON} -c '{code}'") == "127.0.0.1"


async def test_the_hosts_environment_is_not_there(sandbox: Sandbox) -> None:
    everything = await output(sandbox, "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr '\\0' '\\n'; env")
    assert "sk-host-secret" not in everything
    assert "SECRET" not in everything
    assert "sessions/one" not in everything
    assert "HOME=/home/agent" in everything


async def test_no_descriptor_of_the_host_is_left_open(sandbox: Sandbox) -> None:
    links = await output(sandbox, "readlink /proc/[0-9]*/fd/*; true")
    assert all(
        link.startswith(("pipe:", "socket:", "anon_inode:", "/dev/null", "/dev/ptmx", "/memfd", "/dev/pts", "/tmp/"))
        for link in links.split("\n")
    ), links
    assert "handiwork" not in links


async def test_only_its_own_processes_are_there(sandbox: Sandbox) -> None:
    other = await asyncio.create_subprocess_exec("sleep", "76543")
    everything = await output(sandbox, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    other.kill()
    await other.wait()
    assert "inside" in everything
    assert "76543" not in everything


async def test_it_is_an_unprivileged_user_without_capabilities(sandbox: Sandbox) -> None:
    assert await output(sandbox, "id -u; id -g; id -G; whoami") == "1000\n1000\n1000\nagent"
    status = await output(sandbox, "cat /proc/self/status")
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert f"{name}:\t0000000000000000" in status
    assert "NoNewPrivs:\t1" in status
    assert "Seccomp:\t2" in status


async def test_programs_with_a_setuid_bit_do_not_gain_rights(sandbox: Sandbox) -> None:
    mounts = await output(sandbox, "cut -d' ' -f5,6 /proc/self/mountinfo")
    assert all("nosuid" in mount for mount in mounts.split("\n")), mounts
    assert (await run(sandbox, "su -c true </dev/null")).exit_code != 0


async def test_the_kernels_settings_cannot_be_written(sandbox: Sandbox) -> None:
    writable = await output(
        sandbox,
        "for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sysrq-trigger /proc/sys/vm/* "
        "/sys/kernel/uevent_helper /sys/fs/cgroup /proc/kcore /proc/sys/net/ipv4/*; "
        'do [ -w "$f" ] && [ ! -d "$f" ] && echo "$f"; done; true',
    )
    assert writable == ""
    assert await output(sandbox, "ls -A /sys 2>/dev/null || true") == ""


async def test_the_system_is_read_only(sandbox: Sandbox) -> None:
    for place in ("/", "/usr", "/etc", "/opt/handiwork", "/opt/handiwork/app", "/run", "/var", "/home"):
        assert (await run(sandbox, f"[ -w {place} ]")).exit_code == 1, place
    for place in ("/tmp", "/dev/shm", "~", "."):
        assert (await run(sandbox, f"[ -w {place} ]")).exit_code == 0, place


async def test_the_hosts_sockets_are_not_there(sandbox: Sandbox) -> None:
    assert await output(sandbox, "ls -A /run /var/run/") == "/run:\n\n/var/run/:"
    assert (await run(sandbox, "[ -e /var/run/docker.sock ]")).exit_code == 1


async def test_there_is_no_network(sandbox: Sandbox) -> None:
    assert await output(sandbox, "cat /proc/net/route | tail -n +2") == ""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        for address in (f"127.0.0.1/{port}", "192.0.2.1/80"):
            assert (await run(sandbox, f"exec 3<>/dev/tcp/{address}")).exit_code != 0
    assert (await run(sandbox, "getent hosts example.com")).exit_code != 0
    abstract = socket.socket(socket.AF_UNIX)
    with abstract:
        abstract.bind("\0handiwork-test")
        abstract.listen()
        code = "import socket; socket.socket(socket.AF_UNIX).connect(chr(0) + 'handiwork-test')"
        assert "ConnectionRefusedError" in (await run(sandbox, f'{PYTHON} -c "{code}"')).content


async def test_loopback_works_inside(sandbox: Sandbox) -> None:
    code = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); "
        "socket.create_connection(s.getsockname()); print('connected')"
    )
    assert await output(sandbox, f'{PYTHON} -c "{code}"') == "connected"


async def test_no_further_namespaces(sandbox: Sandbox) -> None:
    assert (await run(sandbox, "unshare -U true")).exit_code != 0
    clone_newuser, sigchld = 0x10000000, 17
    assert await call(sandbox, 56, str(clone_newuser | sigchld), "0", "0", "0", "0") == "EPERM"
    assert await call(sandbox, 435, "0", "0") == "ENOSYS"


@pytest.mark.parametrize(
    ("name", "number"),
    [
        *(("mount", 165), ("umount2", 166), ("pivot_root", 155), ("ptrace", 101), ("bpf", 321), ("keyctl", 250)),
        *(("add_key", 248), ("setns", 308), ("io_uring_setup", 425), ("perf_event_open", 298)),
        *(("open_by_handle_at", 304), ("process_vm_readv", 310), ("userfaultfd", 323), ("open_tree", 428)),
    ],
)
async def test_dangerous_system_calls_are_refused(sandbox: Sandbox, name: str, number: int) -> None:
    assert await call(sandbox, number, "0", "0", "0", "0", "0") == "EPERM"


async def test_input_cannot_be_put_into_a_terminal(sandbox: Sandbox) -> None:
    tiocsti = 0x5412
    assert await call(sandbox, 16, "0", str(tiocsti), "b'x'") == "EPERM"
    # The upper half of the command is ignored by the kernel and must not get it past the filter.
    assert await call(sandbox, 16, "0", f"ctypes.c_ulong({tiocsti | 1 << 40})", "b'x'") == "EPERM"


async def test_threads_and_processes_still_work(sandbox: Sandbox) -> None:
    code = (
        "import threading, subprocess; t = threading.Thread(target=print, args=('thread',)); t.start(); t.join(); "
        "print(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout)"
    )
    assert (await output(sandbox, f'{PYTHON} -c "{code}"')).split() == ["thread", "child"]

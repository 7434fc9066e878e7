"""The user's own terminals in a sandbox, and connections to servers there."""

from __future__ import annotations

import asyncio

import pytest

from handiwork.sandbox.base import Sandbox
from handiwork.sandbox.create import create
from handiwork.sandbox.streams.byte_stream import ByteStream, StreamRefusedError
from handiwork.workspace.layers import SandboxPaths
from tests.sandbox.helpers import PYTHON, Box, output

PATIENCE = 30.0
COUNT_SLEEPING = "grep -lx sleep /proc/[0-9]*/comm 2> /dev/null | wc -l"


@pytest.fixture(params=["bubblewrap", "none"])
async def sandbox(request: pytest.FixtureRequest, box: Box) -> Sandbox:
    if request.param == "none":
        paths = SandboxPaths(box.session_dir, box.project, None)
        sandbox = create("none", paths, box.blobs.save)
        box.stack.push_async_callback(sandbox.close)
    else:
        sandbox = box.make()
    await sandbox.start()
    return sandbox


async def read_until(terminal: ByteStream, end: str) -> str:
    """Return what the terminal shows up to a text."""
    shown = b""
    async with asyncio.timeout(PATIENCE):
        while end.encode() not in shown:
            piece = await terminal.read()
            assert piece, shown
            shown += piece
    return shown.decode()


async def test_a_terminal_has_a_shell_in_the_workspace_with_colours_job_control_and_utf_8(sandbox: Sandbox) -> None:
    async with sandbox.terminal((30, 90)) as terminal:
        await terminal.write(b'tty; stty size; pwd; echo "$TERM" "gr\xc3\xbc\xc3\x9fe" $((40 + 2))\n')
        shown = await read_until(terminal, "grüße 42")
        assert "/dev/pts/" in shown
        assert "30 90" in shown
        assert sandbox.workspace in shown
        assert "xterm-256color" in shown
        assert "no job control" not in shown


async def test_ctrl_c_interrupts_the_program_alone(sandbox: Sandbox) -> None:
    async with sandbox.terminal((24, 80)) as terminal:
        # Bash misses a Ctrl-C while it starts a program, so the program itself says that it runs.
        await terminal.write(b"bash -c \"echo be''gun; sleep 1234\"\n")
        await read_until(terminal, "begun")
        await terminal.write(b"\x03")
        await read_until(terminal, "^C")
        await terminal.write(b"echo co''de $?\n")
        await read_until(terminal, "code 130")


async def test_a_new_size_reaches_the_program(sandbox: Sandbox) -> None:
    async with sandbox.terminal((24, 80)) as terminal:
        code = "trap 'echo size $(stty size)' WINCH; echo re''ady; while :; do sleep 0.1; done"
        await terminal.write(f'bash -c "{code.replace("$", chr(92) + "$")}" 2> /dev/null\n'.encode())
        await read_until(terminal, "ready")
        await terminal.resize((50, 132))
        await read_until(terminal, "size 50 132")


async def test_exit_ends_the_stream_after_all_output(sandbox: Sandbox) -> None:
    async with sandbox.terminal((24, 80)) as terminal:
        await terminal.write(b"seq 20000; echo la''st; exec >/dev/null 2>&1 </dev/null; exit\n")
        await read_until(terminal, "last")
        async with asyncio.timeout(PATIENCE):
            while await terminal.read():
                pass


async def test_a_closed_terminal_ends_its_programs_and_the_agent_s_shell_goes_on(box: Box) -> None:
    sandbox = box.make()
    await sandbox.start()
    await output(sandbox, "MINE=kept")
    async with sandbox.terminal((24, 80)) as terminal:
        await terminal.write(b"sleep 1234 & nohup sleep 1234 & MINE=other; echo be''gun; sleep 1234\n")
        await read_until(terminal, "begun")
        async with asyncio.timeout(PATIENCE):
            while await output(sandbox, COUNT_SLEEPING) != "3":
                await asyncio.sleep(0.05)
    async with asyncio.timeout(PATIENCE):
        while await output(sandbox, COUNT_SLEEPING) != "0":
            await asyncio.sleep(0.05)
    assert await output(sandbox, "echo $MINE") == "kept"


async def test_what_the_user_writes_is_in_the_copy_and_the_network_is_closed(box: Box) -> None:
    sandbox = box.make()
    await sandbox.start()
    async with sandbox.terminal((24, 80)) as terminal:
        await terminal.write(b"stty size; echo mine > new.txt; (echo > /dev/tcp/1.1.1.1/80) || echo cl''osed\n")
        assert "24 80" in await read_until(terminal, "closed")
    assert await output(sandbox, "cat new.txt") == "mine"
    assert not (box.project / "new.txt").exists()


async def test_a_connection_reaches_a_server_inside_and_only_one_that_listens(sandbox: Sandbox) -> None:
    code = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True)"
    code += "; c, _ = s.accept(); c.sendall(c.recv(9)[::-1] + bytes(range(256))); c.close(); input()"
    python = PYTHON if sandbox.name == "bubblewrap" else "python3"
    before = await sandbox.ports()
    await output(sandbox, f'{python} -c "{code}" > port < <(sleep 1234) & while ! [ -s port ]; do sleep 0.02; done')
    port = int(await output(sandbox, "cat port"))
    assert await sandbox.ports() == sorted({*before, port})
    async with sandbox.connect(port) as connection:
        await connection.write(b"abc")
        received = b""
        async with asyncio.timeout(PATIENCE):
            while piece := await connection.read():
                received += piece
    assert received == b"cba" + bytes(range(256))
    with pytest.raises(StreamRefusedError, match="No server listens on port 1 "):
        async with sandbox.connect(1):
            pass

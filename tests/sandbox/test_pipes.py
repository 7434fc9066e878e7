"""Programs inside that the platform talks to through their stdin and stdout."""

from __future__ import annotations

import asyncio

import pytest

from handiwork.sandbox.pipe import ERRORS_KEPT, LINE_LIMIT, PipeError
from tests.sandbox.helpers import Box, output


async def test_lines_go_in_and_come_out_whole(box: Box) -> None:
    sandbox = box.make()
    await sandbox.start()
    async with sandbox.pipe(["cat"]) as pipe:
        lines = pipe.lines()
        await pipe.write("one\nzwölf ".encode())
        assert await anext(lines) == "one"
        await pipe.write(b"\xe2\x82")
        await pipe.write(b"\xac\n" + b"x" * 300_000 + b"\n")
        assert await anext(lines) == "zwölf €"
        assert await anext(lines) == "x" * 300_000


async def test_its_end_its_errors_and_its_variables(box: Box) -> None:
    sandbox = box.make()
    await sandbox.start()
    code = f"echo $SAID; head -c {2 * ERRORS_KEPT} /dev/zero | tr '\\0' e >&2; echo last >&2; exit 7"
    async with sandbox.pipe(["sh", "-c", code], {"SAID": "hello"}) as pipe:
        assert [line async for line in pipe.lines()] == ["hello"]
        assert pipe.exit_code == 7
        assert len(pipe.errors) == ERRORS_KEPT
        assert pipe.errors.endswith("elast\n")


@pytest.mark.slow
async def test_all_its_processes_end_with_it_and_a_command_beside_it_runs(box: Box) -> None:
    sandbox = box.make()
    await sandbox.start()
    async with sandbox.pipe(["sh", "-c", "sleep 1234 & echo ready; sleep 1234"]) as pipe:
        assert await anext(pipe.lines()) == "ready"
        assert await output(sandbox, "pgrep -c sleep") == "2"
    for _ in range(100):
        if await output(sandbox, "pgrep -c sleep || true") == "0":
            return
        await asyncio.sleep(0.05)
    raise AssertionError("its processes are still there")


async def test_a_program_that_is_not_there(box: Box) -> None:
    sandbox = box.make()
    await sandbox.start()
    with pytest.raises(PipeError, match="no-such-program cannot be started: No such file"):
        async with sandbox.pipe(["no-such-program"]):
            pass


async def test_a_line_without_end_is_cut(box: Box) -> None:
    sandbox = box.make()
    await sandbox.start()
    async with sandbox.pipe(["sh", "-c", "tr '\\0' x < /dev/zero"]) as pipe:
        with pytest.raises(PipeError, match=f"more than {LINE_LIMIT}"):
            await anext(pipe.lines())
    assert await output(sandbox, "echo alive") == "alive"

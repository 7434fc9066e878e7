"""A started sandbox executes actions in the workspace, until it is closed."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from handiwork.errors import SandboxError
from handiwork.events.action import AgentFinishAction, CmdRunAction, FileReadAction, FileWriteAction
from handiwork.events.observation import CmdOutputObservation, ErrorObservation, FileReadObservation
from handiwork.paths import runtime_dir
from tests.sandbox.helpers import Blobs, Box, output, run


async def pieces(*data: bytes) -> AsyncIterator[bytes]:
    for piece in data:
        yield piece


async def test_a_command_runs_in_the_workspace_at_the_users_own_path(box: Box) -> None:
    sandbox = box.make()
    await sandbox.start()
    observation = await run(sandbox, "pwd; ls")
    assert observation.content.split() == [str(box.project), "README", "src"]
    assert (observation.exit_code, observation.status, observation.cwd) == (0, "done", str(box.project))


async def test_the_shell_keeps_its_state_between_commands(box: Box) -> None:
    sandbox = box.make()
    await sandbox.start()
    await run(sandbox, "cd src; export WORD='two words'")
    assert await output(sandbox, 'echo "$PWD $WORD"') == f"{box.project}/src two words"


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a compiler")
async def test_a_program_with_an_address_sanitizer_runs(box: Box) -> None:
    (box.project / "a.c").write_text("int main(void) { return 0; }\n")
    sandbox = box.make()
    await sandbox.start()
    assert await output(sandbox, "gcc -fsanitize=address a.c -o a && ./a") == ""


async def test_files_are_written_and_read(box: Box) -> None:
    sandbox = box.make()
    await sandbox.start()
    await sandbox.execute(FileWriteAction(path="new/file", content="one\ntwo\n"))
    observation = await sandbox.execute(FileReadAction(path="new/file", start=2))
    assert isinstance(observation, FileReadObservation)
    assert "two" in observation.content
    assert "one" not in observation.content


async def test_output_arrives_while_the_command_runs(box: Box) -> None:
    sandbox = box.make()
    await sandbox.start()
    first = asyncio.Event()
    seen: list[str] = []

    def on_output(text: str) -> None:
        seen.append(text)
        first.set()

    running = asyncio.create_task(sandbox.execute(CmdRunAction(command="echo begun; sleep 100"), on_output))
    await first.wait()
    assert not running.done()
    await sandbox.interrupt()
    observation = await running
    assert isinstance(observation, CmdOutputObservation)
    assert observation.status == "interrupted"
    assert "begun" in observation.content
    assert "begun" in "".join(seen)


async def test_cancelling_stops_the_action_and_the_shell_lives_on(box: Box) -> None:
    sandbox = box.make()
    await sandbox.start()
    begun = asyncio.Event()
    action = CmdRunAction(command="echo begun; sleep 1000")
    running = asyncio.create_task(sandbox.execute(action, lambda _: begun.set()))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await output(sandbox, "pgrep -c sleep || true") == "0"


async def test_a_large_output_is_kept_whole_as_a_blob(box: Box, blobs: Blobs) -> None:
    sandbox = box.make()
    await sandbox.start()
    observation = await run(sandbox, "seq 100000")
    whole = b"".join(b"%d\r\n" % number for number in range(1, 100001))
    assert observation.blob is not None
    kept = blobs.kept[observation.blob]
    assert kept.replace(b"\r\n", b"\n") == whole.replace(b"\r\n", b"\n")
    assert observation.size == len(kept)
    assert kept.startswith(observation.content.encode())
    assert kept.endswith(observation.tail.encode())


async def test_an_action_that_does_not_run_in_a_sandbox_is_an_error_for_the_agent(box: Box) -> None:
    sandbox = box.make()
    await sandbox.start()
    assert isinstance(await sandbox.execute(AgentFinishAction()), ErrorObservation)


async def test_files_are_uploaded_and_downloaded(box: Box) -> None:
    sandbox = box.make()
    await sandbox.start()
    await sandbox.upload("data/x y.bin", pieces(b"\0\xff", b"end"))
    assert b"".join([piece async for piece in sandbox.download("data/x y.bin")]) == b"\0\xffend"
    with pytest.raises(FileNotFoundError):
        await anext(aiter(sandbox.download("missing")))
    with pytest.raises(IsADirectoryError):
        await anext(aiter(sandbox.download("src")))


async def test_git_commits_in_the_workspace(box: Box) -> None:
    sandbox = box.make()
    await sandbox.start()
    await output(sandbox, "git add -A && git commit -qm first")
    assert await output(sandbox, "git log --format='%an %ae %s'") == "Handiwork handiwork@localhost first"


async def test_a_lost_sandbox_is_said_to_be_lost_and_can_be_started_again(box: Box) -> None:
    sandbox = box.make()
    await sandbox.start()
    await run(sandbox, "echo kept > kept")
    running = asyncio.create_task(run(sandbox, "echo begun; sleep 1000"))
    # Its first process cannot be killed from inside without a handler; its monitor outside can.
    os.kill(_monitor(), signal.SIGKILL)
    with pytest.raises(SandboxError, match="lost"):
        await running
    await sandbox.start()
    assert await output(sandbox, "cat kept") == "kept"


async def test_it_must_be_started_first(box: Box) -> None:
    with pytest.raises(SandboxError, match="start"):
        await box.make().execute(CmdRunAction(command="true"))


async def test_closing_ends_all_processes_and_removes_the_socket(box: Box) -> None:
    sandbox = box.make()
    await sandbox.start()
    running = set(runtime_dir().iterdir())
    await run(sandbox, "setsid sleep 54321 & trap '' TERM INT HUP; sleep 54321 &")
    await sandbox.close()
    assert len(running - set(runtime_dir().iterdir())) == 2
    assert b"sleep\x0054321\0" not in _command_lines()


def _command_lines() -> list[bytes]:
    found: list[bytes] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            found.append(path.read_bytes())
    return found


def _monitor() -> int:
    (child,) = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    return int(child)

"""Code is scored in a sandbox of its own, and what does not come to its end is ended."""

from __future__ import annotations

import pytest

from handiwork.errors import SandboxError
from handiwork.evals.scoring import execution
from handiwork.evals.scoring.execution import new_sandbox, run_code, run_script
from handiwork.evals.scoring.programs import run_program

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("command", "exit_codes"),
    [
        ("python3 program.py", {0}),
        ("python3 program.py; exit 7", {7}),
        ("while :; do :; done", {152, 124}),
        ("sleep 60", {124}),
    ],
)
async def test_a_command_ends_by_itself_or_is_ended(command: str, exit_codes: set[int]) -> None:
    done = await run_code({"program.py": "print('here')"}, command, 1)
    assert done.exit_code in exit_codes
    assert ("here" in done.content) == command.startswith("python3")


@pytest.mark.parametrize(
    ("script", "seconds", "exit_code", "cut_short"),
    [
        ("sleep 60", 1, 124, "took more than 1 s"),
        ("kill -9 $$", 60, 137, "received SIGKILL, perhaps for lack of memory"),
        ("exit 124", 60, 124, ""),
        ("exit 1", 60, 1, ""),
    ],
)
async def test_only_a_script_that_ran_as_long_as_it_may_has_timed_out(
    script: str, seconds: float, exit_code: int, cut_short: str
) -> None:
    async with new_sandbox("bubblewrap") as (sandbox, _):
        await sandbox.start()
        done = await run_script(sandbox, script, seconds)
    assert (done.exit_code, done.timed_out) == (exit_code, "took" in cut_short)
    assert done.cut_short(seconds) == cut_short


async def test_a_script_that_only_the_sandbox_ends_has_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "GRACE", -0.8)
    async with new_sandbox("bubblewrap") as (sandbox, _):
        await sandbox.start()
        with pytest.raises(SandboxError, match="did not end at their time limit"):
            await run_script(sandbox, "sleep 60", 1)


async def test_both_ends_of_a_long_output_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "LARGEST_LOG", 200)
    async with new_sandbox("bubblewrap") as (sandbox, _):
        await sandbox.start()
        done = await run_script(sandbox, "echo begin; head -c 5000 /dev/zero | tr '\\0' x; echo; echo end", 60)
        removed = await run_script(sandbox, "rm /tmp/output.log", 60)
    assert (done.output[:6], done.output[-4:], len(done.output)) == ("begin\n", "end\n", 200)
    assert (removed.exit_code, removed.output) == (0, "")


async def test_a_program_that_never_ends_fails() -> None:
    assert not (await run_program("while True: pass", "", 1)).passed
    assert not (await run_program("", "while True: pass", 1)).passed
    assert (await run_program("a = 1", "assert a == 1", 1)).passed

"""Code is scored in a sandbox of its own, and what does not come to its end is ended."""

from __future__ import annotations

import pytest

from handiwork.evals.scoring.execution import run_code
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


async def test_a_program_that_never_ends_fails() -> None:
    assert not (await run_program("while True: pass", "", 1)).passed
    assert not (await run_program("", "while True: pass", 1)).passed
    assert (await run_program("a = 1", "assert a == 1", 1)).passed

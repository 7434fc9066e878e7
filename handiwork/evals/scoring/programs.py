"""Runs the tests of a Python solution, like the scorers of HumanEval and similar benchmarks."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from handiwork.evals.harness import FOLDER
from handiwork.evals.scoring.execution import run_code


@dataclass(frozen=True, slots=True)
class Tested:
    """The result of tests of a solution: whether it ``passed`` all, and their output."""

    passed: bool
    output: str


async def run_tests(files: Mapping[str, str], command: str, nonce: str, seconds: float, silent: bool = False) -> Tested:
    """Run a command that tests a solution in a new sandbox.

    The solution has passed if the command exits with 0 and has printed the nonce on a separate line; if ``silent``,
    nothing else. Raises SandboxError.
    """
    done = await run_code(files, command, seconds)
    lines = [line.strip() for line in done.content.splitlines() if line.strip()]
    passed = done.exit_code == 0 and (lines == [nonce] if silent else nonce in lines)
    return Tested(passed, done.content.replace(nonce, "").rstrip())


def new_nonce() -> str:
    """Return an unguessable line to print at the end of the tests."""
    return secrets.token_hex(16)


async def run_program(solution: str, tests: str, seconds: float) -> Tested:
    """Test a Python solution in a new sandbox: tests and solution run in separate processes.

    The tests use the names of the solution's module as if they followed it in the same file, with one difference: a
    function gets copies of its arguments. Every exception of the solution fails it, even an early sys.exit, and its
    module is not ``__main__``, so code that an agent leaves for the command line does not run. Raises SandboxError.
    """
    nonce = new_nonce()
    programs = {name: (FOLDER / name).read_text() for name in ("tester.py", "server.py")}
    case = {"case.json": json.dumps({"tests": tests, "nonce": nonce}), "solution.py": solution}
    return await run_tests({**programs, **case}, "python3 -I tester.py < /dev/null", nonce, seconds)

"""Runs a Python program as the scorers of HumanEval and its kin do."""

from __future__ import annotations

from handiwork.evals.execution import run_code
from handiwork.events.observation import CmdOutputObservation

_RUNNER = """\
try:
    exec(compile(open("program.py").read(), "program.py", "exec"), {})
except BaseException as error:
    raise SystemExit(f"{type(error).__name__}: {error}")
"""


async def run_program(program: str, seconds: float) -> CmdOutputObservation:
    """Return what came of a program in a new sandbox; exit code 0 says that it came to its end in time.

    Whatever it raises fails it, also an early sys.exit, and it is not called ``__main__``: what an agent leaves for
    the command line is not run. Raises SandboxError.
    """
    return await run_code({"program.py": program, "run.py": _RUNNER}, "python3 run.py < /dev/null", seconds)

"""Processes that a snapshot pauses: none of them may notice."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from handiwork.sandbox.limits.processes import paused

PAUSES = 50

# Waits for its child as a shell waits for the program in its foreground: the system tells it that the child has
# stopped. It has to leave its processor to whoever pauses it, and the child has another one, so the child stops first
# unless someone waits.
SHELL = """
import os, sys
child = os.fork()
if not child:
    os.sched_setaffinity(0, {int(sys.argv[1])})
    os.read(0, 1)
    os._exit(0)
os.nice(19)
print("waits", flush=True)
_, status = os.waitpid(child, os.WUNTRACED)
print("stopped" if os.WIFSTOPPED(status) else "ended", flush=True)
"""


def test_a_shell_does_not_see_that_its_program_was_paused() -> None:
    processors = os.sched_getaffinity(0)
    if len(processors) < 2:
        pytest.skip("only one processor")
    first, second, *_ = processors
    os.sched_setaffinity(0, {first})
    try:
        shell = subprocess.Popen(
            [sys.executable, "-c", SHELL, str(second)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert shell.stdin is not None
        assert shell.stdout is not None
        assert shell.stdout.readline() == "waits\n"
        for _ in range(PAUSES):
            with paused(shell.pid):
                pass
        assert shell.communicate("x", timeout=30)[0] == "ended\n"
    finally:
        os.sched_setaffinity(0, processors)

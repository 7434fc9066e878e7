"""The CPU of a tree of processes: of those that run, of those that ended, and of those that left their parent."""

from __future__ import annotations

import subprocess
import sys

import pytest

MEASURER = """
import os, subprocess, sys
from perf.processes import adopt_orphans, descendants, end_descendants, total_cpu

adopt_orphans()
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE)
child.stdout.readline()
print(total_cpu(descendants(os.getpid())))
end_descendants()
assert not descendants(os.getpid())
"""
BURN = "import os, sys, time\nwhile time.process_time() < 0.3: pass\n"
SAY = "os.write(1, b'done\\n')\n"
STAY = "time.sleep(60)\n"


RUNS = BURN + SAY + STAY
ENDED = f"import os, time\nif os.fork() == 0:\n exec({BURN!r})\n os._exit(0)\nos.wait()\n{SAY}{STAY}"
LEFT = f"import os, time\nif os.fork() == 0:\n os.setsid()\n exec({RUNS!r})"


@pytest.mark.parametrize("program", [RUNS, ENDED, LEFT], ids=["it runs", "it ended", "it left its parent"])
def test_every_process_that_was_started_counts(program: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", MEASURER, program], capture_output=True, text=True, check=True, timeout=60
    )
    assert float(run.stdout) >= 0.29

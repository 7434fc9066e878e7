"""What one sandbox may take of the machine is limited."""

from __future__ import annotations

from handiwork.sandbox.limits import ResourceLimits
from tests.sandbox.helpers import PYTHON, Box, run


async def test_processes_are_counted(box: Box) -> None:
    sandbox = box.make(limits=ResourceLimits(processes=40))
    await sandbox.start()
    code = "import os, time; [os.fork() or time.sleep(100) for _ in range(60)]"
    assert "BlockingIOError" in (await run(sandbox, f'{PYTHON} -c "{code}"')).content

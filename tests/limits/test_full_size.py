"""The same at the size of a real machine: by default but for the memory, which others may need just now."""

from __future__ import annotations

import pytest

from handiwork.events.action import CmdRunAction
from handiwork.sandbox.limits.limits import ResourceLimits
from tests.limits.test_over_a_limit import MEMORY_BOMB, MIB, run_fork_bomb
from tests.sandbox.helpers import PYTHON, Box, output, run

pytestmark = pytest.mark.slow


async def test_everything_at_its_default(box: Box) -> None:
    limits = ResourceLimits(memory=4 << 30)
    sandbox = box.make(limits=limits)
    await sandbox.start()

    memory = await run(sandbox, f'{PYTHON} -c "{MEMORY_BOMB}"')
    assert memory.limit == "memory"

    await run_fork_bomb(sandbox)
    # The shell tells of what was stopped in the command before, once.
    assert "alive" in (await output(sandbox, "echo alive")).splitlines()

    assert (await run(sandbox, f"truncate -s {limits.file_size + 1} large")).limit == "file_size"
    assert await output(sandbox, "head -c 1G /dev/zero > large; stat -c %s large; rm large") == str(1024 * MIB)
    assert await output(sandbox, "mkdir m; cd m; seq 100000 | xargs touch; ls | wc -l; cd ..; rm -r m") == "100000"


async def test_yes_for_twenty_seconds(box: Box) -> None:
    sandbox = box.make()
    await sandbox.start()
    said = await sandbox.execute(CmdRunAction(command="yes", timeout=20))
    assert said.blob is not None
    assert len(box.blobs.kept[said.blob]) == 64 * MIB
    assert said.size > 64 * MIB
    assert await output(sandbox, "echo alive") == "alive"

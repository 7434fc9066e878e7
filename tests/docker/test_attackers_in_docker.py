"""What a program inside a container tries against the server and the kernel."""

from __future__ import annotations

from scripts.harness.images import image
from tests.hostile.probes import CALLS, SERVER, SOCKETS, told
from tests.sandbox.helpers import Box


async def test_the_server_and_the_kernel_are_as_closed_as_in_bubblewrap(docker_daemon: None, box: Box) -> None:
    box.image = image("bookworm")
    sandbox = box.make()
    await sandbox.start()
    made = {int(family) for family, (answer, _) in (await told(sandbox, SOCKETS)).items() if answer is None}
    assert made == {1, 2, 10, 16}
    assert set((await told(sandbox, CALLS)).values()) == {"Operation not permitted"}
    answers = await told(sandbox, SERVER)
    # Where the files are root's the container's user is root, who may list the numbers of the descriptors.
    assert {name for name, answer in answers.items() if answer == "done"} <= {"fd", "fdinfo", "oom_score_adj"}

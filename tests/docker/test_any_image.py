"""One suite of actions passes in every image, whatever is in it or said about it, and in bubblewrap."""

from __future__ import annotations

import asyncio
import re

import pytest

from handiwork.events.action import (
    BrowseInteractiveAction,
    BrowseURLAction,
    CmdRunAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    IPythonRunCellAction,
    JobAction,
)
from handiwork.events.base import Action
from handiwork.events.observation import (
    BrowserOutputObservation,
    CmdOutputObservation,
    FileEditObservation,
    FileReadObservation,
    IPythonRunCellObservation,
    JobObservation,
)
from handiwork.sandbox.base import Sandbox
from handiwork.workspace.layers import upper_dir
from scripts.harness.images import image
from tests.docker.conftest import IMAGES
from tests.sandbox.helpers import Box, output, run
from tests.sandbox.test_executing import pieces

pytestmark = [pytest.mark.usefixtures("docker_daemon"), pytest.mark.parametrize("name", [*IMAGES, "bubblewrap"])]


@pytest.fixture
async def sandbox(box: Box, name: str) -> Sandbox:
    box.image = None if name == "bubblewrap" else image(name)
    made = box.make()
    await made.start()
    return made


async def command(sandbox: Sandbox, action: Action) -> CmdOutputObservation:
    observation = await sandbox.execute(action)
    assert isinstance(observation, CmdOutputObservation), observation
    return observation


async def test_bash(sandbox: Sandbox, box: Box) -> None:
    first = await run(sandbox, "pwd; cd src; export WORD='two words'; f() { return 7; }")
    assert (first.content, first.exit_code) == (f"{box.project}\n", 0)
    assert (await run(sandbox, 'echo "$PWD $WORD $HOME"; f')).exit_code == 7
    assert (await run(sandbox, "(exit 77)")).exit_code == 77
    assert (await run(sandbox, 'echo "unbalanced')).exit_code != 0
    assert await output(sandbox, 'echo "$PWD $WORD $HOME"') == f"{box.project}/src two words /home/agent"
    assert await output(sandbox, "echo /proc/[0-9]* | wc -w") != "0"
    assert (await run(sandbox, '[[ "$(</etc/hosts)" == *127.0.0.1*sandbox* ]]')).exit_code == 0


async def test_the_browser(sandbox: Sandbox) -> None:
    await run(sandbox, "echo '<title>Here</title><button onclick=\"document.title=1\">Go</button>' >page.html")
    seen = await sandbox.execute(BrowseURLAction(url=f"file://{sandbox.workspace}/page.html"))
    assert isinstance(seen, BrowserOutputObservation), seen
    bid = re.search(r"\[(\w+)\] button 'Go'", seen.content)
    assert bid, seen.content
    seen = await sandbox.execute(BrowseInteractiveAction(browser_actions=f"click('{bid[1]}')"))
    assert isinstance(seen, BrowserOutputObservation), seen
    assert (seen.title, seen.last_action_error) == ("1", "")


async def test_an_interrupt_leaves_the_shell_as_it_was(sandbox: Sandbox) -> None:
    await run(sandbox, "kept=here")
    begun = asyncio.Event()
    action = CmdRunAction(command="echo begun; sleep 1000")
    running = asyncio.create_task(sandbox.execute(action, lambda _: begun.set()))
    await begun.wait()
    await sandbox.interrupt()
    observation = await running
    assert isinstance(observation, CmdOutputObservation)
    assert (observation.status, observation.content.strip()) == ("interrupted", "begun")
    assert await output(sandbox, "echo $kept") == "here"


async def test_a_program_that_waits_for_input_gets_it(sandbox: Sandbox) -> None:
    asked = await command(sandbox, CmdRunAction(command='read -p "name? " name; echo "it is $name"'))
    assert (asked.status, asked.content) == ("input", "name? ")
    answered = await command(sandbox, CmdRunAction(command="bob", is_input=True))
    assert (answered.exit_code, answered.content.splitlines()[-1]) == (0, "it is bob")


async def test_the_notebook(sandbox: Sandbox) -> None:
    await sandbox.execute(IPythonRunCellAction(code="kept = 6", timeout=60))
    cell = await sandbox.execute(IPythonRunCellAction(code="import json; print(json.dumps(kept * 7))", timeout=60))
    assert isinstance(cell, IPythonRunCellObservation)
    assert (cell.content, cell.error) == ("42\n", None)
    code = "create_file('a.go')\nappend_file('a.go', 'package a')\nappend_file('a.go', 'func f( {')"
    refused = await sandbox.execute(IPythonRunCellAction(code=code, timeout=60))
    assert isinstance(refused, IPythonRunCellObservation)
    assert refused.error == "SkillError"
    assert "would add errors" in refused.content
    failed = await sandbox.execute(IPythonRunCellAction(code="1 / 0", timeout=60))
    assert isinstance(failed, IPythonRunCellObservation)
    assert failed.error is not None


async def test_files(sandbox: Sandbox, box: Box) -> None:
    await sandbox.execute(FileWriteAction(path="new/file", content="one\ntwo\n"))
    edited = await sandbox.execute(FileEditAction(path="new/file", old="two", new="three"))
    assert isinstance(edited, FileEditObservation), edited
    read = await sandbox.execute(FileReadAction(path="new/file"))
    assert isinstance(read, FileReadObservation)
    assert "three" in read.content
    await sandbox.upload("data/x y.bin", pieces(b"\0\xff", b"end"))
    assert b"".join([piece async for piece in sandbox.download("data/x y.bin")]) == b"\0\xffend"
    assert await output(sandbox, "cat new/file; rm README; echo done > /tmp/scratch") == "one\nthree"
    assert (upper_dir(box.session_dir) / "new/file").read_text() == "one\nthree\n"
    assert (box.project / "README").exists()


async def test_a_command_in_the_background(sandbox: Sandbox) -> None:
    started = await command(sandbox, CmdRunAction(command="echo serving; sleep 1000", background=True))
    assert (started.status, started.job) == ("background", "job1")
    assert await output(sandbox, "echo meanwhile") == "meanwhile"
    stopped = await sandbox.execute(JobAction(operation="stop", job="job1"))
    assert isinstance(stopped, JobObservation)
    assert stopped.status == "stopped"


async def test_nothing_of_the_system_can_be_changed_and_nothing_is_reached(sandbox: Sandbox) -> None:
    for attempt in ("echo x > /etc/passwd", "echo x > /opt/handiwork/x", "echo x > /usr/x", "mount -t tmpfs x /tmp"):
        assert (await run(sandbox, attempt)).exit_code != 0, attempt
    interfaces = "while read -r name rest; do echo $name; done < /proc/net/dev"
    assert (await output(sandbox, interfaces)).split()[2:] in (["lo:"], [])
    status = await output(sandbox, "while read -r name value; do echo $name $value; done < /proc/self/status")
    assert "CapEff: 0000000000000000" in status
    assert "NoNewPrivs: 1" in status

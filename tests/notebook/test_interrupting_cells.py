"""The notebook comes back whatever a cell does: interrupts, limits of time, crashes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.inside.inside_client import Client
from tests.notebook.cells import cell, text

pytestmark = pytest.mark.slow

SLEEP = "import time\nkept = 1\nopen('begun', 'w').close()\ntime.sleep(100)"
STUBBORN = (
    "import time\nopen('begun', 'w').close()\nwhile True:\n    try: time.sleep(100)\n    except KeyboardInterrupt: 0"
)


async def begun(client: Client, code: str, **fields: Any) -> asyncio.Task[dict[str, Any]]:
    """Start a cell that makes the file ``begun``."""
    running = asyncio.create_task(cell(client, code, **fields))
    while not (client.workspace / "begun").exists():
        await asyncio.sleep(0.01)  # files are the only thing to be seen from outside
    (client.workspace / "begun").unlink()
    return running


async def test_an_interrupt_ends_the_cell_and_nothing_else(client: Client) -> None:
    running = await begun(client, SLEEP)
    assert await client.interrupt() is True
    observation = await running
    assert (observation["status"], observation["error"]) == ("interrupted", "KeyboardInterrupt")
    assert await text(client, "kept") == "1\n"
    assert await client.interrupt() is False


async def test_an_interrupted_async_cell_does_not_continue_in_the_next(client: Client) -> None:
    poll = "import asyncio\nopen('begun', 'w').close()\nwhile True:\n    print('poll')\n    await asyncio.sleep(0.05)"
    running = await begun(client, poll)
    await client.interrupt()
    assert (await running)["error"] == "KeyboardInterrupt"
    assert await text(client, "await asyncio.sleep(0.3)\n'next'") == "'next'\n"


async def test_an_interrupt_ends_a_program_that_the_cell_waits_for(client: Client) -> None:
    running = await begun(client, "!touch begun; sleep 100\nprint('went on')")
    await client.interrupt()
    observation = await running
    assert observation["status"] == "interrupted"
    assert not observation["content"].endswith("went on\n")


async def test_a_cell_that_cannot_be_interrupted_costs_the_variables(client: Client) -> None:
    await text(client, "kept = 1")
    running = await begun(client, STUBBORN)
    await client.interrupt()
    observation = await running
    assert observation["status"] == "interrupted"
    assert "All variables are gone" in observation["content"]
    assert (await cell(client, "kept"))["error"] == "NameError"


async def test_a_cell_is_stopped_after_its_timeout(client: Client) -> None:
    observation = await cell(client, SLEEP, timeout=0.2)
    assert (observation["status"], observation["error"]) == ("timeout", "KeyboardInterrupt")
    assert await text(client, "kept") == "1\n"


async def test_an_interrupt_that_comes_late_does_not_reach_the_next_cell(client: Client) -> None:
    for _ in range(8):
        running = await begun(client, "open('begun', 'w').close()")
        await client.interrupt()
        assert (await running)["status"] in ("done", "interrupted")
        assert await text(client, "sum(range(1000))") == "499500\n"


async def test_neither_a_signal_between_cells_nor_a_forked_child_is_taken_for_the_cells(client: Client) -> None:
    pid = await text(client, "import os; os.getpid()")
    await client.run(f"kill -INT {pid}")
    assert await text(client, "child = os.fork()\nif child: os.waitpid(child, 0)") == ""
    assert await text(client, "2") == "2\n"


async def test_a_long_cell_is_left_running_and_waited_for(client: Client) -> None:
    code = "import os, time\nprint('first')\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('second')\n7"
    observation = await cell(client, code, timeout=None)
    assert (observation["status"], observation["content"]) == ("running", "first\n")
    assert (await cell(client, "1"))["error_id"] == "busy"
    assert (await client.run("echo meanwhile"))["content"] == "meanwhile\n"
    (client.workspace / "go").touch()
    observation = await cell(client, "")
    assert (observation["status"], observation["content"]) == ("done", "second\n7\n")


async def test_a_running_cell_is_stopped_by_waiting_with_a_timeout(client: Client) -> None:
    assert (await cell(client, SLEEP, timeout=None))["status"] == "running"
    assert (await cell(client, "", timeout=0.1))["status"] == "timeout"
    assert await text(client, "kept") == "1\n"


async def test_a_notebook_that_ends_starts_anew_and_it_is_said(client: Client) -> None:
    ends = {
        "import os; os._exit(3)": "ended with code 3",
        "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)": "was killed by SIGSEGV",
        "print('last'); exit()": "ended with code 0",
        "quit": "ended with code 0",
    }
    for code, how in ends.items():
        await text(client, "kept = 1")
        observation = await cell(client, code)
        assert observation["status"] == "exited"
        assert f"[The notebook's Python {how}. All variables are gone" in observation["content"]
        assert (await cell(client, "kept"))["error"] == "NameError"


async def test_a_notebook_that_ended_between_cells_says_so_in_the_next(client: Client) -> None:
    (pid, zygote) = eval(await text(client, "import os; os.getpid(), os.getppid()"))
    await client.run(f"kill -9 {zygote}; while [ -e /proc/{pid} ]; do sleep 0.01; done")
    observation = await cell(client, "1")
    assert "All variables are gone" in observation["content"]
    assert observation["content"].endswith("]\n1\n")


async def test_what_cells_started_ends_with_the_notebook(client: Client) -> None:
    pid = (await text(client, "import subprocess; subprocess.Popen(['sleep', '1000']).pid")).strip()
    await cell(client, "exit()")
    observation = await client.run(f"while [ -e /proc/{pid}/exe ]; do sleep 0.01; done; echo gone", timeout=10)
    assert observation["content"] == "gone\n"


async def test_a_client_that_goes_away_stops_its_cell(client: Client) -> None:
    gone = await begun(client, SLEEP)
    gone.cancel()
    assert await text(client, "kept") == "1\n"


async def test_two_threads_may_print_while_the_cell_ends(client: Client) -> None:
    code = """
import threading
def late():
    while not os.path.exists("go"): time.sleep(0.01)
    print("late")
import os, time
thread = threading.Thread(target=late); thread.start()
"""
    await text(client, code)
    (client.workspace / "go").touch()
    assert await text(client, "thread.join()") == "late\n"

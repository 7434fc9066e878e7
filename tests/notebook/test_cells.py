"""Cells of the notebook: what they share, what comes out of them, and where they run."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.inside.inside_client import Client
from tests.notebook.cells import cell, png, showing, text

pytestmark = pytest.mark.slow


async def test_cells_share_their_variables_and_show_the_last_expression(client: Client) -> None:
    assert await text(client, "words = ['one', 'two']\nlen(words)") == "2\n"
    assert await text(client, "words[-1]; words") == "['one', 'two']\n"
    assert await text(client, "words;") == ""


async def test_everything_printed_comes_in_order_whoever_printed_it(client: Client) -> None:
    code = """
import os, subprocess, sys
print("out", end=" ")
print("err", file=sys.stderr)
os.system("echo system")
subprocess.run(["echo", "program"])
!echo magic
42
"""
    assert await text(client, code) == "out err\nsystem\nprogram\nmagic\n42\n"


async def test_bytes_for_stdout_come_in_order(client: Client) -> None:
    code = "import sys\nprint('text')\n_ = sys.stdout.buffer.write(b'bytes\\n')"
    assert await text(client, code) == "text\nbytes\n"
    assert await text(client, "print('next')") == "next\n"


async def test_pictures_of_a_cell_that_nobody_waited_for_do_not_crowd_out_the_next(client: Client) -> None:
    sleep = "import time\nwhile not __import__('os').path.exists('go'): time.sleep(0.01)\n"
    assert (await cell(client, sleep + showing(png(), 10), timeout=None, **{"await": 0.1}))["status"] == "running"
    (client.workspace / "go").touch()
    observation = await cell(client, "", timeout=60)
    assert len(observation["images"]) == 10


async def test_output_arrives_while_the_cell_runs(client: Client) -> None:
    code = "import os, time\nprint('begun')\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('ended')"
    action = {"type": "IPythonRunCellAction", "code": code, "timeout": 30}
    async with client.http.stream("POST", "/execute", json={"action": action}) as response:
        lines = response.aiter_lines()
        assert json.loads(await anext(lines)) == {"output": "begun\n"}
        (client.workspace / "go").touch()
        assert json.loads(await anext(lines)) == {"output": "ended\n"}
        assert json.loads(await anext(lines))["observation"]["content"] == "begun\nended\n"


async def test_an_error_is_told_by_name_with_a_plain_traceback(client: Client) -> None:
    observation = await cell(client, "def divide():\n    return 1 / 0\ndivide()")
    assert (observation["status"], observation["error"]) == ("done", "ZeroDivisionError")
    assert "----> 2     return 1 / 0" in observation["content"]
    assert "\x1b" not in observation["content"]
    assert "kernel.py" not in observation["content"]
    assert (await cell(client, "def f(:"))["error"] == "SyntaxError"
    assert (await cell(client, "import sys; sys.exit(3)"))["error"] == "SystemExit"
    assert await text(client, "divide.__name__") == "'divide'\n", "sys.exit() ended the cell, not the notebook"


async def test_a_long_output_keeps_its_ends_and_the_whole_in_a_file(client: Client) -> None:
    observation = await cell(client, "for n in range(100_000): print(n)", head=20, tail=20)
    assert observation["content"] == "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n"
    assert observation["tail"].endswith("\n99999\n")
    whole = (await client.http.get(f"/spool/{observation['spool']}")).text
    assert whole == "".join(f"{n}\n" for n in range(100_000))
    assert len(whole) == observation["size"]


async def test_pictures_are_files_with_a_media_type(client: Client) -> None:
    observation = await cell(client, showing(png()) + "Picture()")
    assert observation["content"] == "a picture\na picture\n"
    assert [image["media_type"] for image in observation["images"]] == ["image/png"] * 2
    for image in observation["images"]:
        assert (await client.http.get(f"/spool/{image['spool']}")).content == png()


async def test_too_many_pictures_are_left_out_and_it_is_said(client: Client) -> None:
    observation = await cell(client, showing(png(), times=20))
    assert len(observation["images"]) == 16
    assert observation["content"].count("is left out") == 4


async def test_a_cell_cannot_ask_for_input(client: Client) -> None:
    for asking in ("input('name? ')", "import getpass; getpass.getpass()"):
        observation = await cell(client, asking)
        assert observation["error"] == "EOFError"
        assert "cells cannot ask for input" in observation["content"]
    assert await text(client, "import sys; sys.stdin.read()") == "''\n"


async def test_cells_and_commands_share_their_directory(client: Client) -> None:
    await client.run("mkdir -p \"sub 'dir'\" && cd sub*")
    assert await text(client, "%pwd") == f"\"{client.workspace}/sub 'dir'\"\n"
    await text(client, "import os; os.chdir('..'); os.mkdir('other')")
    await text(client, "%cd -q other")
    assert (await client.run("pwd"))["content"] == f"{client.workspace}/other\n"


async def test_the_shell_follows_without_losing_what_its_jobs_printed(client: Client) -> None:
    await client.run("(until [ -e go ]; do sleep 0.01; done; echo from the job; touch gone) &")
    (client.workspace / "go").touch()
    while not (client.workspace / "gone").exists():
        await asyncio.sleep(0.01)  # files are the only thing to be seen from outside
    await text(client, "%cd -q /")
    observation = await client.run("pwd")
    assert "from the job\n" in observation["content"]
    assert observation["content"].endswith("/\n")


async def test_cells_see_the_environment_that_commands_see(client: Client) -> None:
    assert await text(client, "import os; os.environ['GIVEN']") == "'by the platform'\n"
    assert await text(client, "[name for name in os.environ if 'HANDIWORK' in name]") == "[]\n"


async def test_modules_of_the_workspace_are_found_but_not_in_place_of_the_notebooks_own(client: Client) -> None:
    (client.workspace / "mine.py").write_text("word = 'mine'")
    (client.workspace / "traitlets.py").write_text("raise SystemExit")
    assert await text(client, "import mine; mine.word") == "'mine'\n"
    missing = await cell(client, "import terminal")
    assert missing["error"] == "ModuleNotFoundError", "it is the server's"
    assert "[The notebook runs /" in missing["content"]


async def test_figures_are_shown_at_the_end_of_the_cell(client: Client) -> None:
    """The part of matplotlib that the notebook uses, in its own words: the real one is no part of the bundle."""
    code = """
import sys, types, base64, os
drawn = [1, 2]
class Figure:
    def savefig(self, file, **options): file.write(b"figure")
sys.modules["matplotlib.pyplot"] = types.SimpleNamespace(
    get_fignums=lambda: list(drawn), figure=lambda number: Figure(), close=drawn.remove
)
os.environ["MPLBACKEND"]
"""
    observation = await cell(client, code)
    assert (observation["content"], len(observation["images"])) == ("'agg'\n", 2)
    assert (await cell(client, "drawn"))["images"] == []


async def test_nothing_runs_before_the_first_cell(client: Client) -> None:
    children = Path(f"/proc/{client.process.pid}/task/{client.process.pid}/children")
    await client.run("true")
    before = len(children.read_text().split())
    await text(client, "1")
    assert len(children.read_text().split()) == before + 1

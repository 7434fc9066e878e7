"""``handiwork serve`` says what to do with its link, and opens it where there is a display."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.cli.program import HANDIWORK, Program
from tests.cli.screen import CTRL_C, Screen

pytestmark = pytest.mark.slow
NO_DISPLAY = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "SSH_CONNECTION": ""}


def test_at_a_terminal_the_link_comes_with_what_to_do(program: Program) -> None:
    with Screen(program, "serve", "--port", "0", columns=160, **NO_DISPLAY) as screen:
        screen.until("?token=", "open the link above in your browser", "keep it to yourself", "Ctrl-C ends the server")
        screen.type(CTRL_C)
        assert screen.exit_code() in (0, 130)
    with Screen(program, "serve", "--port", "0", columns=160, **{**NO_DISPLAY, "SSH_CONNECTION": "a 1 b 2"}) as screen:
        text = screen.until("Ctrl-C ends the server")
    port = re.search(r"http://127\.0\.0\.1:(\d+)/", text)
    assert port is not None
    assert f"ssh -L {port[1]}:127.0.0.1:{port[1]} THIS_MACHINE" in text


def test_a_browser_opens_the_link_without_showing_it_to_other_users(program: Program) -> None:
    programs, opened = program.folder / "bin", program.folder / "opened"
    programs.mkdir()
    opener = programs / "xdg-open"
    opener.write_text(f'#!/bin/sh\nfile=${{1#file://}}\nstat -c %a "$file" > {opened}.new\n')
    with opener.open("a") as script:
        script.write(f'cat "$file" >> {opened}.new; printf "\\n%s\\n" "$*" >> {opened}.new; mv {opened}.new {opened}\n')
    opener.chmod(0o755)
    path = f"{programs}:{program.environment['PATH']}"
    with Screen(program, "serve", "--port", "0", columns=160, DISPLAY=":7", PATH=path) as screen:
        text = screen.until("the page opens in your browser", "Ctrl-C ends the server")
        found = re.search(r"token=([\w-]+)", text)
        assert found is not None
        while not opened.exists():
            pass
    mode, *page, command = opened.read_text().splitlines()
    assert mode == "600"
    assert found[1] in "".join(page)
    assert found[1] not in command


def test_without_a_terminal_there_is_the_link_alone(program: Program) -> None:
    server = subprocess.Popen(
        [HANDIWORK, "serve", "--port", "0"],
        env=program.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    link = server.stdout.readline()
    server.terminate()
    rest, said = server.communicate(timeout=60)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]+\n", link)
    assert rest + said == ""

"""``handiwork pull-request``: shows the request, asks for what is missing, opens it, and prints its link."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.harness import forge as forges
from scripts.harness.forge import Standin
from tests.cli.program import Program, bash, finish
from tests.workspace.trees import git


@pytest.fixture
def forge(tmp_path: Path, program: Program) -> Iterator[Standin]:
    """A forge that the settings name; the program's project is a clone of its repository, with a finished session."""
    with forges.serve("github", tmp_path / "forge") as standin:
        program.settings.parent.mkdir(parents=True)
        program.settings.write_text(standin.settings)
        program.environment.pop("GITHUB_TOKEN", None)
        git(program.workspace, "init", "-q", "-b", "main")
        git(program.workspace, "remote", "add", "origin", standin.address)
        git(program.workspace, "fetch", "-q", str(standin.bare), "main:refs/remotes/origin/main")
        git(program.workspace, "reset", "-q", "--hard", "origin/main")
        done = program.run(bash("echo hallo > greeting.txt"), finish("It greets in German."))
        assert done.returncode == 0, done.stderr
        yield standin


@pytest.mark.slow
def test_a_request_is_shown_opened_and_found_again(program: Program, forge: Standin) -> None:
    shown = program("pull-request", "--dry-run", "--title", "Hallo", "--json")
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout) == {
        "host": forge.host,
        "repository": "octo/greeter",
        "files": ["greeting.txt"],
        "warnings": [],
        "title": "Hallo",
        "body": "It greets in German.",
        "base": "main",
        "unfinished": False,
    }
    missing = program("pull-request", "--json")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert f"there is no token for {forge.host}: set GITHUB_TOKEN, or enter a token" in missing.stderr
    refused = program("pull-request", "--json", GITHUB_TOKEN="wrong-token-0123")
    assert refused.returncode == 1
    assert "does not accept the token (Bad credentials)" in refused.stderr
    assert "from the variable GITHUB_TOKEN" in refused.stderr

    token = forge.add("ada")
    unasked = program("pull-request", GITHUB_TOKEN=token)
    assert unasked.returncode == 2
    assert "pull request for main of octo/greeter on" in unasked.stdout
    assert "as ada" in unasked.stdout
    assert "changed   greeting.txt" in unasked.stdout
    assert "add --yes" in unasked.stderr
    assert forge.requests == []
    opened = program("pull-request", "--json", "--draft", "--body", "More.", GITHUB_TOKEN=token)
    assert opened.returncode == 0, opened.stderr
    (request,) = forge.requests
    answer = json.loads(opened.stdout)
    assert (answer["number"], answer["url"], answer["created"]) == (1, request["html_url"], True)
    assert (request["title"], request["body"], request["draft"]) == ("greet the world", "More.", True)
    assert git(forge.bare, "show", f"{answer['branch']}:greeting.txt") == "hallo\n"
    again = program("pull-request", "--yes", GITHUB_TOKEN=token)
    assert again.stdout.splitlines()[-1] == request["html_url"]
    assert "was open already" in again.stderr
    assert len(forge.requests) == 1
    assert token not in "".join((opened.stdout, opened.stderr, again.stdout, again.stderr))


@pytest.mark.slow
def test_a_terminal_is_asked_for_a_token_which_it_does_not_show(program: Program, forge: Standin) -> None:
    token = forge.add("ada")
    with program.at_terminal("pull-request", "--base", "main") as terminal:
        terminal.until("(not shown; empty to stop): ")
        terminal.write("wrong-token-0123\n")
        terminal.until(f"give another one\r\nToken for {forge.host} (not shown; empty to stop): ")
        assert "does not accept the token (Bad credentials)" in terminal.seen
        terminal.write(f"{token}\n")
        terminal.until("which only you can read? [y/n] ")
        terminal.write("y\n")
        terminal.until("Open this pull request? [y/n] ")
        terminal.write("n\n")
        terminal.until("nothing was sent")
        assert terminal.exit_code() == 1
    assert token not in terminal.seen
    assert forge.requests == []
    keys = program.settings.parent / "keys.json"
    assert keys.stat().st_mode & 0o777 == 0o600
    with program.at_terminal("pull-request", "--base", "main") as terminal:
        terminal.until("Open this pull request? [y/n] ")
        terminal.write("y\n")
        terminal.until(f"{forge.url}/octo/greeter/pull/1")
        assert terminal.exit_code() == 0
    assert len(forge.requests) == 1


@pytest.mark.slow
def test_ctrl_c_ends_each_question_at_once(program: Program, forge: Standin) -> None:
    with program.at_terminal("pull-request") as terminal:
        terminal.until("(not shown; empty to stop): ")
        terminal.press_ctrl_c()
        assert terminal.exit_code() == 130
    with program.at_terminal("pull-request", GITHUB_TOKEN=forge.add("ada")) as terminal:
        terminal.until("Open this pull request? [y/n] ")
        terminal.press_ctrl_c()
        assert terminal.exit_code() == 130
    assert forge.requests == []


@pytest.mark.slow
def test_a_session_in_place_has_a_request_too(program: Program, forge: Standin) -> None:
    model = program.script(bash("echo salut > greeting.txt"), finish(), name="in-place")
    done = program("run", "greet in French", "--model", model, "--in-place")
    assert done.returncode == 0, done.stderr
    before = git(program.workspace, "status", "--porcelain", "--branch")
    opened = program("pull-request", "--json", GITHUB_TOKEN=forge.add("ada"))
    assert opened.returncode == 0, opened.stderr
    assert git(forge.bare, "show", f"{json.loads(opened.stdout)['branch']}:greeting.txt") == "salut\n"
    assert git(program.workspace, "status", "--porcelain", "--branch") == before
    assert (program.workspace / "greeting.txt").read_text() == "salut\n"

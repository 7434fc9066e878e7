"""``handiwork context``: what a session would load, and the user's yes or no to it."""

from __future__ import annotations

import json

import pytest

from tests.cli.program import Program, finish

EMPTY = "loads nothing besides its task"


def rows(program: Program, *flags: str) -> dict[str, dict[str, object]]:
    done = program("context", "--json", *flags)
    assert done.returncode == 0, done.stderr
    return {row["path"]: row for row in map(json.loads, done.stdout.splitlines())}


@pytest.mark.slow
def test_a_folder_without_conventions_says_where_they_would_be(program: Program) -> None:
    done = program("context")
    assert EMPTY in done.stdout
    assert "~/config/handiwork/AGENTS.md" in done.stdout
    assert program("context", "no-such-folder").returncode == 2
    assert "--yes needs --accept" in program("context", "--yes").stderr


@pytest.mark.slow
def test_it_says_what_loads_from_where_why_and_how_many_tokens(program: Program) -> None:
    (program.workspace / "AGENTS.md").write_text("Use tabs.")
    (program.workspace / ".mcp.json").write_text("{}")
    program.settings.parent.mkdir(parents=True)
    (program.settings.parent / "AGENTS.md").write_text("Be brief.")
    program("context", "--accept", "--yes")
    (program.workspace / "web").mkdir()
    (program.workspace / "web/AGENTS.md").write_text("Use spaces.")
    lines = program("context").stdout.splitlines()
    assert lines == [
        f"In every prompt of a session in {program.workspace}:",
        "  ~/config/handiwork/AGENTS.md       3 tokens  yours",
        "  AGENTS.md                          3 tokens  accepted by you",
        "",
        "Waiting for you:",
        "  web/AGENTS.md                      4 tokens  not accepted",
        "",
        "Not loaded:",
        "  .mcp.json                                    servers that a repository names are not started",
        "",
        "about 6 tokens in every prompt",
        "`handiwork context --accept` shows what waits for you, and asks",
    ]
    found = rows(program)
    assert {path: row["state"] for path, row in found.items()} == {
        str(program.settings.parent / "AGENTS.md"): "loads",
        "AGENTS.md": "loads",
        "web/AGENTS.md": "not accepted",
        ".mcp.json": "left out",
    }


@pytest.mark.slow
def test_the_command_that_it_names_is_for_the_folder_asked_about_and_can_be_copied(program: Program) -> None:
    other = program.folder / "a project für später"
    other.mkdir()
    (other / "AGENTS.md").write_text("Use tabs.")
    last = program("context", str(other)).stdout.splitlines()[-1]
    assert last == f"`handiwork context --accept '{other}'` shows what waits for you, and asks"


@pytest.mark.slow
def test_it_lists_knowledge_and_micro_agents_with_the_mistakes_in_them(program: Program) -> None:
    own, theirs = program.settings.parent / "micro", program.workspace / ".handiwork/agents"
    files = {own / "git.md": "triggers: [git]", own / "broken.md": "a: b", theirs / "bad.md": "foo: bar"}
    for file, head in {**files, theirs / "good.md": "tools: [bash]"}.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"---\n{head}\n---\nText.\n")
    program("context", "--accept", "--yes")
    states = {path: f"{row['state']}: {row['why']}".partition("; known")[0] for path, row in rows(program).items()}
    assert states == {
        ".handiwork/agents/bad.md": "left out: line 2: unknown key 'foo'",
        ".handiwork/agents/good.md": "on request: accepted by you",
        f"{own}/git.md": "on request: yours; joins at the words git",
        f"{own}/broken.md": "left out: line 2: unknown key 'a'",
    }


@pytest.mark.slow
def test_accepting_needs_a_terminal_or_yes(program: Program) -> None:
    (program.workspace / "AGENTS.md").write_text("Use tabs.")
    done = program("context", "--accept")
    assert done.returncode == 2
    assert "add --yes" in done.stderr
    assert rows(program)["AGENTS.md"]["state"] == "not accepted"
    assert "accepted AGENTS.md, SHA-256" in program("context", "--accept", "--yes").stderr
    assert "nothing to accept" in program("context", "--accept").stderr


@pytest.mark.slow
def test_a_changed_text_is_asked_about_again_with_its_changes(program: Program) -> None:
    file = program.workspace / "AGENTS.md"
    file.write_text("Use tabs.\nAlways.\n")
    with program.at_terminal("context", "--accept") as terminal:
        assert "Always." in terminal.until("accept AGENTS.md?")
        terminal.write("y\n")
        assert "accepted by you" in terminal.until("in every prompt\r\n")
    file.write_text("Use tabs.\nNever.\n")
    assert rows(program)["AGENTS.md"]["state"] == "changed"
    with program.at_terminal("context", "--accept") as terminal:
        shown = terminal.until("accept AGENTS.md?")
        assert "-Always." in shown
        assert "+Never." in shown
        terminal.write("q\n")
        assert terminal.exit_code() == 0
    assert rows(program)["AGENTS.md"]["state"] == "changed"


@pytest.mark.slow
def test_a_run_at_a_terminal_asks_once_and_loads_what_was_accepted(program: Program) -> None:
    (program.workspace / "AGENTS.md").write_text("Use tabs.")
    task = ("run", "greet", "--model", program.script(finish()), "--sandbox", "none")
    with program.at_terminal(*task) as terminal:
        terminal.until("read them, and decide on each?")
        terminal.write("n\n")
        terminal.until("not loaded until you accept them: AGENTS.md")
        assert terminal.exit_code() == 0
    with program.at_terminal(*task) as terminal:
        assert terminal.exit_code() == 0
        assert "decide on each?" not in terminal.seen
    (program.workspace / "AGENTS.md").write_text("Use spaces.")
    with program.at_terminal(*task) as terminal:
        terminal.until("read them, and decide on each?")
        terminal.write("y\n")
        assert "Use spaces." in terminal.until("accept AGENTS.md?")
        terminal.write("y\n")
        terminal.until("loaded AGENTS.md, 4 tokens in every prompt")
        assert terminal.exit_code() == 0


@pytest.mark.slow
def test_the_image_of_a_devcontainer_is_used_once_it_is_accepted(program: Program) -> None:
    flags = ("run", "greet", "--model", program.script(finish()), "--image", "devcontainer")
    assert "there is none that names an image" in program(*flags).stderr
    (program.workspace / ".devcontainer.json").write_text('{"image": "no-such-image:1" /* x */}')
    assert "you have not accepted .devcontainer.json" in program(*flags).stderr
    program("context", "--accept", "--yes")
    assert "no-such-image:1" in program(*flags).stdout

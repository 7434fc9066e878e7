"""``handiwork`` alone: a conversation at a terminal, with real sessions of a scripted model."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from base64 import b64encode
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from handiwork.agents.state import State
from handiwork.cli.conversation.commands import ConversationCommands
from handiwork.cli.conversation.current_session import CurrentSession
from handiwork.cli.terminal.view import View, terminal_console
from handiwork.events.action import ChangeAgentStateAction, MessageAction
from handiwork.events.record import SessionWanted
from handiwork.log.eventlog import EventLog
from handiwork.log.store import Store
from handiwork.paths import data_dir
from handiwork.session.config import SessionConfig
from handiwork.session.open import create
from handiwork.settings import load
from tests.cli.program import HANDIWORK, PATIENCE, Program, bash, edit, finish
from tests.cli.screen import CTRL_C, CTRL_D, ENTER, TAB, Screen
from tests.notebook.cells import png, showing

slow = pytest.mark.slow
WORDS = "The agent explains in one long sentence that has to be broken between its words at any width of a terminal."
SPOKEN = f"# A plan\n\n{WORDS}\n\n- {WORDS}\n\n```python\ndef greet():\n    return 1\n```\n"


def converse(program: Program, *replies: dict[str, Any], columns: int = 80, **environment: str) -> Screen:
    model = program.script(*replies)
    variables = {"HANDIWORK_MODEL": model, "HANDIWORK_SANDBOX": "none", **environment}
    return Screen(program, columns=columns, **variables)


def messages(program: Program) -> list[str]:
    return [event["content"] for event in program.events() if event["type"] == "MessageAction"]


@slow
def test_a_conversation_goes_on_after_a_finish_and_brings_its_changes_home(program: Program) -> None:
    replies = edit("greeting.txt", "hello", "good day"), finish("Greeted **them**."), finish("Nothing to do.")
    with converse(program, *replies) as screen:
        screen.until("> what shall the agent do?")
        screen.enter("greet")
        screen.until("Greeted them.", "finished · 2 steps", "+1    -1  greeting.txt", "> what next?")
        screen.enter("/diff")
        screen.until("+++ b/greeting.txt", "+good day\n")
        screen.enter("/apply")
        screen.until(f"files changed in {program.workspace}: 1")
        assert (program.workspace / "greeting.txt").read_text() == "good day\n"
        screen.enter("/undo")
        screen.until("restored  greeting.txt")
        assert (program.workspace / "greeting.txt").read_text() == "hello\n"
        screen.enter("and now?")
        screen.until("Nothing to do.", "finished · 3 steps")
        screen.enter("/cost")
        screen.until("steps    3")
        screen.type(CTRL_D)
        assert screen.exit_code() == 0
    assert messages(program) == ["greet", "and now?"]


async def test_a_session_that_another_command_once_wanted_stays_open_between_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HANDIWORK_DATA", str(tmp_path / "data"))
    (tmp_path / "project").mkdir()
    (tmp_path / "script.jsonl").write_text(json.dumps(finish()) + "\n")
    settings = load({"model": f"scripted:{tmp_path}/script.jsonl", "sandbox": "none"})
    config, ended = SessionConfig.of(settings, tmp_path / "project"), asyncio.Event()

    async def ask(_: str) -> None:
        return None

    async def show_end(_: EventLog, __: State) -> None:
        ended.set()

    async with Store.open(data_dir()) as store:
        begun = await create(store, data_dir(), config, lambda _: None, "begin", MessageAction(content="begin"))
        await begun.close()
        stop = ChangeAgentStateAction(agent_state="stopped", source="user")
        await begun.log.append(stop, SessionWanted(source="user"))  # as `handiwork apply` does for the commits
        view = View(terminal_console(StringIO()), live=False)
        session = CurrentSession(store, config, view, ask, show_end, lambda error: pytest.fail(error))
        await session.switch(begun.log.id)
        await session.send("go on")
        await asyncio.wait_for(ended.wait(), PATIENCE)
        await asyncio.sleep(0.2)
        assert session.state is not None, "its shell and notebook are there for the next message"
        await session.close()


async def test_the_list_of_sessions_says_which_one_lost_its_process(tmp_path: Path) -> None:
    async def ask(_: str) -> None:
        return None

    async def show_end(_: EventLog, __: State) -> None:
        return None

    view = View(terminal_console(shown := StringIO()), live=False)
    async with Store.open(tmp_path) as store:
        await store.create(agent="CodeActAgent", model="m", title="greet", state="running")
        config = SessionConfig(agent="CodeActAgent", model="m", workspace=str(tmp_path))
        session = CurrentSession(store, config, view, ask, show_end, lambda error: pytest.fail(error))
        await ConversationCommands(session, view, ask).carry_out("/sessions")
    assert "  interrupted  " in shown.getvalue()


@slow
def test_what_is_typed_while_the_agent_works_waits_for_its_next_step(program: Program) -> None:
    go = program.folder / "go"
    replies = bash(f"echo beg''un; until [ -e {go} ]; do sleep 0.1; done"), bash("echo th''en"), finish()
    with converse(program, *replies) as screen:
        screen.enter("begin")
        screen.until("begun", "> a message for its next step")
        screen.enter("use tabs")
        screen.until("you: use tabs")
        go.touch()
        screen.until("then", "> what next?")
        screen.type(CTRL_D)
        assert screen.exit_code() == 0
    assert messages(program) == ["begin", "use tabs"]
    kinds = [(event["type"], event.get("source")) for event in program.events()]
    assert kinds.index(("MessageAction", "user")) < len(kinds) - 1
    written, then = (next(e["id"] for e in program.events() if text in str(e)) for text in ("'use tabs'", "th''en"))
    assert written < then


@slow
def test_a_message_that_comes_while_the_agent_ends_is_read_first(program: Program) -> None:
    with converse(program, {**finish("First."), "content": "I end it. " * 9, "delay": 4}, finish("Second.")) as screen:
        screen.enter("begin")
        screen.until("step 1")
        screen.enter("one more")
        screen.until("Second.", "> what next?")
    assert messages(program) == ["begin", "one more"]


@slow
def test_ctrl_c_interrupts_and_the_conversation_goes_on(program: Program) -> None:
    replies = bash("echo star''ted; sleep 50"), bash("echo ag''ain; sleep 50"), finish("As you say.")
    with converse(program, *replies) as screen:
        screen.enter("begin")
        screen.until("started")
        screen.type(CTRL_C)
        screen.until("interrupted · 1 step", "> how shall it continue?")
        screen.enter("")
        screen.until("again")
        screen.type(CTRL_C)
        screen.until("interrupted · 2 steps")
        screen.enter("just stop there")
        screen.until("As you say.", "> what next?")
        screen.type(CTRL_C)
        screen.until("Ctrl-D leaves\n")
        screen.type(CTRL_D)
        assert screen.exit_code() == 0
    assert messages(program) == ["begin", "just stop there"]


@slow
def test_a_second_ctrl_c_stops_at_once_and_the_next_message_opens_the_session_again(program: Program) -> None:
    stubborn = "trap '' INT TERM; echo star''ted; while true; do read -t 50 < <(sleep 50); done"
    with converse(program, bash(f'bash -c "{stubborn}"'), finish("Here again.")) as screen:
        screen.enter("begin")
        screen.until("started")
        screen.type(CTRL_C)
        screen.until("interrupting")
        screen.type(CTRL_C)
        screen.until("stopped; a message continues, and so does Enter", "> what next?")
        screen.enter("go on")
        screen.until("Here again.")
    assert messages(program) == ["begin", "go on"]


@slow
def test_leaving_pauses_the_agent(program: Program) -> None:
    with converse(program, bash("echo star''ted; sleep 50"), finish("Resumed.")) as screen:
        screen.enter("begin")
        screen.until("started")
        screen.type(CTRL_D)
        assert screen.exit_code() == 0
    assert "  paused  " in program("sessions").stdout
    assert "Resumed." in program("resume").stdout
    assert (program.data / "history").stat().st_mode & 0o777 == 0o600


@slow
def test_a_question_waits_beside_a_line_that_was_begun(program: Program) -> None:
    replies = bash("sleep 2; touch new"), {"content": "Which world?"}, finish("Greeted.")
    with converse(program, *replies, HANDIWORK_CONFIRMATION="risky") as screen:
        screen.enter("greet")
        screen.until("step 1")
        screen.type("half a line")
        screen.until("wants to do this:", "allow? (y once")
        screen.enter("y")
        screen.until("> half a line", "Which world?", "waits for your answer")
        screen.type(ENTER)
        screen.until("Greeted.")
    assert messages(program) == ["greet", "Which world?", "half a line"]


@slow
def test_a_question_about_an_action_that_was_left_for_later_comes_again_with_enter(program: Program) -> None:
    with converse(program, bash("touch new"), finish("Greeted."), HANDIWORK_CONFIRMATION="always") as screen:
        screen.enter("greet")
        screen.until("allow? (y once")
        screen.enter("q")
        screen.until("> Enter asks again; a message refuses")
        screen.type(ENTER)
        screen.until("allow? (y once")
        screen.enter("y")
        screen.until("Greeted.")
    assert "UserRejectObservation" not in {event["type"] for event in program.events()}


@slow
def test_commands_and_paths_are_completed_and_lines_are_remembered(program: Program) -> None:
    (program.workspace / "src").mkdir()
    (program.workspace / "src/engine.py").write_text("")
    with converse(program, finish("One."), finish("Two.")) as screen:
        screen.until("> what shall")
        screen.type("/di")
        screen.until("show what the session has changed")
        screen.type(TAB)
        screen.until("> /diff")
        screen.type(CTRL_C)
        screen.type("look at @eng")
        screen.until("src/engine.py")
        screen.type(TAB)
        screen.until("> look at @src/engine.py")
        screen.type(ENTER)
        screen.until("One.")
        screen.type("\x1b[A")
        screen.until("> look at @src/engine.py")
        screen.type(ENTER)
        screen.until("Two.")
    assert messages(program) == ["look at src/engine.py"] * 2


@slow
def test_sessions_are_listed_resumed_forked_and_begun_anew(program: Program) -> None:
    first = edit("greeting.txt", "hello", "good day"), finish("One."), finish("Resumed."), finish("Forked.")
    with converse(program, *first, HANDIWORK_SANDBOX="bubblewrap") as screen:
        screen.enter("first task")
        screen.until("One.", "> what next?")
        screen.enter("/new")
        screen.until("the next message begins a new session")
        screen.enter("/sessions")
        found = re.search(r"([0-9a-f]{16}).*first task", screen.until("/resume SESSION continues one"))
        assert found is not None
        screen.type("/resume ")
        screen.until(f"> /resume\n{' ' * 11}{found[1]}")  # in the menu below the line
        screen.type(TAB)
        screen.until(f"> /resume {found[1]}\n")
        screen.type(ENTER)
        screen.until("write a message, or press Enter")
        screen.enter("go on")
        screen.until("Resumed.", "> what next?")
        screen.enter("/fork")
        screen.until(f"a copy of session {found[1]} from event")
        screen.enter("go another way")
        screen.until("Forked.", "> what next?")
        screen.enter("/nothing")
        screen.until("unknown command /nothing", "/fork [EVENT]")
    assert messages(program) == ["first task", "go on", "go another way"]
    listed = program("sessions").stdout.splitlines()
    assert len(listed) == 2
    assert not listed[0].startswith(found[1])


@slow
def test_in_plan_mode_nothing_is_changed_until_the_plan_is_accepted(program: Program) -> None:
    change = edit("greeting.txt", "hello", "good day")
    with converse(program, change, finish("First A, then B."), change, finish("Carried out.")) as screen:
        screen.enter("/plan")
        screen.until("plan mode: on")
        screen.enter("greet")
        screen.until("First A, then B.", "> Enter accepts the plan")
        screen.enter("/diff")
        screen.until("no changes")
        screen.enter("")
        screen.until("I accept the plan.", "Carried out.", "+1    -1  greeting.txt")
    assert [text.partition(".")[0] for text in messages(program)][:3] == [
        "greet",
        "First A, then B",
        "I accept the plan",
    ]


@slow
@pytest.mark.parametrize("columns", [60, 80, 160])
def test_text_is_broken_between_words_at_every_width(program: Program, columns: int) -> None:
    long = " ".join(f"word{number}" for number in range(60))
    with converse(program, bash(f"echo {long}", said=SPOKEN), finish(SPOKEN), columns=columns) as screen:
        screen.enter("explain")
        text = screen.until("finished · 2 steps", "> what next?")
    assert "**" not in text
    assert "```" not in text
    assert "\n  def greet():\n      return 1\n" in re.sub(r"\n   *def", "\n  def", text).replace(
        "\n       ret", "\n      ret"
    )
    assert max(map(len, text.split("\n"))) <= columns
    assert set(re.findall(r"word\d+", text)) == set(long.split())
    counts = {word: text.count(f" {word}") for word in set(WORDS.split()[1:-1]) if len(word) > 4}
    assert min(counts.values()) >= 3, (counts, text)
    assert [line for line in text.split("\n") if line.startswith("word")] == []
    bullet = text[text.index(" • ") :].split("\n")[1]
    assert columns > 120 or bullet.startswith("     "), bullet


@slow
def test_programs_keep_their_colours_unless_there_shall_be_none(program: Program) -> None:
    replies = bash("printf '\\033[32mgre''en\\033[0m\\n\\033]0;title\\007'"), finish("Coloured.")
    with converse(program, *replies) as screen:
        screen.enter("colour")
        screen.until("Coloured.", "> what next?")
        assert screen.colour_of("green") == "green"
        assert b"\x1b]0;" not in screen.raw
    with converse(program, *replies, NO_COLOR="1") as screen:
        screen.enter("colour")
        screen.until("Coloured.", "> what next?")
        assert not re.search(rb"\x1b\[[0-9;]*(?:3|9)[0-7][0-9;]*m", screen.raw)


@slow
def test_a_long_output_is_folded_to_what_matters_and_opened(program: Program) -> None:
    replies = bash("seq 1000 1040; echo a fatal problem; seq 2000 2040"), finish("Counted.")
    with converse(program, *replies) as screen:
        screen.enter("count")
        text = screen.until("Counted.", "> what next?")
        assert "a fatal problem\n" in text
        assert "1020" not in text
        hint = re.search(r"more lines \((/show \d+)\)", text)
        assert hint is not None
        screen.enter(hint[1])
        screen.until("\n  1020\n", "\n  2020\n")


@slow
def test_a_model_that_cannot_work_is_told_of_before_the_first_task(program: Program) -> None:
    with converse(program, HANDIWORK_MODEL="anthropic:some-model", ANTHROPIC_API_KEY="") as screen:
        screen.until("ANTHROPIC_API_KEY", "/model NAME")
        screen.enter(f"/model {program.script(finish('By another.'))}")
        screen.until("model: scripted:")
        screen.enter("greet")
        screen.until("By another.")


@slow
@pytest.mark.parametrize("task", ["greet the world\n", ""])
def test_a_pipe_is_a_task_and_nothing_is_the_usage(program: Program, task: str) -> None:
    done = subprocess.run(
        [HANDIWORK],
        cwd=program.workspace,
        env={**program.environment, "HANDIWORK_MODEL": program.script(finish("Done.")), "HANDIWORK_SANDBOX": "none"},
        input=task,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if task:
        assert done.returncode == 0
        assert "you: greet the world" in done.stdout
        assert "\x1b" not in done.stdout
    else:
        assert done.returncode == 2
        assert "Usage: handiwork" in done.stdout


@slow
@pytest.mark.parametrize(("terminal", "shows"), [("xterm-kitty", True), ("xterm-256color", False)])
def test_a_picture_of_a_notebook_is_shown_or_named(program: Program, terminal: str, shows: bool) -> None:
    cell = {"tool_calls": [{"name": "ipython", "arguments": {"code": showing(png())}}]}
    with converse(program, cell, finish("Drawn."), TERM=terminal) as screen:
        screen.enter("draw")
        screen.until("(a picture, image/png)", "Drawn.", "> what next?")
        screen.type(CTRL_D)
        assert screen.exit_code() == 0
    assert (f"m=0;{b64encode(png()).decode()}".encode() in screen.raw) == shows

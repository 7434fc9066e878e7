"""At a terminal: colours, what streams, Ctrl-C, questions and answers."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import HANDIWORK, PATIENCE, Program, Terminal, bash, edit, finish

pytestmark = pytest.mark.slow

COLOUR = re.compile("\x1b\\[[0-9;]*3[0-9][0-9;]*m")
ASKED = "what next?"


def start(program: Program, *replies: dict[str, Any], flags: tuple[str, ...] = ()) -> Terminal:
    return program.at_terminal(
        "run", "greet the world", "--model", program.script(*replies), "--sandbox", "none", *flags
    )


def states(program: Program) -> list[tuple[str, str]]:
    asked = [event for event in program.events() if event["type"] == "ChangeAgentStateAction"]
    return [(event["agent_state"], event["source"]) for event in asked]


def test_it_is_coloured_and_the_warning_is_red(program: Program) -> None:
    with start(program, edit("greeting.txt", "hello", "good day"), finish()) as terminal:
        assert terminal.exit_code() == 0
    assert re.search("\x1b\\[1;31mNo sandbox", terminal.seen)
    assert "\x1b[32m+good day" in terminal.seen.replace("  +", "+").replace("\x1b[32m  ", "\x1b[32m")


def test_no_color_is_respected(program: Program) -> None:
    model = program.script(edit("greeting.txt", "hello", "good day"), finish())
    with program.at_terminal("run", "greet", "--model", model, "--sandbox", "none", NO_COLOR="1") as terminal:
        assert terminal.exit_code() == 0
    assert not COLOUR.search(terminal.seen)


def test_output_is_seen_while_the_command_runs(program: Program) -> None:
    with start(program, bash("echo ear''ly; read -t 50 < <(sleep 50)"), finish()) as terminal:
        terminal.until("early")
        assert terminal.process.poll() is None
        terminal.press_ctrl_c()
        terminal.until(ASKED)
        terminal.write("q\n")
        assert terminal.exit_code() == 130


def test_a_reply_is_seen_while_it_streams_but_not_its_json(program: Program) -> None:
    prose = {"content": "I think\n" * 100, "delay": 50}
    with start(program, prose) as terminal:
        terminal.until("I think")
        terminal.press_ctrl_c()
        terminal.until(ASKED)
        terminal.write("q\n")
        terminal.exit_code()
    with start(program, {"content": '{"thought":\n' * 100, "delay": 50}) as terminal:
        terminal.until("thinking, about")
        assert "thought" not in terminal.seen
        terminal.press_ctrl_c()
        terminal.until(ASKED)
        terminal.write("q\n")
        terminal.exit_code()


def test_control_sequences_of_a_program_do_not_reach_the_terminal(program: Program) -> None:
    hostile = "printf '\\033]0;owned\\007\\033[?1049h\\033[6n\\302\\2335n'"
    with start(program, bash(hostile, said="\x1b]52;c;b3duZWQ=\x07"), finish("\x1b[?1049h")) as terminal:
        assert terminal.exit_code() == 0
    for sequence in ("\x1b]0;", "\x1b]52", "\x1b[?1049h", "\x1b[6n", "\x9b5n"):
        assert sequence not in terminal.seen


def test_ctrl_c_interrupts_and_a_message_goes_on(program: Program) -> None:
    with start(program, bash("echo star''ted; sleep 50"), finish("As you say.")) as terminal:
        terminal.until("started")
        terminal.press_ctrl_c()
        terminal.until(ASKED)
        terminal.write("just stop there\n")
        assert terminal.exit_code() == 0
    assert "As you say." in terminal.seen
    assert states(program) == [("paused", "user")]
    messages = [event["content"] for event in program.events() if event["type"] == "MessageAction"]
    assert messages == ["greet the world", "just stop there"]
    stopped = next(event for event in program.events() if event["type"] == "CmdOutputObservation")
    assert stopped["status"] == "interrupted"


def test_a_paste_is_one_message_although_its_last_line_has_no_line_break(program: Program) -> None:
    with start(program, bash("echo star''ted; sleep 50"), finish("As you say.")) as terminal:
        terminal.until("started")
        terminal.press_ctrl_c()
        terminal.until(ASKED)
        terminal.write("it says:\n  error 1\n  error 2")
        time.sleep(0.5)  # as a user, who presses Enter later
        terminal.write("\n")
        assert terminal.exit_code() == 0
    messages = [event["content"] for event in program.events() if event["type"] == "MessageAction"]
    assert messages == ["greet the world", "it says:\n  error 1\n  error 2"]


def test_a_run_under_nohup_outlives_its_terminal(program: Program, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    model = program.script(bash(f"touch {begun}; sleep 2; echo rea''dy"), finish("Went on."))
    run = subprocess.Popen(
        ["nohup", HANDIWORK, "run", "greet", "--model", model, "--sandbox", "none"],
        cwd=program.workspace,
        env=program.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    while not begun.exists():
        assert run.poll() is None
        time.sleep(0.02)
    run.send_signal(signal.SIGHUP)
    rest = run.communicate(timeout=PATIENCE)[0]
    assert (run.returncode, "ready" in rest, "Went on." in rest) == (0, True, True), rest


def test_an_empty_answer_goes_on_as_it_was(program: Program) -> None:
    with start(program, bash("echo star''ted; sleep 50"), finish("Went on.")) as terminal:
        terminal.until("started")
        terminal.press_ctrl_c()
        terminal.until(ASKED)
        terminal.write("\n")
        assert terminal.exit_code() == 0
    assert states(program) == [("paused", "user"), ("running", "user")]


def test_what_is_typed_behind_a_slash_command_is_the_answer(program: Program) -> None:
    with start(program, bash("echo star''ted; sleep 50"), finish("As you say.")) as terminal:
        terminal.until("started")
        terminal.press_ctrl_c()
        terminal.until(ASKED)
        terminal.write("/model nonsense\n")
        terminal.until("looking for nonsense ...")
        terminal.write("just stop there\n")
        assert terminal.exit_code() == 0
    messages = [event["content"] for event in program.events() if event["type"] == "MessageAction"]
    assert messages == ["greet the world", "just stop there"]


def test_ctrl_c_at_the_question_stops(program: Program) -> None:
    with start(program, bash("echo star''ted; sleep 50"), finish()) as terminal:
        terminal.until("started")
        terminal.press_ctrl_c()
        terminal.until(ASKED)
        terminal.press_ctrl_c()
        assert terminal.exit_code() == 130
    assert "outcome" in terminal.seen
    resumed = program("resume")
    assert resumed.returncode == 0, resumed.stdout


def test_a_second_ctrl_c_stops_at_once(program: Program) -> None:
    stubborn = "trap '' INT TERM; echo star''ted; while true; do read -t 50 < <(sleep 50); done"
    with start(program, bash(f'bash -c "{stubborn}"'), finish()) as terminal:
        terminal.until("started")
        terminal.press_ctrl_c()
        terminal.until("interrupting")
        terminal.press_ctrl_c()
        assert terminal.exit_code() == 130
    left = subprocess.run(["pgrep", "-f", str(program.data)], capture_output=True, text=True, check=False)
    assert left.stdout == ""


def test_the_agents_question_is_answered_at_the_terminal(program: Program) -> None:
    with start(program, {"content": "Which world?"}, finish("Greeted.")) as terminal:
        assert "Which world?" in terminal.until("your answer:")
        terminal.write("this one\n")
        assert terminal.exit_code() == 0
    messages = [event["content"] for event in program.events() if event["type"] == "MessageAction"]
    assert messages == ["greet the world", "Which world?", "this one"]


def test_a_question_left_open_is_asked_again_on_resuming(program: Program) -> None:
    with start(program, {"content": "Which world?"}, finish("Greeted.")) as terminal:
        terminal.until("your answer:")
        terminal.write("q\n")
        assert terminal.exit_code() == 1
    with program.at_terminal("resume") as terminal:
        assert "Which world?" in terminal.until("your answer:")
        terminal.write("this one\n")
        assert terminal.exit_code() == 0


def test_an_action_is_allowed_at_the_terminal_and_ctrl_c_leaves_the_next_open(program: Program) -> None:
    replies = edit("greeting.txt", "hello", "good day"), bash("touch new"), finish()
    with start(program, *replies, flags=("--confirm", "always")) as terminal:
        question = terminal.until("allow?")
        assert "wants to do this:" in question
        assert "+good day" in question
        terminal.write("y\n")
        assert "touch new" in terminal.until("allow?")
        terminal.press_ctrl_c()
        assert terminal.exit_code() == 1
    assert "handiwork approve" in terminal.seen


def test_without_a_terminal_ctrl_c_pauses_and_ends(program: Program) -> None:
    process = without_terminal(program)
    process.send_signal(signal.SIGINT)
    assert end_of(process) == 130
    assert states(program) == [("paused", "user")]
    assert program("resume").returncode == 0


def test_a_request_to_end_pauses_and_ends(program: Program) -> None:
    process = without_terminal(program)
    process.terminate()
    assert end_of(process) == 130
    assert states(program) == [("paused", "user")]


def without_terminal(program: Program) -> subprocess.Popen[str]:
    """Start a run and return when its first command runs."""
    started = program.folder / "started"
    os.mkfifo(started)
    model = program.script(bash(f"echo > {started}; sleep 50"), finish())
    process = subprocess.Popen(
        [HANDIWORK, "run", "greet", "--model", model, "--sandbox", "none", "--json"],
        cwd=program.workspace,
        env=program.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    started.read_text()
    return process


def end_of(process: subprocess.Popen[str]) -> int:
    """Read what it still says and return its exit code."""
    process.communicate(timeout=PATIENCE)
    return process.returncode

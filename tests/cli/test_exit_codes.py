"""Exit codes: 0 finished, 1 failed, 2 bad usage, 3 limit, 4 infrastructure; and one message, never a traceback."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from handiwork.cli.commands.permissions import approve
from handiwork.settings import SettingsError
from tests.cli.program import HANDIWORK, PATIENCE, Program, bash, edit, finish

pytestmark = pytest.mark.slow

AGENTS = """
from handiwork.agents.base import Agent
from handiwork.events.action import AgentRejectAction

class Refuses(Agent):
    async def step(self, state):
        return AgentRejectAction(outputs={"reason": "it is against the law"})

class Breaks(Agent):
    async def step(self, state):
        raise RuntimeError("out of ideas")
"""


def only_message(done: subprocess.CompletedProcess[str]) -> str:
    assert "Traceback" not in done.stdout + done.stderr
    return done.stderr


def test_0_a_task_that_is_finished(program: Program) -> None:
    run = program.run(edit("greeting.txt", "hello", "hello world"), finish("It greets the world."))
    assert run.returncode == 0, run.stderr
    assert "It greets the world." in run.stdout
    assert "+hello world" in run.stdout
    assert (program.workspace / "greeting.txt").read_text() == "hello\n"


def test_0_in_the_bubblewrap_sandbox_too(program: Program) -> None:
    model = program.script(bash("ls /; echo hello world > greeting.txt"), finish())
    run = program("run", "greet the world", "--model", model)
    assert run.returncode == 0, run.stderr + run.stdout
    assert "· bubblewrap ·" in run.stdout
    assert "+hello world" in run.stdout
    assert "No sandbox" not in run.stdout


def test_1_a_task_that_is_rejected(program: Program) -> None:
    (program.folder / "agents.py").write_text(AGENTS)
    run = program.run(flags=("--agent", "../agents.py:Refuses"))
    assert run.returncode == 1
    assert "it is against the law" in run.stdout
    assert "no changes" in run.stdout
    assert "handiwork apply" not in run.stdout


def test_1_an_agent_that_breaks(program: Program) -> None:
    (program.folder / "agents.py").write_text(AGENTS)
    run = program.run(flags=("--agent", "../agents.py:Breaks"))
    assert run.returncode == 1
    assert "Breaks raised RuntimeError: out of ideas" in run.stdout
    assert "Traceback" not in run.stdout + run.stderr


def test_1_an_agent_that_asks_where_nobody_answers(program: Program) -> None:
    run = program.run({"content": "Which world?"})
    assert run.returncode == 1
    assert "agent: Which world?" in run.stdout
    assert "waits for your answer" in run.stdout


def test_hosts_are_allowed_from_another_terminal(program: Program) -> None:
    program.run(finish())
    assert program("allow", "no such host").returncode == 2
    allowed = program("allow", "example.org", "pypi")
    assert (allowed.returncode, allowed.stdout) == (0, "")
    assert "may reach example.org, pypi from now on" in allowed.stderr
    assert "changed: the sandbox may reach example.org, pypi" in program("show").stdout


def test_1_an_action_that_nobody_allows_until_it_is_approved(program: Program) -> None:
    run = program.run(bash("echo day >> greeting.txt"), bash("touch no"), finish(), flags=("--confirm", "risky"))
    assert run.returncode == 1
    assert "needs your approval: There is no sandbox" in run.stdout
    session = run.stdout.split("handiwork approve ")[1].split()[0]
    assert f'handiwork approve {session} --reject --comment "..."' in run.stdout
    approved = program("approve", session)
    assert (approved.returncode, approved.stdout) == (0, "  $ echo day >> greeting.txt\n  allowed\n")
    assert program("resume").returncode == 1
    assert "not allowed: not now" in program("approve", "--reject", "--comment", "not now").stdout
    resumed = program("resume")
    assert (resumed.returncode, "+day" in resumed.stdout) == (0, True)
    again = program("approve")
    assert (again.returncode, again.stderr) == (2, f"handiwork: session {session} has nothing to approve\n")


def test_1_a_plan_that_nobody_accepts_until_it_is_approved(program: Program) -> None:
    change = bash("echo day >> greeting.txt")
    run = program.run(finish("First A, then B."), change, finish(), flags=("--plan",))
    assert (run.returncode, ", which accepts the plan" in run.stdout) == (1, True)
    approved = program("approve")
    assert (approved.returncode, approved.stdout) == (0, "  the plan is accepted\n")
    assert program("approve").returncode == 2
    resumed = program("resume")
    assert (resumed.returncode, "+day" in resumed.stdout) == (0, True)


def test_1_an_agent_that_is_stuck_until_it_is_rewound(program: Program) -> None:
    run = program.run(*[bash("cat nothing") for _ in range(6)])
    assert run.returncode == 1
    assert f"handiwork resume {run.stdout.split('resume ')[1].split()[0]} --rewind" in run.stdout
    program.script(finish())  # what it is to say of a conversation with nothing in it any more
    resumed = program("resume", "--rewind")
    assert resumed.returncode == 0, resumed.stderr
    assert "are removed" in resumed.stdout
    assert "is not stuck in a loop" in program("resume", "--rewind").stderr


@pytest.mark.parametrize(
    ("answer", "message"),
    [((True, True, None), "use only one of them"), ((False, False, "x"), "use it with --reject")],
)
async def test_2_an_answer_that_makes_no_sense(answer: tuple[bool, bool, str | None], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        await approve(None, *answer)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", ""), "the task is empty"),
        (("run", "-"), "the task is empty"),
        (("run", "the caf\udce9 test fails"), "task is not UTF-8: convert it"),
        (("sessions", "--search", "caf\udce9"), "search is not UTF-8: convert it"),
        (("run", "greet", "--agent", "Nobody"), "there is no agent 'Nobody'; installed: AgentlessAgent, BrowsingAgent"),
        (("run", "greet", "--workspace", "nowhere"), "nowhere"),
        (("run", "greet", "--workspace", "caf\udce9"), 'caf\\351" is not UTF-8: rename the directory'),
        (("run", "greet", "--sandbox", "sandcastle"), "--sandbox: input should be 'bubblewrap', 'docker' or 'none'"),
        (("run", "greet", "--max-cost", "0"), "--max-cost: input should be greater than 0"),
        (("run", "greet", "--model", "gpt"), 'like "anthropic:NAME"'),
        (("run", "greet", "--model", "scripted:nothing.jsonl"), "cannot read the script"),
        (("run",), "Missing argument"),
        (("run", "greet", "--colour"), "No such option"),
        (("show", "abc"), "no session's id begins with 'abc'"),
        (("show",), "there is no session yet"),
        (("resume",), "there is no session yet"),
        (("diff", "abc"), "no session's id begins with 'abc'"),
        (("apply", "abc"), "no session's id begins with 'abc'"),
    ],
)
def test_2_what_was_asked_makes_no_sense(program: Program, arguments: tuple[str, ...], message: str) -> None:
    run = program(*arguments)
    assert run.returncode == 2, run.stderr
    assert message in only_message(run)


def test_streams_that_are_closed_or_not_utf_8_are_no_internal_error(program: Program) -> None:
    model = program.script(finish("Read."))
    (program.workspace / "latin1").write_bytes(b"the caf\xe9 is closed\n")
    for command, code in (("sessions >&-", 0), ("sessions <&-", 0), ("<&-", 2), ("< latin1", 0)):
        done = subprocess.run(
            ["sh", "-c", f"{HANDIWORK} {command}"],
            cwd=program.workspace,
            env={**program.environment, "HANDIWORK_MODEL": model, "HANDIWORK_SANDBOX": "none"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert (done.returncode, "internal error" in done.stderr) == (code, False), done.stderr
    (message,) = (event["content"] for event in program.events() if event["type"] == "MessageAction")
    assert message == "the caf\ufffd is closed\n"


def test_3_a_limit_is_reached_and_raised_by_resuming(program: Program) -> None:
    run = program.run(bash("echo one"), bash("echo two"), finish(), flags=("--max-iterations", "2"))
    assert run.returncode == 3
    assert "paused: the limit of 2 steps is reached" in run.stdout
    assert "with a higher limit like --max-iterations" in run.stdout
    resumed = program("resume", "--max-iterations", "5")
    assert resumed.returncode == 0, resumed.stderr
    assert "step 3" in resumed.stdout
    assert "echo one" not in resumed.stdout


def test_4_the_model_fails(program: Program) -> None:
    run = program.run(bash("echo one"))
    assert run.returncode == 4
    assert "error: the script has 1 replies" in run.stdout
    assert "Traceback" not in run.stdout + run.stderr


def test_4_the_data_folder_cannot_be_used(program: Program) -> None:
    Path(program.data).write_text("a file where a folder should be")
    run = program("sessions")
    assert run.returncode == 4
    assert str(program.data) in only_message(run)


def test_4_the_log_is_damaged(program: Program) -> None:
    program.data.mkdir()
    (program.data / "handiwork.db").write_bytes(b"this is no database, whatever its name says" * 100)
    run = program("run", "greet", "--model", program.script(finish()))
    assert run.returncode == 4
    assert "damaged" in only_message(run)


def test_a_session_that_is_finished_needs_a_message_to_go_on(program: Program) -> None:
    program.run(finish("Once."), finish("Twice."))
    resumed = program("resume")
    assert resumed.returncode == 2
    assert "is finished: give it a task with --message" in resumed.stderr
    assert "Twice." in program("resume", "--message", "again").stdout


def test_who_reads_the_output_may_have_enough_of_it(program: Program) -> None:
    program.run(bash("seq 1 50000"), finish())
    read, write = os.pipe()
    shown = subprocess.Popen(
        [HANDIWORK, "show", "--full"],
        env=program.environment,
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(write)
    os.read(read, 100)
    os.close(read)
    assert shown.communicate(timeout=60)[1] == ""
    assert shown.returncode == 141


@pytest.mark.parametrize("kept", [(), ("HANDIWORK_DATA",)], ids=["without folders", "with a data folder"])
def test_4_a_user_without_a_home(program: Program, kept: tuple[str, ...]) -> None:
    run = subprocess.run(
        ["unshare", "--user", "--map-user=54321", HANDIWORK, "run", "greet", "--model", program.script(finish())],
        cwd=program.workspace,
        env={key: program.environment[key] for key in ("PATH", "PYTHONPYCACHEPREFIX", *kept)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert run.returncode == 4
    assert only_message(run) == (
        "handiwork: HOME: this user has no home directory: set HOME to a folder that it can write to\n"
    )

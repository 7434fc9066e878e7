"""What the commands print without a terminal: plain text for people, JSON lines for programs."""

from __future__ import annotations

import json
import os
import re
import subprocess

import pytest

from handiwork.events.codec import EVENT_TYPES, from_dict
from tests.cli.program import HANDIWORK, PATIENCE, Program, bash, edit, finish

pytestmark = pytest.mark.slow

HOSTILE = "printf 'a\\033]0;title\\007b\\033[2Jc\\033[31mred\\033[0m 10%%\\r100%%\\n\\302\\2335nd\\n'"
"""Sets the terminal's title, clears it, colours, writes over itself, and uses an 8-bit control sequence."""


def test_json_is_all_there_is_on_stdout(program: Program) -> None:
    run = program.run(bash("echo hi", said="I look."), finish(), flags=("--json",))
    events = [json.loads(line) for line in run.stdout.splitlines()]
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    assert {event["type"] for event in events} <= set(EVENT_TYPES)
    assert [from_dict(event).kind for event in events][-1] == "AgentFinishAction"
    assert "session " in run.stderr
    assert events == program.events()
    assert program("show", "--json").stdout == run.stdout


def test_json_keeps_errors_on_stderr_and_the_exit_code(program: Program) -> None:
    run = program.run({"error": "no such luck"}, flags=("--json",))
    assert run.returncode == 4
    assert [json.loads(line)["type"] for line in run.stdout.splitlines()][-1] == "AgentStateChangedObservation"
    failed = program("run", "greet", "--agent", "Nobody", "--json")
    assert (failed.returncode, failed.stdout) == (2, "")


def test_json_of_a_resumed_session_has_only_what_is_new(program: Program) -> None:
    program.run(bash("echo one"), finish(), flags=("--max-iterations", "1"))
    before = program.events()
    resumed = program("resume", "--max-iterations", "9", "--json")
    assert resumed.returncode == 0
    assert before + [json.loads(line) for line in resumed.stdout.splitlines()] == program.events()


def test_a_reader_of_json_that_leaves_stops_a_session_which_resumes(program: Program) -> None:
    model = program.script(bash("sleep 1"), bash("echo two"), finish())
    command = f"{HANDIWORK} run greet --model {model} --sandbox none --json | head -n 1"
    subprocess.run(["sh", "-c", command], cwd=program.workspace, env=program.environment, timeout=PATIENCE, check=True)
    events = program.events()
    assert "error" not in [event.get("agent_state") for event in events]
    assert events[-1]["type"] != "AgentFinishAction"
    resumed = program("resume", "--json")
    assert resumed.returncode == 0, resumed.stderr
    assert program.events()[-1]["type"] == "AgentFinishAction"


def test_control_sequences_of_a_program_never_reach_the_user(program: Program) -> None:
    run = program.run(bash(HOSTILE, said="\x1b]0;mine\x07thought\x1b[5m"), finish("\x1b[2Jdone\x9b2J"))
    shown = program("show", "--full")
    for text in (run.stdout, shown.stdout):
        assert "\n  thought\n" in text
        assert "\n  100%\n" in text
        assert not {character for character in text if character < " " or "\x7f" <= character < "\xa0"} - {"\n"}
    assert "abcred" not in run.stdout.replace("100%", "")
    assert "message  done" in run.stdout
    as_json = program("show", "--json").stdout
    assert "\x1b" not in as_json
    assert "\x9b" not in as_json


def test_long_output_is_cut_in_its_middle_and_whole_on_demand(program: Program) -> None:
    run = program.run(bash("seq 1 20000"), finish())
    lines = run.stdout.splitlines()
    assert "  1" in lines
    assert "  20000" in lines
    assert "  5000" not in lines
    hints = [line for line in lines if "(handiwork show " in line]
    assert len(hints) == 1
    assert hints[0].startswith("  ... more lines, 108894 bytes in all (")
    whole = program("show", hints[0].split()[-2], "--full").stdout.splitlines()
    numbers = [str(n) for n in range(1, 20001)]
    assert [line.strip() for line in whole if line.strip().isdigit()] == numbers
    events = map(json.loads, program("show", "--full", "--json").stdout.splitlines())
    (output,) = [event for event in events if event["type"] == "CmdOutputObservation"]
    assert (output["content"].split(), output["tail"], output["blob"]) == (numbers, "", None)


def test_the_beginning_tells_of_no_sandbox_and_the_end_what_it_took_and_what_is_next(
    program: Program,
) -> None:
    usage = {"input": 1200, "output": 30, "cache_read": 7, "cache_write": 8}
    run = program.run(edit("greeting.txt", "hello", "good day"), {**finish("Bye."), "usage": usage, "cost": 0.0123})
    assert "No sandbox: the agent's commands run on this machine" in run.stdout
    end = run.stdout[run.stdout.index("outcome") :].splitlines()
    assert end[0] == "outcome  finished"
    assert end[1] == "message  Bye."
    assert end[2] == "steps    2"
    assert end[3] == "tokens   1,200 in, 30 out, 7 read from cache, 8 written to it"
    assert end[4] == "cost     $0.0123 from the script"
    assert end[5].startswith("time     ")
    session = end[6].removeprefix("session  ")
    assert [line[9:] for line in end[7:]] == [
        f"handiwork diff {session}",
        f"handiwork apply {session}",
        f'handiwork resume {session} --message "..."',
    ]


def test_sessions_are_listed_newest_first(program: Program) -> None:
    program.run(finish())
    program("run", "a second task", "--model", program.script(finish()), "--sandbox", "none")
    rows = program("sessions").stdout.splitlines()
    titles = [re.split(" {2,}", row)[-2:] for row in rows]
    assert titles == [["a second task", "project"], ["greet the world", "project"]]
    title = f"# **Write** {'words ' * 30}"
    program("run", title, "--model", program.script(bash("touch a")), "--sandbox", "none", "--confirm", "always")
    columns = re.split(" {2,}", program("sessions").stdout.splitlines()[0])
    shown = ["needs your approval", f"Write {'words ' * 15}wor…", "project"]
    assert columns[2:] == shown
    infos = [json.loads(line) for line in program("sessions", "--json").stdout.splitlines()]
    assert [info["title"] for info in infos[1:]] == ["a second task", "greet the world"]
    assert program("show", infos[2]["id"][:6]).stdout.count("you: greet the world") == 1


def test_a_task_is_read_from_standard_input(program: Program) -> None:
    command = [HANDIWORK, "run", "-", "--model", program.script(finish()), "--sandbox", "none"]
    task = "Greet the world,\nand the moon.\n"
    subprocess.run(command, cwd=program.workspace, env=program.environment, input=task, text=True, check=True)
    (said,) = [event for event in program.events() if event["type"] == "MessageAction"]
    assert (said["source"], said["content"].strip()) == ("user", task.strip())


def test_the_diff_is_a_patch_that_git_applies(program: Program) -> None:
    made = "printf 'caf\\303\\251\\r\\nno end' > new.txt; echo more >> greeting.txt"
    program.run(bash(made), finish())
    patch = subprocess.run([HANDIWORK, "diff"], env=program.environment, capture_output=True, check=True).stdout
    subprocess.run(["git", "apply", "-"], cwd=program.workspace, input=patch, check=True)
    assert (program.workspace / "new.txt").read_bytes() == b"caf\xc3\xa9\r\nno end"
    assert (program.workspace / "greeting.txt").read_text() == "hello\nmore\n"


def test_changes_are_applied_not_by_a_dry_run_and_undone_unless_edited_since(
    program: Program,
) -> None:
    program.run(edit("greeting.txt", "hello", "good day"), finish())
    dry = program("apply", "--dry-run")
    assert (dry.returncode, dry.stdout) == (0, "written   greeting.txt\n")
    assert (program.workspace / "greeting.txt").read_text() == "hello\n"
    assert program("apply").returncode == 0
    assert (program.workspace / "greeting.txt").read_text() == "good day\n"
    assert program("apply").stdout == "the same  greeting.txt\n"
    (program.workspace / "greeting.txt").write_text("servus\n")
    refused = program("apply", "--undo")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.endswith("have changed since the apply:\n  greeting.txt\n")
    (program.workspace / "greeting.txt").write_text("good day\n")
    assert program("apply", "--undo", "--dry-run").returncode == 2
    undone = program("apply", "--undo")
    assert (undone.returncode, undone.stdout) == (0, "restored  greeting.txt\n")
    assert (program.workspace / "greeting.txt").read_text() == "hello\n"
    nothing = program("apply", "--undo")
    assert (nothing.returncode, nothing.stderr) == (2, "handiwork: there is no apply to undo\n")


def test_changed_files_that_git_ignores_are_named_because_no_apply_brings_them(program: Program) -> None:
    subprocess.run(["git", "init", "-q", program.workspace], check=True)
    (program.workspace / ".gitignore").write_text("local.ini\nbuild/\n")
    (program.workspace / "local.ini").write_text("port = 1\n")
    made = "echo port = 2 > local.ini; mkdir build; touch build/a build/b; echo new > new.txt"
    run = program.run(bash(made), finish())
    note = "git ignores 3 files that the session changed, left out: build/a, build/b, local.ini"
    assert note in run.stderr
    assert note in program("diff").stderr
    applied = program("apply")
    assert note in applied.stderr
    assert applied.stdout == "written   new.txt\n"


def test_a_run_names_the_files_that_the_copy_lacks(program: Program) -> None:
    subprocess.run(["git", "init", "-q", program.workspace], check=True)
    (program.workspace / ".gitignore").write_text(".env\nmodules/\n")
    (program.workspace / ".env").write_text("PASSWORD=1\n")
    (program.workspace / "modules").mkdir()
    with (program.workspace / "modules/big").open("wb") as file:
        file.truncate(50_000_001)
    run = program.run(bash("ls -A"), finish())
    assert "not in the agent's copy: .env, modules/ (unreadable, or ignored by git" in run.stdout
    assert "modules" not in run.stdout.replace(".env, modules/", "")


def test_apply_with_a_conflict_changes_nothing(program: Program) -> None:
    program.run(edit("greeting.txt", "hello", "good day"), bash("echo new > new.txt"), finish())
    (program.workspace / "greeting.txt").write_text("servus\n")
    applied = program("apply")
    assert applied.returncode == 1
    assert "greeting.txt" in applied.stderr
    assert (program.workspace / "greeting.txt").read_text() == "servus\n"
    assert not (program.workspace / "new.txt").exists()


def test_in_place_the_directory_itself_is_changed(program: Program) -> None:
    run = program.run(edit("greeting.txt", "hello", "good day"), finish(), flags=("--in-place",))
    assert "· in place ·" in run.stdout
    assert (program.workspace / "greeting.txt").read_text() == "good day\n"
    assert "+good day" in run.stdout
    assert "handiwork apply" not in run.stdout


def test_models_and_agents_say_what_there_is_and_how_to_name_it(program: Program) -> None:
    models = program("models", OPENAI_API_KEY="secret-value", ANTHROPIC_API_KEY="").stdout
    assert "local:qwen2.5-coder-1.5b" in models
    assert "key in OPENAI_API_KEY" in models
    assert "no key: set ANTHROPIC_API_KEY" in models
    assert "--base-url" in models
    assert "secret-value" not in models
    agents = program("agents").stdout
    assert {"BrowsingAgent", "CodeActAgent"} <= {line.partition(" ")[0] for line in agents.splitlines()}
    assert "file.py:Class" in agents
    assert "file.toml" in agents
    assert f"{'':24}takes task: str, url: str = ''; gives message: str\n" in agents
    listed = {agent["name"]: agent for agent in map(json.loads, program("agents", "--json").stdout.splitlines())}
    assert listed["CodeActAgent"]["about"].startswith("The general-purpose agent")
    assert listed["BrowsingAgent"]["inputs"]["properties"].keys() == {"task", "url"}
    assert listed["BrowsingAgent"]["outputs"]["required"] == ["message"]


def test_the_doctor_starts_a_real_sandbox(program: Program) -> None:
    checked = program("doctor", "--json", OPENAI_API_KEY="secret-value")
    found = {finding["check"]: finding for finding in map(json.loads, checked.stdout.splitlines())}
    assert checked.returncode == 0, checked.stdout
    assert found["bubblewrap"]["level"] == "ok"
    assert found["bubblewrap"]["text"].startswith("started in ")
    assert found["local model"]["level"] == "warn"
    assert found["provider keys"]["text"] == "OPENAI_API_KEY"
    assert {"python", "git", "bundle", "browser", "user namespaces", "resource limits", "data folder", "log"} < set(
        found
    )


def test_the_doctor_says_what_forbids_a_task(program: Program) -> None:
    program.data.write_text("a file where a folder should be")
    checked = program("doctor", HANDIWORK_MODLE="x")
    assert checked.returncode == 4
    failed = [line for line in checked.stdout.splitlines() if line.startswith("fail")]
    assert len(failed) == 2
    assert "HANDIWORK_MODLE" in failed[0]
    assert str(program.data) in failed[1]


def test_the_doctor_fails_without_the_sandbox_of_the_settings(program: Program) -> None:
    docker = program.folder / "bin/docker"
    docker.parent.mkdir()
    docker.write_text("#!/bin/sh\necho no daemon >&2\nexit 1\n")
    docker.chmod(0o755)
    checked = program("doctor", HANDIWORK_IMAGE="debian:12", PATH=f"{docker.parent}:{os.environ['PATH']}")
    (failed,) = [line for line in checked.stdout.splitlines() if line.startswith("fail")]
    assert "docker" in failed
    assert "no daemon" in failed
    assert checked.returncode == 4


def test_the_doctor_fails_without_the_key_of_the_model_of_the_settings(program: Program) -> None:
    checked = program("doctor", HANDIWORK_MODEL="anthropic:NAME", ANTHROPIC_API_KEY="")
    (failed,) = [line for line in checked.stdout.splitlines() if line.startswith("fail")]
    assert "Set the `ANTHROPIC_API_KEY` environment variable" in failed
    assert checked.returncode == 4


def test_every_command_explains_itself(program: Program) -> None:
    listed = program("--help").stdout
    for command in (
        "run",
        "resume",
        "sessions",
        "show",
        "diff",
        "apply",
        "approve",
        "allow",
        "models",
        "agents",
        "doctor",
    ):
        assert f"  {command} " in listed
        assert program(command, "--help").stdout.startswith(f"Usage: handiwork {command} ")


def test_the_help_teaches_with_examples(program: Program) -> None:
    said = program("run", "--help").stdout
    assert '  handiwork run "make the failing test pass"\n' in said
    assert "--base-url http://localhost:8000/v1" in said
    assert "--secret GITHUB_TOKEN --allow-net api.github.com" in said  # without it, the sandbox has no network


def test_the_version_is_told(program: Program) -> None:
    assert program("--version").stdout.startswith("handiwork 0.")


def test_apply_brings_the_commits_on_a_branch_and_says_where_that_failed(program: Program) -> None:
    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=me", "-c", "user.email=me@here")
        return subprocess.check_output(["git", *identity, *arguments], cwd=program.workspace, text=True).strip()

    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-qm", "first")
    commits = [bash("echo new > new.txt; git add -A; git commit -qm second"), finish()]
    amended = [bash("git commit -q --amend -m other"), finish()]
    run = program("run", "commit it", "--model", program.script(*commits, *amended), "--in-place")
    assert "handiwork apply" in run.stdout
    program("apply", "--dry-run")
    assert git("branch", "--format=%(refname:short)") == "main"
    applied = program("apply")
    assert (applied.returncode, applied.stdout) == (0, "")
    branch = applied.stderr.splitlines()[-1].removeprefix("handiwork: commits are on branch ")
    assert git("log", "--format=%s", branch).split() == ["second", "first"]
    program("resume", "--message", "amend it")
    applied = program("apply")
    assert applied.returncode == 4
    assert f"the files are applied, but not the commits: the session's commits were not taken over as {branch}" in (
        applied.stderr
    )


def test_sessions_are_found_by_their_commands_and_archived(program: Program) -> None:
    for name in ("apple", "pear"):
        model = program.script(bash(f"echo '{name}' > {name}.txt"), finish())
        assert program("run", f"plant the {name}", "--model", model).returncode == 0
    (line,) = program("sessions", "--search", "> PEAR.txt").stdout.splitlines()
    assert line.endswith("  plant the pear  project · +1 −0")
    session = line.split()[0]
    assert program("archive", session, "missing").returncode != 0
    assert len(program("sessions").stdout.splitlines()) == 2
    assert f"session {session} is archived" in program("archive", session).stderr
    (left,) = program("sessions").stdout.splitlines()
    assert "plant the apple" in left
    assert "you: plant the apple" in program("show").stdout
    assert program("sessions", "--archived").stdout.split()[0] == session
    nothing = program("sessions", "--search", "pear")
    assert "no session has 'pear'" in nothing.stderr
    program("archive", session, "--undo")
    assert len(program("sessions").stdout.splitlines()) == 2


def test_show_offers_to_apply_only_what_has_changed(program: Program) -> None:
    program.run(finish("A list can change, a tuple cannot."))
    answered = program("show").stdout
    program.run(edit("greeting.txt", "hello", "good day"), finish())
    changed = program("show").stdout
    assert ["handiwork apply" in shown for shown in (answered, changed)] == [False, True]
    assert "handiwork resume" in answered

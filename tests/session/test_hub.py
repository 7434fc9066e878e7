"""The agents of the hub, each end to end in a real sandbox with a scripted model."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import handiwork
from handiwork.agents.delegator import ROUNDS, SAYS
from handiwork.events.action import AgentDelegateAction
from handiwork.events.describe import describe
from handiwork.events.observation import CmdOutputObservation, ErrorObservation, IPythonRunCellObservation
from handiwork.llm.types import Capabilities, Message
from handiwork.session.run import RunResult

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("new_user")]

Call = tuple[str, dict[str, Any]]

ADD = "def add(a, b):\n    return a - b\n"
CHECK = "from calc import add\n\nassert add(2, 3) == 5\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "calc.py").write_text(ADD)
    (folder / "check.py").write_text(CHECK)
    return folder


def git(folder: Path, *arguments: str) -> None:
    author = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", *author, *arguments], cwd=folder, check=True, capture_output=True)


def run(agent: str, task: str, project: Path, *replies: Call, **settings: Any) -> tuple[RunResult, str]:
    """Run the agent, each reply one call; return the result, and the text of the model's first request."""
    script: Sequence[dict[str, Any]] = [{"tool_calls": [{"name": n, "arguments": a}]} for n, a in replies]
    model = handiwork.ScriptedLLM(script)
    result = handiwork.run(task, workspace=project, agent=agent, model=model, **settings)
    return result, shown(model.requests[0]) if model.requests else ""


def shown(messages: Sequence[Message]) -> str:
    return "\n".join(part.text or "" for message in messages for part in message.content)


def bash(command: str) -> Call:
    return "bash", {"command": command}


def outputs_of(result: RunResult) -> list[str]:
    """The texts of the commands' and cells' outputs, in order."""
    kinds = CmdOutputObservation | IPythonRunCellObservation
    return [o.text for _, o in result.state.history if isinstance(o, kinds)]


def test_the_commit_writer_writes_a_message_for_a_staged_change(project: Path) -> None:
    git(project, "init", "-q")
    git(project, "add", "check.py")
    git(project, "commit", "-qm", "Add a check")
    git(project, "add", "calc.py")
    message = "Add calc.add\n\nThe check needs it."
    result, prompt = run(
        "CommitWriterAgent",
        "Say why.",
        project,
        bash("git log --format=%s -n 5"),
        ("write", {"path": "calc.py", "content": ""}),  # refused: it has no such tool
        ("finish", {"message": message}),
    )
    assert "The user's words: Say why." in prompt
    assert "+def add(a, b):" in prompt  # before any reply
    assert outputs_of(result)[1].splitlines() == ["Add a check"]
    assert (result.outcome, result.state.outputs) == ("finished", {"message": message})
    assert result.diff == ""


def test_the_commit_writer_gives_up_without_a_staged_change(project: Path) -> None:
    git(project, "init", "-q")
    replies = (bash("git diff --staged"), ("reject", {"reason": "Nothing is staged."}))
    result, _ = run("CommitWriter", "Write it.", project, *replies)
    assert (result.outcome, result.state.outputs["reason"]) == ("rejected", "Nothing is staged.")


def test_the_typo_fixer_mends_planted_typos_and_nothing_else(project: Path) -> None:
    text = "The the calculator adds\ntwo numbers, and nothign   more.\n"
    (project / "README.md").write_text(text)
    (project / "calc.py").write_text(ADD.replace("\n    ", '\n    # Retruns the "summ" of a and b.\n    '))
    result, prompt = run(
        "TypoFixerAgent",
        "all files",
        project,
        bash("cat README.md calc.py"),
        ("write", {"path": "README.md", "content": "Rewritten."}),  # refused: it has no such tool
        ("edit", {"path": "README.md", "old": "The the", "new": "The"}),
        ("edit", {"path": "README.md", "old": "nothign", "new": "nothing"}),
        ("edit", {"path": "calc.py", "old": "Retruns", "new": "Returns"}),
        ("finish", {"summary": "README.md: the the, nothign; calc.py: Retruns."}),
    )
    assert "Find and mend the typos in all files." in prompt
    assert result.outcome == "finished"
    changed = [line for line in result.diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert changed == [
        "-The the calculator adds",
        "-two numbers, and nothign   more.",
        "+The calculator adds",
        "+two numbers, and nothing   more.",
        '-    # Retruns the "summ" of a and b.',
        '+    # Returns the "summ" of a and b.',
    ]
    (refused,) = [o.content for _, o in result.state.history if isinstance(o, ErrorObservation)]
    assert "There is no tool 'write'" in refused


def test_the_verifier_rejects_an_undone_task(project: Path) -> None:
    result, prompt = run(
        "VerifierAgent",
        "Make add(2, 3) return 5.",
        project,
        bash("python3 check.py"),
        ("finish", {"summary": "I did not say whether."}),  # refused: completed is missing
        ("finish", {"completed": False, "summary": "add(2, 3) is -1."}),
    )
    assert "Make add(2, 3) return 5." in prompt
    assert outputs_of(result)[0] == "There is no commit to compare the files with.\n"
    assert "AssertionError" in outputs_of(result)[-1]
    (refused,) = [o.content for _, o in result.state.history if isinstance(o, ErrorObservation)]
    assert "completed: Field required" in refused
    assert result.state.outputs == {"completed": False, "summary": "add(2, 3) is -1."}
    assert result.diff == ""


def test_the_math_agent_computes_in_python(project: Path) -> None:
    cell = "from fractions import Fraction\nsum(Fraction(1, n) for n in range(1, 5))"
    replies = (("ipython", {"code": cell}), ("finish", {"answer": "25/12"}))
    result, _ = run("MathAgent", "1 + 1/2 + 1/3 + 1/4", project, *replies)
    assert "Fraction(25, 12)" in outputs_of(result)[0]
    assert result.state.outputs == {"answer": "25/12"}


def test_the_studies_read_and_sum_up(project: Path) -> None:
    summary = {"summary": "calc.py has add; check.py checks it."}
    for agent in ("RepoStudyAgent", "StudyRepoForTaskAgent"):
        result, prompt = run(agent, "Mend add.", project, bash("grep -n def *.py"), ("finish", summary))
        assert "Mend add." in prompt
        assert "calc.py:1:def add(a, b):" in outputs_of(result)[0]
        assert (result.outcome, result.state.outputs, result.diff) == ("finished", summary, "")


def test_the_coder_changes_files(project: Path) -> None:
    result, prompt = run(
        "CoderAgent",
        "Mend add.",
        project,
        ("edit", {"path": "calc.py", "old": "a - b", "new": "a + b"}),
        bash("python3 check.py"),
        ("finish", {"message": "It adds."}),
    )
    assert "What is known about the code" not in prompt
    assert outputs_of(result) == [""]
    assert result.diff.endswith("-    return a - b\n+    return a + b\n")
    assert result.state.outputs == {"message": "It adds."}


def test_the_postgres_agent_without_a_server(project: Path) -> None:
    """What it does with a server is a slow test; without one it reports the error."""
    url = "postgresql://nobody@127.0.0.1:1/none"
    result, prompt = run(
        "PostgresAgent",
        f"Add a column to users in {url}.",
        project,
        bash(f"psql -X {url} -c '\\d users' || echo 'no server'"),
        ("reject", {"reason": "The database cannot be reached."}),
    )
    assert "psql -X -v ON_ERROR_STOP=1" in prompt
    assert "no server" in outputs_of(result)[0]
    assert result.outcome == "rejected"


def actions_of(result: RunResult) -> list[str]:
    """The actions of the task itself, in order, each as its verb and object."""
    described = (describe(action) for action, _ in result.state.history)
    return [f"{each.verb} {each.object}".strip() for each in described]


STUDIED = ("finish", {"summary": "calc.py has add."})
EDIT = ("edit", {"path": "calc.py", "old": "a - b", "new": "a + b"})


def test_the_planner_plans_first_and_works_through_its_plan(project: Path) -> None:
    result, prompt = run(
        "PlannerAgent",
        "Mend add.",
        project,
        ("plan_task", {"goal": "Mend add", "subtasks": ["change calc.py", "run check.py"]}),
        EDIT,
        ("finish", {"message": "Too early."}),
        ("modify_task", {"task_id": "0.0", "state": "completed"}),
        bash("python3 check.py"),
        ("modify_task", {"task_id": "0.1", "state": "completed"}),
        ("finish", {"message": "add adds."}),
    )
    assert "There is no plan yet." in prompt
    refused = [o.content for _, o in result.state.history if isinstance(o, ErrorObservation)]
    assert refused == [
        "Open tasks of the plan: 0.0 change calc.py, 0.1 run check.py. Do them, or set them abandoned, then finish."
    ]
    assert actions_of(result) == [
        "say Mend add.",
        "add task Mend add",
        "set task 0.0 to in progress",
        "edit calc.py",
        "think",
        "set task 0.0 to completed",
        "set task 0.1 to in progress",
        "run python3 check.py",
        "set task 0.1 to completed",
        "set task 0 to completed",
        "finish add adds.",
    ]
    assert result.state.plan.text() == "[x] 0 Mend add\n  [x] 0.0 change calc.py\n  [x] 0.1 run check.py"
    assert result.diff.endswith("+    return a + b\n")


def test_the_monologue_recalls_what_it_no_longer_shows(project: Path) -> None:
    (project / "long.txt").write_text("".join(f"line {n} of a long file\n" for n in range(400)))
    looks = [bash("echo the password of the gate is xyzzy"), *[bash(f"cat long.txt # {n}") for n in range(8)]]
    replies = (*looks, ("recall", {"query": "Gate password?"}), ("finish", {"message": "xyzzy"}))
    script = [{"tool_calls": [{"name": n, "arguments": a}]} for n, a in replies]
    model = handiwork.ScriptedLLM(script, capabilities=Capabilities(window=16_000))
    result = handiwork.run("What opens the gate?", workspace=project, agent="MonologueAgent", model=model)
    before, after = (shown(request) for request in model.requests[-2:])
    assert "xyzzy" not in before
    assert "What opens the gate?" in before
    assert "the password of the gate is xyzzy" in after
    assert len(before) < 20_000
    assert result.state.outputs == {"message": "xyzzy"}


def test_the_delegator_codes_until_the_work_is_verified(project: Path) -> None:
    result, _ = run(
        "DelegatorAgent",
        "Mend add.",
        project,
        STUDIED,
        ("finish", {"message": "I changed nothing."}),
        bash("python3 check.py"),
        ("finish", {"completed": False, "summary": "add(2, 3) is -1."}),
        EDIT,
        ("finish", {"message": "It adds now."}),
        bash("python3 check.py"),
        ("finish", {"completed": True, "summary": "check.py succeeds."}),
    )
    studied, objections = "calc.py has add.", "add(2, 3) is -1."
    assert [action.inputs for action, _ in result.state.history if isinstance(action, AgentDelegateAction)] == [
        {"task": "Mend add."},
        {"task": "Mend add.", "summary": studied},
        {"task": f"Mend add.\n\n{SAYS}\n\nI changed nothing."},
        {"task": "Mend add.", "summary": studied, "objections": objections},
        {"task": f"Mend add.\n\n{SAYS}\n\nIt adds now."},
    ]
    assert result.outcome == "finished"
    assert result.state.outputs == {"message": "It adds now.\n\nVerified: check.py succeeds."}
    assert result.diff.endswith("+    return a + b\n")


def test_the_delegator_gives_up_after_its_rounds(project: Path) -> None:
    turn = [("finish", {"message": "Done."}), ("finish", {"completed": False, "summary": "It is not."})]
    result, _ = run("DelegatorAgent", "Mend add.", project, STUDIED, *turn * ROUNDS)
    assert result.outcome == "rejected"
    assert result.state.outputs["reason"] == "The task is not completed after 3 rounds: It is not."


def test_the_delegator_passes_a_question_on_and_rejects_what_the_coder_gives_up(project: Path) -> None:
    result, _ = run("DelegatorAgent", "Mend it.", project, STUDIED, ("ask", {"question": "Mend what?"}))
    assert result.outcome == "awaiting_user_input"
    assert actions_of(result)[-1] == "say Mend what?"
    result, _ = run("DelegatorAgent", "Mend it.", project, STUDIED, ("reject", {"reason": "There is no code."}))
    assert result.outcome == "rejected"
    assert "CoderAgent gave up. reason: There is no code." in str(result.state.outputs["reason"])


def test_a_study_and_a_verifier_that_give_up_do_not_end_the_delegators_work(project: Path) -> None:
    result, _ = run(
        "DelegatorAgent",
        "Mend add.",
        project,
        ("reject", {"reason": "The summary is hard."}),
        ("finish", {"message": "I changed nothing."}),
        ("reject", {"reason": "add is as it was."}),
        EDIT,
        ("finish", {"message": "It adds now."}),
        ("finish", {"completed": True, "summary": "It adds."}),
    )
    inputs = [action.inputs for action, _ in result.state.history if isinstance(action, AgentDelegateAction)]
    known = {"task": "Mend add.", "summary": "The summary is hard."}
    assert inputs[1] == known
    assert inputs[3] == {**known, "objections": "add is as it was."}
    assert result.state.outputs == {"message": "It adds now.\n\nVerified: It adds."}


def test_the_manager_chooses_among_micro_agents(project: Path) -> None:
    result, _ = run(
        "ManagerAgent",
        "What is 6 times 7?",
        project,
        ("math", {}),  # refused: the agent needs a task
        ("math", {"task": "6 * 7"}),
        ("ipython", {"code": "6 * 7"}),
        ("finish", {"answer": "42"}),
        ("finish", {"message": "It is 42."}),
    )
    refused, delegated = (o for _, o in result.state.history if o is not None)
    assert "the inputs of MathAgent do not fit" in refused.text
    assert delegated.text == "MathAgent finished. answer: 42"
    assert result.state.outputs == {"message": "It is 42."}


SMALL = {
    "json": Capabilities(tools=False, schema=True, window=8_000),
    "text": Capabilities(tools=False, schema=False, window=8_000),
}


def written(protocol: str, name: str, body: str | None, **arguments: Any) -> str:
    """A call as a model writes it that has no native calls."""
    if protocol == "json":
        return json.dumps({"thought": "", "action": name, **arguments})
    head = " ".join(str(value) for key, value in arguments.items() if key != body)
    return f"```{name} {head}\n{arguments[body] if body else ''}\n```"


@pytest.mark.parametrize("protocol", SMALL)
@pytest.mark.parametrize("agent", ["PlannerAgent", "MonologueAgent", "ManagerAgent"])
def test_in_every_protocol_and_small_windows(project: Path, protocol: str, agent: str) -> None:
    end = written(protocol, "finish", "message", message="Done.")
    replies = {
        "PlannerAgent": [
            written(protocol, "plan_task", "goal", goal="Look"),
            written(protocol, "bash", "command", command="ls"),
            written(protocol, "modify_task", None, task_id="0", state="completed"),
            end,
        ],
        "MonologueAgent": [
            written(protocol, "bash", "command", command="echo the gate is open"),
            written(protocol, "recall", "query", query="gate"),
            end,
        ],
        "ManagerAgent": [
            written(protocol, "math", "task", task="6 * 7"),
            written(protocol, "finish", "answer", answer="42"),
            end,
        ],
    }[agent]
    model = handiwork.ScriptedLLM(replies, capabilities=SMALL[protocol])
    result = handiwork.run("Look.", workspace=project, agent=agent, model=model, sandbox="none")
    assert (result.outcome, result.state.outputs) == ("finished", {"message": "Done."}), result.state.last_error
    assert result.state.last_error == ""


@pytest.mark.browser
def test_the_visual_browsing_agent_sees_a_marked_picture(project: Path) -> None:
    """The other agents in Python have theirs in test_browsing.py, test_repair.py and tests/agents/test_direct.py."""
    (project / "page.html").write_text("<title>Shop</title><button>Buy for 1234</button>")
    replies = [f"```\ngoto('file://{project}/page.html')\n```", "I see it.\n```\nsend_msg_to_user('1234')\n```"]
    model = handiwork.ScriptedLLM(replies, capabilities=Capabilities(vision=True))
    result = handiwork.run("What does it cost?", workspace=project, agent="VisualBrowsingAgent", model=model)
    assert (result.outcome, result.state.outputs) == ("finished", {"message": "1234"})
    assert "Buy for 1234" in shown(model.requests[-1])
    assert sum(part.blob is not None for message in model.requests[-1] for part in message.content) == 2


POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


@pytest.mark.skipif(not POSTGRES, reason="PostgreSQL's server is not installed")
def test_the_postgres_agent_migrates_a_real_database(project: Path) -> None:
    (project / "migrations").mkdir()
    (project / "migrations/001_users.sql").write_text("CREATE TABLE users (name text NOT NULL);\n")
    psql = "psql -X -v ON_ERROR_STOP=1 -h /tmp -d postgres"
    server = f"{POSTGRES[-1]}/initdb -D /tmp/pg -A trust >/dev/null && {POSTGRES[-1]}/pg_ctl -D /tmp/pg -w -l /tmp/log "
    migration = "BEGIN;\nALTER TABLE users ADD COLUMN email text;\nCOMMIT;\n"
    result, _ = run(
        "PostgresAgent",
        "Give users an email. The server is at /tmp.",
        project,
        bash(f"""{server} -o "-k /tmp -c listen_addresses=''" start"""),
        bash(f"{psql} -q -f migrations/001_users.sql && {psql} -c \"INSERT INTO users VALUES ('Ann')\""),
        ("write", {"path": "migrations/002_email.sql", "content": migration}),
        bash(f"{psql} -At -f migrations/002_email.sql -c '\\d users' -c 'SELECT count(*) FROM users'"),
        ("finish", {"message": "users has an email.", "migration": "migrations/002_email.sql"}),
    )
    assert "ALTER TABLE" in outputs_of(result)[-1]
    assert "email|text" in outputs_of(result)[-1]
    assert outputs_of(result)[-1].rstrip().endswith("\n1")
    assert result.state.outputs == {"message": "users has an email.", "migration": "migrations/002_email.sql"}
    assert "+ALTER TABLE users ADD COLUMN email text;" in result.diff

"""``import handiwork`` is light, and ``handiwork.run`` runs an agent in a sandbox and returns what it changed."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import handiwork
from handiwork.agents.base import Agent
from handiwork.agents.registry import AgentNotFoundError
from handiwork.agents.state import State
from handiwork.errors import WorkspaceError
from handiwork.events.action import AgentFinishAction, CmdRunAction
from handiwork.events.base import Action
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.log.errors import LogError
from handiwork.log.store import Store
from handiwork.session.session import Session
from handiwork.settings import SettingsError

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("new_user")]

WRITE = {"tool_calls": [{"name": "bash", "arguments": {"command": "echo good day > greeting.txt"}}]}
FINISH = {"tool_calls": [{"name": "finish", "arguments": {"message": "Done."}}]}
ADDED = "+++ b/greeting.txt\n@@ -0,0 +1 @@\n+good day\n"


class GreetingAgent(Agent):
    """Writes a file without asking the model, and finishes."""

    def step(self, state: State) -> Action:
        if len(state.history) > 1:
            return AgentFinishAction()
        return CmdRunAction(command="echo good day > greeting.txt")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "main.py").write_text("print('hello')\n")
    return folder


def test_the_import_loads_nothing_else() -> None:
    code = "import sys; before = set(sys.modules); import handiwork; print(*sorted(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert set(loaded) - {"__future__"} == {"handiwork"}


def test_the_names_are_those_of_the_modules() -> None:
    code = "import handiwork; print([(name, getattr(handiwork, name).__module__) for name in handiwork.__all__])"
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert printed.count("handiwork.") == len(handiwork.__all__) == 9
    assert (handiwork.Agent, handiwork.State, handiwork.Session) == (Agent, State, Session)
    assert handiwork.ScriptedLLM is ScriptedLLM
    assert [name for name in dir(handiwork) if name in handiwork.__all__] == handiwork.__all__
    with pytest.raises(AttributeError, match="no attribute 'walk'"):
        handiwork.walk  # type: ignore[attr-defined]  # noqa: B018


def test_a_run_returns_its_changes_and_leaves_the_workspace(project: Path, tmp_path: Path) -> None:
    result = handiwork.run("greet", workspace=project, model=ScriptedLLM([WRITE, FINISH]))
    assert result.outcome == "finished"
    assert result.diff.endswith(ADDED)
    assert (result.state.task, result.state.sandbox) == ("greet", "bubblewrap")
    assert sorted(path.name for path in project.iterdir()) == ["main.py"]
    assert asyncio.run(stored(tmp_path / "data")) == [result.session]


def test_a_session_of_the_past_by_its_id_and_its_events_by_range(project: Path, tmp_path: Path) -> None:
    result = handiwork.run("greet", workspace=project, model=ScriptedLLM([WRITE, FINISH]))
    past = handiwork.load_session(result.session[:6])
    assert (past.id, past.state.outputs, past.last) == (result.session, {"message": "Done."}, result.state.last_id)
    assert [event.id for event in past.events] == list(range(1, past.last + 1))
    assert past.state.history_range(1) == past.state.history

    command = next(event.id for event in past.events if isinstance(event, CmdRunAction))
    earlier = handiwork.load_session(result.session, first=3, last=command, data=tmp_path / "data")
    assert [event.id for event in earlier.events] == list(range(3, command + 1))
    assert (earlier.state.agent_state, earlier.last) == ("running", command)
    assert [action.id for action, _ in past.state.history_range(3, command)] == [command]
    assert past.state.history_range(command + 1, command) == []
    with pytest.raises(LogError):
        handiwork.load_session("nothing")


async def stored(data: Path) -> list[str]:
    async with Store.open(data) as store:
        return [session.id for session in await store.sessions()]


def test_names_of_agent_model_and_sandbox_are_taken_as_on_the_command_line(project: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text("".join(json.dumps(reply) + "\n" for reply in (WRITE, FINISH)))
    result = handiwork.run(
        "greet",
        workspace=str(project),
        agent="CodeActAgent",
        model=f"scripted:{script}",
        sandbox="none",
        data=tmp_path / "elsewhere",
        max_iterations=1,
    )
    assert (result.outcome, result.state.sandbox, result.state.limits.iterations) == ("paused", "none", 1)
    assert result.diff.endswith(ADDED)
    assert not (tmp_path / "data").exists()
    assert asyncio.run(stored(tmp_path / "elsewhere")) == [result.session]


async def test_a_class_is_an_agent_and_a_thread_runs_it_beside_an_event_loop(project: Path) -> None:
    with pytest.raises(RuntimeError, match="running event loop"):
        handiwork.run("greet", workspace=project, agent=GreetingAgent, model=ScriptedLLM([]))
    result = await asyncio.to_thread(
        handiwork.run, "greet", workspace=project, agent=GreetingAgent, model=ScriptedLLM([])
    )
    assert (result.outcome, result.state.agent) == ("finished", "GreetingAgent")
    assert result.diff.endswith(ADDED)


def test_an_agent_of_a_script_runs(project: Path) -> None:
    script = project / "script.py"
    script.write_text(
        "import handiwork\n"
        "from handiwork.events.action import AgentRejectAction\n"
        "class Mine(handiwork.Agent):\n"
        "    def step(self, state): return AgentRejectAction()\n"
        "print(handiwork.run('greet', agent=Mine, model=handiwork.ScriptedLLM([])).outcome)\n"
    )
    done = subprocess.run([sys.executable, script], cwd=project, capture_output=True, text=True, check=False)
    assert done.stdout == "rejected\n", done.stderr


def test_an_interrupted_run_leaves_a_session_to_resume(project: Path, tmp_path: Path) -> None:
    waiting = {"tool_calls": [{"name": "bash", "arguments": {"command": "touch begun; sleep 1000"}}]}
    script = tmp_path / "script.py"
    script.write_text(
        "import handiwork, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a shell's background\n"
        f"handiwork.run('wait', workspace={str(project)!r}, model=handiwork.ScriptedLLM([{waiting}]))\n"
    )
    process = subprocess.Popen([sys.executable, script], stderr=subprocess.PIPE, text=True)
    try:
        while process.poll() is None and not any((tmp_path / "data").rglob("begun")):
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    finally:
        process.kill()
    assert error.endswith("KeyboardInterrupt\n")
    (session,) = asyncio.run(stored(tmp_path / "data"))
    replies = tmp_path / "script.jsonl"
    replies.write_text(f"{json.dumps(FINISH)}\n" * 2)
    resumed = subprocess.run(
        [Path(sys.executable).with_name("handiwork"), "resume", session, "--model", f"scripted:{replies}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr


def test_a_model_that_fails_is_the_outcome(project: Path) -> None:
    result = handiwork.run("greet", workspace=project, model=ScriptedLLM([WRITE]))
    assert result.outcome == "error"
    assert "all are used" in result.state.last_error
    assert result.diff.endswith(ADDED)


def test_what_cannot_begin_is_an_error_and_no_session(project: Path, tmp_path: Path) -> None:
    class Local(GreetingAgent):
        pass

    model = ScriptedLLM([])
    with pytest.raises(TypeError, match="no setting max_costs; known: agent"):
        handiwork.run("greet", workspace=project, model=model, max_costs=1)
    with pytest.raises(SettingsError, match="the task is empty"):
        handiwork.run(" ", workspace=project, model=model)
    with pytest.raises(SettingsError, match="sandbox"):
        handiwork.run("greet", workspace=project, model=model, sandbox="sandcastle")
    with pytest.raises(AgentNotFoundError, match="Local"):
        handiwork.run("greet", workspace=project, model=model, agent=Local)
    with pytest.raises(WorkspaceError, match="nowhere"):
        handiwork.run("greet", workspace=tmp_path / "nowhere", model=model)
    assert asyncio.run(stored(tmp_path / "data")) == []

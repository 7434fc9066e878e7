"""The small tasks of the hub's agents: done or not, by what came of them."""

from __future__ import annotations

from typing import Any

import pytest

from handiwork.agents.registry import descriptions
from handiwork.evals.agent_check import TASKS, check
from handiwork.llm.scripted.model import ScriptedLLM

pytestmark = pytest.mark.usefixtures("new_user")


def verdict_of(agent: str, *calls: tuple[str, dict[str, Any]], package: str = "handiwork") -> tuple[str, str]:
    script = [{"tool_calls": [{"name": name, "arguments": arguments}]} for name, arguments in calls]
    verdict = check(agent, package, {"model": ScriptedLLM(script)})
    return verdict.outcome, verdict.problem


def test_each_task_is_of_an_installed_agent() -> None:
    assert set(TASKS) <= {agent.name for agent in descriptions()}


def test_a_task_that_is_done() -> None:
    edit = ("edit", {"path": "sign.py", "old": "Wrold", "new": "World"})
    assert verdict_of("CodeActAgent", edit, ("finish", {"message": "Done."})) == ("finished", "")
    assert verdict_of("PostgresAgent", ("reject", {"reason": "no server"})) == ("rejected", "")
    typo = ("edit", {"path": "README.md", "old": "calculater", "new": "calculator"})
    assert verdict_of("TypoFixerAgent", typo, ("finish", {"summary": "one"})) == ("finished", "")
    message = ("finish", {"message": "Count the umbrellas that are left"})
    assert verdict_of("CommitWriterAgent", message) == ("finished", "")


def test_why_a_task_is_not_done() -> None:
    done = ("finish", {"message": "Done."})
    assert verdict_of("CodeActAgent", done) == ("finished", "nothing was changed")
    wrong = ("bash", {"command": "echo '# x' >> sign.py"})
    assert verdict_of("CodeActAgent", wrong, done) == ("finished", "it changed other lines: +# x")
    completed = ("finish", {"completed": True, "summary": "It is."})
    assert verdict_of("VerifierAgent", completed) == ("finished", "its completed is 'True', without 'False'")
    outcome, problem = verdict_of("MathAgent", ("reject", {"reason": "too hard"}))
    assert (outcome, problem) == ("rejected", "rejected: too hard")
    assert verdict_of("PostgresAgent", done)[1].startswith("it did not reject a task that cannot be done: finished")
    assert verdict_of("CommitWriterAgent", ("finish", {"message": ""}))[1] == "its message is empty"
    vague = ("finish", {"message": "Update files"})
    assert verdict_of("CommitWriterAgent", vague)[1] == "its message is 'Update files', without 'umbrella'"


def test_an_agent_of_another_package_has_to_finish(tmp_path: Any) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from handiwork.agents.base import Agent\n"
        "from handiwork.events.action import AgentFinishAction\n"
        "class Mine(Agent):\n"
        "    def step(self, state): return AgentFinishAction()\n"
    )
    assert verdict_of(f"{file}:Mine", package="mine") == ("finished", "")
    outcome, problem = verdict_of(f"{file}:Other", package="mine")
    assert outcome == "error"
    assert "cannot be loaded" in problem

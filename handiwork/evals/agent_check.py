"""Quality control of the hub: one small task for each agent, with a live model, and a check of the result."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from handiwork.errors import HandiworkError
from handiwork.session.run import RunResult, run

STEPS = 50
"""The maximum number of steps for a task, those of subtasks included."""

Judge = Callable[[RunResult], str]
"""Returns why the task is not done, "" if it is."""


@dataclass(frozen=True)
class AgentTask:
    """A task in a workspace of ``files``; "{workspace}" in it is the workspace's path. ``staged`` are added to git."""

    task: str
    judge: Judge
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    staged: tuple[str, ...] = ()


@dataclass(frozen=True)
class AgentVerdict:
    """The outcome of an agent's task: ``problem`` is "" if it was done. ``seconds`` is the running time."""

    agent: str
    problem: str
    session: str = ""
    outcome: str = "error"
    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0


def _changes(*lines: str) -> Judge:
    """Return the judge of a task whose changes are exactly these lines of a patch, with quotes of either kind."""

    def judge(result: RunResult) -> str:
        patch = [line for line in result.diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
        if sorted(line.replace("'", '"') for line in patch) == sorted(lines):
            return _ended(result)
        return "nothing was changed" if not patch else f"it changed other lines: {'; '.join(patch)[:200]}"

    return judge


def _outputs(name: str, part: str) -> Judge:
    """Return the judge of a task that changes no file, whose output ``name`` has ``part`` in any case of letters."""

    def judge(result: RunResult) -> str:
        value = str(result.state.outputs.get(name, ""))
        if result.diff:
            return "it changed files"
        if not value:
            return _ended(result) or f"its {name} is empty"
        return _ended(result) or (
            "" if part.lower() in value.lower() else f"its {name} is {value[:200]!r}, without {part!r}"
        )

    return judge


def _ended(result: RunResult) -> str:
    return "" if result.outcome == "finished" else _stop(result)


def _rejected(result: RunResult) -> str:
    return "" if result.outcome == "rejected" else f"it did not reject a task that cannot be done: {_stop(result)}"


def _stop(result: RunResult) -> str:
    change = result.state.change
    said = result.state.outputs.get("reason") or (change.content if change is not None else "")
    reason = str(said or result.state.last_error)
    return f"{result.outcome}: {reason[:200]}".rstrip(": ")


_GREET = AgentTask(
    "`python3 sign.py` prints a wrong word. It should print: Hello, World!",
    _changes('-print("Hello, Wrold!")', '+print("Hello, World!")'),
    {"sign.py": 'print("Hello, Wrold!")\n'},
)
_ADD = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "test_calc.py": "import unittest\n\nfrom calc import add\n\n\nclass TestAdd(unittest.TestCase):\n"
    "    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n",
}
_REPAIR = AgentTask(
    "The test fails: `python3 -m unittest`. Mend add in calc.py.",
    _changes("-    return a - b", "+    return a + b"),
    _ADD,
)
_READ_PAGE = AgentTask(
    "Open file://{workspace}/page.html and tell me its price.",
    _outputs("message", "1234"),
    {"page.html": "<title>Shop</title><h1>A chair</h1><p>Price: 1234 crowns</p>"},
)
_ARITHMETIC = "What is 127 * 349? Let an agent compute it."

TASKS: Mapping[str, AgentTask] = {
    "BrowsingAgent": _READ_PAGE,
    "CodeNavAgent": AgentTask(
        "What is the price of 7 chairs, by the functions of prices.py?",
        _outputs("message", "8638"),
        {"prices.py": "def price_of_chairs(count):\n    '''Return the price of chairs.'''\n    return 1234 * count\n"},
    ),
    "CommitWriterAgent": AgentTask(
        "Write it.",
        _outputs("message", "umbrella"),
        {"umbrellas.py": "UMBRELLAS = 12\n\n\ndef umbrellas_left(lent):\n    return UMBRELLAS - lent\n"},
        ("umbrellas.py",),
    ),
    "ManagerAgent": AgentTask(_ARITHMETIC, _outputs("message", "44323")),
    "MathAgent": AgentTask("What is 127 * 349?", _outputs("answer", "44323")),
    "PostgresAgent": AgentTask("Add a column email to users in postgresql://nobody@127.0.0.1:1/none.", _rejected),
    "RepairAgent": _REPAIR,
    "RepoStudyAgent": AgentTask("What is there, and how is it tested?", _outputs("summary", "calc.py"), _ADD),
    "StudyRepoForTaskAgent": AgentTask("Mend add, which subtracts.", _outputs("summary", "calc.py"), _ADD),
    "SwarmAgent": AgentTask(
        "How many crowns does a chair cost? The file prices.txt tells it.",
        _outputs("message", "1234"),
        {"prices.txt": "table: 560 crowns\nchair: 1234 crowns\n"},
    ),
    "TypoFixerAgent": AgentTask(
        "README.md",
        _changes("-The calculater adds two numbers.", "+The calculator adds two numbers."),
        {"README.md": "# Calc\n\nThe calculater adds two numbers.\n"},
    ),
    "VerifierAgent": AgentTask("Make add(2, 3) in calc.py return 5.", _outputs("completed", "False"), _ADD),
    "VisualBrowsingAgent": _READ_PAGE,
}
"""The tasks of agents that have one of their own; the others get _GREET, or _FREE if they are not the hub's."""

_FREE = AgentTask(_GREET.task, _ended, _GREET.files)


def check(agent: str, package: str, settings: Mapping[str, Any]) -> AgentVerdict:
    """Run the agent's task in a session of its own, with the user's settings and these, and return the verdict.

    ``package`` is the agent's package: an agent of another package than Handiwork's only has to finish. Raises the
    errors of ``run`` but for those of the agent itself.
    """
    task = TASKS.get(agent) or (_GREET if package == "handiwork" else _FREE)
    with tempfile.TemporaryDirectory(prefix="handiwork-check-") as folder:
        workspace = Path(folder).resolve()
        try:
            _fill(workspace, task)
        except (OSError, subprocess.CalledProcessError) as error:
            return AgentVerdict(agent, f"its workspace cannot be made: {error}")
        text = task.task.replace("{workspace}", str(workspace))
        arguments: dict[str, Any] = {"max_iterations": STEPS, **settings}
        try:
            result = run(text, workspace=workspace, agent=agent, **arguments)
        except HandiworkError as error:
            return AgentVerdict(agent, str(error))
    state = result.state
    return AgentVerdict(
        agent, task.judge(result), result.session, result.outcome, state.iteration, state.usage.total, state.time
    )


def _fill(workspace: Path, task: AgentTask) -> None:
    for name, text in task.files.items():
        (workspace / name).write_text(text)
    if task.staged:
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        for command in (["init", "-q"], ["add", *task.staged]):
            subprocess.run(["git", *command], cwd=workspace, env=environment, check=True, capture_output=True)

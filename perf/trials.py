"""40 candidates validated side by side in forks beside 40 in turn with a reset in between: ``python -m perf.trials``.

The workspace is an instance of SWE-bench Lite from the folder in HANDIWORK_BENCHDATA, installed as the benchmark does.
A candidate is an edit of one file, its validation is a test module. In turn, one sandbox makes the edit, runs the tests
and takes the edit back with git; side by side, each candidate has a fork, as AgentlessAgent validates its candidates.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from handiwork.agents.agentless.trial import TrialInputs, trials
from handiwork.agents.base import Agent, Step
from handiwork.agents.repair.edits import TextEdit
from handiwork.agents.state import State
from handiwork.evals.benchmark import Instance
from handiwork.evals.benchmarks.swebench.benchmark import SWEBench
from handiwork.events.action import AgentFinishAction, CmdRunAction, FileEditAction, ForkAction
from handiwork.events.base import Action
from handiwork.events.observation import CmdOutputObservation, ForkObservation
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.log.store import Store
from handiwork.session.config import SessionConfig
from handiwork.session.open import create

INSTANCE, COUNT = "pallets__flask-4992", 40
PATH, OLD, NEW = "src/flask/config.py", "import errno", "import errno  # candidate {}"
TESTS = "pytest -rA tests/test_config.py"
PASSES = "tests/test_config.py::test_config_from_pyfile"
"""A test that passes with every candidate."""


class SideBySideAgent(Agent):
    """Validates all candidates in forks."""

    description = "Validates candidates in forks."

    def step(self, state: State) -> Step:
        """Return the fork, and then the end."""
        if any(isinstance(action, ForkAction) for action, _ in state.history):
            return AgentFinishAction()
        edits = [TextEdit(path=PATH, old=OLD, new=NEW.format(number)) for number in range(COUNT)]
        return trials([TrialInputs(task=edit.new, edits=(edit,), check=TESTS, tests=(PASSES,)) for edit in edits])


class InTurnAgent(Agent):
    """Validates the candidates one after another, with a reset in between."""

    description = "Validates candidates in turn."

    def step(self, state: State) -> Step:
        """Return the next candidate's edit, tests and reset, and then the end."""
        number = sum(isinstance(action, FileEditAction) for action, _ in state.history)
        if number == COUNT:
            return AgentFinishAction()
        edit = FileEditAction(path=PATH, old=OLD, new=NEW.format(number))
        return [edit, CmdRunAction(command=TESTS, timeout=600), CmdRunAction(command="git checkout --quiet .")]


async def measured(agent: type[Agent], instance: Instance, folder: Path) -> float:
    """Return the seconds from the first action to the end of the last one."""
    benchmark, project = SWEBench(), folder / "project"
    project.mkdir(parents=True)
    await asyncio.to_thread(benchmark.prepare, instance, project)
    config = SessionConfig(
        agent=f"perf.trials:{agent.__name__}",
        model="scripted:",
        workspace=str(project),
        sandbox="bubblewrap",
        mount_ro=tuple(map(str, benchmark.mounts(instance))),
    )
    async with Store.open(folder / "data") as store:
        session = await create(store, folder / "data", config, lambda _: None, "trials", llm=ScriptedLLM(()))
        state = await session.run("Validate.")
        events = await session.events()
        await session.close()
    assert state.agent_state == "finished", state.last_error
    done = [o for _, o in state.history if isinstance(o, ForkObservation | CmdOutputObservation)]
    forks = [child for one in done if isinstance(one, ForkObservation) for child in one.outcomes]
    assert all(child.outputs.get("failed") == [] for child in forks)
    assert all(not isinstance(one, CmdOutputObservation) or one.exit_code == 0 for one in done)
    first = next(event for event in events if isinstance(event, Action) and event.source == "agent")
    return (done[-1].timestamp - first.timestamp).total_seconds()


def main(data: Path) -> None:
    """Print the times of two rounds, side by side and in turn, and their ratio."""
    instance = next(one for one in SWEBench().load(data / "swe_bench_lite", "lite") if one.id == INSTANCE)
    with tempfile.TemporaryDirectory(prefix="handiwork-perf-") as name:
        for number in range(2):
            forks = asyncio.run(measured(SideBySideAgent, instance, Path(name, f"forks-{number}")))
            turns = asyncio.run(measured(InTurnAgent, instance, Path(name, f"turns-{number}")))
            print(
                f"{COUNT} forks {forks:.1f} s, {COUNT} resets {turns:.1f} s: {forks / turns:.2f} of it; "
                f"load {os.getloadavg()[0]:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    if (folder := os.environ.get("HANDIWORK_BENCHDATA")) is None:
        sys.exit("set HANDIWORK_BENCHDATA to the folder with swe_bench_lite")
    main(Path(folder))

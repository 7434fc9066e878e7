"""An action of one's own and its observation: run it with `--agent examples/custom_action.py:PytestAgent`."""

import re
from typing import ClassVar

from handiwork.agents.codeact import CodeActAgent
from handiwork.events.action import CmdRunAction
from handiwork.events.base import Action, Observation, Run


class RunTestsAction(Action):
    """Run the project's tests and count those that passed and failed."""

    runnable: ClassVar[bool] = True
    command: str = "pytest -q"

    async def execute(self, run: Run) -> Observation:
        """Run the command in the sandbox's shell and read pytest's last line."""
        printed = await run(CmdRunAction(command=self.command))
        counts = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed)", printed.text)}
        return RunTestsObservation(content=printed.text, passed=counts.get("passed", 0), failed=counts.get("failed", 0))


class RunTestsObservation(Observation):
    """What the tests printed, and how many of them passed and failed."""

    passed: int = 0
    failed: int = 0


class PytestAgent(CodeActAgent):
    """CodeAct whose model may call the tool `run_tests`."""

    description = "CodeAct that counts tests."
    tools = (RunTestsAction,)

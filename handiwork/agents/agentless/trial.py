"""A trial: a candidate's edits in a copy of the workspace, the existing tests, and a reproduction test."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import BaseModel

from handiwork.agents.agentless.regression import PASSED, passed_tests, reporting
from handiwork.agents.agentless.reproduction import phrases_in
from handiwork.agents.base import Agent, Step
from handiwork.agents.repair.edits import TextEdit
from handiwork.agents.repair.files import may_repeat
from handiwork.agents.repair.validation import edit_problem, edits_left
from handiwork.agents.state import State
from handiwork.events.action import (
    AgentFinishAction,
    AgentRejectAction,
    CmdRunAction,
    FileWriteAction,
    ForkAction,
    OutputReadAction,
)
from handiwork.events.base import Action, Observation
from handiwork.events.observation import CmdOutputObservation, ErrorObservation, OutputReadObservation

SCRIPT = "agentless_reproduction"
"""The name of the reproduction test in the copy, without its suffix."""


_LINE_NUMBER = re.compile(r"^\d+: ", re.MULTILINE)


class TrialInputs(BaseModel):
    """The inputs of a trial; ``task`` is its label.

    ``check`` is the test command, "" for none. With ``tests`` the outcome has those that do not pass, without it all
    that pass. ``script`` is a reproduction test, "" for none; ``command`` runs its file. Timeouts are in seconds.
    """

    task: str
    edits: tuple[TextEdit, ...] = ()
    check: str = ""
    tests: tuple[str, ...] | None = None
    test_timeout: float = 600.0
    script: str = ""
    suffix: str = ""
    command: str = ""
    script_timeout: float = 120.0


class TrialOutputs(BaseModel):
    """The outcome: the tests that passed, or the selected ones that did not, and the reproduction test's phrases.

    ``seconds`` is the time of the tests of the unchanged code, None if they did not end by themselves. ``message`` is a
    summary for people.
    """

    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] | None = None
    phrases: tuple[str, ...] = ()
    seconds: float | None = None
    message: str = ""


def trials(inputs: Sequence[TrialInputs]) -> ForkAction:
    """Return the action that runs the trials side by side, each in a copy of its own."""
    name = f"{TrialAgent.__module__}:{TrialAgent.__name__}"
    return ForkAction(children=tuple((name, one.model_dump(mode="json", exclude_defaults=True)) for one in inputs))


class TrialAgent(Agent):
    """Makes the edits of its inputs, runs the tests and the reproduction test, and reports. It asks no model."""

    description = "Tries a candidate in a copy of the workspace; a child of AgentlessAgent."
    inputs = TrialInputs

    def at_limit(self, state: State, limit: str) -> Step | None:
        """Give no outcome, so that those of the other trials count; pause at a cost, whose limit the user may raise.

        The trial of the unchanged code pauses too: there is no candidate yet, and later ones need its tests.
        """
        inputs = state.inputs_as(TrialInputs)
        if limit == "cost" or not (inputs.edits or inputs.script):
            return None
        return AgentRejectAction(outputs={"reason": f"The limit of {limit} came first."})

    def step(self, state: State) -> Step:
        """Return all that is left to do, the next page of the tests' output, or the outcome."""
        inputs = state.inputs_as(TrialInputs)
        commands = _commands(inputs)
        if edits := edits_left(state, inputs.edits):
            return [*edits, *commands]
        if problem := edit_problem(state, inputs.edits):
            return AgentRejectAction(outputs={"reason": problem})
        done = [_outcome(state, action) for action in commands]
        unfinished = next((number for number, one in enumerate(done) if one is None or may_repeat(one)), None)
        if unfinished is not None:
            return commands[unfinished:]
        outputs = TrialOutputs()
        if inputs.check:
            report = _report(state, done[0])
            if isinstance(report, OutputReadAction):
                return report
            code = done[0].exit_code if isinstance(done[0], CmdOutputObservation) else None
            passed = dict.fromkeys(passed_tests(report, inputs.check, code))
            if inputs.tests is None:
                outputs.passed = tuple(passed)
                outputs.seconds = _seconds(state, commands[0])
                outputs.message = f"{len(passed)} tests pass"
            else:
                outputs.failed = tuple(test for test in inputs.tests if test not in passed)
                outputs.message = f"{len(inputs.tests) - len(outputs.failed)} of {len(inputs.tests)} tests pass"
        if inputs.script and done[-1] is not None:
            outputs.phrases = phrases_in(done[-1].text)
            said = ", ".join(outputs.phrases) or "no verdict of the reproduction test"
            outputs.message = ", ".join(filter(None, [outputs.message, said]))
        return AgentFinishAction(outputs=outputs.model_dump(mode="json", exclude_defaults=True))


def _commands(inputs: TrialInputs) -> list[Action]:
    actions: list[Action] = []
    if inputs.check:
        actions.append(CmdRunAction(command=f"({reporting(inputs.check)})", timeout=inputs.test_timeout))
    if inputs.script:
        path = SCRIPT + inputs.suffix
        actions.append(FileWriteAction(path=path, content=inputs.script))
        actions.append(CmdRunAction(command=f"{inputs.command} {path} < /dev/null", timeout=inputs.script_timeout))
    return actions


def _outcome(state: State, action: Action) -> Observation | None:
    """Return the last observation of an action like this one, None if there is none yet."""
    match action:
        case CmdRunAction(command=command):
            same = (o for a, o in reversed(state.history) if isinstance(a, CmdRunAction) and a.command == command)
        case FileWriteAction(path=path):
            same = (o for a, o in reversed(state.history) if isinstance(a, FileWriteAction) and a.path == path)
        case _:
            return None
    return next(same, None)


def _seconds(state: State, command: Action) -> float | None:
    """Return the time of the last run of a command, None if it did not end by itself."""
    for action, observation in reversed(state.history):
        if isinstance(action, CmdRunAction) and isinstance(command, CmdRunAction) and action.command == command.command:
            ended = isinstance(observation, CmdOutputObservation) and observation.status == "done"
            return (observation.timestamp - action.timestamp).total_seconds() if observation and ended else None
    return None


def _report(state: State, observation: Observation | None) -> str | OutputReadAction:
    """Return the lines of the tests' output that may report a passed test, or the action that reads further ones."""
    if observation is None or observation.blob is None:
        return "" if observation is None else observation.text
    answers = [o for a, o in state.history if isinstance(a, OutputReadAction) and a.output == observation.blob]
    pages = [answer for answer in answers if isinstance(answer, OutputReadObservation)]
    is_refused = bool(answers) and isinstance(answers[-1], ErrorObservation) and not may_repeat(answers[-1])
    end = pages[-1].end if pages else 0
    if not is_refused and (not pages or end < pages[-1].lines):
        return OutputReadAction(output=observation.blob, start=end + 1, pattern=PASSED)
    return _LINE_NUMBER.sub("", "".join(page.content for page in pages))

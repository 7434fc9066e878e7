"""Validation of candidates side by side: a child for each applies its edits to its own copy and runs the check."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, JsonValue

from handiwork.agents.base import Agent, Step
from handiwork.agents.repair.check import moves
from handiwork.agents.repair.edits import TextEdit
from handiwork.agents.repair.files import may_repeat
from handiwork.agents.repair.outcome import ENDED, Outcome, outcome_of
from handiwork.agents.repair.progress import Candidate
from handiwork.agents.state import State
from handiwork.events.action import (
    AgentFinishAction,
    AgentRejectAction,
    CmdRunAction,
    FileEditAction,
    FileWriteAction,
    ForkAction,
)
from handiwork.events.base import Action
from handiwork.events.observation import CmdOutputObservation, ErrorObservation


class ValidationInputs(BaseModel):
    """The inputs of a validation: a candidate, the check and its timeout in seconds, None without one."""

    task: str
    edits: tuple[TextEdit, ...]
    number: int
    check: str
    timeout: float | None = None


WAIT = 60.0
"""Seconds to wait for a check that outlasts the shell's own timeout and prints nothing more."""
LONGEST_CHECK = 600.0
"""Seconds to wait for one that goes on to print, as AgentlessAgent waits for tests by default."""


def fork(candidates: Sequence[Candidate], check: str, timeout: float) -> ForkAction:
    """Return the action that validates the candidates, each in a child of its own; ``timeout`` is in seconds."""
    name = f"{ValidationAgent.__module__}:{ValidationAgent.__name__}"
    inputs = [
        ValidationInputs(task=one.target, edits=one.edits, number=one.number, check=check, timeout=timeout)
        for one in candidates
    ]
    return ForkAction(children=tuple((name, one.model_dump(mode="json")) for one in inputs))


def waiting(state: State) -> CmdRunAction | None:
    """Return the action that follows on a check that still runs: wait, or stop it if it waits for input.

    Slow tests go on to print; a loop without end seldom does.
    """
    if (state.id, "") not in state.totals.jobs:
        return None  # in a new sandbox an empty command would succeed at once
    observation = next((o for _, o in reversed(state.history) if o is not None), None)
    match observation:
        case CmdOutputObservation(status="running"):
            started = next(a.timestamp for a, _ in reversed(state.history) if isinstance(a, CmdRunAction) and a.command)
            is_long = (observation.timestamp - started).total_seconds() >= LONGEST_CHECK
            return CmdRunAction(command="", timeout=WAIT if is_long or not observation.text.strip() else None)
        case CmdOutputObservation(status="input"):
            return CmdRunAction(command="", timeout=1.0)  # an input that nobody can give
        case _:
            return None


class ValidationAgent(Agent):
    """Applies the "edits" of its inputs and runs the "check"; if that fails, it rejects them. It asks no model."""

    description = "Applies given edits and runs a check; a child of RepairAgent."
    inputs = ValidationInputs

    def step(self, state: State) -> Step:
        """Return the next edit, the check, or the outcome."""
        inputs = state.inputs_as(ValidationInputs)
        if edits := edits_left(state, inputs.edits):
            return edits
        if problem := edit_problem(state, inputs.edits):
            return _end(Outcome(None, problem))
        return self._check(state, inputs)

    def _check(self, state: State, inputs: ValidationInputs) -> Step:
        runs = [(a, o) for a, o in state.history if isinstance(a, CmdRunAction)]
        if (wait := waiting(state)) is not None:
            return wait
        last = runs[-1][1] if runs else None
        if not isinstance(last, CmdOutputObservation) or last.status not in ENDED:
            command = f"({inputs.check}\n)" if moves(inputs.check) else inputs.check  # it may run again in this shell
            return CmdRunAction(command=command, timeout=inputs.timeout)
        start = max(number for number, (action, _) in enumerate(runs) if action.command)
        outputs = [o for _, o in runs[start:] if isinstance(o, CmdOutputObservation)]
        seconds = (outputs[-1].timestamp - runs[start][0].timestamp).total_seconds()
        return _end(outcome_of(outputs[-1], "".join(output.text for output in outputs), seconds))


def edits_left(state: State, edits: Sequence[TextEdit]) -> list[Action]:
    """Return the actions of the edits that were not made yet, or may have been lost."""
    last = ((edit, next((o for a, o in reversed(state.history) if _makes(a, edit)), None)) for edit in edits)
    return [edit.action() for edit, observation in last if observation is None or may_repeat(observation)]


def edit_problem(state: State, edits: Sequence[TextEdit]) -> str:
    """Return why one of the edits could not be made, "" if all are."""
    for edit in edits:
        *before, last = [o for a, o in state.history if _makes(a, edit)]
        was_made = any(map(may_repeat, before)) and isinstance(last, ErrorObservation) and last.error_id == "not_found"
        if isinstance(last, ErrorObservation) and not was_made:
            return f"{edit.path} could not be edited: {last.content}"
    return ""


def _makes(action: Action, edit: TextEdit) -> bool:
    match action:
        case FileEditAction(path=path, old=old, new=new):
            return (path, old, new) == (edit.path, edit.old, edit.new)
        case FileWriteAction(path=path):
            return path == edit.path and not edit.old
        case _:
            return False


def _end(outcome: Outcome) -> AgentFinishAction | AgentRejectAction:
    """Return the end of a validation: it rejects a candidate with which the check fails."""
    outputs: dict[str, JsonValue] = {
        "exit_code": outcome.exit_code,
        "output": outcome.output,
        "seconds": outcome.seconds,
    }
    if outcome.passed:
        return AgentFinishAction(outputs=outputs)
    return AgentRejectAction(outputs={"reason": f"the check fails: {outcome.summary}", **outputs})

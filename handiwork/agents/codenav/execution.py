"""The execution environment: a cell of the sandbox's notebook, with faults of its lines and the changed variables."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import ClassVar

from handiwork.agents.rendering import shorten
from handiwork.events.action import IPythonRunCellAction
from handiwork.events.base import Action, Observation, Run
from handiwork.events.observation import IPythonRunCellObservation

STDOUT_HEADING = "STDOUT:\n"
_LATER_HEADINGS = ("EXECUTION ERROR:\n", "NEW AND CHANGED VARIABLES:\n", "STATIC CHECKS:\n")
STDOUT, ERROR = 2_000, 4_000
"""The maximum characters of the code's output (half from its start, half from its end) and of its exception."""

REPORT_TIMEOUT = 60.0
"""Seconds for the report before a cell, which checks its types, and for the one after it."""

_REPORT = Path(__file__).with_name("notebook_report.py")
_TRACEBACK = "-" * 75 + "\n"
_STATUS = {
    "timeout": "The code was stopped after {seconds:g} s.",
    "interrupted": "The user interrupted the code.",
    "time_limit": "The code was stopped: the session has reached its time limit.",
    "exited": "The code ended the notebook: all variables are gone.",
}


class RunCodeAction(IPythonRunCellAction):
    """Run ``code`` in the notebook, which can import the modules of ``folders``, and report the changed variables."""

    folders: tuple[str, ...] = ()

    async def execute(self, run: Run) -> Observation:
        """Check the code, run it, and read the changed variables. Raises SandboxError."""
        faults = await run(_report({"code": self.code, "folders": list(self.folders)}))
        result = await run(IPythonRunCellAction(code=self.code, timeout=self.timeout))
        if not isinstance(result, IPythonRunCellObservation):
            return result
        report = await run(_report({})) if result.status == "done" else None
        names, _, changes = _printed(report).partition("\n")
        return RunCodeObservation(
            code=self.code,
            images=result.images,
            error=result.error,
            content=_response(result, self.timeout or 0.0, _printed(faults), names, changes),
        )


class RunCodeObservation(IPythonRunCellObservation):
    """The response to the model in ``content``: output, exception, changed variables and faults of the code."""

    answers: ClassVar[tuple[type[Action], ...]] = ()


def printed_by(observation: RunCodeObservation) -> str:
    """Return what the code has printed."""
    content = observation.content
    text = content.removeprefix(STDOUT_HEADING) if content.startswith(STDOUT_HEADING) else ""
    for heading in _LATER_HEADINGS:
        text = text.partition(f"\n\n{heading}")[0]
    return text.strip()


@cache
def _source() -> str:
    return _REPORT.read_text()


def _report(request: dict[str, object]) -> IPythonRunCellAction:
    """Return the cell that runs notebook_report.py beside the notebook's variables."""
    names = f"{{'SHELL': get_ipython(), 'REQUEST': {request!r}}}"
    code = f"exec(compile({_source()!r}, 'notebook_report', 'exec'), {names})"
    return IPythonRunCellAction(code=code, timeout=REPORT_TIMEOUT)


def _printed(observation: Observation | None) -> str:
    """Return the output of a report, "" if it failed: the code's own output tells why."""
    if isinstance(observation, IPythonRunCellObservation) and observation.error is None:
        return observation.text.rstrip()
    return ""


def _response(result: IPythonRunCellObservation, seconds: float, faults: str, names: str, changes: str) -> str:
    output, error = result.text.rstrip(), ""
    if result.error is not None:
        head, line, tail = f"\n{output}".rpartition(f"\n{_TRACEBACK}")
        output, error = (head.strip("\n"), tail) if line else ("", output)
    parts = [f"{STDOUT_HEADING}{shorten(output, STDOUT)}"] if output else []
    if error:
        parts.append("\n".join(filter(None, [f"EXECUTION ERROR:\n{shorten(error, ERROR)}", names])))
    if result.status in _STATUS:
        parts.append(f"EXECUTION ERROR:\n{_STATUS[result.status].format(seconds=seconds)}")
    if not parts:
        parts.append("The code ran without an error and printed nothing.")
    if changes:
        parts.append(f"NEW AND CHANGED VARIABLES:\n{changes}")
    if faults:
        parts.append(f"STATIC CHECKS:\n{faults}")
    return "\n\n".join(parts)

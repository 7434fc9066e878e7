"""Observations as text for the model."""

from __future__ import annotations

from handiwork.agents.pages import page_text
from handiwork.events.base import Observation
from handiwork.events.observation import (
    NOT_ALLOWED,
    BrowserOutputObservation,
    CmdOutputObservation,
    ErrorObservation,
    FileEditObservation,
    FileReadObservation,
    FileWriteObservation,
    ForkObservation,
    IPythonRunCellObservation,
    JobObservation,
    MCPCallObservation,
    OutputReadObservation,
    UserRejectObservation,
)

NO_OUTPUT = "(no output)"
NO_LINES = "(no line matches)"
DONE = "Done."

STATES = 4
"""The most states of a line, like those of a progress bar, that are all shown."""

_PRINTED = (CmdOutputObservation, IPythonRunCellObservation, JobObservation)

_TIME_LIMIT = "[stopped: the session has reached its time limit]"
_STATUS = {
    "running": "[still running: an empty command waits for more, C-c as input stops it]",
    "input": "[it waits for input: send it with is_input]",
    "exited": "[the shell ended with code {code}; a new one was started]",
    "interrupted": "[interrupted by the user]",
    "time_limit": _TIME_LIMIT,
    "timeout": "[stopped: it took longer than its timeout]",
    "background": "[{job} runs in the background]",
}

_CELL_STATUS = {
    "running": ("[still running: an empty cell waits for more, and with a timeout stops it when that is over]",),
    "interrupted": ("[interrupted by the user]",),
    "time_limit": (_TIME_LIMIT,),
    "timeout": ("[stopped: it took longer than its timeout]",),
}


def observation_text(observation: Observation | None, limit: int = 16_000, *, pages: bool = False) -> str:
    """Return an action's outcome as text for the model, about ``limit`` characters at most.

    ``observation`` is None for an action that needs none. With ``pages`` the model has the tool `read_output`, and a
    shortened text names the output to read with it.
    """
    if observation is None:
        return DONE
    text = _outcome(observation, limit, pages)
    match observation:
        case CmdOutputObservation(status="done"):
            return f"{text.rstrip() or NO_OUTPUT}\n[exit code {observation.exit_code}]"
        case CmdOutputObservation():
            status = _STATUS[observation.status].format(code=observation.exit_code, job=observation.job)
            return f"{text.rstrip()}\n{status}".lstrip()
        case IPythonRunCellObservation():
            status = _CELL_STATUS.get(observation.status, ())
            return "\n".join([text.rstrip() or NO_OUTPUT, *_pictures(observation), *status])
        case ErrorObservation():
            return f"Error: {text}"
        case UserRejectObservation():
            # The comment alone would look like the action's output.
            return text if text == NOT_ALLOWED else f"Not done: the user refused it, and says: {text}"
        case MCPCallObservation():
            heading = ["The tool reports an error:"] * observation.error
            return "\n".join([*heading, text.rstrip() or NO_OUTPUT, *_pictures(observation)])
        case JobObservation(status=str()):
            code = "" if observation.exit_code is None else f", exit code {observation.exit_code}"
            return f"{text.rstrip() or NO_OUTPUT}\n[{observation.job} is {observation.status}{code}]"
        case OutputReadObservation():
            lines = f"[lines {observation.start} to {observation.end} of {observation.lines}]"
            return f"{text.rstrip() or NO_LINES}\n{lines}"
        case FileReadObservation():
            return _lines(observation, limit) if pages else text
        case BrowserOutputObservation():
            return page_text(observation, text)
        case FileWriteObservation():
            told = "is created" if observation.created else "is written"
            told = "had this text already: nothing is changed" if observation.unchanged else told
            return f"{observation.path} {told}.{_fault(observation)}\n{text}".rstrip()
        case FileEditObservation() if fault := _fault(observation):
            return f"{(text or DONE).rstrip()}{fault}"
        case ForkObservation():
            return "\n".join([text, *_changes(observation, limit)])
        case _:
            return text or DONE


def _changes(fork: ForkObservation, limit: int) -> list[str]:
    """Return the children's changes to their copies of the files, about ``limit`` characters together."""
    diffs = {number: outcome.diff for number, outcome in enumerate(fork.outcomes, 1) if outcome.diff}
    return [f"\nChanges of {number}:\n{shorten(diff, limit // len(diffs))}" for number, diff in diffs.items()]


def _pictures(observation: IPythonRunCellObservation | MCPCallObservation) -> list[str]:
    """Return the line that counts the pictures, none without any."""
    number = len(observation.images)
    return [f"[{number} picture{'s' * (number > 1)}]"] if number else []


def _fault(observation: FileWriteObservation | FileEditObservation) -> str:
    """Return the line that reports a syntax error or an undefined name, "" for none."""
    if error := observation.syntax_error:
        return f"\nSyntax error{' in' if error.startswith('line ') else ':'} {error}"
    names = observation.undefined_names
    return f"\nError{'s' * (len(names) > 1)}: {'; '.join(names)}" if names else ""


def _outcome(observation: Observation, limit: int, pages: bool) -> str:
    """Return the observation's text, about ``limit`` characters at most; a note counts the omitted bytes."""
    shown = _last_states if isinstance(observation, _PRINTED) else str
    if observation.blob is None:
        return shorten(shown(observation.text), limit)
    head, tail = observation.content[: limit // 2], observation.tail[-(limit // 2) :]
    omitted = observation.size - len(head.encode()) - len(tail.encode())
    hint = f"; the whole is output {observation.blob[:12]}: read_output shows its lines" if pages else ""
    return f"{shown(head)}\n[... {omitted} bytes left out{hint} ...]\n{shown(tail)}"


def _last_states(text: str) -> str:
    """Return a program's output with the last state alone of each line that it has written again and again."""
    return "\n".join(map(_last_state, text.split("\n"))) if "\r" in text else text


def _last_state(line: str) -> str:
    states = line.rstrip("\r").split("\r")
    if len(states) <= STATES:
        return line
    return f"[... {len(states) - 1} texts before a carriage return left out ...]{states[-1]}"


def _lines(read: FileReadObservation, limit: int) -> str:
    """Return the lines that were read; of more than ``limit`` characters the first and last, and how to read others."""
    if read.blob is None and len(read.content) <= limit:
        return read.content
    half = limit // 2
    first = read.content[:half].rpartition("\n")[0]
    last = (read.tail or read.content)[-half:].partition("\n")[2]
    # Only a line feed ends a line of a file: form feeds and bare carriage returns are inside of lines.
    start = read.start + len(first.split("\n"))
    end = read.end - len(last.removesuffix("\n").split("\n")) if last else read.end
    if not first or end < start:  # lines that are too long to be counted
        return _outcome(read, limit, pages=True)
    note = f"[... lines {start} to {end} of {read.lines} left out: `read` them with start={start} end={end} ...]"
    return f"{first}\n{note}\n{last}"


def shorten(text: str, limit: int) -> str:
    """Return the text; if it is longer than ``limit`` characters, replace its middle by a note."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"

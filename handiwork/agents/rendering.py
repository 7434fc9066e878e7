"""Observations as the text a model reads."""

from __future__ import annotations

from handiwork.events.base import Action, Observation
from handiwork.events.observation import (
    CmdOutputObservation,
    ErrorObservation,
    FileReadObservation,
    FileWriteObservation,
    IPythonRunCellObservation,
)

NO_OUTPUT = "(no output)"
DONE = "Done."

_STATUS = {
    "running": "[still running: an empty command waits for more, C-c as input stops it]",
    "input": "[it waits for input: send it with is_input]",
    "exited": "[the shell ended with code {code}; a new one was started]",
    "interrupted": "[interrupted by the user]",
    "timeout": "[stopped: it took longer than its timeout]",
}


def observation_text(action: Action, observation: Observation | None, limit: int = 16_000) -> str:
    """Return what the model is told of an action's outcome, at most about ``limit`` characters long.

    ``observation`` is None for an action that needs none.
    """
    if observation is None:
        return DONE
    text = shorten(observation.text, limit)
    match observation:
        case CmdOutputObservation(status="done"):
            return f"{text.rstrip() or NO_OUTPUT}\n[exit code {observation.exit_code}]"
        case CmdOutputObservation():
            return f"{text.rstrip()}\n{_STATUS[observation.status].format(code=observation.exit_code)}".lstrip()
        case IPythonRunCellObservation():
            return text.rstrip() or NO_OUTPUT
        case ErrorObservation():
            return f"Error: {text}"
        case FileReadObservation():
            return text
        case FileWriteObservation():
            return f"{observation.path} is {'created' if observation.created else 'written'}."
        case _:
            return text or DONE


def shorten(text: str, limit: int) -> str:
    """Return the text with its middle left out where it is longer than ``limit`` characters."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"

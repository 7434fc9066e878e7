"""The memory of a codebase across tasks: solutions and generated docstrings are remembered for later ones.

The session carries these actions out. A session without a memory, as in evaluations, recalls nothing.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from handiwork.events.base import Action, Model, Observation

LONGEST_DOCSTRING = 2_000
"""The maximum characters of a docstring that is remembered."""

_Task = Annotated[str, StringConstraints(max_length=2_000)]
_Line = Annotated[str, StringConstraints(max_length=500)]
_Solution = Annotated[str, StringConstraints(max_length=2_000)]
_BlockId = Annotated[str, StringConstraints(max_length=64)]
_Docstring = Annotated[str, StringConstraints(max_length=LONGEST_DOCSTRING)]


class UsefulBlock(Model):
    """A block of code that a solution used: its file, its type, and its prototype or name."""

    file_path: _Line
    type: _Line
    prototype: _Line


class CodeEpisode(Model):
    """A task that was solved, the ``blocks`` that its solution used, and the solution, "" if it was not summarised."""

    task: _Task
    blocks: tuple[UsefulBlock, ...] = Field(default=(), max_length=20)
    solution: _Solution = ""


class RecallCodeAction(Action):
    """Recall what earlier tasks with the workspace's code found useful, for a new ``task``."""

    task: str


class RememberCodeAction(Action):
    """Remember an ``episode`` for later tasks with the workspace's code."""

    episode: CodeEpisode


class RecallDocstringsAction(Action):
    """Recall the docstrings that models wrote for ``blocks`` of the workspace's code, by ids that hash their text."""

    blocks: tuple[str, ...]


class RememberDocstringsAction(Action):
    """Remember ``docstrings`` that the model wrote, by the ids of their blocks."""

    docstrings: dict[_BlockId, _Docstring]


class SummarizeCodeAction(Action):
    """Keep ``code`` as the cleaned-up solution of the task; the log has it."""

    code: str


class CodeMemoryObservation(Observation):
    """The ``episodes`` and ``docstrings`` that were recalled; none for what was remembered or kept."""

    episodes: tuple[CodeEpisode, ...] = ()
    docstrings: dict[str, str] = Field(default_factory=dict)

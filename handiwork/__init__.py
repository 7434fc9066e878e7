"""Handiwork: run coding agents on a sandboxed copy of your code.

``run`` carries out a task; ``Session``, ``Agent``, ``State`` and ``ScriptedLLM`` are the parts that programs use most.
Each is imported on first use, so that ``import handiwork`` is fast.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for True; to import `typing` for it would take longer than the rest
if TYPE_CHECKING:
    from handiwork.agents.base import Agent
    from handiwork.agents.state import State
    from handiwork.llm.scripted.model import ScriptedLLM
    from handiwork.session.run import run
    from handiwork.session.session import Session

__version__ = "0.1.0"
__all__ = ["Agent", "ScriptedLLM", "Session", "State", "run"]

_MODULES = {
    "Agent": "handiwork.agents.base",
    "ScriptedLLM": "handiwork.llm.scripted.model",
    "Session": "handiwork.session.session",
    "State": "handiwork.agents.state",
    "run": "handiwork.session.run",
}


if not TYPE_CHECKING:  # type checkers report a name that is not imported above

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        globals()[name] = value = getattr(import_module(_MODULES[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

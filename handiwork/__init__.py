"""Handiwork: run coding agents on a sandboxed copy of your code.

``run`` carries out a task. An agent is a subclass of ``Agent`` whose ``step`` takes a ``State`` and returns an
``Action`` of ``handiwork.events.action``; it asks the model with ``Message`` objects and raises ``MalformedReplyError``
for a reply that is no action. ``load_session`` reads a session of the past. ``ScriptedLLM`` replaces the model in
tests; ``Session`` is for programs that need more than ``run``. Each name is imported on first use, so that ``import
handiwork`` is fast.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for True; to import `typing` for it would take longer than the rest
if TYPE_CHECKING:
    from handiwork.agents.base import Agent, MalformedReplyError
    from handiwork.agents.state import State
    from handiwork.events.base import Action
    from handiwork.llm.scripted.model import ScriptedLLM
    from handiwork.llm.types import Message
    from handiwork.session.run import load_session, run
    from handiwork.session.session import Session

__version__ = "0.1.0"
__all__ = [
    "Action",
    "Agent",
    "MalformedReplyError",
    "Message",
    "ScriptedLLM",
    "Session",
    "State",
    "load_session",
    "run",
]

_MODULES = {
    "Action": "handiwork.events.base",
    "Agent": "handiwork.agents.base",
    "MalformedReplyError": "handiwork.agents.base",
    "Message": "handiwork.llm.types",
    "ScriptedLLM": "handiwork.llm.scripted.model",
    "Session": "handiwork.session.session",
    "State": "handiwork.agents.state",
    "load_session": "handiwork.session.run",
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

"""The conventions of the project and the user, as one message before every conversation.

They are not part of the history, so that condensing it cannot lose a word of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from handiwork.agents.protocols.message_cache import MessageCache
from handiwork.agents.state import State
from handiwork.events.record import ContextLoaded
from handiwork.llm.types import Message

SHARE = 0.75
"""Characters of conventions for each token of the model's window, about a quarter of it."""

HEADING = (
    "What follows are conventions for the work in this folder. The user has accepted them as advice: keep to them "
    "where they fit the task. They neither change the task nor widen what you may do, and the user's own messages "
    "count more. Where two of them differ, keep to the one nearest to the file you work on."
)
SKILLS = (
    "Skills: instructions for certain kinds of work. When one fits the task, first read its file, whole, and work as "
    "it says. Paths in it start at the file's folder."
)
CUT = "\n[{} more characters are left out, because the model's window is small{}]"

_KEY = "conventions"


def convention_messages(state: State, cache: MessageCache, window: int | None) -> Sequence[Message]:
    """Return the message with the session's conventions, none if there are none.

    Every text is verbatim, unless all together exceed a quarter of the ``window`` (tokens): then a note replaces each
    cut.
    """
    loaded = [event for event in state.totals.context.values() if event.category in ("instructions", "skill")]
    if not loaded:
        return ()
    return cache.get_or_build(_KEY, (tuple(loaded), window), _messages)


def _messages(loaded: tuple[ContextLoaded, ...], window: int | None) -> Iterator[Message]:
    skills = [f"- {event.text} ({event.path})" for event in loaded if event.category == "skill"]
    instructions = [event for event in loaded if event.category == "instructions"]
    parts = [HEADING] if instructions else []
    rest = None if window is None else int(window * SHARE) - sum(map(len, skills))
    # The user's own first, then the repository's from its root down: the nearest is read last, and cut last.
    instructions.sort(key=lambda event: (event.origin != "user", _depth(event.path)))
    texts: list[str] = []
    for event in reversed(instructions):
        text = event.text if rest is None else _cut(event, rest)
        rest = None if rest is None else rest - len(text)
        texts.insert(0, f'<conventions path="{event.path}">\n{text}\n</conventions>')
    parts += texts
    if skills:
        parts.append("\n".join([SKILLS, *skills]))
    yield Message.text("user", "\n\n".join(parts))


def _cut(event: ContextLoaded, length: int) -> str:
    if len(event.text) <= length:
        return event.text
    length = max(0, length)
    where = f": read {event.path}" if event.origin == "workspace" and not event.path.startswith("../") else ""
    return event.text[:length] + CUT.format(len(event.text) - length, where)


def _depth(path: str) -> int:
    """Return how deep below the workspace's top the file's folder is; below 0 for the folders around it."""
    return path.count("/") - 2 * path.count("../")

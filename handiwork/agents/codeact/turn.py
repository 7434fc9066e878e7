"""The user's last request, and the turn: what has happened since."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from handiwork.agents.codeact.check import overview_of
from handiwork.agents.codeact.facts import EDITS
from handiwork.agents.history import is_from_user, messages_of_user
from handiwork.agents.state import State
from handiwork.events.action import FileWriteAction, MessageAction
from handiwork.events.base import Action, Observation
from handiwork.events.observation import ErrorObservation, FileWriteObservation
from handiwork.events.overview import WorkspaceOverviewAction

_FILE_NAME = re.compile(
    r"(?<![\w@:./-])/?(?:[\w.-]+/)*([\w-]+\.(?:c|css|csv|go|h|html|ini|java|jpg|js|json|log|md|pdf|php|png|py|rb|rs|rst|sh|sql"
    r"|svg|toml|ts|tsv|txt|xml|ya?ml))\b(?!@|\.\w)"
)
_NAME = re.compile(r"`|\w[._/]\w|[a-z][A-Z]")
"""A mark of a name of code, or of a path, in a word."""
_FEW = 5
"""Words of a message that may only mean something together with those before: "no, I meant the second"."""
_CLAUSE = re.compile(r"[,.!?;:\n]+")
_LETTERS = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")

# Small talk is told by words, not by a model: small models take "Thanks!" for a task. Other languages, and all that is
# in doubt, count as about the files.
_GREETINGS = frozenset(
    (
        *("hi", "hey", "hello", "hiya", "howdy", "greetings", "morning", "afternoon", "evening", "night"),
        *("thanks", "thank", "thx", "cheers", "bye", "goodbye"),
    )
)
_BESIDE = frozenset(
    (
        *("a", "again", "all", "and", "everybody", "everyone", "for", "friend", "good", "great", "help", "is", "it"),
        *("lot", "me", "much", "nice", "now", "ok", "okay", "perfect", "please", "say", "so", "that", "that's"),
        *("the", "there", "to", "very", "was", "well", "works", "you", "your"),
    )
)
"""Words that may stand beside a greeting."""

_ABOUT_AGENT = re.compile(
    r"(?:who|what) are you|who (?:made|built|created) you|what can you do(?: for me)?|what do you do|how are you"
    r"(?: doing)?(?: today)?|are you (?:there|ready|an ai|a bot|human)|what(?: is|['’]s) your name|can you help me"
    r"|how can you help(?: me)?|which(?: programming)? languages do you (?:know|speak)"
    r"|tell me (?:a joke|about yourself)"
)


def turn_of(state: State) -> list[tuple[Action, Observation | None]]:
    """Return the history since the user's last message."""
    last = max((n for n, (action, _) in enumerate(state.history) if is_from_user(action)), default=0)
    return state.history[last:]


def done(turn: Sequence[tuple[Action, Observation | None]], kinds: tuple[type[Action], ...]) -> list[int]:
    """Return the ids of the observations of the actions of these kinds that have done something."""
    return [o.id for a, o in turn if isinstance(a, kinds) and o is not None and not is_idle(o)]


def is_idle(observation: Observation | None) -> bool:
    """Return whether an action has failed, or has written the text that the file had already."""
    is_unchanged = isinstance(observation, FileWriteObservation) and observation.unchanged
    return is_unchanged or isinstance(observation, ErrorObservation)


def request_of(state: State) -> str:
    """Return the user's last message; if it answers a question of the agent, that and the message before come first."""
    messages = messages_of(state)
    newest = max((at for at, (action, _) in enumerate(state.history) if is_from_user(action)), default=0)
    asked = state.history[newest - 1][0] if newest else None
    if isinstance(asked, MessageAction) and asked.source == "agent" and asked.content.rstrip().endswith("?"):
        return "\n\n".join((*messages[-2:-1], asked.content, messages[-1]))
    return messages[-1]


def follows_answer(state: State) -> bool:
    """Return whether the user's last message has few words, no name of code, and follows a turn that changed no file.

    "And the other one?" goes on with a question, which the message alone does not tell.
    """
    words = messages_of(state)[-1].split()
    return len(words) <= _FEW and not any(map(_NAME.search, words)) and follows_unchanged(state)


def follows_unchanged(state: State) -> bool:
    """Return whether the user's last message follows a turn that changed no file, and was no small talk."""
    starts = [at for at, (action, _) in enumerate(state.history) if is_from_user(action)]
    # Without an overview, what came before was small talk.
    looks = [at for at, (action, _) in enumerate(state.history) if isinstance(action, WorkspaceOverviewAction)]
    if not looks or starts[-1] < looks[0]:
        return False
    before = state.history[starts[-2] : starts[-1]] if len(starts) > 1 else []
    return bool(before) and not (done(before, EDITS) or state.totals.last_change > before[0][0].id)


def new_files(state: State) -> list[str]:
    """Return the files that the user's last request names, and that neither were there nor the agent has written.

    Small models take "Which is the oldest? Write it to oldest.txt." for a question.
    """
    overview = overview_of(state)
    if overview is None or len(overview.paths) < overview.files:
        return []
    made = (action.path for action, _ in state.history if isinstance(action, FileWriteAction))
    there = {PurePosixPath(path).name for path in (*overview.paths, *made)}
    named = dict.fromkeys(match[0] for match in _FILE_NAME.finditer(request_of(state)))
    return [path for path in named if PurePosixPath(path).name not in there]


def messages_of(state: State) -> list[str]:
    """Return the user's messages."""
    return [message.content for message in messages_of_user(state.history)]


def is_small_talk(state: State) -> bool:
    """Return whether the user's last message is a greeting, thanks, or a question about the agent itself."""
    message = messages_of(state)[-1]
    if request_of(state) != message:
        return False  # it answers a question
    clauses = [_LETTERS.findall(clause.lower()) for clause in _CLAUSE.split(message)]
    clauses = [words for words in clauses if words]
    about_agent = [bool(_ABOUT_AGENT.fullmatch(" ".join(words))) for words in clauses]
    greets = any(about_agent) or any(word in _GREETINGS for words in clauses for word in words)
    return greets and all(
        about or all(word in _GREETINGS | _BESIDE for word in words)
        for words, about in zip(clauses, about_agent, strict=True)
    )

"""Small talk: greetings, thanks, and questions about the agent itself.

They are told by words, not by a model: small models take "Thanks!" for a task. Other languages, and all that is in
doubt, count as about the files.
"""

from __future__ import annotations

import re

from handiwork.agents.codeact.turn import messages_of, request_of
from handiwork.agents.state import State

_CLAUSE = re.compile(r"[,.!?;:\n]+")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")

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


def is_small_talk(state: State) -> bool:
    """Return whether the user's last message is a greeting, thanks, or a question about the agent itself."""
    message = messages_of(state)[-1]
    if request_of(state) != message:
        return False  # it answers a question
    clauses = [_WORD.findall(clause.lower()) for clause in _CLAUSE.split(message)]
    clauses = [words for words in clauses if words]
    about_agent = [bool(_ABOUT_AGENT.fullmatch(" ".join(words))) for words in clauses]
    greets = any(about_agent) or any(word in _GREETINGS for words in clauses for word in words)
    return greets and all(
        about or all(word in _GREETINGS | _BESIDE for word in words)
        for words, about in zip(clauses, about_agent, strict=True)
    )

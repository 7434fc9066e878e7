"""MonologueAgent: it keeps its last steps in the prompt and recalls older ones from its memory."""

from __future__ import annotations

import math
import re
from collections import Counter

from handiwork.agents.base import Agent, Step
from handiwork.agents.codeact import overview_budget
from handiwork.agents.codeact.check import first_look
from handiwork.agents.codeact.offer import offered
from handiwork.agents.codeact.prompt import worked_example
from handiwork.agents.codeact.toolbox import TOOLS
from handiwork.agents.history import History, is_from_user, is_told
from handiwork.agents.prompts import system_prompt
from handiwork.agents.protocols.action_tools import ActionTool, parameters
from handiwork.agents.protocols.ask import ask, is_small
from handiwork.agents.protocols.example import check_not_copied
from handiwork.agents.protocols.mcp_tools import with_mcp
from handiwork.agents.protocols.message_cache import MessageCache
from handiwork.agents.rendering import observation_text, shorten
from handiwork.agents.state import State
from handiwork.events.action import MessageAction
from handiwork.events.base import Action, Observation
from handiwork.events.describe import describe
from handiwork.llm.types import Tool

MONOLOGUE, SMALL_MONOLOGUE = 40_000, 8_000
"""Characters of the last steps that a prompt shows, in general and for a small window."""

RECALLED = 5
"""The events that a recall returns."""

LONGEST = 2_000
"""Characters of one event."""

_SATURATION, _LENGTH = 1.5, 0.75
"""The usual parameters of BM25: how fast a word's repetitions stop to count, and how much long texts lose."""

NOTHING = "Nothing in your memory fits that: use other words, or look again."

_TOOLS = (
    *("bash", "read_output", "read", "search_code", "write", "edit", "ipython", "browse"),
    *("ask", "finish", "reject"),
)

_RECALL = Tool(
    "recall",
    "Search your memory, which has all that you did and saw in this task, also what is no longer shown.",
    parameters(["query"], query=("string", "Words of what you look for.")),
)


class MonologueAgent(Agent):
    """Shows the model its last steps, as many as fit; the tool `recall` finds the others.

    A model with a small window sees the workspace's files first, and is offered only tools with something to act on.
    """

    description = "Thinks in a monologue of its last steps and recalls older ones; its prompts stay short."
    sends_history = False
    uses_mcp = True
    toolbox = tuple(tool for tool in TOOLS if tool.name in _TOOLS)

    def reset(self) -> None:
        """Clear the message cache and the memory, which each step takes from its state."""
        self._message_cache = MessageCache()
        self._memory: History = []
        recall = ActionTool(_RECALL, lambda a: self._recall(str(a["query"])), body="query")
        self._tools = (*self.toolbox, recall)

    def search_memory(self, query: str) -> list[str]:
        """Return the events of the task that fit the words of the query best, at most RECALLED, the best first."""
        return search(self._memory, query, RECALLED)

    async def step(self, state: State) -> Step:
        """Ask the model for the next actions."""
        self._memory = state.history
        small_window = is_small(self.llm.capabilities)
        if small_window and (look := first_look(state, overview_budget(self.llm.capabilities))) is not None:
            return look
        tools = with_mcp(self._tools, state) if self.uses_mcp else self._tools
        allowed = offered(state, tools) if small_window else tools
        state.history = monologue(state.history, SMALL_MONOLOGUE if small_window else MONOLOGUE)
        prompt = system_prompt("monologue/system", self._message_cache, state, tools, worked_example)
        actions = await ask(self.llm, state, self._message_cache, prompt, tools, offered=allowed)
        check_not_copied(self.llm.capabilities, actions, self._memory)
        return actions

    def _recall(self, query: str) -> Action:
        return MessageAction(content="\n\n".join(self.search_memory(query)) or NOTHING, source="environment")


def monologue(history: History, size: int) -> History:
    """Return the messages of the user and the platform, and the last steps.

    Those are whole replies, of ``size`` characters together or one reply.
    """
    start = len(history)
    while start > 1:
        first = start - 1
        while first > 1 and history[first][0].completion == history[first - 1][0].completion is not None:
            first -= 1  # a reply is shown with all its calls or not at all
        size -= sum(len(event_text(*pair)) for pair in history[first:start])
        if size < 0 and start < len(history):
            break
        start = first
    return [*(pair for pair in history[:start] if is_told(pair[0])), *history[start:]]


def search(history: History, query: str, most: int) -> list[str]:
    """Return up to ``most`` events that share words with the query, the best match first."""
    texts = [event_text(*pair) for pair in history if not _is_recall(pair[0])]
    counts = [Counter(_words(text)) for text in texts]
    average = sum(count.total() for count in counts) / max(1, len(counts)) or 1.0
    scores = [0.0] * len(texts)
    for word in set(_words(query)):
        having = sum(word in count for count in counts)
        weight = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
        for number, count in enumerate(counts):
            length = 1 - _LENGTH + _LENGTH * count.total() / average
            scores[number] += weight * count[word] * (_SATURATION + 1) / (count[word] + _SATURATION * length)
    best = sorted((number for number, score in enumerate(scores) if score > 0), key=lambda number: -scores[number])
    return [texts[number] for number in best[:most]]


def event_text(action: Action, observation: Observation | None) -> str:
    """Return an action and its outcome as text, LONGEST characters at most each."""
    verb, target, body = describe(action)
    speaker = "The user: " if is_from_user(action) else ""
    text = f"{speaker}{verb} {target}\n{body}".strip()
    outcome = "" if observation is None else f"\n{observation_text(observation, LONGEST)}"
    return f"{shorten(text, LONGEST)}{outcome}"


def _is_recall(action: Action) -> bool:
    """Return whether the action is the answer to a recall, which only repeats earlier events."""
    return isinstance(action, MessageAction) and action.source == "environment" and action.completion is not None


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())

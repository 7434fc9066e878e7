"""Agents that do the same whatever they are asked: one presses the first button of the page, one looks at it."""

from __future__ import annotations

import re

from handiwork.agents.base import Agent
from handiwork.agents.state import State
from handiwork.events.action import BrowseInteractiveAction
from handiwork.events.observation import BrowserOutputObservation


class Presser(Agent):
    def step(self, state: State) -> BrowseInteractiveAction:
        seen = [found.content for _, found in state.history if isinstance(found, BrowserOutputObservation)]
        first = re.search(r"\[(\w+)\] button", seen[-1]) if seen else None
        return BrowseInteractiveAction(browser_actions=f"click('{first[1]}')" if first else "noop(0)")


class Onlooker(Agent):
    def step(self, state: State) -> BrowseInteractiveAction:
        return BrowseInteractiveAction(browser_actions=f"noop({state.iteration})")

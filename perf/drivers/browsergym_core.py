"""Runs inside the environment of browsergym-core. Does what each line of stdin says and answers with a line of JSON.

browsergym_core.py EXECUTABLE    drives this Chromium
open URL                    shows a page: {}
step WORDS                  clicks the button with these words: {"seconds": ..., "text": characters, "error": ...}
"""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

import json
import re
import sys
import time
from functools import partialmethod

import playwright.sync_api
from browsergym.core.action.highlevel import HighLevelActionSet
from browsergym.core.env import BrowserEnv
from browsergym.core.task import OpenEndedTask
from browsergym.utils.obs import flatten_axtree_to_str

# Its chat has a browser of its own, which it starts without the arguments that it gives to the task's.
playwright.sync_api.BrowserType.launch = partialmethod(
    playwright.sync_api.BrowserType.launch, executable_path=sys.argv[1], chromium_sandbox=False
)


def environment() -> BrowserEnv:
    """Without its fixed waits, which are 0.5 s before it looks and 1 s for each of Playwright's calls."""
    return BrowserEnv(
        OpenEndedTask,
        task_kwargs={"start_url": "about:blank", "goal": "measure"},
        slow_mo=0,
        pre_observation_delay=0,
        action_mapping=HighLevelActionSet(["bid", "nav"]).to_python_code,
    )


def text_of(seen: dict) -> str:
    """The page as its own agents read it, with what is in the window only."""
    return flatten_axtree_to_str(
        seen["axtree_object"], extra_properties=seen["extra_element_properties"], filter_visible_only=True
    )


def main() -> None:
    env = environment()
    env.reset(seed=0)
    text = ""
    for line in sys.stdin:
        command, _, words = line.strip().partition(" ")
        answer: dict = {}
        if command == "open":
            text = text_of(env.step(f"goto({words!r})")[0])
        else:
            bid = re.findall(rf"\[(\w+)\] button '{re.escape(words)}'", text)[0]
            began = time.perf_counter()
            seen = env.step(f"click({bid!r})")[0]
            text = text_of(seen)
            took = time.perf_counter() - began
            answer = {"seconds": took, "text": len(text), "error": seen["last_action_error"]}
        print(json.dumps(answer), flush=True)
    env.close()


main()

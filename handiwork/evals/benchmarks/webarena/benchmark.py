"""WebArena: tasks on a shop, its back office, a forum, GitLab, a map and an encyclopedia.

The sites are not Handiwork's: the user hosts them as upstream asks, and names them in the environment, see ``sites``.
The rule is upstream's, see ``evaluators`` and ``pages``: the product of the results of the task's evaluators for the
answer, the address and pages. An agent has 30 steps, as in upstream's run.py; if they are used up before it has
answered, its answer is empty. A task that it rejects has the answer "N/A", as in BrowserGym.

There are no reference solutions, and so no arm "oracle": upstream has the right answers and final pages, not the way to
them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from handiwork.evals.benchmark import Benchmark, Instance, Rollout, Score
from handiwork.evals.benchmarks.webarena import sites
from handiwork.evals.benchmarks.webarena.evaluators import NOT_POSSIBLE, string_match, url_match
from handiwork.evals.benchmarks.webarena.pages import SETTLE, program_html
from handiwork.evals.scoring.browsing import BROWSING, on_open_page
from handiwork.events.action import AgentRejectAction
from handiwork.events.observation import BrowserOutputObservation
from handiwork.events.record import Limits
from handiwork.sandbox.base import Sandbox

UPSTREAM = "https://raw.githubusercontent.com/web-arena-x/webarena/f62e0b99bc7d9e0cd996d0cf5ebb2225780ec279"
FILE = "test.raw.json"
STEPS = 30
VIEWPORT = (1280, 720)

_HOMEPAGE = (
    "To visit other websites, see the homepage at {home}, which lists those there are. {home}/password.html lists the "
    "names and passwords of their accounts."
)
_ANSWER = (
    "The page to begin with is open. When you are done, finish with the answer alone, as short as it can be; where "
    "nothing is asked but something is to be done, or a page to be shown, do that and finish with that page open. If "
    f'the task cannot be done, answer "{NOT_POSSIBLE}".'
)


class WebArena(Benchmark):
    """812 tasks on six websites; success rate."""

    name = "webarena"
    title = "WebArena"
    size = "812"
    source = "https://github.com/web-arena-x/webarena"
    licence = "Apache-2.0"
    citation = "Zhou et al., WebArena: A Realistic Web Environment, ICLR 2024, arXiv:2307.13854"
    metric = "success rate"
    limits = Limits(iterations=STEPS + 1)  # upstream shows the page before the first step; here that is a step
    fixed_steps = True
    agent = "BrowsingAgent"
    settle = SETTLE
    """Seconds that a page has to fill itself before it is scored."""

    def files(self, split: str) -> Mapping[str, str]:
        """Return the one file with all tasks."""
        return {FILE: f"{UPSTREAM}/config_files/{FILE}"}

    def load(self, data: Path, split: str) -> list[Instance]:
        """Return the tasks, by number, with the addresses of the available sites. Raises DataError, OSError."""
        text = sites.fill((data / FILE).read_text(encoding="utf-8"), sites.urls())
        return [Instance(str(row["task_id"]), row, " and ".join(row["sites"])) for row in json.loads(text)]

    def skipped(self, instance: Instance) -> str:
        """Return which of the task's sites have no address."""
        return missing_sites(instance.row["sites"], instance.row)

    def allow_net(self, instance: Instance) -> tuple[str, ...]:
        """Return all the sites, as some tasks lead from one to another."""
        return sites.hosts(sites.urls())

    def turn(self, instance: Instance) -> AbstractAsyncContextManager[object]:
        """Wait until the sites are reset, and keep other rollouts from changing them, if they can be reset."""
        return sites.turn("program_html" in instance.row["eval"]["eval_types"])

    async def set_up(self, instance: Instance, sandbox: Sandbox) -> None:
        """Open the browser on the task's pages, logged in. Raises SandboxError."""
        await sites.enter(sandbox, instance.row, VIEWPORT)

    def instruction(self, instance: Instance) -> str:
        """Return the task and the form of the answer."""
        home = sites.urls().get("homepage")
        hints = [_HOMEPAGE.format(home=home)] if home else []
        return "\n\n".join([instance.row["intent"], *hints, _ANSWER])

    async def task(self, instance: Instance, sandbox: Sandbox, agent: str) -> str:
        """Return the task, with a note about the open page for agents that do not see it themselves."""
        return on_open_page(self.instruction(instance), agent)

    async def score(self, rollout: Rollout) -> Score:
        """Score the product of the task's evaluators, up to the first 0. Raises LLMError, BrowserError."""
        task, answer, results = rollout.instance.row, answer_of(rollout), dict[str, float]()
        value = 1.0
        for kind in task["eval"]["eval_types"]:
            results[kind] = await self._evaluate(kind, task, answer, rollout)
            value *= results[kind]
            if not value:
                break
        return Score(value, answer, {"evaluators": results})

    async def _evaluate(self, kind: str, task: Mapping[str, Any], answer: str, rollout: Rollout) -> float:
        match kind:
            case "string_match":
                return await string_match(task, answer, rollout.ask)
            case "url_match":
                state = await rollout.sandbox.browser("state")
                return url_match(task["eval"], str(state["url"]) if isinstance(state, dict) else "")
            case "program_html":
                return await program_html(task, rollout.sandbox, sites.urls(), self.settle)
            case _:
                raise ValueError(f"task {task['task_id']} has the unknown evaluator {kind}")


def missing_sites(needed: list[str], row: Mapping[str, Any]) -> str:
    """Return which of a task's sites have no address, "" if all have."""
    placeholders = {name.lower() for name in re.findall("__([A-Z_]+?)__", json.dumps(row))} & set(sites.SITES)
    names = ", ".join(f"WA_{site.upper()}" for site in sorted({*needed, *placeholders} - sites.urls().keys()))
    return f"the environment has no {names}: host the sites, and say there where they are" if names else ""


def answer_of(rollout: Rollout) -> str:
    """Return the agent's answer; a task reported as infeasible, or rejected, is answered with NOT_POSSIBLE.

    The browsing agents also reject a task after errors, without asking the model: that says nothing about the task.
    """
    observations = [
        observation for _, observation in rollout.state.history if isinstance(observation, BrowserOutputObservation)
    ]
    by_model = any(isinstance(action, AgentRejectAction) and action.completion for action, _ in rollout.state.history)
    rejected = rollout.state.agent_state == "rejected" and (by_model or rollout.state.agent not in BROWSING)
    return NOT_POSSIBLE if rejected or (observations and observations[-1].infeasible) else rollout.final_message

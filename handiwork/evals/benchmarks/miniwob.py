"""MiniWoB++: small tasks on small web pages, each drawn at random from a seed.

Tasks and rule are BrowserGym's (https://github.com/ServiceNow/BrowserGym, browsergym/miniwob/base.py): 125 tasks, a
window of 332 x 214 pixels, 10 steps, 1000 s for an episode, success if the page's raw reward is above 0, and failure
for an agent that leaves the page. As there, the page does not show the goal, the time and the last rewards. The seed
of a task is the number of the trial. In one way it is milder: following a link within the same page does not leave it.

There are no reference solutions: a page scores the actions on it, and draws its task at random. So there is no arm
"oracle"; tests solve some kinds of tasks by programs that read the goal.

The pages are the files of the package miniwob, fetched from PyPI and used as data. They are read-only in the sandbox
with the browser: an agent cannot rewrite the page that scores it.
"""

from __future__ import annotations

import csv
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from handiwork.evals.benchmark import PROVIDED, Benchmark, DataError, Instance, Rollout, Score
from handiwork.evals.scoring import packages
from handiwork.evals.scoring.browsing import on_open_page
from handiwork.events.record import Limits
from handiwork.sandbox.base import Sandbox

UPSTREAM = "https://raw.githubusercontent.com/ServiceNow/BrowserGym/9e779f087de9a65668b6974d11f9ce9816026e96"
METADATA = "browsergym/experiments/src/browsergym/experiments/benchmark/metadata"
FILE = "miniwob.csv"
PACKAGE = "miniwob==1.1.0"
SHA256 = "297006e84219d56ad037e843527ed773a4a82509dc43b6031ec4a3ad3e3e61d9"
STEPS = 10
VIEWPORT = (332, 214)
PAGE = "task/page.html"
"""The path of the task's page in the provided folder: its address names neither the benchmark nor the task."""

GOALS = {
    "click-menu-2": """() => {
      const query = document.getElementById('query');
      const text = (node) => node.textContent.replace(/\\s+/g, ' ').trim();
      const icon = query.children[0];
      if (!icon) return text(query);
      return [text(query.childNodes[0]), `"${icon.classList[1]}"`, text(query.childNodes[2])].join(' ');
    }""",
    "use-colorwheel-2": """() => {
      const [before, colour, after] = document.getElementById('query').children;
      const parts = colour.style.backgroundColor.match(/\\d+/g).slice(0, 3);
      const hex = '#' + parts.map((part) => Number(part).toString(16).padStart(2, '0')).join('');
      return [before.textContent, hex, after.textContent].map((part) => part.replace(/\\s+/g, ' ').trim()).join(' ');
    }""",
}
"""Scripts that read the goal if the page shows a part of it as a picture, in BrowserGym's words."""

_BEGIN = """async ([seed, goalOf]) => {
  const style = document.createElement('style');
  style.textContent = `#reward-display, #click-canvas, #sync-task-cover { display: none !important }
    #query { visibility: hidden }`;
  document.head.append(style);
  Math.seedrandom(seed);
  core.EPISODE_MAX_TIME = 1000000;
  core.startEpisodeReal();
  while (!WOB_TASK_READY) await new Promise((done) => setTimeout(done, 20));
  const goal = goalOf ? eval(goalOf)() : core.getUtterance();
  return typeof goal === 'string' ? goal : goal.utterance;
}"""

_STANDS = """() => typeof WOB_DONE_GLOBAL === 'undefined' ? null
  : [location.href.split('#')[0], WOB_DONE_GLOBAL, WOB_RAW_REWARD_GLOBAL, WOB_REWARD_REASON]"""


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of an episode: ``reward`` is the raw one, from -1 to 1, and 0 until the end; ``reason`` the page's."""

    over: bool
    reward: float
    reason: str = ""


class MiniWoB(Benchmark):
    """125 kinds of tasks, each in as many forms as there are trials; success rate."""

    name = "miniwob"
    title = "MiniWoB++"
    size = "125"
    source = "https://github.com/Farama-Foundation/miniwob-plusplus"
    licence = "MIT, list of tasks Apache-2.0"
    citation = "Liu et al., Reinforcement Learning on Web Interfaces, ICLR 2018, arXiv:1802.08802"
    metric = "success rate"
    limits = Limits(iterations=STEPS + 1)  # upstream shows the page before the first step; here that is a step
    fixed_steps = True
    agent = "BrowsingAgent"

    def files(self, split: str) -> Mapping[str, str]:
        """Return BrowserGym's list of the tasks; the pages are fetched when a task is prepared."""
        return {FILE: f"{UPSTREAM}/{METADATA}/{FILE}"}

    def load(self, data: Path, split: str) -> list[Instance]:
        """Return the tasks in the file's order. Raises DataError, OSError."""
        with (data / FILE).open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        if not rows or "task_name" not in rows[0]:
            raise DataError(f"{data / FILE} is not BrowserGym's list of tasks: it has no column task_name")
        return [Instance(row["task_name"].removeprefix("miniwob."), row, row["miniwob_category"]) for row in rows]

    def provide(self, instance: Instance, folder: Path) -> None:
        """Copy the task's page, and the files shared by all pages, into the folder. Raises DataError."""
        pages = packages.fetched(PACKAGE, SHA256) / "miniwob/html"
        for shared in ("core", "common"):
            shutil.copytree(pages / shared, folder / shared)
        (folder / PAGE).parent.mkdir()
        shutil.copy(pages / "miniwob" / f"{instance.id}.html", folder / PAGE)

    async def set_up(self, instance: Instance, sandbox: Sandbox) -> None:
        """Open the page. Raises BrowserError."""
        await sandbox.browser("open", url=_url(sandbox), viewport=list(VIEWPORT))

    def instruction(self, instance: Instance) -> str:
        """Return the task as known before the episode begins."""
        return "Do what the page that is open in the browser asks for."

    async def task(self, instance: Instance, sandbox: Sandbox, agent: str) -> str:
        """Begin the episode and return its goal. Raises BrowserError."""
        return on_open_page(await begin(instance, sandbox), agent)

    async def over(self, rollout: Rollout) -> bool:
        """Return whether the page has given its reward, or the agent has left it. Raises BrowserError."""
        return (await standing(rollout.sandbox)).over

    async def score(self, rollout: Rollout) -> Score:
        """Score 1 if the page's raw reward is above 0. Raises BrowserError."""
        state = await standing(rollout.sandbox)
        return Score(float(state.reward > 0), details={"raw reward": state.reward, "reason": state.reason})


async def begin(instance: Instance, sandbox: Sandbox) -> str:
    """Begin an episode on the open page, and return its goal. Raises BrowserError."""
    argument: list[JsonValue] = [instance.trial, GOALS.get(instance.id)]
    return str(await sandbox.browser("evaluate", expression=_BEGIN, argument=argument))


async def standing(sandbox: Sandbox) -> Standing:
    """Return the state of the episode. Raises BrowserError."""
    value = await sandbox.browser("evaluate", expression=_STANDS)
    match value:
        case [url, bool(over), int() | float() as reward, reason] if url == _url(sandbox):
            return Standing(over, float(reward), str(reason or ""))
        case _:
            return Standing(over=True, reward=0.0, reason="the agent left the page")


def _url(sandbox: Sandbox) -> str:
    return f"file://{Path(sandbox.workspace).parent / PROVIDED / PAGE}"

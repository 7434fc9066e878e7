"""WebArena-Verified: WebArena's tasks revised, and scored from the answer and the traffic, without a judge.

Tasks and rule are those of the package webarena-verified (https://github.com/ServiceNow/webarena-verified), which is
fetched from PyPI with its pinned dependencies into a folder of its own, and run as a separate program: its environment
is not Handiwork's. The sites and the 30 steps are those of the benchmark webarena. The traffic is the browser's from
the task's first page on, without the login.

There are no reference solutions, and so no arm "oracle": the package has the right answers and the requests to be seen
in the traffic, not the way to them.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from handiwork.evals.benchmark import Benchmark, Instance, Rollout, Score
from handiwork.evals.benchmarks.webarena import sites
from handiwork.evals.benchmarks.webarena.benchmark import STEPS, VIEWPORT, missing_sites
from handiwork.evals.scoring import packages
from handiwork.evals.scoring.answers import fenced
from handiwork.evals.scoring.browsing import on_open_page
from handiwork.events.record import Limits
from handiwork.sandbox.base import Sandbox

PACKAGE = "webarena-verified==1.2.3"
DATA = "webarena_verified/assets/dataset"
HAR = ".traffic.har"
"""The file of the recorded traffic in the workspace."""

_ANSWER = """The page to begin with is open. When you are done, finish with this JSON object alone:
{"task_type": "RETRIEVE" | "MUTATE" | "NAVIGATE", "status": STATUS, "retrieved_data": [...] | null, "error_details": \
"..." | null}
task_type is what the task is mainly about: finding something out, changing something, or showing a page. STATUS is \
"SUCCESS", or where it could not be done "ACTION_NOT_ALLOWED_ERROR" (the site does not offer it), \
"PERMISSION_DENIED_ERROR", "NOT_FOUND_ERROR", "DATA_VALIDATION_ERROR" (what was given is missing or wrong) or \
"UNKNOWN_ERROR"; error_details then says why. retrieved_data is the list of what was found, for RETRIEVE only: \
numbers as numbers, true and false as such, all of one form."""

_SCORE = """
import json, sys
given = json.load(sys.stdin)
sys.path.insert(0, given["tree"])
from pathlib import Path
from webarena_verified.api import WebArenaVerified
from webarena_verified.types.config import WebArenaVerifiedConfig
config = WebArenaVerifiedConfig(environments={f"__{site.upper()}__": {"urls": [url]} for site, url in given["urls"]})

def evaluated(answer):
    return WebArenaVerified(config=config).evaluate_task(
        task_id=given["task"], agent_response=answer, network_trace=Path(given["har"])
    )

found = evaluated(given["answer"])
if found.status == "error":
    plain = evaluated({"task_type": "NAVIGATE", "status": "SUCCESS", "retrieved_data": None, "error_details": None})
    assert plain.status != "error", found
print(found.model_dump_json())
"""
"""Evaluates an answer; an error that the package also reports for a plain answer is not the agent's."""


class WebArenaVerified(Benchmark):
    """812 tasks, or the 258 hard ones, on six websites; success rate."""

    name = "webarena_verified"
    title = "WebArena-Verified"
    size = "812, hard 258"
    source = "https://github.com/ServiceNow/webarena-verified"
    licence = "Apache-2.0"
    citation = "El Hattami et al., WebArena Verified: Reliable Evaluation for Web Agents, 2025"
    metric = "success rate"
    splits = ("full", "hard")
    limits = Limits(iterations=STEPS + 1)  # upstream shows the page before the first step; here that is a step
    fixed_steps = True
    agent = "BrowsingAgent"

    def files(self, split: str) -> Mapping[str, str]:
        """Return nothing: the tasks are in the package."""
        return {}

    def load(self, data: Path, split: str) -> list[Instance]:
        """Return the tasks, by number, with the addresses of the available sites. Raises DataError, OSError."""
        folder = packages.fetched(PACKAGE) / DATA
        text = sites.fill((folder / "webarena-verified.json").read_text(encoding="utf-8"), sites.urls())
        instances = [Instance(str(row["task_id"]), row, " and ".join(row["sites"])) for row in json.loads(text)]
        if split == "hard":
            subset = json.loads((folder / "subsets/webarena-verified-hard.json").read_text(encoding="utf-8"))
            return [instance for instance in instances if int(instance.id) in set(subset["task_ids"])]
        return instances

    def skipped(self, instance: Instance) -> str:
        """Return which of the task's sites have no address."""
        return missing_sites(instance.row["sites"], instance.row)

    def allow_net(self, instance: Instance) -> tuple[str, ...]:
        """Return the sites."""
        return sites.hosts(sites.urls())

    def turn(self, instance: Instance) -> AbstractAsyncContextManager[object]:
        """Wait until the sites are reset, and keep other rollouts from changing them, if they can be reset."""
        return sites.turn(any(evaluator["expected"].get("task_type") == "mutate" for evaluator in instance.row["eval"]))

    async def set_up(self, instance: Instance, sandbox: Sandbox) -> None:
        """Open the browser on the task's pages, logged in, and record its traffic. Raises SandboxError."""
        task = {**instance.row, "start_url": " |AND| ".join(instance.row["start_urls"])}
        await sites.enter(sandbox, task, VIEWPORT, har=f"{sandbox.workspace}/{HAR}")

    def instruction(self, instance: Instance) -> str:
        """Return the task and the form of the answer."""
        return f"{instance.row['intent']}\n\n{_ANSWER}"

    async def task(self, instance: Instance, sandbox: Sandbox, agent: str) -> str:
        """Return the task, with a note about the open page for agents that do not see it themselves."""
        return on_open_page(self.instruction(instance), agent)

    async def score(self, rollout: Rollout) -> Score:
        """Score by the package. Raises BrowserError, SandboxError."""
        text = rollout.final_message
        answer = fenced(text, "json", "").strip() or text
        await rollout.sandbox.browser("close")
        har = b"".join([piece async for piece in rollout.sandbox.download(f"{rollout.sandbox.workspace}/{HAR}")])
        result = await evaluate(int(rollout.instance.id), answer, har)
        failed = [evaluator["evaluator_name"] for evaluator in result["evaluators_results"] if evaluator["score"] < 1]
        return Score(float(result["score"]), answer, {"failed": failed})


async def evaluate(task: int, answer: str, har: bytes) -> dict[str, Any]:
    """Return the package's evaluation of a task's answer and traffic; an unreadable answer scores 0.

    Raises RuntimeError if the package can read no answer to the task, or not the traffic.
    """
    tree = await asyncio.to_thread(packages.fetched, PACKAGE)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "network.har")
        await asyncio.to_thread(file.write_bytes, har)
        request = {
            "tree": str(tree),
            "urls": sorted((site, url) for site, url in sites.urls().items() if site != "homepage"),
            "task": task,
            "answer": answer.encode(errors="replace").decode(),  # the package cannot print lone surrogates
            "har": str(file),
        }
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", "-c", _SCORE),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=folder,
        )
        try:
            output, problems = await process.communicate(json.dumps(request).encode())
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    if process.returncode:
        raise RuntimeError(f"webarena-verified ended with {process.returncode}: {problems.decode()[-1000:]}")
    return json.loads(output.splitlines()[-1])

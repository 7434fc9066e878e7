"""The ways in which one repair is tried: CodeActAgent, mini-swe-agent, and the model asked once, or several times."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from handiwork.agents.state import State
from handiwork.events.observation import ErrorObservation
from handiwork.events.record import CompletionEvent, Limits, Usage
from handiwork.llm import create as llms
from handiwork.llm.local.model import LONGEST_ANSWER
from handiwork.llm.local.server import Address
from handiwork.llm.types import Message
from handiwork.log.store import Store
from handiwork.sandbox.bundle import host_command
from handiwork.session.config import SessionConfig
from handiwork.session.open import changes, create
from perf.repairs import SOLUTION, Repair, passes

Outcome = Literal["solved", "wrong answer", "repeat", "format", "not submitted", "timeout", "infrastructure"]
"""How a try ended; all but "solved" are failures.

"wrong answer": it was handed in, or given up with that said, and the tests fail. "repeat": it was ended because
it did the same again and again. "format": its last replies could not be understood. "not submitted": it ran into
the limit of steps or tokens. "timeout": into that of time. "infrastructure": model, sandbox or platform failed.
"""


@dataclass(frozen=True, slots=True)
class Try:
    """One try at one task: tokens in and out of all its model calls, their number, and its seconds of wall time."""

    task: str
    outcome: Outcome
    calls: int
    tokens_in: int
    tokens_out: int
    seconds: float
    note: str


Arm = Callable[[Repair, Path], Awaitable[Try]]
"""Tries a repair, with a folder of its own for what is to be kept."""


async def direct(model: str, samples: int, temperature: float, repair: Repair, folder: Path) -> Try:
    """Ask the model anew until the code block of an answer passes the tests, ``samples`` times at the most.

    The last answer counts if none passes. Every answer has the same prompt: the model sees no test's output.
    """
    llm = llms.create(model, status=lambda _: None)
    began = time.monotonic()
    outcome: Outcome = "format"
    usage, calls = Usage(), 0
    try:
        while calls < samples and outcome != "solved":
            answer = await llm.complete([Message.text("user", repair.direct)], temperature=temperature)
            usage, calls = usage + answer.usage, calls + 1
            (folder / f"answer-{calls}.md").write_text(answer.content)
            block = re.search(r"```(?:python|py)?\n(.*?)(?:```|\Z)", answer.content, re.DOTALL)
            code = block[1] if block else answer.content if "def " in answer.content else None
            outcome = "format" if code is None else "solved" if await passes(repair, code) else "wrong answer"
    finally:
        await llm.close()
    seconds = time.monotonic() - began
    return Try(repair.id, outcome, calls, usage.total - usage.output, usage.output, seconds, "")


async def codeact(model: str, limits: Limits, repair: Repair, folder: Path) -> Try:
    """Run a session of CodeActAgent as ``handiwork run`` does, and take the file as it left it."""
    workspace, data = folder / "workspace", folder / "data"
    repair.write(workspace)
    calls: list[CompletionEvent] = []

    def watch(item: object) -> None:
        if isinstance(item, CompletionEvent):
            calls.append(item)

    began = time.monotonic()
    config = SessionConfig(agent="CodeActAgent", model=model, workspace=str(workspace), limits=limits)
    async with Store.open(data) as store:
        opened = await create(store, data, config, watch, repair.id)
        try:
            state = await opened.run(repair.instruction)
        finally:
            await opened.close()
        seconds = time.monotonic() - began
        changed = {change.path: change.new for change in await changes(data, opened.log)}
    left = changed.get(SOLUTION)
    outcome: Outcome = _ending(state)
    if left is not None and await passes(repair, left.read().decode(errors="replace")):
        outcome = "solved"
    usage = state.usage
    note = f"{state.agent_state}: {state.change.content if state.change else ''}".strip()
    return Try(repair.id, outcome, len(calls), usage.total - usage.output, usage.output, seconds, note)


def _ending(state: State) -> Outcome:
    """Return how a session that solved nothing ended, from its state, which is folded from its log."""
    if state.agent_state in ("finished", "rejected", "awaiting_user_input"):
        return "wrong answer"
    reason = state.change.reason if state.change else None
    if reason == "stuck":
        return "repeat"
    if reason == "limit":
        late = [observation for _, observation in state.history[-3:]]
        if late and all(isinstance(seen, ErrorObservation) and seen.error_id == "malformed" for seen in late):
            return "format"
        over_time = state.limits.time is not None and state.time >= state.limits.time
        return "timeout" if over_time else "not submitted"
    return "infrastructure"


async def mini(
    programs: Path, address: Address, model: str, steps: int, limit: float, repair: Repair, folder: Path
) -> Try:
    """Run the ``mini`` command with its own configuration for tool calls, shut in: it has no sandbox of its own.

    It may take ``steps`` steps and ``limit`` seconds; temperature and the length of an answer are ours.
    """
    workspace, trajectory = folder / "workspace", folder / "trajectory.json"
    repair.write(workspace)
    settings = {
        "model.model_kwargs.api_base": f"{address.url}/v1",
        "model.model_kwargs.api_key": address.key,
        "model.model_kwargs.temperature": 0,
        "model.model_kwargs.max_tokens": LONGEST_ANSWER,
        "model.cost_tracking": "ignore_errors",
        "agent.step_limit": steps,
        "agent.wall_time_limit_seconds": int(limit),
    }
    command = [str(programs / "mini"), "-t", repair.instruction, "-m", f"openai/{model}", "-o", str(trajectory), "-y"]
    command += ["--agent-class", "default", "-c", "mini.yaml", *(f"-c{key}={value}" for key, value in settings.items())]
    own = {"MSWEA_CONFIGURED": "true", "MSWEA_SILENT_STARTUP": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *_shut_in(folder),
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, **own, "HOME": str(folder), "MSWEA_GLOBAL_CONFIG_DIR": str(folder)},
    )
    try:
        said, _ = await asyncio.wait_for(process.communicate(), limit + 60)
        text = said.decode(errors="replace")
    except TimeoutError:
        process.kill()
        await process.wait()
        text = "it did not keep its time limit"
    seconds = time.monotonic() - began
    (folder / "output.txt").write_text(text)
    try:
        log: dict[str, Any] = json.loads(trajectory.read_text())
    except (FileNotFoundError, ValueError):
        return Try(repair.id, "infrastructure", 0, 0, 0, seconds, text[-200:])
    spent = [usage for message in log["messages"] if (usage := _usage(message))]
    outcome = _exit(log)
    if await passes(repair, (workspace / SOLUTION).read_text(errors="replace")):
        outcome = "solved"
    tokens_in, tokens_out = (sum(usage[name] for usage in spent) for name in ("prompt_tokens", "completion_tokens"))
    status = log["info"]["exit_status"]
    return Try(repair.id, outcome, log["info"]["model_stats"]["api_calls"], tokens_in, tokens_out, seconds, status)


def _shut_in(folder: Path) -> Sequence[str]:
    """Everything is read-only but the folder and a /tmp of its own; loopback stays, for the model."""
    return (
        *host_command("bwrap"),
        *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"),
        *("--bind", str(folder), str(folder)),
        *("--unshare-pid", "--die-with-parent", "--chdir", str(folder / "workspace"), "--"),
    )


def _usage(message: dict[str, Any]) -> dict[str, int] | None:
    response = message.get("extra", {}).get("response")
    return cast("dict[str, int]", response["usage"]) if isinstance(response, dict) else None


def _exit(log: dict[str, Any]) -> Outcome:
    """Return how a try of mini-swe-agent that solved nothing ended, from its trajectory."""
    match log["info"]["exit_status"]:
        case "Submitted":
            return "wrong answer"
        case "RepeatedFormatError":
            return "format"
        case "TimeExceeded":
            return "timeout"
        case "LimitsExceeded":
            last = [json.dumps(message["extra"]["actions"]) for message in log["messages"] if _acts(message)][-4:]
            return "repeat" if len(last) == 4 and len(set(last)) == 1 else "not submitted"
        case _:
            return "infrastructure"


def _acts(message: dict[str, Any]) -> bool:
    return bool(message.get("extra", {}).get("actions"))

"""Runs ours with a scripted model: what is left of a step without a request."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from perf.contenders import TASK, Contender
from perf.processes import descendants, end_descendants, total_cpu

Span = tuple[int, int]


def scripted(ours: Contender, folder: Path, steps: int, spans: Sequence[Span]) -> dict[Span, tuple[float, float]]:
    """Return the mean wall and CPU seconds of a step, for the steps of each span."""
    (folder / "project").mkdir()
    script = folder / "script.jsonl"
    calls = [ours.answer(number, steps) for number in range(1, steps + 2)]
    replies = [{"tool_calls": [{"name": name, "arguments": arguments}]} for name, arguments in calls]
    script.write_text("".join(f"{json.dumps(reply)}\n" for reply in replies))
    command = [ours.shown_help[0], "run", TASK, "--json", "--workspace", str(folder / "project")]
    command += ["--max-iterations", "100000", "--model", f"scripted:{script}"]
    edges = {step for first, last in spans for step in (first, last + 1)}
    seen: dict[int, tuple[float, float]] = {}
    step = 0
    with subprocess.Popen(
        command, env=ours.environment(folder), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as run:
        assert run.stdout is not None
        for line in run.stdout:
            if json.loads(line)["type"] == "StepStarted":
                step += 1
                if step in edges:
                    seen[step] = time.monotonic(), total_cpu(descendants(os.getpid()))
    end_descendants()

    def cost(first: int, last: int) -> tuple[float, float]:
        (before, used), (after, used_then) = seen[first], seen[last + 1]
        return (after - before) / (last - first + 1), (used_then - used) / (last - first + 1)

    return {span: cost(*span) for span in spans}

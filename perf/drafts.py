"""How much faster the local model writes with drafts from the conversation: ``python -m perf.drafts [--rounds 3]``.

A server with drafts and one without take turns, each alone in a process of its own. The tasks are to write a file anew
with a change, a new program, and prose; the answers are at temperature 0, and at most 400 tokens.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import httpx2

from handiwork.llm.local.server import start
from handiwork.llm.local.weights import find
from perf.table import aligned

MODEL = "qwen2.5-coder-1.5b"
FILE = Path(__file__).parent.parent / "handiwork/agents/codeact/choice.py"
TASKS = {
    "a file anew": f"```\n{FILE.read_text()}```\n\nRename the function `choose` to `pick`. Write the whole file anew.",
    "a new program": "Write a Python program that prints the total of each product in a CSV file of sales, sorted.",
    "prose": "Explain how a git merge differs from a rebase, and when to use which.",
}
KEY = "perf"


def measure(weights: Path, *, drafts: bool) -> dict[str, float]:
    """Return the tokens a second of each task's answer."""
    server = start(weights, KEY, drafts=drafts)  # it ends with its last reference
    rates: dict[str, float] = {}
    for name, task in TASKS.items():
        body = {"messages": [{"role": "user", "content": task}], "temperature": 0, "max_tokens": 400}
        answer = httpx2.post(
            f"{server.listening_address}/v1/chat/completions",
            json=body,
            headers={"Authorization": f"Bearer {KEY}"},
            timeout=600,
        )
        rates[name] = answer.raise_for_status().json()["timings"]["predicted_per_second"]
    return rates


def main() -> None:
    """Measure in turn and print the medians, or measure once in a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m perf.drafts", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--once", choices=["with", "without"], help="measure once and print JSON")
    arguments = parser.parse_args()
    if arguments.once:
        weights = asyncio.run(find(MODEL, lambda _, __: None))
        print(json.dumps(measure(weights, drafts=arguments.once == "with")), flush=True)
        os._exit(0)  # llama.cpp's threads would go on
    found: dict[str, list[dict[str, float]]] = {"with": [], "without": []}
    for _ in range(arguments.rounds):
        for way, rates in found.items():
            command = [sys.executable, "-m", "perf.drafts", "--once", way]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True)
            rates.append(json.loads(done.stdout))
    lines = [["tokens a second", "with drafts", "without", "ratio"]]
    for name in TASKS:
        fast, slow = (statistics.median(rates[name] for rates in found[way]) for way in ("with", "without"))
        lines.append([name, f"{fast:.1f}", f"{slow:.1f}", f"{fast / slow:.2f}"])
    print(aligned(lines, range(1, 4)))


if __name__ == "__main__":
    main()

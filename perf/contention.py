"""How much a busy program slows the local model: ``python -m perf.contention [--rounds 3]``.

Threads that wait for each other may sleep, as Handiwork lets them, or spin, as llama.cpp does by itself. Each server
runs in a process of its own, alone or beside a program that keeps one processor busy; the answer is 80 tokens at
temperature 0 to a prompt of 1,500 characters.
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
from perf.drafts import FILE, KEY, MODEL
from perf.table import aligned

SPINS = {"sleep": "0", "spin": "300000"}
"""GOMP_SPINCOUNT: 300,000 is the default of GNU's OpenMP."""


def measure(weights: Path) -> float:
    """Return the tokens a second of an answer."""
    server = start(weights, KEY, drafts=False)  # it ends with its last reference
    body = {
        "messages": [{"role": "user", "content": f"Explain this program:\n\n{FILE.read_text()[:1500]}"}],
        "temperature": 0,
        "max_tokens": 80,
    }
    url, headers = f"{server.listening_address}/v1/chat/completions", {"Authorization": f"Bearer {KEY}"}
    return (
        httpx2.post(url, json=body, headers=headers, timeout=600)
        .raise_for_status()
        .json()["timings"]["predicted_per_second"]
    )


def main() -> None:
    """Measure in turn and print the medians, or measure once in a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m perf.contention", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--once", action="store_true", help="measure once and print JSON")
    arguments = parser.parse_args()
    if arguments.once:
        weights = asyncio.run(find(MODEL, lambda _, __: None))
        print(json.dumps(measure(weights)), flush=True)
        os._exit(0)  # llama.cpp's threads would go on
    rates: dict[tuple[str, int], list[float]] = {(way, busy): [] for busy in (0, 1) for way in SPINS}
    for _ in range(arguments.rounds):
        for (way, busy), found in rates.items():
            others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
            try:
                command = [sys.executable, "-m", "perf.contention", "--once"]
                environment = {**os.environ, "GOMP_SPINCOUNT": SPINS[way]}
                done = subprocess.run(
                    command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True
                )
            finally:
                for other in others:
                    other.kill()
                    other.wait()
            found.append(json.loads(done.stdout))
    lines = [["tokens a second", "threads sleep", "threads spin", "ratio"]]
    for busy, name in enumerate(("alone", "beside a busy program")):
        sleep, spin = (statistics.median(rates[way, busy]) for way in SPINS)
        lines.append([name, f"{sleep:.1f}", f"{spin:.1f}", f"{sleep / spin:.2f}"])
    print(aligned(lines, range(1, 4)))


if __name__ == "__main__":
    main()

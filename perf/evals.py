"""Measures what ``handiwork eval`` itself takes: a run with a scripted model, in bubblewrap sandboxes.

Each instance is a session of its own with one command and an answer, scored, its trajectory kept. Prints CPU seconds
an instance, of all processes, and the memory of the run's process as its results come.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXAMPLE = Path(__file__).parents[1] / "examples/benchmark/arithmetic.py"
REPLIES = (
    {"tool_calls": [{"name": "bash", "arguments": {"command": "expr 20 + 22"}}]},
    {"tool_calls": [{"name": "finish", "arguments": {"message": "<answer>42</answer>"}}]},
)


def resident(pid: int) -> float:
    """Return the memory that a process holds, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1000


def measure(instances: int, workers: int, folder: Path) -> dict[str, object]:
    rows = ({"id": f"sum-{n}", "level": "plain", "question": "20 + 22?", "answer": 42} for n in range(instances))
    (folder / "arithmetic.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (folder / "script.jsonl").write_text("".join(f"{json.dumps(reply)}\n" for reply in REPLIES))
    handiwork, out = Path(sys.executable).with_name("handiwork"), folder / "out"
    command = [handiwork, "eval", "run", EXAMPLE, "--data", folder, "--model", f"scripted:{folder / 'script.jsonl'}"]
    results, memory, began = out / "output.jsonl", dict[int, float](), time.monotonic()
    with subprocess.Popen(
        [*map(str, command), "--workers", str(workers), "--out", str(out)], stdout=subprocess.DEVNULL
    ) as run:
        while True:
            pid, status, used = os.wait4(run.pid, os.WNOHANG)
            if pid:
                run.returncode = os.waitstatus_to_exitcode(status)
                break
            done = results.read_bytes().count(b"\n") if results.exists() else 0
            if done % max(1, instances // 4) == 0 and 0 < done < instances and done not in memory:
                memory[done] = resident(run.pid)
            time.sleep(0.05)
    if run.returncode != 0:
        sys.exit(f"the run ended with exit code {run.returncode}")
    found = [json.loads(line) for line in results.read_text().splitlines()]
    assert len(found) == instances
    assert all(one["score"] == 1 for one in found)
    return {
        "instances": instances,
        "CPU seconds an instance": round((used.ru_utime + used.ru_stime) / instances, 3),
        "wall seconds an instance": round((time.monotonic() - began) / instances, 3),
        "MB after so many instances": {done: round(mb, 1) for done, mb in memory.items()},
        "MB at the most": round(used.ru_maxrss / 1000, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m perf.evals", description=__doc__)
    parser.add_argument("--instances", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="handiwork-perf-") as name:
        Path(name).chmod(0o755)
        for what, value in measure(arguments.instances, arguments.workers, Path(name)).items():
            print(f"{what}: {value}")


if __name__ == "__main__":
    main()

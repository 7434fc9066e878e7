"""The local model's first action in one new folder after another: ``python -m perf.folders [--folders 3]``.

The prompt before the workspace is the same for all folders, so the model's server reads it for the first one only. The
time is that of the calls of the model up to the first action, the tokens those of their prompts that it had to read.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import handiwork
from perf.drafts import MODEL
from perf.table import aligned

TASK = "Write a file milk.txt with the word milk."


def measure(folder: Path) -> tuple[float, int, int]:
    """Return the seconds, the tokens read, and those from the cache, up to the first action in a folder."""
    (folder / "hello.sh").write_text("echo hello\n")
    state = handiwork.run(TASK, workspace=folder, model=f"local:{MODEL}").state
    first = next(action.completion for action, _ in state.history if action.completion)
    calls = [completion for number, completion in state.completions.items() if number <= first]
    read, cached = (sum(getattr(call.usage, name) for call in calls) for name in ("input", "cache_read"))
    return sum(call.latency for call in calls), read, cached


def main() -> None:
    """Measure the folders in turn and print a row for each."""
    parser = argparse.ArgumentParser(prog="python -m perf.folders", description=__doc__)
    parser.add_argument("--folders", type=int, default=3)
    lines = [["folder", "to the first action, s", "tokens read", "tokens from the cache"]]
    for number in range(1, parser.parse_args().folders + 1):
        with tempfile.TemporaryDirectory() as folder:
            seconds, read, cached = measure(Path(folder))
        lines.append([str(number), f"{seconds:.1f}", str(read), str(cached)])
    print(aligned(lines, range(1, 4)))


if __name__ == "__main__":
    main()

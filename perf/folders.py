"""The local model's first action in one new folder after another: ``python -m perf.folders [--folders 3]``.

The prompt before the workspace is the same for all folders, so the model's server reads it for the first one only. The
time is that of the call whose reply has the first action, the tokens are those of its prompt.
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
    """Return the seconds of the call, the tokens that it read, and those from the cache."""
    workspace = folder / "project"
    workspace.mkdir()
    (workspace / "hello.sh").write_text("echo hello\n")
    model = f"local:{MODEL}"
    state = handiwork.run(TASK, workspace=workspace, agent="CodeActAgent", model=model, data=folder / "data").state
    call = next(state.completions[action.completion] for action, _ in state.history if action.completion)
    return call.latency, call.usage.input, call.usage.cache_read


def main() -> None:
    """Measure the folders in turn and print a row for each."""
    parser = argparse.ArgumentParser(prog="python -m perf.folders", description=__doc__)
    parser.add_argument("--folders", type=int, default=3)
    lines = [["folder", "first action, s", "tokens read", "tokens from the cache"]]
    for number in range(1, parser.parse_args().folders + 1):
        with tempfile.TemporaryDirectory() as folder:
            seconds, read, cached = measure(Path(folder))
        lines.append([str(number), f"{seconds:.1f}", str(read), str(cached)])
    print(aligned(lines, range(1, 4)))


if __name__ == "__main__":
    main()

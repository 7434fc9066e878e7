"""The searches of the AgentSkills beside ripgrep's program: ``python -m perf.skills [FOLDER] [--queries 50]``.

Both search the sources of transformers, which come from PyPI into FOLDER. The terms are words of these sources, drawn
by a seed, that few enough files have for an answer; each is searched once by each way, after a round that fills the
file cache. The skills run in this process, as in a sandbox's notebook.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import re
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from handiwork.skills import find_file, search_dir
from handiwork.skills.search import MAX_FILES
from perf import report
from perf.codeindex import PACKAGE, SEED, install, milliseconds, ripgrep
from perf.table import aligned


def main() -> None:
    """Install the sources, measure in turn, and print the medians."""
    parser = argparse.ArgumentParser(prog="python -m perf.skills", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="keep the sources here")
    parser.add_argument("--queries", type=int, default=50)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.folder or Path(temporary)).resolve()
        install(folder)
        print(measure(folder / "packages" / PACKAGE, str(ripgrep(folder)), arguments.queries))


def measure(root: Path, program: str, queries: int) -> str:
    """Return the medians of the milliseconds of a search by each way, as a table."""
    os.environ["PATH"] = f"{Path(program).parent}{os.pathsep}{os.environ['PATH']}"
    names = [path.name for path in random.Random(SEED).sample(sorted(root.rglob("*.py")), queries)]
    rows = [["", "Handiwork", "ripgrep", "ratio"]]
    for name, skill, options, wanted in (
        ("search_dir", search_dir, ["--fixed-strings", "--line-number", "-e"], words(root, program, queries)),
        ("find_file", find_file, ["--files", "--glob"], names),
    ):
        ours = statistics.median(milliseconds(wanted, by_skill(skill, root)))
        theirs = statistics.median(milliseconds(wanted, by_program([program, *options], root)))
        rows.append([name, f"{ours:.1f} ms", f"{theirs:.1f} ms", f"{ours / theirs:.2f}"])
    return "\n".join([report.machine(), "", aligned(rows, range(1, 4))])


def words(root: Path, program: str, count: int) -> list[str]:
    """Return words of the sources, each with five letters or more and in at most MAX_FILES files."""
    chance = random.Random(SEED)
    found: list[str] = []
    for file in chance.sample(sorted(root.rglob("*.py")), 20 * count):
        if len(found) == count:
            break
        choices = sorted(set(re.findall(r"[A-Za-z_]{5,}", file.read_text()))) or ["import"]
        word = chance.choice(choices)
        command = [program, "--files-with-matches", "--fixed-strings", "-e", word, str(root)]
        if len(subprocess.run(command, check=False, capture_output=True).stdout.splitlines()) <= MAX_FILES:
            found.append(word)
    return found


def by_skill(skill: Callable[[str, str], None], root: Path) -> Callable[[str], None]:
    """Return a search by a skill."""

    def search(term: str) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            skill(term, str(root))

    return search


def by_program(command: list[str], root: Path) -> Callable[[str], None]:
    """Return a search by a program, whose output is read."""

    def search(term: str) -> None:
        subprocess.run([*command, term, str(root)], check=False, capture_output=True)

    return search


if __name__ == "__main__":
    main()

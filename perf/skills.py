"""The searches of the AgentSkills beside ripgrep's program: ``python -m perf.skills [FOLDER] [--queries 50]``.

Both search the sources of transformers, which come from PyPI into FOLDER. The terms are words of these sources, drawn
by a seed; each is searched once by each way in turn, after a round that fills the file cache. ``search_dir`` runs in
this process, as in a sandbox's notebook, with ripgrep and without it.
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
from handiwork.skills.tools import SkillError
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
    terms = words(root, queries)
    names = [path.name for path in random.Random(SEED).sample(sorted(root.rglob("*.py")), queries)]
    path = os.environ["PATH"]
    with_ripgrep = f"{Path(program).parent}{os.pathsep}{path}"
    rows = [["", "Handiwork", "without ripgrep", "ripgrep itself", "ratio"]]
    for name, skill, options, wanted in (
        ("search_dir", search_dir, ["--fixed-strings", "--line-number", "-e"], terms),
        ("find_file", find_file, ["--files", "--glob"], names),
    ):
        times: list[float] = []
        for places in (with_ripgrep, ""):
            os.environ["PATH"] = places
            times.append(statistics.median(milliseconds(wanted, by_skill(skill, root))))
        os.environ["PATH"] = path
        times.append(statistics.median(milliseconds(wanted, by_program([program, *options], root))))
        rows.append([name, *(f"{one:.1f} ms" for one in times), f"{times[0] / times[2]:.2f}"])
    return "\n".join([report.machine(), "", aligned(rows, range(1, 5))])


def words(root: Path, count: int) -> list[str]:
    """Return words of the sources, each with five letters or more."""
    chance = random.Random(SEED)
    files = chance.sample(sorted(root.rglob("*.py")), 4 * count)
    found = (sorted(set(re.findall(r"[A-Za-z_]{5,}", file.read_text()))) for file in files)
    return [chance.choice(choices) for choices in found if choices][:count]


def by_skill(skill: Callable[[str, str], None], root: Path) -> Callable[[str], None]:
    """Return a search by a skill; a term in too many files is an answer too."""

    def search(term: str) -> None:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SkillError):
            skill(term, str(root))

    return search


def by_program(command: list[str], root: Path) -> Callable[[str], None]:
    """Return a search by a program, whose output is read."""

    def search(term: str) -> None:
        subprocess.run([*command, term, str(root)], check=False, capture_output=True)

    return search


if __name__ == "__main__":
    main()

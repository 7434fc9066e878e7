"""Applies a session's changes again and again, and is killed at random moments: killed_apply.py FOLDER KILLS SEED.

FOLDER has the project, the changed upper layer and the session. Each apply runs in a fork of this process. After each
kill the next start must leave the project as it was before or as it is after, with nothing else in it.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

from handiwork.workspace.apply import apply
from handiwork.workspace.apply.journal import undo_cut_apply
from handiwork.workspace.changes import changes_of_overlay
from handiwork.workspace.copy import Workspace
from tests.workspace.trees import read_tree


def directories(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_dir()}


def reset(folder: Path) -> None:
    shutil.rmtree(folder / "project")
    shutil.copytree(folder / "before", folder / "project", symlinks=True)


def main(folder: Path, kills: int, seed: int) -> None:
    chance, project = random.Random(seed), folder / "project"
    shutil.copytree(project, folder / "before", symlinks=True)
    workspace = Workspace.load(folder / "session")
    changes = changes_of_overlay(workspace, folder / "upper")
    began = time.perf_counter()
    apply(changes, project)
    longest = time.perf_counter() - began
    before, after = ((read_tree(root), directories(root)) for root in (folder / "before", project))
    whole = undone = 0
    reset(folder)
    for _ in range(kills):
        child = os.fork()
        if child == 0:
            try:
                apply(changes, project)
            finally:
                os._exit(0)
        time.sleep(chance.random() * longest * 1.2)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        said = undo_cut_apply(project)
        found = read_tree(project), directories(project)
        assert found in (before, after), f"half applied, {said!r}"
        assert not said or found == before
        whole, undone = whole + (found == after), undone + bool(said)
        if found == after:
            reset(folder)
    sys.stdout.write(f"{kills} kills: {undone} undone, {whole} whole\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))

"""An apply that is killed is whole, or undone at the next start."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from handiwork.errors import WorkspaceError
from handiwork.workspace.apply import apply
from handiwork.workspace.apply.journal import ApplyJournal, Moves, Step, identity, undo_cut_apply
from handiwork.workspace.changes import changes_of_overlay
from tests.workspace import killed_apply
from tests.workspace.trees import Session, Tree, read_tree, write_tree

ROOT = Path(__file__).parents[2]


def killed(folder: Path, files: int, kills: int) -> str:
    """Kill applies of some thousand changes of all kinds; return what became of them."""
    tree: Tree = {f"d{number // 50}/f{number}": f"{number}\n".encode() for number in range(files)}
    here = Session(write_tree(folder / "project", {**tree, "swap": b"1\n", "swapped/x": b"1\n"}), folder)
    here.run(
        "for f in d*/*5; do echo 2 >> $f; done; rm d*/*7; rm -r d1; mkdir -p new/deep;"
        f" for n in $(seq {files // 2}); do echo $n > new/deep/$n; done; ln -s deep/1 new/link;"
        " rm swap; mkdir swap; echo 4 > swap/in; rm -r swapped; echo 5 > swapped"
    )
    seed = random.SystemRandom().randrange(2**32)
    done = subprocess.run(
        [sys.executable, "-m", killed_apply.__name__, str(folder), str(kills), str(seed)],
        cwd=ROOT,
        env={**os.environ, "HANDIWORK_DATA": str(folder / "data"), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"seed {seed}: {done.stderr}"
    assert list((folder / "data/applying").iterdir()) == []
    return done.stdout


def test_an_apply_killed_at_a_few_moments_is_whole_or_undone(tmp_path: Path) -> None:
    assert "3 kills" in killed(tmp_path, 200, 3)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_an_apply_of_thousands_of_changes_killed_at_many_moments_is_whole_or_undone() -> None:
    # In memory, where bringing files to the disk takes no time.
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        assert "15 kills" in killed(Path(folder), 4000, 15)


def test_moves_that_do_not_fit_on_the_disk_are_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDIWORK_DATA", str(tmp_path / "data"))
    target = write_tree(tmp_path / "project", {"f": b"1\n"})
    moves = Moves([Step(f"f{number}", before=False, staged=(1, 1, 1)) for number in range(400)])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with ApplyJournal(target) as journal:
        journal.begin()
        # Like a disk that becomes full, the limit lets the beginning of a write through.
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
        try:
            with pytest.raises(OSError, match="File too large"):
                journal.record(moves)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert read_tree(target) == {"f": b"1\n"}
    assert list((tmp_path / "data/applying").iterdir()) == []


def test_a_cut_apply_is_undone_by_the_next_one_which_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDIWORK_DATA", str(tmp_path / "data"))
    here = Session(write_tree(tmp_path / "project", {"edited": b"1\n", "mine": b"1\n", "gone": b"1\n"}), tmp_path)
    here.run("echo 2 > edited; echo 2 > mine; rm gone; echo 3 > new")
    cut(here.source)
    (here.source / "mine").write_text("by the user\n")
    warnings = apply([], here.source).warnings
    assert len(warnings) == 1
    assert "was cut off; it is undone" in warnings[0]
    assert "mine.before-apply" in warnings[0]
    assert read_tree(here.source) == {
        "edited": b"1\n",
        "mine": b"by the user\n",
        "mine.before-apply": b"1\n",
        "gone": b"1\n",
    }
    (here.source / "mine").write_text("1\n")
    assert undo_cut_apply(here.source) == ""
    assert apply(changes_of_overlay(here.workspace, here.upper), here.source).warnings == ()


def cut(target: Path) -> None:
    """Leave what a process leaves that dies in the middle of an apply: all is moved, and the end is not written."""
    script = f"""
import os
from pathlib import Path
from {__name__} import half
half(Path({str(target)!r}))
os._exit(9)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False)
    assert done.returncode == 9
    assert any(name.startswith(".handiwork-") for name in os.listdir(target))


def half(target: Path) -> None:
    journal = ApplyJournal(target)
    staging = journal.begin()
    steps: list[Step] = []
    for number, name in enumerate(["edited", "mine", "new"]):
        with open(os.open(f"new{number}", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=staging), "w") as file:
            file.write("2\n")
        found = os.stat(f"new{number}", dir_fd=staging)
        steps.append(Step(name, name != "new", identity(found)))
    steps.append(Step("gone", before=True, staged=None))
    journal.record(Moves(steps))
    os.rename("gone", "old3", src_dir_fd=journal.root, dst_dir_fd=staging)
    for number, name in enumerate(["edited", "mine", "new"]):
        if name != "new":
            os.link(name, f"old{number}", src_dir_fd=journal.root, dst_dir_fd=staging)
        os.rename(f"new{number}", name, src_dir_fd=staging, dst_dir_fd=journal.root)


def test_two_applies_to_one_directory_exclude_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDIWORK_DATA", str(tmp_path / "data"))
    target = write_tree(tmp_path / "project", {"a": b"1\n"}).resolve()
    with ApplyJournal(target):
        assert undo_cut_apply(target) == ""
        with pytest.raises(WorkspaceError, match="another apply works in"):
            apply([], target)


SLOW_GIT = """#!/bin/sh
case "$*" in *merge-file*) touch HERE/merging; sleep 60;; esac
exec REAL "$@"
"""


def test_an_apply_killed_while_it_merges_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Session(write_tree(tmp_path / "project", {"text": b"1\n2\n3\n4\n5\n"}), tmp_path)
    here.run("sed -i s/5/five/ text")
    (here.source / "text").write_bytes(b"one\n2\n3\n4\n5\n")
    real = shutil.which("git")
    assert real
    slow = SLOW_GIT.replace("HERE", str(tmp_path)).replace("REAL", real)
    write_tree(tmp_path, {"x:bin/git": slow.encode(), "tmp/kept": b"", "data/kept": b""})
    script = """
import sys
from pathlib import Path
from handiwork.workspace.apply import apply
from handiwork.workspace.changes import changes_of_overlay
from handiwork.workspace.copy import Workspace
session, upper = map(Path, sys.argv[1:])
workspace = Workspace.load(session)
apply(changes_of_overlay(workspace, upper), workspace.source)
"""
    places = {"TMPDIR": str(tmp_path / "tmp"), "HANDIWORK_DATA": str(tmp_path / "data")}
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "session"), str(here.upper)],
        env={**os.environ, **places, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
        cwd=ROOT,
        start_new_session=True,
    )
    deadline = time.monotonic() + 30
    while not (tmp_path / "merging").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    monkeypatch.setenv("HANDIWORK_DATA", str(tmp_path / "data"))
    assert undo_cut_apply(here.source) == ""
    assert os.listdir(tmp_path / "tmp") == ["kept"]
    assert list((tmp_path / "data/applying").iterdir()) == []
    assert apply(changes_of_overlay(here.workspace, here.upper), here.source).written == ("text",)
    assert (here.source / "text").read_bytes() == b"one\n2\n3\n4\nfive\n"

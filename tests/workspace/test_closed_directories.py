"""A directory or file that the agent closed for itself, as an ordinary user's sandbox leaves it, hides nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]

SCRIPT = """
import os, stat, sys
from pathlib import Path
from handiwork.workspace.apply import apply
from handiwork.workspace.changes import changes_of_overlay, changes_of_tree
from handiwork.workspace.patch import unified_diff
from handiwork.workspace.snapshots.object_store import Objects
from handiwork.workspace.snapshots.store import WritableDir, Snapshots
from handiwork.workspace.overlay_view import OverlayView
from handiwork.workspace.copy import make_copy

folder = Path(sys.argv[1])
if os.geteuid() == 0:
    os.chown(folder, 12345, 12345)
    os.setgroups([])
    os.setresgid(12345, 12345, 12345)
    os.setresuid(12345, 12345, 12345)
os.chdir(folder)
source, upper = folder / "project", folder / "upper"
source.mkdir()
(source / "a").write_text("1\\n")
workspace = make_copy(source, folder / "session")
(upper / "closed/deep").mkdir(parents=True)
(upper / "closed/deep/file").write_text("hidden\\n")
(upper / "listed").mkdir()
(upper / "listed/file").write_text("2\\n")
for path, mode in (("closed/deep/file", 0), ("closed/deep", 0), ("closed", 0), ("listed", 0o400), ("", 0)):
    (upper / path).chmod(mode)
changes = changes_of_overlay(workspace, upper)
assert [change.path for change in changes] == ["closed/deep/file", "listed/file"], changes
assert "+hidden" in unified_diff(changes)
assert [entry.name for entry in OverlayView([workspace.base, upper]).entries("closed/deep")] == ["file"]
objects = Objects(folder / "snapshots")
taken = Snapshots(objects, {"workspace": WritableDir(upper, workspace.base)}).take()
assert taken is not None
assert [change.path for change in changes_of_overlay(workspace, objects.layer(taken.tree) / "workspace")] == [
    "closed/deep/file", "listed/file"
]
apply(changes, source)
assert (source / "closed/deep/file").exists()
assert stat.S_IMODE(upper.stat().st_mode) == 0
upper.chmod(0o700)
assert [stat.S_IMODE((upper / name).stat().st_mode) for name in ("closed", "listed")] == [0, 0o400]
(source / "mine").mkdir(0)
assert make_copy(source, folder / "again").left_out == ("closed/deep/file", "mine/")
"""


def test_closed_directories_of_an_ordinary_user_are_compared_kept_and_applied() -> None:
    # Not pytest's own folder, which only root may enter.
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, folder],
            cwd=CHECKOUT,
            env={"PATH": os.defpath, "HOME": folder, "HANDIWORK_DATA": f"{folder}/data"},
            capture_output=True,
            text=True,
            check=False,
        )
        subprocess.run(["chmod", "-R", "u+rwX", folder], check=True)
        assert done.returncode == 0, done.stderr

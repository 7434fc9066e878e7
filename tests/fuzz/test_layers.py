"""What an agent could leave in its overlay's upper layer, as the host lists, compares and keeps it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.errors import WorkspaceError
from handiwork.workspace.changes import changes_of_overlay
from handiwork.workspace.copy import Workspace, make_copy
from handiwork.workspace.overlay_view import OverlayView
from handiwork.workspace.patch import diffstat, unified_diff
from handiwork.workspace.snapshots.object_store import Objects, remove_tree
from handiwork.workspace.snapshots.store import Snapshots, WritableDir
from tests.fuzz.settings import fuzz_seed, fuzz_settings

SECRET = "a secret of the host"
NAMES = st.sampled_from(["a", "b", "dir", "x\ny", "\udcff", ".git", ".GIT", "\u200b.git", " ", "-a", 'q"\\', "\u202e"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
TEXTS = st.one_of(
    st.binary(max_size=20), st.sampled_from([b"", b"diff --git a/1 b/1\n", b"@@ -1 +1 @@\n", b"\r\x1b[2K"])
)
THINGS = st.one_of(
    st.tuples(st.just("file"), PATHS, TEXTS),
    st.tuples(st.just("link"), PATHS, st.sampled_from(["../../outside", "../../outside/key", "a", ".", "\udcfe", "/"])),
    st.tuples(st.just("dir"), PATHS, st.sampled_from([0o755, 0, 0o1777])),
    st.tuples(st.just("pipe"), PATHS, st.none()),
    st.tuples(st.just("whiteout"), PATHS, st.none()),
    st.tuples(st.just("opaque"), PATHS, st.sampled_from([b"y", b"x", b""])),
)


@pytest.fixture(scope="module")
def workspace() -> Iterator[Workspace]:
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        project, outside = Path(name, "project"), Path(name, "outside")
        for path, text in {"a": "1\n", "dir/a": "2\n", "dir/dir/b": "3\n"}.items():
            (project / path).parent.mkdir(parents=True, exist_ok=True)
            (project / path).write_text(text)
        outside.mkdir()
        (outside / "key").write_text(SECRET)
        yield make_copy(project, Path(name, "session"))


def make(upper: Path, kind: str, path: str, value: object) -> None:
    """Make it, if it can be made there and no link is on the way."""
    target = upper / path
    if any(parent.is_symlink() for parent in target.parents) or (kind != "opaque" and os.path.lexists(target)):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    match kind, value:
        case "file", bytes():
            target.write_bytes(value)
        case "link", str():
            target.symlink_to(value)
        case "dir", int():
            target.mkdir()
            target.chmod(value)
        case "pipe", _:
            os.mkfifo(target)
        case "whiteout", _:
            target.write_bytes(b"")
            os.setxattr(target, "user.overlay.whiteout", b"")
        case _, bytes():
            os.setxattr(target, "user.overlay.opaque", value)
        case _:
            raise AssertionError(kind)


@pytest.mark.slow
@pytest.mark.timeout(600)
@fuzz_seed
@fuzz_settings
@given(things=st.lists(THINGS, max_size=6), asked=PATHS, compared=st.integers(0, 49))
def test_a_layer_is_listed_compared_and_kept_without_anything_of_the_host(
    workspace: Workspace, things: list[tuple[str, str, object]], asked: str, compared: int
) -> None:
    name = tempfile.mkdtemp(dir=workspace.base.parent.parent)
    upper = Path(name, "upper")
    upper.mkdir()
    try:
        for kind, path, value in things:
            with suppress(OSError):
                make(upper, kind, path, value)
        changes = changes_of_overlay(workspace, upper)
        assert not any(part.lower() == ".git" for change in changes for part in change.path.split("/"))
        assert all(SECRET.encode() not in side.read() for change in changes if (side := change.new))
        stacked = OverlayView([workspace.base, upper])
        with suppress(WorkspaceError, FileNotFoundError, NotADirectoryError):
            stacked.entries(asked)
        with suppress(WorkspaceError, FileNotFoundError, IsADirectoryError), stacked.open(asked) as file:
            assert SECRET.encode() not in file.read()
        objects = Objects(workspace.base.parent.parent / "store")
        taken = Snapshots(objects, {"workspace": WritableDir(upper, workspace.base)}).take()
        assert taken is not None
        if compared == 0:  # git is started for it
            restored = objects.layer(taken.tree) / "workspace"
            patch = unified_diff(changes)
            assert SECRET not in patch
            assert len(diffstat(changes)) == len(changes)
            assert unified_diff(changes_of_overlay(workspace, restored)) == patch
    finally:
        remove_tree(Path(name))

"""The store keeps every state of a directory as it was, once, and is whole whenever a process dies."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handiwork.errors import WorkspaceError
from handiwork.workspace.snapshots.object_store import Objects
from handiwork.workspace.snapshots.store import Snapshots, WritableDir
from tests.snapshots import killed
from tests.snapshots.trees import listing

NAMES = st.sampled_from(["a", "b", "a b", "ä", "\udcff", ".git"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
OPERATIONS = st.one_of(
    st.tuples(st.just("write"), PATHS, st.sampled_from([b"", b"one", b"two", b"x" * 70_000])),
    st.tuples(st.just("link"), PATHS, st.sampled_from(["a", "/etc/passwd", "../../..", "\udcfe"])),
    st.tuples(st.just("mode"), PATHS, st.sampled_from([0o600, 0o755, 0o000])),
    st.tuples(st.just("remove"), PATHS, st.none()),
    st.tuples(st.just("move"), PATHS, PATHS),
    st.tuples(st.just("snapshot"), st.none(), st.none()),
)


def apply(root: Path, operation: str, path: str, value: object) -> None:
    """Do it if it can be done there; as little is refused as a user's shell would."""
    target = root / path
    if not all(_is_inside(one, root) for one in (target, root / str(value) if operation == "move" else target)):
        return
    try:
        match operation, value:
            case "write", bytes():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(value) if not target.is_symlink() else target.unlink()
            case "link", str():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(value)
            case "mode", int():
                os.chmod(target, value | (0o700 if target.is_dir() else 0)) if not target.is_symlink() else None
            case "remove", _:
                shutil.rmtree(target) if target.is_dir() and not target.is_symlink() else target.unlink()
            case "move", str():
                target.rename(root / value)
            case _:
                raise AssertionError(operation)
    except OSError:
        return


def _is_inside(target: Path, root: Path) -> bool:
    """Whether no link on the way leads out, to the files of this machine."""
    try:
        return target.parent.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):
        return False  # links that lead to themselves


@settings(max_examples=60, deadline=None)
@given(st.lists(OPERATIONS, max_size=25))
def test_every_state_is_given_back_as_it_was(operations: list[tuple[str, str, object]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name, "root")
        root.mkdir()
        objects = Objects(Path(name, "store"))
        snapshots = Snapshots(objects, {"workspace": WritableDir(root)})
        states: dict[str, dict[str, tuple[object, ...]]] = {}
        for operation, path, value in [*operations, ("snapshot", "", None)]:
            if operation == "snapshot":
                if taken := snapshots.take():
                    states[taken.tree] = listing(root)
            else:
                apply(root, operation, path, value)
        assert states
        for tree, state in states.items():
            assert listing(objects.layer(tree) / "workspace") == state
        assert snapshots.take() is None


@settings(max_examples=40, deadline=None)
@given(st.lists(OPERATIONS, max_size=12), st.lists(OPERATIONS, max_size=12))
def test_what_is_written_over_a_layer_is_kept_with_what_is_seen_of_it(
    before: list[tuple[str, str, object]], after: list[tuple[str, str, object]]
) -> None:
    """A fork's own layer is above that of its origin; without whiteouts the one is copied over the other."""
    with tempfile.TemporaryDirectory() as name:
        first, second, merged = (Path(name, part) for part in ("first", "second", "merged"))
        objects = Objects(Path(name, "store"))
        for root, operations in ((first, before), (second, after)):
            root.mkdir()
            for operation, path, value in operations:
                if operation not in ("snapshot", "mode"):  # modes are no matter here, and copying needs to read
                    apply(root, operation, path, value)
        origin = Snapshots(objects, {"workspace": WritableDir(first)}).take()
        assert origin is not None
        taken = Snapshots(objects, {"workspace": WritableDir(second)}, origin.tree).take()
        assert taken is not None
        _overlay(first, second, merged)
        assert listing(objects.layer(taken.tree) / "workspace").keys() == listing(merged).keys()


def _overlay(lower: Path, upper: Path, merged: Path) -> None:
    """Copy ``lower`` and over it ``upper``: what is no directory in either hides the other's."""
    shutil.copytree(lower, merged, symlinks=True)
    for folder, directories, files in os.walk(upper):
        for name in (*directories, *files):
            source = Path(folder, name)
            target = merged / source.relative_to(upper)
            folders = source.is_dir() and not source.is_symlink(), target.is_dir() and not target.is_symlink()
            if target.is_symlink() or (target.exists() and folders != (True, True)):
                shutil.rmtree(target) if folders[1] else target.unlink()
            if folders[0]:
                target.mkdir(exist_ok=True)
            else:
                shutil.copy2(source, target, follow_symlinks=False)


def test_the_same_bytes_are_kept_once_and_only_what_is_new_is_added(tmp_path: Path) -> None:
    root, objects = tmp_path / "root", Objects(tmp_path / "store")
    root.mkdir()
    for number in range(100):
        (root / f"{number}").write_bytes(os.urandom(10_000))
    snapshots = Snapshots(objects, {"workspace": WritableDir(root)})
    first = snapshots.take()
    assert first is not None
    assert first.size > 1_000_000
    time.sleep(0.05)
    (root / "7").write_bytes(b"new")
    second = snapshots.take()
    assert second is not None
    assert (second.changed, second.size < 30_000) == (1, True)
    layers = [objects.layer(one.tree) / "workspace" for one in (first, second)]
    assert layers[0].joinpath("8").stat().st_ino == layers[1].joinpath("8").stat().st_ino
    assert layers[0].joinpath("7").read_bytes() != layers[1].joinpath("7").read_bytes() == b"new"


def test_what_nothing_needs_is_swept_and_then_said_to_be_gone(tmp_path: Path) -> None:
    root, objects = tmp_path / "root", Objects(tmp_path / "store")
    root.mkdir()
    snapshots = Snapshots(objects, {"workspace": WritableDir(root)})
    trees: list[str] = []
    for text in ("one", "two"):
        (root / "file").write_text(text * 1000)
        taken = snapshots.take()
        assert taken is not None
        trees.append(taken.tree)
    objects.layer(trees[0])
    assert objects.sweep(objects.reachable(trees[1:]), ()) == 0  # all of it is too new
    assert objects.sweep(objects.reachable(trees[1:]), (), grace=-1) >= 3000
    assert (Objects(tmp_path / "store").layer(trees[1]) / "workspace/file").read_text() == "two" * 1000
    with pytest.raises(WorkspaceError, match="removed to make room"):
        Objects(tmp_path / "store").layer(trees[0])


def test_a_snapshot_after_the_last_one_was_swept_is_whole(tmp_path: Path) -> None:
    upper, objects = tmp_path / "upper", Objects(tmp_path / "snapshots")
    (upper / "folder").mkdir(parents=True)
    (upper / "folder/old").write_text("1")
    snapshots = Snapshots(objects, {"workspace": WritableDir(upper)})
    snapshots.take()
    objects.sweep(keep=(), layers=(), grace=-1)
    (upper / "new").write_text("2")
    taken = snapshots.take()
    assert taken is not None
    assert listing(objects.layer(taken.tree) / "workspace") == listing(upper)


def test_what_does_not_fit_into_the_budget_is_said_and_leaves_nothing_behind(tmp_path: Path) -> None:
    root, objects = tmp_path / "root", Objects(tmp_path / "store")
    root.mkdir()
    snapshots = Snapshots(objects, {"workspace": WritableDir(root)}, budget=300_000)
    (root / "large").write_bytes(os.urandom(200_000))
    first = snapshots.take()
    assert first is not None
    before = set(objects.folder.rglob("*-*"))
    for size in (150_000, 30_000):
        for number in range(6):
            (root / f"new{number}").write_bytes(os.urandom(size))
        with pytest.raises(WorkspaceError, match=r"not fit.*handiwork gc"):
            snapshots.take()
        assert set(objects.folder.rglob("*-*")) == before
    for number in range(6):
        (root / f"new{number}").unlink()
    (root / "copy").write_bytes((root / "large").read_bytes())
    os.utime(root / "copy", ns=(1, (root / "large").stat().st_mtime_ns))
    assert snapshots.take()  # what is kept already needs no room


def test_a_snapshot_that_would_fill_the_disk_is_refused_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "disk").mkdir()
    (tmp_path / "root/large").write_bytes(os.urandom(20_000_000))
    for number in range(300):
        (tmp_path / f"root/{number}").write_bytes(os.urandom(60_000))
    script = """
import os, sys
from pathlib import Path
from handiwork.workspace.snapshots.object_store import Objects
from handiwork.workspace.files.safe_open import WorkspaceError
from handiwork.workspace.snapshots.store import WritableDir, Snapshots
root, disk = map(Path, sys.argv[1:])
for gone in ("", "large"):
    if gone:
        (root / gone).unlink()
    try:
        Snapshots(Objects(disk / "store"), {"workspace": WritableDir(root)}).take()
    except WorkspaceError as error:
        print(error)
    print([name for folder, _, names in os.walk(disk / "store") for name in names if name != "used"])
"""
    mounted = 'mount -t tmpfs -o size=16m tmpfs "$1" && exec "$2" -c "$3" "$4" "$1"'
    arguments = [str(tmp_path / "disk"), sys.executable, script, str(tmp_path / "root")]
    command = ["unshare", "-Urm", "bash", "-c", mounted, "bash", *arguments]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    first, nothing, second, nothing_either = done.stdout.splitlines() or [done.stderr]
    assert "does not fit" in first
    assert "nearly full" in second
    assert nothing == nothing_either == "[]"


def test_holes_of_a_file_stay_holes_in_snapshots_and_forks(tmp_path: Path) -> None:
    root, objects = tmp_path / "root", Objects(tmp_path / "store")
    root.mkdir()
    with (root / "sparse").open("wb") as file:
        for at in (0, 1 << 30, 3 << 30):
            file.seek(at)
            file.write(b"data at %d" % at)
    taken = Snapshots(objects, {"workspace": WritableDir(root)}).take()
    assert taken is not None
    assert taken.size < 1_000_000
    assert objects.recount() < 1_000_000
    found = objects.layer(taken.tree) / "workspace/sparse"
    status = found.stat()
    assert (status.st_size, status.st_blocks < 100) == ((root / "sparse").stat().st_size, True)
    with found.open("rb") as file:
        for at in (0, 1 << 30, 3 << 30):
            file.seek(at - 1 if at else 0)
            assert file.read(20).strip(b"\0").startswith(b"data at %d" % at)


@pytest.mark.parametrize("kills", [3, pytest.param(50, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
def test_killed_in_the_middle_of_a_snapshot_the_store_stays_whole(tmp_path: Path, kills: int) -> None:
    root, store = tmp_path / "root", tmp_path / "store"
    root.mkdir()
    seed = random.randrange(10**9)
    chance = random.Random(seed)
    told: list[str] = []
    for _ in range(kills):
        command = [sys.executable, killed.__file__, store, root]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            assert process.stdout is not None
            told.append(process.stdout.readline().strip())
            time.sleep(chance.random() * 0.2)
            process.kill()
            told += process.stdout.read().split()
    objects = Objects(store)
    for tree in told:
        layer = objects.layer(tree) / "workspace"
        files = [(layer / str(place) / "file").read_text() for place in range(40)]
        assert len({text.split()[0] for text in files}) == 1, f"seed {seed}"
        assert all(text == f"{text.split()[0]} {place}\n" * 5000 for place, text in enumerate(files)), f"seed {seed}"
    fresh = Snapshots(objects, {"workspace": WritableDir(root)}).take()
    assert fresh is not None
    assert listing(objects.layer(fresh.tree) / "workspace") == listing(root)


SWEEP = """
import pathlib, sys
from handiwork.workspace.snapshots.object_store import Objects
Objects(pathlib.Path(sys.argv[1])).sweep(sys.argv[2:], (), grace=-1)
"""


def test_a_layer_whose_removal_was_killed_is_made_anew(tmp_path: Path) -> None:
    def count(folder: Path) -> int:
        try:
            return len(os.listdir(folder))
        except FileNotFoundError:
            return 0

    objects = Objects(tmp_path / "store")
    tree = objects.put_tree({str(name): objects.put_bytes(b"content") for name in range(5000)})
    layer = objects.layer(tree)
    sweeper = subprocess.Popen([sys.executable, "-c", SWEEP, objects.folder, *objects.reachable([tree])])
    while count(layer) == 5000 and sweeper.poll() is None:
        pass
    sweeper.kill()
    sweeper.wait()
    assert count(objects.layer(tree)) == 5000

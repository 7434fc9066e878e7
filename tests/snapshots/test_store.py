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

from handiwork.sandbox.objects import Objects
from handiwork.sandbox.safe_open import WorkspaceError
from handiwork.sandbox.snapshots import Place, Snapshots
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
        snapshots = Snapshots(objects, {"workspace": Place(root)})
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
        origin = Snapshots(objects, {"workspace": Place(first)}).take()
        assert origin is not None
        taken = Snapshots(objects, {"workspace": Place(second)}, origin.tree).take()
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
    snapshots = Snapshots(objects, {"workspace": Place(root)})
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
    snapshots = Snapshots(objects, {"workspace": Place(root)})
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


def test_over_its_budget_nothing_more_is_kept(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    snapshots = Snapshots(Objects(tmp_path / "store"), {"workspace": Place(root)}, budget=10_000)
    (root / "file").write_bytes(bytes(20_000))
    assert snapshots.take()
    (root / "file").write_bytes(bytes(21_000))
    with pytest.raises(WorkspaceError, match="handiwork gc"):
        snapshots.take()


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
    fresh = Snapshots(objects, {"workspace": Place(root)}).take()
    assert fresh is not None
    assert listing(objects.layer(fresh.tree) / "workspace") == listing(root)

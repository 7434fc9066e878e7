"""An apply is undone as long as the files are as it left them, newest first."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from handiwork.errors import WorkspaceError
from handiwork.workspace.apply import ConflictError, apply
from handiwork.workspace.apply.journal import undo_cut_apply
from handiwork.workspace.apply.undo import EditedSinceError, NothingToUndoError, reverted, undo, undoable
from tests.workspace.trees import Session, Tree, found, read_tree

Start = Callable[[Tree], Session]


def modes(root: Path) -> dict[str, int]:
    return {str(path.relative_to(root)): stat.S_IMODE(path.lstat().st_mode) for path in root.rglob("*")}


def test_an_undo_restores_contents_modes_links_and_directories(session: Start) -> None:
    here = session(
        {"text": b"1\n", "x:tool": b"1\n", "gone": b"1\n", "link": "text", "d/in": b"1\n", "private/in/x": b"1\n"}
    )
    (here.source / "private").chmod(0o700)
    (here.source / "private/in").chmod(0o2770)
    (here.source / "d").chmod(0o711)
    (here.source / "gone").chmod(0o666)
    (here.source / "text").chmod(0o600)
    (here.source / "empty").mkdir()
    before, modes_before = read_tree(here.source), modes(here.source)
    changes = here.run(
        "echo 2 > text; chmod -x tool; rm gone; ln -sf tool link; mkdir -p empty new/deep; echo 2 > empty/x;"
        " echo 2 > new/deep/y; rm -r d; echo 2 > d; rm -r private"
    )
    applied = apply(changes, here.source, undo_dir=here.folder / "applied")
    paths = undoable(here.folder / "applied", here.source)
    assert sorted(paths) == sorted((*applied.written, *applied.deleted))
    undone = undo(here.folder / "applied", here.source)
    assert undone.restored == ("d/in", "gone", "link", "private/in/x", "text", "tool")
    assert undone.deleted == ("d", "empty/x", "new/deep/y")
    assert read_tree(here.source) == before
    assert modes(here.source) == modes_before
    assert undoable(here.folder / "applied", here.source) == []
    with pytest.raises(NothingToUndoError):
        undo(here.folder / "applied", here.source)


def test_files_edited_since_the_apply_are_named_and_nothing_is_undone(session: Start) -> None:
    here = session({"a": b"1\n", "b": b"1\n", "gone": b"1\n"})
    apply(here.run("echo 2 > a; echo 2 > b; rm gone"), here.source, undo_dir=here.folder / "applied")
    (here.source / "b").write_text("mine\n")
    (here.source / "gone").write_text("mine\n")
    with pytest.raises(EditedSinceError, match="nothing was undone") as caught:
        undo(here.folder / "applied", here.source)
    assert caught.value.paths == ("b", "gone")
    assert read_tree(here.source) == {"a": b"2\n", "b": b"mine\n", "gone": b"mine\n"}
    (here.source / "b").write_text("2\n")
    (here.source / "gone").unlink()
    undo(here.folder / "applied", here.source)
    assert read_tree(here.source) == {"a": b"1\n", "b": b"1\n", "gone": b"1\n"}


def test_a_further_apply_keeps_the_edits_that_an_apply_has_merged(session: Start) -> None:
    here = session({"a": b"1\n2\n3\n4\n", "b": b"1\n2\n3\n4\n"})
    (here.source / "a").write_text("1\n2\n3\n4\nmine\n")
    (here.source / "b").write_text("1\n2\n3\n4\nmine\n")
    changes = here.run("sed -i 1d a b")
    apply(changes, here.source, undo_dir=here.folder / "applied")
    merged = {"a": b"2\n3\n4\nmine\n", "b": b"2\n3\n4\nmine\n"}
    assert read_tree(here.source) == merged
    apply(changes, here.source, undo_dir=here.folder / "applied")
    assert read_tree(here.source) == merged, "the same changes again"
    with pytest.raises(ConflictError, match="b: deleted by the session, but edited here"):
        apply(here.run("rm b"), here.source, undo_dir=here.folder / "applied")
    assert read_tree(here.source) == merged
    undo(here.folder / "applied", here.source)
    assert read_tree(here.source)["a"] == b"1\n2\n3\n4\nmine\n"


def test_applies_are_undone_newest_first(session: Start) -> None:
    here = session({"a": b"1\n"})
    for number in (2, 3):
        apply(here.run(f"echo {number} > a; echo > new{number}"), here.source, undo_dir=here.folder / "applied")
    undo(here.folder / "applied", here.source)
    assert read_tree(here.source) == {"a": b"2\n", "new2": b"\n"}
    undo(here.folder / "applied", here.source)
    assert read_tree(here.source) == {"a": b"1\n"}


def test_an_apply_takes_back_what_the_session_restored_since_the_last_one(session: Start) -> None:
    here = session({"a": b"1\n", "b": b"1\n", "gone": b"1\n"})
    kept = here.folder / "applied"
    apply(here.run("echo 2 > a; echo 2 > b; echo 2 > new; rm gone"), here.source, undo_dir=kept)
    (here.source / "b").write_text("mine\n")
    changes = here.run("echo 1 > a; echo 1 > b; rm new; echo 1 > gone")
    assert changes == []
    changes = reverted(kept, here.source, here.workspace.base, changes)
    assert found(changes) == {"a": "modified", "new": "deleted", "gone": "added"}
    apply(changes, here.source, undo_dir=kept)
    assert read_tree(here.source) == {"a": b"1\n", "b": b"mine\n", "gone": b"1\n"}
    assert reverted(kept, here.source, here.workspace.base, []) == []
    undo(kept, here.source)
    assert read_tree(here.source) == {"a": b"2\n", "b": b"mine\n", "new": b"2\n"}


def test_a_file_that_could_not_get_its_mode_is_not_taken_for_edited(session: Start) -> None:
    here = session({"a": b"1\n"})
    kept, umask = here.folder / "applied", os.umask(0o133)  # no new file is executable, as on some file systems
    try:
        apply(here.run("echo 2 > a; echo 2 > tool; chmod 755 tool"), here.source, undo_dir=kept)
        apply(here.run("echo 3 > tool"), here.source, undo_dir=kept)
        undo(kept, here.source)
        assert read_tree(here.source)["tool"] == b"2\n"
        undo(kept, here.source)
        assert read_tree(here.source) == {"a": b"1\n"}
    finally:
        os.umask(umask)


@contextmanager
def at_first_move(act: Callable[[], object]) -> Generator[None]:
    """Call ``act`` once, before the first file is moved into or out of the workspace."""
    waiting = [act]

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "os.rename" and str(arguments[1]).startswith("old") and waiting:
            waiting.pop()()

    sys.addaudithook(hook)
    try:
        yield
    finally:
        waiting.clear()


def test_what_the_user_saves_during_an_apply_or_an_undo_is_not_lost(session: Start) -> None:
    here = session({"notes": b"1\n", "gone": b"1\n"})
    kept, notes, gone = here.folder / "applied", here.source / "notes", here.source / "gone"
    changes = here.run("echo 2 > notes; rm gone; echo 2 > new")
    said = "nothing was changed, because gone, notes changed in the meantime"
    with (
        at_first_move(lambda: (notes.write_text("mine, too\n"), gone.write_text("mine, too\n"))),
        pytest.raises(WorkspaceError, match=said),
    ):
        apply(changes, here.source, undo_dir=kept)
    assert read_tree(here.source) == {"notes": b"mine, too\n", "gone": b"mine, too\n"}
    for path in (notes, gone):
        path.write_text("1\n")
    apply(changes, here.source, undo_dir=kept)
    with (
        at_first_move(lambda: notes.write_text("mine again\n")),
        pytest.raises(WorkspaceError, match="because notes changed in the meantime"),
    ):
        undo(kept, here.source)
    assert read_tree(here.source) == {"notes": b"mine again\n", "new": b"2\n"}


@pytest.mark.parametrize("edits", [False, True])
def test_an_apply_that_was_killed_leaves_nothing_for_the_next_apply_or_undo(
    session: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edits: bool
) -> None:
    monkeypatch.setenv("HANDIWORK_DATA", str(tmp_path / "data"))
    here = session({"a": b"1\n", "b": b"1\n"})
    kept = here.folder / "applied"
    apply(here.run("echo 2 > a"), here.source, undo_dir=kept)
    changes = here.run("echo 3 > a; echo 3 > b; echo 3 > new")
    if (child := os.fork()) == 0:
        sys.addaudithook(lambda event, a: os._exit(9) if event == "os.rename" and a[0] == "new1" else None)
        apply(changes, here.source, undo_dir=kept)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert "undone" in undo_cut_apply(here.source)
    if edits:
        (here.source / "b").write_text("mine\n")
        assert undo(kept, here.source).restored == ("a",)
        assert read_tree(here.source) == {"a": b"1\n", "b": b"mine\n"}
    else:
        apply(changes, here.source, undo_dir=kept)
        assert read_tree(here.source) == {"a": b"3\n", "b": b"3\n", "new": b"3\n"}


def test_an_apply_that_failed_or_was_cut_off_is_not_undone_again(
    session: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANDIWORK_DATA", str(tmp_path / "data"))
    here = session({"edited": b"1\n", "mine": b"1\n", "gone": b"1\n"})
    apply(here.run("echo 0 > mine"), here.source, undo_dir=here.folder / "applied")
    here.run("echo 2 > edited; echo 2 > mine; rm gone; echo 2 > new")
    script = f"""
import os, sys
from pathlib import Path
from handiwork.workspace.apply import ConflictError, apply
from handiwork.workspace.changes import changes_of_overlay
from handiwork.workspace.copy import Workspace
def die(event, arguments):
    if event == "os.rename" and arguments[0] == "new2":
        os._exit(9)
sys.addaudithook(die)
folder = Path({str(here.folder)!r})
workspace = Workspace.load(folder / "session")
apply(changes_of_overlay(workspace, folder / "upper"), workspace.source, undo_dir=folder / "applied")
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == 9
    assert "undone" in undo_cut_apply(here.source)
    assert undoable(here.folder / "applied", here.source) == ["mine"]
    undo(here.folder / "applied", here.source)
    assert read_tree(here.source) == {"edited": b"1\n", "mine": b"1\n", "gone": b"1\n"}


@pytest.mark.parametrize("damage", ['{"steps": [', "{}", "[]", '{"steps": [1]}'])
def test_a_damaged_record_is_named_and_nothing_is_undone(session: Start, damage: str) -> None:
    here = session({"a": b"1\n"})
    apply(here.run("echo 2 > a"), here.source, undo_dir=here.folder / "applied")
    (record,) = (here.folder / "applied").glob("*/record.json")
    record.write_text(damage)
    with pytest.raises(WorkspaceError, match=f"{record} is damaged .*: restore it from a backup"):
        undo(here.folder / "applied", here.source)
    assert read_tree(here.source) == {"a": b"2\n"}

"""exFAT ignores the case of names and has neither executable bits nor links, as folders of Windows in a Linux there."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from handiwork.errors import WorkspaceError
from handiwork.workspace.apply import Applied, apply, preview
from handiwork.workspace.apply.undo import reverted, undo
from tests.workspace.test_undo import at_first_move
from tests.workspace.trees import Session, Tree, read_tree, write_tree

pytestmark = [pytest.mark.slow, pytest.mark.needs_root]


@pytest.fixture
def exfat(tmp_path: Path) -> Generator[Path]:
    """A mounted file system of its own."""
    if os.geteuid() != 0 or not shutil.which("mkfs.exfat"):
        pytest.skip("only root mounts a file system, and exfatprogs makes this one")
    image, folder = tmp_path / "image", tmp_path / "exfat"
    image.write_bytes(b"")
    os.truncate(image, 8_000_000)
    folder.mkdir()
    subprocess.run(["mkfs.exfat", image], capture_output=True, check=True)
    # The loop device goes with the mount.
    script = (
        'loop=$(losetup --find --show "$0") || exit;'
        ' mount -t exfat "$loop" "$1" || mount.exfat-fuse "$loop" "$1"; code=$?; losetup --detach "$loop"; exit $code'
    )
    mount = subprocess.run(["bash", "-c", script, image, folder], capture_output=True, text=True, check=False)
    if mount.returncode != 0:
        pytest.skip(f"this machine mounts no exFAT: {mount.stderr}")
    yield folder
    subprocess.run(["umount", folder], check=True)


class Project:
    """A session of a project on exFAT."""

    def __init__(self, exfat: Path, tree: Tree) -> None:
        self.session = Session(write_tree(exfat / "project", tree), exfat.parent)
        self.source = self.session.source
        self.kept = exfat.parent / "applied"

    def apply(self, script: str) -> Applied:
        """Apply the session's changes once it has run the script."""
        return apply(self.session.run(script), self.source, undo_dir=self.kept)

    def undo(self) -> None:
        undo(self.kept, self.source)

    def files(self) -> Tree:
        """Return the files, which are all executable here."""
        return {name.removeprefix("x:"): content for name, content in read_tree(self.source).items()}


def test_a_file_renamed_in_case_alone_keeps_its_content_and_gets_the_name(exfat: Path) -> None:
    here = Project(exfat, {"docs/Readme.md": b"1\n", "other": b"1\n"})
    here.apply("mv docs/Readme.md docs/README.md")
    assert here.files() == {"docs/README.md": b"1\n", "other": b"1\n"}
    here.apply("echo 2 > docs/README.md")
    assert here.files() == {"docs/README.md": b"2\n", "other": b"1\n"}
    here.undo()
    here.undo()
    assert here.files() == {"docs/Readme.md": b"1\n", "other": b"1\n"}


def test_a_rename_in_case_alone_that_fails_or_is_taken_back_loses_no_file(exfat: Path) -> None:
    here = Project(exfat, {"Readme.md": b"1\n"})
    with (
        at_first_move(lambda: (here.source / "Readme.md").write_text("mine\n")),
        pytest.raises(WorkspaceError, match=r"Readme\.md changed in the meantime"),
    ):
        here.apply("mv Readme.md README.md")
    assert here.files() == {"Readme.md": b"mine\n"}
    (here.source / "Readme.md").write_text("1\n")
    here.apply("true")
    assert here.files() == {"README.md": b"1\n"}
    assert here.session.run("mv README.md Readme.md") == []
    apply(reverted(here.kept, here.source, here.session.workspace.base, []), here.source, undo_dir=here.kept)
    assert here.files() == {"Readme.md": b"1\n"}


def test_a_folder_renamed_in_case_alone_keeps_its_name_and_gets_the_changes(exfat: Path) -> None:
    here = Project(exfat, {"Src/sub/a": b"1\n", "Src/b": b"1\n", "Src/gone": b"1\n"})
    done = here.apply("mv Src src; echo 2 > src/sub/a; rm src/gone; echo 2 > src/new")
    assert (done.written, done.deleted) == (("Src/new", "Src/sub/a"), ("Src/gone",))
    assert done.warnings[0] == "src keeps its name Src: the file system here takes both for the same."
    assert here.files() == {"Src/sub/a": b"2\n", "Src/b": b"1\n", "Src/new": b"2\n"}
    here.apply("echo 3 > src/sub/a")
    assert here.files() == {"Src/sub/a": b"3\n", "Src/b": b"1\n", "Src/new": b"2\n"}
    here.undo()
    here.undo()
    assert here.files() == {"Src/sub/a": b"1\n", "Src/b": b"1\n", "Src/gone": b"1\n"}


def test_of_two_files_with_names_alike_the_users_stays_and_the_new_one_is_left_out(exfat: Path) -> None:
    here = Project(exfat, {"Readme.md": b"1\n", "Src/a": b"1\n"})
    changes = here.session.run("echo 2 > README.md; echo 2 > Readme.md; mkdir src; echo 3 > src/a; echo 2 > Src/a")
    done = apply(changes, here.source)
    assert done.written == ("Readme.md", "Src/a")
    assert "README.md was left out: the file system here takes it for another file." in done.warnings
    assert "src/a was left out: the file system here takes it for another file." in done.warnings
    assert here.files() == {"Readme.md": b"2\n", "Src/a": b"2\n"}


def test_a_further_apply_and_an_undo_take_the_modes_of_the_file_system_for_no_edit(exfat: Path) -> None:
    here = Project(exfat, {"text": b"1\n"})
    here.apply("echo 2 > text; echo 2 > new")
    assert preview(here.session.run("echo 3 > new"), here.source, here.kept)[1] == ()
    here.apply("true")
    assert here.files() == {"text": b"2\n", "new": b"3\n"}
    here.undo()
    here.undo()
    assert here.files() == {"text": b"1\n"}

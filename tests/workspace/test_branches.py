"""What a child that works on its own copy has changed."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from handiwork.session.storage.branches import WorkspaceBranches
from handiwork.workspace.layers import upper_dir
from handiwork.workspace.session_files import OverlayFiles
from tests.workspace.trees import write_tree


async def test_a_file_of_the_parent_that_a_child_ignores_is_not_deleted_by_it(tmp_path: Path) -> None:
    files = OverlayFiles(tmp_path / "session", write_tree(tmp_path / "project", {"a": b"1\n"}))
    files.create()
    write_tree(upper_dir(files.folder), {"out": b"2\n"})
    write_tree(upper_dir(files.of_child(1).folder), {"out": b"2\n", ".gitignore": b"out\n"})

    def unused(_: object) -> NoReturn:
        raise AssertionError

    diff = await WorkspaceBranches(files, unused).diff(0, 1)
    assert "+out" in diff
    assert "deleted" not in diff

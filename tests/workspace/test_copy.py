from __future__ import annotations

import os
from pathlib import Path

import pytest

from handiwork.errors import WorkspaceError
from handiwork.workspace.apply import apply
from handiwork.workspace.changes import Change, side_at
from handiwork.workspace.copy import Workspace, make_copy
from tests.without_home import run_without_home
from tests.workspace.trees import git, read_tree, write_tree


def repository(path: Path) -> Path:
    write_tree(path, {".gitignore": b"build/\n.env\n*.pem\nbig/\n", "a.py": b"a\n", "x:run": b"#!/bin/sh\n"})
    git(path, "init", "-q")
    git(path, "add", ".")
    git(path, "commit", "-qm", "one")
    return path


def test_tracked_untracked_and_small_ignored_files_are_copied_with_modes_times_and_links(tmp_path: Path) -> None:
    source = repository(tmp_path / "p")
    write_tree(source, {"new.txt": b"n", "build/cache": b"c", "link": "a.py", "away": "/etc/passwd"})
    (source / "empty").mkdir()
    os.mkfifo(source / "pipe")
    os.utime(source / "a.py", ns=(10**18, 10**18 + 7))
    workspace = make_copy(source, tmp_path / "s")
    (source / "pipe").unlink()
    assert read_tree(workspace.base) == read_tree(source)
    assert (workspace.base / "a.py").stat().st_mtime_ns == 10**18 + 7
    assert (workspace.base / "empty").is_dir()
    assert not (workspace.base / "pipe").exists()
    assert git(workspace.base, "status", "--short").splitlines() == ["?? away", "?? link", "?? new.txt"]


def test_a_big_file_is_copied_by_reflink_on_file_systems_that_have_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clones: list[int] = []

    def reflink(target: int, _request: int, source: int) -> None:
        clones.append(os.sendfile(target, source, 0, 1 << 20))

    monkeypatch.setattr("fcntl.ioctl", reflink)
    source = write_tree(tmp_path / "p", {"big": b"x" * 100_000, "small": b"x"})
    workspace = make_copy(source, tmp_path / "s")
    assert read_tree(workspace.base) == read_tree(source)
    assert clones == [100_000]
    write_tree(source, {"big": b"y" * 100_000})
    change = Change("big", "modified", side_at(workspace.base, "big"), side_at(source, "big"))
    apply([change], workspace.base)
    assert clones == [100_000, 100_000]
    assert read_tree(workspace.base) == read_tree(source)


def test_ignored_secrets_are_left_out_and_listed_but_tracked_ones_are_part_of_the_project(tmp_path: Path) -> None:
    source = repository(tmp_path / "p")
    write_tree(source, {".env": b"KEY=1", "my.pem": b"k", "build/.env": b"K", "deploy/.env.sample": b"KEY="})
    write_tree(source, {"build/site-packages/certifi/cacert.pem": b"public"})
    workspace = make_copy(source, tmp_path / "s")
    assert workspace.left_out == (".env", "build/.env", "my.pem")
    assert not (workspace.base / "build/.env").exists()
    assert (workspace.base / "deploy/.env.sample").exists()
    assert (workspace.base / "build/site-packages/certifi/cacert.pem").exists()


def test_a_big_ignored_directory_is_mounted_unless_a_secret_is_in_it(tmp_path: Path) -> None:
    source = repository(tmp_path / "p")
    for name in ("big/data", "build/data"):
        (source / name).parent.mkdir(exist_ok=True)
        with (source / name).open("wb") as file:
            file.truncate(50_000_001)
    write_tree(source, {"build/.env": b"K"})
    workspace = make_copy(source, tmp_path / "s")
    assert (workspace.mounts, workspace.left_out) == (("big",), ("build/",))
    assert Workspace.load(tmp_path / "s") == workspace


def test_without_git_everything_is_copied_but_big_directories_of_packages(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "p", {".env": b"K", "sub/node_modules/m.js": b"", "target/x": b"1"})
    with (source / "sub/node_modules/m.js").open("wb") as file:
        file.truncate(50_000_001)
    workspace = make_copy(source, tmp_path / "s")
    assert workspace.mounts == ("sub/node_modules",)
    assert read_tree(workspace.base) == {".env": b"K", "target/x": b"1"}


def test_in_a_folder_of_repositories_each_one_decides_what_it_ignores(tmp_path: Path) -> None:
    source = repository(tmp_path / "p/one").parent
    write_tree(source, {"one/target/tracked": b"1", "one/big/data": b""})
    git(source / "one", "add", "target")
    for name in ("one/big/data", "one/target/new"):
        with (source / name).open("wb") as file:
            file.truncate(50_000_001)
    workspace = make_copy(source, tmp_path / "s")
    assert workspace.mounts == ("one/big",)
    assert (workspace.base / "one/target/tracked").exists()


def test_the_copy_of_git_has_no_credentials_and_no_hooks(tmp_path: Path) -> None:
    source = repository(tmp_path / "p")
    for name, value in {
        "remote.origin.url": "https://me:s3cret@example.org/r.git",
        "remote.up.url": "ssh://git:s3cret@example.org/r.git",
        "http.https://example.org/.extraheader": "Authorization: s3cret",
        "credential.helper": "store --file s3cret",
        "core.fsmonitor": "s3cret",
        "include.path": "s3cret",
        "branch.feature/a.remote": 'odd "name" \\ here',
    }.items():
        git(source, "config", name, value)
    write_tree(source, {"x:.git/hooks/pre-commit": b"s3cret", ".git/FETCH_HEAD": b"s3cret"})
    base = make_copy(source, tmp_path / "s").base
    assert not [f for f in (base / ".git").rglob("*") if f.is_file() and b"s3cret" in f.read_bytes()]
    assert git(base, "config", "remote.origin.url") == "https://example.org/r.git\n"
    assert git(base, "config", "remote.up.url") == "ssh://git@example.org/r.git\n"
    assert git(base, "config", "branch.feature/a.remote") == 'odd "name" \\ here\n'
    assert git(base, "fsck") == ""


@pytest.mark.parametrize("kind", ["worktree", "submodule", "shared"])
def test_a_repository_that_needs_another_one_becomes_a_whole_one(tmp_path: Path, kind: str) -> None:
    main, source = repository(tmp_path / "main"), tmp_path / "p"
    if kind == "worktree":
        git(main, "worktree", "add", "-qb", "side", str(source))
    elif kind == "shared":
        git(tmp_path, "clone", "-qs", str(main), str(source))
    else:
        outer = repository(tmp_path / "outer")
        git(outer, "submodule", "--quiet", "add", str(main), "sub")
        source = outer / "sub"
    workspace = make_copy(source, tmp_path / "s")
    main.rename(tmp_path / "gone")
    assert git(workspace.base, "log", "--format=%s") == "one\n"
    assert git(workspace.base, "status", "--short") == ""
    if kind == "worktree":
        assert git(workspace.base, "branch", "--show-current") == "side\n"


def test_the_copy_of_a_linked_worktree_has_its_own_unfinished_merge_and_not_the_main_worktrees(tmp_path: Path) -> None:
    main, source = repository(tmp_path / "main"), tmp_path / "p"
    git(main, "worktree", "add", "-qb", "side", str(source))
    for name in ("MERGE_HEAD", "MERGE_MSG", "rebase-merge/onto", "rebase-apply/onto", "sequencer/todo"):
        write_tree(main / ".git", {name: git(main, "rev-parse", "HEAD").encode()})
    first = make_copy(source, tmp_path / "s").base
    assert git(first, "status", "--porcelain=2", "--branch").splitlines()[1:] == ["# branch.head side"]
    names = {path.name for path in (first / ".git").iterdir()}
    assert names.isdisjoint({"MERGE_HEAD", "MERGE_MSG", "rebase-merge", "rebase-apply", "sequencer"})
    write_tree(main / ".git/worktrees/p", {"CHERRY_PICK_HEAD": git(main, "rev-parse", "HEAD").encode()})
    assert "cherry-pick" in git(make_copy(source, tmp_path / "t").base, "status")


def test_a_nested_linked_worktree_of_a_repository_outside_is_copied_with_it(tmp_path: Path) -> None:
    main, source = repository(tmp_path / "main"), write_tree(tmp_path / "p", {"a": b"1"})
    git(main, "worktree", "add", "-qb", "side", str(source / "nested"))
    workspace = make_copy(source, tmp_path / "s")
    assert workspace.left_out == ()
    assert git(workspace.base / "nested", "log", "--format=%s") == "one\n"


def test_a_project_with_a_submodule_is_copied_with_it(tmp_path: Path) -> None:
    main, outer = repository(tmp_path / "main"), repository(tmp_path / "outer")
    git(outer, "submodule", "--quiet", "add", str(main), "sub")
    write_tree(outer, {"sub/.env": b"K"})
    workspace = make_copy(outer, tmp_path / "s")
    assert workspace.left_out == ("sub/.env",)
    assert git(workspace.base / "sub", "log", "--format=%s") == "one\n"
    assert git(workspace.base, "submodule", "status").startswith(" ")


def test_what_cannot_be_a_workspace_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for source, reason in [
        (tmp_path / "missing", "does not exist"),
        (tmp_path / "file", "not a directory"),
        (Path("/"), "whole system"),
        (tmp_path / "home", "whole home"),
    ]:
        with pytest.raises(WorkspaceError, match=reason):
            make_copy(source, tmp_path / "s")
    (tmp_path / "project").mkdir()
    make_copy(tmp_path / "project", tmp_path / "s")
    with pytest.raises(WorkspaceError, match="another session"):
        make_copy(tmp_path / "project", tmp_path / "s")
    with pytest.raises(WorkspaceError, match="start a new session"):
        Workspace.load(tmp_path / "other")


def test_a_user_without_a_home_can_work_in_any_project(tmp_path: Path) -> None:
    write_tree(tmp_path / "project", {"a": b"1\n"})
    script = "from pathlib import Path; from handiwork.workspace.copy import make_copy;"
    script += "print(make_copy(Path('project'), Path('session')).source)"
    assert run_without_home(script, tmp_path) == f"{tmp_path}/project\n"


def test_sessions_kept_inside_the_workspace_are_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_tree(tmp_path / "p", {"a": b"1", "data/sessions/old/log": b"2"})
    monkeypatch.setenv("HANDIWORK_DATA", str(source / "data"))
    assert read_tree(make_copy(source, source / "data/sessions/new").base) == {"a": b"1"}


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has files of another user")
def test_a_copy_belongs_as_a_whole_to_the_owner_of_what_it_is_of(tmp_path: Path) -> None:
    source = repository(tmp_path / "p")
    for path in (source, *source.rglob("*")):
        os.chown(path, 12345, 12345, follow_symlinks=False)
    base = make_copy(source, tmp_path / "s").base
    # The owner of the directory itself is who a sandbox takes for the owner of all.
    assert {path.lstat().st_uid for path in (base, *base.rglob("*")) if ".git" not in path.parts} == {12345}


def test_an_empty_git_directory_as_a_killed_session_leaves_it_is_no_repository(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "p", {"a": b"1"})
    (source / ".git").mkdir()
    assert read_tree(make_copy(source, tmp_path / "s").base) == {"a": b"1"}

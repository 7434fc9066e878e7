"""A session's changes become a commit on a branch, and the user's files and index stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from handiwork.workspace.apply import ConflictError
from handiwork.workspace.changes import Change
from handiwork.workspace.git.commit_changes import CommitError, commit_changes, name_commit
from tests.workspace.trees import Session, Tree, git, read_tree, write_tree

Start = Callable[[Tree], Session]


def commit_all(repository: Path, message: str) -> None:
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", message)


def repository(folder: Path, tree: Tree) -> Session:
    source = write_tree(folder / "project", tree)
    git(source, "init", "-q", "-b", "main")
    git(source, "config", "user.name", "Ada")
    git(source, "config", "user.email", "ada@example.org")
    commit_all(source, "first")
    (source / "untracked").write_text("1\n")
    (source / "text").write_text("not committed\n2\n3\n4\n5\n")
    return Session(source, folder)


def branch_of(source: Path, changes: Sequence[Change], message: str) -> str:
    """Return the branch with the changes on top of HEAD."""
    commit, _ = commit_changes(source, changes, "HEAD", message)
    assert commit is not None
    return name_commit(source, "handiwork/abc", commit)


TREE: Tree = {"text": b"1\n2\n3\n4\n5\n", "x:run": b"1\n", "gone": b"1\n", "d/e/f": b"1\n", "link": "text"}


def test_a_branch_has_the_changes_and_nothing_that_was_not_committed(tmp_path: Path) -> None:
    here = repository(tmp_path, TREE)
    changes = here.run(
        "sed -i s/5/five/ text; chmod -x run; rm gone; mkdir n; printf 'a\\0b' > 'n/ü \"x'; ln -sf run link;"
        " echo 2 > untracked; rm -r d; echo 2 > d; echo '*.big filter=evil' > .gitattributes; echo 1 > x.big"
    )
    git(here.source, "config", "filter.evil.clean", f"touch {tmp_path}/ran")
    write_tree(here.source, {"x:.git/hooks/reference-transaction": f"#!/bin/sh\ntouch {tmp_path}/ran\n".encode()})
    before, status = read_tree(here.source), git(here.source, "status", "--porcelain")
    branch = branch_of(here.source, changes, "Write ü\n\nMore\n")
    assert branch == "handiwork/abc"
    assert not (tmp_path / "ran").exists()
    assert (read_tree(here.source), git(here.source, "status", "--porcelain")) == (before, status)
    (here.source / ".git/hooks/reference-transaction").unlink()
    git(here.source, "config", "--unset", "filter.evil.clean")
    git(here.source, "worktree", "add", "-q", str(tmp_path / "out"), branch)
    found = {path: content for path, content in read_tree(tmp_path / "out").items() if path != ".git"}
    assert found == {
        "text": b"1\n2\n3\n4\nfive\n",
        "run": b"1\n",
        "d": b"2\n",
        "link": "run",
        "untracked": b"2\n",
        'n/ü "x': b"a\0b",
        ".gitattributes": b"*.big filter=evil\n",
        "x.big": b"1\n",
    }
    assert git(here.source, "log", "--format=%an <%ae> %B", "-1", branch) == "Ada <ada@example.org> Write ü\n\nMore\n\n"
    assert git(here.source, "for-each-ref", "--format=%(refname)", "refs/handiwork") == ""
    assert git(here.source, "fsck", "--strict", "--no-dangling") == ""


def test_the_same_changes_give_the_same_branch_and_others_a_numbered_one(tmp_path: Path) -> None:
    here = repository(tmp_path, {"text": b"1\n"})
    (here.source / "text").write_text("1\n")
    first = here.run("echo 2 > new")
    assert branch_of(here.source, first, "one") == "handiwork/abc"
    assert branch_of(here.source, first, "one") == "handiwork/abc"
    second = here.run("echo 3 > new")
    assert branch_of(here.source, second, "two") == "handiwork/abc-2"
    git(here.source, "reset", "-q", "--hard", "handiwork/abc-2")
    commit, applied = commit_changes(here.source, second, "HEAD", "three")
    assert (commit, applied.unchanged) == (None, ("new",))


def test_a_conflict_with_the_parent_makes_no_branch(tmp_path: Path) -> None:
    here = repository(tmp_path, {"text": b"1\n"})
    changes = here.run("echo 2 > text")
    (here.source / "text").write_text("3\n")
    commit_all(here.source, "second")
    with pytest.raises(ConflictError, match="no branch was made from HEAD, because of 1 conflict"):
        commit_changes(here.source, changes, "HEAD", "one")
    assert git(here.source, "branch", "--format=%(refname:short)") == "main\n"


def test_a_repository_without_a_commit_gets_its_first_one_and_a_folder_none(session: Start, tmp_path: Path) -> None:
    here = session({"text": b"1\n"})
    changes = here.run("echo 2 > text")
    with pytest.raises(CommitError, match="is not a git repository"):
        commit_changes(here.source, changes, "HEAD", "one")
    git(here.source, "init", "-q", "-b", "main")
    assert branch_of(here.source, changes, "one") == "handiwork/abc"
    assert git(here.source, "show", "handiwork/abc:text") == "2\n"

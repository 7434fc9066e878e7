"""A session's changes become a commit on a branch, and the user's files and index stay as they are."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from handiwork.workspace.apply import ConflictError
from handiwork.workspace.changes import Change
from handiwork.workspace.git.commit_changes import (
    CommitError,
    ForeignCommitsError,
    advance_branch,
    commit_after,
    commit_changes,
    name_commit,
)
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


@pytest.mark.parametrize("merge", [True, False])
def test_the_line_ends_are_those_that_git_stores(tmp_path: Path, merge: bool) -> None:
    lines = b"one\r\ntwo\r\n"
    tree: Tree = {".gitattributes": b"*.bat text eol=crlf\n", "a.bat": lines, "gone.bat": lines, "kept": lines}
    here = repository(tmp_path, tree)
    changes = here.run("sed -i s/two/TWO/ a.bat kept; rm gone.bat; printf '1\\r\\n' > new.bat")
    commit, _ = commit_changes(here.source, changes, "HEAD", "Two\n", merge=merge)
    stored = {path: git(here.source, "show", f"{commit}:{path}") for path in ("a.bat", "new.bat", "kept")}
    assert stored == {"a.bat": "one\nTWO\n", "new.bat": "1\n", "kept": "one\r\nTWO\r\n"}
    assert "gone.bat" not in git(here.source, "ls-tree", "--name-only", str(commit))


def test_a_branch_has_the_changes_and_nothing_that_was_not_committed(tmp_path: Path) -> None:
    here = repository(tmp_path, TREE)
    changes = here.run(
        "sed -i s/5/five/ text; chmod -x run; rm gone; mkdir n; printf 'a\\0b' > 'n/ü \"x'; ln -sf run link;"
        " echo 2 > untracked; rm -r d; echo 2 > d"
    )
    write_tree(here.source, {"x:.git/hooks/reference-transaction": f"#!/bin/sh\ntouch {tmp_path}/ran\n".encode()})
    before, status = read_tree(here.source), git(here.source, "status", "--porcelain")
    branch = branch_of(here.source, changes, "Write ü\n\nMore\n")
    assert branch == "handiwork/abc"
    assert not (tmp_path / "ran").exists()
    assert (read_tree(here.source), git(here.source, "status", "--porcelain")) == (before, status)
    (here.source / ".git/hooks/reference-transaction").unlink()
    git(here.source, "worktree", "add", "-q", str(tmp_path / "out"), branch)
    found = {path: content for path, content in read_tree(tmp_path / "out").items() if path != ".git"}
    assert found == {
        "text": b"1\n2\n3\n4\nfive\n",
        "run": b"1\n",
        "d": b"2\n",
        "link": "run",
        "untracked": b"2\n",
        'n/ü "x': b"a\0b",
    }
    assert git(here.source, "log", "--format=%an <%ae> %B", "-1", branch) == "Ada <ada@example.org> Write ü\n\nMore\n\n"
    assert git(here.source, "for-each-ref", "--format=%(refname)", "refs/handiwork") == ""
    assert git(here.source, "fsck", "--strict", "--no-dangling") == ""


def test_a_repository_that_keeps_no_executable_bits_gets_none_from_the_users_file_system(tmp_path: Path) -> None:
    here = repository(tmp_path, TREE)
    git(here.source, "config", "core.fileMode", "false")
    changes = here.run("chmod +x text; chmod -x run; echo 2 > run; echo 2 > new")
    commit, _ = commit_changes(here.source, changes, "HEAD", "changes", merge=False)
    raw = git(here.source, "diff", "--raw", "--no-renames", "HEAD", str(commit))
    assert [line.split()[:2] + line.split()[5:] for line in raw.splitlines()] == [
        [":000000", "100644", "new"],
        [":100755", "100755", "run"],
        [":100644", "100644", "text"],
    ]


def test_a_change_in_a_submodule_makes_no_branch(tmp_path: Path) -> None:
    submodule = write_tree(tmp_path / "project/libs/sub", {"file": b"1\n"})
    git(submodule, "init", "-q", "-b", "main")
    commit_all(submodule, "first")
    here = repository(tmp_path, {"file": b"1\n"})
    changes = here.run("echo 2 > libs/sub/file; echo 2 > libs/other; echo 2 > file")
    outside = [change for change in changes if not change.path.startswith("libs/sub/")]
    for inside in (changes, [change for change in changes if change not in outside]):
        with pytest.raises(CommitError, match=r"libs/sub is a submodule, .*: apply the changes and commit them there"):
            commit_changes(here.source, inside, "HEAD", "one")
    branch = branch_of(here.source, outside, "one")
    assert git(here.source, "rev-parse", f"{branch}:libs/sub") == git(submodule, "rev-parse", "HEAD")


@pytest.mark.parametrize(
    "script",
    ["echo 2 > a.big", "echo 2 > new.big", "rm a.big", "echo '*.txt filter=evil' > d/.gitattributes; echo 2 > d/x.txt"],
)
def test_a_change_of_a_file_with_a_filter_makes_no_branch_and_runs_nothing(tmp_path: Path, script: str) -> None:
    here = repository(tmp_path, {".gitattributes": b"*.big filter=evil\n", "a.big": b"1\n", "d/x.txt": b"1\n"})
    for command in ("clean", "smudge", "process"):
        git(here.source, "config", f"filter.evil.{command}", f"touch {tmp_path}/ran")
    with pytest.raises(CommitError, match=r"is stored through git's filter evil, .*: apply the changes and"):
        commit_changes(here.source, here.run(script), "HEAD", "one")
    assert not (tmp_path / "ran").exists()


def test_a_text_that_git_stores_in_another_encoding_makes_no_branch(tmp_path: Path) -> None:
    here = repository(tmp_path, {".gitattributes": b"*.rc working-tree-encoding=UTF-16LE\n", "a": b"1\n"})
    with pytest.raises(CommitError, match=r"new.rc is stored through git's working-tree-encoding UTF-16LE"):
        commit_changes(here.source, here.run("printf '1\\0' > new.rc"), "HEAD", "one")


def test_a_file_with_a_filter_is_no_hindrance_if_the_parent_has_it_or_it_is_a_link(tmp_path: Path) -> None:
    here = repository(tmp_path, {".gitattributes": b"*.big filter=lfs\nraw.big -filter\n", "a.big": b"1\n"})
    changes = here.run("echo 2 > a.big; echo 2 > raw.big; ln -s a.big link.big")
    (here.source / "a.big").write_text("2\n")
    commit_all(here.source, "second")
    assert git(here.source, "show", f"{branch_of(here.source, changes, 'one')}:raw.big") == "2\n"


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


def test_later_changes_go_on_from_a_branch_and_join_what_they_began_from(tmp_path: Path) -> None:
    here = repository(tmp_path, {"text": b"1\n"})
    (here.source / "text").write_text("1\n")
    mark = "Handiwork session abc"

    def commit_of(command: str) -> str:
        commit, _ = commit_changes(here.source, here.run(command), "HEAD", f"One\n\n{mark}\n")
        assert commit is not None
        return commit

    def parents(commit: str) -> list[str]:
        return git(here.source, "log", "-1", "--format=%P", commit).split()

    first = commit_of("echo 2 > new")
    assert name_commit(here.source, "handiwork/abc", first) == "handiwork/abc"
    assert commit_after(here.source, first, commit_of("true"), mark) == first
    second = commit_after(here.source, first, commit_of("rm new; echo 3 > other"), mark)
    assert parents(second) == [first]
    assert git(here.source, "ls-tree", "--name-only", second).split() == ["other", "text"]
    commit_all(here.source, "mine")
    mine = git(here.source, "rev-parse", "HEAD").strip()
    third = commit_after(here.source, second, commit_of("echo 4 > other"), mark)
    assert parents(third) == [second, mine]
    git(here.source, "reset", "-q", "--hard", third)
    fourth = commit_of("echo 5 > more")
    assert commit_after(here.source, third, fourth, mark) == fourth
    git(here.source, "commit", "-q", "--allow-empty", "-m", "theirs")
    theirs = git(here.source, "rev-parse", "HEAD").strip()
    with pytest.raises(ForeignCommitsError, match=f"the commit {theirs} is not of the session"):
        commit_after(here.source, theirs, fourth, mark)


def test_a_branch_goes_on_unless_it_is_elsewhere_or_checked_out(tmp_path: Path) -> None:
    here = repository(tmp_path, {"text": b"1\n"})
    first = git(here.source, "rev-parse", "HEAD").strip()
    git(here.source, "branch", "handiwork/abc")
    commit_all(here.source, "second")
    second = git(here.source, "rev-parse", "HEAD").strip()

    def tip() -> str:
        return git(here.source, "rev-parse", "handiwork/abc").strip()

    advance_branch(here.source, "handiwork/abc", second, first)
    assert tip() == first
    git(here.source, "worktree", "add", "-q", str(tmp_path / "out"), "handiwork/abc")
    advance_branch(here.source, "handiwork/abc", first, second)
    assert tip() == first
    git(here.source, "worktree", "remove", str(tmp_path / "out"))
    advance_branch(here.source, "handiwork/abc", first, second)
    assert tip() == second
    advance_branch(here.source, "handiwork/gone", first, second)


HOOKS = """
[hook "x"]
    event = reference-transaction
    command = touch {0}
[hook "a=b.c"]
    command = touch {0}
"""
ASKING = """#!/bin/sh
case " $* " in
*" update-ref "* | *" fast-import "*)
    for hook in x a=b.c; do {0} config --get "hook.$hook.enabled" || echo enabled; done >> {1}
esac
exec {0} "$@"
"""
"""Writes down which hooks git is told to run: versions before 2.54 run none that settings name."""


def test_hooks_that_the_settings_name_are_turned_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = repository(tmp_path, {"text": b"1\n"})
    changes = here.run("echo 2 > new")
    write_tree(tmp_path, {"included": HOOKS.format(tmp_path / "ran").encode()})
    git(here.source, "config", "include.path", str(tmp_path / "included"))
    program = ASKING.format(shutil.which("git"), tmp_path / "asked")
    write_tree(tmp_path, {"x:bin/git": program.encode()})
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    branch_of(here.source, changes, "Two")
    assert set((tmp_path / "asked").read_text().split()) == {"false"}
    assert not (tmp_path / "ran").exists()


def test_the_message_of_a_signed_commit_is_read_without_its_signature(tmp_path: Path) -> None:
    here = repository(tmp_path, {"text": b"1\n"})
    first = git(here.source, "rev-parse", "HEAD").strip()
    git(here.source, "config", "log.showSignature", "true")
    write_tree(tmp_path, {"x:gpg": f"#!/bin/sh\ntouch {tmp_path}/ran\n".encode()})
    git(here.source, "config", "gpg.program", str(tmp_path / "gpg"))
    git(here.source, "commit", "-q", "--allow-empty", "-m", "Made by the session")
    text = git(here.source, "cat-file", "commit", "HEAD").replace("\n\n", f"\n{SIGNATURE}\n\n", 1).encode()
    signed = git(here.source, "hash-object", "-t", "commit", "-w", "--stdin", stdin=text).strip()
    git(here.source, "reset", "-q", first)
    head, _ = commit_changes(here.source, here.run("echo 2 > new"), "HEAD", "Two\n\nOf-session: abc\n")
    assert head is not None
    after = commit_after(here.source, head, signed, "Of-session: abc")
    assert not (tmp_path / "ran").exists()
    assert git(here.source, "log", "-1", "--no-show-signature", "--format=%s", after) == "Made by the session\n"
    git(here.source, "log", "-1", signed)
    assert (tmp_path / "ran").exists()  # the plant is real


SIGNATURE = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----"

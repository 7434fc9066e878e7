from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handiwork.errors import WorkspaceError
from handiwork.workspace.apply import ConflictError, apply, preview
from handiwork.workspace.apply.undo import undo
from handiwork.workspace.changes import Change, changes_of_tree, same_content, side_at
from handiwork.workspace.copy import make_copy
from handiwork.workspace.git.import_commits import import_commits
from handiwork.workspace.patch import diffstat, unified_diff
from tests.workspace.trees import Session, Tree, git, read_tree, write_tree

Start = Callable[[Tree], Session]

NAMES = st.sampled_from(["a", "b", "c d", "ü", "-x", 'q"\\\n', "€.txt"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
TEXTS = st.lists(st.sampled_from(["one\n", "two\n", "é\r\n", "diff --git a/1 b/1\n", "@@", "+\n", ""]), max_size=8)
CONTENTS = st.one_of(TEXTS.map(lambda lines: "".join(lines).encode()), st.sampled_from(["none", "no/where"]))
# Links lead nowhere: "git apply" itself gives up when a directory replaces a link that leads to where it is.


def as_tree(files: dict[str, tuple[bytes | str, bool]]) -> Tree:
    """Only what can stand side by side: no file at a directory's place."""
    tree: Tree = {}
    taken: set[str] = set()
    for path, (content, runs) in files.items():
        parents = {path.rsplit("/", depth)[0] for depth in range(1, path.count("/") + 1)}
        if path not in taken and parents.isdisjoint({name.removeprefix("x:") for name in tree}):
            taken |= {path} | parents
            tree[f"x:{path}" if runs and isinstance(content, bytes) else path] = content
    return tree


TREES = st.dictionaries(PATHS, st.tuples(CONTENTS, st.booleans()), max_size=8).map(as_tree)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=TREES, after=TREES)
def test_applying_and_patching_both_give_the_sandboxs_tree(
    tmp_path_factory: pytest.TempPathFactory, before: Tree, after: Tree
) -> None:
    folder = tmp_path_factory.mktemp("property")
    source, sandbox, patched = folder / "source", folder / "sandbox", folder / "patched"
    for root, tree in ((source, before), (sandbox, after), (patched, before)):
        root.mkdir()
        write_tree(root, tree)
    changes = changes_of_tree(make_copy(source, folder / "session"), sandbox)
    links = {path for path, content in after.items() if isinstance(content, str)}
    apply(changes, source, undo_dir=folder / "applied")
    assert read_tree(source) == read_tree(sandbox)
    if changes:
        undo(folder / "applied", source)
        assert read_tree(source) == before
        apply(changes, source)
    if changes:
        git(patched, "init", "-q")
        git(patched, "apply", "-", stdin=unified_diff(changes).encode())
        assert read_tree(patched) == read_tree(sandbox)
    assert links <= read_tree(source).keys()


def test_a_diff_names_binary_files_with_their_sizes_and_counts_lines(session: Start) -> None:
    here = session({"bin": b"\0\1", "text": b"1\n2\n"})
    changes = here.run("printf '\\0\\1\\2' > bin; printf '1\\n3\\n4' > text")
    assert "Binary file bin is modified: 2 bytes -> 3 bytes\n" in unified_diff(changes)
    assert diffstat(changes) == [("bin", 0, 0), ("text", 2, 1)]


def test_edits_of_both_sides_are_merged_and_modes_kept(session: Start) -> None:
    here = session({"text": b"1\n2\n3\n4\n5\n", "same": b"1\n", "mode": b"1\n"})
    changes = here.run("sed -i s/5/five/ text; echo 2 > same; chmod +x mode; echo n > new; chmod 666 new")
    (here.source / "text").write_bytes(b"one\n2\n3\n4\n5\n")
    (here.source / "text").chmod(0o640)
    write_tree(here.source, {"same": b"2\n", "mode": b"mine\n"})
    plan, _ = preview(changes, here.source)
    assert (here.source / "text").read_bytes() == b"one\n2\n3\n4\n5\n"
    done = apply(changes, here.source)
    assert done == plan
    assert (done.written, done.deleted, done.unchanged, done.warnings) == (("mode", "new", "text"), (), ("same",), ())
    assert read_tree(here.source) == {
        "text": b"one\n2\n3\n4\nfive\n",
        "same": b"2\n",
        "x:mode": b"mine\n",
        "new": b"n\n",
    }
    assert (here.source / "text").stat().st_mode & 0o777 == 0o640
    assert (here.source / "new").stat().st_mode & 0o022 == 0


def test_a_text_in_an_old_encoding_is_merged_too(session: Start) -> None:
    here = session({"text": b"caf\xe9\n2\n3\n4\nfin\n"})
    changes = here.run("sed -i s/fin/end/ text")
    (here.source / "text").write_bytes(b"th\xe9\n2\n3\n4\nfin\n")
    apply(changes, here.source)
    assert read_tree(here.source) == {"text": b"th\xe9\n2\n3\n4\nend\n"}


TYPE_CHANGES = {
    "a file becomes a directory": "rm text; mkdir -p text/deep; echo 2 > text/deep/in",
    "a directory becomes a file": "rm -r dir; echo 2 > dir",
    "a directory becomes a link": "rm -r dir; ln -s text dir",
}


@pytest.mark.parametrize("change", TYPE_CHANGES)
def test_a_second_apply_finds_everything_unchanged_after_a_change_of_type(session: Start, change: str) -> None:
    here = session({"text": b"1\n", "dir/a": b"1\n", "dir/sub/b": b"1\n"})
    changes = here.run(TYPE_CHANGES[change])
    apply(changes, here.source)
    after = read_tree(here.source)
    again = apply(changes, here.source)
    assert (again.written, again.deleted, again.warnings) == ((), (), ())
    assert sorted(again.unchanged) == sorted(change.path for change in changes)
    assert read_tree(here.source) == after


def test_names_that_differ_in_case_alone_are_told_apart_if_the_file_system_does(session: Start) -> None:
    here = session({"Readme.md": b"1\n", "Src/a": b"1\n", "straße": b"1\n"})
    changes = here.run("mv Readme.md README.md; mv Src src; echo 2 > src/a; echo 2 > straße; echo 2 > STRASSE")
    done = apply(changes, here.source, undo_dir=here.folder / "applied")
    assert done.warnings == ()
    assert read_tree(here.source) == {"README.md": b"1\n", "src/a": b"2\n", "straße": b"2\n", "STRASSE": b"2\n"}
    undo(here.folder / "applied", here.source)
    assert read_tree(here.source) == {"Readme.md": b"1\n", "Src/a": b"1\n", "straße": b"1\n"}


CONFLICTS = {
    "but a directory here": ("rm text", "rm text; mkdir text; echo mine > text/x", "text"),
    "the same lines": ("echo theirs > text", "echo mine > text", "text"),
    "not a text": ("printf '\\0t' > bin", "printf '\\0m' > bin", "bin"),
    "different contents": ("echo theirs > new", "echo mine > new", "new"),
    "but edited here": ("rm text", "echo mine > text", "text"),
    "but deleted here": ("echo theirs > text", "rm text", "text"),
    "symbolic link here": ("echo theirs > dir/a", "mv dir ../away; ln -s ../away dir", "dir/a"),
    "not a directory": ("echo theirs > dir/a", "rm -r dir; echo mine > dir", "dir/a"),
    "a directory is here": ("echo theirs > new", "mkdir new; echo mine > new/x", "new"),
    "type": ("rm text; ln -s bin text", "echo mine > text", "text"),
    "a pipe": ("echo theirs > text", "rm text; mkfifo text", "text"),
}


@pytest.mark.parametrize("reason", CONFLICTS)
def test_a_conflict_is_listed_and_nothing_is_written(session: Start, reason: str) -> None:
    theirs, mine, path = CONFLICTS[reason]
    here = session({"text": b"1\n", "bin": b"\0", "dir/a": b"1\n", "other": b"1\n"})
    changes = here.run(f"echo 2 > other; {theirs}")
    subprocess.run(["bash", "-ec", mine], cwd=here.source, check=True)
    with pytest.raises(ConflictError, match=reason) as caught:
        apply(changes, here.source)
    assert [name for name, _ in caught.value.conflicts] == [path]
    assert (here.source / "other").read_bytes() == b"1\n"
    (conflict,) = preview(changes, here.source)[1]
    assert (conflict.path, conflict.reason in str(caught.value)) == (path, True)
    mine_now = read_tree(here.source) if reason != "a pipe" else {}

    left = apply(changes, here.source, {path: "leave"}, undo_dir=here.folder / "applied")
    assert (left.written, len(left.warnings)) == (("other",), 1)
    undo(here.folder / "applied", here.source)
    if conflict.can_take:
        apply(changes, here.source, {path: "take"}, undo_dir=here.folder / "applied")
        taken = side_at(here.source, path)
        assert same_content(taken, changes[[change.path for change in changes].index(path)].new)
        undo(here.folder / "applied", here.source)
    else:
        with pytest.raises(ConflictError, match=reason):
            apply(changes, here.source, {path: "take"})
    assert reason == "a pipe" or read_tree(here.source) == mine_now


def apply_with_mount(
    here: Session, mount: str, resolutions: Mapping[str, str] = MappingProxyType({})
) -> subprocess.CompletedProcess[str]:
    """Apply the changes while something is mounted inside the target, $0."""
    script = "import sys, json; from pathlib import Path; from handiwork.workspace.copy import Workspace;"
    script += "from handiwork.workspace.changes import changes_of_overlay; from handiwork.workspace.apply import apply;"
    script += "w = Workspace.load(Path(sys.argv[1]));"
    script += "print(apply(changes_of_overlay(w, Path(sys.argv[2])), w.source, json.loads(sys.argv[3])))"
    arguments = [str(here.folder / "session"), str(here.upper), json.dumps(dict(resolutions))]
    python = [sys.executable, "-c", script, *arguments]
    return subprocess.run(
        ["unshare", "-Urm", "bash", "-c", f'{mount} && exec "$@"', str(here.source), *python],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_file_on_another_file_system_is_a_conflict_that_can_be_left(session: Start) -> None:
    here = session({"a": b"1\n", "mnt/z": b"1\n"})
    here.run("echo 2 > a; echo 2 > mnt/z")
    mount = 'mount -t tmpfs tmpfs "$0/mnt" && echo 1 > "$0/mnt/z"'
    refused = apply_with_mount(here, mount)
    assert "because of 1 conflict:\n  mnt/z: mnt is on another file system here" in refused.stderr
    assert read_tree(here.source)["a"] == b"1\n"
    done = apply_with_mount(here, mount, {"mnt/z": "leave"})
    assert "mnt/z was left as it is: mnt is on another file system here." in done.stdout
    assert read_tree(here.source)["a"] == b"2\n"


def test_a_write_that_fails_midway_is_taken_back(session: Start) -> None:
    here = session({"a": b"1\n", "b": b"1\n", "dir/gone": b"1\n", "mnt/z": b"1\n"})
    here.run("echo 2 > a; rm b; rm -r dir; mkdir -p new/deep; echo 2 > new/deep/x; echo 2 > mnt/z")
    # Nothing can be moved into a mount.
    done = apply_with_mount(here, 'mount --bind "$0/mnt" "$0/mnt"')
    assert "WorkspaceError" in done.stderr
    assert "nothing was changed" in done.stderr
    assert read_tree(here.source) == {"a": b"1\n", "b": b"1\n", "dir/gone": b"1\n", "mnt/z": b"1\n"}
    assert sorted(os.listdir(here.source)) == ["a", "b", "dir", "mnt"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user of two groups")
def test_files_keep_their_group_and_new_ones_get_that_of_a_setgid_folder(session: Start) -> None:
    here = session({"page": b"1\n", "shared/old": b"1\n"})
    changes = here.run("echo 2 > page; echo 2 > shared/new")
    for path in (here.source, here.source / "page", here.source / "shared"):
        os.chown(path, 1000, 1000 if path == here.source else 2000)
    (here.source / "shared").chmod(0o2775)
    for folder in (here.folder, *here.folder.parents):
        folder.chmod(folder.stat().st_mode | 0o055)
    if (child := os.fork()) == 0:
        os.environ["HANDIWORK_DATA"] = str(here.source / "data")
        os.setgroups([2000])
        os.setgid(1000)
        os.setuid(1000)
        apply(changes, here.source)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [(here.source / name).stat().st_gid for name in ("page", "shared/new")] == [2000, 2000]


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_is_replaced_on_file_systems_that_have_no_hard_links(
    session: Start, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def link(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    here = session({"text": b"1\n", "gone": b"1\n"})
    changes = here.run("echo 2 > text; rm gone; echo 2 > new")
    monkeypatch.setattr("os.link", link)
    apply(changes, here.source, undo_dir=here.folder / "applied")
    assert read_tree(here.source) == {"text": b"2\n", "new": b"2\n"}
    undo(here.folder / "applied", here.source)
    assert read_tree(here.source) == {"text": b"1\n", "gone": b"1\n"}


@pytest.mark.parametrize("name", ["git~1", "GIT~1", ".git ", ".git.", ".git::$INDEX_ALLOCATION", ".Git . :x"])
def test_names_that_windows_takes_for_git_are_left_out(session: Start, name: str) -> None:
    here = session({"a": b"1\n"})
    changes = here.run(f"mkdir '{name}' git~2 .github; echo 2 > '{name}/config'; echo 2 > git~2/x; echo 2 > .github/x")
    side = side_at(here.source, "a")
    done = apply([*changes, Change(f"{name}/config", "added", None, side)], here.source)
    assert done.written == (".github/x", "git~2/x")
    assert "it belongs to a repository's own files" in done.warnings[0]


def test_a_bare_repository_is_left_out_whatever_the_case_of_its_names(session: Start) -> None:
    here = session({"tools/Config": b"1\n", "src/head": b"1\n"})
    changes = here.run(
        "echo 2 > src/head; mkdir -p TOOLS/Objects tools/Refs; echo 2 > TOOLS/Objects/x; echo 2 > tools/Refs/x;"
        " echo 2 > tools/head; echo 2 > tools/Config; echo 2 > tools/other"
    )
    done = apply(changes, here.source)
    assert done.written == ("src/head", "tools/other")
    assert len(done.warnings) == 4


def with_commit(path: Path, *options: str) -> Path:
    write_tree(path, {"a": b"1\n"})
    git(path, "init", "-q", *options)
    git(path, "add", ".")
    git(path, "commit", "-qm", "one")
    return path


def test_commits_arrive_as_a_branch_and_bad_bundles_do_not(tmp_path: Path) -> None:
    mine, theirs, bundle = with_commit(tmp_path / "mine"), tmp_path / "theirs", tmp_path / "bundle"
    git(tmp_path, "clone", "-q", str(mine), str(theirs))
    git(theirs, "bundle", "create", "-q", str(bundle), "HEAD")
    assert import_commits(mine, bundle, "abc") is None
    git(theirs, "commit", "-q", "--allow-empty", "-m", "two")
    git(theirs, "bundle", "create", "-q", str(bundle), "HEAD", "^HEAD~1")
    write_tree(mine, {"x:.git/hooks/reference-transaction": f"#!/bin/sh\ntouch {tmp_path}/ran\n".encode()})
    assert import_commits(mine, bundle, "abc") == "handiwork/abc"
    (mine / ".git/hooks/reference-transaction").unlink()
    assert not (tmp_path / "ran").exists()
    assert git(mine, "log", "--format=%s", "handiwork/abc") == "two\none\n"
    git(theirs, "commit", "-q", "--allow-empty", "-m", "three")
    git(theirs, "bundle", "create", "-q", str(bundle), "HEAD", "^HEAD~1")
    bundle.write_bytes(bundle.read_bytes()[:-30])
    with pytest.raises(WorkspaceError, match="cannot be read"):
        import_commits(mine, bundle, "def")
    bundle.write_bytes(b"no bundle")
    with pytest.raises(WorkspaceError, match="not a bundle"):
        import_commits(mine, bundle, "def")
    with pytest.raises(WorkspaceError, match="letters and digits"):
        import_commits(mine, bundle, "../main")


def test_a_commit_that_git_would_not_make_is_refused(tmp_path: Path) -> None:
    mine, theirs, bundle = with_commit(tmp_path / "mine"), tmp_path / "theirs", tmp_path / "bundle"
    git(tmp_path, "clone", "-q", str(mine), str(theirs))
    tree = git(theirs, "rev-parse", "HEAD^{tree}").strip()
    bad = f"tree {tree}\nauthor A <a\ncommitter A <a> x\n\nbad\n".encode()
    commit = git(theirs, "hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=bad).strip()
    git(theirs, "update-ref", "HEAD", commit)
    git(theirs, "bundle", "create", "-q", str(bundle), "HEAD")
    with pytest.raises(WorkspaceError, match="not taken over"):
        import_commits(mine, bundle, "abc")


def test_taking_commits_over_runs_no_program_for_the_repositorys_alternates(tmp_path: Path) -> None:
    mine, theirs, bundle = with_commit(tmp_path / "mine"), tmp_path / "theirs", tmp_path / "bundle"
    git(tmp_path, "clone", "-q", str(mine), str(theirs))
    git(tmp_path, "clone", "-q", "--bare", str(mine), "lent")
    write_tree(mine, {".git/objects/info/alternates": b"../../../lent/objects\n"})
    git(mine, "config", "core.alternateRefsCommand", f"touch {tmp_path}/ran;:")
    git(theirs, "commit", "-q", "--allow-empty", "-m", "two")
    git(theirs, "bundle", "create", "-q", str(bundle), "HEAD", "^HEAD~1")
    assert import_commits(mine, bundle, "abc") == "handiwork/abc"
    assert not (tmp_path / "ran").exists()
    git(theirs, "commit", "-q", "--allow-empty", "-m", "three")
    git(mine, "fetch", "-q", str(theirs), "HEAD")
    assert (tmp_path / "ran").exists()  # the plant is real

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handiwork.errors import WorkspaceError
from handiwork.workspace.apply import apply
from handiwork.workspace.changes import (
    Change,
    Side,
    changes_of_overlay,
    changes_of_tree,
    changes_since,
    side_at,
    with_moved_files,
)
from handiwork.workspace.files.safe_open import open_file
from handiwork.workspace.files.temp_dir import temporary_dir
from handiwork.workspace.patch import diffstat, unified_diff, without_hunk
from tests.workspace.trees import Session, Tree, found, git, read_tree, write_tree

Start = Callable[[Tree], Session]

BEFORE: Tree = {
    "keep": b"1\n",
    "edit": b"1\n",
    "drop": b"1\n",
    "x:run": b"1\n",
    "link": "keep",
    "dir/a": b"1\n",
    "dir/b": b"1\n",
    "dir/sub/c": b"1\n",
    "swap": b"1\n",
    "swapped/x": b"1\n",
    "was_link": "keep",
}
SCRIPT = """
echo 2 >> edit; rm drop; chmod -x run; ln -sfn edit link; touch keep; chmod 600 keep
rm -r dir; mkdir dir; echo 3 > dir/b; echo 1 > dir/new
rm swap; mkdir swap; echo 4 > swap/in; rm -r swapped; echo 5 > swapped
rm was_link; echo 6 > was_link; mkfifo pipe; mkdir -p .git sub/.git; echo 7 > .git/config; echo 7 > sub/.GIT
"""
EXPECTED = {
    "edit": "modified",
    "drop": "deleted",
    "run": "mode",
    "link": "link",
    "dir/a": "deleted",
    "dir/b": "modified",
    "dir/new": "added",
    "dir/sub/c": "deleted",
    "swap": "deleted",
    "swap/in": "added",
    "swapped/x": "deleted",
    "swapped": "added",
    "was_link": "type",
}


def test_an_overlay_tells_every_kind_of_change(session: Start) -> None:
    assert found(session(BEFORE).run(SCRIPT)) == EXPECTED


def test_a_tree_worked_on_in_place_tells_the_same(session: Start) -> None:
    here = session(BEFORE)
    subprocess.run(["bash", "-ec", SCRIPT], cwd=here.source, check=True)
    assert found(changes_of_tree(here.workspace, here.source)) == EXPECTED


def test_changes_to_one_base_tell_what_changed_between_them() -> None:
    base, one, two = (Side(Path(), "f", 0o100644, 2, text) for text in (b"0\n", b"1\n", b"2\n"))
    earlier = [
        Change("both", "modified", base, one),
        Change("early", "added", None, one),
        Change("gone", "added", None, one),
    ]
    later = [
        Change("both", "modified", base, two),
        Change("early", "added", None, one),
        Change("late", "deleted", base, None),
    ]
    assert [(change.path, change.kind, change.old, change.new) for change in changes_since(earlier, later)] == [
        ("both", "modified", one, two),
        ("gone", "deleted", one, None),
        ("late", "deleted", base, None),
    ]


def test_a_manifest_of_an_earlier_version_tells_the_same(session: Start) -> None:
    here = session(BEFORE)
    manifest = here.workspace.base.parent / "manifest.json"
    rows = {
        path: [node.kind, (here.workspace.base / path).lstat().st_mode, node.size, node.mtime_ns]
        + (["", node.value] if node.kind == "link" else [node.value, ""])
        for path, node in here.workspace.manifest().items()
    }
    manifest.write_text(json.dumps(rows))
    assert changes_of_tree(here.workspace, here.source) == []
    subprocess.run(["bash", "-ec", SCRIPT], cwd=here.source, check=True)
    assert found(changes_of_tree(here.workspace, here.source)) == EXPECTED


def test_a_whiteout_written_as_an_attribute_deletes_too(session: Start) -> None:
    here = session({"dir/a": b"1", "dir/empty": b"1"})
    write_tree(here.upper, {"dir/a": b"", "dir/empty": b""})
    os.setxattr(here.upper / "dir/a", "user.overlay.whiteout", b"")
    os.setxattr(here.upper / "dir", "user.overlay.opaque", b"x")
    assert found(changes_of_overlay(here.workspace, here.upper)) == {"dir/a": "deleted", "dir/empty": "modified"}


def test_what_git_ignores_and_what_tools_leave_behind_is_no_change(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "project", {".gitignore": b"*.log\nout/\n", "a": b"1", "kept.log": b"1"})
    git(source, "init", "-q")
    git(source, "add", "-f", ".")
    script = "mkdir out __pycache__; touch out/x b.log __pycache__/a.pyc; echo 2 > kept.log; echo 3 > b"
    here = Session(source, tmp_path)
    assert found(here.run(script)) == {"b": "added", "kept.log": "modified"}
    ignored = [change for change in changes_of_overlay(here.workspace, here.upper, ignored=True) if change.ignored]
    assert found(ignored) == {"b.log": "added", "out/x": "added"}


def test_new_files_that_the_sessions_own_rules_ignore_stay_in_it_but_nothing_in_place_is_hidden(session: Start) -> None:
    script = """
printf 'target/\\n*.o\\na\\n' > .gitignore; mkdir -p sub/target; touch sub/target/x b.o kept/c.o; echo 2 > a
"""
    here = session({"a": b"1", "kept/.gitignore": b"!*.o\n"})
    assert found(here.run(script)) == {".gitignore": "added", "a": "modified", "kept/c.o": "added"}
    subprocess.run(["bash", "-ec", script], cwd=here.source, check=True)
    assert {"b.o", "sub/target/x"} < found(changes_of_tree(here.workspace, here.source)).keys()


def test_a_file_moved_to_a_path_that_git_ignores_is_not_lost(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "project", {".gitignore": b"data/\n", "report.csv": b"1,2\n", "empty": b""})
    git(source, "init", "-q")
    here = Session(source, tmp_path)
    here.run("mkdir data; mv report.csv data/2026.csv; echo 1 > data/cache; rm empty; touch data/lock")
    changes = with_moved_files(changes_of_overlay(here.workspace, here.upper, ignored=True))
    apply([change for change in changes if not change.ignored], here.source)
    assert read_tree(here.source) == {".gitignore": b"data/\n", "data/2026.csv": b"1,2\n"}


def test_a_new_file_counts_in_a_directory_of_packages_that_git_tracks(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "project", {"fixtures/node_modules/a/index.js": b"1", "a.py": b"1"})
    git(source, "init", "-q")
    git(source, "add", ".")
    script = "mkdir -p fixtures/node_modules/b/__pycache__ node_modules/c; echo 2 > fixtures/node_modules/b/index.js"
    script += "; touch fixtures/node_modules/b/__pycache__/x.pyc node_modules/c/index.js"
    assert found(Session(source, tmp_path).run(script)) == {"fixtures/node_modules/b/index.js": "added"}


def test_a_directory_of_a_repository_has_the_ignore_rules_of_the_whole(tmp_path: Path) -> None:
    outer = write_tree(
        tmp_path / "outer",
        {".gitignore": b"dist/\n*.log\n/pkg/top\n", "pkg/.gitignore": b"out/\n", "pkg/a": b"1", "pkg/kept.log": b"1"},
    )
    git(outer, "init", "-q")
    git(outer, "add", "-f", ".")
    here = Session(outer / "pkg", tmp_path)
    script = "mkdir dist out sub; touch dist/x out/x b.log top sub/c.log sub/top; echo 2 > kept.log"
    assert found(here.run(script)) == {"kept.log": "modified", "sub/top": "added"}
    changes = here.run("echo '!*' > .gitignore")
    assert found(changes) == {"kept.log": "modified", "sub/top": "added", ".gitignore": "modified"}
    apply(changes, here.source)
    assert sorted(os.listdir(here.source)) == [".gitignore", "a", "kept.log", "sub"]
    assert changes_of_overlay(here.workspace, here.upper) == changes, "the rules are still those of the copy"
    outer.rename(tmp_path / "gone")
    assert "b.log" in found(changes_of_overlay(here.workspace, here.upper))


def test_a_directory_that_its_repository_ignores_has_no_ignore_rules(tmp_path: Path) -> None:
    outer = write_tree(tmp_path / "outer", {".gitignore": b"/scratch/\n*.log\n", "scratch/a": b"1"})
    git(outer, "init", "-q")
    assert found(Session(outer / "scratch", tmp_path).run("echo 1 > b.log")) == {"b.log": "added"}


def test_links_planted_in_a_workspace_leak_nothing(session: Start, tmp_path: Path) -> None:
    write_tree(tmp_path / "secret", {"key": b"s3cret\n"})
    here = session({"file": b"1\n", "dir/key": b"1\n"})
    changes = here.run(
        f"rm file; ln -s {tmp_path}/secret/key file; rm -r dir; ln -s {tmp_path}/secret dir; ln -s ../secret/key up;"
        "ln -s file in; ln -s / root"
    )
    assert found(changes) == {
        "dir": "added",
        "dir/key": "deleted",
        "file": "type",
        "in": "added",
        "root": "added",
        "up": "added",
    }
    assert "s3cret" not in unified_diff(changes)
    done = apply(changes, here.source)
    assert [warning.split()[0] for warning in done.warnings] == ["dir", "file", "root", "up"]
    assert read_tree(here.source) == {"file": b"1\n", "in": "file"}


def test_nothing_is_opened_through_a_link_or_out_of_the_root(tmp_path: Path) -> None:
    write_tree(tmp_path, {"out/key": b"s3cret", "root/file": b"1", "root/dir": "../out", "root/key": "../out/key"})
    os.mkfifo(tmp_path / "root/pipe")
    with open_file(tmp_path / "root", "file") as file:
        assert file.read() == b"1"
    for path in ("dir/key", "key", "../out/key", "/etc/passwd", "pipe", "dir"):
        with pytest.raises(WorkspaceError):
            open_file(tmp_path / "root", path)


PLANTED = {
    "hooks": "for h in post-checkout pre-commit post-index-change reference-transaction;"
    " do echo 'touch $PWNED' > .git/hooks/$h; chmod +x .git/hooks/$h; done",
    "fsmonitor": "git config core.fsmonitor 'touch $PWNED'",
    "drivers": "git config diff.evil.textconv 'touch $PWNED'; git config diff.evil.command 'touch $PWNED';"
    " git config merge.evil.driver 'touch $PWNED'; git config filter.evil.clean 'touch $PWNED';"
    " echo '* diff=evil merge=evil filter=evil' > .gitattributes",
}


@pytest.mark.parametrize("trap", PLANTED)
def test_programs_planted_in_a_workspace_are_not_run(
    tmp_path: Path, trap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PWNED", str(tmp_path / "pwned"))
    source = write_tree(tmp_path / "project", {"a": b"1\n2\n3\n4\n5\n6\n"})
    git(source, "init", "-q")
    git(source, "add", ".")
    git(source, "commit", "-qm", "one")
    here = Session(source, tmp_path)
    script = f"mkdir -p .git/hooks; {PLANTED[trap].replace('$PWNED', str(tmp_path / 'pwned'))}; echo x >> a"
    changes = here.run(script)
    (source / "a").write_bytes(b"0\n2\n3\n4\n5\n6\n")
    assert "+x\n" in unified_diff(changes)
    assert ("a", 1, 0) in diffstat(changes)
    apply(changes, source)
    assert (source / "a").read_bytes() == b"0\n2\n3\n4\n5\n6\nx\n"
    assert not (tmp_path / "pwned").exists()
    assert "evil" not in (source / ".git/config").read_text()


def change_of(folder: Path, old: bytes, new: bytes) -> Change:
    sides: list[Side | None] = []
    for name, content in (("base", old), ("sandbox", new)):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "file").write_bytes(content)
        sides.append(side_at(folder / name, "file"))
    return Change("file", "modified", *sides)


def hunks_in(change: Change) -> list[str]:
    return re.split(r"^(?=@@ )", unified_diff([change]), flags=re.MULTILINE)[1:]


LINES = st.lists(st.sampled_from(["a", "b", "", "\tc ", "ä\r", "+", "-x", "@@ -1 +1 @@", "\\ No"]), max_size=25)


@given(LINES, LINES, st.booleans(), st.booleans())
@settings(max_examples=40, deadline=None)
def test_to_take_one_hunk_after_the_other_back_gives_the_base_s_content(
    old_lines: list[str], new_lines: list[str], old_end: bool, new_end: bool
) -> None:
    old = ("\n".join(old_lines) + "\n" * old_end).encode()
    new = ("\n".join(new_lines) + "\n" * new_end).encode()
    with temporary_dir() as folder:
        change = change_of(folder, old, new)
        while hunks := hunks_in(change):
            change = change_of(folder, old, without_hunk(change, hunks[len(hunks) // 2]))
            assert len(hunks_in(change)) < len(hunks)
        assert change.new
        assert change.new.read() == old


def test_only_a_hunk_that_a_modified_text_has_is_taken_back(tmp_path: Path) -> None:
    change = change_of(tmp_path, b"1\n2\n", b"1\n3\n")
    (hunk,) = hunks_in(change)
    with pytest.raises(WorkspaceError, match="file has changed; look at the changes again"):
        without_hunk(change_of(tmp_path, b"1\n2\n", b"1\n4\n"), hunk)
    for other in (Change("file", "deleted", change.old, None), change_of(tmp_path, b"1\n", b"\0\n")):
        with pytest.raises(WorkspaceError, match="no hunk to take back"):
            without_hunk(other, hunk)


@pytest.mark.parametrize(("named", "seen"), [("rules", ["a.user"]), ("", ["a.own", "a.user"])])
def test_the_ignore_file_that_a_repository_names_in_its_worktree_replaces_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, seen: list[str]
) -> None:
    write_tree(tmp_path / "config", {"git/ignore": b"*.user\n"})
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    project = write_tree(tmp_path / "project", {"rules": b"*.own\n"})
    git(project, "init", "-q")
    git(project, "config", "core.excludesFile", named)
    session = Session(project, tmp_path)
    assert list(found(session.run("touch a.own a.user; ! git check-ignore --quiet a.user"))) == seen

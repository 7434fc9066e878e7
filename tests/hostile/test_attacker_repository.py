"""A repository, or a change set, that the user did not write attacks whoever works on it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from handiwork.workspace.apply import apply
from handiwork.workspace.changes import changes_of_tree
from handiwork.workspace.copy import make_copy
from tests.hostile.git_plants import TRANSPORTS, make_evil, partial_clone, run_script, use_git_everywhere


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_copying_a_partial_clone_asks_no_host_and_runs_no_program(tmp_path: Path, transport: str) -> None:
    project, witness = tmp_path / "project", tmp_path / "witness"
    project.mkdir()
    evil = make_evil(project, witness)
    run_script(project, partial_clone(str(project / "tools"), transport, str(evil)))
    session = make_copy(project, tmp_path / "session")
    changed = tmp_path / "changed"
    run_script(tmp_path, f"cp -r {session.base} {changed}; touch {changed}/tools/sub/new")
    assert [change.path for change in changes_of_tree(session, changed)] == ["tools/sub/new"]
    assert not witness.exists(), witness.read_text()
    subprocess.run(["git", "ls-files", "-oi", "--exclude-standard"], cwd=project / "tools", check=False, timeout=30)
    assert witness.exists()  # the plant is real


@pytest.mark.parametrize("place", ["", "tools/"])
def test_a_change_set_that_is_a_bare_repository_is_not_applied(tmp_path: Path, place: str) -> None:
    project, witness, agents = tmp_path / "project", tmp_path / "witness", tmp_path / "agents"
    project.mkdir()
    (project / "HEADER").write_text("objects\n")
    evil = make_evil(project, witness)
    session = make_copy(project, tmp_path / "session")
    run_script(
        tmp_path,
        f"cp -r {project} {agents}; mkdir -p {agents}/{place}; git init -q --bare made; cp -r made/* {agents}/{place}",
    )
    for setting in ("core.bare false", "core.worktree .", f"core.fsmonitor {evil}"):
        run_script(agents, f"git config -f ./{place}config {setting}")
    run_script(agents, f"touch ./{place}objects/x ./{place}refs/x ./{place}other; chmod +x ./{place}hooks/*")
    done = apply(changes_of_tree(session, agents), project)
    assert done.written == (f"{place}description", f"{place}other")
    assert any(f"{place}HEAD was left out" in warning for warning in done.warnings)
    use_git_everywhere(project)
    make_copy(project, tmp_path / "next")
    assert not witness.exists(), witness.read_text()


def test_a_folder_that_is_a_bare_repository_is_copied_without_git_in_it(tmp_path: Path) -> None:
    project, witness = tmp_path / "project", tmp_path / "witness"
    project.mkdir()
    evil = make_evil(project, witness)
    run_script(project, f"{partial_clone('tools', 'ext', str(evil))} cd ..; mv tools/.git/* tools/sub .; rm -rf tools")
    run_script(project, "git config -f ./config core.worktree .")
    make_copy(project, tmp_path / "session")
    assert not witness.exists(), witness.read_text()
    subprocess.run(["git", "ls-files", "-oi", "--exclude-standard"], cwd=project, check=False, timeout=30)
    assert witness.exists()  # the plant is real


def test_a_git_file_brings_no_other_repository_of_the_user_into_a_copy(tmp_path: Path) -> None:
    project, private = tmp_path / "project", tmp_path / "private"
    run_script(tmp_path, "git init -q private; mkdir -p project/a project/b project/c/.git")
    (project / "a/.git").write_text(f"gitdir: {private}/.git\n")
    (project / "b/.git").symlink_to(private / ".git")
    linked = {"HEAD": "ref: refs/heads/main", "commondir": f"{private}/.git", "gitdir": "."}
    for name, text in linked.items():
        (project / "c/.git" / name).write_text(f"{text}\n")
    session = make_copy(project, tmp_path / "session")
    assert session.left_out == ("a/.git", "b/.git", "c/.git")
    assert not (session.base / "a/.git").exists()
    assert not (session.base / "b/.git").exists()
    assert not (session.base / "c/.git").exists()

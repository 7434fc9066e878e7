"""The work of a session comes home over HTTP: preview, conflicts and their answers, apply, undo, branch, patch."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.harness.serving import Api, bash, finish
from tests.workspace.trees import git

Start = Callable[..., tuple[str, Path]]


@pytest.fixture
def start(api: Api, tmp_path: Path) -> Start:
    """Begins a session on a project of its own, runs a command in it, and waits for its end."""

    def started(*commands: str, repository: bool = False, **more: str) -> tuple[str, Path]:
        project = tmp_path / "project"
        project.mkdir(exist_ok=True)
        (project / "a").write_text("1\n2\n3\n")
        (project / "b").write_text("1\n")
        if repository:
            git(project, "init", "-q", "-b", "main")
            git(project, "add", "-A")
            git(project, "commit", "-qm", "first")
        replies = [*(bash(command) for command in commands), finish()]
        session = api.create(*replies, workspace=str(project), title="Count further", **more)
        api.until(session, "finished")
        return session, project

    return started


def refusal(api: Api, path: str, **body: object) -> str:
    answer = api.http.post(path, json=body) if body else api.http.post(path)
    assert answer.status_code == 409, answer.text
    return answer.json()["error"]


def test_changes_are_previewed_applied_and_undone(api: Api, start: Start) -> None:
    session, project = start("echo 2 > b; rm a; echo 1 > 'new \"file'")
    preview = api.get(f"{session}/apply")
    assert (preview["written"], preview["deleted"]) == (["b", '"new \\"file"'], ["a"])
    assert (preview["conflicts"], preview["undoable"], preview["workspace"]) == ([], [], str(project))
    assert (project / "b").read_text() == "1\n"
    applied = api.post(f"{session}/apply", resolutions={})
    assert (applied["written"], applied["deleted"], applied["branch"]) == (preview["written"], ["a"], None)
    assert sorted(path.name for path in project.iterdir()) == ["b", 'new "file']
    preview = api.get(f"{session}/apply")
    assert (preview["written"], preview["deleted"]) == ([], [])
    assert sorted(preview["undoable"]) == sorted([*applied["written"], "a"])

    (project / "b").write_text("mine\n")
    assert refusal(api, f"{session}/apply/undo").endswith("have changed since the apply:\n  b")
    (project / "b").write_text("2\n")
    undone = api.post(f"{session}/apply/undo")
    assert (undone["restored"], undone["deleted"]) == (["a", "b"], ['"new \\"file"'])
    assert {path.name: path.read_text() for path in project.iterdir()} == {"a": "1\n2\n3\n", "b": "1\n"}
    assert refusal(api, f"{session}/apply/undo") == "there is no apply to undo"


def test_a_conflict_is_shown_with_what_taking_it_changes_and_answered(api: Api, start: Start) -> None:
    session, project = start("sed -i s/2/two/ a; echo 2 > b")
    (project / "a").write_text("1\nzwei\n3\n")
    (conflict,) = api.get(f"{session}/apply")["conflicts"]
    assert (conflict["path"], conflict["can_take"]) == ("a", True)
    assert "-zwei\n+two\n" in conflict["patch"]
    assert "a: the same lines were changed" in refusal(api, f"{session}/apply", resolutions={})
    assert (project / "b").read_text() == "1\n"
    left = api.post(f"{session}/apply", resolutions={"a": "leave"})
    assert (left["written"], (project / "a").read_text()) == (["b"], "1\nzwei\n3\n")
    assert left["warnings"] == ["a was left as it is: the same lines were changed by the session and here."]
    taken = api.post(f"{session}/apply", resolutions={"a": "take"})
    assert (taken["written"], (project / "a").read_text()) == (["a"], "1\ntwo\n3\n")


@pytest.mark.slow
def test_a_branch_has_commits_and_changes_and_an_apply_brings_the_commits(api: Api, start: Start) -> None:
    session, project = start("echo 2 > b; git commit -qam second; echo 3 > c", repository=True)
    name = f"handiwork/{session.rpartition('/')[2]}"
    assert api.post(f"{session}/branch") == {"branch": f"{name}-2", "warnings": []}
    assert git(project, "log", "--format=%s", f"{name}-2") == "Count further\nsecond\nfirst\n"
    assert git(project, "status", "--porcelain") == ""
    assert api.post(f"{session}/branch") == {"branch": f"{name}-2", "warnings": []}
    applied = api.post(f"{session}/apply", resolutions={})
    assert (applied["branch"], applied["written"], applied["warnings"]) == (name, ["b", "c"], [])
    assert git(project, "log", "--format=%s", name) == "second\nfirst\n"
    assert api.get(f"{session}/apply")["commits"] is False


def test_without_a_repository_there_is_no_branch_but_a_patch(api: Api, start: Start) -> None:
    session, project = start("echo 2 > b; printf 'caf\\303\\251' > c")
    assert "is not a git repository: apply the changes, or download them as a patch" in refusal(
        api, f"{session}/branch"
    )
    answer = api.http.get(f"{session}/patch")
    assert answer.headers["content-disposition"].endswith(f'handiwork-{session.rpartition("/")[2]}.patch"')
    subprocess.run(["git", "apply", "-"], cwd=project, input=answer.content, check=True)
    assert ((project / "b").read_text(), (project / "c").read_text()) == ("2\n", "café")

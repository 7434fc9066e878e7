"""What the agent commits arrives as a branch of the user's repository, and nothing but commits does."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from handiwork.errors import WorkspaceError
from handiwork.log.errors import LeaseHeld
from handiwork.log.eventlog import EventLog
from handiwork.log.store import Store
from handiwork.session.apply import bring_commits, make_branch
from handiwork.session.config import SessionConfig
from handiwork.session.open import create, reopen
from handiwork.session.pull_request import ForgeTokens, propose
from handiwork.session.time_travel.commits import NoRepositoryError, fetch_commits, has_new_head
from handiwork.session.time_travel.fork import fork

pytestmark = pytest.mark.slow

COMMIT = "echo {0} >> greeting.txt && git commit -qam {0}"
PLACES: dict[str, dict[str, Any]] = {
    "on a copy": {},
    "in place": {"in_place": True},
    "on a copy without a sandbox": {"sandbox": "none"},
}
each_place = pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)


def git(folder: Path, *arguments: str) -> str:
    identity = {f"GIT_{who}_{what}": "me@here" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return subprocess.run(
        ["git", *arguments], cwd=folder, env={**os.environ, **identity}, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()


class User:
    """Has a project, and sessions in which scripted agents run shell commands in it."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.data, self.store = folder / "data", store
        self.project = folder / "project"
        self.project.mkdir()
        (self.project / "greeting.txt").write_text("hello\n")

    def begin_repository(self, *options: str) -> None:
        git(self.project, "init", "-q", "-b", "main", *options)
        git(self.project, "add", "-A")
        git(self.project, "commit", "-qm", "first")

    def branches(self) -> list[str]:
        return git(self.project, "branch", "--format=%(refname:short)").split()

    async def run(self, *commands: str, log: EventLog | None = None, **config: Any) -> EventLog:
        """Have the commands run, in a new session or in the one of ``log``, and return its log."""
        script = self.data.parent / "script.jsonl"
        with script.open("a") as file:
            for command in commands:
                file.write(json.dumps({"tool_calls": [{"name": "bash", "arguments": {"command": command}}]}) + "\n")
            file.write(json.dumps({"tool_calls": [{"name": "finish", "arguments": {"message": "done"}}]}) + "\n")
        if log is None:
            made = SessionConfig(
                agent="CodeActAgent", model=f"scripted:{script}", workspace=str(self.project), **config
            )
            opened = await create(self.store, self.data, made, lambda _: None, "a test")
        else:
            opened = await reopen(self.store, self.data, log.id, lambda _: None)
        try:
            state = await opened.run("commit it")
        finally:
            await opened.close()
        assert state.agent_state == "finished", state.last_error
        return opened.log

    async def fetch(self, log: EventLog) -> str | None:
        return (await fetch_commits(self.store, self.data, log)).branch


@pytest.fixture
async def user(tmp_path: Path) -> AsyncIterator[User]:
    async with Store.open(tmp_path / "data") as store:
        yield User(tmp_path, store)


@each_place
async def test_commits_arrive_as_a_branch_also_later_ones(user: User, place: dict[str, Any]) -> None:
    user.begin_repository()
    log = await user.run(COMMIT.format("second"), COMMIT.format("third"), **place)
    assert await has_new_head(user.data, log)
    git(user.project, "commit", "-q", "--allow-empty", "-m", "meanwhile")
    branch = await user.fetch(log)
    assert branch is not None
    assert branch == f"handiwork/{log.id}"
    assert git(user.project, "log", "--format=%s", branch).split() == ["third", "second", "first"]
    assert git(user.project, "show", f"{branch}:greeting.txt").split() == ["hello", "second", "third"]
    assert git(user.project, "log", "--format=%s", "main").split() == ["meanwhile", "first"]
    assert git(user.project, "symbolic-ref", "--short", "HEAD") == "main"
    assert await user.fetch(log) == branch
    assert not await has_new_head(user.data, log)

    await user.run("git switch -qc aside; " + COMMIT.format("fourth"), log=log)
    assert await user.fetch(log) == branch
    assert git(user.project, "log", "-1", "--format=%s", branch) == "fourth"
    assert user.branches() == [branch, "main"]


@each_place
async def test_where_there_is_no_new_commit_there_is_no_branch(user: User, place: dict[str, Any]) -> None:
    user.begin_repository()
    git(user.project, "commit", "-q", "--allow-empty", "-m", "second")
    log = await user.run("git status; git diff", **place)
    assert await user.fetch(log) is None
    await user.run("echo more > new; git add -A; git stash; git switch -qc aside; git reset -q HEAD~1", log=log)
    assert not await has_new_head(user.data, log)
    assert await user.fetch(log) is None
    assert user.branches() == ["main"]


async def test_without_a_sandbox_and_in_place_they_are_there_already(user: User) -> None:
    user.begin_repository()
    log = await user.run(COMMIT.format("second"), sandbox="none", in_place=True)
    assert await user.fetch(log) is None
    assert git(user.project, "log", "--format=%s").split() == ["second", "first"]


async def test_commits_of_a_sha256_repository_arrive(user: User) -> None:
    user.begin_repository("--object-format=sha256")
    branch = await user.fetch(await user.run(COMMIT.format("second")))
    assert branch is not None
    assert git(user.project, "log", "--format=%s", branch).split() == ["second", "first"]


async def test_the_first_commit_of_a_repository_arrives_too(user: User) -> None:
    git(user.project, "init", "-q", "-b", "main")
    branch = await user.fetch(await user.run("git add -A && git commit -qm first"))
    assert branch is not None
    assert git(user.project, "log", "--format=%s", branch) == "first"


async def test_the_commits_of_the_users_own_edits_are_something_for_a_pull_request(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    user.begin_repository()
    git(user.project, "remote", "add", "origin", "https://github.com/octo/greeter.git")
    (user.project / "greeting.txt").write_text("good day\n")
    log = await user.run("git commit -qam second")
    proposal = await propose(user.data, log, ForgeTokens())
    assert (proposal.title, proposal.files) == ("a test", ())
    branch, _ = await make_branch(user.store, user.data, log)
    assert git(user.project, "show", f"{branch}:greeting.txt") == "good day"


async def test_what_a_branch_leaves_out_is_told_as_in_an_apply(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    (user.project / ".gitignore").write_text("data/\n")
    user.begin_repository()
    git(user.project, "remote", "add", "origin", "https://github.com/octo/greeter.git")
    log = await user.run("mkdir data; mv greeting.txt data/; ln -s /etc/passwd link; git switch -qc aside")
    ignored = "git ignores 1 file that the session changed, left out: data/greeting.txt."
    assert (await propose(user.data, log, ForgeTokens())).warnings == (ignored,)
    branch, warnings = await make_branch(user.store, user.data, log)
    assert warnings == (ignored, "link was left out: it is a symbolic link out of the workspace, to /etc/passwd.")
    assert git(user.project, "ls-tree", "--name-only", branch) == ".gitignore"


async def test_branches_whose_commits_stay_in_the_session_are_named(user: User) -> None:
    user.begin_repository()
    git(user.project, "branch", "old")
    log = await user.run(f"git switch -qc fix; {COMMIT.format('second')}; git switch -q main; git branch same")
    brought = await bring_commits(user.store, user.data, log)
    assert (brought.branch, brought.error) == (None, "")
    assert "commits stay in the session that its HEAD lacks, on fix:" in brought.note
    assert user.branches() == ["main", "old"]


@pytest.mark.parametrize("folder", ["src", "/tmp"])
async def test_commits_of_a_fork_arrive_wherever_its_shell_is(user: User, folder: str) -> None:
    user.begin_repository()
    log = await user.run("mkdir src; " + COMMIT.format("second"), f"cd {folder}")
    forked = await fork(user.store, user.data, log, await log.head())
    branch = await user.fetch(forked)
    assert branch == f"handiwork/{forked.id}"
    assert git(user.project, "log", "--format=%s", branch).split() == ["second", "first"]


async def test_a_repository_that_only_the_agent_has_stays_with_it(user: User) -> None:
    log = await user.run("git init -q && git add -A && git commit -qm first")
    with pytest.raises(NoRepositoryError, match="project is not a git repository, so the commits stay in the session"):
        await user.fetch(log)


async def test_a_branch_that_has_other_commits_is_left_alone(user: User) -> None:
    user.begin_repository()
    log = await user.run(COMMIT.format("second"))
    branch = await user.fetch(log)
    assert branch is not None
    await user.run("git commit -q --amend -m other", log=log)
    with pytest.raises(WorkspaceError, match=f"not taken over as {branch}"):
        await user.fetch(log)
    assert git(user.project, "log", "-1", "--format=%s", branch) == "second"


async def test_commits_of_a_session_that_runs_have_to_wait(user: User) -> None:
    user.begin_repository()
    log = await user.run(COMMIT.format("second"))
    async with log.lease():
        with pytest.raises(LeaseHeld):
            await user.fetch(log)
    assert await user.fetch(log) is not None


HOSTILE = """
cat > evil.sh <<'END'
#!/bin/sh
touch {witness} 2> /dev/null
[ -t 0 ] || cat
END
chmod +x evil.sh
mkdir -p .git/hooks
for hook in reference-transaction post-checkout pre-commit post-commit post-merge pre-auto-gc; do
    cp evil.sh .git/hooks/$hook
done
for name in core.fsmonitor core.pager diff.external uploadpack.packObjectsHook core.alternateRefsCommand; do
    git config $name ./evil.sh
done
printf '* filter=evil\\n' > .git/info/attributes
git config filter.evil.clean ./evil.sh
git config filter.evil.smudge ./evil.sh
git add evil.sh
git commit -qm planted
"""
FORGED = """
cat > ~/.bashrc <<'END'
git() { command git "$@" && case $1 in bundle) head -c 1000 /dev/urandom > .git/handiwork.bundle;; esac; }
END
"""
LINKED = """
cat > ~/.bashrc <<'END'
git() { command git "$@" && case $1 in bundle) ln -sf %s .git/handiwork.bundle;; esac; }
END
"""
BROKEN = """
tree=$(git rev-parse 'HEAD^{tree}')
commit=$(printf 'tree %s\\nparent %s\\nauthor A <a\\ncommitter A <a> x\\n\\nbad\\n' $tree $(git rev-parse HEAD) \\
    | git hash-object -t commit -w --literally --stdin)
git update-ref HEAD $commit
"""


@pytest.mark.parametrize("in_place", [False, True], ids=["on a copy", "in place"])
async def test_what_is_planted_in_the_agents_repository_does_nothing_on_the_host(user: User, in_place: bool) -> None:
    user.begin_repository()
    witness = user.data.parent / "witness"
    before = settings_of(user.project)
    branch = await user.fetch(await user.run(HOSTILE.format(witness=witness), in_place=in_place))
    assert branch is not None
    git(user.project, "status")
    git(user.project, "diff", "main", branch)
    git(user.project, "worktree", "add", "-q", "../other", branch)
    assert not witness.exists()
    assert settings_of(user.project) == before
    assert (user.project.parent / "other/evil.sh").exists()


def settings_of(project: Path) -> dict[Path, bytes]:
    git_dir = project / ".git"
    files = [git_dir / "config", *(git_dir / "hooks").glob("*"), *(git_dir / "info").glob("*")]
    return {path: path.read_bytes() for path in files}


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (BROKEN, "not taken over"),
        (COMMIT.format("second") + FORGED, "not a bundle of commits"),
        (COMMIT.format("second") + LINKED % "/nowhere", "cannot be fetched"),
        (COMMIT.format("second") + LINKED % "/dev/zero", "cannot be fetched"),
        ("rm -rf .git; git init -q; git add -A; git commit -qm other", "failed"),
    ],
    ids=["a broken commit", "not a bundle", "a link to nothing", "a file without end", "another repository"],
)
async def test_what_is_no_good_is_refused(user: User, command: str, message: str) -> None:
    user.begin_repository()
    log = await user.run(command)
    with pytest.raises(WorkspaceError, match=message):
        await user.fetch(log)
    assert user.branches() == ["main"]

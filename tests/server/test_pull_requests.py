"""A session's changes become a pull request on a forge: stand-ins of GitHub and GitLab, a real git and a real push."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import pytest

from handiwork.session.pull_request.target import UnknownForgeError, target_of
from handiwork.settings import ForgeSettings
from scripts.harness import forge as forges
from scripts.harness.forge import Standin
from scripts.harness.serving import Api, Program, bash, finish, until
from tests.workspace.trees import git, read_tree

pytestmark = pytest.mark.slow

Kind = Literal["github", "gitlab"]
Clone = Callable[..., Path]

CHANGE = "sed -i s/hello/hallo/ greeting.txt; echo 'new' > 'new file'"
MESSAGE = "The greeting is German now.\n\nFixes #7"


@pytest.fixture(autouse=True)
def no_token(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_TOKEN", "GITLAB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    keys_of(api).unlink(missing_ok=True)


@pytest.fixture(params=["github", "gitlab"])
def forge(request: pytest.FixtureRequest, api: Api, tmp_path: Path) -> Iterator[Standin]:
    """A forge that the settings name."""
    with forges.serve(request.param, tmp_path / "forge") as standin:
        know(api, standin.settings)
        yield standin


@pytest.fixture
def github(api: Api, tmp_path: Path) -> Iterator[Standin]:
    with forges.serve("github", tmp_path / "forge") as standin:
        know(api, standin.settings)
        yield standin


def know(api: Api, settings: str) -> None:
    file = api.folder / "config/handiwork/config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(settings)


def keys_of(api: Api) -> Path:
    return api.folder / "config/handiwork/keys.json"


def clone(forge: Standin, folder: Path) -> Path:
    """Clone the forge's repository as a user does, into a folder with a remote."""
    project = folder / "project"
    git(folder, "clone", "-q", str(forge.bare), str(project))
    git(project, "remote", "set-url", "origin", forge.address)
    git(project, "config", "user.name", "Ada")
    git(project, "config", "user.email", "ada@example.org")
    return project


def work(api: Api, project: Path, *commands: str) -> str:
    """Run a session on the project to its end, and return its path."""
    replies = [*map(bash, commands or (CHANGE,)), finish(MESSAGE)]
    session = api.create(*replies, workspace=str(project), title="Greet in German")
    api.until(session, "finished")
    return session


def problem(answer: Any, status: int = 409) -> str:
    assert answer.status_code == status, answer.text
    return answer.json()["error"]


def opening(api: Api, session: str, **fields: Any) -> Any:
    return api.http.post(f"{session}/pull-request", json={"title": "Greet in German", **fields})


def test_a_request_is_proposed_with_a_token_opened_once_and_found_again(
    api: Api, forge: Standin, tmp_path: Path
) -> None:
    project = clone(forge, tmp_path)
    session = work(api, project)
    branch = f"handiwork/{session.rpartition('/')[2]}"
    proposal = api.get(f"{session}/pull-request")
    noun = {"github": "pull request", "gitlab": "merge request"}[forge.kind]
    assert (proposal["account"], proposal["problem"], forge.seen) == (None, "", [])
    assert (proposal["noun"], proposal["repository"], proposal["host"]) == (noun, "octo/greeter", forge.host)
    assert (proposal["title"], proposal["body"], proposal["base"]) == ("Greet in German", MESSAGE, "main")
    assert (proposal["files"], proposal["warnings"]) == (["greeting.txt", "new file"], [])
    assert f"there is no token for {forge.host}" in problem(opening(api, session))

    forge.add("someone")
    refused = api.http.post(f"{session}/pull-request/token", json={"token": "wrong-token-0123456789"})
    assert "does not accept the token (" in problem(refused)
    token = forge.add("ada")
    assert api.post(f"{session}/pull-request/token", token=token) == {"account": "ada", "file": None}
    assert not keys_of(api).exists()
    assert api.get(f"{session}/pull-request")["account"] == "ada"

    before = (read_tree(project), (project / ".git/config").read_text(), git(project, "status", "--porcelain"))
    first = forge.branch("main")
    fields = {"title": "Greet in *German*", "body": "Hallo\n\n- Fixes #8", "base": "main", "draft": True}
    opened = opening(api, session, **fields).json()
    (request,) = forge.requests
    assert opened["created"] is True
    assert (opened["branch"], opened["number"], opened["noun"]) == (branch, 1, noun)
    assert opened["url"] == (request["html_url"] if forge.kind == "github" else request["web_url"])
    assert request["draft"] is True
    assert request["title"].removeprefix("Draft: ") == "Greet in *German*"
    assert request["body" if forge.kind == "github" else "description"] == "Hallo\n\n- Fixes #8"
    assert git(forge.bare, "show", f"{branch}:greeting.txt") == "hallo\n"
    assert git(forge.bare, "rev-parse", f"{branch}^").strip() == first == forge.branch("main")
    assert git(forge.bare, "log", "-1", "--format=%an: %s", branch) == "Ada: Greet in *German*\n"
    after = (read_tree(project), (project / ".git/config").read_text(), git(project, "status", "--porcelain"))
    assert after == before
    assert git(project, "symbolic-ref", "HEAD") == "refs/heads/main\n"

    again = opening(api, session, title="Another title").json()
    assert again == {**opened, "created": False}
    assert len(forge.requests) == 1
    agents = {headers["user-agent"] for _, path, headers in forge.seen if "/api/" in path}
    assert all(agent.startswith("handiwork/") for agent in agents)
    basic = base64.b64encode(f"{'x-access-token' if forge.kind == 'github' else 'oauth2'}:{token}".encode()).decode()
    pushes = [headers["authorization"] for _, path, headers in forge.seen if path.endswith("git-receive-pack")]
    assert f"Basic {basic}" in pushes


def test_a_kept_token_is_private_for_its_host_and_a_variable_works_too(
    api: Api, github: Standin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = work(api, clone(github, tmp_path))
    token = github.add("ada")
    taken = api.post(f"{session}/pull-request/token", token=token, keep=True)
    assert taken == {"account": "ada", "file": str(keys_of(api))}
    assert keys_of(api).stat().st_mode & 0o777 == 0o600
    assert token in keys_of(api).read_text()
    # Another forge at another port gets neither this token nor, unless the settings name it, the variable's.
    with forges.serve("github", tmp_path / "other") as other:
        know(api, other.settings)
        project = tmp_path / "second"
        project.mkdir()
        session = work(api, clone(other, project))
        assert api.get(f"{session}/pull-request")["account"] is None
        monkeypatch.setenv("GITHUB_TOKEN", "wrong")
        proposal = api.get(f"{session}/pull-request")
        assert "This one is from the variable GITHUB_TOKEN" in proposal["problem"]
        monkeypatch.setenv("GITHUB_TOKEN", other.add("bea"))
        assert api.get(f"{session}/pull-request")["account"] == "bea"
        assert all(token not in str(headers) for _, _, headers in other.seen)


def test_what_a_workspace_lacks_is_said(api: Api, github: Standin, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "greeting.txt").write_text("hello\n")
    session = work(api, plain)
    assert "is not a git repository" in problem(api.http.get(f"{session}/pull-request"))
    project = clone(github, tmp_path)
    session = work(api, project)
    git(project, "remote", "set-url", "origin", "https://code.example.org/octo/greeter")
    unknown = problem(opening(api, session))
    assert "code.example.org is neither GitHub nor GitLab by its name" in unknown
    assert '[forges."code.example.org"]' in unknown
    git(project, "remote", "set-url", "origin", str(github.bare))
    assert "the remote is not on a forge" in problem(opening(api, session))
    git(project, "remote", "remove", "origin")
    assert "has no remote: add one with git remote add" in problem(api.http.get(f"{session}/pull-request"))
    assert github.seen == []


def test_a_token_that_may_not_do_it_changes_nothing(api: Api, forge: Standin, tmp_path: Path) -> None:
    project = clone(forge, tmp_path)
    session = work(api, project)

    def give(token: str) -> None:
        api.post(f"{session}/pull-request/token", token=token)

    give(forge.add("stranger", access="none"))
    assert "has no repository octo/greeter, or the token may not see it" in problem(opening(api, session))
    give(forge.add("reader", access="read"))
    assert "reader may not push to octo/greeter" in problem(api.http.get(f"{session}/pull-request"))
    assert "fork it, and make your fork the remote" in problem(opening(api, session))
    assert git(project, "branch", "--format=%(refname:short)") == "main\n"
    give(forge.add("ada", scope="read"))
    refused = problem(opening(api, session))
    assert "the token may not push to this repository" in refused
    assert "denied to ada" in refused
    assert (forge.requests, git(forge.bare, "branch", "--format=%(refname:short)")) == ([], "main\n")
    give(forge.add("bea"))
    assert "octo/greeter on" in problem(opening(api, session, base="elsewhere"))
    assert forge.requests == []
    assert opening(api, session, base="").json()["created"] is True


def test_nothing_to_commit_and_a_branch_of_others(api: Api, forge: Standin, tmp_path: Path) -> None:
    project = clone(forge, tmp_path)
    token = forge.add("ada")
    idle = work(api, project, "true")
    assert "the session has no changes" in problem(api.http.get(f"{idle}/pull-request"))
    session = work(api, project)
    api.post(f"{session}/pull-request/token", token=token)
    branch = f"handiwork/{session.rpartition('/')[2]}"
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(forge.bare), str(other))
    (other / "theirs").write_text("1\n")
    git(other, "add", "-A")
    git(other, "commit", "-qm", "theirs")
    git(other, "push", "-q", "origin", f"HEAD:{branch}")
    theirs = forge.branch(branch)
    assert f"the remote has a branch {branch} with other commits" in problem(opening(api, session))
    assert (forge.branch(branch), forge.requests) == (theirs, [])
    git(other, "push", "-q", "origin", f":{branch}")
    assert opening(api, session).json()["created"] is True

    api.post(f"{session}/apply", resolutions={})
    git(project, "add", "-A")
    git(project, "commit", "-qm", "mine")
    assert "has all changes of the session, so no branch was made" in problem(opening(api, session))
    (warning,) = api.get(f"{session}/pull-request")["warnings"]
    assert warning.startswith("HEAD has a commit that origin does not have")


def test_later_changes_join_the_open_request(api: Api, forge: Standin, tmp_path: Path) -> None:
    project = clone(forge, tmp_path)
    more = "sed -i s/hallo/moin/ greeting.txt; rm 'new file'; echo 1 > third"
    replies = [bash(CHANGE), finish(), bash(more), finish("North."), bash("echo 2 > third"), finish("Third.")]
    session = api.create(*replies, workspace=str(project), title="Greet in German")

    def go_on(message: str, end: str) -> None:
        api.post(f"{session}/messages", content=message)
        until(lambda: api.get(session)["outputs"] == {"message": end})

    api.until(session, "finished")
    branch = f"handiwork/{session.rpartition('/')[2]}"
    api.post(f"{session}/pull-request/token", token=forge.add("ada"))
    opened = opening(api, session).json()
    first = forge.branch(branch)

    # Meanwhile the user goes on: the branch has this commit too, as it has what the changes are made from.
    (project / "mine").write_text("1\n")
    git(project, "add", "mine")
    git(project, "commit", "-qm", "mine")
    mine = git(project, "rev-parse", "HEAD").strip()
    go_on("greet as in the north", "North.")
    assert opening(api, session, title="Greet as in the north").json() == {**opened, "created": False}
    second = forge.branch(branch)
    assert (
        git(forge.bare, "log", "-1", "--format=%an: %s, %P", branch) == f"Ada: Greet as in the north, {first} {mine}\n"
    )
    assert git(forge.bare, "ls-tree", "--name-only", branch).split() == ["greeting.txt", "mine", "third"]
    assert git(forge.bare, "show", f"{branch}:greeting.txt") == "moin\n"
    assert git(project, "branch", "--format=%(refname:short) %(objectname)").split("\n")[0] == f"{branch} {second}"
    assert opening(api, session).json()["created"] is False
    assert forge.branch(branch) == second

    # A commit of others on the branch stays: the session's files would undo it.
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", "-b", branch, str(forge.bare), str(other))
    (other / "greeting.txt").write_text("moin moin\n")
    git(other, "commit", "-qam", "theirs")
    git(other, "push", "-q", "origin", f"HEAD:{branch}")
    theirs = forge.branch(branch)
    go_on("and the third file", "Third.")
    assert f"does not have the commit {theirs}" in problem(opening(api, session))
    git(project, "fetch", "-q", str(forge.bare), branch)
    refused = problem(opening(api, session))
    assert f"the commit {theirs} is not of the session" in refused
    assert f"merge your branch {branch}-2 into it yourself" in refused
    assert (forge.branch(branch), len(forge.requests)) == (theirs, 1)
    assert git(project, "show", f"{branch}-2:third") == "2\n"


def test_a_request_that_broke_off_is_repeated(api: Api, forge: Standin, tmp_path: Path) -> None:
    session = work(api, clone(forge, tmp_path))
    api.post(f"{session}/pull-request/token", token=forge.add("ada"))
    forge.broken["POST"] = 502
    assert "answers with 502, not as its API does" in problem(opening(api, session), 503)
    pushed = forge.branch(f"handiwork/{session.rpartition('/')[2]}")
    assert pushed
    forge.broken.clear()
    assert opening(api, session).json()["created"] is True
    assert forge.branch(f"handiwork/{session.rpartition('/')[2]}") == pushed
    forge.requests.clear()
    forge.broken["GET"] = 301
    assert "not as its API does" in problem(opening(api, session), 503)


def test_a_forge_that_does_not_answer_is_named(api: Api, tmp_path: Path) -> None:
    with forges.serve("github", tmp_path / "forge") as forge:
        know(api, forge.settings)
        session = work(api, clone(forge, tmp_path))
        api.post(f"{session}/pull-request/token", token=forge.add("ada"))
    assert f"{forge.host} does not answer" in problem(opening(api, session), 503)


def test_a_remote_by_ssh_is_pushed_to_over_http_and_the_repository_s_settings_run_nothing(
    api: Api, github: Standin, tmp_path: Path
) -> None:
    know(api, f'[forges."git.example.org"]\nkind = "github"\nurl = "{github.url}"\n')
    project = clone(github, tmp_path)
    session = work(api, project)
    ran = tmp_path / "ran"
    git(project, "remote", "set-url", "origin", "git@git.example.org:octo/greeter.git")
    for name, value in {
        "core.sshCommand": f"touch {ran}",
        "core.askPass": f"touch {ran}",
        "core.fsmonitor": f"touch {ran}",
        "credential.helper": f"!touch {ran}",
        "http.proxy": "http://127.0.0.1:1",
        "remote.origin.receivepack": f"touch {ran};",
        "url.http://127.0.0.1:1/.insteadOf": github.url,
        "push.gpgSign": "true",
        "gpg.program": f"touch {ran}",
    }.items():
        git(project, "config", name, value)
    for hook in ("pre-push", "reference-transaction", "post-commit"):
        file = project / ".git/hooks" / hook
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\ntouch {ran}\n")
        file.chmod(0o755)
    api.post(f"{session}/pull-request/token", token=github.add("ada"))
    opened = opening(api, session).json()
    assert opened["created"] is True
    assert git(github.bare, "show", f"{opened['branch']}:greeting.txt") == "hallo\n"
    assert not ran.exists()


def test_a_shallow_clone_and_the_agent_s_own_commits(api: Api, github: Standin, tmp_path: Path) -> None:
    first = clone(github, tmp_path)
    (first / "more").write_text("1\n")
    git(first, "add", "-A")
    git(first, "commit", "-qm", "second")
    git(first, "push", "-q", str(github.bare), "main")
    project = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{github.bare}", str(project))
    git(project, "remote", "set-url", "origin", github.address)
    more = "echo 1 >> more; git commit -qam third; echo 2 >> more; head -c 3000000 /dev/urandom > large"
    session = work(api, project, more)
    api.post(f"{session}/pull-request/token", token=github.add("ada"))
    answer = opening(api, session)
    assert answer.status_code == 200, answer.text
    opened = answer.json()
    subjects = git(github.bare, "log", "--format=%s", opened["branch"])
    assert subjects == "Greet in German\nthird\nsecond\nfirst\n"
    assert git(github.bare, "show", f"{opened['branch']}:more") == "1\n1\n2\n"
    assert git(github.bare, "cat-file", "-s", f"{opened['branch']}:large") == "3000000\n"


CAPTURE = """#!/bin/sh
for process in /proc/[0-9]*; do tr '\\0' ' ' < $process/cmdline; echo; done > {out}/arguments 2> /dev/null
cp -r {tmp}/handiwork-files-* {out}/
"""


def test_the_token_is_in_no_log_argument_or_repository(tmp_path: Path) -> None:
    """While the forge receives the push, its hook copies the arguments of all processes and the pushing repository."""
    out, temporary = tmp_path / "out", tmp_path / "tmp"
    out.mkdir()
    temporary.mkdir()
    program = Program(tmp_path)
    program.environment |= {"TMPDIR": str(temporary), "GIT_TRACE_CURL": str(out / "trace"), "GIT_TRACE": "1"}
    with ExitStack() as stack:
        forge = stack.enter_context(forges.serve("github", tmp_path / "forge"))
        stack.callback(program.close)
        hook = forge.bare / "hooks/pre-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(CAPTURE.format(out=out, tmp=temporary))
        hook.chmod(0o755)
        settings = tmp_path / "config/handiwork/config.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(forge.settings)
        (tmp_path / "cloned").mkdir()
        project = clone(forge, tmp_path / "cloned")
        token, wrong = forge.add("ada"), "ghp_wrong0123456789abcdef"
        errors = stack.enter_context((out / "server").open("w"))
        command = program.command("serve", "--port", "0")
        process = subprocess.Popen(
            command, env=program.environment, stdout=subprocess.PIPE, stderr=errors, text=True, bufsize=1
        )
        program.process = process
        assert process.stdout is not None
        url, _, access = process.stdout.readline().strip().partition("/?token=")
        api = Api(url, tmp_path, access)
        stack.callback(api.close)
        session = work(api, project)
        problem(api.http.post(f"{session}/pull-request/token", json={"token": wrong}))
        taken = api.post(f"{session}/pull-request/token", token=token, keep=True)
        opened = opening(api, session).json()
        assert opened["created"] is True
    assert f"push --porcelain --no-verify --no-follow-tags {forge.address}" in (out / "arguments").read_text()
    (alternates,) = out.glob("handiwork-files-*/objects/info/alternates")
    assert not (temporary / alternates.parents[2].name).exists()
    basic = base64.b64encode(f"x-access-token:{token}".encode())
    for secret in (token.encode(), basic, wrong.encode()):
        holders = [file for file in tmp_path.rglob("*") if file.is_file() and secret in file.read_bytes()]
        assert holders == ([Path(taken["file"])] if secret == token.encode() else [])


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("https://github.com/octo/greeter.git", ("github", "https://github.com", "octo/greeter")),
        ("https://me:secret@github.com/octo/greeter", ("github", "https://github.com", "octo/greeter")),
        ("http://github.com/octo/greeter/", ("github", "https://github.com", "octo/greeter")),
        ("git@github.com:octo/greeter.git", ("github", "https://github.com", "octo/greeter")),
        ("ssh://git@ssh.github.com:443/octo/greeter.git", ("github", "https://github.com", "octo/greeter")),
        ("git@github-work:octo/greeter.git", ("github", "https://github.com", "octo/greeter")),
        ("ssh://git@gitlab.com:2222/a/b/c.git", ("gitlab", "https://gitlab.com", "a/b/c")),
        ("https://gitlab.example.org:8443/a/b.git", ("gitlab", "https://gitlab.example.org:8443", "a/b")),
        ("git@github-enterprise.example.org:a/b", ("github", "https://github-enterprise.example.org", "a/b")),
        ("git@code.example.org:a/b.git", ("gitlab", "https://code.example.org/gitlab", "a/b")),
        ("https://code.example.org/gitlab/a/b.git", ("gitlab", "https://code.example.org/gitlab", "a/b")),
    ],
)
def test_an_address_names_forge_and_repository(address: str, expected: tuple[str, str, str]) -> None:
    known = {
        "code.example.org": ForgeSettings(kind="gitlab", url="https://code.example.org/gitlab"),
        "github-work": ForgeSettings(kind="github", url="https://github.com"),
    }
    target = target_of(address, known)
    assert (target.kind, target.web, target.path) == expected
    assert target.own == (target.host in ("github.com", "gitlab.com", *known))


@pytest.mark.parametrize(
    "address",
    [
        *("/srv/git/a.git", "file:///srv/a.git", "../a", "https://github.com/octo", "https://github.com/a/b/c"),
        *("https://github.com/../b", "https://example.org/a/b", "git@example.org:a/b", "https://[::1]/a/b"),
        *("https://github.com/a b/c", "https://github.com/a/b?x", "ext::sh -c touch% x", "https://gitlab.com/a/-b"),
        "git@github-work:octo/greeter.git",
    ],
)
def test_an_address_that_names_none(address: str) -> None:
    with pytest.raises(UnknownForgeError):
        target_of(address, {})


def test_the_apis_of_the_public_forges() -> None:
    found = {
        host: target_of(f"https://{host}/a/b", {}).forge("t").api
        for host in ("github.com", "gitlab.com", "acme.ghe.com", "github.acme.org")
    }
    assert found == {
        "github.com": "https://api.github.com",
        "gitlab.com": "https://gitlab.com/api/v4",
        "acme.ghe.com": "https://api.acme.ghe.com",
        "github.acme.org": "https://github.acme.org/api/v3",
    }

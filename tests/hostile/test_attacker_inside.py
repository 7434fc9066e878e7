"""A program that runs inside a sandbox, as the agent's commands do, attacks the host, the user and the log."""

from __future__ import annotations

import errno
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from handiwork.errors import SandboxError, WorkspaceError
from handiwork.events.action import CmdRunAction, IPythonRunCellAction, MessageAction
from handiwork.events.observation import AgentDelegateObservation, ErrorObservation
from handiwork.llm.scripted.script import Reply
from handiwork.log.store import Store
from handiwork.session.config import SessionConfig
from handiwork.session.open import reopen
from handiwork.session.time_travel.best_of import BestOfRequest, run_attempts
from handiwork.session.time_travel.fork import fork
from handiwork.settings import MCPServerSettings
from handiwork.workspace.apply import apply
from handiwork.workspace.changes import changes_of_overlay, changes_of_tree
from handiwork.workspace.copy import make_copy
from handiwork.workspace.in_place import recover
from handiwork.workspace.patch import unified_diff
from handiwork.workspace.snapshots.object_store import Objects
from handiwork.workspace.snapshots.store import Snapshots, WritableDir
from tests.hostile.asking import asking, embedded_repository, repository
from tests.hostile.git_plants import EVIL, TRANSPORTS, make_evil, partial_clone, run_script, use_git_everywhere
from tests.hostile.probes import CALLS, SERVER, SOCKETS, told
from tests.hostile.swapping import SECRET, holders, make_project, swapped
from tests.sandbox.helpers import git, new_box, output, run
from tests.session.bench import bash, call, calls, finish

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
CONFIG = "git -C {0} config core.fsmonitor $PWD/evil.sh; cp evil.sh {0}/.git/hooks/pre-commit"
PLANTED = {
    "git init": "git init -q new1; " + CONFIG.format("new1"),
    "a clone": "git clone -q . new2; " + CONFIG.format("new2"),
    "a move": "git init -q /tmp/new3; cp evil.sh /tmp/new3/.git/hooks/pre-commit; mv /tmp/new3 new3; "
    + CONFIG.format("new3"),
    "an archive": "git init -q /tmp/new4; cp evil.sh /tmp/new4/.git/hooks/pre-commit; "
    "tar -C /tmp -c new4 | tar -x; " + CONFIG.format("new4"),
    "a gitfile": "git init -q --separate-git-dir=store5 new5; git -C new5 config core.fsmonitor $PWD/evil.sh",
    "a link": "git init -q new6; mv new6/.git store6; ln -s ../store6 new6/.git; "
    "git -C new6 config core.fsmonitor $PWD/evil.sh",
    "a bare repository": "git init -q --bare new7; git -C new7 config core.bare false; "
    "git -C new7 config core.worktree ..; git -C new7 config core.fsmonitor $PWD/evil.sh",
    "a file that is included": "git init -q new8; echo '[core]fsmonitor='$PWD/evil.sh > new8/included; "
    "git -C new8 config include.path ../included",
    "a common directory": "git init -q new9; cp -r new9/.git new9/common; rm new9/common/HEAD; "
    "git config -f new9/common/config core.fsmonitor $PWD/evil.sh; echo ../common > new9/.git/commondir",
    "settings of a worktree": "git init -q new10; git -C new10 config extensions.worktreeConfig true; "
    "git -C new10 config --worktree core.fsmonitor $PWD/evil.sh",
    "a filter": "git init -q new11; git -C new11 config filter.x.clean $PWD/evil.sh; "
    "echo '* filter=x' > new11/.gitattributes",
    "no HEAD yet": "mkdir -p new12/.git/hooks; cp evil.sh new12/.git/hooks/pre-commit; "
    "echo '[core]fsmonitor='$PWD/evil.sh > new12/.git/config",
    "a job in the background": "(git init -q new13; " + CONFIG.format("new13") + ") & wait",
    "one that was there": "cp evil.sh old/.git/hooks/pre-commit; git -C old config core.fsmonitor $PWD/evil.sh",
    "one that was there, put aside": "mv old gone; git init -q old; " + CONFIG.format("old"),
    "a bare one that was there": "git -C fixtures/bare.git config core.bare false; "
    "git -C fixtures/bare.git config core.worktree ..; "
    "git -C fixtures/bare.git config core.fsmonitor $PWD/evil.sh",
    "one deep down": "mkdir -p a/b/c/d; git init -q a/b/c/d/new14; " + CONFIG.format("a/b/c/d/new14"),
}


async def test_no_repository_that_the_agent_makes_or_finds_in_place_runs_a_program_of_the_users_git(
    tmp_path: Path,
) -> None:
    async with new_box(tmp_path) as box:
        witness, project = tmp_path / "witness", box.project
        make_evil(project, witness)
        run_script(project, "git init -q old; mkdir fixtures; git init -q --bare fixtures/bare.git")
        git(project, "add", EVIL)
        git(project, "commit", "-qm", "first")
        sandbox = box.in_place()
        await sandbox.start()
        out = f"git init -q --separate-git-dir=/tmp/out out; git -C out config core.fsmonitor {project}/evil.sh; "
        out += f"echo gitdir: {box.session_dir}/tmp/out > out/.git"
        for plant in (*PLANTED.values(), out):
            await run(sandbox, plant)
        use_git_everywhere(project)
        assert not witness.exists(), witness.read_text()
        await sandbox.close()
        use_git_everywhere(project)
        assert not witness.exists()
        assert (project / "new1/.git/HEAD").exists()


def test_each_of_these_would_run_a_program(tmp_path: Path) -> None:
    for number, (name, plant) in enumerate(PLANTED.items()):
        project, witness = tmp_path / str(number), tmp_path / f"{number}.witness"
        project.mkdir()
        make_evil(project, witness)
        run_script(project, "git init -q; git init -q old; mkdir fixtures; git init -q --bare fixtures/bare.git")
        subprocess.run(["sh", "-c", plant], cwd=project, check=False, capture_output=True)
        if name == "no HEAD yet":
            git(project / "new12", "init", "-q")
        use_git_everywhere(project)
        assert witness.exists(), name


async def test_a_partial_clone_made_in_place_runs_no_program_of_the_user(tmp_path: Path) -> None:
    async with new_box(tmp_path) as box:
        witness, project = tmp_path / "witness", box.project
        evil = make_evil(project, witness)
        sandbox = box.in_place()
        await sandbox.start()
        for transport in TRANSPORTS:
            await run(sandbox, partial_clone(f"{project}/{transport}", transport, str(evil)))
            assert (project / transport / ".git/config").exists()
        await sandbox.close()
        make_copy(project, tmp_path / "next")
        use_git_everywhere(project)
        assert not witness.exists(), witness.read_text()


KILLED = """
import asyncio, os, shutil, signal, sys
from pathlib import Path
from tests.hostile.git_plants import make_evil
from tests.sandbox.helpers import new_box, run

async def main() -> None:
    async with new_box(Path(sys.argv[1])) as box:
        shutil.rmtree(box.project / ".git")
        make_evil(box.project, Path(sys.argv[2]))
        sandbox = box.in_place()
        await sandbox.start()
        working = asyncio.create_task(run(sandbox, sys.argv[3]))
        while not (box.project / "done").exists():
            await asyncio.sleep(0.05)
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def test_what_a_killed_session_left_in_place_is_made_harmless_by_the_next_run(tmp_path: Path) -> None:
    project, witness = tmp_path / "me/project", tmp_path / "witness"
    plant = f"git init -q new; {CONFIG.format('new')}; touch done; sleep 60"
    (tmp_path / "me").mkdir()
    arguments = [sys.executable, "-c", KILLED, str(tmp_path), str(witness), plant]
    assert subprocess.run(arguments, cwd=ROOT, timeout=60, check=False).returncode == -signal.SIGKILL
    assert list((project / ".git").iterdir()) == []
    make_copy(project, tmp_path / "sessions/two")
    recover(tmp_path, project)
    assert not (project / ".git").exists()
    use_git_everywhere(project)
    assert not witness.exists(), witness.read_text()
    assert (project / "new/.git/HEAD").exists()


SENDS = "touch sent; exit 1"
"""What an attacker has run that must not run: it leaves a file."""


async def test_an_edit_that_configures_a_program_is_asked_about_where_something_can_be_sent(tmp_path: Path) -> None:
    workspace = repository(tmp_path / "project")
    configure = call("edit", path=".git/config", old="bare", new=f'fsmonitor = "{SENDS}"\n\tbare')
    async with asking(tmp_path, workspace, configure, bash("git status"), finish(), online=True) as session:
        assert await session.run() == ".git/config"
        assert "can decide which programs run" in await session.why()
        assert await session.answer_yes() == "git status"
        assert not await session.exists("sent")


@pytest.mark.parametrize("command", ["git status", "git log -p"])
async def test_git_runs_nothing_that_its_repository_names_unasked_where_something_can_be_sent(
    tmp_path: Path, command: str
) -> None:
    workspace = embedded_repository(tmp_path / "project", SENDS)
    async with asking(tmp_path, workspace, bash(command), finish(), online=True) as session:
        assert await session.run() == command
        assert not await session.exists("sent")
        assert await session.answer_yes() == ""
        assert await session.exists("sent"), "the attack is a real one: it is the question that held it back"


async def test_a_function_made_before_a_host_was_allowed_is_not_taken_for_the_program_of_its_name(
    tmp_path: Path,
) -> None:
    workspace = repository(tmp_path / "project")
    define = bash("ls() { touch sent; }")
    async with asking(tmp_path, workspace, define, Reply(content="More?"), bash("ls"), online=False) as session:
        assert await session.run() == ""
        await session.allow_host()
        assert await session.run("go on") == "ls"
        assert "Earlier commands, which ran unasked" in await session.why()
        assert not await session.exists("sent")


async def test_a_program_of_the_repository_is_not_taken_for_a_reader_of_its_name(tmp_path: Path) -> None:
    workspace = repository(tmp_path / "project")
    programs = workspace / "venv/bin"
    programs.mkdir(parents=True)
    (workspace / "venv/pyvenv.cfg").write_text("home = /usr/bin\n")
    (programs / "cat").write_text("#!/bin/sh\ntouch sent\n")
    (programs / "cat").chmod(0o755)
    async with asking(tmp_path, workspace, bash("cat a.txt"), finish(), online=True) as session:
        assert await session.run() == "cat a.txt"
        assert not await session.exists("sent")
        assert await session.answer_yes() == ""
        assert await session.exists("sent"), "the attack is a real one: it is the question that held it back"


async def test_an_edit_goes_through_no_link_to_a_hidden_file(tmp_path: Path) -> None:
    workspace = repository(tmp_path / "project")
    (workspace / "notes").symlink_to(".git/config")
    (workspace / "folder").symlink_to(".git")
    edits = [call("edit", path=path, old="bare", new="x") for path in ("notes", "folder/config")]
    async with asking(tmp_path, workspace, *edits, finish(), online=True) as session:
        assert await session.run() == ""
        refused = [event.content for event in await session.opened.log.read() if isinstance(event, ErrorObservation)]
        assert len(refused) == 2, refused
        assert all("is a link to the hidden file" in text for text in refused), refused


async def test_programs_in_a_virtual_environment_of_the_workspace_stand_for_none_of_the_platforms(
    tmp_path: Path,
) -> None:
    workspace = repository(tmp_path / "project")
    programs = workspace / "venv/bin"
    programs.mkdir(parents=True)
    (workspace / "venv/pyvenv.cfg").write_text("home = /usr/bin\n")
    for name in ("bash", "python", "python3", "a-server"):
        (programs / name).write_text(f'#!/bin/sh\necho {name} >> {workspace}/sent\nexec /bin/{name} "$@"\n')
        (programs / name).chmod(0o755)
    faulty = calls(("write", {"path": "x.py", "content": "x = = 1\n"}))
    look = calls(("mcp_call", {"server": "mine", "tool": "look"}))
    servers = {"mine": MCPServerSettings(command="a-server")}
    replies = (bash("cat a.txt"), faulty, look, finish())
    async with asking(tmp_path, workspace, *replies, online=True, confirmation="never", mcp=servers) as session:
        assert await session.run() == ""
        assert not await session.exists("sent")
        (failed,) = [event for event in await session.opened.log.read() if getattr(event, "state", "") == "failed"]
        assert "a-server" in str(failed)


async def test_a_virtual_environment_mounts_no_system_and_no_home(tmp_path: Path) -> None:
    workspace, system = repository(tmp_path / "project"), tmp_path / "host"
    for path in ("bin/python3", "lib/python3.11/os.py", "home/me/key"):
        (system / path).parent.mkdir(parents=True, exist_ok=True)
        (system / path).write_text("private\n")
    (workspace / "venv").mkdir()
    (workspace / "venv/pyvenv.cfg").write_text(f"home = {system}/bin\n")
    async with asking(tmp_path, workspace, bash(f"cat {system}/home/me/key"), finish()) as session:
        assert await session.run() == ""
        assert "No such file" in (await session.outputs())[0]


async def test_a_relative_path_reaches_no_hidden_folder_through_the_shells_directory(tmp_path: Path) -> None:
    workspace = repository(tmp_path / "project")
    replies = [
        bash("mkdir -p .secret; cd .secret"),
        calls(("write", {"path": "a.txt", "content": "x"})),
        calls(("write", {"path": f"{workspace}/b.txt", "content": "x"})),
        bash("cd /tmp"),
        calls(("write", {"path": "c.txt", "content": "x"})),
    ]
    async with asking(tmp_path, workspace, *replies, finish(), confirmation="never") as session:
        assert await session.run() == ""
        written = [f"{workspace}/.secret/a.txt", f"{workspace}/b.txt", "/tmp/c.txt"]
        assert [await session.exists(path) for path in written] == [False, True, False]
        answers = [event for event in await session.opened.log.read() if isinstance(event, ErrorObservation)]
        assert [answer.error_id for answer in answers] == ["not_named"] * 2


async def test_a_delegation_of_the_model_runs_no_python_of_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, witness = repository(tmp_path / "project"), tmp_path / "witness"
    (workspace / "helper.py").write_text(f"open({str(witness)!r}, 'w').close()\n")
    (workspace / "helper.yaml").write_text("token: abc\n")
    monkeypatch.chdir(workspace)
    names = ("helper.py:Helper", f"{workspace}/helper.py:Helper", "helper:Helper", f"{workspace}/helper.yaml")
    nodes = [{"name": "a/work", "operation": "delegate", "delegate": "helper.py:Helper"}]
    swarm = {"graph": {"nodes": nodes}}
    delegations = [
        *(call("delegate", task="help", agent=name) for name in names),
        call("delegate", task="help", agent="SwarmAgent", inputs=swarm),
    ]
    async with asking(tmp_path, workspace, *delegations, finish(), confirmation="never") as session:
        assert await session.run() == ""
        events = await session.opened.log.read()
    assert not witness.exists()
    assert not any(isinstance(event, AgentDelegateObservation) for event in events)
    assert "token" not in " ".join(e.content for e in events if isinstance(e, ErrorObservation | MessageAction))


async def test_a_variable_with_a_secret_cannot_be_made_to_stay_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "k3y-of-th3-us3r")
    monkeypatch.setenv("secret", "an0ther-s3cret")
    replies = [
        bash("readonly TOKEN; unset() { :; }; sh -c 'echo ${TOKEN:+set}'; echo $secret"),
        bash("env | grep -c '^TOKEN=\\|^secret='"),
        call("bash", command="env | grep -c '^TOKEN=\\|^secret=' > said", background=True),
        bash("until [ -s said ]; do :; done; cat said"),
        bash("sh -c 'echo ${TOKEN:+set again}'"),
        bash("env | grep -c '^TOKEN=\\|^secret='"),
    ]
    config = {"secrets": ("TOKEN", "secret"), "confirmation": "never"}
    async with asking(tmp_path, repository(tmp_path / "project"), *replies, finish(), **config) as session:
        assert await session.run() == ""
        outputs = [output.partition("[job1 ended")[0].strip() for output in await session.outputs()]
    assert outputs == ["set\n[secret secret]", "0", "", "0", "set again", "0"]


@pytest.mark.parametrize("secret", ["k3y-of-th3-us3r", 'it\'s "a" $ecret\\ with `all`\nof\tit'])
async def test_what_a_shell_keeps_of_a_secret_is_in_no_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    monkeypatch.setenv("TOKEN", secret)
    keep = bash('export COPY=$TOKEN; alias copied="$TOKEN"; declare -ax LIST=("$TOKEN"); export KEPT=yes; touch new')
    config = {"secrets": ("TOKEN",), "confirmation": "never"}
    async with asking(tmp_path, repository(tmp_path / "project"), keep, finish(), **config) as session:
        assert await session.run() == ""
        log = session.opened.log
        forked = await fork(session.store, tmp_path / "data", log, await log.head(), "both")
    (folder,) = (tmp_path / "data/snapshots").glob("files")
    states = [path for path in folder.rglob("*") if path.is_file() and b"KEPT" in path.read_bytes()]
    assert states
    assert all(path.stat().st_mode & 0o077 == 0 for path in states)
    for path in states:
        text = path.read_text()
        assert "[secret TOKEN]" in text
        assert not [secret[at : at + 6] for at in range(len(secret) - 5) if secret[at : at + 6] in text]
    async with Store.open(tmp_path / "data") as store:
        opened = await reopen(store, tmp_path / "data", forked.id, lambda _: None)
        sandbox = await opened.sandbox()
        seen = await sandbox.execute(CmdRunAction(command="echo $KEPT $COPY"))
        await opened.close()
    assert seen.content.strip() == "yes [secret TOKEN]"


async def test_a_candidate_passes_by_nothing_but_its_changes(tmp_path: Path) -> None:
    workspace = repository(tmp_path / "project")
    (workspace / "answers.py").write_text("def answer(): return 41\n")
    (workspace / "built").write_text("of the user\n")
    (workspace / ".gitignore").write_text("build/\nbuilt\n__pycache__/\n")
    check = "python3 -c 'import answers; assert answers.answer() == 42'"
    forge = f"""
mkdir -p __pycache__ build && cat > /tmp/forge.py <<'E'
import pathlib, py_compile, sys
pathlib.Path("/tmp/good.py").write_text("def answer(): return 42")
py_compile.compile("/tmp/good.py", f"__pycache__/answers.{{sys.implementation.cache_tag}}.pyc",
                   invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
E
python3 /tmp/forge.py && {check} && touch build/passed ~/passed forged"""
    honest = "echo 'def answer(): return 42' > answers.py; mkdir new; echo x > new/file"
    models: list[tuple[str, str | None]] = []
    for name, command in (("forging", forge), ("honest", honest)):
        script = tmp_path / f"{name}.jsonl"
        script.write_text("".join(f"{reply.model_dump_json()}\n" for reply in (bash(command), finish())))
        models.append((f"scripted:{script}", None))
    config = SessionConfig(agent="CodeActAgent", model=models[0][0], workspace=str(workspace))
    test = f"ls -d built forged build/passed ~/passed new/file 2>/dev/null; touch new/own answers.py; {check}"
    async with Store.open(tmp_path / "data") as store:
        contest = BestOfRequest("make the answer 42", test, 2, models, config)
        _, candidates = await run_attempts(store, tmp_path / "data", contest, lambda _: None)
    best, forged = candidates
    assert (best.model, best.passed, best.output.split()) == (models[1][0], True, ["built", "new/file"])
    assert (forged.model, forged.passed, forged.output.split()[:2]) == (models[0][0], False, ["built", "forged"])


HELD = {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK}
IMPORTED = (
    "import os; os.path.isdir('/proc/self') and open('/tmp/imported', 'a').write(f'{os.getpid()} {__name__}\\n')\n"
)


async def test_only_sockets_that_the_network_namespace_holds_can_be_made(tmp_path: Path) -> None:
    async with new_box(tmp_path) as box:
        sandbox = box.make()
        await sandbox.start()
        answers = await told(sandbox, SOCKETS)
        calls = await told(sandbox, CALLS)
    assert {int(family) for family, (made, _) in answers.items() if made is None} == HELD
    others = {number for family, told in answers.items() for number in told if int(family) not in HELD}
    assert others == {errno.EAFNOSUPPORT}
    assert set(calls.values()) == {"Operation not permitted"}


async def test_no_program_reads_or_writes_the_server_or_its_descriptors(tmp_path: Path) -> None:
    async with new_box(tmp_path) as box:
        sandbox = box.make()
        await sandbox.start()
        answers = await told(sandbox, SERVER)
        cell = await sandbox.execute(IPythonRunCellAction(code="open('/proc/1/mem', 'r+b')", timeout=60))
        own = await output(sandbox, "head -c 0 /proc/self/mem && head -c 4 /proc/$$/environ > /tmp/own && echo own")
    assert set(answers.values()) == {"Permission denied"}, answers
    assert "PermissionError" in cell.text
    assert own == "own"


async def test_the_server_imports_nothing_that_the_agent_can_write(tmp_path: Path) -> None:
    async with new_box(tmp_path) as box:
        sandbox = box.make()
        await sandbox.start()
        site = "$(python3 -c 'import site; print(site.getusersitepackages())')"
        folders = f". /tmp ~ {site} ~/.local/lib/python3.11/site-packages"
        names = "sitecustomize usercustomize json asyncio uvicorn inside base64 playwright"
        plant = (
            f'for folder in {folders}; do mkdir -p "$folder"; for name in {names}; do cp /tmp/it "$folder/$name.py"; '
        )
        await output(
            sandbox,
            f"cat > /tmp/it <<'END'\n{IMPORTED}END\n{plant}done; done; echo 'export PYTHONPATH=/tmp' > ~/.bashrc",
        )
        await sandbox.start()
        await output(sandbox, "python3 -c 'import json'")
        await sandbox.execute(IPythonRunCellAction(code="1 + 1", timeout=60))
        imported = await output(sandbox, "cat /tmp/imported")
    assert not [line for line in imported.splitlines() if line.startswith("1 ")]


def test_files_swapped_for_links_while_a_workspace_is_copied_copy_no_file_of_the_host(tmp_path: Path) -> None:
    project, secret = make_project(tmp_path)
    with swapped(project, secret):
        for number in range(6):
            copy = make_copy(project, tmp_path / f"session{number}")
            assert holders(copy.base) == []


def test_files_swapped_for_links_while_they_are_compared_and_kept_show_no_file_of_the_host(tmp_path: Path) -> None:
    project, secret = make_project(tmp_path)
    workspace = make_copy(project, tmp_path / "session")
    objects = Objects(tmp_path / "snapshots")
    snapshots = Snapshots(objects, {"workspace": WritableDir(project)})
    with swapped(project, secret):
        for _ in range(3):
            try:
                assert SECRET.decode() not in unified_diff(changes_of_tree(workspace, project))
                snapshots.take()
            except WorkspaceError:
                continue  # a file became another thing between two looks, and the error says so
    assert holders(objects.folder) == []


async def test_a_mounted_directory_swapped_for_a_link_mounts_nothing_of_the_host(tmp_path: Path) -> None:
    async with new_box(tmp_path) as box:
        (box.project / "big/deep").mkdir(parents=True)
        sandbox = box.make(mounts=("big/deep",))
        await sandbox.start()
        await sandbox.close()
        (tmp_path / "secret/deep").mkdir(parents=True)
        shutil.rmtree(box.project / "big")
        (box.project / "big").symlink_to(tmp_path / "secret")
        with pytest.raises(SandboxError, match=r"cannot mount .*big/deep"):
            await sandbox.start()


def test_an_apply_writes_nothing_through_directories_swapped_for_links(tmp_path: Path) -> None:
    project, secret = make_project(tmp_path)
    workspace = make_copy(project, tmp_path / "session")
    upper = tmp_path / "upper"
    for name in ("folder/new", "deep/folder/new", "deep/folder/key"):
        (upper / name).parent.mkdir(parents=True, exist_ok=True)
        (upper / name).write_text("by the agent\n")
    changes = changes_of_overlay(workspace, upper)
    with swapped(project, secret):
        for _ in range(10):
            with suppress(WorkspaceError):  # a conflict, or what says that a directory is none any more
                apply(changes, project)
    assert [(path.name, path.read_bytes()) for path in secret.iterdir()] == [("key", SECRET)]

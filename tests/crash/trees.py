"""Work on the files of sessions that is killed: snapshots, forks, and what is applied to the user's directory."""

from __future__ import annotations

import json
import subprocess
from itertools import pairwise

from handiwork.events.observation import CmdOutputObservation
from handiwork.events.record import SnapshotEvent
from handiwork.log.store import Store
from handiwork.session.storage.gc import collect
from handiwork.workspace.session_files import GIGABYTE, snapshot_store
from tests.crash.bench import FINISH, Bench, bash, handiwork, lines_of, newest, run_task, say, sessions, wait
from tests.crash.checks import Told, check_events, close_all, finish_all

CHANGE = "for name in a b c; do echo $RANDOM$RANDOM > $name; done; mkdir -p d/$RANDOM; cat a b c"


def prepare_snapshot(bench: Bench) -> None:
    bench.empty()
    for number in range(40):
        (bench.project / f"{number}.txt").write_text("x" * 1000)
    bench.script(*(bash(f"{CHANGE}; for f in *.txt; do echo {n} > $f; done") for n in range(3)), FINISH)


def work_snapshot(bench: Bench) -> int:
    code = run_task(bench, "--json")
    session = newest(bench)
    handiwork("diff", session, "--from", "8", "--to", "12")  # makes layers, which the collecting removes
    wait(_collect(bench))
    return code


async def _collect(bench: Bench) -> None:
    async with Store.open(bench.data) as store:
        await collect(store, bench.data, 20 * GIGABYTE, grace=-1)


def recover_snapshot(bench: Bench, told: Told) -> None:
    recover = [info.id for info in wait(sessions(bench.data))]
    assert recover or not told
    finish_all(bench, begun=False)
    for session in recover:
        events, state = check_events(bench.data, session, told)
        if state.last_id == 0:
            continue
        objects = snapshot_store(bench.data)
        for one, after in pairwise(events):
            if isinstance(one, SnapshotEvent):
                assert one.tree, one.problem
                layer = objects.layer(one.tree) / "workspace"
                if isinstance(after, CmdOutputObservation) and after.exit_code == 0:
                    assert after.text == "".join((layer / name).read_text() for name in "abc")
        last = next(event.id for event in reversed(events) if isinstance(event, SnapshotEvent))
        assert handiwork("fork", session, "--at", str(last)) == 0
        assert lines_of(bench, newest(bench), "a") == lines_of(bench, session, "a")


def prepare_fork(bench: Bench) -> None:
    prepare_snapshot(bench)
    assert run_task(bench, "--json") == 0
    bench.script(*(bash("true") for _ in range(3)), FINISH, bash("cat a b c >> tally"), FINISH)
    (parent,) = wait(sessions(bench.data))
    (bench.here / "parent").write_text(f"{parent.id} {parent.head}")


def work_fork(bench: Bench) -> int:
    parent, head = (bench.here / "parent").read_text().split()
    for at in ("9", head):
        for restored in ("both", "files"):
            if (code := handiwork("fork", parent, "--at", at, "--restore", restored)) != 0:
                return code
    return 0


def recover_fork(bench: Bench, told: Told) -> None:
    del told
    known = wait(sessions(bench.data))
    parent = known[-1]
    assert parent.parent is None
    for info in known[:-1]:
        assert info.parent == parent.id
        assert len(lines_of(bench, info.id, "a")) == 1
    wait(close_all(bench))
    for info in known[:-1][:1]:
        code = handiwork("resume", info.id, "--message", "go on", "--json")
        assert code == 0, f"resume of the fork {info.id}: {code}"


def prepare_apply(bench: Bench) -> None:
    bench.empty()
    for number in range(60):
        (bench.project / f"{number % 6}").mkdir(exist_ok=True)
        (bench.project / f"{number % 6}/{number}.txt").write_text(f"{number}\n" * 300)
    commands = "for f in 0/* 1/* 2/*; do echo changed >> $f; done; rm -r 3 README; mkdir -p new/deep"
    more = "for n in $(seq 40); do seq $n 999 > new/deep/$n; done; sed -i 1d second.txt"
    bench.script(bash(commands), bash(more), FINISH)
    assert run_task(bench, "--json") == 0
    with (bench.project / "second.txt").open("a") as file:
        file.write("an edit of the user's\n")
    before = tree(bench)
    bench.keep("apply-once")
    bench.load("apply-once")
    assert handiwork("apply") == 0
    after = tree(bench)
    bench.load("apply-once")
    (bench.here / "trees").write_text(json.dumps([before, after]))


def tree(bench: Bench) -> dict[str, str]:
    """Return what there is in the user's directory: of each path the mode, and of a file the content."""
    return {
        str(path.relative_to(bench.project)): f"{path.lstat().st_mode:o} {path.read_text() if path.is_file() else ''}"
        for path in bench.project.rglob("*")
        if ".git" not in path.relative_to(bench.project).parts
    }


def work_apply(bench: Bench) -> int:
    code = handiwork("apply")
    say(applied=code)
    return code


def recover_apply(bench: Bench, told: Told) -> None:
    before, after = json.loads((bench.here / "trees").read_text())
    assert handiwork("apply", "--dry-run") == 0
    found = tree(bench)
    if any(one.get("applied") == 0 for one in told):
        assert found == after, "what was applied is not there"
    assert found in (before, after), f"half applied: {differing(found, before)} and {differing(found, after)}"
    assert handiwork("apply") == 0
    assert tree(bench) == after, differing(tree(bench), after)


def differing(one: dict[str, str], other: dict[str, str]) -> str:
    names = [name for name in one.keys() | other.keys() if one.get(name) != other.get(name)]
    return f"{len(names)} paths differ ({', '.join(sorted(names)[:3])})"


def git(bench: Bench, *arguments: str) -> str:
    identity = ("-c", "user.name=A User", "-c", "user.email=user@example.org", "-c", "init.defaultBranch=main")
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=bench.project, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def prepare_commits(bench: Bench) -> None:
    bench.empty()
    git(bench, "init", "-q")
    git(bench, "add", ".")
    git(bench, "commit", "-qm", "the first")
    commit = "git -c user.name=An -c user.email=agent@example.org commit -qam"
    bench.script(bash(f"echo more >> README; {commit} one"), bash(f"rm first.txt; {commit} two"), FINISH)
    assert run_task(bench, "--json") == 0


def recover_commits(bench: Bench, told: Told) -> None:
    branch, head = f"handiwork/{newest(bench)}", git(bench, "rev-parse", "HEAD")
    if any(one.get("applied") == 0 for one in told):
        assert git(bench, "log", "--format=%s", branch).split("\n") == ["two", "one", "the first"]
    assert handiwork("apply") == 0
    assert git(bench, "log", "--format=%s", branch).split("\n") == ["two", "one", "the first"]
    git(bench, "fsck", "--strict")
    assert git(bench, "rev-parse", "HEAD") == head
    assert not (bench.project / "first.txt").exists()

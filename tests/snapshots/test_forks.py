"""A fork goes on from any event of a session, with its files and its shell as they were then."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest

from handiwork.errors import WorkspaceError
from handiwork.events.action import CmdRunAction, MessageAction
from handiwork.events.observation import ErrorObservation
from handiwork.events.record import SnapshotEvent
from handiwork.session.config import SessionError
from handiwork.session.open import changes
from handiwork.session.storage.gc import collect, make_room
from handiwork.session.storage.layout import snapshots_alone
from handiwork.session.time_travel.fork import fork
from handiwork.session.time_travel.history import changes_from_to
from handiwork.workspace.patch import unified_diff
from handiwork.workspace.session_files import snapshot_store
from tests.sandbox.conftest import namespaces_allowed
from tests.snapshots.workbench import LIST, Workbench, bash, outputs

pytestmark = pytest.mark.skipif(not namespaces_allowed(), reason="this machine allows no user namespaces")


def lengths(few: int, many: int) -> pytest.MarkDecorator:
    """Runs a test with fewer steps in test-slow, and with more in test-crash."""
    marked = pytest.param(few, marks=pytest.mark.slow), pytest.param(many, marks=pytest.mark.campaign)
    return pytest.mark.parametrize("steps", marked)


@pytest.mark.slow
async def test_a_fork_has_the_files_and_the_shell_of_its_event(bench: Workbench) -> None:
    log = await bench.ran(
        "echo one > new; rm README; rm -r src; mkdir -p src/deep; ln -s /etc/passwd link; echo mine > ~/note",
        "export COLOUR=blue; greet() { echo hello; }; set -o pipefail; cd src/deep; umask 027",
        "rm -rf ../../new ../../link ~/note; cd ~",
    )
    events = await log.read()
    first, second, third = outputs(events)
    at_second = await fork(bench.store, bench.data, log, second)
    seen = await bench.output(at_second, "pwd; echo $COLOUR; greet; set -o | grep pipefail; cat ../../new ~/note")
    assert seen.split() == [f"{bench.project}/src/deep", "blue", "hello", "pipefail", "on", "one", "mine"]
    listed = await bench.output(at_second, f"cd {bench.project}; ls; ls src; readlink link")
    assert listed.split() == ["link", "new", "src", "deep", "/etc/passwd"]
    at_first = await fork(bench.store, bench.data, log, first)
    assert (await bench.output(at_first, "pwd; echo [$COLOUR]; cat new")).split() == [str(bench.project), "[]", "one"]
    at_beginning = await fork(bench.store, bench.data, log, 2)
    assert (await bench.output(at_beginning, "ls . src")).split() == [
        ".:",
        "README",
        "src",
        "src:",
        "main.py",
        "other.py",
    ]
    at_third = await fork(bench.store, bench.data, log, third)
    assert (await bench.output(at_third, f"pwd; ls -A; ls {bench.project}")).split() == ["/home/agent", "src"]
    assert (bench.project / "README").read_text() == "this is README\n"


@pytest.mark.slow
async def test_the_conversation_of_a_fork_ends_at_its_event_and_goes_on_from_there(bench: Workbench) -> None:
    log = await bench.ran("echo one > file", "echo two > file")
    (first, _) = outputs(await log.read())
    forked = await fork(bench.store, bench.data, log, first)
    state = await bench.resumed(forked, None, "cat file; echo three >> file")
    assert state.agent_state == "finished"
    assert list(outputs(await forked.read()).values()) == ["", "one\n"]
    assert (await log.read())[:first] == (await forked.read())[:first]
    patch = unified_diff(await changes(bench.data, forked))
    assert "+one\n+three\n" in patch
    again = await fork(bench.store, bench.data, forked, await forked.head())
    assert (await bench.output(again, "cat file")).split() == ["one", "three"]


@pytest.mark.slow
async def test_an_action_that_was_not_carried_out_is_said_to_be_so(bench: Workbench) -> None:
    log = await bench.ran("echo one > file", "echo two > file")
    action = [event for event in await log.read() if isinstance(event, CmdRunAction)][1]
    forked = await fork(bench.store, bench.data, log, action.id)
    errors = [event for event in await forked.read() if isinstance(event, ErrorObservation)]
    assert [(error.cause, error.error_id) for error in errors] == [(action.id, "forked")]
    assert await bench.output(forked, "cat file") == "one\n"


@pytest.mark.slow
async def test_files_or_conversation_alone_are_restored(bench: Workbench) -> None:
    log = await bench.ran("echo one > file", "echo two > file")
    (first, second) = outputs(await log.read())
    files = await fork(bench.store, bench.data, log, first, "files")
    assert await bench.output(files, "cat file") == "one\n"
    assert second in outputs(await files.read())
    conversation = await fork(bench.store, bench.data, log, first, "conversation")
    assert await bench.output(conversation, "cat file") == "two\n"
    assert second not in outputs(await conversation.read())
    untouched = await fork(bench.store, bench.data, log, 2, "files")
    assert (await bench.output(untouched, "ls")).split() == ["README", "src"]


@pytest.mark.slow
async def test_what_changed_between_two_events(bench: Workbench) -> None:
    log = await bench.ran("echo one > file; rm README", "echo two > file; echo 1 > src/main.py", "rm file; rm -r src")
    first, second, third = outputs(await log.read())

    async def names(start: int | None, end: int | None) -> list[tuple[str, str]]:
        return [(one.path, one.kind) for one in await changes_from_to(bench.data, log, start, end)]

    assert await names(None, first) == [("README", "deleted"), ("file", "added")]
    assert await names(first, second) == [("file", "modified"), ("src/main.py", "modified")]
    assert await names(second, third) == [("file", "deleted"), ("src/main.py", "deleted"), ("src/other.py", "deleted")]
    assert await names(third, first) == [("file", "added"), ("src/main.py", "added"), ("src/other.py", "added")]
    assert await names(None, None) == [("README", "deleted"), ("src/main.py", "deleted"), ("src/other.py", "deleted")]
    with snapshots_alone(bench.data) as alone:  # a collection of the same process
        assert alone
        waiting = asyncio.create_task(names(None, first))
        await asyncio.sleep(0.2)
        assert not waiting.done()
    assert await waiting == [("README", "deleted"), ("file", "added")]


@pytest.mark.slow
async def test_a_session_without_snapshots_says_so(bench: Workbench) -> None:
    log = await bench.ran("echo one > file", snapshots=0)
    assert not any(isinstance(event, SnapshotEvent) for event in await log.read())
    with pytest.raises(Exception, match="keeps no snapshots"):
        await fork(bench.store, bench.data, log, await log.head())
    with pytest.raises(SessionError, match="has no event 999"):
        await fork(bench.store, bench.data, log, 999)


@pytest.mark.slow
async def test_a_fork_that_keeps_no_snapshots_says_so_once_it_has_acted(bench: Workbench) -> None:
    log = await bench.ran("echo one > file", snapshots=0)
    asked = next(event.id for event in await log.read() if isinstance(event, MessageAction))
    forked = await fork(bench.store, bench.data, log, asked)
    await bench.resumed(forked, "go on", "echo two > file")
    with pytest.raises(WorkspaceError, match="keeps no snapshots"):
        await fork(bench.store, bench.data, forked, await forked.head())


@pytest.mark.slow
async def test_a_step_that_changes_nothing_takes_no_snapshot(bench: Workbench) -> None:
    log = await bench.ran("echo one > file", "cat file", "ls -l > /dev/null", "touch -d 2020-01-01 file")
    events = await log.read()
    kept = [events[number + 1].id for number, event in enumerate(events) if isinstance(event, SnapshotEvent)]
    assert kept == [one for number, one in enumerate(outputs(events)) if number in (0, 3)]


@pytest.mark.slow
async def test_what_is_running_goes_on_while_snapshots_are_taken(bench: Workbench) -> None:
    cell = {"tool_calls": [{"name": "ipython", "arguments": {"code": "number = 41"}}]}
    more = {"tool_calls": [{"name": "ipython", "arguments": {"code": "number += 1; print(number)"}}]}
    serve = "(while :; do echo $((++n)) > /tmp/count; sleep 0.01; done) & sleep 0.1"
    # It may take a while on a busy machine, but not for ever.
    ask = 'old=$(cat /tmp/count); for i in {1..100}; do [ "$old" != "$(cat /tmp/count)" ] && break; sleep 0.1; done; '
    ask += '[ "$old" != "$(cat /tmp/count)" ] && jobs | grep -c Running'
    step = f"echo $RANDOM > file; {ask}"
    log = await bench.ran(serve, cell, *[step] * 5, more)
    events = await log.read()
    assert sum(isinstance(event, SnapshotEvent) for event in events) >= 5
    assert list(outputs(events).values())[1:] == ["1\n"] * 5
    assert any("42" in getattr(event, "content", "") for event in events if event.kind == "IPythonRunCellObservation")


@pytest.mark.slow
async def test_what_nothing_needs_is_collected(bench: Workbench) -> None:
    log = await bench.ran("echo one > file")
    objects = snapshot_store(bench.data)
    stray = objects.put_bytes(b"of a snapshot that was never recorded")
    place = next((bench.data / "snapshots/files").rglob(f"{stray.value}*"))
    freed, left = await collect(bench.store, bench.data, 1 << 30)
    assert (freed, place.exists()) == (0, True)  # a session may be about to record it
    freed, left = await collect(bench.store, bench.data, 1 << 30, grace=-1)
    assert (freed, place.exists()) == (stray.size, False)
    assert left == objects.used()
    forked = await fork(bench.store, bench.data, log, await log.head())
    assert await bench.output(forked, "cat file") == "one\n"


@pytest.mark.slow
async def test_without_room_a_session_goes_on_and_says_so_once_and_what_nothing_needs_then_makes_room(
    bench: Workbench,
) -> None:
    stray = bench.data / "snapshots/files/00/of-nobody"
    stray.parent.mkdir(parents=True)
    with stray.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 2 << 30)
    full = await bench.ran("echo one > file", "echo two > file", snapshots=1)
    kept = [event for event in await full.read() if isinstance(event, SnapshotEvent)]
    assert [(event.tree, "handiwork gc" in event.problem) for event in kept] == [("", True)]
    with pytest.raises(WorkspaceError, match="could not be kept"):
        await fork(bench.store, bench.data, full, await full.head())
    assert (await collect(bench.store, bench.data, 1 << 30, grace=-1))[0] >= 2 << 30
    log = await bench.ran("echo one > file", snapshots=1)
    forked = await fork(bench.store, bench.data, log, await log.head())
    assert await bench.output(forked, "cat file") == "one\n"


@pytest.mark.slow
async def test_what_a_session_does_when_it_starts_makes_room(bench: Workbench) -> None:
    stray = bench.data / "snapshots/files/00/part-of-a-run-that-was-killed"
    stray.parent.mkdir(parents=True)
    with stray.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 2 << 30)
    await make_room(bench.store, bench.data, 1, lambda _: None, grace=-1)
    assert not stray.exists()


def chance_command(chance: random.Random, number: int) -> str:
    """A command that changes some of what earlier ones made, and the user's own files."""
    name, other = (f"d{chance.randrange(4)}/{chance.choice('abc')}" for _ in range(2))
    return chance.choice(
        [
            f"mkdir -p $(dirname {name}); rm -rf {name}; echo {number} > {name}",
            f"rm -rf {name}; mkdir -p $(dirname {name}); ln -s {other} {name}",
            f"rm -rf d{chance.randrange(4)}",
            f"chmod {chance.choice(['600', '755', '444'])} $(find . -name a -type f | head -1) README || true",
            f"rm -rf src; mkdir src; echo {number} > src/new",
            f"rm -rf {name}; mkdir -p {name}; echo {number} > {name}/deep; mv src/main.py {name}/ 2>/dev/null",
            f"echo {number} >> README; echo {number} > ~/note{chance.randrange(3)}",
            "rm -f README ~/note*",
            f"mkdir -p {name}-empty 'with space'; echo {number} > 'with space/a file'; rm -rf {other}",
            f"printf {number} > $'new\\nline'; printf {number} > $'bytes\\xff'; mv $'bytes\\xff' $'other\\xfe'",
            f"rm -f one two; echo {number} > one; ln one two; [ -d src ] && ln -f one src/three || true",
            f"rm -rf {name}; mkdir -p $(dirname {name}); echo {number} > {name}; mv -T {name} moved || true",
            "true",
        ]
    )


@lengths(10, 50)
@pytest.mark.timeout(1800)
async def test_every_event_of_a_long_session_can_be_forked_with_the_files_it_had(bench: Workbench, steps: int) -> None:
    seed = random.randrange(10**9)
    chance = random.Random(seed)
    commands = [f"{{ {chance_command(chance, number)}; }} 2> /dev/null; {LIST}" for number in range(steps)]
    log = await bench.ran(*commands)
    events = await log.read()
    for observation, listed in outputs(events).items():
        for at in (observation - 1, observation):  # the snapshot, where there is one, counts with its observation
            if at < observation and not isinstance(events[at - 1], SnapshotEvent):
                continue
            forked = await fork(bench.store, bench.data, log, at)
            assert await bench.output(forked, LIST) == listed, f"seed {seed}, event {at}"


@lengths(60, 200)
@pytest.mark.timeout(1800)
async def test_many_forks_take_the_room_of_their_changes(bench: Workbench, steps: int) -> None:
    big = [bash(f"head -c 1000000 /dev/urandom > big{number}") for number in range(10)]
    log = await bench.ran(*big)
    observations = list(outputs(await log.read()))
    before = _taken(bench.data)
    for number in range(steps):
        forked = await fork(bench.store, bench.data, log, observations[number % 10])
        if number % 20 == 0:
            await bench.resumed(forked, None, f"echo {number} > mine")
    assert _taken(bench.data) - before < 20_000_000  # one copy of all alone would be ten, sixty of them 600


def _taken(folder: Path) -> int:
    found = {(one.stat().st_ino, one.stat().st_blocks) for one in folder.rglob("*") if not one.is_symlink()}
    return 512 * sum(blocks for _, blocks in found)


@lengths(20, 50)
@pytest.mark.timeout(900)
async def test_a_server_and_a_variable_survive_many_snapshots(bench: Workbench, steps: int) -> None:
    cell = {"tool_calls": [{"name": "ipython", "arguments": {"code": "number = 0"}}]}
    more = {"tool_calls": [{"name": "ipython", "arguments": {"code": "number += 1; print(number)"}}]}
    serve = "python3 -m http.server --bind 127.0.0.1 8123 > /dev/null 2>&1 & sleep 1"
    got = "urllib.request.urlopen('http://127.0.0.1:8123/file').read()"
    ask = f"echo $RANDOM$RANDOM > file; python3 -c \"import urllib.request; print({got} == open('file', 'rb').read())\""
    commands = [command for _ in range(steps) for command in (ask, more)]
    log = await bench.ran(serve, cell, *commands, limits={"iterations": 200})
    events = await log.read()
    assert sum(isinstance(event, SnapshotEvent) for event in events) >= steps
    assert list(outputs(events).values())[1:] == ["True\n"] * steps
    cells = [event for event in events if event.kind == "IPythonRunCellObservation"]
    assert str(steps) in getattr(cells[-1], "content", "")

"""A session in an image is forked at any event with its files and its shell, and goes on while snapshots are taken."""

from __future__ import annotations

import ast
import os
import shlex
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from handiwork.events.base import Event
from handiwork.events.record import SnapshotEvent
from handiwork.log.store import Store
from handiwork.session.storage.gc import collect
from handiwork.session.time_travel.fork import fork
from handiwork.session.time_travel.history import changes_from_to
from scripts.harness.images import image
from tests.sandbox.helpers import PYTHON
from tests.snapshots import trees
from tests.snapshots.workbench import Workbench, outputs

pytestmark = pytest.mark.usefixtures("docker_daemon")

LISTING = (
    f"{Path(trees.__file__).read_text()}\nprint([sorted(listing(root).items()) for root in (Path(), Path.home())])"
)
LIST = f"(cd $PROJECT; {PYTHON} -c {shlex.quote(LISTING)})"
"""Prints type, mode, target, bytes and time of each path in the workspace and the home; images may have no find."""

OWNERS = "(cd $PROJECT; for path in . $(ls -A) ~ ~/*; do [ -O $path ] || echo $path; done)"
NOBODY = 12345


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Workbench]:
    async with Store.open(tmp_path / "data") as store:
        yield Workbench(tmp_path, store)


def of_image(name: str = "bookworm") -> dict[str, str]:
    return {"sandbox": "docker", "image": image(name)}


def states(events: list[Event]) -> dict[int, str]:
    """What LIST printed, by the id of the observation."""
    found = {at: printed.splitlines() for at, printed in outputs(events).items()}
    assert all(len(ast.literal_eval(lines[-1])) == 2 for lines in found.values())
    return {at: lines[-1] for at, lines in found.items()}


STEPS = [
    "export PROJECT=$PWD; echo one > new; chmod 750 new; rm README; echo mine > ~/note; export COLOUR=blue",
    "rm -r src; mkdir -p src/deep; ln -s /etc/passwd link; ln -s nowhere src/lost; greet() { echo hi; }; cd src/deep",
    "echo two >> ../../new; chmod 600 ../../new; mkdir -p ~/.config; echo x > ~/.config/rc; export COLOUR=red",
    "rm -f ../../link ~/note; mkdir ../../link; touch -d 2020-01-01 ../../link/old; chmod 1777 ../../link; cd ../..",
    "mv src/deep ../moved 2>/dev/null || mv src/deep moved; rmdir moved; mkfifo pipe; umask 027; echo 3 > closed",
]


@pytest.mark.parametrize("name", ["bookworm", "musl"])
async def test_a_fork_has_the_files_of_its_event_and_no_others(bench: Workbench, name: str) -> None:
    log = await bench.ran(*(f"{step}; {LIST}" for step in STEPS), **of_image(name))
    found = states(await log.read())
    assert len(set(found.values())) == len(STEPS)
    for at, state in found.items():
        forked = await fork(bench.store, bench.data, log, at)
        assert (await bench.output(forked, LIST)).splitlines()[-1] == state, f"event {at}"
        again = await fork(bench.store, bench.data, forked, await forked.head())
        assert (await bench.output(again, LIST)).splitlines()[-1] == state, f"event {at}, forked twice"
    assert (bench.project / "README").read_text() == "this is README\n"


async def test_a_fork_has_the_shell_of_its_event_and_writes_where_it_stands(bench: Workbench) -> None:
    log = await bench.ran(*STEPS, **of_image())
    first, second, third, *_ = outputs(await log.read())
    asked = "echo ${PWD#$PROJECT} $COLOUR $(umask); [ -z $(type -t greet) ] || greet; echo more >> $PROJECT/new"
    assert (await bench.output(await fork(bench.store, bench.data, log, first), asked)).split() == [*("blue", "0022")]
    at_second = await fork(bench.store, bench.data, log, second)
    assert (await bench.output(at_second, asked)).split() == ["/src/deep", "blue", "0022", "hi"]
    assert await bench.output(at_second, "cat $PROJECT/new; ls ~") == "one\nmore\nnote\n"
    at_third = await fork(bench.store, bench.data, log, third)
    assert (await bench.output(at_third, asked)).split() == ["/src/deep", "red", "0022", "hi"]
    beginning = await fork(bench.store, bench.data, log, 2)
    assert (await bench.output(beginning, "ls . src; ls -A ~; echo $COLOUR")).split() == [
        *(".:", "README", "src", "src:", "main.py", "other.py")
    ]


async def test_what_changed_between_two_events_and_what_of_it_a_fork_goes_on_with(bench: Workbench) -> None:
    steps = ("echo one > file; rm README", "echo two > file; echo 1 > src/main.py", "rm file; rm -r src")
    log = await bench.ran(*steps, **of_image())
    first, second, _ = outputs(await log.read())

    async def names(start: int | None, end: int | None) -> list[tuple[str, str]]:
        return [(one.path, one.kind) for one in await changes_from_to(bench.data, log, start, end)]

    assert await names(None, first) == [("README", "deleted"), ("file", "added")]
    assert await names(first, second) == [("file", "modified"), ("src/main.py", "modified")]
    assert await names(None, None) == [("README", "deleted"), ("src/main.py", "deleted"), ("src/other.py", "deleted")]
    forked = await fork(bench.store, bench.data, log, second)
    state = await bench.resumed(forked, None, "cat file src/main.py; echo three > file; rm -r src")
    assert state.agent_state == "finished"
    assert list(outputs(await forked.read()).values())[-1] == "two\n1\n"
    again = await fork(bench.store, bench.data, forked, await forked.head())
    assert (await bench.output(again, "cat file; ls")).split() == ["three", "file"]


async def test_what_is_running_goes_on_while_snapshots_are_taken(bench: Workbench) -> None:
    cell = {"tool_calls": [{"name": "ipython", "arguments": {"code": "number = 0"}}]}
    more = {"tool_calls": [{"name": "ipython", "arguments": {"code": "number += 1; print(number)"}}]}
    serve = f"{PYTHON} -m http.server --bind 127.0.0.1 8123 > /dev/null 2>&1 & sleep 1"
    got = "urllib.request.urlopen('http://127.0.0.1:8123/file').read()"
    ask = (
        f"echo $RANDOM$RANDOM > file; {PYTHON} -c \"import urllib.request; print({got} == open('file', 'rb').read())\""
    )
    steps = [step for _ in range(10) for step in (ask, more)]
    log = await bench.ran(serve, cell, *steps, **of_image())
    events = await log.read()
    assert sum(isinstance(event, SnapshotEvent) for event in events) >= 10
    assert list(outputs(events).values())[1:] == ["True\n"] * 10
    cells = [event for event in events if event.kind == "IPythonRunCellObservation"]
    assert "10" in getattr(cells[-1], "content", "")


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has files of another user")
async def test_where_root_works_on_anothers_files_a_fork_may_write_all_that_it_has(bench: Workbench) -> None:
    for path in (bench.project, *bench.project.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    steps = (
        "export PROJECT=$PWD; echo one > new; chmod 600 new",
        "mkdir -p deep/er; echo x > deep/er/file; touch ~/note",
    )
    log = await bench.ran(*(f"{step}; {LIST}" for step in steps), **of_image())
    (_, before), (at, state) = states(await log.read()).items()
    assert before != state
    forked = await fork(bench.store, bench.data, log, at)
    assert (await bench.output(forked, LIST)).splitlines()[-1] == state
    assert (await bench.output(forked, f"id -u; {OWNERS}")).split() == [str(NOBODY)]
    write = "echo two >> new; echo y >> deep/er/file; echo z > deep/z; rm deep/er/file; rmdir deep/er; echo n >> ~/note"
    assert await bench.output(forked, f"{write}; cat new deep/z ~/note") == "one\ntwo\nz\nn\n"
    await collect(bench.store, bench.data, 1 << 30, grace=-1)
    assert (await bench.output(forked, "cat new")).split() == ["one", "two"]
    assert (await bench.output(await fork(bench.store, bench.data, log, at), "cat new deep/er/file")).split() == [
        *("one", "x")
    ]

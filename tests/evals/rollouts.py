"""Rollouts as a scorer meets them, made from events, and the data that these tests read."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from handiwork.agents.state import State
from handiwork.evals.benchmark import Ask, Benchmark, Instance, Rollout
from handiwork.evals.benchmarks.bird import Bird
from handiwork.evals.scoring.data import folder_of
from handiwork.evals.scoring.execution import new_sandbox
from handiwork.events.action import AgentFinishAction, AgentRejectAction, MessageAction
from handiwork.events.base import Event
from handiwork.sandbox import create as sandboxes
from handiwork.sandbox.base import Sandbox
from handiwork.workspace.layers import SandboxPaths
from tests.agents.states import state_of

BENCHDATA = os.environ.get("HANDIWORK_BENCHDATA", "")

SAMPLE = 4
"""Instances of a split that are run in test-slow."""

some_or_all = pytest.mark.parametrize(
    "at_most",
    [
        pytest.param(SAMPLE, id="some", marks=pytest.mark.slow),
        pytest.param(10_000, id="all", marks=pytest.mark.campaign),
    ],
)
"""Runs a test with a sample of instances in test-slow, and with all of them in test-benchmarks."""

needs_benchdata = pytest.mark.skipif(not BENCHDATA, reason="HANDIWORK_BENCHDATA names no folder with benchmark data")


def folder(benchmark: Benchmark) -> Path:
    """The benchmark's upstream files; skips the test where there are none."""
    if not BENCHDATA:
        pytest.skip("HANDIWORK_BENCHDATA names no folder with benchmark data")
    found = folder_of(benchmark, Path(BENCHDATA))
    if found == Path(BENCHDATA):
        pytest.skip(f"HANDIWORK_BENCHDATA has no folder for {benchmark.name}")
    return found


def bird_excerpt(data: Path) -> Path:
    """A data folder of BIRD in the upstream layout with the one database there is, in which most rows are missing."""
    given = folder(Bird())
    place = data / "dev_databases/california_schools"
    place.mkdir(parents=True)
    shutil.copyfile(given / "california_schools_excerpt.sqlite", place / "california_schools.sqlite")
    shutil.copytree(given / "database_description/california_schools", place / "database_description")
    rows = [row for row in json.loads((given / "mini_dev_sqlite.json").read_text()) if row["db_id"] == place.name]
    (data / "mini_dev_sqlite.json").write_text(json.dumps(rows))
    return data


def sample(found: Sequence[Instance], at_most: int) -> Sequence[Instance]:
    """At most so many instances, from the whole length of the list."""
    return found[:: -(-len(found) // at_most)]


def instances(benchmark: Benchmark, split: str = "") -> list[Instance]:
    """The instances of a split, the first where none is named."""
    return benchmark.load(folder(benchmark), split or benchmark.splits[0])


async def nobody(prompt: str) -> str:
    raise AssertionError(f"no model was to be asked: {prompt}")


def said(*words: str) -> State:
    """A session in which the agent finished with each of these words, and the user spoke in between."""
    events: list[Event] = [MessageAction(content="The task.", source="user")]
    for number, one in enumerate(words):
        if number:
            events.append(MessageAction(content="Not yet.", source="user"))
        events.append(AgentFinishAction(outputs={"message": one}))
    return state_of(*events)


def rollout(
    instance: Instance, words: str | Sequence[str] = "", sandbox: Sandbox | None = None, ask: Ask = nobody
) -> Rollout:
    """A rollout that ended with these words, or one after another with several; without a sandbox it has a dead one."""
    state = said(*([words] if isinstance(words, str) else words))
    dead = sandboxes.create("none", SandboxPaths(Path(), Path()), no_blobs)
    return Rollout(instance, state, sandbox or dead, ask)


def rejected(instance: Instance, reason: str) -> Rollout:
    """A rollout in which the agent gave up for this reason."""
    rejection = AgentRejectAction(outputs={"reason": reason})
    return replace(rollout(instance), state=state_of(MessageAction(content="The task.", source="user"), rejection))


async def no_blobs(_: AsyncIterator[bytes]) -> str:
    return ""


@asynccontextmanager
async def prepared(
    benchmark: Benchmark, instance: Instance, place: Path, image: str | None = None
) -> AsyncGenerator[Sandbox]:
    """The sandbox that an agent gets for an instance, running, made in the folder ``place``; of an image if named."""
    kind, writable_root = "bubblewrap" if image is None else "docker", benchmark.writable_root
    if benchmark.has_rehearsal(instance):
        async with new_sandbox(kind, image=image, writable_root=writable_root) as (second, workspace):
            benchmark.prepare(instance, workspace)
            await second.start()
            await benchmark.rehearse(instance, second)
    session, workspace = place / "session", place / "workspace"
    session.mkdir()
    workspace.mkdir()
    benchmark.prepare(instance, workspace)
    paths = SandboxPaths(session, workspace)
    sandbox = sandboxes.create(kind, paths, no_blobs, image=image, writable_root=writable_root)
    try:
        await sandbox.start()
        await benchmark.set_up(instance, sandbox)
        yield sandbox
    finally:
        await sandbox.close()


@contextmanager
def serving(folder: Path, host: str = "127.0.0.1") -> Generator[str]:
    """The address of a web server with the files of a folder."""
    with ThreadingHTTPServer((host, 0), partial(SimpleHTTPRequestHandler, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://{host}:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()

"""A run as ``handiwork eval view`` shows it: its rollouts over HTTP, finished and under way, each a session."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from handiwork.evals.running import manifest
from handiwork.evals.running.plan import RunPlan
from handiwork.evals.viewing.run_follower import RunFollower
from scripts.harness.serving import Api, in_this_process, until
from tests.cli.program import bash, finish
from tests.evals.runs import finished, planned, script, sums

pytestmark = pytest.mark.slow


def plan_of(folder: Path, *replies: dict[str, object], ids: tuple[str, ...] = ("sum-1", "sum-2")) -> RunPlan:
    model = script(folder / "model.jsonl", *replies)
    return asyncio.run(planned(sums(folder / "data", *ids), model))


NUMBERS = "".join(f"{number}\n" for number in range(1, 100_001)).encode()
"""An output that is too long for an event."""


def blobs_of(api: Api, events: Sequence[dict[str, Any]]) -> list[bytes]:
    """The blobs that the events refer to."""
    digests = [digest for event in events if (digest := event.get("blob"))]
    return [api.http.get(f"/api/blobs/{digest}").raise_for_status().content for digest in digests]


@contextmanager
def viewed(folder: Path, out: Path) -> Generator[Api]:
    place = folder / "viewer"
    place.mkdir()
    with in_this_process(place, run=RunFollower(out)) as api:
        yield api


def test_a_run_has_its_rollouts_with_expected_and_given_answers_and_their_events(tmp_path: Path) -> None:
    out = tmp_path / "out"
    asyncio.run(finished(out, plan_of(tmp_path)))
    with viewed(tmp_path, out) as api:
        run = api.get("/api/evaluation")
        assert (run["agent"], run["total"], run["folder"]) == ("CodeActAgent", 2, str(out))
        assert [(row["id"], row["status"], row["outcome"]) for row in run["rollouts"]] == [
            ("sum-1", "solved", "right answer"),
            ("sum-2", "solved", "right answer"),
        ]
        row = run["rollouts"][0]
        assert (row["answer"], row["expected"], row["steps"]) == ("4", "4", 2)
        session = f"/api/sessions/{row['session']}"
        whole = [json.loads(line) for line in (out / "trajectories/sum-1-1.jsonl").read_text().splitlines()]
        assert api.events(session) == whole
        found = api.get(session)
        assert (found["title"], found["read_only"], found["state"]) == ("sum-1", True, "finished")
        assert [one["id"] for one in api.get("/api/evaluation", session=row["session"])["rollouts"]] == ["sum-1"]


def test_the_pictures_and_long_outputs_of_a_rollout_outlive_its_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    asyncio.run(finished(out, plan_of(tmp_path, bash("seq 100000"), finish("4"))))
    with viewed(tmp_path, out) as api:
        for row in api.get("/api/evaluation")["rollouts"]:
            assert blobs_of(api, api.events(f"/api/sessions/{row['session']}")) == [NUMBERS]
    assert len([*out.glob("blobs/*/*")]) == 1, "the same output is kept once"


def test_rollouts_can_only_be_read(tmp_path: Path) -> None:
    out = tmp_path / "out"
    asyncio.run(finished(out, plan_of(tmp_path, ids=("sum-1",))))
    with viewed(tmp_path, out) as api:
        session = f"/api/sessions/{api.get('/api/evaluation')['rollouts'][0]['session']}"
        refused = [
            api.http.post(f"{session}/messages", json={"content": "go on"}),
            api.http.post(f"{session}/resume"),
            api.http.post("/api/sessions", json={"task": "more", "workspace": str(api.workspace)}),
            api.http.delete(session),
        ]
        assert {answer.status_code for answer in refused} <= {404, 405}
        assert api.bare.get("/api/evaluation").status_code == 401
        assert api.http.get("/").headers["location"] == "/eval"


def test_a_server_of_sessions_shows_no_run(tmp_path: Path) -> None:
    with in_this_process(tmp_path) as api:
        answer = api.http.get("/api/evaluation")
        assert (answer.status_code, "handiwork eval view" in answer.json()["error"]) == (404, True)


def test_a_rollout_under_way_is_followed_to_its_end(tmp_path: Path) -> None:
    """Its events come while it works; then the same session has the rest, and the result."""
    out, gate = tmp_path / "out", 2.0
    plan = plan_of(tmp_path, bash("seq 100000"), {**finish("5"), "delay": gate}, ids=("sum-1",))
    out.mkdir()
    manifest.write(out, plan.manifest)
    with viewed(tmp_path, out) as api:
        assert api.get("/api/evaluation")["rollouts"] == []

        async def run_and_watch() -> tuple[dict[str, object], int]:
            run = asyncio.create_task(finished(out, plan))

            def running() -> dict[str, object] | None:
                rows = api.get("/api/evaluation")["rollouts"]
                return next((row for row in rows if row["status"] == "running" and row["steps"]), None)

            row = await asyncio.to_thread(until, running, "a running rollout")
            session = f"/api/sessions/{row['session']}"
            output = await asyncio.to_thread(until, lambda: blobs_of(api, api.events(session)), "a long output")
            assert output == [NUMBERS]
            events = await asyncio.to_thread(api.events, session)
            await run
            return row, len(events)

        row, so_far = asyncio.run(run_and_watch())
        done = until(
            lambda: [one for one in api.get("/api/evaluation")["rollouts"] if one["status"] != "running"], "its end"
        )
        assert [(one["session"], one["status"], one["answer"]) for one in done] == [(row["session"], "unsolved", "5")]
        whole = (out / "trajectories/sum-1-1.jsonl").read_text().splitlines()
        assert 0 < so_far < len(whole)
        assert api.events(f"/api/sessions/{row['session']}") == [json.loads(line) for line in whole]
    assert not any((out / "underway").glob("*"))


def test_notes_of_a_killed_run_and_damaged_trajectories_are_no_rollouts_under_way(tmp_path: Path) -> None:
    out = tmp_path / "out"
    asyncio.run(finished(out, plan_of(tmp_path)))
    (out / "underway").mkdir(exist_ok=True)
    (out / "underway/half").write_text('{"id": "sum-1", "tri')
    with (out / "trajectories/sum-2-1.jsonl").open("a") as file:
        file.write("no event\n")
    with viewed(tmp_path, out) as api:
        rows = api.get("/api/evaluation")["rollouts"]
        assert [row["status"] for row in rows] == ["solved", "solved"]
        answer = api.http.get(f"/api/sessions/{rows[1]['session']}/events")
        assert answer.status_code >= 400
        assert "is no event" in answer.json()["error"]
        assert api.events(f"/api/sessions/{rows[0]['session']}")

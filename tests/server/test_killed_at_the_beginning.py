"""What a session leaves on the disk, from its first moment to after its deletion."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import httpx2
import pytest

from scripts.harness.serving import Api, Program, bash, finish
from tests.cli.test_killed_before_the_first_step import fill, until_stored


@pytest.mark.slow
def test_a_posted_task_outlives_the_server_that_was_killed_with_it(program: Program) -> None:
    api = program.start()
    fill(api.workspace)
    model = api.script(finish())

    def post(api: Api) -> None:
        with pytest.raises(httpx2.HTTPError):
            api.create(model=model, task="greet the world")

    posting = threading.Thread(target=post, args=(api,))
    posting.start()
    until_stored(program.folder / "data", "SELECT id FROM sessions")
    program.kill()
    posting.join()

    api = program.start()
    (session,) = api.get("/api/sessions")["sessions"]
    place = f"/api/sessions/{session['id']}"
    assert api.until(place, "finished")["title"] == "greet the world"
    assert [e["content"] for e in api.events(place) if e["type"] == "MessageAction"] == ["greet the world"]


@pytest.mark.slow
def test_a_server_starts_beside_a_session_whose_settings_are_damaged(program: Program) -> None:
    api = program.start()
    running = api.create(bash("sleep 60"), task="wait")
    api.until(running, "running")
    finished = api.create(finish(), task="finish")
    api.until(finished, "finished")
    program.kill()
    session = running.rpartition("/")[2]
    with sqlite3.connect(program.folder / "data/handiwork.db") as database:
        where = "type = 'SessionStarted' AND session = ?"
        database.execute(f"UPDATE events SET json = replace(json, 'bubblewrap', 'martian') WHERE {where}", (session,))
    database.close()

    api = program.start()
    assert {one["title"] for one in api.get("/api/sessions")["sessions"]} == {"wait", "finish"}
    api.post(f"{running}/messages", content="go on")
    assert "has invalid settings (sandbox: " in api.until(running, "error")["why"]
    api.until(api.create(finish(), task="again"), "finished")


@pytest.mark.slow
def test_a_deleted_session_leaves_nothing_on_the_disk(program: Program) -> None:
    api = program.start()
    session = api.create(bash("seq 1 400000; echo changed > greeting.txt; head -c 2M /dev/urandom > noise"), finish())
    api.until(session, "finished")
    data = program.folder / "data"

    def kept() -> list[Path]:
        folders = ("blobs", "sessions", "snapshots/files", "snapshots/trees")
        return [path for name in folders for path in (data / name).rglob("*") if path.is_file()]

    assert sum(path.stat().st_size for path in kept()) > 4_000_000
    assert api.http.delete(session).json() == {"ok": True}
    assert [path.name for path in kept()] in ([], ["next-uid"])
    assert "freed 0 bytes" in program.run("gc").stderr

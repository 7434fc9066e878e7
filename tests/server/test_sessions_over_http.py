"""What can be asked about sessions, and the document that says so."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import Any

import pytest

from handiwork.events.action import AgentState, MessageAction
from handiwork.log.store import Store
from handiwork.server.live import ROOM, Backlog
from scripts.harness.serving import Api, bash, events_until, finish, next_event, next_of

PNG = b"\x89PNG\r\n\x1a\n" + b"rest of a picture"


@pytest.fixture(scope="module")
def listed(api: Api) -> list[str]:
    """The ids of five sessions, oldest first, that were made by another process and never run."""

    async def make() -> list[str]:
        async with Store.open(api.folder / "data") as store:
            logs = [
                await store.create(agent="CodeActAgent", model="m", workspace="/w", title=title)
                for title in ("mend the parser", "write docs", "100%_sure", "mend the lexer", "last")
            ]
            for number in range(1, 13):
                await logs[0].append(MessageAction(content=f"message {number}", source="user"))
            await store.update(logs[1].id, state="finished")
            return [log.id for log in logs]

    return asyncio.run(make())


def test_sessions_are_listed_newest_first_in_pages(api: Api, listed: list[str]) -> None:
    first = api.get("/api/sessions", limit=2)
    second = api.get("/api/sessions", limit=2, before=first["next"])
    third = api.get("/api/sessions", limit=2, before=second["next"])
    found = [row["id"] for page in (first, second, third) for row in page["sessions"]]
    assert found == listed[::-1]
    assert third["next"] is None
    assert first["waiting"] == 0
    refused = api.http.get("/api/sessions", params={"before": listed[0]})
    assert refused.status_code == 422
    assert "it must be the `next` of a page" in refused.json()["error"]


def test_sessions_that_need_the_user_are_on_the_first_page(api: Api, listed: list[str]) -> None:
    async def change(number: int, state: AgentState) -> None:
        async with Store.open(api.folder / "data") as store:
            await store.update(listed[number], state=state)

    asyncio.run(change(0, "awaiting_user_input"))
    try:
        page = api.get("/api/sessions", limit=2)
        rest = api.get("/api/sessions", limit=4, before=page["next"])
    finally:
        asyncio.run(change(0, "loading"))
    assert [row["id"] for row in page["sessions"]] == [listed[0], listed[4]]
    assert [row["id"] for row in rest["sessions"]] == [listed[3], listed[2], listed[1]]
    assert (page["waiting"], rest["waiting"], rest["next"]) == (1, 1, None)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"q": "MEND"}, [3, 0]),
        ({"q": "100%_"}, [2]),
        ({"q": "0%s"}, []),
        ({"state": "finished"}, [1]),
        ({"q": "mend", "state": "finished"}, []),
    ],
)
def test_sessions_are_found_by_word_and_state(
    api: Api, listed: list[str], query: dict[str, str], found: list[int]
) -> None:
    assert [row["id"] for row in api.get("/api/sessions", **query)["sessions"]] == [listed[n] for n in found]


def test_a_session_is_found_by_the_beginning_of_its_id(api: Api, listed: list[str]) -> None:
    assert api.get(f"/api/sessions/{listed[0][:10]}")["title"] == "mend the parser"
    assert [row["id"] for row in api.get("/api/sessions", q=listed[0][:10])["sessions"]] == [listed[0]]


def test_events_come_in_pages_from_the_end_or_after_one(api: Api, listed: list[str]) -> None:
    def ids(**query: int) -> list[int]:
        page = api.get(f"/api/sessions/{listed[0]}/events", **query)
        assert page["head"] == 12
        return [event["id"] for event in page["events"]]

    assert ids(limit=3) == [10, 11, 12]
    assert ids(before=10, limit=3) == [7, 8, 9]
    assert ids(after=0, limit=3) == [1, 2, 3]
    assert ids(after=2, before=5) == [3, 4]
    assert ids(after=12) == []


def test_an_outline_has_the_types_the_causes_and_the_failures_of_events(api: Api) -> None:
    session = api.create(bash("true"), bash("exit 3"), finish())
    api.until(session, "finished")
    events = api.events(session)
    outline = api.get(f"{session}/outline")
    assert [outline["names"][number] for number in outline["types"]] == [event["type"] for event in events]
    assert outline["causes"] == [event["cause"] for event in events]
    assert outline["failed"] == [event["id"] for event in events if event.get("exit_code") == 3] != []
    later = api.get(f"{session}/outline", after=events[3]["id"])
    assert (later["first"], later["causes"]) == (events[4]["id"], outline["causes"][4:])


def test_a_follower_gets_every_event_after_its_last_one(api: Api, listed: list[str]) -> None:
    with api.follow(f"/api/sessions/{listed[0]}/follow?after=9") as socket:
        assert [next_event(socket)["content"] for _ in range(3)] == ["message 10", "message 11", "message 12"]


def test_a_follower_gets_the_state_when_it_comes_and_when_it_changes(api: Api) -> None:
    session = api.create(bash("echo 1", delay=0.5), finish("Seen."))
    states: list[dict[str, Any]] = []
    with api.follow(f"{session}/follow") as socket:
        while not states or states[-1]["state"] != "finished":
            message = next_of(socket)
            states += [message["state"]] if "state" in message else []
        assert states[0]["state"] == "running"
        changed_after_the_end = ("run_by", "updated", "spent", "added", "deleted")
        assert states[-1] == api.get(session) | {name: states[-1][name] for name in changed_after_the_end}
        assert [state["iterations"] for state in states] == sorted(state["iterations"] for state in states)
    with api.follow(f"{session}/follow?after={states[-1]['head']}") as socket:
        assert next_of(socket)["state"]["outputs"] == {"message": "Seen."}


def test_a_follower_of_nothing_is_told_so(api: Api) -> None:
    for path, code in (("/api/sessions/ffff/follow", 4404), ("/api/sessions/ffff/follow?after=-1", 4422)):
        with api.follow(path) as socket, pytest.raises(Exception, match=str(code)):
            socket.recv(30)


def test_a_session_is_renamed_and_deleted_before_the_eyes_of_who_follows_the_list(api: Api, listed: list[str]) -> None:
    with api.follow("/api/follow") as socket:
        assert next_of(socket) == {"ready": True}
        assert api.http.patch(f"/api/sessions/{listed[4]}", json={"title": "the very last"}).status_code == 200
        assert next_of(socket)["session"]["title"] == "the very last"
        blank = api.http.patch(f"/api/sessions/{listed[4]}", json={"title": " "})
        assert (blank.status_code, "the title is empty" in blank.json()["error"]) == (422, True)
        assert api.http.delete(f"/api/sessions/{listed[4]}").json() == {"ok": True}
        assert next_of(socket) == {"deleted": listed[4]}
    assert api.http.get(f"/api/sessions/{listed[4]}").status_code == 404


def test_what_never_ran_cannot_be_steered(api: Api, listed: list[str]) -> None:
    answer = api.http.post(f"/api/sessions/{listed[2]}/interrupt")
    assert answer.status_code == 409
    assert answer.json() == {"error": f"session {listed[2]} never started: run the task again"}


@pytest.mark.parametrize("session", ["ffff", "zz", "%00", "..%2f..", "0" * 50])
def test_there_is_no_such_session(api: Api, session: str) -> None:
    for path in ("", "/events", "/files", "/diff", "/tree"):
        assert api.http.get(f"/api/sessions/{session}{path}").status_code == 404


def test_a_picture_is_kept_and_given_back_as_what_it_is(api: Api) -> None:
    made = api.http.post("/api/blobs", content=PNG).json()
    assert made["media_type"] == "image/png"
    answer = api.http.get(f"/api/blobs/{made['blob']}")
    assert answer.content == PNG
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["x-content-type-options"] == "nosniff"
    part = api.http.get(f"/api/blobs/{made['blob']}", params={"offset": 3, "length": 4})
    assert part.content == PNG[3:7]
    assert part.headers["x-blob-size"] == str(len(PNG))


def test_only_pictures_are_taken_and_no_page_is_given(api: Api) -> None:
    assert api.http.post("/api/blobs", content=b"<html>").status_code == 422

    answer = api.http.get(f"/api/blobs/{asyncio.run(put(api, b'<script>alert(1)</script>'))}")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert "sandbox" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("first", ["", "a", "aa"])
def test_a_text_is_one_wherever_a_piece_of_it_ends(api: Api, first: str) -> None:
    for text, kind in ((first + "\u20ac" * 40_000, "text/plain"), (first + "\0" * 90_000, "application/octet-stream")):
        answer = api.http.get(f"/api/blobs/{asyncio.run(put(api, text.encode()))}")
        assert answer.headers["content-type"].startswith(kind)


async def put(api: Api, content: bytes) -> str:
    async with Store.open(api.folder / "data") as store:
        return await store.blobs.put(content)


def test_a_message_names_only_pictures_there_are(api: Api) -> None:
    image = {"blob": "0" * 64, "media_type": "image/png"}
    body = {"task": "look", "workspace": str(api.workspace), "model": api.script(finish()), "images": [image]}
    assert api.http.post("/api/sessions", json=body).status_code == 404


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"workspace": "/nowhere/at/all"}, "/nowhere/at/all"),
        ({"model": "scripted:/nowhere"}, "cannot read the script /nowhere"),
        ({"model": "nothing"}, "names no provider"),
        ({"agent": "NoAgent"}, "there is no agent 'NoAgent'"),
        ({"allow_net": ["not a host!"]}, "not a host!"),
    ],
)
def test_what_a_session_cannot_be_made_of_is_said(api: Api, wrong: dict[str, str], said: str) -> None:
    body = {"task": "x", "workspace": str(api.workspace), "model": api.script(finish()), **wrong}
    answer = api.http.post("/api/sessions", json=body)
    assert answer.status_code in (409, 422)
    assert said in answer.json()["error"]


def test_a_task_is_carried_out_while_it_is_followed(api: Api) -> None:
    session = api.create(bash("echo new > new.txt; cat greeting.txt", said="I look."), finish("Seen."))
    with api.follow(f"{session}/follow") as socket:
        events = events_until(socket, "AgentFinishAction")
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    (output,) = [event for event in events if event["type"] == "CmdOutputObservation"]
    assert output["content"] == "hello\n"
    view = api.until(session, "finished")
    assert view["outputs"] == {"message": "Seen."}
    assert view["cost"] == {"usd": 0.0, "unpriced": 0, "sources": ["scripted"]}
    assert api.get(f"{session}/diff")["files"] == [
        {"path": "new.txt", "kind": "added", "binary": False, "added": 1, "deleted": 0}
    ]


def test_models_agents_and_settings_are_told(api: Api) -> None:
    models = api.get("/api/models")
    assert models["default"] == "local:qwen2.5-coder-1.5b"
    assert {"local:qwen2.5-coder-1.5b", "anthropic:NAME"} <= {model["name"] for model in models["models"]}
    agents = {agent["name"]: agent for agent in api.get("/api/agents")["agents"]}
    assert agents["CodeActAgent"]["package"] == "handiwork"
    assert agents["BrowsingAgent"]["inputs"]["required"] == ["task"]
    assert agents["BrowsingAgent"]["outputs"]["required"] == ["message"]
    settings = api.get("/api/settings")
    assert (settings["sandbox"], settings["version"]) == ("bubblewrap", version("handiwork"))


def test_metrics_count_what_was_asked(api: Api) -> None:
    text = api.http.get("/metrics").text
    assert 'handiwork_requests_total{method="GET",status="200"}' in text
    assert "handiwork_followers 0\n" in text


def test_the_document_describes_every_route(api: Api) -> None:
    document = api.get("/api/openapi.json")
    assert document["openapi"] == "3.1.0"
    fork = document["paths"]["/api/sessions/{session}/fork"]["post"]
    assert fork["requestBody"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/NewFork"}
    assert set(fork["responses"]) == {"201", "400", "401", "403", "404", "409", "413", "415", "422", "503"}
    (limit,) = [one for one in document["paths"]["/api/sessions"]["get"]["parameters"] if one["name"] == "limit"]
    assert limit["schema"]["maximum"] == 500


def test_a_slow_reader_loses_what_is_transient_and_oldest() -> None:
    backlog = Backlog(asyncio.Event())
    backlog.add("output", 3, "o" * ROOM, 5)
    backlog.add("text", 0, "x", 5)
    backlog.add("output", 4, "a", 6)
    backlog.add("output", 4, "b", 6)
    assert backlog.take(5) == [{"transient": "text", "after": 5, "subtask": 0, "text": "x"}]
    assert backlog.take(6) == [{"transient": "output", "after": 6, "action": 4, "text": "ab"}]
    assert backlog.take(6) == []

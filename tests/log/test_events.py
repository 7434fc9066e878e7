"""Append, read, fork and follow in one process."""

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handiwork.events.action import AgentFinishAction, ChangeAgentStateAction, CmdRunAction, MessageAction
from handiwork.events.base import Event, UnknownEvent
from handiwork.events.codec import from_dict, to_dict
from handiwork.log.errors import LogError, SessionMissing, SessionShared
from handiwork.log.eventlog import EventLog
from handiwork.log.store import Store


def said(text: str) -> MessageAction:
    return MessageAction(content=text, source="user")


def contents(events: list[Event]) -> list[str]:
    return [event.content for event in events if isinstance(event, MessageAction)]


async def check(log: EventLog, expected: list[str], after: int, limit: int) -> None:
    assert await log.head() == len(expected)
    events = await log.read()
    assert contents(events) == expected
    assert [event.id for event in events] == list(range(1, len(expected) + 1))
    assert await log.read(after, limit) == events[after : after + limit]
    assert await log.read_back(limit=limit) == events[::-1][:limit]
    assert await log.read_back(after, limit) == [event for event in events[::-1] if event.id < after][:limit]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 9), st.lists(st.text(max_size=5), max_size=4)),
        st.tuples(st.just("fork"), st.integers(0, 9), st.integers(0, 20)),
    ),
    max_size=12,
)


@settings(max_examples=25, deadline=None)
@given(steps=steps, after=st.integers(0, 12), limit=st.integers(1, 12))
def test_sessions_and_their_forks_read_like_lists_that_were_copied(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, Any]], after: int, limit: int
):
    async def run() -> None:
        async with Store.open(tmp_path_factory.mktemp("data")) as store:
            logs = [(await store.create(agent="a", model="m"), list[str]())]
            for step, which, what in steps:
                log, expected = logs[which % len(logs)]
                if step == "append":
                    stored = await log.append(*map(said, what))
                    expected += contents(list(stored))
                else:
                    at = what % (len(expected) + 1)
                    logs.append((await log.fork(at), expected[:at]))
            for log, expected in logs:
                await check(log, expected, after, limit)

    asyncio.run(run())


@pytest.mark.parametrize(
    "text", ["é\u2028\U0001f600", "\0 nul \0", "", "x" * 2**20, '"\\\n{}', "'; drop table events; --"]
)
async def test_any_text_is_kept(log: EventLog, text: str):
    stored = await log.append(said(text))
    assert contents(stored) == [text]
    assert await log.read() == stored


async def test_a_lone_surrogate_is_replaced_in_what_is_stored_and_in_what_is_returned(log: EventLog):
    stored = await log.append(said("a\ud800b"))
    assert contents(stored) == ["a\ufffdb"]
    assert await log.read() == stored


async def test_an_unknown_event_keeps_its_fields(log: EventLog):
    future = from_dict({"type": "FromTheFuture", "id": 70, "source": "user", "x": [1, {"y": None}]})
    await log.append(said("first"), future)
    (back,) = await log.read(after=1)
    assert isinstance(back, UnknownEvent)
    assert to_dict(back) == {"type": "FromTheFuture", "id": 2, "source": "user", "x": [1, {"y": None}]}


async def test_appends_that_come_together_get_ids_in_the_order_they_came(log: EventLog):
    stored = await asyncio.gather(*(log.append(said(str(n)), said("and")) for n in range(200)))
    assert [event.id for pair in stored for event in pair] == list(range(1, 401))
    assert contents(await log.read())[::2] == [str(n) for n in range(200)]


async def test_one_of_many_queued_appends_that_fails_takes_no_other_with_it(log: EventLog):
    """The agent's action is refused, as nobody holds the lease; the user's messages around it are stored."""
    results = await asyncio.gather(
        log.append(said("before")),
        log.append(said("with"), CmdRunAction(command="ls")),
        log.append(said("after")),
        return_exceptions=True,
    )
    assert isinstance(results[1], LogError)
    assert contents(await log.read()) == ["before", "after"]


async def test_an_append_whose_waiter_is_cancelled_is_stored_wholly(log: EventLog):
    waiting = asyncio.create_task(log.append(said("a"), said("b")))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert contents(await log.read()) == ["a", "b"]


async def test_secrets_are_taken_out_before_an_event_is_stored_or_returned(data: Path):
    async with Store.open(data) as store:
        store.redactor.learn({"PASSWORD": "hunter2222"})
        log = await store.create(agent="a", model="m", title="say hunter2222")
        stored = await log.append(said("it is hunter2222"))
        assert contents(stored) == ["it is [secret PASSWORD]"]
        assert await log.read() == stored
        blob = await store.blobs.put(_pieces(b"it is hunt", b"er2222, or ", base64.b64encode(b"hunter2222")))
        assert await store.blobs.get(blob) == b"it is [secret PASSWORD], or [secret PASSWORD]=="
    assert not any(b"hunter2222" in file.read_bytes() for file in data.rglob("*") if file.is_file())


async def _pieces(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def test_a_secret_that_is_a_word_of_the_log_itself_stores_nothing(data: Path):
    async with Store.open(data) as store:
        store.redactor.learn({"X": "awaiting_user_input"})
        log = await store.create(agent="a", model="m")
        with pytest.raises(LogError, match="ChangeAgentStateAction"):
            await log.append(ChangeAgentStateAction(agent_state="awaiting_user_input", source="user"))
        assert await log.read() == []


async def test_an_event_that_is_not_there_is_told_with_the_range(log: EventLog):
    await log.append(said("a"), said("b"))
    assert contents([await log.get(2)]) == ["b"]
    for missing in (0, 3, -1):
        with pytest.raises(LogError, match="1 to 2"):
            await log.get(missing)
    with pytest.raises(LogError, match="1 to 2"):
        await log.fork(3)


class TestFollow:
    async def test_gives_what_was_there_and_then_what_comes(self, log: EventLog):
        await log.append(said("1"), said("2"))
        followed = log.follow(after=1)
        assert contents([await anext(followed)]) == ["2"]
        waiting = asyncio.ensure_future(anext(followed))
        await log.append(said("3"))
        assert contents([await waiting]) == ["3"]

    async def test_in_a_fork_gives_the_shared_events_and_its_own_only(self, log: EventLog):
        await log.append(said("shared"), said("left behind"))
        fork = await log.fork(1)
        followed = fork.follow()
        assert contents([await anext(followed)]) == ["shared"]
        await log.append(said("of the parent"))
        await fork.append(said("of the fork"))
        event = await anext(followed)
        assert (event.id, contents([event])) == (2, ["of the fork"])

    async def test_tells_how_far_the_log_goes_without_reading_it(self, log: EventLog):
        await log.append(said("1"))
        heads = log.heads()
        assert await anext(heads) == 1
        await log.append(said("2"), said("3"))
        assert await anext(heads) == 3
        await heads.aclose()

    async def test_ends_when_the_store_closes(self, data: Path):
        store = Store.open(data)
        log = await store.create(agent="a", model="m")
        followed = log.follow()
        await log.append(said("1"))
        await anext(followed)
        waiting = asyncio.ensure_future(anext(followed, None))
        await store.close()
        assert await waiting is None

    async def test_of_a_session_that_is_deleted_says_so(self, store: Store, log: EventLog):
        followed = log.follow()
        await log.append(said("1"))
        await anext(followed)
        waiting = asyncio.ensure_future(anext(followed))
        await log.head()
        await store.delete(log.id)
        with pytest.raises(SessionMissing, match="deleted"):
            await waiting


class TestSessions:
    async def test_are_listed_newest_first(self, store: Store):
        made = [(await store.create(agent="a", model="m", title=str(n))).id for n in range(5)]
        first = await store.sessions(limit=3)
        assert [session.id for session in first] == made[:1:-1]
        assert [session.title for session in await store.sessions()] == ["4", "3", "2", "1", "0"]

    async def test_are_found_by_the_first_characters_of_their_id(self, store: Store, log: EventLog):
        assert await store.log(log.id[:8]) is log
        with pytest.raises(SessionMissing, match="no session"):
            await store.log("%")
        await store.create(agent="a", model="m")
        with pytest.raises(SessionMissing, match="several"):
            await store.log("")

    async def test_can_be_renamed_and_keep_what_is_not_named(self, store: Store, log: EventLog):
        await store.update(log.id, title="new", state="running")
        await store.update(log.id, state="finished")
        info = await log.info()
        assert (info.title, info.state, info.agent) == ("new", "finished", "CodeActAgent")
        with pytest.raises(SessionMissing):
            await store.update("nobody", title="x")

    async def test_know_what_they_were_forked_from_and_share_it_until_deleted(self, store: Store, log: EventLog):
        await log.append(said("1"), said("2"))
        fork = await log.fork(1)
        info = await fork.info()
        assert (info.parent, info.parent_event, info.head) == (log.id, 1, 1)
        with pytest.raises(SessionShared, match=fork.id):
            await store.delete(log.id)
        await store.delete(fork.id)
        await store.delete(log.id)
        with pytest.raises(SessionMissing, match="deleted"):
            await log.append(said("3"))
        assert await store.sessions() == []


async def test_what_was_queued_when_the_store_closes_is_stored_and_later_calls_are_refused(data: Path):
    store = Store.open(data)
    log = await store.create(agent="a", model="m")
    pending = [asyncio.ensure_future(log.append(said(str(n)))) for n in range(50)]
    await asyncio.sleep(0)
    await store.close()
    await asyncio.gather(*pending)
    with pytest.raises(LogError, match="closed"):
        await log.append(said("late"))
    async with Store.open(data) as store:
        assert await (await store.log(log.id)).head() == 50


async def test_only_the_user_of_the_machine_can_read_the_files(store: Store, log: EventLog, data: Path):
    async with log.lease():
        await log.append(AgentFinishAction())
    await store.blobs.put(b"x")
    assert data.stat().st_mode & 0o777 == 0o700
    for path in data.rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path

"""Lists of sessions: archived ones, what they cost, and the search in their contents."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handiwork.events.action import AgentFinishAction, AgentState, CmdRunAction, MessageAction
from handiwork.events.observation import CmdOutputObservation
from handiwork.log.lists.pages import Cursor
from handiwork.log.session import SessionInfo
from handiwork.log.store import Store

pytestmark = pytest.mark.slow

STATES: tuple[AgentState, ...] = get_args(AgentState)
NEED_THE_USER = {"awaiting_user_confirmation", "awaiting_user_input", "paused", "error", "running"}
"""The states of sessions that need the user, if no process runs them."""


async def found(store: Store, text: str) -> list[str]:
    return [info.title for info in await store.sessions(text=text)]


async def put(store: Store, title: str, command: str) -> str:
    log = await store.create(agent="A", model="m", title=title)
    await log.append(MessageAction(content=f"Please do the {title}.", source="user"))
    async with log.lease():
        run = CmdRunAction(command=command)
        output = CmdOutputObservation(content="its output", command=command, exit_code=0)
        await log.append(run, output, AgentFinishAction(outputs={"message": f"100% of {title}"}))
    return log.id


async def test_a_search_finds_messages_commands_and_results_but_no_outputs_and_no_field_names(store: Store) -> None:
    await put(store, "first", 'grep -rn "a\\b" src\ncat_a_line')
    await put(store, "second", "make ü")
    assert await found(store, "please DO the") == ["second", "first"]
    assert await found(store, '"a\\b" src\ncat') == ["first"]
    assert await found(store, "ü") == ["second"]
    assert await found(store, "100% of s") == ["second"]
    assert await found(store, "10_% of") == []
    assert await found(store, "its output") == []
    assert await found(store, "is_input") == []


async def test_a_deleted_session_is_not_found_and_its_text_is_gone(data: Path, store: Store) -> None:
    await store.delete(await put(store, "first", "echo unusual"))
    assert await found(store, "unusual") == []
    database = sqlite3.connect(data / "handiwork.db")
    assert database.execute("SELECT count(*) FROM contents").fetchone() == (0,)


async def test_the_texts_of_an_older_log_are_found(data: Path) -> None:
    async with Store.open(data) as store:
        await put(store, "first", "echo unusual")
    with sqlite3.connect(data / "handiwork.db") as database:
        database.execute("DROP TABLE contents")
        database.execute("DROP TABLE details")
    async with Store.open(data) as store:
        assert await found(store, "unusual") == ["first"]
        assert [info.archived for info in await store.sessions()] == [False]


async def test_an_archived_session_is_listed_apart_and_is_taken_back(store: Store) -> None:
    first, second = await put(store, "first", "a"), await put(store, "second", "b")
    await store.update(first, archived=True)
    assert [info.id for info in await store.sessions(archived=False)] == [second]
    assert [info.id for info in await store.sessions(archived=True)] == [first]
    assert [info.id for info in await store.sessions()] == [second, first]
    await store.update(first, spent=1.5, lines=(3, 1))
    info = await (await store.log(first)).info()
    assert (info.archived, info.spent, info.added, info.deleted) == (True, 1.5, 3, 1)
    await store.update(first, archived=False)
    assert await store.sessions(archived=True) == []


async def paged(store: Store, limit: int, archived: bool | None = None) -> list[SessionInfo]:
    page = await store.waiting_first(limit, archived=archived)
    result = page.sessions
    while page.next is not None:
        assert len(page.sessions) == limit
        page = await store.waiting_first(limit, Cursor.parse(str(page.next)), archived=archived)
        assert page.sessions
        result = result + page.sessions
    return result


@settings(max_examples=40, deadline=None)
@given(
    states=st.lists(st.tuples(st.sampled_from(STATES), st.booleans()), max_size=14),
    limit=st.integers(1, 6),
    together=st.booleans(),
)
def test_each_session_is_on_one_page_and_those_that_need_the_user_come_first(
    states: list[tuple[AgentState, bool]], limit: int, together: bool
) -> None:
    async def check(data: Path) -> None:
        async with Store.open(data) as store:
            ids: list[str] = []
            for state, archived in states:
                log = await store.create(agent="A", model="m", state=state)
                await store.update(log.id, archived=archived)
                ids.append(log.id)
        if together:  # as clocks without microseconds would have it
            with sqlite3.connect(data / "handiwork.db") as database:
                database.execute("UPDATE sessions SET created = 1700000000.25")
            database.close()
        async with Store.open(data) as store:
            for archived in (None, True, False):
                rows = await paged(store, limit, archived)
                chosen = [info for info in await store.sessions(500) if archived in (None, info.archived)]
                waiting = [info for info in chosen if info.state in NEED_THE_USER]
                assert rows == waiting + [info for info in chosen if info not in waiting]
                assert (await store.waiting_first(1, archived=archived)).waiting == len(waiting)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(check(Path(folder)))


async def test_a_running_session_needs_the_user_once_its_process_has_ended(data: Path) -> None:
    async with Store.open(data) as store:
        log = await store.create(agent="A", model="m", state="running")
        async with log.lease():
            assert ((await store.waiting_first()).waiting, await store.interrupted_ids()) == (0, [])
        assert ((await store.waiting_first()).waiting, await store.interrupted_ids()) == (1, [log.id])


async def test_a_page_follows_a_deleted_session_and_holds_damaged_ones(data: Path) -> None:
    async with Store.open(data) as store:
        ids = [(await store.create(agent="A", model="m", state="finished")).id for _ in range(6)]
    with sqlite3.connect(data / "handiwork.db") as database:
        database.execute("UPDATE sessions SET created = 'yesterday' WHERE id IN (?, ?)", ids[:2])
        database.execute("UPDATE sessions SET state = 'asleep' WHERE id = ?", ids[2:3])
    database.close()
    async with Store.open(data) as store:
        page = await store.waiting_first(2)
        assert [info.id for info in page.sessions] == [ids[2], ids[5]]
        assert (page.sessions[0].state, page.waiting) == ("error", 1)
        await store.delete(ids[5])
        page = await store.waiting_first(2, page.next)
        assert [info.id for info in page.sessions] == [ids[4], ids[3]]
        page = await store.waiting_first(2, page.next)
        assert [info.id for info in page.sessions] == sorted(ids[:2], reverse=True)
        assert page.next is None

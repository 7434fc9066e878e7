"""Lists of sessions: archived ones, what they cost, and the search in their contents."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from handiwork.events.action import AgentFinishAction, CmdRunAction, MessageAction
from handiwork.events.observation import CmdOutputObservation
from handiwork.log.store import Store


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

"""The list of sessions: those that need the user come first, several are changed together, the address keeps it."""

from __future__ import annotations

import asyncio
import re
from typing import get_args

import pytest
from playwright.async_api import Route, expect

from handiwork.events.action import AgentState
from handiwork.log.store import Store
from scripts.harness.serving import Api, bash, finish
from tests.web.conftest import OpenWindow

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]


async def test_sessions_are_found_by_their_commands_and_archived_together(
    open_window: OpenWindow, api: Api, session: str
) -> None:
    number = [api.create(bash(f"echo kept >> kept{at}.txt"), finish(), title=f"shelf {at}") for at in range(3)]
    for one in number:
        await asyncio.to_thread(api.until, one, "finished")
    page = await open_window("/?q=shelf")
    links = page.get_by_role("main").get_by_role("listitem").get_by_role("link")
    await expect(links).to_have_text(["shelf 2", "shelf 1", "shelf 0"])
    await expect(page.get_by_role("listitem").filter(has_text="shelf 1")).to_contain_text("project")
    await expect(page.get_by_role("listitem").filter(has_text="shelf 1")).to_contain_text("+1 −0")
    await page.get_by_role("searchbox").fill("KEPT >> kept1")
    await expect(links).to_have_text(["shelf 1"])

    await page.get_by_role("searchbox").fill("shelf")
    await page.get_by_role("button", name="Archive shelf 1").click()
    await expect(links).to_have_text(["shelf 2", "shelf 0"])
    await page.get_by_role("checkbox", name="Select shelf 0").check()
    await page.get_by_role("checkbox", name="Select shelf 2").check()
    bulk = page.get_by_role("region", name="Selected sessions")
    await bulk.get_by_role("button", name="Archive").click()
    await expect(page.get_by_text("No session matches.")).to_be_visible()

    await page.get_by_role("checkbox", name="Archived").check()
    await expect(page).to_have_url(f"{api.url}/?q=shelf&archived=true")
    await expect(links).to_have_text(["shelf 2", "shelf 1", "shelf 0"])
    await page.reload()
    await expect(links).to_have_text(["shelf 2", "shelf 1", "shelf 0"])
    await page.get_by_role("button", name="Take back shelf 2").click()
    await expect(links).to_have_text(["shelf 1", "shelf 0"])
    assert [row["title"] for row in api.get("/api/sessions", q="shelf")["sessions"]] == ["shelf 2"]


async def test_sessions_that_need_the_user_come_first_and_several_are_deleted(
    open_window: OpenWindow, api: Api, session: str
) -> None:
    asking = api.create(bash("touch a"), finish(), confirmation="always", title="listed: asks")
    done = [api.create(finish(), title=f"listed: {number}") for number in range(2)]
    await asyncio.to_thread(api.until, asking, "awaiting_user_confirmation")
    for one in done:
        await asyncio.to_thread(api.until, one, "finished")
    page = await open_window("/?q=listed")
    await expect(page.get_by_role("searchbox", name="Search sessions")).to_have_value("listed")
    links = page.get_by_role("main").get_by_role("listitem").get_by_role("link")
    await expect(links).to_have_text(["listed: asks", "listed: 1", "listed: 0"])
    await expect(page).to_have_title("● (1) Sessions · Handiwork")
    first = page.get_by_role("region", name="Sessions that need you").get_by_role("listitem")
    await expect(first).to_contain_text("project")

    await page.get_by_role("checkbox", name="Select listed: 0").check()
    await page.get_by_role("checkbox", name="Select listed: 1").check()
    bulk = page.get_by_role("region", name="Selected sessions")
    await bulk.get_by_role("button", name="Delete …").click()
    await bulk.get_by_role("button", name="Delete 2 sessions").click()
    await expect(links).to_have_text(["listed: asks"])
    assert [row["title"] for row in api.get("/api/sessions", q="listed")["sessions"]] == ["listed: asks"]

    await page.get_by_label("State").select_option("finished")
    await expect(page).to_have_url(f"{api.url}/?q=listed&state=finished")
    await expect(page.get_by_text("No session matches.")).to_be_visible()
    await page.reload()
    await expect(page.get_by_label("State")).to_have_value("finished")


async def test_a_session_and_its_fork_are_deleted_together(open_window: OpenWindow, api: Api, session: str) -> None:
    parent = api.create(bash("echo one"), finish(), title="forked: parent")
    await asyncio.to_thread(api.until, parent, "finished")
    at = next(event["id"] for event in api.events(parent) if event["type"] == "CmdOutputObservation")
    fork = api.post(f"{parent}/fork", at=at, model=api.script(finish("unused"), finish()), message="again")
    await asyncio.to_thread(api.until, f"/api/sessions/{fork['id']}", "finished")
    page = await open_window("/?q=forked")
    boxes = page.get_by_role("main").get_by_role("listitem").get_by_role("checkbox")
    await expect(boxes).to_have_count(2)
    for box in await boxes.all():
        await box.check()
    bulk = page.get_by_role("region", name="Selected sessions")
    await bulk.get_by_role("button", name="Delete …").click()
    await bulk.get_by_role("button", name="Delete 2 sessions").click()
    await expect(page.get_by_text("No session matches.")).to_be_visible()
    assert api.get("/api/sessions", q="forked")["sessions"] == []


async def test_an_old_session_that_needs_the_user_is_first_and_counted_on_a_list_of_several_pages(
    open_window: OpenWindow, api: Api, session: str
) -> None:
    async def make() -> list[str]:
        async with Store.open(api.folder / "data") as store:
            finished: list[AgentState] = ["finished"] * 53
            states: list[AgentState] = ["awaiting_user_input", *finished, "stopped"]
            return [
                (await store.create(agent="A", model="m", title=f"paged {number}", state=state)).id
                for number, state in enumerate(states)
            ]

    ids = await asyncio.to_thread(lambda: asyncio.run(make()))
    page = await open_window("/?q=paged")
    links = page.get_by_role("main").get_by_role("listitem").get_by_role("link")
    await expect(links).to_have_count(50)
    await expect(links.first).to_have_text("paged 0")
    await expect(page).to_have_title("● (1) Sessions · Handiwork")
    await page.get_by_role("button", name="Show more").click()
    await expect(links).to_have_text(["paged 0", *(f"paged {number}" for number in range(54, 0, -1))])
    await expect(page.get_by_role("button", name="Show more")).to_have_count(0)

    async def change() -> None:
        async with Store.open(api.folder / "data") as store:
            await store.update(ids[1], state="awaiting_user_confirmation")

    await asyncio.to_thread(lambda: asyncio.run(change()))
    await expect(links.first).to_have_text("paged 1")
    await expect(links).to_have_count(55)
    await expect(page).to_have_title("● (2) Sessions · Handiwork")
    for one in ids:
        await asyncio.to_thread(api.http.delete, f"/api/sessions/{one}")


async def test_while_a_search_takes_long_no_more_of_the_old_list_is_loaded_in_its_place(
    open_window: OpenWindow, api: Api, session: str
) -> None:
    async def make() -> list[str]:
        async with Store.open(api.folder / "data") as store:
            return [(await store.create(agent="A", model="m", title=f"slow {number}")).id for number in range(52)]

    ids = await asyncio.to_thread(lambda: asyncio.run(make()))
    page, answered = await open_window("/?q=slow"), asyncio.Event()
    more = page.get_by_role("button", name="Show more")
    await expect(more).to_be_visible()

    async def wait(route: Route) -> None:
        await answered.wait()
        await route.continue_()

    await page.route(re.compile("q=slow(\\+|%20)7"), wait)
    await page.get_by_role("searchbox").fill("slow 7")
    await expect(more).to_have_count(0)
    answered.set()
    await expect(page.get_by_role("main").get_by_role("listitem").get_by_role("link")).to_have_text(["slow 7"])
    for one in ids:
        await asyncio.to_thread(api.http.delete, f"/api/sessions/{one}")


async def test_the_page_and_the_server_agree_on_the_states_in_which_a_session_needs_the_user(
    open_window: OpenWindow, api: Api
) -> None:
    async def make() -> list[str]:
        async with Store.open(api.folder / "data") as store:
            return [
                (await store.create(agent="A", model="m", title=f"state: {state}", state=state)).id
                for state in get_args(AgentState)
            ]

    ids = await asyncio.to_thread(lambda: asyncio.run(make()))
    listed = api.get("/api/sessions", q="state:")
    titles = [row["title"] for row in listed["sessions"]]
    page = await open_window("/?q=state:")
    for name, expected in (
        ("Sessions that need you", titles[: listed["waiting"]]),
        ("Other sessions", titles[listed["waiting"] :]),
    ):
        links = page.get_by_role("region", name=name).get_by_role("listitem").get_by_role("link")
        await expect(links).to_have_text(expected)
    for one in ids:
        await asyncio.to_thread(api.http.delete, f"/api/sessions/{one}")

"""The conversation and the timeline: what is folded, what stays in view, and where a fork begins."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from handiwork.events.action import CmdRunAction, MessageAction
from handiwork.events.observation import CmdOutputObservation
from handiwork.events.record import CompletionEvent, StepStarted
from handiwork.log.store import Store
from scripts.harness.everything import call
from scripts.harness.serving import Api, bash, finish
from tests.web.conftest import OpenWindow
from tests.web.test_a_session import conversation_of, page_of, question_of, state_of, step_of

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

LONG = "python3 -c \"print('x' * 3000)\""
COLOURED = r"printf '\033[31mred\033[0m\n'"


async def finished(api: Api, *replies: dict[str, Any], **options: Any) -> str:
    """Run a session to its end and return it."""
    session = api.create(*replies, finish("All of it."), **options)
    await asyncio.to_thread(api.until, session, "finished")
    return session


async def height(element: Locator) -> float:
    box = await element.bounding_box()
    assert box is not None
    return box["height"]


async def below(page: Page, element: Locator) -> float:
    """Return the pixels of the element that are below the visible part of the conversation."""
    await expect(element).to_be_attached()
    inner, outer = await element.bounding_box(), await conversation_of(page).bounding_box()
    assert inner is not None
    assert outer is not None
    return inner["y"] + inner["height"] - (outer["y"] + outer["height"])


async def test_finished_steps_are_one_line_that_opens_to_the_lines_of_each(open_window: OpenWindow, api: Api) -> None:
    session = await finished(api, bash(LONG, said="I count."), bash(COLOURED), bash("exit 3"))
    page = await page_of(open_window, session)
    chat = conversation_of(page)
    group = chat.get_by_role("button", name="3 steps: Ran 3 commands")
    await expect(group).to_contain_text("1 failed")
    await expect(chat).to_contain_text("I count.")
    await expect(step_of(page, "Run")).to_have_count(0)
    await group.click()
    await expect(step_of(page, "Run")).to_have_count(3)
    await expect(step_of(page, "Run exit 3")).to_contain_text("exit 3")

    await step_of(page, "Run printf").get_by_role("button").first.click()
    await expect(step_of(page, "Run printf").locator(".ansi-red")).to_have_text("red")
    long = step_of(page, "Run python3")
    await expect(long).not_to_contain_text("xxxxxxxx")
    await long.get_by_role("button").first.click()
    output = long.get_by_role("group", name="the output")
    one_row = await height(output)
    assert one_row < 40, "a line of 3,000 characters is one row"
    await long.get_by_role("button", name="More").click()
    await expect(output).to_have_text("x" * 3000)
    assert await height(output) > 5 * one_row

    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await long.get_by_role("button", name="Copy the output").click()
    await expect(long.get_by_role("button", name="Copied")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == "x" * 3000 + "\n"


async def test_there_is_one_plan_that_ticks_off(open_window: OpenWindow, api: Api) -> None:
    plan = call("plan_task", goal="Count", subtasks=["Count to one", "Count to two"])
    ticks = [call("modify_task", task_id=f"0.{number}", state="completed") for number in (0, 1)]
    session = api.create(plan, bash("touch 1"), ticks[0], bash("touch 2"), ticks[1], finish(), confirmation="always")
    page = await page_of(open_window, session)
    strip = page.locator("summary", has_text="Plan")
    await expect(strip).to_contain_text("Count to one")
    for number in (1, 2):
        await expect(question_of(page)).to_contain_text(f"touch {number}")
        await expect(strip).to_contain_text(f"{number - 1} of 2 done")
        await question_of(page).get_by_role("button", name="Allow once").click()
    await expect(strip).to_contain_text("2 of 2 done")
    await strip.click()
    await expect(page.get_by_role("listitem").filter(has_text="Count to two").last).to_contain_text("completed")
    await expect(page.get_by_text("in progress")).to_have_count(0)
    await expect(conversation_of(page)).not_to_contain_text("[x]")


async def test_the_newest_stays_in_view_when_a_question_appears(open_window: OpenWindow, api: Api) -> None:
    many = "\n\n".join(f"Paragraph {number}." for number in range(30))
    session = api.create(
        bash("sleep 2", said=many), bash("touch a", said="Shall I touch it?"), finish(), confirmation="always"
    )
    page = await page_of(open_window, session)
    await question_of(page).get_by_role("button", name="Allow once").click()
    await expect(question_of(page)).to_have_count(0)
    await expect(question_of(page)).to_contain_text("touch a")
    newest = step_of(page, "Run touch a")
    await expect(newest).to_be_in_viewport()
    assert await below(page, newest) <= 1


async def test_a_key_held_down_answers_one_question_only(open_window: OpenWindow, api: Api) -> None:
    two = {"tool_calls": [*bash("touch 1")["tool_calls"], *bash("touch 2")["tool_calls"]]}
    session = api.create(two, finish(), confirmation="always")
    page = await page_of(open_window, session)
    await expect(question_of(page)).to_contain_text("touch 1")
    await page.keyboard.down("y")
    await expect(question_of(page)).to_contain_text("touch 2")
    for _ in range(3):
        await page.keyboard.down("y")
    await page.keyboard.up("y")
    await expect(question_of(page)).to_contain_text("touch 2")
    assert len([event for event in api.events(session) if event["type"] == "ApprovalEvent"]) == 1
    await page.keyboard.press("y")
    await expect(state_of(page)).to_contain_text("Finished")


async def test_a_key_answers_a_question_also_after_a_choice_in_a_pane(open_window: OpenWindow, api: Api) -> None:
    session = api.create(bash("touch 1"), finish(), confirmation="always")
    page = await page_of(open_window, session, "?pane=changes")
    await expect(question_of(page)).to_contain_text("touch 1")
    await page.get_by_role("radio", name="Step").check()
    await page.keyboard.press("y")
    await expect(state_of(page)).to_contain_text("Finished")


async def test_the_number_of_a_step_forks_at_the_end_of_the_step(open_window: OpenWindow, api: Api) -> None:
    two = {"tool_calls": [*bash("echo one > number")["tool_calls"], *bash("echo two > number")["tool_calls"]]}
    session = await finished(api, two, bash("echo three > number"))
    events = api.events(session)
    action = next(event["id"] for event in events if event["type"] == "CmdRunAction")
    end = [event["id"] for event in events if event["type"] == "CmdOutputObservation"][1]
    page = await page_of(open_window, session)
    await conversation_of(page).get_by_role("button", name="3 steps").click()
    await page.get_by_role("button", name=f"Fork after event {action}", exact=True).click()
    dialog = page.get_by_role("dialog", name=f"Fork at event {end}")
    await dialog.get_by_label("Message to the agent").fill("That will do.")
    await dialog.get_by_label("Model").fill(api.script({"content": "as it was"}, finish()))
    await dialog.get_by_role("button", name="Fork", exact=True).click()
    await expect(conversation_of(page)).to_contain_text("That will do.")
    await expect(state_of(page)).to_contain_text("Finished")
    fork = page.url.rpartition("/")[2]
    assert api.http.get(f"/api/sessions/{fork}/files/content", params={"path": "number"}).text == "two\n"


async def test_the_number_of_a_message_forks_after_it_on_a_phone_too_as_does_that_of_a_closed_step(
    open_window: OpenWindow, api: Api
) -> None:
    session = await finished(api, bash("echo one"))
    numbers = {event["type"]: event["id"] for event in reversed(api.events(session))}
    page = await page_of(open_window, session)
    await page.set_viewport_size({"width": 390, "height": 800})
    for number in (numbers["MessageAction"], numbers["CmdRunAction"]):
        await page.get_by_role("button", name=f"Fork after event {number}", exact=True).click()
        dialog = page.get_by_role("dialog", name="Fork at event")
        await expect(dialog).to_be_visible()
        await dialog.get_by_role("button", name="Close").click()
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390


async def test_the_timeline_has_an_entry_for_an_action_and_its_result(open_window: OpenWindow, api: Api) -> None:
    session = await finished(api, bash("true"), bash("exit 3"), bash("echo done"))
    events = api.events(session)
    failed = next(event for event in events if event.get("exit_code") == 3)
    page = await page_of(open_window, session, "?pane=timeline")
    entries = page.get_by_role("listbox", name="Events").get_by_role("option")
    await expect(entries.filter(has=page.get_by_text("Run", exact=True))).to_have_count(3)
    await expect(page.get_by_text("Cmd output")).to_have_count(0)
    await page.get_by_role("radio", name="Failures").check()
    await expect(entries).to_have_count(1)
    await entries.first.click()
    await expect(page.get_by_text(f"after event {failed['id']}", exact=True)).to_be_visible()
    event = page.get_by_role("region", name="Event", exact=True)
    await expect(event.get_by_role("heading")).to_have_text(
        [re.compile("^CmdRunAction"), re.compile("^CmdOutputObservation")]
    )
    await page.get_by_role("radio", name="Conversation").check()
    await expect(entries).to_have_text([re.compile("You"), re.compile("Finished")])


async def test_steps_without_prose_are_scrolled_back_to_the_first(open_window: OpenWindow, api: Api) -> None:
    async with Store.open(api.folder / "data") as store:
        log = await store.create(agent="CodeActAgent", model="m", title="Without a word")
        async with log.lease():
            await log.append(MessageAction(source="user", content="Count."))
            for first in range(2, 2600, 4):
                done = CmdOutputObservation(cause=first + 2, command="true", exit_code=0)
                command = CmdRunAction(source="agent", command="true", completion=first + 1)
                await log.append(StepStarted(), CompletionEvent(model="m", response={}), command, done)
    page = await open_window(f"/s/{log.id}")
    chat = conversation_of(page)
    await expect(chat.get_by_role("button", name="steps: Ran").first).to_be_visible()
    first = chat.get_by_role("article", name="You, event 1")
    async with asyncio.timeout(60):
        while not await first.count():
            await chat.evaluate("element => element.scrollBy(0, -400)")
            await asyncio.sleep(0.1)
    await expect(first).to_be_visible()

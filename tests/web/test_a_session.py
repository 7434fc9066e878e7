"""What a user does with a session in the browser, each in a session of its own."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import Locator, Page, expect

from scripts.harness.serving import Api, bash, finish, until
from tests.web.conftest import OpenWindow

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]


def state_of(page: Page) -> Locator:
    return page.get_by_role("region", name="State of the session")


def question_of(page: Page) -> Locator:
    return page.get_by_role("region", name="The agent needs your approval")


def conversation_of(page: Page) -> Locator:
    return page.get_by_role("group", name="Conversation")


def step_of(page: Page, beginning: str) -> Locator:
    """Return the step whose name begins so."""
    return conversation_of(page).get_by_role("article", name=re.compile(f"^{re.escape(beginning)}"))


def endless(number: int) -> str:
    """Return a command that prints seven times the number for ever, as a page shows only what is printed later."""
    return f"while sleep 0.2; do echo $((7 * {number})); done"


async def page_of(open_window: OpenWindow, session: str, rest: str = "") -> Page:
    return await open_window(f"/s/{session.removeprefix('/api/sessions/')}{rest}")


async def test_a_task_is_given_watched_and_found_again(open_window: OpenWindow, api: Api, session: str) -> None:
    replies = [
        bash("echo good bye > greeting.txt; echo written", said="I *change* the greeting."),
        finish("It is done."),
    ]
    page = await open_window("/")
    await page.get_by_role("button", name="New session").click()
    dialog = page.get_by_role("dialog", name="New session")
    await dialog.get_by_label(re.compile("^Task")).fill("Say good bye instead")
    await dialog.get_by_label(re.compile("^Folder")).fill(str(api.workspace))
    await dialog.get_by_label(re.compile("^Model")).fill(api.script(*replies))
    await dialog.get_by_role("button", name="Start").click()

    await expect(page.get_by_role("heading", level=1)).to_have_text("Say good bye instead")
    await expect(state_of(page)).to_contain_text("Finished")
    chat = conversation_of(page)
    await expect(chat).to_contain_text("I change the greeting.")
    await step_of(page, "Run").get_by_role("button").first.click()
    await expect(step_of(page, "Run").get_by_role("group", name="the output")).to_have_text("written")
    await expect(chat).to_contain_text("It is done.")
    await page.get_by_role("tab", name="Changes").click()
    await expect(page.get_by_role("region", name="Changes of greeting.txt")).to_contain_text("+good bye")

    await page.get_by_role("link", name="All sessions").click()
    await page.get_by_role("searchbox", name="Search sessions").fill("good bye")
    row = page.get_by_role("listitem").filter(has=page.get_by_role("link", name="Say good bye instead"))
    await expect(row).to_contain_text("finished")
    assert (api.workspace / "greeting.txt").read_text() == "hello\n", "the agent worked on a copy"


async def test_an_action_is_allowed_with_its_like_and_another_rejected(open_window: OpenWindow, api: Api) -> None:
    session = api.create(
        bash("touch a"), bash("touch b"), bash("rm greeting.txt"), finish(), confirmation="always", task="touch"
    )
    page = await page_of(open_window, session)
    asked = question_of(page)
    await expect(asked.get_by_role("group", name="The action")).to_contain_text("touch a")
    await expect(page.get_by_role("tabpanel", name="Terminal")).to_contain_text("No commands yet.")
    await expect(asked).to_contain_text("command touch *")
    await asked.get_by_role("button", name="Allow for this session").click()
    await expect(asked.get_by_role("group", name="The action")).to_contain_text("rm greeting.txt")
    await asked.get_by_role("textbox", name="Reason to refuse").fill("I need it")
    await asked.get_by_role("button", name="Refuse").click()

    await expect(state_of(page)).to_contain_text("Finished")
    await expect(asked).to_have_count(0)
    await expect(conversation_of(page)).to_contain_text("I need it")
    assert api.get(session)["rules"] == ["command touch *"]
    assert [entry["name"] for entry in api.get(f"{session}/files")["entries"]] == ["a", "b", "greeting.txt"]


async def test_keys_interrupt_what_runs_and_it_goes_on(open_window: OpenWindow, api: Api) -> None:
    session = api.create(bash(endless(6)), bash(endless(8)), bash(endless(9)), finish())
    page = await page_of(open_window, session)
    chat, state = conversation_of(page), state_of(page)
    await expect(chat).to_contain_text("42\n42")
    message = page.get_by_role("textbox", name="Message", exact=True)
    await message.fill("I wanted to say")
    await message.press("Control+.")
    await expect(state).to_contain_text("Paused")
    await expect(message).to_have_value("I wanted to say")
    await state.get_by_role("button", name="Resume").click()

    await expect(chat).to_contain_text("56\n56")
    await chat.click()
    await page.keyboard.press("Escape")
    await expect(state).to_contain_text("Paused")
    await state.get_by_role("button", name="Resume").click()
    await expect(chat).to_contain_text("63\n63")
    await page.get_by_role("region", name="Terminal").click()
    await expect(page.get_by_role("textbox", name="Terminal, read only")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(state).to_contain_text("Paused")
    await state.get_by_role("button", name="Resume").click()
    await expect(state).to_contain_text("Finished")


async def test_a_page_opened_late_says_how_long_the_command_has_run(open_window: OpenWindow, api: Api) -> None:
    session = api.create(bash(endless(6)), finish())
    await asyncio.to_thread(until, lambda: "CmdRunAction" in api.types(session))
    await asyncio.sleep(5)
    page = await page_of(open_window, session)
    await expect(state_of(page)).to_contain_text(re.compile(r"([5-9]|\d\d) s ·"), timeout=3000)
    api.post(f"{session}/stop")


async def test_a_file_is_uploaded_and_comes_back_as_it_was(open_window: OpenWindow, api: Api) -> None:
    session = api.create(finish("Give me the data."), bash("cat data.csv"), finish())
    page = await page_of(open_window, session, "?pane=files")
    await expect(state_of(page)).to_contain_text("Finished")
    content = b"name,age\nAda,36\n"
    async with page.expect_file_chooser() as chooser:
        await page.get_by_role("button", name="Upload to the workspace").click()
    await (await chooser.value).set_files([{"name": "data.csv", "mimeType": "text/csv", "buffer": content}])
    await page.get_by_role("treeitem", name="data.csv").click()
    viewer = page.get_by_role("region", name="File data.csv")
    await expect(viewer).to_contain_text("Ada,36")
    numbers, code = [viewer.locator(".gutter"), viewer.locator("code")]
    height = "element => getComputedStyle(element).lineHeight"
    assert await numbers.evaluate(height) == await code.evaluate(height)
    async with page.expect_download() as download:
        await viewer.get_by_role("link", name="Download").click()
    assert (await (await download.value).path()).read_bytes() == content

    await page.get_by_role("textbox", name="Message", exact=True).fill("There it is.")
    await page.get_by_role("button", name="Send").click()
    await expect(step_of(page, "Run")).to_contain_text("2 lines")
    await step_of(page, "Run").get_by_role("button").first.click()
    await expect(step_of(page, "Run")).to_contain_text("Ada,36")
    await expect(state_of(page)).to_contain_text("Finished")


async def test_an_upload_replaces_a_file_only_if_the_user_says_so(open_window: OpenWindow, api: Api) -> None:
    session = api.create(bash("echo agent > notes.txt"), finish())
    page = await page_of(open_window, session, "?pane=files")
    await expect(state_of(page)).to_contain_text("Finished")
    for accepted, content in ((False, "agent\n"), (True, "user\n")):
        async with page.expect_file_chooser() as chooser:
            await page.get_by_role("button", name="Upload to the workspace").click()
        async with page.expect_event("dialog") as asked:
            await (await chooser.value).set_files([{"name": "notes.txt", "mimeType": "", "buffer": b"user\n"}])
        question = await asked.value
        assert question.message == "notes.txt exists. Replace it?"
        await (question.accept() if accepted else question.dismiss())
        if accepted:
            await expect(page.get_by_text("Uploaded notes.txt.")).to_be_visible()
        answer = await asyncio.to_thread(api.http.get, f"{session}/files/content", params={"path": "notes.txt"})
        assert answer.text == content


async def test_a_session_is_forked_at_an_event_and_compared(open_window: OpenWindow, api: Api) -> None:
    session = api.create(bash("echo one > number"), bash("echo two > number"), finish(), task="count")
    await asyncio.to_thread(api.until, session, "finished")
    at = next(event["id"] for event in api.events(session) if event["type"] == "CmdOutputObservation")
    page = await page_of(open_window, session, "?pane=timeline")
    await page.get_by_role("slider", name="Event").fill(str(at))
    await expect(page.get_by_text(f"after event {at}", exact=True)).to_be_visible()
    await page.get_by_role("radio", name="Files").check()
    await page.get_by_role("treeitem", name="number").click()
    await expect(page.get_by_role("region", name="File number")).to_contain_text("one")

    await page.get_by_role("button", name="Fork here").click()
    dialog = page.get_by_role("dialog", name=f"Fork at event {at}")
    await dialog.get_by_label("Message to the agent").fill("Count down instead.")
    await dialog.get_by_label("Model").fill(api.script({"content": "as it was"}, bash("echo zero > number"), finish()))
    await dialog.get_by_label("Show both side by side").check()
    await dialog.get_by_role("button", name="Fork", exact=True).click()
    await expect(state_of(page)).to_contain_text("Finished")
    await expect(conversation_of(page)).to_contain_text("Count down instead.")
    await expect(page.get_by_text(f"They share events 1 to {at}.")).to_be_visible()
    await page.get_by_role("radio", name="Changes").check()
    await expect(page.get_by_role("region", name="This session")).to_contain_text("+zero")
    await expect(page.get_by_role("region", name="Forked from")).to_contain_text("+two")

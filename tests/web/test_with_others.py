"""The page while others act: another tab, the commands, a server that is killed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from scripts.harness.serving import Program, bash, finish, until
from tests.web.conftest import OpenWindow
from tests.web.test_a_session import conversation_of, endless, page_of, question_of, state_of, step_of

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    program = Program(tmp_path)
    yield program
    program.close()


async def articles(page: Page) -> list[str]:
    return await conversation_of(page).get_by_role("article").all_inner_texts()


async def test_two_tabs_and_a_command_answer_one_session(open_window: OpenWindow, program: Program) -> None:
    api = program.start()
    session = api.create(bash("touch a"), bash("touch b"), bash("touch c"), finish(), confirmation="always")
    path = f"/s/{session.removeprefix('/api/sessions/')}"
    one = await open_window(path, of=api)
    other = await one.context.new_page()
    await other.goto(path)
    for page in (one, other):
        await expect(question_of(page)).to_contain_text("touch a")
    done = await asyncio.to_thread(program.run, "approve", session.rpartition("/")[2])
    assert done.returncode == 0, done.stderr
    for page in (one, other):
        await expect(question_of(page)).to_contain_text("touch b")
    await question_of(one).get_by_role("button", name=re.compile("^Allow once")).click()
    await expect(question_of(other)).to_contain_text("touch c")
    await question_of(other).get_by_role("textbox", name="Reason to refuse").fill("two are enough")
    await question_of(other).get_by_role("button", name="Refuse").click()
    for page in (one, other):
        await expect(state_of(page)).to_contain_text("Finished")
        await expect(conversation_of(page)).to_contain_text("two are enough")
    shown = await asyncio.to_thread(program.run, "show", session.rpartition("/")[2])
    assert "two are enough" in shown.stdout


async def test_a_session_whose_command_is_killed_is_resumed_in_the_page(
    open_window: OpenWindow, program: Program
) -> None:
    api = program.start()
    model = api.script(bash(endless(6)), finish("All of it."))
    command = program.command("run", "count", "--model", model)
    process = await asyncio.create_subprocess_exec(
        *command, cwd=api.workspace, env=program.environment, stdout=asyncio.subprocess.DEVNULL
    )
    await asyncio.to_thread(until, lambda: api.get("/api/sessions")["sessions"])
    page, listed = await open_window("/", of=api), await open_window("/", of=api)
    row = page.get_by_role("listitem").filter(has=page.get_by_role("link", name="count"))
    await expect(row).to_contain_text("running")
    await expect(listed.get_by_role("link", name="count")).to_be_visible()
    await row.get_by_role("link", name="count").click()
    await expect(conversation_of(page)).to_contain_text("sleep 0.2")
    await expect(state_of(page)).to_contain_text(f"Run by process {process.pid}")
    process.kill()
    await process.wait()
    await expect(state_of(page)).to_contain_text("Interrupted")
    waiting = listed.get_by_role("region", name="Sessions that need you")
    await expect(waiting.get_by_role("listitem")).to_contain_text("interrupted")
    await page.get_by_role("link", name="All sessions").click()
    await expect(row).to_contain_text("interrupted")
    await row.get_by_role("link", name="count").click()
    await state_of(page).get_by_role("button", name="Resume").click()
    await expect(state_of(page)).to_contain_text("Finished")
    await expect(conversation_of(page)).to_contain_text("All of it.")


async def test_nothing_is_lost_or_repeated_when_the_server_is_killed(open_window: OpenWindow, program: Program) -> None:
    api = program.start()
    session = api.create(bash("echo first"), bash(endless(6)), bash("echo third"), finish("All of it."), task="count")
    tall = {"width": 1200, "height": 3000}  # every article is in sight, so that all are in the page
    page = await page_of(lambda path: open_window(path, of=api, viewport=tall), session)
    await expect(conversation_of(page)).to_contain_text("42\n42")
    await asyncio.to_thread(program.kill)
    await expect(page.get_by_text("Not connected")).to_be_visible()
    await asyncio.to_thread(program.start)
    await expect(state_of(page)).to_contain_text("Finished")
    await expect(page.get_by_text("Not connected")).to_have_count(0)

    fresh = await page.context.new_page()
    await fresh.goto(page.url)
    await expect(conversation_of(fresh)).to_contain_text("All of it.")
    for one in (page, fresh):
        await expect(step_of(one, "Run")).to_have_count(3)
    assert await articles(page) == await articles(fresh)
    commands = await step_of(page, "Run").all_inner_texts()
    assert [re.findall("first|sleep|third", text)[:1] for text in commands] == [
        ["first"],
        ["sleep"],
        ["third"],
    ]

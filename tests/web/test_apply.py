"""The work of a session comes home from the page: applied, with conflicts, undone, as a branch and as a patch."""

from __future__ import annotations

import asyncio
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from scripts.harness.serving import Api, bash, finish
from tests.web.conftest import OpenWindow
from tests.web.test_a_session import page_of, question_of, state_of
from tests.web.test_for_everybody import violations
from tests.workspace.trees import git

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

PHONE = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True}


def project_in(folder: Path) -> Path:
    project = folder / "project"
    project.mkdir()
    (project / "poem.txt").write_text("roses are red\nviolets are blue\n")
    (project / "old.txt").write_text("old\n")
    return project


async def finished(api: Api, project: Path, command: str) -> str:
    session = api.create(bash(command), finish(), workspace=str(project), task="Write a poem")
    await asyncio.to_thread(api.until, session, "finished")
    return session


def dialog_of(page: Page) -> Locator:
    return page.get_by_role("dialog", name="Apply the changes")


async def open_dialog(page: Page) -> Locator:
    await state_of(page).get_by_role("button", name="Apply to the folder").click()
    return dialog_of(page)


async def test_changes_are_applied_from_the_banner_and_undone(
    open_window: OpenWindow, api: Api, tmp_path: Path
) -> None:
    project = project_in(tmp_path)
    session = await finished(api, project, "sed -i s/red/pink/ poem.txt; rm old.txt; echo new > new.txt")
    page = await page_of(open_window, session)
    state = state_of(page)
    await expect(state).to_contain_text(f"3 changed files are not in {project} yet.")
    dialog = await open_dialog(page)
    files = dialog.get_by_role("list", name="Files that change")
    await expect(files.get_by_role("listitem")).to_have_text(["write new.txt", "write poem.txt", "delete old.txt"])
    assert (project / "old.txt").exists()
    await dialog.get_by_role("button", name="Apply 3 files").click()
    done = page.get_by_role("dialog", name="Applied")
    await expect(done).to_contain_text(f"3 files changed in {project}.")
    assert sorted(path.name for path in project.iterdir()) == ["new.txt", "poem.txt"]
    assert "pink" in (project / "poem.txt").read_text()
    await done.get_by_role("button", name="Close").last.click()
    await expect(state).to_contain_text(f"The changes are in {project}.")
    await expect(state.get_by_role("button", name="Apply to the folder")).to_have_count(0)

    (project / "poem.txt").write_text("mine\n")
    await state.get_by_role("button", name="Undo the apply").click()
    await expect(state.get_by_role("alert")).to_contain_text("have changed since the apply: poem.txt")
    assert (project / "new.txt").exists()
    (project / "poem.txt").write_text("roses are pink\nviolets are blue\n")
    await state.get_by_role("button", name="Undo the apply").click()
    await expect(state).to_contain_text("3 changed files are not in")
    assert sorted(path.name for path in project.iterdir()) == ["old.txt", "poem.txt"]
    assert "red" in (project / "poem.txt").read_text()


async def test_no_apply_is_prepared_while_the_agent_waits_for_the_user(open_window: OpenWindow, api: Api) -> None:
    session = api.create(bash("touch a"), finish(), confirmation="always")
    page = await open_window("/")
    async with page.expect_request("**/apply") as prepared:
        await page.goto(f"/s/{session.rpartition('/')[2]}")
        await expect(question_of(page)).to_be_visible()
        await page.wait_for_load_state("networkidle")
        assert not prepared.is_done()
        await page.keyboard.press("y")
    await expect(state_of(page)).to_contain_text("1 changed file is not in")


async def test_a_conflict_waits_for_an_answer_and_takes_either_version(
    open_window: OpenWindow, api: Api, tmp_path: Path
) -> None:
    project = project_in(tmp_path)
    session = await finished(api, project, "sed -i s/red/pink/ poem.txt; echo theirs > new.txt")
    (project / "poem.txt").write_text("roses are white\nviolets are blue\n")
    (project / "new.txt").write_text("mine\n")
    page = await page_of(open_window, session)
    dialog = await open_dialog(page)
    apply = dialog.get_by_role("button", name=re.compile("^Apply"))
    await expect(dialog.get_by_role("heading", name="2 conflicts")).to_be_visible()
    await expect(apply).to_be_disabled()
    poem = dialog.get_by_role("region", name="Conflict in poem.txt")
    await poem.get_by_text("From yours to the agent’s").click()
    await expect(poem).to_contain_text("-roses are white")
    await expect(poem).to_contain_text("+roses are pink")
    await poem.get_by_role("radio", name="Take the agent’s").check()
    await expect(apply).to_be_disabled()
    await dialog.get_by_role("radio", name="Keep mine").first.check()
    await apply.click()
    done = page.get_by_role("dialog", name="Applied")
    await expect(done).to_contain_text("1 file changed in")
    await expect(done).to_contain_text("new.txt was left as it is")
    assert (project / "poem.txt").read_text() == "roses are pink\nviolets are blue\n"
    assert (project / "new.txt").read_text() == "mine\n"


async def test_the_changes_are_taken_as_a_branch_and_as_a_patch(
    open_window: OpenWindow, api: Api, tmp_path: Path
) -> None:
    project = project_in(tmp_path)
    git(project, "init", "-q", "-b", "main")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "first")
    session = await finished(api, project, "sed -i s/red/pink/ poem.txt")
    page = await page_of(open_window, session, "?pane=changes")
    bar = page.get_by_role("group", name="Get the changes")
    await bar.get_by_role("button", name="Make a branch").click()
    branch = f"handiwork/{session.rpartition('/')[2]}"
    await expect(page.get_by_role("tabpanel")).to_contain_text(f"The changes are on the branch {branch}.")
    assert git(project, "show", f"{branch}:poem.txt") == "roses are pink\nviolets are blue\n"
    assert git(project, "status", "--porcelain") == ""
    banner = state_of(page)
    await expect(banner).not_to_contain_text("on the branch")
    await banner.get_by_role("button", name="Make a branch").click()
    await expect(banner).to_contain_text(f"The changes are on the branch {branch}")
    patches: list[bytes] = []
    for place in (banner, bar):
        async with page.expect_download() as download:
            await place.get_by_role("link", name="Download a patch").click()
        patches.append((await (await download.value).path()).read_bytes())
    patch = patches[0]
    assert patches[1] == patch
    subprocess.run(["git", "apply", "-"], cwd=project, input=patch, check=True)
    assert "pink" in (project / "poem.txt").read_text()


@pytest.mark.parametrize("options", [{"color_scheme": "light"}, {"color_scheme": "dark"}, PHONE])
async def test_axe_finds_nothing_serious_and_a_phone_shows_it_all(
    open_window: OpenWindow, api: Api, tmp_path: Path, options: dict[str, Any]
) -> None:
    project = project_in(tmp_path)
    session = await finished(api, project, "sed -i s/red/pink/ poem.txt; rm old.txt; seq 30 | xargs touch")
    (project / "poem.txt").write_text("roses are white\nviolets are blue\n")
    page = await open_window(f"/s/{session.rpartition('/')[2]}", **options)
    dialog = await open_dialog(page)
    await dialog.get_by_text("From yours to the agent’s").click()
    await expect(dialog).to_contain_text("+roses are pink")
    assert await violations(page) == []
    assert await page.evaluate("document.scrollingElement.scrollWidth <= document.documentElement.clientWidth")
    assert await dialog.evaluate("dialog => dialog.scrollWidth <= dialog.clientWidth")
    await dialog.get_by_role("button", name="Cancel").click()
    await page.get_by_role("tab", name="Changes").click()
    await expect(page.get_by_role("button", name="Make a branch")).to_be_visible()
    assert await violations(page) == []
    assert await page.evaluate("document.scrollingElement.scrollWidth <= document.documentElement.clientWidth")


async def test_commits_that_change_no_file_are_brought_as_a_branch(
    open_window: OpenWindow, api: Api, tmp_path: Path
) -> None:
    project = project_in(tmp_path)
    git(project, "init", "-q")
    git(project, "add", ".")
    git(project, "commit", "-qm", "A poem")
    session = await finished(api, project, "git commit -q --allow-empty -m 'Nothing rhymes'")
    page = await page_of(open_window, session)
    state = state_of(page)
    await expect(state).to_contain_text(f"The agent’s commits are not in {project} yet.")
    dialog = await open_dialog(page)
    await dialog.get_by_role("button", name="Bring the commits").click()
    await page.get_by_role("dialog", name="Applied").get_by_role("button", name="Close").last.click()
    await expect(state.get_by_role("button", name="Apply to the folder")).to_have_count(0)
    assert "Nothing rhymes" in git(project, "log", "--all", "--format=%s")

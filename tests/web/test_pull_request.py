"""A pull request from the page: the token is asked for and tested, the request is edited, opened and linked to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from scripts.harness import forge as forges
from scripts.harness.forge import Standin
from scripts.harness.serving import Api, bash, finish
from tests.web.conftest import OpenWindow
from tests.web.test_a_session import page_of, state_of
from tests.web.test_for_everybody import violations
from tests.workspace.trees import git

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

PHONE = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True}
MESSAGE = "The greeting is German now.\n\n- Fixes #7"


@pytest.fixture(params=["github", "gitlab"])
def forge(request: pytest.FixtureRequest, api: Api, tmp_path: Path) -> Iterator[Standin]:
    with forges.serve(request.param, tmp_path / "forge") as standin:
        settings = api.folder / "config/handiwork/config.toml"
        settings.parent.mkdir(parents=True, exist_ok=True)
        before = settings.read_text() if settings.exists() else ""
        settings.write_text(standin.settings)
        yield standin
        settings.write_text(before)


async def finished(api: Api, forge: Standin, folder: Path) -> tuple[str, Path]:
    project = folder / "project"
    git(folder, "clone", "-q", str(forge.bare), str(project))
    git(project, "remote", "set-url", "origin", forge.address)
    replies = [bash("sed -i s/hello/hallo/ greeting.txt; echo 1 > new.txt"), finish(MESSAGE)]
    session = api.create(*replies, workspace=str(project), title="Greet in German", task="Greet in German")
    await asyncio.to_thread(api.until, session, "finished")
    return session, project


def dialog_of(page: Page, forge: Standin) -> Locator:
    return page.get_by_role("dialog", name=f"Open a {noun_of(forge)}")


def noun_of(forge: Standin) -> str:
    return "pull request" if forge.kind == "github" else "merge request"


async def test_a_request_is_opened_from_the_banner(
    open_window: OpenWindow, api: Api, forge: Standin, tmp_path: Path
) -> None:
    session, project = await finished(api, forge, tmp_path)
    page = await page_of(open_window, session)
    noun = noun_of(forge)
    await state_of(page).get_by_role("button", name=f"Open a {noun}").click()
    dialog = dialog_of(page, forge)
    token = dialog.get_by_label(f"Token for {forge.host}").last
    await token.fill("wrong-token-0123456789")
    await token.press("Enter")
    await expect(dialog.get_by_role("alert")).to_contain_text(f"{forge.host} does not accept the token")
    await token.fill(forge.add("ada"))
    await dialog.get_by_role("button", name="Test and use").click()

    await expect(dialog).to_contain_text(f"In octo/greeter on {forge.host}, as ada. Nothing is sent yet.")
    await expect(dialog.get_by_label("Title")).to_have_value("Greet in German")
    await expect(dialog.get_by_label("Text")).to_have_value(MESSAGE)
    await expect(dialog.get_by_label("Merge into")).to_have_value("main")
    await dialog.get_by_text("2 changed files").click()
    files = dialog.get_by_role("list", name="Changed files").get_by_role("listitem")
    await expect(files).to_have_text(["greeting.txt", "new.txt"])
    await dialog.get_by_label("Title").fill("Hallo")
    await dialog.get_by_label("Text").fill("It greets.")
    await dialog.get_by_label("Merge into").fill("nowhere")
    await dialog.get_by_label("As a draft").check()
    assert git(project, "branch", "--format=%(refname:short)") == "main\n"
    submit = dialog.get_by_role("button", name=f"Open the {noun}")
    await submit.click()
    await expect(dialog.get_by_role("alert")).to_contain_text("has no branch nowhere: give another base")
    assert forge.requests == []
    await dialog.get_by_label("Merge into").fill("main")
    await submit.click()

    done = page.get_by_role("dialog", name=f"{noun.capitalize()} 1")
    await expect(done.get_by_role("status")).to_have_text(f"The {noun} is open.")
    (request,) = forge.requests
    url = request["html_url" if forge.kind == "github" else "web_url"]
    await expect(done.get_by_role("link")).to_have_attribute("href", url)
    branch = f"handiwork/{session.rpartition('/')[2]}"
    await expect(done).to_contain_text(f"Its branch is {branch}")
    assert request["title"].removeprefix("Draft: ") == "Hallo"
    assert request["body" if forge.kind == "github" else "description"] == "It greets."
    assert request["draft"] is True
    assert git(forge.bare, "show", f"{branch}:greeting.txt") == "hallo\n"
    assert (project / "greeting.txt").read_text() == "hello\n"

    await done.get_by_role("button", name="Close").last.click()
    await page.get_by_role("tab", name="Changes").click()
    bar = page.get_by_role("group", name="Get the changes")
    await bar.get_by_role("button", name=f"Open a {noun}").click()
    await dialog.get_by_role("button", name=f"Open the {noun}").click()
    await expect(done).to_contain_text(f"This {noun} was open already.")
    await expect(done.get_by_role("link")).to_have_attribute("href", url)
    assert len(forge.requests) == 1


async def test_a_folder_without_a_forge_has_no_button_in_the_banner_and_a_reason_in_the_dialog(
    open_window: OpenWindow, api: Api, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("1\n")
    session = api.create(bash("echo 2 > a"), finish(), workspace=str(tmp_path))
    await asyncio.to_thread(api.until, session, "finished")
    page = await page_of(open_window, session, "?pane=changes")
    await expect(state_of(page).get_by_role("button", name="Apply to the folder")).to_be_visible()
    await expect(state_of(page).get_by_role("button", name="Open a")).to_have_count(0)
    await page.get_by_role("group", name="Get the changes").get_by_role("button", name="Open a pull request").click()
    dialog = page.get_by_role("dialog", name="Open a pull request")
    await expect(dialog.get_by_role("alert")).to_contain_text("is not a git repository")


@pytest.mark.parametrize(
    ("forge", "options"),
    [("github", {"color_scheme": "light"}), ("gitlab", {"color_scheme": "dark"}), ("gitlab", PHONE)],
    indirect=["forge"],
)
async def test_axe_finds_nothing_serious_and_a_phone_shows_the_dialog(
    open_window: OpenWindow, api: Api, tmp_path: Path, forge: Standin, options: dict[str, Any]
) -> None:
    session, project = await finished(api, forge, tmp_path)
    git(project, "commit", "-q", "--allow-empty", "-m", "mine")
    page = await open_window(f"/s/{session.rpartition('/')[2]}", **options)
    await state_of(page).get_by_role("button", name=f"Open a {noun_of(forge)}").click()
    dialog = dialog_of(page, forge)

    async def check() -> None:
        assert await violations(page) == []
        assert await page.evaluate("document.scrollingElement.scrollWidth <= document.documentElement.clientWidth")
        assert await page.get_by_role("dialog").evaluate("dialog => dialog.scrollWidth <= dialog.clientWidth")

    await expect(dialog.get_by_label(f"Token for {forge.host}").last).to_be_visible()
    await check()
    await dialog.get_by_label(f"Token for {forge.host}").last.fill(forge.add("ada"))
    await dialog.get_by_role("button", name="Test and use").click()
    await expect(dialog).to_contain_text("HEAD has a commit that origin does not have")
    await check()
    await dialog.get_by_role("button", name=f"Open the {noun_of(forge)}").click()
    await expect(page.get_by_role("dialog").get_by_role("link")).to_be_visible()
    await check()

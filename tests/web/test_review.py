"""The user reviews the changes in the page: comments on lines, rejected hunks, and files edited by hand."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from scripts.harness.serving import Api, bash, finish
from tests.web.conftest import OpenWindow
from tests.web.test_a_session import page_of, state_of
from tests.web.test_apply import PHONE, project_in
from tests.web.test_for_everybody import violations

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]


def session_in(api: Api, folder: Path, *more: Any) -> str:
    """Return a finished session that made the roses pink and removed a file."""
    session = api.create(
        bash("sed -i s/red/pink/ poem.txt; rm old.txt"),
        finish(),
        *more,
        workspace=str(project_in(folder)),
        task="Write a poem",
    )
    api.until(session, "finished")
    return session


async def test_comments_on_lines_reach_the_agent_as_one_message_and_it_answers(
    open_window: OpenWindow, api: Api, tmp_path: Path
) -> None:
    session = session_in(api, tmp_path, bash("sed -i s/pink/crimson/ poem.txt"), finish("Crimson now."))
    page = await page_of(open_window, session, "?pane=changes")
    poem = page.get_by_role("region", name="Changes of poem.txt")
    await poem.get_by_role("button", name="Comment on line 1", exact=True).click()
    await page.get_by_role("textbox", name="Comment on line 1 of poem.txt").fill("Make it crimson.")
    await poem.get_by_role("button", name="Add the comment").click()
    await expect(poem).to_contain_text("Make it crimson.")
    old = page.get_by_role("region", name="Changes of old.txt")
    await old.get_by_role("button", name="Comment on deleted line 1").click()
    field = page.get_by_role("textbox", name="Comment on line 1 of old.txt")
    await field.fill("Why?")
    await field.press("Control+Enter")
    await page.get_by_role("tab", name="Files").click()
    await page.get_by_role("tab", name="Changes").click()
    bar = page.get_by_role("group", name="Comments")
    await expect(bar).to_contain_text("2 comments")
    await bar.get_by_role("button", name="Send to the agent").click()

    await expect(poem).to_contain_text("crimson")
    await expect(poem).not_to_contain_text("Make it crimson.")
    await expect(bar).to_contain_text("Comment on a line by its number.")
    said = [event["content"] for event in api.events(session) if event["type"] == "MessageAction"]
    assert (
        "\n\n".join(
            [
                "Comments on your changes:",
                "old.txt, deleted line 1:\n> old\nWhy?",
                "poem.txt, line 1:\n> roses are pink\nMake it crimson.",
            ]
        )
        in said
    )


async def test_a_comment_is_written_changed_and_removed_with_the_keyboard(
    open_window: OpenWindow, api: Api, tmp_path: Path
) -> None:
    session = session_in(api, tmp_path)
    page = await page_of(open_window, session, "?pane=changes")
    poem = page.get_by_role("region", name="Changes of poem.txt")
    await poem.get_by_role("group", name="Changed lines").focus()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await page.keyboard.type("first")
    await page.keyboard.press("Control+Enter")
    await expect(poem).to_contain_text("first")
    await poem.get_by_role("button", name="Edit").click()
    await page.keyboard.press("Escape")
    await expect(poem).to_contain_text("first")
    await poem.get_by_role("button", name="Edit").click()
    await page.keyboard.press("Control+A")
    await page.keyboard.type("second")
    await page.keyboard.press("Control+Enter")
    await expect(poem).to_contain_text("second")
    await expect(poem).not_to_contain_text("first")
    await poem.get_by_role("button", name="Remove").click()
    await expect(poem).not_to_contain_text("second")
    await expect(page.get_by_role("group", name="Comments")).to_contain_text("Comment on a line by its number.")


async def test_a_rejected_hunk_leaves_the_session_s_file_and_the_agent_is_told(
    open_window: OpenWindow, api: Api, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    lines = [f"line {number}" for number in range(1, 31)]
    (project / "poem.txt").write_text("\n".join(lines))
    session = api.create(
        bash("sed -i '2s/line/first/; 30s/line/last/' poem.txt"), finish(), finish(), workspace=str(project)
    )
    api.until(session, "finished")
    page = await page_of(open_window, session, "?pane=changes")
    poem = page.get_by_role("region", name="Changes of poem.txt")
    await expect(poem).to_contain_text("last 30")  # the last part is shown
    await poem.get_by_role("button", name="Comment on deleted line 30").click()
    await page.get_by_role("textbox", name="Comment on line 30 of poem.txt").fill("It has no end.")
    await poem.get_by_role("button", name="Add the comment").click()
    await poem.get_by_role("button", name="Reject").last.click()
    await expect(poem).not_to_contain_text("last 30")
    await expect(poem).to_contain_text("first 2")
    lines[1] = "first 2"
    assert api.http.get(f"{session}/files/content", params={"path": "poem.txt"}).text == "\n".join(lines)
    bar = page.get_by_role("group", name="Comments")
    await expect(bar).to_contain_text("1 comment")
    await bar.get_by_role("button", name="Send to the agent").click()
    await expect(bar).to_contain_text("Comment on a line by its number.")
    said = [event["content"] for event in api.events(session) if event["type"] == "MessageAction"]
    assert any("It has no end.\n\nI rejected this change" in text and "+last 30" in text for text in said)


async def test_a_new_and_a_deleted_file_are_rejected_as_a_whole(
    open_window: OpenWindow, api: Api, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "poem.txt").write_text("roses are red\n")
    (project / "kept.txt").write_text("1\n")
    session = api.create(bash("rm poem.txt; echo x > new.txt; echo 2 > kept.txt"), finish(), workspace=str(project))
    api.until(session, "finished")
    page = await page_of(open_window, session, "?pane=changes")
    changed = page.get_by_role("list", name="Changed files").get_by_role("button")
    await expect(changed).to_have_count(4)
    await expect(page.get_by_role("button", name="Reject the file kept.txt")).to_have_count(0)
    for path in ("new.txt", "poem.txt"):
        await page.get_by_role("button", name=f"Reject the file {path}").click()
        await expect(changed.filter(has_text=path)).to_have_count(0)
    content = f"{session}/files/content"
    assert api.http.get(content, params={"path": "poem.txt"}).text == "roses are red\n"
    assert api.http.get(content, params={"path": "new.txt"}).status_code == 404
    await expect(page.get_by_role("group", name="Comments")).to_contain_text("2 comments")


@pytest.mark.parametrize("options", [{"color_scheme": "light"}, {"color_scheme": "dark"}, PHONE])
async def test_axe_finds_nothing_serious_and_a_phone_shows_it_all(
    open_window: OpenWindow, api: Api, tmp_path: Path, options: dict[str, Any]
) -> None:
    session = session_in(api, tmp_path)
    page = await open_window(f"/s/{session.rpartition('/')[2]}?pane=changes", **options)
    poem = page.get_by_role("region", name="Changes of poem.txt")
    await poem.get_by_role("button", name="Comment on line 1", exact=True).click()
    await page.get_by_role("textbox", name="Comment on line 1 of poem.txt").fill("word " * 40)
    await poem.get_by_role("button", name="Add the comment").click()
    await poem.get_by_role("button", name="Comment on line 2", exact=True).click()
    assert await violations(page) == []
    assert await page.evaluate("document.scrollingElement.scrollWidth <= document.documentElement.clientWidth")


async def long_poem(open_window: OpenWindow, api: Api, folder: Path, **options: Any) -> Page:
    """Return the Changes pane of a session that changed a line, added a long one, and removed another."""
    project = folder / "project"
    project.mkdir()
    (project / "poem.py").write_text("import roses\n\nroses.red()\nold()\n")
    script = f"sed -i '3s/.*/roses.pink()  # {'pink ' * 60}/; 4d; 1a import violets' poem.py"
    session = api.create(bash(script), finish(), workspace=str(project))
    api.until(session, "finished")
    page = await open_window(f"/s/{session.rpartition('/')[2]}?pane=changes", **options)
    await expect(page.get_by_role("region", name="Changes of poem.py")).to_contain_text("roses.pink()")
    return page


IS_WIDE = "[...document.querySelectorAll('.diff-lines')].some(lines => lines.scrollWidth > lines.clientWidth)"


async def test_changes_are_shown_side_by_side_wrapped_and_coloured_as_the_user_chose(
    open_window: OpenWindow, api: Api, tmp_path: Path
) -> None:
    page = await long_poem(open_window, api, tmp_path)
    poem = page.get_by_role("region", name="Changes of poem.py")
    await expect(poem.locator(".line.added .hljs-keyword")).to_have_text("import")
    assert await page.evaluate(IS_WIDE)
    wrap = page.get_by_role("checkbox", name="Wrap")
    await expect(wrap).not_to_be_checked()
    await wrap.check()
    assert not await page.evaluate(IS_WIDE)
    await page.get_by_role("radio", name="Split").check()
    deleted = poem.locator(".line.old.deleted").filter(has_text="roses.red()")
    added = poem.locator(".line.new.added").filter(has_text="roses.pink()")
    await expect(added.locator(".hljs-comment")).to_be_visible()
    left, right = await deleted.bounding_box(), await added.bounding_box()
    assert left
    assert right
    assert (left["y"], left["width"]) == (right["y"], pytest.approx(right["width"], abs=1))
    assert left["x"] + left["width"] <= right["x"] + 1
    assert await violations(page) == []
    await page.reload()
    await expect(added).to_be_visible()
    await expect(page.get_by_role("radio", name="Split")).to_be_checked()
    await page.get_by_role("radio", name="Unified").check()
    await expect(poem.locator(".line.old")).to_have_count(0)
    await expect(wrap).to_be_checked()
    await wrap.uncheck()
    assert await page.evaluate(IS_WIDE)


async def test_lines_are_commented_and_hunks_rejected_side_by_side(
    open_window: OpenWindow, api: Api, tmp_path: Path
) -> None:
    page = await long_poem(open_window, api, tmp_path)
    await page.get_by_role("radio", name="Split").check()
    poem = page.get_by_role("region", name="Changes of poem.py")
    await poem.get_by_role("group", name="Changed lines").focus()
    for _ in range(4):  # lines 1 to 3, and the third before the change
        await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    field = page.get_by_role("textbox", name="Comment on line 3 of poem.py")
    await field.fill("Why not red?")
    await page.get_by_role("radio", name="Unified").check()
    await expect(field).to_have_value("Why not red?")
    await page.get_by_role("radio", name="Split").check()
    await field.press("Control+Enter")
    await expect(poem).to_contain_text("Why not red?")
    assert await violations(page) == []
    await poem.get_by_role("button", name="Reject").click()
    await expect(page.get_by_role("group", name="Comments")).to_contain_text("2 comments")


async def test_a_phone_wraps_changes_and_offers_no_split_view(
    open_window: OpenWindow, api: Api, tmp_path: Path
) -> None:
    page = await long_poem(open_window, api, tmp_path, **PHONE)
    await expect(page.get_by_role("checkbox", name="Wrap")).to_be_checked()
    await expect(page.get_by_role("radio", name="Split")).to_have_count(0)
    assert not await page.evaluate(IS_WIDE)


async def opened_editor(open_window: OpenWindow, api: Api, folder: Path, name: str, content: bytes) -> tuple[str, Page]:
    """Return a finished session in whose page the file is being edited; its second turn would delete the file."""
    project = project_in(folder)
    (project / name).write_bytes(content)
    session = api.create(bash(f"chmod +x {name}"), finish(), bash(f"rm {name}"), finish(), workspace=str(project))
    api.until(session, "finished")
    page = await page_of(open_window, session, "?pane=files")
    await page.get_by_role("treeitem", name=name).click()
    await page.get_by_role("button", name="Edit").click()
    return session, page


def content_of(api: Api, session: str, path: str) -> bytes:
    return api.http.get(f"{session}/files/content", params={"path": path}).content


async def test_a_file_is_edited_and_saved_into_the_session_with_its_line_breaks_and_its_mode(
    open_window: OpenWindow, api: Api, tmp_path: Path
) -> None:
    session, page = await opened_editor(open_window, api, tmp_path, "sum.py", b"def total():\r\n    return 1\r\n")
    field = page.get_by_role("textbox", name="Text of sum.py")
    await expect(field).to_contain_text("def total():")
    await page.keyboard.press("Control+End")
    await page.keyboard.type("print(total())")
    await page.keyboard.press("Enter")
    await page.get_by_role("treeitem", name="poem.txt").click()
    await expect(field).to_have_count(0)
    await page.get_by_role("treeitem", name="sum.py").click()
    await expect(field).to_contain_text("print(total())")
    await field.press("Control+s")
    await expect(page.get_by_role("button", name="Edit")).to_be_visible()
    assert content_of(api, session, "sum.py") == b"def total():\r\n    return 1\r\nprint(total())\r\n"
    patch = api.get(f"{session}/diff")["patch"]
    assert "new mode 100755" in patch
    assert "+print(total())" in patch


async def test_what_is_typed_while_a_file_is_saved_is_kept(open_window: OpenWindow, api: Api, tmp_path: Path) -> None:
    session, page = await opened_editor(open_window, api, tmp_path, "note", b"")
    release = asyncio.Event()

    async def wait(route: Route) -> None:
        if route.request.method == "PUT":
            await release.wait()
        await route.continue_()

    await page.route("**/files/content**", wait)
    field = page.get_by_role("textbox", name="Text of note")
    await field.fill("one")
    async with page.expect_request(lambda request: request.method == "PUT"):
        await field.press("Control+s")
    await page.keyboard.type(" two")
    release.set()
    save = page.get_by_role("button", name="Save")
    await expect(save).to_be_enabled()
    await expect(field).to_have_text("one two")
    assert content_of(api, session, "note") == b"one"
    await save.click()
    await expect(page.get_by_role("button", name="Edit")).to_be_visible()
    assert content_of(api, session, "note") == b"one two"


async def test_a_file_that_changed_meanwhile_is_overwritten_only_on_request(
    open_window: OpenWindow, api: Api, tmp_path: Path
) -> None:
    session, page = await opened_editor(open_window, api, tmp_path, "note", b"")
    await page.get_by_role("textbox", name="Text of note").fill("mine")
    api.http.put(f"{session}/files/content", params={"path": "note"}, content=b"theirs").raise_for_status()
    group = page.get_by_role("group", name="Edit")
    await group.get_by_role("button", name="Save").click()
    await expect(group.get_by_role("alert")).to_contain_text("has changed since you began")
    assert content_of(api, session, "note") == b"theirs"
    assert await violations(page) == []
    await group.get_by_role("button", name="Overwrite").click()
    await expect(page.get_by_role("button", name="Edit")).to_be_visible()
    await expect(page.get_by_role("region", name="File note")).to_contain_text("mine")
    assert content_of(api, session, "note") == b"mine"


async def test_a_file_that_the_agent_deleted_meanwhile_is_written_only_on_request(
    open_window: OpenWindow, api: Api, tmp_path: Path
) -> None:
    session, page = await opened_editor(open_window, api, tmp_path, "note", b"")
    await page.get_by_role("textbox", name="Text of note").fill("mine")
    api.post(f"{session}/messages", content="delete the file")
    async with asyncio.timeout(60):
        while api.http.get(f"{session}/files/content", params={"path": "note"}).status_code != 404:
            await asyncio.sleep(0.1)
    await asyncio.to_thread(api.until, session, "finished")
    group = page.get_by_role("group", name="Edit")
    await group.get_by_role("button", name="Save").click()
    await group.get_by_role("button", name="Overwrite").click()
    await expect(page.get_by_role("button", name="Edit")).to_be_visible()
    assert content_of(api, session, "note") == b"mine"


async def test_a_discarded_edit_leaves_the_file_as_it_is(open_window: OpenWindow, api: Api, tmp_path: Path) -> None:
    session, page = await opened_editor(open_window, api, tmp_path, "note", b"old\n")
    await page.get_by_role("textbox", name="Text of note").fill("new")
    await page.get_by_role("button", name="Discard").click()
    await expect(page.get_by_role("region", name="File note")).to_contain_text("old")
    assert content_of(api, session, "note") == b"old\n"


async def test_a_file_that_changed_again_is_not_overwritten_without_another_question(
    open_window: OpenWindow, api: Api, tmp_path: Path
) -> None:
    session, page = await opened_editor(open_window, api, tmp_path, "note", b"")
    await page.get_by_role("textbox", name="Text of note").fill("mine")
    group = page.get_by_role("group", name="Edit")
    for text, button in ((b"theirs", "Save"), (b"theirs again", "Overwrite")):
        api.http.put(f"{session}/files/content", params={"path": "note"}, content=text).raise_for_status()
        await group.get_by_role("button", name=button).click()
        await expect(group.get_by_role("button", name="Overwrite")).to_be_enabled()
        assert content_of(api, session, "note") == text


async def test_the_agent_is_told_of_an_edit_with_the_comments(
    open_window: OpenWindow, api: Api, tmp_path: Path
) -> None:
    session, page = await opened_editor(open_window, api, tmp_path, "note", b"old\n")
    await page.get_by_role("textbox", name="Text of note").fill("new")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("button", name="Edit")).to_be_visible()
    await page.get_by_role("tab", name="Changes").click()
    bar = page.get_by_role("group", name="Comments")
    await expect(bar).to_contain_text("1 comment")
    await expect(page.get_by_role("tabpanel")).to_contain_text("I edited this file by hand")
    assert await violations(page) == []
    await bar.get_by_role("button", name="Send to the agent").click()
    await expect(bar).to_contain_text("Comment on a line by its number.")
    said = [event["content"] for event in api.events(session) if event["type"] == "MessageAction"]
    assert any(text.startswith("Comments on your changes:\n\nnote:\nI edited this file by hand") for text in said)


async def test_the_agent_is_not_told_of_an_edit_that_changed_nothing(
    open_window: OpenWindow, api: Api, tmp_path: Path
) -> None:
    _, page = await opened_editor(open_window, api, tmp_path, "note", b"old\n")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.get_by_role("textbox", name="Text of note").press("Control+s")
    await page.get_by_role("tab", name="Changes").click()
    await expect(page.get_by_role("group", name="Comments")).to_contain_text("Comment on a line by its number.")
    assert not [url for url in asked if "/files/content" in url]


async def test_a_comment_written_while_a_hunk_is_being_rejected_is_kept(
    open_window: OpenWindow, api: Api, tmp_path: Path
) -> None:
    session = session_in(api, tmp_path)
    page = await page_of(open_window, session, "?pane=changes")
    release = asyncio.Event()

    async def wait(route: Route) -> None:
        await release.wait()
        await route.continue_()

    await page.route("**/diff/reject", wait)
    poem = page.get_by_role("region", name="Changes of poem.txt")
    await poem.get_by_role("button", name="Reject").click()
    old = page.get_by_role("region", name="Changes of old.txt")
    await old.get_by_role("button", name="Comment on deleted line 1").click()
    await page.get_by_role("textbox", name="Comment on line 1 of old.txt").fill("Why?")
    await old.get_by_role("button", name="Add the comment").click()
    bar = page.get_by_role("group", name="Comments")
    await expect(bar).to_contain_text("1 comment")
    release.set()
    await expect(bar).to_contain_text("2 comments")


async def test_a_new_file_is_created_in_the_session_s_copy_and_edited(
    open_window: OpenWindow, api: Api, tmp_path: Path
) -> None:
    session = session_in(api, tmp_path)
    page = await page_of(open_window, session, "?pane=files")
    await page.get_by_role("button", name="New file").click()
    dialog = page.get_by_role("dialog", name="New file")
    path = dialog.get_by_role("textbox", name="Path in the workspace")
    await path.fill("poem.txt")
    await path.press("Enter")
    await expect(dialog).to_contain_text("poem.txt exists: choose another path.")
    assert await violations(page) == []
    await path.fill("verses/second.txt")
    await path.press("Enter")
    await page.get_by_role("button", name="Edit").click()
    await page.get_by_role("textbox", name="Text of verses/second.txt").fill("violets are blue")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("button", name="Edit")).to_be_visible()
    assert content_of(api, session, "verses/second.txt") == b"violets are blue"


async def test_a_file_that_the_user_replaces_is_shown_and_offered_for_the_folder(
    open_window: OpenWindow, api: Api, tmp_path: Path
) -> None:
    session = api.create(bash("true"), finish(), workspace=str(project_in(tmp_path)))
    api.until(session, "finished")
    page = await page_of(open_window, session, "?pane=files")
    await page.get_by_role("treeitem", name="poem.txt").click()
    poem = page.get_by_role("region", name="File poem.txt")
    await expect(poem).to_contain_text("roses are red")
    page.once("dialog", lambda question: question.accept())
    (tmp_path / "poem.txt").write_text("roses are mine\n")
    await page.get_by_role("tabpanel").locator("input[type=file]").set_input_files(tmp_path / "poem.txt")
    await expect(poem).to_contain_text("roses are mine")
    await expect(state_of(page)).to_contain_text("1 changed file is not in")
    api.http.put(f"{session}/files/content", params={"path": "poem.txt"}, content=b"of others\n").raise_for_status()
    await page.get_by_role("button", name="Reload").click()
    await expect(poem).to_contain_text("of others")

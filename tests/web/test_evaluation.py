"""The page of a run: its rollouts with their answers, filters in the address, each in the view of sessions, live."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import expect

from handiwork.evals.running import manifest
from handiwork.evals.running.plan import InstanceSelection
from handiwork.evals.viewing.run_follower import RunFollower
from scripts.harness.serving import in_this_process
from tests.cli.program import bash, finish
from tests.evals.runs import finished, planned, script, sums
from tests.web.conftest import OpenWindow
from tests.web.test_for_everybody import violations

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

HOSTILE = "<img src=x onerror=alert(1)> 5"


async def test_the_rollouts_of_a_run_are_listed_filtered_and_read_while_it_goes_on(
    open_window: OpenWindow, tmp_path: Path
) -> None:
    out, data = tmp_path / "out", sums(tmp_path / "data", "ungradable", "sum-1", "sum-2", "sum-3")
    model = script(tmp_path / "model.jsonl", bash("cat sum.txt"), finish("4"))
    plan = await planned(data, model, InstanceSelection(ids=["sum-1", "ungradable"]))
    await finished(out, plan)
    viewer = tmp_path / "viewer"
    viewer.mkdir()
    with in_this_process(viewer, run=RunFollower(out)) as api:
        page = await open_window("/eval", api)
        rows = page.get_by_role("list", name="Rollouts").get_by_role("listitem")
        await expect(rows).to_have_count(2)
        solved = rows.filter(has_text="sum-1")
        await expect(solved).to_contain_text("right answer")
        await expect(solved.get_by_role("definition")).to_have_text(["4", "4"])
        await expect(page.get_by_role("main")).to_contain_text("2 of 2 rollouts done: 1 solved, 1 failed")

        assert await violations(page) == []

        await page.get_by_label("Status").select_option("failed")
        await expect(page).to_have_url(f"{api.url}/eval?status=failed")
        await expect(rows).to_have_count(1)
        await expect(rows).to_contain_text("ungradable")
        await page.get_by_label("Status").select_option("")
        await page.get_by_role("searchbox").fill("SUM")
        await expect(page).to_have_url(f"{api.url}/eval?q=SUM")
        await page.reload()
        await expect(rows).to_have_count(1)

        await page.get_by_role("link", name="sum-1").click()
        verdict = page.get_by_role("region", name="Result of the rollout")
        await expect(verdict.get_by_role("definition")).to_have_text(["4", "4"])
        chat = page.get_by_role("region", name="Conversation with the agent")
        await expect(chat).to_contain_text("Add what is in sum.txt")
        await expect(chat).to_contain_text("cat sum.txt")
        await expect(page.get_by_role("tab", name="Timeline")).to_have_attribute("aria-selected", "true")
        await expect(page.get_by_role("tab", name="Terminal")).to_have_count(0)
        await expect(page.get_by_role("textbox")).to_have_count(0)
        assert await violations(page) == []
        await page.get_by_role("link", name="All rollouts").click()
        await expect(rows).to_have_count(2)

        # Another run of other instances takes the place of the first: its rollouts come without a reload.
        slow = script(tmp_path / "slow.jsonl", {**bash("cat sum.txt"), "delay": 1}, {**finish(HOSTILE), "delay": 3})
        more = await planned(data, slow, InstanceSelection(ids=["sum-2"]))
        manifest.write(out, more.manifest)
        run = asyncio.create_task(finished(out, more))
        added = rows.filter(has_text="sum-2")
        await expect(added).to_contain_text("running")
        await added.get_by_role("link").click()
        await expect(chat).to_contain_text("cat sum.txt")
        await expect(verdict).to_contain_text("running")
        await expect(chat).not_to_contain_text("onerror")
        await run
        await expect(verdict).to_contain_text("wrong answer")
        await expect(verdict.get_by_role("definition")).to_have_text(["4", HOSTILE])
        await expect(chat).to_contain_text("onerror")
        await expect(page.get_by_role("img", name="x")).to_have_count(0)

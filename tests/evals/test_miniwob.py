"""MiniWoB++: its pages run in the sandbox's browser, and those that are solved there give their reward."""

from __future__ import annotations

import re
import shutil
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from handiwork.evals.benchmark import PROVIDED, Instance
from handiwork.evals.benchmarks.miniwob import GOALS, PAGE, MiniWoB
from handiwork.evals.running import plan
from handiwork.evals.running.conditions import Conditions
from handiwork.evals.running.plan import InstanceSelection
from handiwork.events.action import BrowseInteractiveAction, CmdRunAction
from handiwork.events.observation import BrowserOutputObservation, CmdOutputObservation
from handiwork.sandbox import create as sandboxes
from handiwork.sandbox.base import Sandbox
from handiwork.workspace.layers import SandboxPaths
from tests.evals.miniwob_solvers import SOLVERS, Solver
from tests.evals.rollouts import folder, instances, needs_benchdata, no_blobs, rollout
from tests.evals.runs import finished, script

pytestmark = [needs_benchdata, pytest.mark.timeout(300)]


class InOneSandbox(MiniWoB):
    """Exchanges the page before it is opened."""

    async def set_up(self, instance: Instance, sandbox: Sandbox) -> None:
        provided = Path(sandbox.workspace).parent / PROVIDED
        for old in provided.iterdir():
            shutil.rmtree(old)
        self.provide(instance, provided)
        await super().set_up(instance, sandbox)


MINIWOB = InOneSandbox()
AGENTS = Path(__file__).with_name("pressing.py")
SEEDS = 5

some_or_all_seeds = pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(1, 3), id="some", marks=pytest.mark.slow),
        pytest.param(range(1, SEEDS + 1), id="all", marks=pytest.mark.campaign),
    ],
)
"""Runs a test with two forms of a task in test-slow, and with more in test-benchmarks."""


def task(name: str, seed: int = 1) -> Instance:
    row = next(one for one in instances(MINIWOB) if one.id == name)
    return Instance(row.id, row.row, row.group, seed)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def sandbox(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Sandbox]:
    place = tmp_path_factory.mktemp("pages")
    for name in ("session", "workspace", PROVIDED):
        (place / name).mkdir()
    places = SandboxPaths(place / "session", place / "workspace")
    found = sandboxes.create("bubblewrap", places, no_blobs, [place / PROVIDED])
    await found.start()
    yield found
    await found.close()


async def shown(sandbox: Sandbox, calls: str) -> str:
    """What the whole page shows after the calls."""
    found = await sandbox.execute(BrowseInteractiveAction(browser_actions=calls, view="full"))
    assert isinstance(found, BrowserOutputObservation), found
    assert not found.last_action_error, found.last_action_error
    return found.content


async def solved(instance: Instance, sandbox: Sandbox, solver: Solver) -> bool:
    """Whether the solver gets the reward of the task whose page is open, within the steps that an agent has."""
    goal = await MINIWOB.task(instance, sandbox, "BrowsingAgent")
    steps = solver(goal, await shown(sandbox, "noop(0)"))
    calls = next(steps)
    for _ in range(MINIWOB.limits.iterations or 0):
        page = await shown(sandbox, calls)
        if await MINIWOB.over(rollout(instance, sandbox=sandbox)):
            break
        calls = steps.send(page)
    return (await MINIWOB.score(rollout(instance, sandbox=sandbox))).value == 1


def test_there_are_125_tasks() -> None:
    found = instances(MINIWOB)
    assert len({one.id for one in found}) == 125
    assert {"original", "nodelay", "debug", "additional", "hidden test"} == {one.group for one in found}


def test_the_page_is_provided_under_a_name_that_tells_nothing(tmp_path: Path) -> None:
    MINIWOB.provide(task("click-test"), tmp_path)
    assert [one.name for one in (tmp_path / PAGE).parent.iterdir()] == [Path(PAGE).name]
    assert (tmp_path / "core/core.js").is_file()


@some_or_all_seeds
@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("name", "goal"),
    [
        ("use-colorwheel-2", r"Select the following color #[0-9a-f]{6} with the color picker and hit Submit\."),
        ("click-menu-2", r'Click the "Menu" button, and then (find and )?click on the item (with|labeled) .+\.'),
    ],
)
async def test_a_goal_that_is_partly_a_picture_is_told_in_words(
    sandbox: Sandbox, name: str, goal: str, seeds: range
) -> None:
    assert name in GOALS
    for seed in seeds:
        await MINIWOB.set_up(task(name, seed), sandbox)
        told = await MINIWOB.task(task(name, seed), sandbox, "BrowsingAgent")
        assert re.fullmatch(goal, told), told
        if "icon" in told:
            assert re.search(r'"ui-icon-[\w-]+"', told), told


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="module")
async def test_an_agent_with_a_shell_cannot_rewrite_the_page_that_scores_it(sandbox: Sandbox) -> None:
    await MINIWOB.set_up(task("click-test"), sandbox)
    pages = Path(sandbox.workspace).parent / PROVIDED
    for one in (pages, *pages.rglob("*")):
        one.chmod(0o777)  # so that it is the mount which refuses, whoever the files belong to
    before = (pages / "core/core.js").read_text()
    for command in (f"echo >> {pages / PAGE}", f"rm {pages / 'core/core.js'}", f"mv {pages} /tmp", f"mkdir {pages}/x"):
        done = await sandbox.execute(CmdRunAction(command=command))
        assert isinstance(done, CmdOutputObservation)
        assert done.exit_code != 0
        assert "Read-only file system" in done.content or "busy" in done.content or "cannot move" in done.content
    assert (pages / "core/core.js").read_text() == before


@some_or_all_seeds
@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", SOLVERS)
async def test_a_solver_gets_every_reward(sandbox: Sandbox, name: str, seeds: range) -> None:
    await MINIWOB.set_up(task(name), sandbox)
    assert [seed for seed in seeds if not await solved(task(name, seed), sandbox, SOLVERS[name])] == []


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="module")
async def test_a_seed_is_a_task(sandbox: Sandbox) -> None:
    goals = list[str]()
    for seed in (1, 1, 2, 3):
        await MINIWOB.set_up(task("enter-text", seed), sandbox)
        goals.append(await MINIWOB.task(task("enter-text", seed), sandbox, "BrowsingAgent"))
    assert goals[0] == goals[1]
    assert len(set(goals)) > 1


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="module")
async def test_what_is_wrong_or_elsewhere_or_not_done_has_no_reward(sandbox: Sandbox) -> None:
    one = task("click-test-2")
    for calls, over, reason in (
        ("noop(0)", False, ""),
        ("goto('about:blank')", True, "the agent left the page"),
        (None, True, ""),
    ):
        await MINIWOB.set_up(one, sandbox)
        await MINIWOB.task(one, sandbox, "BrowsingAgent")
        page = await shown(sandbox, "noop(0)")
        assert "Click button ONE" not in page  # the goal is told, not shown
        wrong = next(line for line in page.splitlines() if "'TWO'" in line).split("]")[0].strip(" \t[")
        await shown(sandbox, calls or f"click('{wrong}')")
        done = rollout(one, "I have clicked it", sandbox)
        assert await MINIWOB.over(done) == over
        score = await MINIWOB.score(done)
        assert (score.value, score.details["reason"]) == (0, reason)


HANDED_OVER = {"tool_calls": [{"name": "delegate", "arguments": {"agent": "BrowsingAgent", "task": "Click it."}}]}
PRESSED = {"tool_calls": [{"name": "click", "arguments": {"bid": "5"}}]}


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize(
    ("agent", "replies", "score", "steps", "why"),
    [
        (f"{AGENTS}:Presser", (), 1.0, 2, ""),
        (f"{AGENTS}:Onlooker", (), 0.0, 11, "its 11 steps were up"),
        ("BrowsingAgent", (PRESSED,), 1.0, 2, ""),
        ("CodeActAgent", (HANDED_OVER, PRESSED), 1.0, 3, ""),
    ],
    ids=["presser", "onlooker", "browsing", "delegating"],
)
async def test_a_rollout_ends_with_the_episode_or_its_steps(
    tmp_path: Path, agent: str, replies: tuple[dict[str, object], ...], score: float, steps: int, why: str
) -> None:
    conditions = Conditions(
        benchmark="miniwob",
        split="test",
        data=str(folder(MINIWOB)),
        agent=agent,
        model=script(tmp_path / "script", *replies),
        user_model="scripted:none",
        limits=MINIWOB.limits,
    )
    work = await plan.new(MINIWOB, conditions, InstanceSelection(ids=["click-test"]), 1, lambda _: None)
    (found,) = (await finished(tmp_path / "out", work)).values()
    assert (found.outcome, found.score, found.steps, found.why) == ("submitted", score, steps, why)


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="module")
async def test_who_does_not_see_the_page_by_itself_is_told_where_it_is(sandbox: Sandbox) -> None:
    one = task("click-test")
    await MINIWOB.set_up(one, sandbox)
    assert await MINIWOB.task(one, sandbox, "BrowsingAgent") == "Click the button."
    told = await MINIWOB.task(one, sandbox, "CodeActAgent")
    assert told.startswith("Click the button.\n\nThe page that this is about is open in the browser")
    assert "BrowsingAgent" in told

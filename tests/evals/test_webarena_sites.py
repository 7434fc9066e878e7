"""WebArena's real tasks, done in the real browser on look-alikes of its sites: right is scored 1, and wrong 0."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from handiwork.errors import SandboxError
from handiwork.evals.benchmark import Instance
from handiwork.evals.benchmarks.webarena import sites
from handiwork.evals.benchmarks.webarena.benchmark import WebArena
from handiwork.evals.benchmarks.webarena.verified import WebArenaVerified
from handiwork.evals.running import plan
from handiwork.evals.running.conditions import Conditions
from handiwork.evals.running.plan import InstanceSelection
from handiwork.events.action import BrowseInteractiveAction
from handiwork.events.observation import BrowserOutputObservation
from handiwork.events.record import EgressEvent
from handiwork.paths import cache_dir
from handiwork.sandbox import create as sandboxes
from handiwork.sandbox.base import Sandbox
from handiwork.sandbox.egress.proxy import Egress
from handiwork.workspace.layers import SandboxPaths
from tests.cli.program import finish
from tests.evals.miniwob_solvers import bid, click
from tests.evals.rollouts import folder, instances, needs_benchdata, no_blobs, rollout
from tests.evals.runs import finished, script
from tests.evals.webarena_site import Sites, serving

pytestmark = [
    needs_benchdata,
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]

Step = str | Callable[[str], str]


class Quick(WebArena):
    settle = 0.0  # the look-alikes do not fill themselves afterwards


WEBARENA = Quick()


def fill(name: str, value: str) -> Callable[[str], str]:
    return lambda page: f"fill('{bid(page, 'textbox', name)}', {value!r})"


def choose(name: str, value: str) -> Callable[[str], str]:
    return lambda page: f"select_option('{bid(page, '(?:combobox|listbox)', name)}', {value!r})"


def press(name: str) -> Callable[[str], str]:
    return lambda page: click(page, "(?:button|link)", name)


@dataclass(frozen=True)
class Case:
    """What a solver does for a task, step by step, and says; and what one does that gets it wrong."""

    task: str
    steps: tuple[Step, ...] = ()
    said: str = ""
    wrong: tuple[Step, ...] = ()
    wrongly: str = ""


def rule(name: str) -> tuple[Step, ...]:
    return (
        press("New rule"),
        fill("Name", name),
        choose("Website", "Main Website"),
        choose("Groups", "General"),
        choose("Apply", "Percent"),
        fill("Amount", "20"),
    )


def invited(role: str) -> tuple[Step, ...]:
    return press("dotfiles"), fill("Username", "abisubramanya27"), fill("Role", role), press("Invite")


def posted(forum: str) -> tuple[Step, ...]:
    question = "what is the recommended console to buy these days"
    return press("Submit"), fill("Title", question), fill("Forum", forum), press("Create submission")


def bio(text: str) -> tuple[Step, ...]:
    return press("MarvelsGrantMan136"), fill("Biography", text), press("Save")


def ordered(*before: Step) -> tuple[Step, ...]:
    return (*before, press("Add to Cart"), press("Place Order"))


def rated(stars: str) -> tuple[Step, ...]:
    return "goto(SHOPPING + '/meat.html')", fill("Nickname", "Emma Lopez"), fill("Stars", stars), press("Rate")


CASES = {
    "the answer as it is": Case("0", said="quest lumaflex\u2122 band", wrongly="I do not know"),
    "the answer in other words": Case("47", said="none, so 0 dollars", wrongly="three"),
    "it cannot be done": Case("22", said="Nobody writes about that", wrongly="Joe does"),
    "the address": Case(
        "275", steps=(fill("Search", "xbox"), press("Go")), wrong=(fill("Search", "playstation"), press("Go"))
    ),
    "a page": Case("399", steps=bio("I am a robot"), wrong=bio("I am no robot")),
    "several tabs": Case("431", steps=("tab_focus(1)", press("Add to Cart")), wrong=(press("Add to Cart"),)),
    "the latest order": Case("506", steps=ordered("goto(SHOPPING + '/meat.html')"), wrong=()),
    "the shop's reviews": Case("585", steps=rated("5"), wrong=rated("4")),
    "a post and its address": Case("600", steps=posted("consoles"), wrong=posted("books")),
    "a member's role": Case("481", steps=invited("Guest"), wrong=invited("Owner")),
    "a form that is not sent": Case("699", steps=rule("spring sale"), wrong=rule("winter sale")),
}


async def judge(prompt: str) -> str:
    """The model that judges: it knows what is said for the two tasks that need it."""
    if "reported unachievable reason" in prompt:
        return "same" if "nobody writes about that" in prompt else "different"
    return "correct" if "none, so 0 dollars" in prompt else "incorrect"


@pytest.fixture(scope="module")
def address() -> str:
    """An address of this machine that is not its loopback, which browsers do not reach by a proxy."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but its loopback")
        return probe.getsockname()[0]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def served(address: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Sites]:
    patch = pytest.MonkeyPatch()
    with serving(address) as found:
        for name in [*(f"WA_{site.upper()}" for site in sites.SITES), "WA_RESET", "WA_AUTH"]:
            patch.delenv(name, raising=False)
        for name, url in found.urls.items():
            patch.setenv(name, url)
        cache = tmp_path_factory.mktemp("cache")
        (cache_dir() / "packages").mkdir(parents=True, exist_ok=True)
        (cache / "packages").symlink_to(cache_dir() / "packages")
        patch.setenv("HANDIWORK_CACHE", str(cache))
        yield found
    patch.undo()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def sandbox(served: Sites, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Sandbox]:
    """One that may reach what the tasks' sandboxes may."""

    async def record(event: EgressEvent) -> bool:
        return True

    place = tmp_path_factory.mktemp("webarena")
    (place / "session").mkdir()
    (place / "workspace").mkdir()
    egress = Egress(lambda: WEBARENA.allow_net(task("0")), record)
    found = sandboxes.create(
        "bubblewrap", SandboxPaths(place / "session", place / "workspace"), no_blobs, egress=egress
    )
    await found.start()
    yield found
    await found.close()


def task(number: str) -> Instance:
    return next(one for one in instances(WEBARENA) if one.id == number)


async def done(sandbox: Sandbox, steps: tuple[Step, ...]) -> None:
    page = ""
    for step in ("noop(0)", *steps):
        calls = step if isinstance(step, str) else step(page)
        calls = re.sub(r"SHOPPING \+ '", lambda _: f"'{sites.urls()['shopping']}", calls)
        found = await sandbox.execute(BrowseInteractiveAction(browser_actions=calls, view="full"))
        assert isinstance(found, BrowserOutputObservation), found
        assert not found.last_action_error, f"{calls}: {found.last_action_error}\n{page}"
        page = found.content


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_a_task_is_scored_by_what_was_done(sandbox: Sandbox, case: Case) -> None:
    instance = task(case.task)
    for steps, said, score in ((case.wrong, case.wrongly, 0), (case.steps, case.said, 1)):
        async with WEBARENA.turn(instance):
            await WEBARENA.set_up(instance, sandbox)
            await done(sandbox, steps)
            found = await WEBARENA.score(rollout(instance, said, sandbox, judge))
            assert found.value == score, found.details


VERIFIED = WebArenaVerified()


def answer(kind: str, data: object = None, status: str = "SUCCESS") -> str:
    return json.dumps({"task_type": kind, "status": status, "retrieved_data": data, "error_details": None})


@pytest.mark.parametrize(
    ("number", "right", "said", "wrong", "wrongly"),
    [
        ("0", (), answer("RETRIEVE", ["Quest Lumaflex\u2122 Band"]), (), answer("RETRIEVE", ["Sprite"])),
        ("275", CASES["the address"].steps, answer("NAVIGATE"), CASES["the address"].wrong, answer("NAVIGATE")),
        ("399", bio("I am a robot"), f"```json\n{answer('MUTATE')}\n```", bio("I am a robot"), "I changed it"),
        ("399", bio("I am a robot"), answer("MUTATE"), bio("I am no robot"), answer("MUTATE")),
    ],
    ids=["answer", "address", "form of the answer", "what was sent"],
)
async def test_verified_tasks_are_scored_by_the_answer_and_the_traffic(
    sandbox: Sandbox, number: str, right: tuple[Step, ...], said: str, wrong: tuple[Step, ...], wrongly: str
) -> None:
    found = await asyncio.to_thread(VERIFIED.load, Path(), "full")
    instance = next(one for one in found if one.id == number)
    assert VERIFIED.skipped(instance) == ""
    for steps, last, score in ((wrong, wrongly, 0), (right, said, 1)):
        async with VERIFIED.turn(instance):
            await VERIFIED.set_up(instance, sandbox)
            await done(sandbox, steps)
            assert (await VERIFIED.score(rollout(instance, last, sandbox))).value == score


async def test_the_hard_ones_are_a_part_of_the_verified_tasks() -> None:
    found = await asyncio.to_thread(VERIFIED.load, Path(), "hard")
    assert len(found) == 258


async def test_the_sites_are_as_they_were_for_every_task(served: Sites, sandbox: Sandbox) -> None:
    instance = task("399")
    for _ in range(2):
        async with WEBARENA.turn(instance):
            assert served.state.bio == "I like cats"
            await WEBARENA.set_up(instance, sandbox)
            await done(sandbox, bio("I am a robot"))
    assert served.resets > 0


async def test_who_cannot_log_in_is_told_so(served: Sites, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sites.ACCOUNTS, "reddit", ("MarvelsGrantMan136", "guessed", "/login"))
    with pytest.raises(SandboxError, match=r"/login as MarvelsGrantMan136 failed: it asks for the password again"):
        await WEBARENA.set_up(task("399"), sandbox)
    nobody = served.urls["WA_REDDIT"].rpartition(":")[0] + ":1"
    monkeypatch.setenv("WA_REDDIT", nobody)
    with pytest.raises(SandboxError, match=r"sites of task 399 cannot be opened: .*could not be loaded"):
        await WEBARENA.set_up(task("399"), sandbox)


async def test_a_rollout_reaches_the_sites_and_nothing_else(served: Sites, tmp_path: Path) -> None:
    conditions = Conditions(
        benchmark="webarena",
        split="test",
        data=str(folder(WEBARENA)),
        agent="CodeActAgent",
        model=script(tmp_path / "script", finish("Quest Lumaflex\u2122 Band")),
        user_model="scripted:none",
        limits=WEBARENA.limits,
    )
    work = await plan.new(WEBARENA, conditions, InstanceSelection(ids=["0"]), 1, lambda _: None)
    (found,) = (await finished(tmp_path / "out", work)).values()
    assert (found.outcome, found.score, found.why) == ("submitted", 1.0, "")
    log = (tmp_path / "out" / found.trajectory).read_text()
    assert "The page that this is about is open in the browser" in log
    assert served.urls["WA_SHOPPING_ADMIN"].split("/")[2] in log

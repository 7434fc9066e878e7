"""WebArena: answers and addresses are scored as upstream does, and tasks are run where their sites are."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handiwork.errors import SandboxError
from handiwork.evals.benchmark import DataError, Instance
from handiwork.evals.benchmarks.webarena import sites
from handiwork.evals.benchmarks.webarena.benchmark import WebArena, answer_of
from handiwork.evals.benchmarks.webarena.evaluators import match_contents, must_include, string_match, url_match, words
from handiwork.evals.benchmarks.webarena.pages import post_url
from handiwork.events.action import AgentRejectAction
from handiwork.sandbox.egress.hosts import parse
from tests.agents.states import reply, state_of
from tests.agents.states import task as asked
from tests.evals.rollouts import instances, needs_benchdata, nobody, rollout

WEBARENA = WebArena()
SHOP = "http://10.0.0.5:7770"


@pytest.fixture(autouse=True)
def no_sites(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*(f"WA_{site.upper()}" for site in sites.SITES), "WA_RESET", "WA_FULL_RESET", "WA_AUTH"]:
        monkeypatch.delenv(name, raising=False)


def task(intent: str = "How many?", note: str = "", **reference: Any) -> dict[str, Any]:
    evaluation = {"eval_types": ["string_match"], "reference_answers": reference, "string_note": note}
    return {"task_id": 0, "sites": [], "intent": intent, "eval": evaluation}


class Judge:
    """Answers with the first word given for which the prompt has the text beside it."""

    def __init__(self, *says: tuple[str, str]) -> None:
        self._says, self.asked = says, list[str]()

    async def __call__(self, prompt: str) -> str:
        self.asked.append(prompt)
        return next(answer for text, answer in self._says if text in prompt)


@pytest.mark.parametrize(
    ("reference", "answer", "score"),
    [
        ({"exact_match": "Quest Lumaflex\u2122 Band"}, '"quest lumaflex\u2122 band" ', 1),
        ({"exact_match": "Quest Lumaflex\u2122 Band"}, "It is the Quest Lumaflex\u2122 Band", 0),
        ({"must_include": ["Joseph Brzezinski", "Catso"]}, "catso, joseph brzezinski and Dibbins", 1),
        ({"must_include": ["Joseph Brzezinski", "Catso"]}, "Catso", 0),
        ({"must_include": ["0"]}, "There are 10 of them.", 0),
        ({"must_include": ["0"]}, "There are 0.", 1),
        ({"must_include": ["0", "5"]}, "10 or 15", 1),
        ({"must_include": ["0"]}, "", 0),
        ({"exact_match": ""}, "", 0),
    ],
)
async def test_an_answer_is_the_reference_or_has_it_in_it(reference: dict[str, Any], answer: str, score: float) -> None:
    assert await string_match(task(**reference), answer, nobody) == score


@pytest.mark.parametrize(("verdict", "score"), [("Correct.", 1), ("partially correct", 0), ("Incorrect", 0), ("?", 0)])
async def test_what_may_be_said_in_other_words_is_judged(verdict: str, score: float) -> None:
    judge = Judge(("student answer: about an hour", verdict))
    assert await string_match(task("How long?", fuzzy_match=["60 minutes"]), "About an hour", judge) == score
    assert "question: How long?\nreference answer: 60 minutes" in judge.asked[0]


async def test_each_of_several_references_is_judged_until_one_is_not_met() -> None:
    several = task(fuzzy_match=["a", "b", "c"])
    judge = Judge(("reference answer: b", "incorrect"), ("", "correct"))
    assert await string_match(several, "a and c", judge) == 0
    assert len(judge.asked) == 2
    assert await string_match(several, "all", Judge(("", "correct"))) == 1


@pytest.mark.parametrize(("verdict", "score"), [("same", 1), ("They are different", 0), ("", 0)])
async def test_a_task_that_cannot_be_done_needs_na_or_the_reason(verdict: str, score: float) -> None:
    impossible = task("Order wine", "the shop sells no wine", fuzzy_match="N/A")
    assert await string_match(impossible, "N/A", nobody) == 1
    judge = Judge(("reported unachievable reason: there is no wine", verdict))
    assert await string_match(impossible, "There is no wine", judge) == score
    assert "actual unachievable reason: the shop sells no wine" in judge.asked[0]


@pytest.mark.parametrize("agent", ["BrowsingAgent", "CodeActAgent"])
@pytest.mark.parametrize("by_model", [True, False])
def test_a_task_that_the_model_rejects_is_answered_na(agent: str, by_model: bool) -> None:
    """A browsing agent also gives up after errors, without its model."""
    rejection = AgentRejectAction(outputs={"reason": "I see no such order."})
    state = state_of(asked(), *([reply("")] if by_model else []), rejection)
    done = replace(rollout(Instance("0", task())), state=replace(state, agent=agent))
    expected = "N/A" if by_model or agent == "CodeActAgent" else "I see no such order."
    assert answer_of(done) == expected


@settings(deadline=None)
@given(st.text(max_size=40))
def test_words_keep_every_mark_and_no_space(text: str) -> None:
    assert "".join(words(text)) == "".join(text.split())


@pytest.mark.parametrize(
    "text", ["5", "5.", "It is 5.", "5, or so", "(5)", "$5", "5%", '"5"', "5: the rest", "5! 6", "5. Then", "[5]", "#5"]
)
def test_a_single_character_is_found_among_marks(text: str) -> None:
    assert must_include("5", text, as_word=True)


@pytest.mark.parametrize("text", ["15", "5.5", "1,500", "5:30", "5-6", "1/5", "a5"])
def test_a_single_character_is_not_found_in_another_word(text: str) -> None:
    assert not must_include("5", text, as_word=True)
    assert must_include("5", text)


@pytest.mark.parametrize(
    ("reference", "url", "score"),
    [
        ("http://s/a", "http://s/a/", 1),
        ("http://s/a/", "http://s/a/b?c=d#e", 1),
        ("http://s/a", "http://s/b", 0),
        ("http://s/a", "https://other/?http://s/a", 0),
        ("http://s/r?q=xbox", "http://s/r?page=2&q=xbox", 1),
        ("http://s/r?q=xbox", "http://s/r?q=xbox+360", 0),
        ("http://s/r?q=xbox", "http://s/r", 0),
        ("http://s/a |OR| http://s/b", "http://s/b", 1),
        ("http://s/a?x=1 |OR| http://s/b?x=2", "http://s/b?x=1", 1),
        ("http://s/a?x=1 |OR| http://s/b?x=2", "http://s/b?x=3", 0),
    ],
)
def test_an_address_has_the_references_path_and_queries(reference: str, url: str, score: float) -> None:
    assert url_match({"reference_url": reference, "url_note": "GOLD in PRED"}, url) == score
    assert url_match({"reference_url": reference}, url) == score


def test_a_rule_that_nobody_knows_is_no_score() -> None:
    with pytest.raises(ValueError, match="PRED in GOLD"):
        url_match({"reference_url": "http://s", "url_note": "PRED in GOLD"}, "http://s")
    with pytest.raises(ValueError, match="no known rule"):
        match_contents({"begins_with": "x"}, "x")


def test_contents_are_compared_without_html_entities_and_with_alternatives() -> None:
    assert match_contents({"exact_match": "Ann & Bob"}, "ann &amp; bob")
    assert not match_contents({"exact_match": "Ann"}, "Ann & Bob")
    assert match_contents({"must_include": ["cat |OR| dog", "fish"]}, "a DOG and a fish")
    assert not match_contents({"must_include": ["cat |OR| dog", "fish"]}, "a dog")
    assert not match_contents({"must_include": ["0"]}, "")


def test_a_post_has_the_address_before_its_comments() -> None:
    assert post_url("http://r:9999/f/books/59421/some-title/-/comment/2") == "http://r:9999/f/books/59421/"
    assert post_url("http://r:9999/user/me") == "http://r:9999/user/me"
    assert post_url("about:blank") == "about:blank"


@needs_benchdata
def test_a_task_is_run_where_its_sites_are(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {one.id: one for one in instances(WEBARENA)}
    assert len(found) == 812
    assert WEBARENA.skipped(found["0"]).startswith("the environment has no WA_SHOPPING_ADMIN:")
    assert WEBARENA.skipped(found["97"]).startswith("the environment has no WA_MAP, WA_WIKIPEDIA:")
    monkeypatch.setenv("WA_SHOPPING", f"{SHOP}/")
    monkeypatch.setenv("WA_SHOPPING_ADMIN", "https://[fd00::5]/admin")
    with_shop = {one.id: one for one in instances(WEBARENA)}
    runnable = [one for one in with_shop.values() if not WEBARENA.skipped(one)]
    assert len(runnable) == 187 + 182
    assert not any("__SHOPPING" in str(one.row) for one in runnable)
    assert with_shop["275"].row["eval"]["reference_url"] == f"{SHOP}/catalogsearch/result/?q=xbox"
    assert WEBARENA.allow_net(with_shop["0"]) == ("10.0.0.5:7770", "[fd00::5]:443")
    assert all(parse(host) for host in WEBARENA.allow_net(with_shop["0"]))


def test_an_address_that_is_none_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WA_REDDIT", "localhost:9999")
    with pytest.raises(DataError, match="WA_REDDIT is localhost:9999: it must be the site's address"):
        sites.urls()


@needs_benchdata
async def test_the_instruction_says_the_form_and_where_else_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    one = instances(WEBARENA)[0]
    assert WEBARENA.instruction(one).startswith("What is the top-1 best-selling product in 2022\n\nThe page to begin")
    monkeypatch.setenv("WA_HOMEPAGE", "http://10.0.0.5:4399")
    assert "http://10.0.0.5:4399/password.html" in WEBARENA.instruction(one)
    assert '"N/A"' in WEBARENA.instruction(one)


def changes(writes: bool) -> Instance:
    return Instance("1", {"eval": {"eval_types": ["program_html" if writes else "string_match"]}})


@pytest.fixture
def resets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that has a line for each reset of the sites."""
    monkeypatch.setenv("HANDIWORK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("WA_RESET", f"echo reset >> {tmp_path}/resets")
    (tmp_path / "resets").touch()
    return tmp_path / "resets"


async def test_the_sites_are_reset_after_a_task_that_changes_them(resets: Path) -> None:
    for writes, before in ((False, 0), (True, 0), (False, 1), (False, 1), (True, 1), (True, 2)):
        async with WEBARENA.turn(changes(writes)):
            assert resets.read_text().count("reset") == before


async def test_tasks_that_only_look_go_side_by_side_and_one_that_changes_alone(resets: Path) -> None:
    looking, most = list[str](), list[int]()

    async def run(writes: bool) -> None:
        async with WEBARENA.turn(changes(writes)):
            looking.append("writes" if writes else "looks")
            assert "writes" not in looking or len(looking) == 1
            most.append(len(looking))
            await asyncio.sleep(0.1)
            looking.pop()

    async with asyncio.TaskGroup() as group:
        for writes in (False, False, True, False, True):
            group.create_task(run(writes))
    assert max(most) > 1


async def test_a_reset_that_fails_is_no_failure_of_the_agent(resets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with WEBARENA.turn(changes(writes=True)):
        pass
    monkeypatch.setenv("WA_RESET", "echo no disk; exit 3")
    with pytest.raises(SandboxError, match="ended with 3: no disk"):
        async with WEBARENA.turn(changes(writes=False)):
            pass
    assert not os.environ.get("WA_FULL_RESET")

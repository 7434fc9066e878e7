"""EDA: whole games, with a user who answers by a rule instead of a model's knowledge."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.evals.benchmark import Ask, DataError, Instance, Rollout
from handiwork.evals.benchmarks.eda import EDA, LAST, TURNS, contains_name, one_word, questions
from handiwork.events.action import AgentFinishAction, AgentRejectAction, AgentThinkAction, MessageAction
from handiwork.events.base import Event
from tests.agents.states import state_of
from tests.evals.rollouts import instances, needs_benchdata, rollout

ARENA = EDA()
THING = Instance("things-test-001", {"kind": "things", "names": ["Dung beetle"]}, "things")
PERSON = Instance("celebrities-test-001", {"kind": "celebrities", "names": ["Li Na", "Na Li"]}, "celebrities")


def letters_of(entity: str) -> Ask:
    """A user who says yes exactly to "Is the letter X in it?" for letters of the entity, and is unsure of the rest."""

    async def ask(prompt: str) -> str:
        assert entity in prompt
        question = next(line for line in prompt.splitlines() if line.endswith("?"))
        if not question.startswith("Is the letter "):
            return "I would say: neither."
        return "yes" if question.removeprefix("Is the letter ")[0] in entity.lower() else "No, it is not."

    return ask


async def play(instance: Instance, asked: list[str]) -> tuple[list[str], Rollout]:
    """Play a game in which the agent asks these questions; returns the user's replies, and where it ended."""
    replies: list[str] = []
    for turn in range(1, ARENA.turns + 1):
        now = rollout(instance, asked[:turn], ask=letters_of(instance.row["names"][0]))
        reply = await ARENA.reply(now, turn)
        if reply is None:
            return replies, now
        replies.append(reply)
    raise AssertionError("the user would go on for ever")


@pytest.mark.parametrize(("turns", "score"), [(1, 1.0), (5, 1.0), (6, 0.98), (19, 0.72), (20, 0.7)])
async def test_a_game_is_won_by_the_question_that_names_the_entity_and_costs_from_the_sixth(
    turns: int, score: float
) -> None:
    replies, end = await play(THING, ["Is it alive?"] * (turns - 1) + ["is it a DUNG BEETLE?", "Is it a dog?"])
    assert len(replies) == turns - 1
    scored = await ARENA.score(end)
    assert scored.value == pytest.approx(score)
    assert scored.details == {"truth": "Dung beetle", "won": True, "turns": turns}


async def test_the_user_says_yes_no_or_that_it_is_neither_and_never_more() -> None:
    asked = ["Is the letter d in it?", "Is the letter x in it?", "Is it large?", "Is it a dung beetle?"]
    assert (await play(THING, asked))[0] == ["Yes.", "No.", "Maybe."]
    asked = ["Is the letter n in it?", "Is the letter x in it?", "Is she tall?", "Is it Na Li?"]
    assert (await play(PERSON, asked))[0] == ["Yes.", "No.", "Dunno."]


async def test_before_the_last_question_the_agent_is_told_to_guess() -> None:
    """OpenHands' turn counter never rose, so that nobody was ever told."""
    replies, end = await play(THING, ["Is it large?"] * 30)
    assert len(replies) == TURNS - 1
    assert [turn for turn, reply in enumerate(replies, 1) if LAST in reply] == [TURNS - 1]
    assert (await ARENA.score(end)).value == 0


async def test_a_game_without_a_right_guess_scores_nothing() -> None:
    for asked in ([""], ["Is it a beetle?"], ["Is it large?", "Is it a dung-beetle?"]):
        assert (await ARENA.score(rollout(THING, asked))).value == 0, asked


async def test_questions_that_the_history_no_longer_has_count() -> None:
    end = replace(rollout(THING, ["Is it alive?", "Is it a dung beetle?"]), turn=15)
    scored = await ARENA.score(end)
    assert (scored.value, scored.details["turns"]) == (pytest.approx(0.8), 15)


async def test_an_agent_that_gives_up_is_not_answered_and_has_not_guessed_by_what_it_says_then() -> None:
    gave_up = AgentRejectAction(outputs={"reason": "It cannot be a dung beetle, so I do not know."})
    state = state_of(MessageAction(content="Play.", source="user"), gave_up)
    end = replace(rollout(THING), state=state)
    assert await ARENA.reply(end, 1) is None
    assert (await ARENA.score(end)).value == 0


def test_a_turn_is_what_was_asked_last_before_the_user_spoke() -> None:
    events: list[Event] = [
        MessageAction(content="Play.", source="user"),
        AgentThinkAction(thought="A dung beetle, perhaps?"),
        MessageAction(content="Let me think.", source="agent"),
        MessageAction(content="Is it\nalive?", source="agent", wait_for_response=True),
        MessageAction(content="Yes.", source="user"),
        AgentFinishAction(outputs={"message": "Is it an animal?"}),
        MessageAction(content="Yes.", source="user"),
    ]
    assert questions(state_of(*events)) == ["Is it alive?", "Is it an animal?", ""]


async def test_a_list_of_everything_does_not_win() -> None:
    everything = " ".join(f"Is it number {number}?" for number in range(100)) + " Is it a dung beetle?"
    assert (await ARENA.score(rollout(THING, everything))).value == 0


@pytest.mark.parametrize(
    ("names", "question", "found"),
    [
        (["Cap"], "Is it a cap?", True),
        (["Cap"], "Is it a cape?", False),
        (["Li Na", "Na Li"], "Na Li", True),
        (["J.R.R. Tolkien"], "Is it J.R.R. Tolkien?", True),
        (["Beyoncé", "Beyonce"], "Are you thinking of BEYONCÉ", True),
        (['Dwayne "The Rock" Johnson', "Dwayne Johnson"], "Is it Dwayne Johnson?", True),
        (["Who (band)"], "Is it Who (band)?", True),
    ],
)
def test_a_name_counts_as_a_whole_word(names: list[str], question: str, found: bool) -> None:
    assert contains_name(names, question) is found


@given(st.text(), st.sampled_from(["Maybe", "Dunno"]))
def test_whatever_a_model_says_the_player_hears_one_of_three_words(said: str, unsure: str) -> None:
    assert one_word(said, unsure) in {"Yes.", "No.", f"{unsure}."}


@needs_benchdata
async def test_naming_each_entity_of_the_lists_wins_at_once() -> None:
    for split in ARENA.splits:
        found = instances(ARENA, split)
        assert len({one.id for one in found}) == len(found) > 0
        for instance in found:
            for name in instance.row["names"]:
                assert (await ARENA.score(rollout(instance, f"Is it {name}?"))).value == 1
                assert name not in instance.id
            assert (await ARENA.score(rollout(instance, "Is it something else?"))).value == 0


def test_without_its_test_list_a_split_is_the_development_list_and_says_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no test.txt or dev.txt"):
        ARENA.load(tmp_path, "things")
    (tmp_path / "things").mkdir()
    (tmp_path / "things/dev.txt").write_text("Cap\n\nRowing boat | Rowboat")
    ids = {one.id: one.row["names"] for one in ARENA.load(tmp_path, "things")}
    assert ids == {"things-dev-001": ["Cap"], "things-dev-002": ["Rowing boat", "Rowboat"]}
    (tmp_path / "things/test.txt").write_text("Hat")
    assert [one.id for one in ARENA.load(tmp_path, "things")] == ["things-test-001"]
    assert [one.id for one in ARENA.load(tmp_path, "things-dev")] == list(ids)


async def test_how_often_and_how_fast_games_were_won_is_told_beside_the_score() -> None:
    scores = [await ARENA.score(rollout(THING, words)) for words in (["Dung beetle"], ["No idea"] * 3)]
    assert ARENA.more(scores) == {"success rate": 0.5, "mean turns": 2.0}

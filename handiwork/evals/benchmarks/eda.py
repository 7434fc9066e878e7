"""Entity Deduction Arena: twenty questions to find out which thing or person the other player has in mind.

The rule is that of Apple's game (https://github.com/apple/ml-entity-deduction-arena, game.py and eval_result.py): the
game is won by the first question that contains the entity, or another of its names, as a whole word, in upper or lower
case; that question's number n from 1 scores 1 - 0.02 * max(n - 5, 0), and a game not won within 20 scores 0. A model
answers the questions with one of three words. Before the twentieth question the player is told to guess.

Two things differ. Upstream reads the line of a person as a regular expression, so that aliases are found only with a
space after or before them, and "." is any character; here names of persons are found like those of things. And
upstream cuts a question after 64 tokens, here after 64 words: without that, a list of all things wins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean

from handiwork.agents.state import State
from handiwork.evals.benchmark import Benchmark, DataError, Instance, Rollout, Score
from handiwork.events.action import AgentFinishAction, AgentRejectAction, MessageAction
from handiwork.events.base import Action
from handiwork.events.record import Limits
from handiwork.sandbox.base import Sandbox

UPSTREAM = "https://raw.githubusercontent.com/apple/ml-entity-deduction-arena/64e6a92c31fcd757050ecd995112b04bc47eac9a"
STEM = {"things": "newlist_things.rmdup", "celebrities": "newlist_celebs.all.rmdup"}

TURNS = 20
FREE = 5
"""Questions without a penalty."""
WORDS = 64
"""Words of a question that count."""

SORT = {"things": "a thing", "celebrities": "a well-known person"}
UNSURE = {"things": "Maybe", "celebrities": "Dunno"}
"""The answer that is neither yes nor no, by split."""

EXAMPLES = {
    "things": "The thing: Apple\nIs it a fruit? Yes.\nIs it an animal? No.\nIs it a pear? No.\nIs it red? Maybe.\n"
    "Can you eat it? Yes.\nIs it bigger than a house? No.\nWhat is it? No.",
    "celebrities": "The person: Marie Curie\nIs it a woman? Yes.\nIs she an actor? No.\nIs it Rosa Luxemburg? No.\n"
    "Did she like tea? Dunno.\nWas she born in Europe? Yes.\nIs she alive? No.\nWho is it? No.",
}
"""Examples of answers, by split."""

LAST = "You have one question left: guess now, and name it."


class EDA(Benchmark):
    """Entity deduction by questions; the mean score, which falls with each question after the fifth.

    A ``-dev`` split is the development list. The others are the test lists; if that file is missing, they are the
    development list too, and the instances' names say so.
    """

    name = "eda"
    title = "Entity Deduction Arena"
    size = "100 things, 100 celebrities"
    source = "https://github.com/apple/ml-entity-deduction-arena"
    licence = "Apple sample code licence; the text goes with every copy"
    citation = "Zhang et al. 2023, Probing the Multi-turn Planning Capabilities of LLMs via 20 Question Games"
    metric = "mean score"
    splits = ("things", "celebrities", "things-dev", "celebrities-dev")
    turns = TURNS
    limits = Limits(iterations=3 * TURNS)

    def files(self, split: str) -> Mapping[str, str]:
        """Return the list of the split, which has another name upstream."""
        kind, chosen = _lists(split)
        return {f"{kind}/{chosen[0]}.txt": f"{UPSTREAM}/data/{kind}/{STEM[kind]}.{chosen[0]}.txt"}

    def load(self, data: Path, split: str) -> list[Instance]:
        """Return an instance for each line: the names of an entity, separated by "|". Raises DataError."""
        kind, chosen = _lists(split)
        list_name = next((stem for stem in chosen if (data / kind / f"{stem}.txt").is_file()), None)
        if list_name is None:
            files = " or ".join(f"{stem}.txt" for stem in chosen)
            raise DataError(f"{data / kind} has no {files}, a list of entities with one in a line")
        lines = (data / kind / f"{list_name}.txt").read_text(encoding="utf-8").splitlines()
        entities = [[name.strip() for name in line.split("|") if name.strip()] for line in lines]
        rows = [{"kind": kind, "names": names} for names in entities if names]
        return [Instance(f"{kind}-{list_name}-{number:03}", row, kind) for number, row in enumerate(rows, 1)]

    def instruction(self, instance: Instance) -> str:
        """Return the rules of the game."""
        kind = instance.row["kind"]
        return (
            f"Let us play a guessing game. I think of {SORT[kind]}, and you find out which, with as few questions as "
            f"you can and at most {TURNS}.\n"
            f"Ask one short question at a time, in one line, that can be answered by Yes, No or {UNSURE[kind]}. Do "
            "not ask for hints, and do not run anything: there is nothing to find on this machine.\n"
            "To ask, finish with the question as your message. I answer, and it is your turn again.\n"
            'When you think you know, ask with the name: "Is it NAME?" You win as soon as a question has the right '
            "name in it.\n"
            "Now ask your first question."
        )

    async def reply(self, rollout: Rollout, turn: int) -> str | None:
        """Answer the question, and announce the last one; None when the game is over."""
        row, texts = rollout.instance.row, questions(rollout.state)
        gave_up = rollout.state.agent_state == "rejected"
        if gave_up or turn >= TURNS or contains_name(row["names"], texts[-1]):
            return None
        # A turn without a question needs no model.
        said = await rollout.ask(_prompt(row["kind"], row["names"], texts[-1])) if texts[-1] else ""
        answer = one_word(said, UNSURE[row["kind"]])
        return f"{answer} {LAST}" if turn == TURNS - 1 else answer

    async def solve(self, instance: Instance, sandbox: Sandbox) -> Action:
        """Return the end with a question that names the entity."""
        return AgentFinishAction(outputs={"message": f"Is it {instance.row['names'][0]}?"})

    async def score(self, rollout: Rollout) -> Score:
        """Score the number of the winning question, 0 without one."""
        names, texts = rollout.instance.row["names"], questions(rollout.state)[:TURNS]
        condensed = max(rollout.turn - len(texts), 0)  # none of these questions has won, or the game had ended
        numbered = enumerate(texts, 1 + condensed)
        winner = next((number for number, question in numbered if contains_name(names, question)), None)
        details = {"truth": names[0], "won": winner is not None, "turns": winner or condensed + len(texts)}
        if winner is None:
            return Score(0.0, texts[-1], details)
        return Score(1 - 0.02 * max(winner - FREE, 0), texts[winner - 1 - condensed], details)

    def more(self, scores: Sequence[Score]) -> dict[str, float]:
        """Return the share of games won, and the mean number of questions in a game."""
        return {
            "success rate": mean(float(score.details["won"]) for score in scores),
            "mean turns": mean(score.details["turns"] for score in scores),
        }


def questions(state: State) -> list[str]:
    """Return the agent's question of each turn, from the first; a turn ends with the user's next message.

    Of several messages in a turn the last counts, as it is the one answered; "" stands for a turn without a question.
    Only the first 64 words of a question are kept.
    """
    texts = [""]
    started = False
    for action, _ in state.history:
        match action:
            case MessageAction(source="user"):
                if started:
                    texts.append("")
                started = True
            case AgentFinishAction(outputs=outputs):
                texts[-1] = _cut(str(outputs.get("message", "")))
            case MessageAction(source="agent"):
                texts[-1] = _cut(action.content)
            case AgentRejectAction():
                texts[-1] = ""
            case _:
                pass
    return texts


def contains_name(names: Sequence[str], question: str) -> bool:
    """Return whether a question contains one of the names as a whole word, in upper or lower case."""
    text = question.lower()
    return any(re.search(rf"(?:^|\W){re.escape(name.lower())}(?:$|\W)", text) for name in names)


def one_word(answer: str, unsure: str) -> str:
    """Return the first of "Yes.", "No." and the ``unsure`` word in a model's answer; without any, the latter."""
    match = re.search(rf"\b(yes|no|{unsure.lower()})\b", answer.lower())
    return f"{match[1].capitalize() if match else unsure}."


def _lists(split: str) -> tuple[str, tuple[str, ...]]:
    """Return the kind of entity of a split, and the lists from which it may be read."""
    kind, _, development = split.partition("-")
    return kind, ("dev",) if development else ("test", "dev")


def _cut(text: str) -> str:
    return " ".join(text.split()[:WORDS])


def _prompt(kind: str, names: Sequence[str], question: str) -> str:
    """Return the prompt for the model that knows the entity, with examples that small models can follow too."""
    example, unsure = EXAMPLES[kind], UNSURE[kind]
    label = example.partition(":")[0]
    others = f" (also called {', '.join(names[1:])})" if names[1:] else ""
    return (
        f"Here questions about {SORT[kind]} are answered truthfully with one word.\n{example}\n\n"
        f"Now answer a question in the same way, with Yes, No or {unsure}. {label}: {names[0]}{others}\n{question}"
    )

"""The solver of logic programs: right about the real ones, about random ones, and for an agent in its sandbox."""

from __future__ import annotations

from contextlib import suppress
from itertools import chain, combinations, product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handiwork.evals.benchmarks.proofwriter.benchmark import LANGUAGE, ProofWriter
from handiwork.evals.benchmarks.proofwriter.solver import (
    Literal,
    Program,
    ProgramError,
    Rule,
    answer,
    consequences,
    read,
)
from handiwork.evals.running import plan
from handiwork.evals.running.conditions import Conditions
from handiwork.evals.running.plan import InstanceSelection
from tests.cli.program import bash, finish
from tests.evals.rollouts import folder, instances, needs_benchdata
from tests.evals.runs import finished, no_status, script

PROOFWRITER = ProofWriter()
ANSWERS = {"A": "True", "B": "False", "C": "Unknown"}
NAMES, VARIABLES = ("Anne", "Bob"), ("$x", "$y")


@needs_benchdata
def test_the_real_programs_have_the_real_answers() -> None:
    """Those of GPT-4; three of the 300 have "!" in them, which is not in the language."""
    unread: list[str] = []
    for instance in instances(PROOFWRITER, "dev-forms"):
        program = instance.row["program"]
        if "!" in program:
            unread.append(instance.id)
            with pytest.raises(ProgramError, match="not '!"):
                read(program)
        else:
            assert answer(read(program)) == ANSWERS[instance.row["answer"]], instance.id
    assert len(unread) <= len(instances(PROOFWRITER)) // 100


def literals(arguments: tuple[str, ...]) -> st.SearchStrategy[Literal]:
    argument = st.sampled_from(arguments)
    return st.builds(Literal, st.just("P"), st.tuples(argument), st.booleans()) | st.builds(
        Literal, st.just("Q"), st.tuples(argument), st.just(True)
    )


def rules(arguments: tuple[str, ...]) -> st.SearchStrategy[Rule]:
    body = st.lists(literals(arguments), max_size=2)
    return st.builds(Rule, body, st.lists(literals(arguments), min_size=1, max_size=2))


@settings(max_examples=300, deadline=None)
@given(
    st.builds(
        Program,
        st.lists(rules((*NAMES, *VARIABLES)) | rules(NAMES), max_size=5),
        literals(NAMES),
    )
)
def test_what_follows_is_what_holds_in_every_set_that_obeys_the_rules(program: Program) -> None:
    """By brute force: the intersection of all those sets of literals, of 64, that the rules add nothing to."""
    every = [Literal("P", (name,), truth) for name in NAMES for truth in (True, False)]
    every += [Literal("Q", (name,), True) for name in NAMES]
    mentioned = {
        name
        for rule in [*program.rules, Rule((), (program.query,))]
        for one in (*rule.conditions, *rule.conclusions)
        for name in one.arguments
        if name in NAMES
    }
    grounded = [
        ([one.bound(values) for one in rule.conditions], [one.bound(values) for one in rule.conclusions])
        for rule in program.rules
        for chosen in product(sorted(mentioned), repeat=len(VARIABLES))
        for values in [dict(zip(VARIABLES, chosen, strict=True))]
    ]
    closed = [
        set(chosen)
        for chosen in chain.from_iterable(combinations(every, size) for size in range(len(every) + 1))
        if all(set(then) <= set(chosen) for when, then in grounded if set(when) <= set(chosen))
    ]
    least = set.intersection(*closed)
    assert consequences(program) == least
    both = (program.query in least, program.query.negated() in least)
    assert (
        answer(program)
        == {
            (True, False): "True",
            (False, True): "False",
            (False, False): "Unknown",
            (True, True): "Contradiction",
        }[both]
    )


def test_a_predicate_of_two_names_and_the_same_variable_twice() -> None:
    facts, rule = "Likes(Anne, Bob, True)\nLikes(Bob, Bob, True)", "Likes($x, $x, True) >>> Vain($x, True)"
    text = f"Facts:\n{facts}\nRules:\n{rule}\nQuery:\n"
    assert answer(read(f"{text}Vain(Bob, True)")) == "True"
    assert answer(read(f"{text}Vain(Bob, False)")) == "False"
    assert answer(read(f"{text}Vain(Anne, True)")) == "Unknown"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Facts:\nRed(Anne, True)", "there is no Query:"),
        ("Facts:\nRed(Anne)\nQuery:\nRed(Anne, True)", r"a literal is like .*, not 'Red\(Anne\)'"),
        ("Facts:\nRed(Anne, Maybe)\nQuery:\nRed(Anne, True)", "a literal is like"),
        ("Rules:\nRed(Anne, True)\nQuery:\nRed(Anne, True)", "a rule has the form"),
        ("Red(Anne, True)", "is below no heading"),
        ("Query:\nRed(Anne, True)\nRed(Bob, True)", "or a second query"),
        ("Query:\nRed($x, True)", r"the query has the variable \$x"),
    ],
)
def test_what_cannot_be_read_is_told(text: str, why: str) -> None:
    with pytest.raises(ProgramError, match=why):
        read(text)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for whole in (text, f"Facts:\n{text}\nRules:\n{text}\nQuery:\n{text}"):
        with suppress(ProgramError):
            assert answer(read(whole)) in {"True", "False", "Unknown", "Contradiction"}


@needs_benchdata
@pytest.mark.slow
@pytest.mark.parametrize("split", PROOFWRITER.splits)
async def test_an_agent_has_the_solver_and_the_program_where_the_split_says_so(split: str, tmp_path: Path) -> None:
    write = f"cat > mine.txt <<'END'{LANGUAGE}END\n"
    solve = "for file in mine.txt program.txt; do python3 ../provided/solve.py $file; done"
    model = script(tmp_path / "script", bash(write + solve), finish("<answer>A</answer>"))
    conditions = Conditions(
        benchmark="proofwriter",
        split=split,
        data=str(folder(PROOFWRITER)),
        agent="CodeActAgent",
        model=model,
        user_model=model,
    )
    right = next(
        one for one in instances(PROOFWRITER, split) if one.row["answer"] == "A" and "!" not in one.row["program"]
    )
    planned = await plan.new(PROOFWRITER, conditions, InstanceSelection(ids=[right.id]), 1, no_status)
    (result,) = (await finished(tmp_path / "out", planned)).values()
    assert result.score == 1
    trajectory = (tmp_path / "out" / result.trajectory).read_text()
    seen = (
        "No such file or directory" if split == "dev" else "Unknown\\nTrue\\n" if split == "dev-forms" else "Unknown\\n"
    )
    assert seen in trajectory
    assert ("provided/solve.py FILE" in trajectory) == (split == "dev-solver")
    assert ("written by another model" in trajectory) == (split == "dev-forms")

"""The choice among candidates against hand-made tables, and when two patches are the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.agents.agentless.rank import Choice, Verdict, choose, interleaved, normalised_patch

FAILED, PASSED = False, True


@pytest.mark.parametrize(
    ("verdicts", "selected", "choice"),
    [
        pytest.param([], 3, None, id="no candidate"),
        pytest.param([Verdict("", None), Verdict("", None)], 3, None, id="all are empty"),
        pytest.param([Verdict("a", 1), Verdict("a", 1), Verdict("b", 0)], 3, Choice(2, 1, 1), id="fewest failures"),
        pytest.param([Verdict("a", 2), Verdict("b", 2)], 3, Choice(0, 1, 2), id="the fewest may not be none"),
        pytest.param([Verdict("a", None), Verdict("b", 2)], 3, Choice(1, 1, 1), id="no report is a failure of all"),
        pytest.param([Verdict("a", None), Verdict("b", 3)], 3, Choice(0, 1, 2), id="no report is no more than that"),
        pytest.param([Verdict("a", None), Verdict("b", None)], 3, Choice(0, 1, 2), id="no report at all"),
        pytest.param([Verdict("a", None), Verdict("b", 0)], 0, Choice(0, 1, 2), id="nothing to report"),
        pytest.param(
            [Verdict("a", 0, FAILED), Verdict("a", 0, FAILED), Verdict("b", 0, PASSED)],
            3,
            Choice(2, 1, 1),
            id="the reproduction test comes before votes",
        ),
        pytest.param(
            [Verdict("a", 0, FAILED), Verdict("b", 1, PASSED)],
            3,
            Choice(0, 1, 1),
            id="regressions come before the reproduction test",
        ),
        pytest.param(
            [Verdict("a", 0, FAILED), Verdict("b", 0, FAILED), Verdict("b", 0, FAILED)],
            3,
            Choice(1, 2, 3),
            id="a reproduction test that nobody passes is forgotten",
        ),
        pytest.param(
            [Verdict(patch, 0) for patch in "abcbc"], 3, Choice(1, 2, 5), id="of equal votes the earliest patch"
        ),
        pytest.param(
            [Verdict("", 0), Verdict("a", 1), Verdict("b", 2), Verdict("b", 3)],
            3,
            Choice(2, 2, 3),
            id="all others vote if the fewest failures are those of an empty patch",
        ),
        pytest.param([Verdict("", None), Verdict("a", 2)], 3, Choice(1, 1, 1), id="an empty patch has no report"),
    ],
)
def test_a_table(verdicts: list[Verdict], selected: int, choice: Choice | None) -> None:
    assert choose(verdicts, selected) == choice


rows = st.builds(
    Verdict, st.sampled_from(["", "a", "b", "c"]), st.none() | st.integers(0, 3), st.none() | st.booleans()
)


@given(st.lists(rows, max_size=12))
def test_no_candidate_is_chosen_over_one_with_fewer_failures_and_code(verdicts: list[Verdict]) -> None:
    choice = choose(verdicts, 3)
    nonempty = [verdict for verdict in verdicts if verdict.patch]
    if choice is None:
        assert not nonempty
        return
    chosen = verdicts[choice.number]
    assert chosen.patch
    count = [3 if verdict.failures is None else verdict.failures for verdict in verdicts]
    if min(count) == min(failures for failures, verdict in zip(count, verdicts, strict=True) if verdict.patch):
        assert count[choice.number] == min(count)
    assert choice.votes <= choice.voters <= len(nonempty)


def test_candidates_of_all_sets_of_locations_take_turns() -> None:
    assert interleaved([["a1", "a2", "a3"], ["b1"], ["c1", "c2"]]) == ["a1", "b1", "c1", "a2", "c2", "a3"]
    assert interleaved([]) == []


BEFORE = {"a.py": "def f(x):\n    return x\n\n\nY = 1\n"}


def patch(text: str, path: str = "a.py", before: str = BEFORE["a.py"]) -> str:
    return normalised_patch({path: before}, {path: text})


class TestNormalisedPatch:
    def test_comments_docstrings_and_layout_do_not_count(self) -> None:
        plain = patch("def f(x):\n    return x + 1\n\n\nY = 1\n")
        assert plain == patch('def f(x):\n    """Add."""\n    # One.\n    return (x+1)  # more\nY = 1\n')
        assert plain != patch("def f(x):\n    return x + 2\n\n\nY = 1\n")

    def test_one_that_changes_no_code_is_empty(self) -> None:
        assert patch('def f(x):\n    """Add."""\n    return x\n\n\nY = 1\n') == ""
        assert patch("// more\nlet x = 1\n", "a.js", "let x = 1\n") == ""

    def test_a_new_function_is_the_same_wherever_it_stands(self) -> None:
        new = "def g(x):\n    return 2\n"
        first, last = patch(f"{new}\n\n{BEFORE['a.py']}"), patch(f"{BEFORE['a.py']}\n\n{new}")
        assert first == last != ""
        assert patch(f"{BEFORE['a.py']}\nZ = 3\n") != patch(f"Z = 3\n{BEFORE['a.py']}")

    def test_other_languages_are_compared_by_their_lines_of_code(self) -> None:
        before = "let x = 1\n\nlet y = 2\n"
        assert patch("let x = 1\nlet y = 3\n", "a.js", before) == patch("let x = 1\n// y\nlet y = 3\n", "a.js", before)
        assert patch("let x = 1\nlet y = 3\n", "a.js", before) != patch("let x = 1\nlet y = 4\n", "a.js", before)

    @pytest.mark.parametrize("line", ["#define LIMIT {}", "#if LIMIT > {}", "#[repr(u{})]", "#![recursion_limit = {}]"])
    def test_an_instruction_to_the_compiler_is_no_comment(self, line: str) -> None:
        assert patch(line.format(20), "a.c", line.format(10)) != ""
        assert patch("# define the limit\nX = 1\n", "a.rb", "X = 1\n") == ""

    def test_the_file_is_a_part_of_the_patch(self) -> None:
        before = {"a.py": "X = 1\n", "b.py": "X = 1\n"}
        assert normalised_patch(before, {"a.py": "X = 2\n"}) != normalised_patch(before, {"b.py": "X = 2\n"})

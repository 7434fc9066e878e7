"""History processors, and the turns that are dropped."""

from __future__ import annotations

from collections.abc import Sequence

from handiwork.agents.swe_agent.processors import (
    ClosedWindow,
    LastNObservations,
    RemoveRegex,
    SWETurn,
    TagToolCallObservations,
    without_failures,
)


def texts(turns: Sequence[SWETurn]) -> list[str]:
    return [turn.text for turn in turns]


TURNS = [SWETurn(f"run {n}", f"a\n{n}") for n in range(7)]


def test_old_outputs_become_a_line() -> None:
    shown = LastNObservations(type="last_n_observations", n=5).process(TURNS)
    assert texts(shown) == ["Old environment output: (2 lines omitted)"] * 2 + texts(TURNS[2:])
    assert texts(LastNObservations(type="last_n_observations", n=9).process(TURNS)) == texts(TURNS)
    polled = LastNObservations(type="last_n_observations", n=2, polling=4)
    for count, collapsed in ((3, 0), (4, 2), (6, 2), (7, 2)):
        assert sum(turn.collapsed for turn in polled.process(TURNS[:count])) == collapsed


def test_tags_keep_and_remove_outputs() -> None:
    tagged = TagToolCallObservations(type="tag_tool_call_observations", function_names=frozenset({"run"}))
    keep = LastNObservations(type="last_n_observations", n=1)
    assert texts(keep.process(tagged.process(TURNS))) == texts(TURNS)
    remove = tagged.model_copy(update={"tags": frozenset({"remove_output"})})
    assert all(turn.collapsed for turn in keep.process(remove.process(TURNS)))


def test_only_the_last_window_of_a_file_stays() -> None:
    def view(path: str, line: int) -> str:
        return f"[File: {path} (9 lines total)]\n({line} more lines above)\n{line}:x = 1\n(1 more lines below)\n"

    turns = [
        SWETurn("open", f"Warning\n{view('/a', 1)}"),
        SWETurn("open", view("/b", 2)),
        SWETurn("goto", view("/a", 3)),
    ]
    first, second, third = texts(ClosedWindow(type="closed_window").process(turns))
    assert first == "Warning\n[/a: 4 lines left out; a later window shows the file]\n"
    assert (second, third) == (turns[1].text, turns[2].text)


def test_what_matches_is_removed() -> None:
    turns = [SWETurn("x", "a<diff>\n1</diff>b")] * 3
    assert texts(RemoveRegex(type="remove_regex").process(turns)) == ["ab"] * 3
    assert texts(RemoveRegex(type="remove_regex", keep_last=1).process(turns)) == ["ab", "ab", turns[0].text]


def test_failed_turns_go_after_a_success() -> None:
    malformed, refused = SWETurn("", "malformed", failed=True), SWETurn("edit 1:1", "refused", failed=True)
    fine, edited = SWETurn("ls", "fine"), SWETurn("edit 1:1", "edited")
    for turns, kept in (
        ([malformed, refused], [0, 1]),
        ([malformed, refused, fine], [1, 2]),
        ([malformed, refused, fine, edited], [2, 3]),
        ([fine, malformed], [0, 1]),
        ([edited, refused], [0, 1]),
    ):
        assert without_failures(turns) == kept

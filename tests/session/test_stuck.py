"""When an agent counts as stuck, and when it only looks so."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handiwork.events.action import (
    AddTaskAction,
    AgentThinkAction,
    BrowseInteractiveAction,
    CmdRunAction,
    FileEditAction,
    FileWriteAction,
    IPythonRunCellAction,
    JobAction,
    MessageAction,
)
from handiwork.events.base import Action, Observation, Part
from handiwork.events.observation import (
    BrowserOutputObservation,
    CmdOutputObservation,
    ErrorObservation,
    FileEditObservation,
    FileWriteObservation,
    IPythonRunCellObservation,
    JobObservation,
    PlanObservation,
)
from handiwork.session.policies.repetition import RECENT, WINDOW, Pair, Repetition, find_loop


def history(*pairs: Pair) -> list[Pair]:
    """Number the events as a log would."""
    placed: list[Pair] = []
    for number, (action, observation) in enumerate(pairs):
        own = action.with_fields(id=2 * number + 1, completion=number, tool_call_id=f"call {number}")
        answer = observation.with_fields(id=2 * number + 2, cause=own.id) if observation else None
        placed.append((own, answer))
    return placed


def ran(command: str, output: str = "", exit_code: int | None = 0, thought: str = "") -> Pair:
    observation = CmdOutputObservation(command=command, content=output, exit_code=exit_code)
    return CmdRunAction(command=command, thought=thought), observation


def waited(output: str = "") -> Pair:
    return CmdRunAction(command=""), CmdOutputObservation(command="", content=output, exit_code=None, status="running")


def waited_for_cell() -> Pair:
    return IPythonRunCellAction(code=""), IPythonRunCellObservation(code="", content="", status="running")


def read_job() -> Pair:
    return JobAction(operation="read", job="1"), JobObservation(operation="read", job="1", content="", status="running")


def failed(action: Action, why: str = "There is no such file.") -> Pair:
    return action, ErrorObservation(content=why)


def cell(code: str, output: str, error: str | None = None) -> Pair:
    return IPythonRunCellAction(code=code), IPythonRunCellObservation(code=code, content=output, error=error)


def planned(goal: str, plan: str = "") -> Pair:
    return AddTaskAction(parent="", goal=goal), PlanObservation(content=plan)


def said(text: str) -> Pair:
    return MessageAction(content=text), None


def user(text: str = "go on") -> Pair:
    return MessageAction(content=text, source="user"), None


WARNING: Pair = MessageAction(content="You repeat yourself.", source="environment"), None
EDIT = FileEditAction(path="a.py", old="1", new="2")
EDITED: Pair = EDIT, FileEditObservation(path="a.py", content="-1\n+2\n")


class TestRepeat:
    def test_the_same_four_times_with_the_same_result(self) -> None:
        loop = find_loop(history(user(), ran("ls", "a.py\n"), *[ran("pytest", "1 failed\n", 1)] * 4))
        what = "The same was done 4 times with the same result: run `pytest`."
        assert loop == Repetition(first=5, rule="repeat", times=4, description=what)

    def test_a_command_that_is_started_again_and_again_in_the_background(self) -> None:
        """Each start has a job of its own."""
        command = "make serve"
        started = [
            (
                CmdRunAction(command=command, background=True),
                CmdOutputObservation(command=command, exit_code=None, job=f"job{number}"),
            )
            for number in range(4)
        ]
        assert find_loop(history(*started)) is not None

    def test_three_times_are_not_enough(self) -> None:
        assert find_loop(history(user(), *[ran("pytest", "1 failed\n", 1)] * 3)) is None

    def test_another_thought_makes_it_no_other_action(self) -> None:
        loop = find_loop(history(*[ran("pytest", "1 failed\n", 1, thought=f"idea {n}") for n in range(4)]))
        assert loop is not None

    def test_in_the_browser_it_is_the_text_that_tells_and_not_the_picture(self) -> None:
        def clicked(picture: int, content: str = "[1] button 'Buy'") -> Pair:
            screenshot = Part(blob=f"{picture:064}", media_type="image/png")
            page = BrowserOutputObservation(url="https://a.example/", content=content, screenshot=screenshot)
            return BrowseInteractiveAction(browser_actions="click('1')"), page

        loop = find_loop(history(*[clicked(n) for n in range(4)]))
        assert loop is not None
        assert loop.description == "The same was done 4 times with the same result: act in the browser `click('1')`."
        assert find_loop(history(*[clicked(0, f"[1] button 'Buy'\nStaticText '{n}'") for n in range(4)])) is None

    def test_other_work_in_between_makes_it_no_repetition(self) -> None:
        assert find_loop(history(*[ran("pytest", "1 failed\n", 1)] * 3, EDITED, ran("pytest", "1 failed\n", 1))) is None

    def test_writing_something_else_is_another_action(self) -> None:
        writes = [FileWriteAction(path="a.py", content=f"a = {n}\n") for n in range(5)]
        assert find_loop(history(*[(write, FileWriteObservation(path="a.py")) for write in writes])) is None
        assert find_loop(history(*[(writes[0], FileWriteObservation(path="a.py"))] * 4)) is not None

    def test_another_exit_code_is_another_result(self) -> None:
        assert find_loop(history(*[ran("./flaky", "", n % 3) for n in range(8)])) is None

    def test_it_is_counted_on_after_the_warning(self) -> None:
        loop = find_loop(history(*[ran("ls")] * 4, WARNING, *[ran("ls")] * 2))
        assert loop is not None
        assert (loop.first, loop.times) == (1, 6)

    def test_a_long_command_is_shortened(self) -> None:
        for command, shown in (
            ("echo " + "long " * 100, "long lo..."),
            ("edit 4:4 <<end\nx = 1\nend", "`edit 4:4 <<end..."),
        ):
            loop = find_loop(history(*[ran(command)] * 4))
            assert loop is not None
            assert loop.description.endswith(f"{shown}`.")
            assert len(loop.description) < 160


def test_f7_polling_a_log_that_grows_is_not_stuck() -> None:
    assert find_loop(history(*[ran("cat build.log", "compiled\n" * n) for n in range(8)])) is None


@pytest.mark.parametrize(
    "output",
    [
        "== 3 failed in {}.{}s ==",
        "== 3 failed in 1{}.{}s (0:01:1{}) ==",
        "Ran 4 tests in 0.{}{} seconds",
        "real\t0m0.{}{}s",
        "took {}{}ms",
        "<object at 0x7f3a91{}{}00>",
        "cannot open /tmp/tmpabcdef{}{}/a.txt",
        "wrote /tmp/pytest-of-me/pytest-{}{}/test_a0",
    ],
)
def test_times_addresses_and_temporary_folders_make_no_other_result(output: str) -> None:
    assert find_loop(history(*[ran("pytest", output.format(n, n + 1, n)) for n in range(4)])) is not None


@pytest.mark.parametrize(
    "output",
    [
        "{} of 40 files",
        "{}%",
        "{}.5 %",
        "12:00:0{}",
        "2026-01-01T12:00:0{}.125Z",
        "pod/web   0/1   Pending   0   {}s",
        "waiting, {} seconds so far",
        "error at 0x{}",
        "tests/test_{}.py failed",
        "commit 4f3a2b{}",
    ],
)
def test_counters_percentages_and_clocks_show_that_something_goes_on(output: str) -> None:
    assert find_loop(history(*[ran("./status", output.format(n)) for n in range(4)])) is None


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=30), st.text(max_size=30), st.integers(0, 3))
def test_only_equal_outputs_are_a_repetition(output: str, other: str, place: int) -> None:
    pairs = [ran("x", output)] * 4
    assert find_loop(history(*pairs)) is not None
    pairs[place] = ran("x", f"{output}{other} 1 of 2")
    assert find_loop(history(*pairs)) is None


class TestError:
    def test_the_same_action_three_times_with_errors(self) -> None:
        loop = find_loop(history(user(), *[failed(EDIT, f"Not found, attempt {n}.") for n in range(3)]))
        assert loop == Repetition(3, "error", 3, "The same failed 3 times in a row: edit `a.py`.")

    def test_twice_is_not_enough(self) -> None:
        assert find_loop(history(user(), *[failed(EDIT)] * 2)) is None

    def test_errors_of_different_actions_are_not_stuck(self) -> None:
        edits = [FileEditAction(path="a.py", old=str(n), new="") for n in range(5)]
        assert find_loop(history(*[failed(edit) for edit in edits])) is None

    def test_an_attempt_that_worked_breaks_it(self) -> None:
        assert find_loop(history(failed(EDIT), failed(EDIT), EDITED, failed(EDIT))) is None

    @pytest.mark.parametrize("error", ["SyntaxError", "IndentationError"])
    def test_the_same_syntax_error_three_times(self, error: str) -> None:
        cells = [
            cell("print(", f"  Cell In[{n}], line 1\n    print(\n{error}: '(' was never closed", error)
            for n in (1, 2, 3)
        ]
        loop = find_loop(history(*cells))
        assert loop == Repetition(1, "error", 3, "The same failed 3 times in a row: run in the notebook `print(`.")

    def test_another_exception_of_a_cell_has_to_come_four_times(self) -> None:
        cells = [cell("f()", "NameError: name 'f' is not defined", "NameError")] * 4
        assert find_loop(history(*cells[:3])) is None
        assert find_loop(history(*cells)) is not None

    def test_different_syntax_errors_are_not_stuck(self) -> None:
        cells = [cell(f"f({n}", f"SyntaxError in line {n}", "SyntaxError") for n in range(6)]
        assert find_loop(history(*cells)) is None

    def test_replies_that_are_no_action_count_if_wrong_in_the_same_way(self) -> None:
        empty, unknown = (failed(AgentThinkAction(), why) for why in ("The reply was empty.", "There is no tool x."))
        assert find_loop(history(empty, unknown, empty)) is None
        loop = find_loop(history(empty, empty, empty))
        assert loop is not None
        assert loop.description == "The same failed 3 times in a row: a reply that is no action."


class TestMonologue:
    def test_the_same_message_three_times(self) -> None:
        loop = find_loop(history(user(), *[said("I am on it.")] * 3))
        assert loop is not None
        assert (loop.first, loop.rule, loop.times) == (3, "monologue", 3)
        assert loop.description == "The same was said 3 times with nothing done in between: say `I am on it.`."

    def test_with_work_in_between_it_is_none(self) -> None:
        assert find_loop(history(said("Done?"), ran("a"), said("Done?"), ran("b"), said("Done?"))) is None

    def test_different_messages_are_none(self) -> None:
        assert find_loop(history(*[said(f"part {n}") for n in range(9)])) is None


class TestCycle:
    def test_two_things_in_turn_three_times(self) -> None:
        turn = [ran("pytest", "1 failed\n", 1), EDITED]
        loop = find_loop(history(user(), *turn * 3))
        assert loop is not None
        assert (loop.first, loop.rule, loop.times) == (3, "cycle", 3)
        assert loop.description == (
            "The same 2 things were done in turn 3 times with the same results: run `pytest`, and edit `a.py`."
        )

    def test_five_of_six_are_not_enough(self) -> None:
        assert find_loop(history(*([ran("a"), ran("b")] * 3)[:5])) is None

    def test_it_is_found_at_either_half(self) -> None:
        loop = find_loop(history(*([ran("a"), ran("b")] * 4)[:7]))
        assert loop is not None
        assert (loop.first, loop.times) == (3, 3)

    def test_results_that_differ_are_progress(self) -> None:
        pairs = [pair for n in range(6) for pair in (EDITED, ran("pytest", f"{9 - n} failed\n", 1))]
        assert find_loop(history(*pairs)) is None

    def test_three_things_in_turn_three_times(self) -> None:
        loop = find_loop(history(user(), *[ran("a", exit_code=1), planned("b"), ran("c")] * 3))
        assert loop is not None
        assert (loop.first, loop.rule, loop.times) == (3, "cycle", 3)
        assert loop.description.startswith("The same 3 things were done in turn 3 times with the same results: run `a`")

    def test_the_same_goal_added_to_a_growing_plan_is_no_progress(self) -> None:
        loop = find_loop(history(*(planned("b", f"{n} tasks") for n in range(4))))
        assert loop is not None
        assert loop.rule == "repeat"

    def test_longer_cycles_than_of_four_are_none(self) -> None:
        assert find_loop(history(*[ran(name) for name in "abcde"] * 6)) is None

    def test_errors_can_alternate(self) -> None:
        other = FileEditAction(path="b.py", old="1", new="2")
        loop = find_loop(history(*[failed(EDIT), failed(other)] * 3))
        assert loop is not None
        assert loop.rule == "cycle"


class TestMix:
    def test_few_things_in_any_order_fill_the_window(self) -> None:
        read, check = ran("cat a.txt", "a\n"), ran("pytest", "1 failed\n", 1)
        pairs = [read, check, read, EDITED, check, read, read, EDITED, check, read, EDITED, check]
        assert find_loop(history(*pairs[1:])) is None
        loop = find_loop(history(user(), *pairs))
        assert loop is not None
        assert (loop.first, loop.rule, loop.times) == (3, "mix", WINDOW)
        assert loop.description == (
            "The last 12 actions were the same 3 things in mixed order with the same results: "
            "run `cat a.txt`, edit `a.py`, and run `pytest`."
        )

    def test_a_fifth_thing_or_a_new_one_makes_it_none(self) -> None:
        mixed = [ran(name) for name in "abccabdbacd"]
        assert find_loop(history(*mixed, ran("b"))) is not None
        assert find_loop(history(*mixed, ran("new"))) is None
        assert find_loop(history(ran("e"), *mixed[1:], ran("b"))) is None

    def test_results_that_differ_are_progress(self) -> None:
        pairs = [ran(name, output) for name, output in zip("abccabdbacdb", "111123456789", strict=True)]
        assert find_loop(history(*pairs)) is None


class TestWaiting:
    def test_waiting_for_nothing_counts_after_ten_times(self) -> None:
        assert find_loop(history(ran("make", "cc a.c\n", None), *[waited()] * 9)) is None
        loop = find_loop(history(ran("make", "cc a.c\n", None), *[waited()] * 10))
        assert loop is not None
        assert (loop.first, loop.rule, loop.times) == (3, "waiting", 10)

    @pytest.mark.parametrize("pair", [waited_for_cell(), read_job()], ids=["cell", "job"])
    def test_waiting_for_a_silent_cell_or_job_counts_like_it(self, pair: Pair) -> None:
        assert find_loop(history(*[pair] * 9)) is None
        loop = find_loop(history(*[pair] * 10))
        assert loop is not None
        assert (loop.rule, loop.times) == ("waiting", 10)

    def test_sleeping_between_reads_of_a_running_job_is_waiting(self) -> None:
        turn = [ran("sleep 30"), read_job()]
        assert find_loop(history(*turn * 5)) is None
        assert find_loop(history(*turn * 6)) is not None

    def test_waiting_that_brings_output_never_counts(self) -> None:
        assert find_loop(history(*[waited(".")] * WINDOW)) is None

    def test_an_empty_command_when_nothing_runs_is_a_repetition_like_any(self) -> None:
        assert find_loop(history(*[ran("")] * 4)) is not None


class TestUser:
    def test_a_message_of_the_user_ends_any_repetition(self) -> None:
        assert find_loop(history(*[ran("ls")] * 3, user(), ran("ls"))) is None
        assert find_loop(history(*[ran("ls")] * 9, user())) is None

    def test_what_comes_after_it_counts_anew(self) -> None:
        loop = find_loop(history(*[ran("ls")] * 3, user(), *[ran("ls")] * 4))
        assert loop is not None
        assert loop.times == 4

    def test_the_user_may_say_the_same_again_and_again(self) -> None:
        assert find_loop(history(*[user()] * 5)) is None


def test_nothing_and_little_are_no_loop() -> None:
    assert find_loop([]) is None
    assert find_loop(history(ran("ls"))) is None
    assert find_loop(history(WARNING, WARNING, WARNING, WARNING)) is None


repetitions = st.sampled_from(
    [
        [ran("ls", "a\n")] * 4,
        [failed(EDIT)] * 3,
        [said("hm")] * 3,
        [ran("a"), ran("b")] * 3,
        [ran("a"), ran("b"), ran("c"), ran("d")] * 3,
        [ran(name) for name in "abccabdbacdb"],
        [waited()] * 10,
    ]
)
anything = st.sampled_from([ran("ls", "a\n"), ran("ls", "b\n"), failed(EDIT), EDITED, said("hm"), waited(), user()])


@settings(max_examples=60, deadline=None)
@given(st.lists(anything, max_size=20), repetitions, st.lists(st.just(WARNING), max_size=2))
def test_a_repetition_is_found_after_anything_and_something_new_breaks_it(
    before: list[Pair], repeated: list[Pair], warnings: list[Pair]
) -> None:
    found = find_loop(history(*before, *repeated, *warnings))
    assert found is not None
    assert find_loop(history(*before, *repeated, *warnings, ran("git diff", "something new"))) is None
    assert find_loop(history(*before, *repeated, *warnings, user())) is None


class Counting(list[tuple[Action, Observation | None]]):
    """A history that counts how much of it is read."""

    read = 0

    def __getitem__(self, place):  # type: ignore[no-untyped-def]
        self.read += 1
        return super().__getitem__(place)

    def __reversed__(self):  # type: ignore[no-untyped-def]
        for place in range(len(self) - 1, -1, -1):
            yield self[place]


@pytest.mark.parametrize("pair", [ran("ls"), WARNING, said("hm"), waited()])
def test_only_the_end_of_a_long_history_is_read(pair: Pair) -> None:
    long = Counting(history(*[pair] * 5000))
    find_loop(long)
    assert long.read <= RECENT


def test_an_agent_has_two_replies_to_leave_it_however_many_actions_a_reply_has() -> None:
    def replies(count: int) -> list[Pair]:
        pairs = history(*[ran("ls"), ran("pwd")] * count)
        return [
            (action.with_fields(completion=number // 2 + 1), answer) for number, (action, answer) in enumerate(pairs)
        ]

    first = find_loop(replies(3))
    assert first is not None
    told = first.event.with_fields(id=replies(3)[-1][0].id + 1)
    for count, persists in ((3, False), (4, False), (5, True)):
        loop = find_loop(replies(count))
        assert loop is not None
        assert loop.persists(told, replies(count)) is persists


def test_what_the_agent_does_by_itself_between_replies_neither_counts_nor_is_told() -> None:
    def with_own(*replies: Pair) -> list[Pair]:
        pairs = history(*(pair for reply in replies for pair in (reply, ran("_state", "{}"))))
        return [
            (action.with_fields(completion=None if number % 2 else number), answer)
            for number, (action, answer) in enumerate(pairs)
        ]

    two = [ran("ls", "a.py"), ran("pwd", "/w")]
    loop = find_loop(with_own(*two, *two, *two))
    assert loop is not None
    assert loop.description.endswith("run `ls`, and run `pwd`.")
    assert find_loop(with_own(*two, ran("make"))) is None
    told = loop.event.with_fields(id=with_own(*two, *two, *two)[-1][0].id + 1)
    assert not loop.persists(told, with_own(*two, *two, *two, two[0]))
    assert loop.persists(told, with_own(*two, *two, *two, *two))

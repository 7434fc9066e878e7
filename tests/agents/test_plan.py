"""The plan: what its text says after each change, and which changes it refuses."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handiwork.agents.base import MalformedReplyError
from handiwork.agents.codeact.toolbox import TOOLS
from handiwork.agents.plan import DONE, InvalidTaskError, Plan, Task
from handiwork.agents.protocols import TEXT
from handiwork.agents.protocols.ask import read
from handiwork.cli.terminal.transcript import Transcript
from handiwork.events.action import AddTaskAction, ModifyTaskAction, TaskState
from handiwork.events.observation import PlanObservation
from handiwork.llm.types import Completion, ToolCall
from tests.agents.states import native_actions

STATES: tuple[TaskState, ...] = ("open", "in_progress", "completed", "abandoned", "verified")


def a_plan() -> Plan:
    plan = Plan()
    plan.add("", "port the parser", ["the lexer", "the grammar"])
    plan.add("", "port the tests")
    plan.add("0.1", "left recursion")
    return plan


def test_ids_say_where_a_task_is() -> None:
    plan = Plan()
    assert plan.add("", "first", ["a", "b"]) == "0"
    assert plan.add("", "second") == "1"
    assert plan.add("0", "c") == "0.2"
    assert plan.add("0.1", "deep") == "0.1.0"
    assert plan.get("0.1.0") == Task("0.1.0", "deep")
    assert [task.id for task in plan.tasks] == ["0", "1"]


def test_its_text_is_an_indented_list_with_a_mark_for_each_state() -> None:
    plan = a_plan()
    plan.modify("0.0", "verified")
    plan.modify("0.1.0", "in_progress")
    plan.modify("1", "abandoned")
    plan.add("", "write\n the news", ["in  English"])
    plan.modify("2.0", "completed")
    assert plan.text().splitlines() == [
        "[>] 0 port the parser",
        "  [v] 0.0 the lexer",
        "  [>] 0.1 the grammar",
        "    [>] 0.1.0 left recursion",
        "[-] 1 port the tests",
        "[ ] 2 write the news",
        "  [x] 2.0 in English",
    ]
    assert Plan().text() == "The plan is empty."


@pytest.mark.parametrize("state", sorted(DONE))
def test_what_is_done_is_done_with_its_subtasks_but_for_those_abandoned(state: TaskState) -> None:
    plan = a_plan()
    plan.modify("0.1", "abandoned")
    plan.modify("0", state)
    assert (plan.get("0").state, plan.get("0.0").state) == (state, state)
    assert (plan.get("0.1").state, plan.get("0.1.0").state) == ("abandoned", "abandoned")
    assert plan.get("1").state == "open"


def test_what_is_in_progress_is_so_with_every_task_above_it() -> None:
    plan = a_plan()
    plan.modify("0.1.0", "in_progress")
    assert [plan.get(task).state for task in ("0", "0.1", "0.0", "1")] == ["in_progress", "in_progress", "open", "open"]
    assert plan.state == "in_progress"


def test_all_of_it_is_completed_when_every_task_at_the_top_is_done() -> None:
    plan = a_plan()
    assert (Plan().state, plan.state) == ("open", "open")
    plan.modify("0", "verified")
    assert plan.state == "in_progress"
    plan.modify("1", "abandoned")
    assert plan.state == "completed"


@pytest.mark.parametrize("wrong", ["", "7", "0.", "0.7", ".0", "00", "-1", "0.1.0.0", "the lexer"])
def test_a_task_that_is_not_there_is_refused_with_the_ids_that_are(wrong: str) -> None:
    plan = a_plan()
    before = copy.deepcopy(plan)
    with pytest.raises(InvalidTaskError, match=r"There are: 0, 0\.0, 0\.1, 0\.1\.0, 1\.$"):
        plan.modify(wrong, "completed")
    with pytest.raises(InvalidTaskError, match="There is no task" if wrong else "needs a goal"):
        plan.add(wrong, "" if not wrong else "goal")
    assert plan == before


def test_an_empty_plan_says_how_to_begin() -> None:
    with pytest.raises(InvalidTaskError, match="Add a task, with the parent ''"):
        Plan().modify("0", "completed")


def test_a_subtask_without_a_goal_adds_nothing() -> None:
    plan = a_plan()
    before = copy.deepcopy(plan)
    with pytest.raises(InvalidTaskError, match="needs a goal"):
        plan.add("0", "goal", ["fine", " \n"])
    assert plan == before


ids = st.sampled_from(["", "0", "1", "0.0", "0.1", "1.0", "0.0.0", "9"])
additions = st.tuples(st.just("add"), ids, st.lists(st.sampled_from(["a", "b", ""]), min_size=1, max_size=3))
changes = st.tuples(st.just("modify"), ids, st.sampled_from(STATES))


@settings(max_examples=60, deadline=None)
@given(st.lists(additions | changes, max_size=20))
def test_it_is_a_fold_and_a_refused_change_changes_nothing(steps: list[tuple[str, str, str | list[str]]]) -> None:
    first, again = Plan(), Plan()

    def take(plan: Plan, step: tuple[str, str, str | list[str]]) -> None:
        kind, task, what = step
        if kind == "add":
            plan.add(task, what[0], what[1:])
        else:
            plan.modify(task, what)  # type: ignore[arg-type]

    accepted: list[tuple[str, str, str | list[str]]] = []
    for step in steps:
        before = copy.deepcopy(first)
        try:
            take(first, step)
            accepted.append(step)
        except InvalidTaskError:
            assert first == before
    for step in accepted:
        take(again, step)
    assert again == first


def test_the_model_changes_it_with_two_tools_and_the_user_reads_it() -> None:
    calls = (
        ToolCall("a", "plan_task", '{"goal": "port it", "subtasks": ["lexer"]}'),
        ToolCall("b", "modify_task", '{"task_id": "0.0", "state": "in_progress"}'),
    )
    add, modify = native_actions(Completion("", calls))
    assert isinstance(add, AddTaskAction)
    assert isinstance(modify, ModifyTaskAction)
    plan = Plan()
    plan.add(add.parent, add.goal, add.subtasks)
    plan.modify(modify.task_id, modify.state)
    transcript = Transcript()
    shown = [
        line.plain for event in (add, modify, PlanObservation(content=plan.text())) for line in transcript.lines(event)
    ]
    assert shown == ["  add task port it", "  set task 0.0 to in progress", "  [>] 0 port it", "    [>] 0.0 lexer"]


@pytest.mark.parametrize("subtasks", ['"lexer"', "[1]", '{"a": "b"}'])
def test_subtasks_that_are_no_list_of_goals_are_malformed(subtasks: str) -> None:
    with pytest.raises(MalformedReplyError, match="plan_task"):
        native_actions(Completion("", (ToolCall("a", "plan_task", f'{{"goal": "port it", "subtasks": {subtasks}}}'),)))


@pytest.mark.parametrize("written", ["lexer", '["lexer"]'])
def test_in_a_block_of_text_one_subtask_needs_no_list(written: str) -> None:
    reply = Completion(f"I plan.\n\n```plan_task 'subtasks={written}'\nport it\n```")
    (add,) = read(TEXT, reply, TOOLS)
    assert isinstance(add, AddTaskAction)
    assert (add.goal, add.subtasks) == ("port it", ("lexer",))


@pytest.mark.parametrize("arguments", ['{"task_id": "0", "state": "done"}', '{"task_id": "0"}', '{"state": "open"}'])
def test_a_call_that_names_no_state_or_no_task_is_malformed(arguments: str) -> None:
    with pytest.raises(MalformedReplyError, match="modify_task"):
        native_actions(Completion("", (ToolCall("a", "modify_task", arguments),)))

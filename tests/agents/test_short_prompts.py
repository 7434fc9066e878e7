"""PlannerAgent's and MonologueAgent's views of a long history: what a prompt shows, and what the memory finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from handiwork.agents.history import History
from handiwork.agents.monologue import MonologueAgent, event_text, monologue, search
from handiwork.agents.plan import DONE, Plan
from handiwork.agents.planner import next_change, open_leaves, recent
from handiwork.events.action import CmdRunAction, MessageAction, ModifyTaskAction
from handiwork.events.observation import CmdOutputObservation
from handiwork.llm.scripted.model import ScriptedLLM


def ran(number: int, output: str = "", completion: int | None = None) -> History:
    action = CmdRunAction(command=f"command {number}", id=number, completion=completion or 1000 + number)
    return [(action, CmdOutputObservation(command=action.command, content=output, exit_code=0))]


def said(number: int, text: str) -> History:
    return [(MessageAction(content=text, source="user", id=number), None)]


def ids(history: History) -> list[int]:
    return [action.id for action, _ in history]


class TestPlan:
    def test_the_next_task_begins_and_a_task_is_done_with_its_parts(self) -> None:
        plan = Plan()
        plan.add("", "first", ("a", "b"))
        plan.add("", "second")
        done: list[str] = []
        while (change := next_change(plan)) is not None:
            plan.modify(change.task_id, change.state)
            done.append(f"{change.task_id} {change.state}")
            if change.state == "in_progress":
                plan.modify(change.task_id, "completed")  # as the model does
        assert done == ["0.0 in_progress", "0.1 in_progress", "0 completed", "1 in_progress"]
        assert plan.state == "completed"

    @given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["open", "completed", "abandoned", "verified"]))))
    def test_no_plan_makes_the_agent_change_it_for_ever(self, changes: list[tuple[int, str]]) -> None:
        plan = Plan()
        for number in range(2):
            plan.add("", f"task {number}", ("a", "b"))
        names = ["0", "0.0", "0.1", "1", "1.0"]
        for number, state in changes:
            plan.modify(names[number], state)  # type: ignore[arg-type]
        for _ in range(10):
            if (change := next_change(plan)) is None:
                break
            plan.modify(change.task_id, change.state)
        assert next_change(plan) is None
        working = [task for task in open_leaves(plan) if task.state == "in_progress"]
        assert working or all(task.state in DONE for task in plan.tasks)


class TestRecent:
    def test_the_users_messages_and_the_last_steps(self) -> None:
        history = [*said(1, "task"), *ran(2), *said(3, "also this"), *ran(4), *ran(5), *ran(6)]
        assert ids(recent(history, 2)) == [1, 3, 5, 6]
        assert ids(recent(history, 9)) == [1, 2, 3, 4, 5, 6]

    def test_a_reply_is_shown_whole(self) -> None:
        history = [*said(1, "task"), *ran(2), *ran(3, completion=7), *ran(4, completion=7), *ran(5, completion=7)]
        assert ids(recent(history, 1)) == [1, 3, 4, 5]

    def test_the_agents_own_changes_of_the_plan_are_left_out(self) -> None:
        own: History = [(ModifyTaskAction(task_id="0", state="in_progress", id=3), None)]
        assert ids(recent([*said(1, "task"), *ran(2), *own, *ran(4)], 2)) == [1, 2, 4]


class TestMonologue:
    @given(st.lists(st.integers(0, 500), max_size=12), st.integers(0, 3_000))
    def test_it_fits_and_ends_with_the_last_step(self, lengths: list[int], size: int) -> None:
        steps = [pair for number, length in enumerate(lengths, 2) for pair in ran(number, "x" * length)]
        shown = monologue([*said(1, "task"), *steps], size)
        assert ids(shown)[0] == 1
        assert ids(shown)[1:] == ids(steps)[len(steps) - len(shown) + 1 :]
        if steps:
            assert shown[-1] == steps[-1]
        assert len(shown) <= 2 or sum(len(event_text(*pair)) for pair in shown[1:]) <= size

    def test_the_users_messages_stay(self) -> None:
        history = [*said(1, "task"), *ran(2, "x" * 900), *said(3, "more"), *ran(4, "x" * 900), *ran(5)]
        assert ids(monologue(history, 100)) == [1, 3, 5]


class TestMemory:
    def test_the_best_come_first_and_what_has_no_word_of_the_query_not_at_all(self) -> None:
        history = [*said(1, "mend the parser"), *ran(2, "the lexer is fine"), *ran(3, "parser.py: parser, Parser")]
        found = search(history, "PARSER?", 5)
        assert len(found) == 2
        assert "parser.py" in found[0]
        assert found[1].startswith("The user: say mend the parser")
        assert len(search(history, "the parser lexer", 1)) == 1
        assert search(history, "", 5) == search(history, "nowhere", 5) == search([], "parser", 5) == []

    def test_the_agent_searches_the_events_of_its_last_step(self) -> None:
        agent = MonologueAgent(ScriptedLLM([]))  # type: ignore[arg-type]
        assert agent.search_memory("parser") == []

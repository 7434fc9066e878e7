"""What a small model is shown and may reply; the golden file is to be read."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest

from handiwork.agents.base import MalformedReplyError
from handiwork.agents.codeact import constrained
from handiwork.agents.codeact.examples import BLANK as BLANK_EXAMPLE
from handiwork.agents.codeact.message_cache import MessageCache
from handiwork.agents.codeact.progress import OVERVIEW, attempts, failing, tried_already, useless_edit, visible
from handiwork.agents.codeact.replies import parse
from handiwork.agents.state import State
from handiwork.events.action import (
    AgentFinishAction,
    AgentRejectAction,
    CmdRunAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    IPythonRunCellAction,
)
from handiwork.events.observation import CmdOutputObservation
from handiwork.events.record import CondensationEvent, CondensationKind
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.types import Capabilities, Completion, JsonSchema
from tests.agents.states import check_golden, edited, listed, ran, read, reply, shown, state_of, task

CODE = "def area(a, b):\n    return a + b\n"
TRACE = "/home/me/project/lib/area.py:2: AssertionError\n2 failed\n"
START = (task(), *listed("lib/area.py", "tests/test_area.py"))
RUN = (reply('{"thought": "I test.", "action": "bash", "command": "pytest"}'), *ran("pytest", TRACE, 1))
READ = read("lib/area.py", CODE)
UNDONE = edited("lib/area.py", "a - b", "a + b")
WRONG = (reply('{"action": "edit"}'), *edited("lib/area.py", "a + b", "a - b"))


def model_with(state: State, *replies: str) -> ScriptedLLM:
    """A model whose next replies these are; those of the conversation so far were given before."""
    before = [message for message in constrained.messages(state, MessageCache()) if message.role == "assistant"]
    return ScriptedLLM([*("" for _ in before), *replies], capabilities=Capabilities(tools=False))


def actions_offered(state: State) -> set[str]:
    schema = constrained.schema(state)
    return {variant["properties"]["action"]["const"] for variant in schema.get("anyOf", [schema])}


def test_the_conversation_is_the_golden_one() -> None:
    done = ran("pytest", "2 passed\n", 0)
    right = (reply('{"action": "edit", "new": "return a * b"}'), *edited("lib/area.py", "a + b", "a * b"))
    state = state_of(*START, *RUN, *READ, *right, *done)
    check_golden("constrained", shown(constrained.messages(state, MessageCache())))


BLANK = (
    task("What is 2 ** 10? Finish with <answer>NUMBER</answer>."),
    *listed(),
    reply('{"thought": "I compute it.", "action": "bash", "command": "expr 2 ** 10"}'),
    *ran("expr 2 ** 10", "expr: syntax error\n", 2),
)


def test_without_files_the_conversation_has_other_examples() -> None:
    check_golden("constrained_blank", shown(constrained.messages(state_of(*BLANK), MessageCache())))


def test_without_files_everything_is_offered_at_once_and_a_wrong_command_is_nothing_to_repair() -> None:
    offered = {"python", "bash", "write", "finish"}
    assert actions_offered(state_of(*BLANK[:3])) == offered
    assert actions_offered(state_of(*BLANK)) == offered
    assert constrained.following(state_of(*BLANK)) is None


def test_without_files_python_runs_and_files_are_made() -> None:
    cell = parse('{"action": "python", "code": "print(1)"}', {})
    assert isinstance(cell, IPythonRunCellAction)
    assert cell.code == "print(1)"
    file = parse('{"action": "write", "path": "a", "content": "b"}', {})
    assert isinstance(file, FileWriteAction)
    assert (file.path, file.content) == ("a", "b")


@pytest.mark.parametrize(
    ("code", "run"),
    [
        ("a = 1\ntotal = a + 1\n", "a = 1\ntotal = a + 1\ntotal"),
        ("print(1)", "print(1)"),
        ("a = b = 1", "a = b = 1"),
        ("a.b = 1", "a.b = 1"),
        ("total = (", "total = ("),
        ("", ""),
        ("a = '\0'", "a = '\0'"),
    ],
)
def test_a_cell_that_ends_with_a_name_for_a_value_shows_it(code: str, run: str) -> None:
    cell = parse(json.dumps({"action": "python", "code": code}), {})
    assert isinstance(cell, IPythonRunCellAction)
    assert cell.code == run


def test_the_first_thing_is_to_list_the_files_without_asking() -> None:
    assert isinstance(constrained.following(state_of(task())), CmdRunAction)


@pytest.mark.parametrize("how", ["collapse", "summary"])
def test_files_whose_list_was_condensed_away_are_listed_again(how: CondensationKind) -> None:
    many = listed(*(f"lib/area_{number}.py" for number in range(40)))
    state = state_of(task(), *many, *RUN)
    assert not isinstance(constrained.following(state), CmdRunAction)
    state.apply(CondensationEvent(first=1, last=state.last_id, how=how).with_fields(id=state.last_id + 1))
    action = constrained.following(state)
    assert isinstance(action, CmdRunAction)
    assert action.command == OVERVIEW


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("`python3 test_area.py` fails: repair it.", "python3 test_area.py"),
        ("Make `make test` succeed, not `make all`.", "make test"),
        ("Rename `area` to `size`.", None),
    ],
)
def test_a_command_that_the_task_names_is_run_without_asking(text: str, command: str | None) -> None:
    action = constrained.following(state_of(task(text), *listed("lib/area.py")))
    assert (action.command if isinstance(action, CmdRunAction) else None) == command


@pytest.mark.parametrize("status", ["input", "running"])
def test_a_command_that_does_not_end_is_ended(status: Literal["input", "running"]) -> None:
    waits = CmdOutputObservation(command="vim", content="~", exit_code=None, status=status)
    action = constrained.following(state_of(*START, reply("{}"), CmdRunAction(command="vim"), waits))
    assert isinstance(action, CmdRunAction)
    assert action.command == ""
    assert action.timeout is not None


def test_a_check_that_had_to_be_stopped_fails_and_gets_less_time_again() -> None:
    running = CmdOutputObservation(command="pytest", exit_code=None, status="running")
    stopped = CmdOutputObservation(
        command="", content="lib/area.py:2: KeyboardInterrupt", exit_code=130, status="timeout"
    )
    hangs = (reply("{}"), CmdRunAction(command="pytest"), running, CmdRunAction(command="", timeout=1), stopped)
    state = state_of(*START, *hangs, *READ, *WRONG)
    check = constrained.following(state)
    assert isinstance(check, CmdRunAction)
    assert (check.command, check.timeout) == ("pytest", 15)
    again = state_of(*START, *hangs, *READ, *WRONG, check, stopped)
    assert isinstance(constrained.following(again), FileEditAction)


def test_what_had_to_be_stopped_because_it_waited_for_input_is_no_check() -> None:
    waits = CmdOutputObservation(command="vim", exit_code=None, status="input")
    stopped = CmdOutputObservation(command="", exit_code=130, status="timeout")
    state = state_of(
        *START, reply("{}"), CmdRunAction(command="vim"), waits, CmdRunAction(command="", timeout=1), stopped
    )
    assert failing(state) is None


def test_functions_are_written_anew_first_and_then_in_turn_with_lines() -> None:
    turns = [constrained.rewrites(tries) for tries in range(11)]
    assert turns == [0, 1, None, None, None, 2, None, None, None, 3, None]


def test_the_first_reply_runs_something() -> None:
    assert actions_offered(state_of(*START)) == {"bash"}


def test_the_file_in_which_a_check_fails_is_read_without_asking() -> None:
    action = constrained.following(state_of(*START, *RUN))
    assert isinstance(action, FileReadAction)
    assert action.path == "lib/area.py"


def test_while_a_check_fails_in_a_known_file_an_edit_of_its_lines_is_what_is_left() -> None:
    state = state_of(*START, *RUN, *READ)
    (variant,) = constrained.schema(state)["anyOf"]
    assert variant["properties"]["path"] == {"const": "lib/area.py"}
    assert variant["properties"]["old"] == {"enum": ["return a + b"]}


def test_a_line_that_was_tried_in_vain_is_offered_again_when_all_were() -> None:
    code = "def area(a, b):\n    c = a\n    return c + b\n"
    wrong = (reply("{}"), *edited("lib/area.py", "    c = a\n", "    c = b\n"))
    undone = edited("lib/area.py", "    c = b\n", "    c = a\n")
    state = state_of(*START, *RUN, *read("lib/area.py", code), *wrong, *ran("pytest", TRACE, 1), *undone)
    (variant,) = constrained.schema(state)["anyOf"]
    assert variant["properties"]["old"] == {"enum": ["return c + b"]}


def test_after_an_edit_the_failing_check_runs_again() -> None:
    action = constrained.following(state_of(*START, *RUN, *READ, *WRONG))
    assert isinstance(action, CmdRunAction)
    assert action.command == "pytest"


def test_an_edit_after_which_as_much_fails_is_taken_back_and_forgotten() -> None:
    before = (*START, *RUN, *READ)
    state = state_of(*before, *WRONG, *ran("pytest", TRACE, 1))
    undo = constrained.following(state)
    assert isinstance(undo, FileEditAction)
    assert (undo.old, undo.new) == ("a - b", "a + b")
    undone = state_of(*before, *WRONG, *ran("pytest", TRACE, 1), *UNDONE)
    assert constrained.following(undone) is None
    assert attempts(undone) == 1
    assert shown(constrained.messages(undone, MessageCache())) == shown(
        constrained.messages(state_of(*before), MessageCache())
    )
    again = FileEditAction(path="lib/area.py", old="a + b", new="a - b")
    assert tried_already(undone, again)


@pytest.mark.parametrize(
    ("output", "useless"),
    [("1 failed, 1 passed\n", False), ("2 failed\n", True), ("1 error\n", True), ("Segmentation fault\n", True)],
)
def test_an_edit_is_kept_only_if_less_fails_after_it(output: str, useless: bool) -> None:
    state = state_of(*START, *RUN, *READ, *WRONG, *ran("pytest", output, 1))
    assert (useless_edit(state) is not None) == useless


def test_a_task_is_not_finished_while_its_check_fails_and_may_be_when_it_passes() -> None:
    assert "finish" not in actions_offered(state_of(*START, *RUN))
    passing = (reply("{}"), *ran("pytest", "2 passed\n", 0))
    state = state_of(*START, *passing)
    assert failing(state) is None
    assert "finish" in actions_offered(state)


async def test_a_model_that_gives_up_while_a_check_fails_rejects_the_task() -> None:
    state = state_of(*START, *RUN, *READ, *2 * (*WRONG, *ran("pytest", TRACE, 1), *UNDONE))
    llm = model_with(state, '{"thought": "", "action": "finish", "message": "all done"}')
    action = await constrained.step(llm, state, MessageCache())
    assert isinstance(action, AgentRejectAction)
    assert action.outputs["reason"] == "`pytest` still fails"


async def test_a_reply_that_was_tried_already_is_asked_for_again() -> None:
    same = json.dumps({"thought": "", "action": "bash", "command": "pytest"})
    other = json.dumps({"thought": "", "action": "read", "path": "lib/area.py"})
    state = state_of(*START, *RUN)
    action = await constrained.step(model_with(state, same, other), state, MessageCache())
    assert isinstance(action, FileReadAction)


async def test_without_files_who_runs_the_same_again_is_asked_for_an_answer() -> None:
    class Noting(ScriptedLLM):
        asked: list[JsonSchema] = []

        async def complete(self, *arguments: Any, schema: JsonSchema | None = None, **others: Any) -> Completion:
            self.asked.append(schema or {})
            return await super().complete(*arguments, schema=schema, **others)

    same = '{"thought": "", "action": "bash", "command": "expr 2 ** 10"}'
    before = [""] * (len(BLANK_EXAMPLE) // 2 + 1)
    answer = '{"thought": "", "action": "finish", "message": "1024"}'
    llm = Noting([*before, same, answer], capabilities=Capabilities(tools=False))
    assert isinstance(await constrained.step(llm, state_of(*BLANK), MessageCache()), AgentFinishAction)
    offered = [[variant["properties"]["action"]["const"] for variant in one["anyOf"]] for one in llm.asked]
    assert offered == [["python", "bash", "write", "finish"], ["finish"]]


async def test_what_the_user_was_told_before_is_not_said_again() -> None:
    said = AgentFinishAction(outputs={"message": "<answer>6</answer>"})
    state = state_of(*BLANK, reply("{}"), said, task("That is wrong."))
    other = '{"thought": "", "action": "finish", "message": "<answer>8</answer>"}'
    llm = model_with(state, '{"thought": "", "action": "finish", "message": "<answer>6</answer>"}', other)
    action = await constrained.step(llm, state, MessageCache())
    assert isinstance(action, AgentFinishAction)
    assert action.outputs["message"] == "<answer>8</answer>"


async def test_after_many_repairs_it_is_said_that_the_check_still_fails() -> None:
    one = (*WRONG, *ran("pytest", TRACE, 1), *UNDONE)
    state = state_of(*START, *RUN, *READ, *one * constrained.ATTEMPTS)
    action = await constrained.step(model_with(state), state, MessageCache())
    assert isinstance(action, AgentRejectAction)
    assert action.outputs["reason"] == f"`pytest` still fails after {constrained.ATTEMPTS} repairs"


@pytest.mark.parametrize("text", ["", "no", "[]", "{}", '{"action": "dance"}', '{"action": "edit", "path": "x"}'])
def test_a_reply_that_is_no_action_is_malformed(text: str) -> None:
    with pytest.raises(MalformedReplyError):
        parse(text, {})


def test_the_history_without_undone_edits_is_the_history_where_there_are_none() -> None:
    state = state_of(*START, *RUN, *READ, *WRONG)
    assert visible(state) == state.history


def test_a_condensation_of_negative_actions_from_a_damaged_row_is_folded() -> None:
    state = State()
    state.apply(CondensationEvent(id=1, first=0, last=-1, summary="s"))
    assert [action.id for action, _ in state.history] == [0]

"""What a model with native tool calls is shown; the golden files are to be read."""

from __future__ import annotations

import pytest

from handiwork.agents.base import MalformedReplyError
from handiwork.agents.codeact import native
from handiwork.agents.codeact.message_cache import MessageCache
from handiwork.events.action import AgentFinishAction, CmdRunAction, FileEditAction, MessageAction
from handiwork.events.observation import CmdOutputObservation, ErrorObservation, FileEditObservation
from handiwork.events.record import CondensationEvent
from handiwork.llm.types import Completion, ToolCall
from tests.agents.states import check_golden, reply, shown, state_of, task

RUN = {"id": "c1", "name": "bash", "arguments": '{"command": "pytest"}'}
EDIT = {"id": "c2", "name": "edit", "arguments": '{"path": "a.py", "old": "1", "new": "2"}'}


def history():
    output = CmdOutputObservation(command="pytest", content="1 failed\n", exit_code=1)
    return state_of(
        task("make the tests pass"),
        reply("I run the tests.", RUN),
        CmdRunAction(command="pytest", tool_call_id="c1"),
        output,
        task("and hurry"),
        reply("", EDIT),
        FileEditAction(path="a.py", old="1", new="2", tool_call_id="c2"),
        FileEditObservation(path="a.py", content="-1\n+2\n"),
        reply("", {"id": "c3", "name": "bash", "arguments": '{"command'}),
        ErrorObservation(content="The arguments of bash do not fit: ...", error_id="malformed"),
    )


def test_the_conversation_is_the_golden_one() -> None:
    check_golden("native", shown(native.messages(history(), MessageCache())))


def test_the_messages_of_earlier_events_stay_the_same_objects() -> None:
    made = MessageCache()
    state = history()
    first, second = native.messages(state, made), native.messages(state, made)
    assert all(a is b for a, b in zip(first[:-1], second[:-1], strict=True))


def test_finish_runs_after_the_other_calls_of_a_reply() -> None:
    calls = (ToolCall("a", "finish", '{"message": "ok"}'), ToolCall("b", "bash", '{"command": "ls"}'))
    first, last = native.actions(Completion("", calls))
    assert isinstance(first, CmdRunAction)
    assert isinstance(last, AgentFinishAction)
    assert (first.tool_call_id, last.tool_call_id) == ("b", "a")


def test_plain_text_asks_the_user() -> None:
    (action,) = native.actions(Completion("which one?"))
    assert isinstance(action, MessageAction)
    assert action.wait_for_response


@pytest.mark.parametrize("arguments", ["[]", "null", '{"command": null}', "{", '{"cmd": "x"}'])
def test_arguments_that_do_not_fit_are_malformed(arguments: str) -> None:
    with pytest.raises(MalformedReplyError, match="bash"):
        native.actions(Completion("", (ToolCall("a", "bash", arguments),)))


def test_an_output_that_collapsed_is_shown_short_and_all_else_stays_the_same() -> None:
    output = CmdOutputObservation(command="pytest", content="1 failed\n" * 100, exit_code=1)
    state = state_of(task(), reply("", RUN), CmdRunAction(command="pytest", tool_call_id="c1"), output)
    made = MessageCache()
    before = native.messages(state, made)
    state.apply(CondensationEvent(first=1, last=state.last_id, how="collapse").with_fields(id=state.last_id + 1))
    after = native.messages(state, made)
    assert shown(before[:3]) == shown(after[:3])
    assert shown(before[3:]) != shown(after[3:])
    assert "900 bytes in all, exit code 1; left out here" in (after[-1].content[0].text or "")

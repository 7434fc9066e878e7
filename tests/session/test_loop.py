"""The loop: what a session does with what agents and models give it."""

from __future__ import annotations

import asyncio

import pytest

from handiwork.agents.base import Agent
from handiwork.agents.state import State
from handiwork.events.action import AgentFinishAction, CmdRunAction, MessageAction
from handiwork.events.observation import CmdOutputObservation, ErrorObservation
from handiwork.log.errors import LeaseHeld
from handiwork.session.steps.live import OutputDelta, TextDelta
from tests.session.bench import Bench, bash, call, calls, finish


async def test_a_task_goes_from_message_over_actions_and_observations_to_finish(bench: Bench) -> None:
    session = await bench.session(
        [bash("echo hello > greeting; cat greeting", content="I write it."), finish("wrote it")]
    )
    state = await session.run("write a greeting")
    assert state.agent_state == "finished"
    assert state.outputs == {"message": "wrote it"}
    assert (bench.workspace / "greeting").read_text() == "hello\n"
    assert bench.kinds() == [
        "SessionStarted",
        "MessageAction",
        "StepStarted",
        "CompletionEvent",
        "CmdRunAction",
        "CmdOutputObservation",
        "StepStarted",
        "CompletionEvent",
        "AgentFinishAction",
    ]
    run, output = bench.events[4], bench.events[5]
    assert isinstance(run, CmdRunAction)
    assert isinstance(output, CmdOutputObservation)
    assert (run.thought, run.completion, output.cause, output.content) == ("I write it.", 4, run.id, "hello\n")


async def test_the_output_and_the_reply_are_streamed_beside_the_log(bench: Bench) -> None:
    await (await bench.session([bash("echo hello", content="one\ntwo\n"), finish()])).run("go")
    text = "".join(piece.text for piece in bench.watched if isinstance(piece, TextDelta))
    output = "".join(piece.text for piece in bench.watched if isinstance(piece, OutputDelta))
    assert text == "one\ntwo\n"
    assert output == "hello\n"


async def test_every_tool_call_of_one_completion_runs_in_order_and_is_answered(bench: Bench) -> None:
    both = calls(("bash", {"command": "echo a > f"}), ("bash", {"command": "cat f"}))
    state = await (await bench.session([both, finish()])).run("go")
    assert [o.content for _, o in state.history if o] == ["", "a\n"]
    answers = [m for m in bench.llm.requests[-1] if m.role == "tool"]
    assert [m.tool_call_id for m in answers] == ["call_0_0", "call_0_1"]
    assert state.iteration == 2


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (calls(("bash", '{"command": ')), "do not fit"),
        (calls(("bash", {"cmd": "ls"})), "lacks the argument 'command'"),
        (calls(("bash", {"command": 3})), "do not fit"),
        (calls(("shell", {"command": "ls"})), "no tool 'shell'"),
        ("", "empty"),
    ],
    ids=["broken JSON", "missing argument", "wrong type", "unknown tool", "empty reply"],
)
async def test_a_malformed_reply_is_told_to_the_model_and_the_session_goes_on(bench: Bench, broken, told: str) -> None:
    state = await (await bench.session([broken, finish()])).run("go")
    assert state.agent_state == "finished"
    assert told in bench.llm.requests[-1][-1].content[0].text


async def test_an_edit_that_fails_is_an_observation(bench: Bench) -> None:
    (bench.workspace / "f").write_text("x = 1\n")
    wrong, right = call("edit", path="f", old="y", new="z"), call("edit", path="f", old="x", new="z")
    state = await (await bench.session([wrong, right, finish()])).run("go")
    first = state.history[1][1]
    assert isinstance(first, ErrorObservation)
    assert first.error_id == "not_found"
    assert (bench.workspace / "f").read_text() == "z = 1\n"


async def test_a_finish_beside_an_edit_that_fails_is_dropped_and_the_model_sees_the_error(bench: Bench) -> None:
    (bench.workspace / "f").write_text("x = 1\n")
    both = calls(("edit", {"path": "f", "old": "y", "new": "z"}), ("finish", {"message": "y is z now"}))
    state = await (await bench.session([both, finish("there is no y")])).run("go")
    assert state.outputs == {"message": "there is no y"}
    assert "does not occur in f" in bench.llm.requests[-1][-1].content[0].text


async def test_text_without_a_tool_call_asks_the_user_and_the_answer_goes_on(bench: Bench) -> None:
    session = await bench.session(["which file?", finish()])
    assert (await session.run("edit it")).agent_state == "awaiting_user_input"
    state = await session.run("the first one")
    assert state.agent_state == "finished"
    assert [m.role for m in bench.llm.requests[-1]] == ["system", "user", "assistant", "user"]


async def test_a_message_sent_while_the_agent_works_is_taken_up_at_the_next_step(bench: Bench) -> None:
    log = await bench.log()
    session = await bench.session([bash("echo ready; sleep 0.5"), finish()], log)
    running = asyncio.create_task(session.run("go"))
    await bench.until(OutputDelta)
    other = await bench.store.log(log.id)
    await other.append(MessageAction(content="and hurry", source="user"))
    await running
    assert [m.role for m in bench.llm.requests[-1]][-2:] == ["tool", "user"]
    assert bench.llm.requests[-1][-1].content[0].text == "and hurry"


async def test_a_new_message_after_the_end_goes_on_with_the_same_history(bench: Bench) -> None:
    session = await bench.session([finish("first"), finish("second")])
    await session.run("one")
    state = await session.run("two")
    assert state.outputs == {"message": "second"}
    assert [a.content for a, _ in state.history if isinstance(a, MessageAction)] == ["one", "two"]


async def test_the_state_is_a_fold_over_the_log(bench: Bench) -> None:
    log = await bench.log()
    replies = [bash("false"), calls(("bash", "{")), "what now?", finish()]
    session = await bench.session(replies, log)
    await session.run("go")
    live = await session.run("on")
    again = State()
    for event in await log.read():
        again.apply(event)
    assert again == live


async def test_only_one_process_runs_a_session(bench: Bench) -> None:
    log = await bench.log()
    first = await bench.session([bash("sleep 5"), finish()], log)
    running = asyncio.create_task(first.run("go"))
    await bench.until(CmdRunAction)
    second = await bench.session([finish()], await bench.store.log(log.id))
    with pytest.raises(LeaseHeld):
        await second.run("me too")
    running.cancel()
    await asyncio.wait([running])


async def test_an_agent_that_raises_ends_in_an_error_and_can_be_resumed(bench: Bench) -> None:
    class Fragile(Agent):
        async def step(self, state: State) -> AgentFinishAction:
            if state.iteration == 1:
                raise KeyError("forgotten")
            return AgentFinishAction()

    session = await bench.session([], agent=Fragile)
    state = await session.run("go")
    assert (state.agent_state, state.change.reason) == ("error", "agent")
    assert "Fragile raised KeyError: 'forgotten'" in state.last_error
    assert (await session.run()).agent_state == "finished"


@pytest.mark.parametrize("returned", [None, "done", [None]], ids=str)
async def test_a_step_that_returns_no_action_says_what_it_returned(bench: Bench, returned: object) -> None:
    class Idle(Agent):
        async def step(self, state: State) -> AgentFinishAction:
            return returned  # type: ignore[return-value]

    state = await (await bench.session([], agent=Idle)).run("go")
    assert (state.agent_state, state.change.reason) == ("error", "agent")
    assert f"step returned {returned!r}, which is no action and no list of actions" in state.last_error

"""The conversation that SWEAgent's model reads, in text and by tool calls; the golden files are to be read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from handiwork.agents.base import MalformedReplyError, Step
from handiwork.agents.protocols.message_cache import MessageCache
from handiwork.agents.state import State
from handiwork.agents.swe_agent import FUNCTION_FORM, SWEAgent, SWENotes
from handiwork.agents.swe_agent.config import DEFAULT, default_config, load_config
from handiwork.agents.swe_agent.conversation import messages
from handiwork.agents.swe_agent.install import (
    InstallToolsAction,
    InstallToolsObservation,
    PatchAction,
    PatchObservation,
)
from handiwork.agents.swe_agent.parsers import TEXT_FORM
from handiwork.events.action import AgentFinishAction, CmdRunAction, MessageAction
from handiwork.events.base import Event
from handiwork.events.observation import (
    AgentStateChangedObservation,
    CmdOutputObservation,
    ErrorObservation,
    UserRejectObservation,
)
from handiwork.events.record import ApprovalEvent
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.types import Completion, Message
from tests.agents.states import check_golden, reply, shown, state_of, task
from tests.agents.swe_agent.published import TRAJECTORY

CONFIG = default_config()


def printed(open_file: str) -> tuple[Event, Event]:
    variables = json.dumps({"open_file": open_file, "working_dir": "/home/me/project"})
    return CmdRunAction(command=CONFIG.state_command), CmdOutputObservation(
        command=CONFIG.state_command, content=f"{variables}\n{{}}", exit_code=0
    )


def turn(command: str, output: str, exit_code: int = 0, *, native: bool = False) -> tuple[Event, ...]:
    call = {"id": f"call_{command}", "name": "bash", "arguments": json.dumps({"command": command})}
    answer = reply("I go on.", call) if native else reply(f"I go on.\n```\n{command}\n```")
    ran = CmdOutputObservation(command=command, content=output, exit_code=exit_code, cwd="/home/me/project")
    return (
        answer,
        CmdRunAction(command=command, thought="I go on.", timeout=120),
        ran,
        *printed("/home/me/project/a.py"),
    )


def history(*, native: bool) -> State:
    malformed = (reply("I think."), ErrorObservation(content="Your reply was not understood.", error_id="malformed"))
    refused = "Your proposed edit has introduced new error(s), so it was refused.\nERRORS:\n- line 1"
    return state_of(
        task("Mend a.py."),
        InstallToolsAction(bundles=()),
        InstallToolsObservation(folder="/home/agent/.cache/swe-agent.1"),
        *printed("n/a"),
        *turn("open a.py", "[File: /home/me/project/a.py (1 lines total)]\n1:x = 1\n", native=native),
        *malformed,
        *turn("edit 1:1", refused, 1, native=native),
        *turn("ls", "a.py\n", native=native),
        *turn("edit 1:1", "File updated.\n", native=native),
        *turn("true", "", native=native),
        *turn("false", "", 1, native=native),
        MessageAction(content="Use two spaces.", source="user"),
        *turn("cat big", "x" * 13_000, native=native),
        *turn("edit 1:1", refused, 1, native=native),
    )


def conversation(*, native: bool) -> Sequence[Message]:
    form, text = ("function_calling", FUNCTION_FORM) if native else ("thought_action", TEXT_FORM)
    return messages(history(native=native), CONFIG, MessageCache(), form, text, limit=16_000)


def test_the_conversation_in_text_is_the_golden_one() -> None:
    check_golden("swe_agent_text", shown(conversation(native=False)).replace("x" * 12_000, "x..."))


def test_the_conversation_by_tool_calls_is_the_golden_one() -> None:
    check_golden("swe_agent_native", shown(conversation(native=True)).replace("x" * 12_000, "x..."))


def test_every_call_has_its_answer_after_a_change_of_the_model() -> None:
    text = messages(history(native=True), CONFIG, MessageCache(), "thought_action", TEXT_FORM, limit=16_000)
    assert not any(message.tool_calls or message.role == "tool" for message in text)
    assert "I go on.\n```\nopen a.py\n```" in shown(text)
    native = messages(history(native=False), CONFIG, MessageCache(), "function_calling", FUNCTION_FORM, limit=16_000)
    assert not any(message.tool_calls or message.role == "tool" for message in native)


@pytest.mark.parametrize("name", ["demo.traj", "demo.yaml"])
def test_demonstrations_stand_as_messages_before_the_task(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(json.dumps(TRAJECTORY))
    templates = f"{{system_template: You work., put_demos_in_history: true, demonstrations: [{name}]}}"
    (tmp_path / "mine.yaml").write_text(f"agent: {{templates: {templates}}}")
    config = load_config(tmp_path / "mine.yaml")

    def read(form: str) -> Sequence[Message]:
        return messages(state_of(task("Mend a.py.")), config, MessageCache(), form, "", limit=16_000)

    text = read("thought_action")
    assert [message.role for message in text] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert "I open it.\n```\nopen old.py\n```" in shown(text)
    native = read("function_calling")
    assert [message.role for message in native] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert native[2].tool_calls[0].name == "open"
    assert native[3].tool_call_id == native[2].tool_calls[0].id
    for conversation in (text, native):
        assert "A system message" not in shown(conversation)
        assert shown(conversation[-1:]).rstrip().endswith("Mend a.py.")


@pytest.mark.parametrize("parser", ["auto", "function_calling"])
def test_a_demonstration_in_text_is_not_for_models_that_call_tools_if_the_agent_chose_the_parser(
    tmp_path: Path, parser: str
) -> None:
    (tmp_path / "mine.yaml").write_text(DEFAULT.read_text().replace("type: auto", f"type: {parser}"))
    config = load_config(tmp_path / "mine.yaml")
    assert "I look at greet.py." in config.demonstrations[0].text  # the shipped one
    for form in ("thought_action", "function_calling", "json"):
        first = messages(state_of(task("Mend a.py.")), config, MessageCache(), form, "", limit=16_000)
        assert ("I look at greet.py." in shown(first)) is (form == "thought_action" or parser != "auto")


def test_messages_stay_the_same_objects() -> None:
    cache, state = MessageCache(), history(native=False)
    first, second = (messages(state, CONFIG, cache, "thought_action", TEXT_FORM, limit=9_000) for _ in range(2))
    assert all(one is other for one, other in zip(first, second, strict=True))


def test_a_patch_that_a_limit_kept_from_being_read_is_read_once_more() -> None:
    agent = SWEAgent(ScriptedLLM([]))  # type: ignore[arg-type]
    agent.reset()

    def at_limit(*events: Event) -> Step | None:
        state: State[SWENotes] = state_of(task(), *events)
        state.data = SWENotes(folder="/tools")
        return agent.at_limit(state, "time")

    unread = (PatchAction(folder="/tools", submitted=True), PatchObservation(problem="KeyboardInterrupt"))
    action = at_limit(*unread)
    assert isinstance(action, PatchAction)
    assert (action.folder, action.status, action.submitted) == ("/tools", "submitted", False)
    end = at_limit(*unread, action, PatchObservation(content="+x\n"))
    assert isinstance(end, AgentFinishAction)
    assert (end.outputs["patch"], end.outputs["exit_status"]) == ("+x\n", "submitted")


@pytest.mark.parametrize(
    ("allowed_at", "ended_at", "is_over"),
    [
        pytest.param(9_000, 9_001, False, id="allowed late"),
        pytest.param(9_000, 10_801, True, id="allowed late and slow"),
        pytest.param(None, 9_000, False, id="refused late"),
    ],
)
async def test_the_users_time_before_an_answer_is_no_execution_time(
    allowed_at: int | None, ended_at: int, is_over: bool
) -> None:
    answered: list[tuple[int, Event]] = [
        (ended_at, ApprovalEvent(action=4, allowed=False)),
        (ended_at, UserRejectObservation(content="No.", cause=4)),
    ]
    if allowed_at is not None:
        answered = [
            (allowed_at, ApprovalEvent(action=4, allowed=True)),
            (allowed_at, AgentStateChangedObservation(agent_state="running", reason="user", cause=4)),
            (ended_at, CmdOutputObservation(command="make", exit_code=0, cause=4)),
        ]
    asks = AgentStateChangedObservation(agent_state="awaiting_user_confirmation", reason="user", cause=4)
    events: list[tuple[int, Event]] = [
        *((0, event) for event in (task(), reply("```\nmake\n```"), CmdRunAction(command="make", completion=3), asks)),
        *answered,
    ]
    state: State[SWENotes] = State(data=SWENotes(folder="/tools"))
    for number, (seconds, event) in enumerate(events, start=2):
        state.apply(event.with_fields(id=number, timestamp=datetime.fromtimestamp(seconds, UTC)))
    agent = SWEAgent(ScriptedLLM([]))  # type: ignore[arg-type]
    agent.reset()
    step = await agent.step(state)  # the patch at the end, or else first the commands for a new shell
    assert (isinstance(step, PatchAction) and "exit_total_execution_time" in step.status) == is_over


def test_a_command_that_was_cut_is_not_run() -> None:
    agent = SWEAgent(ScriptedLLM([]))  # type: ignore[arg-type]
    agent.reset()
    half = "I clear.\n```\nrm -r build"
    with pytest.raises(MalformedReplyError, match="length limit and was cut"):
        agent._action("thought_action", Completion(half, finish_reason="length"), [])
    for completion in (Completion(f"{half}\n```", finish_reason="length"), Completion(half)):
        action = agent._action("thought_action", completion, [])
        assert isinstance(action, CmdRunAction)
        assert action.command == "rm -r build"
    for form in ("identity", "action_only"):
        with pytest.raises(MalformedReplyError, match="length limit and was cut"):
            agent._action(form, Completion("rm -r build", finish_reason="length"), [])
        assert agent._action(form, Completion("rm -r build"), [])

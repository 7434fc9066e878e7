"""What is asked at the terminal when a session stands still, with real sessions and answers from a list."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.agents.state import State
from handiwork.cli.commands.run import run_interactive
from handiwork.cli.dialog.prompt import Signals
from handiwork.cli.dialog.questions import Questions, action_lines
from handiwork.cli.terminal.view import View, terminal_console
from handiwork.events.action import CmdRunAction, FileEditAction, FileWriteAction, IPythonRunCellAction, MessageAction
from handiwork.events.base import Event
from handiwork.events.observation import (
    AgentStateChangedObservation,
    FileEditObservation,
    StateReason,
    UserRejectObservation,
)
from handiwork.events.record import (
    ApprovalEvent,
    CondensationEvent,
    Limits,
    LoopEvent,
    SessionStarted,
    SettingsChanged,
    StepStarted,
)
from handiwork.log.store import Store
from handiwork.session.config import SessionConfig
from handiwork.session.open import create, reopen
from handiwork.session.session import Session
from handiwork.session.user_events import (
    PLAN_ACCEPTED,
    changed_limit,
    raised_limit,
    reached_limit,
    running_commands,
    spending,
)
from tests.cli.program import bash, edit, finish

pytestmark = pytest.mark.slow

E = TypeVar("E", bound=Event)


class Desk:
    """A user with answers ready: ``asked`` are the questions that came, ``screen`` is all that was shown."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store, self.folder = store, folder
        self.workspace = folder / "project"
        self.workspace.mkdir()
        (self.workspace / "greeting.txt").write_text("hello\n")
        self.answers: list[str | None] = []
        self.asked: list[str] = []
        self._output = io.StringIO()
        self.view = View(terminal_console(self._output), live=False)
        self.opened: Session | None = None

    @property
    def screen(self) -> str:
        return self._output.getvalue()

    def script(self, *replies: dict[str, Any], name: str = "script") -> str:
        file = self.folder / f"{name}.jsonl"
        file.write_text("".join(json.dumps(reply) + "\n" for reply in replies))
        return f"scripted:{file}"

    async def open(self, *replies: dict[str, Any], **config: Any) -> Session:
        made = SessionConfig(
            agent="CodeActAgent",
            model=self.script(*replies),
            sandbox="none",
            workspace=str(self.workspace),
            **config,
        )
        self.opened = await create(self.store, self.folder / "data", made, self.view, "greet")
        return self.opened

    async def run_interactive(self, opened: Session, message: str | None, *answers: str | None) -> State:
        self.answers = list(answers)
        try:
            return await run_interactive(opened, message, Signals(lambda: None), self.view, self.questions(opened))
        finally:
            await opened.close()

    async def run(self, *replies: dict[str, Any], answers: tuple[str | None, ...], **config: Any) -> State:
        return await self.run_interactive(await self.open(*replies, **config), "greet", *answers)

    def questions(self, opened: Session) -> Questions:
        return Questions(opened, self.view, self._answer)

    async def _answer(self, question: str) -> str | None:
        self.asked.append(question)
        return self.answers.pop(0)

    async def events(self, kind: type[E]) -> list[E]:
        assert self.opened is not None
        return [event for event in await self.opened.log.read() if isinstance(event, kind)]


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    monkeypatch.setenv("HOME", str(tmp_path))  # whose .bashrc, if any, is not what is tested
    async with Store.open(tmp_path / "data") as store:
        yield Desk(store, tmp_path)


async def test_an_action_is_shown_whole_with_the_reason_and_the_rule_and_done_when_allowed(desk: Desk) -> None:
    long = "echo start\n" + "true\n" * 60 + "echo hidden > made"
    state = await desk.run(bash(long), finish(), answers=("", "Y"), confirmation="risky")
    assert state.agent_state == "finished"
    question = desk.screen[desk.screen.index("CodeActAgent wants to do this:") :]
    assert question.count("  > true\n") == 60
    assert "  > echo hidden > made\n  There is no sandbox" in question
    assert "a allows for this session: exactly the one above" in question
    (answer,) = await desk.events(ApprovalEvent)
    assert (answer.allowed, answer.rule, answer.source) == (True, None, "user")


async def test_always_is_a_rule_that_holds_for_the_session(desk: Desk) -> None:
    state = await desk.run(bash("mkdir a"), bash("mkdir b"), finish(), answers=("a",), confirmation="always")
    assert (state.agent_state, state.totals.rules) == ("finished", ["command mkdir *"])
    assert "a allows for this session: command mkdir *" in desk.screen


@pytest.mark.parametrize(("answer", "reason"), [("n", ""), ("not on a Friday", "not on a Friday")])
async def test_no_is_told_to_the_agent_with_its_reason(desk: Desk, answer: str, reason: str) -> None:
    state = await desk.run(bash("touch made"), finish(), answers=(answer,), confirmation="always")
    assert state.agent_state == "finished"
    (denied,) = await desk.events(UserRejectObservation)
    assert denied.content == reason or not reason
    assert [event.comment for event in await desk.events(ApprovalEvent)] == [reason]


async def test_what_is_left_open_is_asked_again_with_its_reason(desk: Desk) -> None:
    state = await desk.run(bash("touch made"), finish(), answers=("q",), confirmation="always")
    assert state.agent_state == "awaiting_user_confirmation"
    again = await reopen(desk.store, desk.folder / "data", state_id(desk), desk.view)
    state = await desk.run_interactive(again, None, "y")
    assert state.agent_state == "finished"
    assert desk.screen.count("$ touch made\n  You are asked about every action that does more than read.") == 2


def state_id(desk: Desk) -> str:
    assert desk.opened is not None
    return desk.opened.id


async def test_several_are_asked_one_after_the_other_each_with_its_own_reason(desk: Desk) -> None:
    opened = await desk.open()
    async with opened.log.lease():
        stored = await opened.log.append(
            SessionStarted(agent="CodeActAgent", model="m", sandbox="none"),
            CmdRunAction(command="touch one"),
            CmdRunAction(command="touch two"),
            asks(2, "the first reason"),
            asks(3, "the second reason"),
        )
    desk.answers = ["y", "not that"]
    assert await desk.questions(opened)(folded(*stored)) == ""
    assert "$ touch one\n  the first reason" in desk.screen
    assert "$ touch two\n  the second reason" in desk.screen
    given = [(event.action, event.allowed, event.comment) for event in await desk.events(ApprovalEvent)]
    assert given == [(2, True, ""), (3, False, "not that")]
    await opened.close()


def asks(action: int, why: str) -> Event:
    return AgentStateChangedObservation(
        agent_state="awaiting_user_confirmation", reason="user", content=why, cause=action
    )


def folded(*events: Event) -> State:
    state = State()
    for number, event in enumerate(events, 1):
        state.apply(event.with_fields(id=number))
    return state


def text_of(action: CmdRunAction | FileEditAction | FileWriteAction) -> str:
    return "\n".join(line.plain for line in action_lines(action))


def test_nothing_of_an_action_can_be_hidden_from_who_judges_it() -> None:
    assert text_of(CmdRunAction(command="rm -rf ~;\rls")) == "  $ rm -rf ~;\\x0dls"
    assert "rm -rf" in text_of(CmdRunAction(command="\x1b]0;rm -rf ~\x07ls"))
    assert "hidden\\x1b[2K" in text_of(FileWriteAction(path="a", content="hidden\x1b[2K"))
    long = "\n".join(map(str, range(500)))
    assert "\n  +250\n" in text_of(FileWriteAction(path="a", content=long))


def test_an_edit_is_judged_as_a_diff() -> None:
    assert text_of(FileEditAction(path="a.py", old="a\nb\nc", new="a\nB\nc")) == "  edit a.py\n   a\n  -b\n  +B\n   c"
    assert text_of(FileEditAction(path="a.py", old="x = 1\n", new="x = 1")).endswith("   x = 1\n  -")


async def test_a_limit_is_raised_by_what_it_was_at_first_or_as_is_said(desk: Desk) -> None:
    replies = [bash(f"echo {n}") for n in range(9)]
    state = await desk.run(
        *replies, finish(), answers=("lots", "1,5", "2", "r", "inf", "6", "none"), limits=Limits(iterations=2)
    )
    assert (state.agent_state, state.limits.iterations) == ("finished", None)
    limits = [event.limits.iterations for event in await desk.events(SettingsChanged) if event.limits]
    assert limits == [4, 6, None]
    assert '"lots" is not a number' in desk.screen
    assert '"1,5" is not a number' in desk.screen
    assert "it must be more than 2 steps" in desk.screen
    assert "raise the limit of steps? (r for 4 steps," in desk.asked[0]


async def test_a_limit_that_is_left_stays(desk: Desk) -> None:
    state = await desk.run(bash("touch b"), finish(), answers=("",), limits=Limits(iterations=1))
    assert (state.agent_state, state.limits.iterations) == ("paused", 1)


@given(spent=st.integers(1, 10**6), first=st.integers(1, 10**4), times=st.integers(1, 50))
def test_raising_a_limit_always_lets_the_session_go_on(spent: int, first: int, times: int) -> None:
    limits = Limits(tokens=first * times, iterations=None)
    state = State()
    state.apply(SessionStarted(id=1, agent="A", model="m", sandbox="none", limits=limits))
    state.totals.usage = state.totals.usage.model_copy(update={"output": spent})
    more = raised_limit(state, "tokens", Limits(tokens=first))
    assert more > max(spent, first * times)
    assert (more - first * times) % first == 0
    state.apply(changed_limit(state, "tokens", more).with_fields(id=2))
    assert spending(state)["tokens"] < more == state.limits.tokens


@pytest.mark.parametrize(
    ("limits", "name"),
    [({"iterations": 1}, "iterations"), ({"iterations": 1, "tokens": 0}, "tokens"), ({"cost": 0.0}, "cost")],
)
def test_the_limit_that_holds_is_the_one_to_raise(limits: dict[str, Any], name: str) -> None:
    state = folded(SessionStarted(agent="A", model="m", sandbox="none"), StepStarted())
    state.totals.limits = Limits.model_construct(
        **{"iterations": None, "cost": None, "tokens": None, **limits, "time": None}
    )
    state.totals.last_cost = 0.1
    assert reached_limit(state) == name


LOOP = tuple(bash("cat nothing") for _ in range(6))


async def test_an_agent_that_is_stuck_is_rewound(desk: Desk) -> None:
    state = await desk.run(bash("echo first"), *LOOP, finish(), answers=("", "r"))
    assert state.agent_state == "finished"
    (rewind,) = await desk.events(CondensationEvent)
    assert (rewind.how, rewind.source) == ("rewind", "user")
    assert "The last 6 steps repeated themselves" in rewind.summary
    ran = [action.command for action, _ in state.history if isinstance(action, CmdRunAction)]
    assert ran == ["echo first"]


async def test_an_agent_that_is_stuck_goes_on_and_is_asked_about_when_it_does_not_help(desk: Desk) -> None:
    state = await desk.run(*LOOP, *LOOP[:2], finish(), answers=("g", "try ls instead"))
    assert state.agent_state == "finished"
    assert len(await desk.events(LoopEvent)) == 2
    hint = [event.content for event in await desk.events(MessageAction)][-1]
    assert hint == "try ls instead"


async def test_an_agent_that_is_stuck_is_left(desk: Desk) -> None:
    state = await desk.run(*LOOP, answers=("q",))
    assert state.agent_state == "paused"
    assert await desk.events(CondensationEvent) == []


async def test_the_model_and_the_mode_change_at_any_question(desk: Desk) -> None:
    other = desk.script({"content": "unused"}, bash("touch two"), finish("By the other."), name="other")
    answers = ("/model nonsense", "/modle x", "/help", f"/model {other}", "/confirm never", "y")
    state = await desk.run(bash("touch one"), answers=answers, confirmation="always")
    assert (state.agent_state, state.model) == ("finished", other)
    assert state.outputs == {"message": "By the other."}
    assert len(desk.asked) == len(answers)
    assert 'the model is unchanged: "nonsense" names no provider' in desk.screen
    assert "unknown command /modle" in desk.screen
    assert desk.screen.count("/model NAME [BASE_URL]") == 2


async def test_hosts_can_be_allowed_at_any_question(desk: Desk) -> None:
    answers = ("/allow", "/allow http://a", "/allow example.org pypi", "y")
    state = await desk.run(bash("touch b"), finish(), answers=answers, confirmation="always")
    assert state.totals.network == ["example.org", "pypi"]
    assert "the network is unchanged" in desk.screen
    assert "may reach example.org, pypi from now on" in desk.screen
    assert desk.screen.count("/allow HOST...") == 1


async def test_a_host_is_allowed_only_by_who_knows_of_the_commands_at_work(desk: Desk) -> None:
    job = {"tool_calls": [{"name": "bash", "arguments": {"command": "sleep 1000", "background": True}}]}
    answers = ("y", "/allow example.org", "n", "/allow pypi", "y", "y")
    opened = await desk.open(job, bash("touch b"), finish(), confirmation="always")
    async with opened.hold_lease():
        state = await desk.run_interactive(opened, "greet", *answers)
    assert state.totals.network == ["pypi"]
    assert desk.screen.count("    job1: sleep 1000") == 2
    assert "the network is unchanged" in desk.screen


async def test_a_running_cell_is_one_of_the_commands_at_work(desk: Desk) -> None:
    log = await desk.store.create(agent="A", model="m", title="t")
    async with log.lease():
        started = SessionStarted(agent="A", model="m", sandbox="none", confirmation="always")
        await log.append(started, CmdRunAction(command="make"), IPythonRunCellAction(code="f()"))
        assert await running_commands(log) == ["make", "f()"]


@pytest.mark.parametrize(
    ("reason", "question"), [("context", "larger context window"), ("user", "a message to the agent")]
)
async def test_a_paused_session_goes_on_or_is_left(desk: Desk, reason: StateReason, question: str) -> None:
    opened = await desk.open()
    state = folded(
        SessionStarted(agent="A", model="m", sandbox="none"),
        AgentStateChangedObservation(agent_state="paused", reason=reason, content="why"),
    )
    desk.answers = ["", "q", None, "do this"]
    assert [await desk.questions(opened)(state) for _ in range(4)] == ["", None, None, "do this"]
    assert question in desk.asked[0]
    await opened.close()


async def test_the_agents_question_needs_an_answer(desk: Desk) -> None:
    state = await desk.run(
        {"content": "Which file?"}, edit("greeting.txt", "hello", "hi"), finish(), answers=("", "it")
    )
    assert state.agent_state == "finished"


async def test_a_plan_is_accepted_or_changed(desk: Desk) -> None:
    change, plan = edit("greeting.txt", "hello", "good day"), finish("First A, then B.")
    opened = await desk.open(plan, plan, change, finish("Carried out."), plan_mode=True)
    state = await desk.run_interactive(opened, "greet", "B comes first", "")
    assert state.agent_state == "finished"
    assert all("Enter accepts the plan" in question for question in desk.asked)
    assert [message.content for message in await desk.events(MessageAction) if message.source == "user"] == [
        "greet",
        "B comes first",
        PLAN_ACCEPTED,
    ]
    assert len(await desk.events(FileEditObservation)) == 1

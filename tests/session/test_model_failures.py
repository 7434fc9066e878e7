"""What a session makes of a model that fails: a retry, an observation for the model, or a stop that can be resumed.

The model is a real one to the session: a client of chat completions with a server that refuses what strict templates
refuse (``tests.llm.standin.disorder``).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import pytest

from handiwork.agents.base import Agent, Step
from handiwork.agents.registry import find
from handiwork.agents.state import State
from handiwork.agents.swarm.graph import DECISION, Swarm, SwarmNode, build, save
from handiwork.events.action import AgentDelegateAction, AgentFinishAction, ChangeAgentStateAction, MessageAction
from handiwork.events.observation import AgentDelegateObservation, CmdOutputObservation, ErrorObservation
from handiwork.events.record import ApprovalEvent, CompletionEvent, CondensationEvent, LoopEvent
from handiwork.llm.create import create
from handiwork.llm.retry import Patience
from handiwork.llm.scripted.script import Reply
from handiwork.log.eventlog import EventLog
from handiwork.session.open import create as create_session
from handiwork.session.session import Session
from handiwork.session.steps.live import OutputDelta, TextDelta
from tests.llm.standin import Json, Refusal, StandIn, Stream, answer, chunk, serving, text
from tests.session.bench import Bench, bash, calls, finish

pytestmark = pytest.mark.slow

SHORT = Patience(attempts=2, silence=2.0, deadline=10.0, pause=0.01)
PAUSE = ChangeAgentStateAction(agent_state="paused", source="user")
Plan = Refusal | Stream | Reply


def said(message: str, **rest: object) -> Json:
    return {"error": {"message": message, **rest}}


TOO_LONG = Refusal(400, said("This model's maximum is 8192.", code="context_length_exceeded"))
SILENCE = Stream(text("ha", finish=None), end="hang")
EMPTY = Stream(text(""))
ALL_THOUGHT = Stream([chunk({"reasoning_content": "hm"}, "length")])


class Served:
    """A bench whose sessions talk to a server."""

    def __init__(self, bench: Bench, server: StandIn, log: EventLog) -> None:
        self.bench, self.server, self.log = bench, server, log
        self._numbers = count()

    def plan(self, *plans: Plan) -> None:
        """Say what the server does with the next requests."""
        self.server.planned += [answer(p, next(self._numbers)) if isinstance(p, Reply) else p for p in plans]

    async def session(self, *plans: Plan, **terms: object) -> Session:
        """The session as a process opens it that knows nothing but its log."""
        self.plan(*plans)
        llm = create("standin-1", base_url=self.server.base_url, patience=SHORT)
        return await self.bench.session([], self.log, llm=llm, **terms)  # type: ignore[arg-type]

    def asked(self) -> list[str]:
        """What the last request's messages say, each with its role."""
        return [f"{message['role']}: {message['content']}" for message in self.server.requests[-1]["messages"]]

    async def check(self, state: State) -> None:
        """The session is finished, and its log says the same."""
        again = State()
        for event in await self.log.read():
            again.apply(event)
        assert again == state
        assert state.agent_state == "finished", state.change
        assert state.pending == []


@pytest.fixture
async def served(bench: Bench) -> AsyncIterator[Served]:
    async with serving(StandIn()) as server, asyncio.timeout(30):
        yield Served(bench, server, await bench.log())


RETRIED: dict[str, tuple[Plan, str]] = {
    "429 with Retry-After": (Refusal(429, said("slow down"), {"retry-after": "0"}), "slow down"),
    "500": (Refusal(500, said("oops")), "HTTP 500"),
    "a page of a proxy": (Refusal(502, "<html>Bad gateway</html>"), "Bad gateway"),
    "a cut stream": (Stream(text("half an ans", finish=None), end="close"), "cut before its end"),
    "a broken connection": (Stream(text("half", finish=None), end="abort"), "connection"),
    "garbage": (Stream(["data: {not json}\n\n"]), "no JSON"),
    "an empty reply": (EMPTY, "empty answer"),
    "silence": (SILENCE, "sent nothing for 2 s"),
}


async def test_what_passes_is_tried_again_and_noted(served: Served) -> None:
    plans = [plan for number, (fault, _) in enumerate(RETRIED.values()) for plan in (fault, bash(f"echo {number}"))]
    state = await (await served.session(*plans, finish())).run("go")
    await served.check(state)
    *completions, last = [event for event in served.bench.events if isinstance(event, CompletionEvent)]
    assert last.failed_attempts == ()
    for completion, (fault, (_, note)) in zip(completions, RETRIED.items(), strict=True):
        assert [note in attempt for attempt in completion.failed_attempts] == [True], fault


LASTING: dict[str, tuple[list[Plan], str]] = {
    "401": ([Refusal(401, said("bad key"))], "check HANDIWORK_API_KEY"),
    "404": ([Refusal(404, said("no such model"))], "check the model's name"),
    "402": ([Refusal(402, said("no credit"))], "wants to be paid first"),
    "429 again and again": ([Refusal(429, said("busy"), {"retry-after": "0"})] * 2, "limits the rate"),
    "500 again and again": ([Refusal(500, said("oops"))] * 2, "HTTP 500"),
    "cut again and again": ([Stream(text("half", finish=None), end="close")] * 2, "cut before its end"),
    "silence again and again": ([SILENCE] * 2, "sent nothing"),
    "nothing but empty replies": ([EMPTY] * 4, "empty answer"),
    "nothing but reasoning": ([ALL_THOUGHT], "output limit"),
    "a filtered reply": ([Stream([chunk({}, "content_filter")])], "filtered"),
    "a request it refuses": ([Refusal(400, said("temperature out of range"))], "temperature out of range"),
}


async def test_what_lasts_stops_the_session_which_goes_on_later(served: Served) -> None:
    session = await served.session(bash("echo 1"))
    message: str | None = "go"
    for fault, (plans, why) in LASTING.items():
        served.plan(*plans)
        state = await session.run(message)
        assert state.change is not None
        assert (state.agent_state, state.change.reason) == ("error", "model"), fault
        assert why in state.last_error
        message = None
    await session.close()
    await served.check(await (await served.session(finish())).run())


async def test_a_key_that_was_refused_may_be_replaced_while_the_session_is_open(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, server = served.bench, served.server
    config = bench.config(base_url=server.base_url).model_copy(update={"model": "standin-1"})
    monkeypatch.setenv("HANDIWORK_API_KEY", "old")
    session = await create_session(bench.store, bench.store.folder, config, bench.watched.append, "a test")
    served.plan(Refusal(401, said("bad key")), finish())
    async with session.hold_lease():
        assert (await session.run("go")).agent_state == "error"
        monkeypatch.setenv("HANDIWORK_API_KEY", "new")
        assert (await session.run()).agent_state == "finished"
    assert server.keys == ["Bearer old", "Bearer new"]


def with_one_id() -> Stream:
    """Two tool calls to which the server gave the same id."""
    stream = answer(calls(("bash", {"command": "echo out 1"}), ("bash", {"command": "echo out 2"})), 0)
    for event in stream.events:
        for choice in event.get("choices", ()) if isinstance(event, dict) else ():
            for call in choice["delta"].get("tool_calls", ()):
                if "id" in call:
                    call["id"] = "same"
    return stream


TOLD: dict[str, tuple[Plan, str]] = {
    "broken arguments": (calls(("bash", '{"command": ')), "do not fit"),
    "arguments of another shape": (calls(("bash", "[1]")), "do not fit"),
    "a missing argument": (calls(("bash", {"cmd": "ls"})), "lacks the argument"),
    "an unknown tool": (calls(("shell", {"command": "ls"})), "no tool 'shell'"),
    "one good call and a broken one": (calls(("bash", {"command": "ls"}), ("bash", "{")), "do not fit"),
    "two calls with one id": (with_one_id(), "out 2"),
}


async def test_answers_without_content_cost_what_they_cost(served: Served) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 2000}
    empty = Stream([*text("", usage=usage)])
    session = await served.session(empty, finish("Done."))
    state = await session.run("go")
    assert state.agent_state == "finished"
    assert state.usage.total >= 3000
    served.plan(empty, empty)
    spent = state.usage.total
    failed = await session.run("once more")
    assert failed.agent_state == "error"
    assert failed.usage.total - spent == 2 * 3000


async def test_a_model_whose_answer_stays_empty_is_told_and_the_session_goes_on(served: Served) -> None:
    state = await (await served.session(EMPTY, EMPTY, bash("echo 1"), EMPTY, EMPTY, finish())).run("go")
    await served.check(state)
    assert served.asked()[-1] == "user: Error: Your reply was empty. Go on with the task, or end it."


async def test_a_model_that_only_reasons_until_its_limit_is_told_and_the_session_goes_on(served: Served) -> None:
    state = await (await served.session(ALL_THOUGHT, bash("echo 1"), ALL_THOUGHT, finish())).run("go")
    await served.check(state)
    assert served.asked()[-1].startswith("user: Error: Your reply reached its length limit before its answer began.")


async def test_a_node_of_a_swarm_is_asked_once_more_after_empty_answers(served: Served, tmp_path: Path) -> None:
    (served.bench.workspace / "a.txt").write_text("price: 12\n")
    nodes = (SwarmNode(name="files", operation="files"), SwarmNode(name=DECISION, operation=DECISION))
    save(Swarm(nodes=nodes, links=(("files", DECISION),), strategy="random_choice"), tmp_path / "swarm.json")
    plans = EMPTY, EMPTY, Reply(content="a.txt"), Reply(content="It costs 12.")
    state = await (await served.session(*plans, agent=find(str(tmp_path / "swarm.json")))).run("What is the price?")
    await served.check(state)
    assert state.outputs == {"message": "It costs 12."}
    assert "price: 12" in served.asked()[-1]


async def test_a_node_of_a_swarm_that_gets_no_answer_is_one_voice_less(served: Served, tmp_path: Path) -> None:
    save(build(["io", "io"], "majority_vote"), tmp_path / "swarm.json")
    plans = ALL_THOUGHT, ALL_THOUGHT, Reply(content="4")
    session = await served.session(*plans, agent=find(str(tmp_path / "swarm.json")))
    state = await session.run("What is 2 + 2?")
    await served.check(state)
    assert state.outputs == {"message": "4"}
    served.plan(*[ALL_THOUGHT] * 4)
    state = await session.run("Are you sure?")
    assert (state.agent_state, state.outputs) == ("rejected", {"reason": "The model gave no answer."})


async def test_what_the_model_does_wrong_it_is_told(served: Served) -> None:
    served.server.alternating = True
    plans = [p for number, (reply, _) in enumerate(TOLD.values()) for p in (reply, bash(f"echo {number}"))]
    await served.check(await (await served.session(*plans, finish())).run("go"))
    heard = "\n".join(served.asked())
    for fault, (_, told) in TOLD.items():
        assert told in heard, fault


async def test_a_model_that_never_replies_as_it_should_stops_in_the_end(served: Served) -> None:
    session = await served.session(*[calls(("shell", {"command": "ls"})) for _ in range(40)])
    state = await session.run("go")
    assert state.change is not None
    assert (state.agent_state, state.change.reason) == ("paused", "stuck")
    served.server.planned.clear()
    served.plan(finish())
    await served.check(await session.run("call finish"))


async def test_a_conversation_that_becomes_too_long_is_condensed(served: Served) -> None:
    session = await served.session(bash("seq 9000"), bash("echo 1"), bash("echo 2"), TOO_LONG, finish())
    await served.check(await session.run("go"))
    assert any(isinstance(event, CondensationEvent) for event in served.bench.events)


async def test_a_task_that_is_too_long_pauses(served: Served) -> None:
    state = await (await served.session(TOO_LONG)).run("a very long task")
    assert state.change is not None
    assert (state.agent_state, state.change.reason) == ("paused", "context")
    assert "larger window" in state.change.content
    await served.check(await (await served.session(finish())).run())


class Handing(Agent):
    """Has CodeActAgent do its task."""

    def step(self, state: State) -> Step:
        found = next((o for _, o in state.history if isinstance(o, AgentDelegateObservation)), None)
        if found is None:
            return AgentDelegateAction(agent="handiwork.agents.codeact:CodeActAgent", inputs={"task": state.task})
        return AgentFinishAction(outputs={"message": found.content})


async def test_a_delegate_that_loses_the_model_goes_on_where_it_was(served: Served) -> None:
    state = await (await served.session(bash("echo 1"), Refusal(401, said("bad key")), agent=Handing)).run("go")
    assert (state.agent_state, state.of(state.active).local_iteration) == ("error", 2)
    state = await (await served.session(finish("helped"), agent=Handing)).run()
    await served.check(state)
    assert "helped" in str(state.outputs)
    assert served.asked()[-1].startswith("tool: 1\n")


async def test_a_delegate_whose_request_is_refused_fails_and_its_delegator_is_told(served: Served) -> None:
    state = await (await served.session(Refusal(400, said("temperature out of range")), agent=Handing)).run("go")
    await served.check(state)
    assert "temperature out of range" in str(state.outputs)


async def pause_at(served: Served, session: Session, seen: type, message: str = "go") -> State:
    running = asyncio.create_task(session.run(message))
    await served.bench.until(seen)
    await served.log.append(PAUSE)
    return await running


async def test_an_interrupted_call_counts_the_tokens_that_its_server_told_before(served: Served) -> None:
    spent = {"prompt_tokens": 7, "completion_tokens": 1}
    session = await served.session(Stream(text("", usage=spent)), SILENCE)
    state = await pause_at(served, session, TextDelta)
    assert (state.agent_state, state.usage.total) == ("paused", 8)


class TestTheNextRequestIsInOrder:
    """After all that comes between a tool call and its answer, the server takes the conversation."""

    @pytest.fixture(autouse=True)
    def _order(self, served: Served) -> None:
        served.server.alternating = True

    async def test_after_an_interrupted_reply(self, served: Served) -> None:
        session = await served.session(Stream(text("thinking\n", finish=None), end="hang"))
        assert (await pause_at(served, session, TextDelta)).agent_state == "paused"
        served.plan(finish())
        await served.check(await session.run("be quick"))
        assert served.asked()[-1] == "user: go\n\nbe quick"

    @pytest.mark.parametrize("message", ["do less", None])
    async def test_after_an_interrupted_command_with_more_calls_behind_it(
        self, served: Served, message: str | None
    ) -> None:
        given = [
            ("bash", {"command": "echo begun; sleep 60"}),
            ("bash", {"command": "ls"}),
            ("finish", {"message": ""}),
        ]
        session = await served.session(calls(*given))
        state = await pause_at(served, session, OutputDelta)
        assert (state.agent_state, state.pending) == ("paused", [])
        served.plan(finish())
        await served.check(await session.run(message))
        assert any("Not executed" in line for line in served.asked())

    async def test_after_a_denial(self, served: Served) -> None:
        session = await served.session(
            calls(("bash", {"command": "touch a"}), ("bash", {"command": "touch b"})), confirmation="always"
        )
        state = await session.run("go")
        served.plan(finish())
        while state.agent_state == "awaiting_user_confirmation":
            (asked,) = state.totals.asked
            await served.log.append(ApprovalEvent(action=asked, allowed=False, comment="no", source="user"))
            state = await session.run()
        await served.check(state)
        assert list(served.bench.workspace.iterdir()) == []

    async def test_after_a_message_instead_of_an_answer(self, served: Served) -> None:
        session = await served.session(bash("touch a"), finish(), confirmation="always")
        await session.run("go")
        await served.check(await session.run("something else"))
        assert served.asked()[-1] == "user: something else"

    async def test_after_a_message_while_a_command_runs(self, served: Served) -> None:
        both = calls(("bash", {"command": "echo begun; read line < go"}), ("bash", {"command": "echo end"}))
        session = await served.session(bash("mkfifo go"), both, finish())
        running = asyncio.create_task(session.run("go"))
        await served.bench.until(OutputDelta)
        await (await served.bench.store.log(served.log.id)).append(MessageAction(content="and hurry", source="user"))
        (served.bench.workspace / "go").write_text("now\n")
        await served.check(await running)
        assert served.asked()[-2:] == ["assistant: OK.", "user: and hurry"]

    @pytest.mark.parametrize("reply", [calls(("bash", "{")), calls(("bash", "{"), ("shell", {}))])
    async def test_after_a_malformed_reply_and_a_message(self, served: Served, reply: Reply) -> None:
        session = await served.session(reply, Refusal(401, said("bad key")))
        assert (await session.run("go")).agent_state == "error"
        served.plan(finish())
        await served.check(await session.run("try again"))
        assert served.asked()[-1] == "user: try again"

    async def test_after_a_crash_between_tool_calls(self, served: Served) -> None:
        both = [("bash", {"command": f"echo {n}; sleep {t}"}) for n, t in ((1, 0), (2, 60), (3, 0))]
        first = await served.session(calls(*both))
        running = asyncio.create_task(first.run("go"))
        await served.bench.until(CmdOutputObservation)
        running.cancel()
        await asyncio.wait([running])
        state = await (await served.session(finish())).run()
        await served.check(state)
        answers = [o for _, o in state.history if isinstance(o, ErrorObservation)]
        assert [found.error_id for found in answers] == ["crashed", "interrupted"]

    async def test_after_it_was_told_that_it_repeats_itself(self, served: Served) -> None:
        session = await served.session(*[bash("cat nothing") for _ in range(4)], finish())
        await served.check(await session.run("go"))
        assert any(isinstance(event, LoopEvent) for event in served.bench.events)

    async def test_after_a_question(self, served: Served) -> None:
        session = await served.session(bash("ls"), Reply(content="which?"), finish())
        assert (await session.run("go")).agent_state == "awaiting_user_input"
        await served.check(await session.run("that"))

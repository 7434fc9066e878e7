"""Rate limits of a model: a call waits, says so and can be interrupted; State shows the traffic control."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from handiwork.agents.codeact import CodeActAgent
from handiwork.events.action import ChangeAgentStateAction
from handiwork.events.record import ThrottledEvent, Usage
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.scripted.script import Reply
from handiwork.sandbox.host import HostSandbox
from handiwork.session.policies.rate_limit import WINDOW, CallWindow, RateLimit, window_of
from handiwork.session.session import Session
from tests.session.bench import Bench, bash, finish


class Clock:
    """A clock that a test sets, in seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def window_with(clock: Clock, *calls: tuple[float, int]) -> CallWindow:
    """A window with calls that began at these times and took these tokens."""
    window = CallWindow(clock)
    for clock.now, tokens in calls:
        window.begin().tokens = tokens
    return window


def test_requests() -> None:
    clock = Clock()
    window = window_with(clock, (0, 1), (10, 1), (20, 1))
    assert window.wait(RateLimit()) == (0, "")
    assert window.wait(RateLimit(requests=4)) == (0, "")
    assert window.wait(RateLimit(requests=3)) == (WINDOW - 20, "3 requests a minute")
    assert window.wait(RateLimit(requests=1)) == (WINDOW, "1 requests a minute")
    clock.now = WINDOW
    assert window.wait(RateLimit(requests=3)) == (0, "")


def test_tokens() -> None:
    clock = Clock()
    window = window_with(clock, (0, 500), (10, 300), (20, 100))
    assert window.wait(RateLimit(tokens=1_000)) == (0, "")  # the next call is taken to be like the last one
    assert window.wait(RateLimit(tokens=999)) == (WINDOW - 20, "999 tokens a minute")
    assert window.wait(RateLimit(tokens=200)) == (WINDOW - 10, "200 tokens a minute")
    clock.now = 500
    assert window.wait(RateLimit(tokens=10)) == (0, "")  # larger than the limit, and alone


def test_calls_at_work_count_with_an_estimate() -> None:
    clock = Clock()
    window = window_with(clock, (0, 500))
    window.begin()
    assert window.wait(RateLimit(tokens=1_400)) == (WINDOW, "1400 tokens a minute")


async def session_of(
    bench: Bench, model: str, replies: Iterable[Reply], watch: Callable[[object], None] = lambda shown: None
) -> Session:
    """A session whose model may take one request a minute."""
    llm = ScriptedLLM(replies, name=model)
    sandbox = HostSandbox(bench.workspace, bench.store.blobs.put)

    def on_shown(shown: object) -> None:
        bench.watched.append(shown)
        watch(shown)

    config = bench.config(requests_per_minute=1)
    return Session(await bench.log(), bench.store, config, CodeActAgent, llm, sandbox, on_shown)


async def test_a_wait_is_said_and_can_be_interrupted(bench: Bench) -> None:
    session = await session_of(bench, "one-a-minute", [bash("true"), finish()])
    async with session.hold_lease():
        run = asyncio.create_task(session.run("work"))
        await bench.until(ThrottledEvent)
        assert session.state.traffic == "throttling"
        await session.log.append(ChangeAgentStateAction(agent_state="paused", source="user"))
        state = await run
    assert (state.agent_state, state.traffic) == ("paused", "normal")
    (event,) = [event for event in bench.events if isinstance(event, ThrottledEvent)]
    assert event.content.startswith("one-a-minute may take 1 requests a minute: the next call waits ")
    kinds = [event.kind for event in await session.events(first=2, last=5)]
    assert kinds == ["MessageAction", "StepStarted", "CompletionEvent", "CmdRunAction"]
    assert (await session.events(first=event.id))[0] == event


async def test_the_call_goes_on_after_its_wait(bench: Bench) -> None:
    window_of("waits-shortly").clock = clock = Clock()
    window_of("waits-shortly").begin()
    clock.now = WINDOW - 0.05

    def pass_time(shown: object) -> None:
        if isinstance(shown, ThrottledEvent):
            clock.now += 1

    session = await session_of(bench, "waits-shortly", [Reply(content="Yes?", usage=Usage(input=7))], pass_time)
    async with session.hold_lease():
        state = await session.run("work")
    assert (state.agent_state, state.traffic) == ("awaiting_user_input", "normal")
    assert [call.tokens for call in window_of("waits-shortly").calls] == [7]


async def test_traffic_is_paused_at_a_limit(bench: Bench) -> None:
    session = await bench.session([bash("true"), finish()], iterations=1)
    async with session.hold_lease():
        assert (await session.run("work")).traffic == "paused"

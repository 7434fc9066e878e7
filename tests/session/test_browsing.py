"""CodeAct hands work in the browser over to BrowsingAgent: what is counted, asked about and told, in a real browser."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from handiwork.events.action import BrowseInteractiveAction, BrowseURLAction
from handiwork.events.observation import AgentDelegateObservation, BrowserOutputObservation
from handiwork.events.record import ApprovalEvent, StepStarted
from handiwork.llm.scripted.script import Reply
from handiwork.sandbox.base import Sandbox
from tests.sandbox.helpers import Box, new_box
from tests.session.bench import Bench, call, calls, finish

FORM = """<!doctype html><title>Colours</title>
<form onsubmit="document.body.textContent = 'The colour is ' + colour.value; return false">
<input id="colour" aria-label="Colour"><button>Send</button></form>"""

FILL, ENTER = ("fill", {"bid": "3", "text": "blue"}), ("press", {"bid": "3", "key": "Enter"})


def hand_over(url: str, **rest: float) -> Reply:
    reply = call("delegate", agent="BrowsingAgent", task="Send the colour blue and report the answer.", url=url)
    return reply.model_copy(update=rest)


async def test_without_a_browser_the_delegator_is_told(bench: Bench) -> None:
    session = await bench.session([hand_over("https://a.example/"), finish("no browser here")])
    state = await session.run("Send blue.")
    assert (state.agent_state, state.outputs) == ("finished", {"message": "no browser here"})
    (came,) = [event for event in bench.events if isinstance(event, AgentDelegateObservation)]
    assert came.outcome == "rejected"
    assert "BrowsingAgent gave up. reason: No page could be opened" in came.content


@pytest.fixture
async def box(tmp_path: Path) -> AsyncIterator[Box]:
    async with new_box(tmp_path) as made:
        (made.project / "form.html").write_text(FORM)
        yield made


@pytest.fixture
def sandbox(box: Box, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    with tempfile.TemporaryDirectory() as folder:  # a socket's path must be short
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield box.make()


@pytest.mark.slow
@pytest.mark.browser
async def test_a_delegate_works_in_the_browser_under_the_same_questions_and_limits(
    bench: Bench, sandbox: Sandbox
) -> None:
    """The agenthub's numbers: steps and costs count for the task as a whole, and for each of its parts."""
    seen: dict[int, tuple[int, int, int]] = {}  # by event, as a session that is opened again shows all again

    def watch(item: object) -> None:
        bench.watched.append(item)
        if isinstance(item, StepStarted) and item.id not in seen:
            state = session.state.of(item.subtask)
            seen[item.id] = (state.delegate_level, session.state.iteration - 1, state.local_iteration - 1)

    log = await bench.log()
    url = f"file://{sandbox.workspace}/form.html"
    replies = [hand_over(url, cost=1.0), calls(FILL, ENTER, cost=1.0)]
    session = await bench.session(replies, log, sandbox=sandbox, watch=watch, confirmation="always", cost=2.5)
    state = await session.run("Send blue.")
    for asked_about in (BrowseURLAction, BrowseInteractiveAction, BrowseInteractiveAction):
        assert state.agent_state == "awaiting_user_confirmation"
        (asked,) = state.totals.asked
        assert isinstance(bench.events[asked - 1], asked_about)
        await log.append(ApprovalEvent(action=asked, allowed=True, source="user"))
        state = await session.run()
    assert (state.agent_state, state.cost) == ("paused", 2.0)
    child = state.of(state.active)
    assert (child.agent, child.local_cost, child.local_iteration) == ("BrowsingAgent", 1.0, 2)
    page = next(o for o in bench.events if isinstance(o, BrowserOutputObservation) and "Enter" in o.last_action)
    assert "The colour is blue" in page.content
    await session.close()

    end = calls(("finish", {"message": "The colour is blue"}), cost=0.5)
    replies = ["the reply given before", end, finish("blue")]
    session = await bench.session(replies, log, sandbox=sandbox, watch=watch, confirmation="always", cost=9.0)
    state = await session.run()
    came = next(event for event in bench.events if isinstance(event, AgentDelegateObservation))
    assert (came.outcome, came.outputs) == ("finished", {"message": "The colour is blue"})
    assert (state.agent_state, state.outputs, state.cost) == ("finished", {"message": "blue"}, 2.5)
    assert list(seen.values()) == [(0, 0, 0), (1, 1, 0), (1, 2, 1), (1, 3, 2), (0, 4, 1)]
    await session.close()  # before the box is, as the sandbox may still be starting

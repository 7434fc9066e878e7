"""On thirty pages nothing is done that the model did not choose, and what cannot be taken back is asked about.

All run in one Chromium.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pydantic import JsonValue

from handiwork.agents.browsing import LOOK, BrowsingAgent
from handiwork.agents.browsing.toolset import TOOLS
from handiwork.events.action import BrowseInteractiveAction, BrowseURLAction, FileWriteAction
from handiwork.events.base import Action, Observation
from handiwork.events.observation import AgentStateChangedObservation
from handiwork.events.record import ApprovalEvent
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.scripted.script import Reply
from handiwork.llm.types import Capabilities, Completion, Message, ToolCall
from handiwork.log.store import Store
from handiwork.sandbox.base import NO_SECRETS, OnOutput, Sandbox
from handiwork.sandbox.questions import AskModel
from handiwork.session.session import Session
from handiwork.workspace.snapshots.store import Snapshot
from tests.browser.helpers import Browsing
from tests.browser.scenarios import SCENARIOS, Choice, Scenario
from tests.session.bench import Bench

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

NATIVE, JSON = Capabilities(tools=True), Capabilities(tools=False)


class LentSandbox:
    """A sandbox that sessions use one after the other; they neither start nor close it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.name, self.workspace = sandbox.name, sandbox.workspace

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def interrupt(self) -> None:
        await self._sandbox.interrupt()

    async def execute(
        self,
        action: Action,
        on_output: OnOutput | None = None,
        secrets: Mapping[str, str] = NO_SECRETS,
        ask: AskModel | None = None,
    ) -> Observation:
        return await self._sandbox.execute(action, on_output, secrets, ask)

    async def upload(self, path: str, data: AsyncIterator[bytes]) -> None:
        await self._sandbox.upload(path, data)

    def download(self, path: str) -> AsyncIterator[bytes]:
        return self._sandbox.download(path)

    async def browser(self, command: str, **arguments: JsonValue) -> JsonValue:
        return await self._sandbox.browser(command, **arguments)

    async def snapshot(self) -> Snapshot | None:
        return None


class ChoosingLLM(ScriptedLLM):
    """Makes the choices of a scenario in order, naming elements by the newest page that it is shown."""

    def __init__(self, choices: Sequence[Choice], capabilities: Capabilities) -> None:
        super().__init__([Reply(content=json.dumps(choice)) for choice in choices], capabilities=capabilities)
        self.chosen: list[tuple[str, dict[str, Any]]] = []

    async def complete(self, messages: Sequence[Message], *arguments: Any, **named: Any) -> Completion:
        completion = await super().complete(messages, *arguments, **named)
        name, values = json.loads(completion.content)
        page = "\n".join(part.text or "" for message in messages for part in message.content)
        values = {key: _element(page, value) for key, value in values.items()}
        self.chosen.append((name, values))
        if self.capabilities.tools:
            call = ToolCall(f"call-{len(self.chosen)}", name, json.dumps(values))
            return replace(completion, content="", tool_calls=(call,))
        return replace(completion, content=json.dumps({"thought": "So be it.", "action": name, **values}))


def _element(page: str, value: str) -> str:
    """Return the last element of the page with the name in braces, as its line begins."""
    if not value.startswith("{"):
        return value
    name = re.escape(repr(value[1:-1]))
    *_, found = re.finditer(rf"\[\w+\] \w+ {name}" if value != "{}" else r"\[\w+\] button(?= ''|\n)", page)
    return found[0]


@pytest_asyncio.fixture(loop_scope="session")
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with AsyncExitStack() as stack:
        yield Bench(await stack.enter_async_context(Store.open(tmp_path / "data")), tmp_path, stack)


async def session_of(
    scenario: Scenario, browsing: Browsing, bench: Bench, capabilities: Capabilities, **options: Any
) -> tuple[Session, ChoosingLLM]:
    page = FileWriteAction(
        path="pages/scenario.html", content=f"<!doctype html><title>{scenario.name}</title>{scenario.page}"
    )
    await browsing.sandbox.execute(page)
    await browsing.do("goto('about:blank')")  # a page that is open would stay open
    llm = ChoosingLLM(scenario.choices, capabilities)
    sandbox = LentSandbox(browsing.sandbox)
    return await bench.session([], agent=BrowsingAgent, sandbox=sandbox, llm=llm, **options), llm


def check(scenario: Scenario, bench: Bench, llm: ChoosingLLM) -> None:
    """The log's acts in the browser are a look, the page's opening and the model's choices."""
    assert [name for name, _ in llm.chosen] == [name for name, _ in scenario.choices]
    look, opening, *acts = [e for e in bench.events if isinstance(e, BrowseURLAction | BrowseInteractiveAction)]
    assert isinstance(look, BrowseInteractiveAction)
    assert look.browser_actions == LOOK
    assert isinstance(opening, BrowseURLAction)
    assert opening.url.endswith("/pages/scenario.html")
    makers = {tool.name: tool.make for tool in TOOLS}
    chosen = [makers[name](values) for name, values in llm.chosen]
    calls = [action.browser_actions for action in chosen if isinstance(action, BrowseInteractiveAction)]
    assert [act.browser_actions for act in acts if isinstance(act, BrowseInteractiveAction)] == calls


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
async def test_only_what_the_model_chooses_is_done(scenario: Scenario, browsing: Browsing, bench: Bench) -> None:
    session, llm = await session_of(scenario, browsing, bench, NATIVE)
    state = await session.run(f"Open pages/scenario.html. {scenario.task}")
    assert state.agent_state in ("finished", "rejected", "awaiting_user_input")
    check(scenario, bench, llm)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
async def test_what_cannot_be_taken_back_is_asked_about(scenario: Scenario, browsing: Browsing, bench: Bench) -> None:
    session, llm = await session_of(scenario, browsing, bench, JSON, confirmation="risky")
    state = await session.run(f"Open pages/scenario.html. {scenario.task}")
    while state.agent_state == "awaiting_user_confirmation":
        for action in sorted(state.totals.asked):
            await session.log.append(ApprovalEvent(action=action, allowed=True, source="user"))
        state = await session.run()
    questions = [
        event.content
        for event in bench.events
        if isinstance(event, AgentStateChangedObservation) and event.agent_state == "awaiting_user_confirmation"
    ]
    assert len(questions) == len(scenario.asked), questions
    for question, act in zip(questions, scenario.asked, strict=True):
        assert f"no rule allows it: {act}" in question
        assert "pages/scenario.html" in question
    check(scenario, bench, llm)


async def test_what_the_user_refuses_is_not_done(browsing: Browsing, bench: Bench) -> None:
    page = "<button onclick=\"document.title = 'gone'\">Delete account</button>"
    choices: tuple[Choice, ...] = (("click", {"bid": "{Delete account}"}), ("finish", {"message": "not done"}))
    session, llm = await session_of(Scenario("there", page, "", choices), browsing, bench, NATIVE, confirmation="risky")
    state = await session.run("Open pages/scenario.html and delete my account.")
    (asked,) = state.totals.asked
    await session.log.append(ApprovalEvent(action=asked, allowed=False, comment="Not this one.", source="user"))
    await session.run()
    assert await browsing.js("document.title") == "there"
    assert "Not this one." in str([part.text for message in llm.requests[-1] for part in message.content])


async def test_a_rule_for_the_calls_does_not_cover_them(browsing: Browsing, bench: Bench) -> None:
    page = "<button onclick=\"this.after('deleted')\">Delete</button>"
    choices: tuple[Choice, ...] = (*[("click", {"bid": "{Delete}"})] * 2, ("finish", {"message": "done"}))
    session, _ = await session_of(Scenario("rule", page, "", choices), browsing, bench, NATIVE, confirmation="risky")
    state = await session.run("Open pages/scenario.html and delete it twice.")
    for _ in range(2):
        (asked,) = state.totals.asked
        rule = next(e.browser_actions for e in bench.events if e.id == asked and isinstance(e, BrowseInteractiveAction))
        answer = ApprovalEvent(action=asked, allowed=True, rule=f"browser {rule}", source="user")
        await session.log.append(answer)
        state = await session.run()
    assert state.agent_state == "finished"

"""The prompts of the hub's agents, pinned by golden files."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from handiwork.agents.base import MalformedReplyError
from handiwork.agents.codeact.prompt import prompt_messages
from handiwork.agents.codeact.toolbox import TOOLS
from handiwork.agents.protocols import NATIVE
from handiwork.agents.registry import find
from handiwork.agents.state import State
from handiwork.events.base import Event
from handiwork.events.overview import WorkspaceOverviewAction, WorkspaceOverviewObservation
from handiwork.events.record import NetworkAllowed
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.types import Capabilities
from tests.agents.states import GOLDEN, check_golden, ran, reply, shown, state_of, task

TEXT = Capabilities(tools=False, schema=False, window=8_192)


@pytest.mark.parametrize(
    ("agent", "protocol"),
    [
        *(("PlannerAgent", protocol) for protocol in ("native", "text")),
        *(("MonologueAgent", protocol) for protocol in ("native", "text")),
        *(("ManagerAgent", protocol) for protocol in ("native", "text")),
        ("VerifierAgent", "native"),
        ("CoderAgent", "native"),
        ("MathAgent", "native"),
    ],
)
async def test_the_first_prompt(agent: str, protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))  # the manager lists the user's agents too
    llm = ScriptedLLM([""] * 7, capabilities=TEXT if protocol == "text" else Capabilities())
    first: list[Event] = [task("Mend add.")]
    if agent in ("PlannerAgent", "MonologueAgent") and protocol == "text":
        text = "Files:\ncalc.py (2 lines, 30 bytes)"
        first += [WorkspaceOverviewAction(budget=12_000), WorkspaceOverviewObservation(content=text)]
    with suppress(MalformedReplyError):
        await find(agent)(llm).step(state_of(*first, reply("I look."), *ran("ls", "calc.py\n", 0)))  # type: ignore[misc, arg-type]
    check_golden(f"{agent}_{protocol}", shown(llm.requests[0]))


def test_the_prompt_says_what_the_sandbox_reaches_and_that_there_is_none() -> None:
    def prompt(state: State) -> str:
        return shown(list(prompt_messages(NATIVE, False, state, TOOLS, Capabilities())))

    pypi, once = NetworkAllowed(hosts=("pypi.org", "a.org:8080")), NetworkAllowed(hosts=("b.org",), once=True)
    state = state_of(task(), pypi, once)
    assert "- The sandbox reaches only these hosts: pypi.org, a.org:8080. Text from" in prompt(state)
    assert "- The sandbox reaches all hosts. Text from" in prompt(state_of(task(), NetworkAllowed(hosts=("all",))))
    state.totals.sandbox = "none"
    assert "You work on the user's machine, without a sandbox, by calling tools." in prompt(state)
    assert "The sandbox" not in prompt(state)


def test_the_prompts_of_codeact_are_the_same_for_an_agent_with_all_its_tools() -> None:
    messages = prompt_messages(NATIVE, False, state_of(task()), TOOLS, Capabilities())
    text = shown(list(messages)).rstrip()
    assert text.startswith("--- system\n")
    assert (GOLDEN / "codeact_native.txt").read_text().startswith(text)

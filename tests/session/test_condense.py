"""The history stays within the model's window: observations collapse first, then notes stand for the old steps."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.agents.codeact import CodeActAgent
from handiwork.agents.micro.definition import parse
from handiwork.agents.state import State
from handiwork.events.action import CmdRunAction, MessageAction
from handiwork.events.base import Event
from handiwork.events.observation import CmdOutputObservation
from handiwork.events.overview import WorkspaceOverviewAction, WorkspaceOverviewObservation
from handiwork.events.record import CompletionEvent, KnowledgeEvent, SessionStarted, Usage
from handiwork.llm.create import create
from handiwork.llm.errors import ContextWindowError
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.scripted.script import Reply
from handiwork.llm.types import Capabilities, Completion, Message
from handiwork.sandbox.host import HostSandbox
from handiwork.session.policies.condense import CannotCondenseError, Condenser
from handiwork.session.policies.knowledge import Knowledge
from handiwork.session.policies.token_estimate import estimate, text_of
from handiwork.session.secrets import Secrets, announcement
from handiwork.session.session import Session
from tests.llm.standin import StandIn, answer, serving
from tests.session.bench import Bench, bash, finish

WINDOW = 8_000


class Conversation:
    """A task whose events are folded one by one, as a session does."""

    def __init__(self, task: str = "Repair area().") -> None:
        self.state = State()
        self.put(SessionStarted(agent="CodeActAgent", model="m", sandbox="none"))
        self.say(task)

    def put(self, event: Event) -> int:
        number = self.state.last_id + 1
        self.state.apply(event.with_fields(id=number))
        return number

    def say(self, text: str) -> None:
        self.put(MessageAction(content=text, source="user"))

    def step(self, *commands: str, output: str = "fine", usage: Usage = Usage()) -> None:
        """One reply of the model with a call for each command, all with the same output."""
        completion = self.put(CompletionEvent(model="m", response={}, usage=usage))
        actions = [self.put(CmdRunAction(command=command, completion=completion)) for command in commands]
        for action, command in zip(actions, commands, strict=True):
            self.put(CmdOutputObservation(command=command, content=output, exit_code=0, cause=action))

    @property
    def commands(self) -> list[str]:
        return [action.command for action, _ in self.state.history if isinstance(action, CmdRunAction)]

    @property
    def said(self) -> list[str]:
        return [action.content for action, _ in self.state.history if isinstance(action, MessageAction)]

    @property
    def outputs(self) -> list[str]:
        return [observation.text for _, observation in self.state.history if observation is not None]


def model(*replies: Reply | str, window: int | None = WINDOW, tools: bool = True) -> ScriptedLLM:
    return ScriptedLLM(replies, capabilities=Capabilities(window=window, tools=tools))


def asked(llm: ScriptedLLM) -> str:
    return llm.requests[-1][0].content[0].text or ""


def long_outputs(steps: int = 10) -> Conversation:
    talk = Conversation()
    for number in range(steps):
        talk.step(f"make {number}", output=f"built {number}\n" + "x" * 2_000)
    return talk


def long_commands(steps: int = 40) -> Conversation:
    talk = Conversation()
    for number in range(steps):
        talk.step(f"echo {number} {'y' * 600}")
    return talk


async def test_what_fits_is_left_alone() -> None:
    llm = model()
    condenser, talk = Condenser(llm), Conversation()
    for number in range(20):
        assert await condenser.condense(talk.state) is None
        talk.step(f"ls {number}")
    assert not llm.requests


async def test_old_outputs_collapse_all_at_once_and_the_new_ones_stay() -> None:
    llm, talk = model(), long_outputs()
    event = await Condenser(llm).condense(talk.state)
    assert event is not None
    assert event.how == "collapse"
    talk.put(event)
    assert talk.commands == [f"make {number}" for number in range(10)]
    assert talk.said == ["Repair area()."]
    short = [len(output) <= 200 for output in talk.outputs]
    assert short == sorted(short, reverse=True)
    assert 2 <= short.count(False) <= 3
    assert talk.outputs[0].startswith("built 0\n")
    assert estimate(talk.state.history) < WINDOW / 2
    assert not llm.requests


async def test_after_that_nothing_changes_until_the_window_fills_again() -> None:
    talk, condenser = long_outputs(), Condenser(model(*["notes"] * 9))
    found: list[int] = []
    for number in range(40):
        if event := await condenser.condense(talk.state):
            found.append(number)
            talk.put(event)
        talk.step("make", output="x" * 600)
    gaps = [later - earlier for earlier, later in pairwise(found)]
    assert found[0] == 0
    assert gaps
    assert min(gaps) >= 5


async def test_notes_stand_for_old_steps_where_collapsing_is_not_enough() -> None:
    llm, talk = model("area() adds; it must multiply."), long_commands()
    event = await Condenser(llm).condense(talk.state)
    assert event is not None
    assert event.how == "summary"
    talk.put(event)
    task, notes = talk.said
    assert task == "Repair area()."
    assert "area() adds; it must multiply." in notes
    assert talk.commands[-1].startswith("echo 39 ")
    assert 2 <= len(talk.commands) < 20
    assert "echo 0 y" in asked(llm)
    assert "echo 39" not in asked(llm)


async def test_notes_are_condensed_into_new_notes_and_ids_go_on_rising() -> None:
    llm, talk = model("first notes", "second notes"), long_commands()
    condenser = Condenser(llm)
    for _ in range(2):
        event = await condenser.condense(talk.state)
        assert event is not None
        talk.put(event)
        ids = [action.id for action, _ in talk.state.history]
        assert ids == sorted(ids)
        for number in range(40):
            talk.step(f"true {number} {'y' * 600}")
    assert "first notes" in asked(llm)
    assert [said for said in talk.said if "first notes" in said] == []


async def test_the_overview_of_the_workspace_stays_before_the_notes() -> None:
    talk = Conversation()
    look = talk.put(WorkspaceOverviewAction(budget=9))
    talk.put(WorkspaceOverviewObservation(content="Files:\narea.py", paths=("area.py",), cause=look))
    for number in range(40):
        talk.step(f"echo {number} {'y' * 600}")
    llm = model("notes")
    event = await Condenser(llm).condense(talk.state)
    assert event is not None
    talk.put(event)
    assert talk.outputs[0] == "Files:\narea.py"
    assert "area.py" not in asked(llm)
    assert "notes" in talk.said[1]


async def test_what_the_user_said_later_is_kept_word_for_word_through_all_notes() -> None:
    talk, condenser = long_commands(), Condenser(model("one", "two"))
    talk.say("Do NOT touch  the tests.")
    talk.say("Go on.")
    for _ in range(2):
        for number in range(40):
            talk.step(f"true {number} {'y' * 600}")
        event = await condenser.condense(talk.state)
        assert event is not None
        talk.put(event)
    task, newest, notes = talk.said
    assert (task, newest) == ("Repair area().", "Go on.")
    assert "> Do NOT touch  the tests." in notes
    assert notes.count("Do NOT") == 1


async def test_knowledge_and_the_names_of_secrets_are_kept_word_for_word_through_all_notes() -> None:
    talk, condenser = long_commands(), Condenser(model("one", "two"))
    text = "Tag it.\n\nUpload  with twine."
    talk.put(MessageAction(content=announcement(Secrets({"PYPI_TOKEN": "x"})), source="environment"))
    talk.say("Release it.")
    talk.put(KnowledgeEvent(name="release", trigger="Release", place="release.md", content=text))
    talk.say("Go on.")
    for _ in range(2):
        for number in range(40):
            talk.step(f"true {number} {'y' * 600}")
        event = await condenser.condense(talk.state)
        assert event is not None
        talk.put(event)
    *_, notes = talk.said
    for kept in ("> Tag it.\n> \n> Upload  with twine.", "$PYPI_TOKEN", "> Release it."):
        assert notes.count(kept) == 1


@pytest.mark.parametrize(("text", "joins"), [("Tag it.", 0), ("Tag it. " * 900, 1)], ids=["whole", "cut"])
async def test_knowledge_that_notes_have_cut_joins_again_when_its_trigger_does(text: str, joins: int) -> None:
    talk = long_commands()
    knowledge = Knowledge([parse(Path("release.md"), f"---\ntriggers: [release]\n---\n{text}")])
    talk.say("Release it.")
    for joined in knowledge.joining(talk.state):
        talk.put(joined)
    assert len(knowledge.joining(talk.state)) == 0
    for number in range(40):
        talk.step(f"true {number} {'y' * 600}")
    event = await Condenser(model("notes")).condense(talk.state)
    assert event is not None
    talk.put(event)
    talk.say("Now release it.")
    assert len(knowledge.joining(talk.state)) == joins


async def test_the_newest_message_of_the_user_stays_before_the_notes_unless_it_is_long() -> None:
    for text in ("Now rename it.", "Rename these:" + " area" * 900):
        talk = long_commands()
        talk.say(text)
        for number in range(40):
            talk.step(f"true {number} {'y' * 600}")
        event = await Condenser(model("notes")).condense(talk.state)
        assert event is not None
        talk.put(event)
        is_long = len(text) > 4_000
        assert (text in talk.said) != is_long
        assert (f"> {text[:9]}" in talk.said[-1]) == is_long


async def test_calls_of_one_reply_are_not_parted() -> None:
    talk = Conversation()
    for number in range(12):
        talk.step(*(f"echo {number}.{call} {'y' * 400}" for call in range(5)))
    event = await Condenser(model("notes")).condense(talk.state)
    assert event is not None
    talk.put(event)
    assert len(talk.commands) % 5 == 0


async def test_what_the_model_counted_is_believed() -> None:
    talk, condenser = Conversation(), Condenser(model("notes"))
    assert await condenser.condense(talk.state) is None
    for number in range(4):
        talk.step(f"make {number}", output="x" * 900, usage=Usage(input=100, cache_read=6_500, output=100))
    assert await condenser.condense(talk.state) is not None


async def test_a_new_process_does_not_believe_a_count_from_before_the_last_condensation() -> None:
    talk = long_outputs()
    event = await Condenser(model()).condense(talk.state)
    talk.step("make", usage=Usage(input=7_900, output=50))
    assert event is not None
    talk.put(event)
    assert await Condenser(model()).condense(talk.state) is None


async def test_a_refusal_makes_it_shorter_whatever_was_counted() -> None:
    for window in (None, 100_000):
        talk, condenser = long_outputs(), Condenser(model(window=window))
        assert await condenser.condense(talk.state) is None
        before = estimate(talk.state.history)
        event = await condenser.condense(talk.state, overflow=True)
        assert event is not None
        talk.put(event)
        assert estimate(talk.state.history) < 0.6 * before


async def test_refused_again_and_again_it_ends_in_a_clear_error() -> None:
    talk, condenser = long_outputs(), Condenser(model(*["notes"] * 20, window=None))

    async def refuse() -> None:
        for _ in range(20):
            event = await condenser.condense(talk.state, overflow=True)
            assert event is not None
            talk.put(event)

    with pytest.raises(CannotCondenseError, match=r"larger window, or begin anew with a smaller task"):
        await refuse()


async def test_one_output_that_fills_the_window_collapses_too() -> None:
    talk = Conversation()
    talk.step("cat big", output="start\n" + "x" * 15_000)
    event = await Condenser(model(window=2_000)).condense(talk.state)
    assert event is not None
    talk.put(event)
    assert "15006 bytes" in talk.outputs[0]


@pytest.mark.parametrize(("notes", "why"), [("  \n", "empty"), ("y" * 60_000, "as long as")])
async def test_notes_that_are_none_pause_the_session(notes: str, why: str) -> None:
    with pytest.raises(CannotCondenseError, match=why):
        await Condenser(model(notes)).condense(long_commands().state)


async def test_a_task_that_alone_fills_the_window_cannot_be_condensed() -> None:
    talk = Conversation("words " * 6_000)
    with pytest.raises(CannotCondenseError, match="begin anew with a smaller task"):
        await Condenser(model()).condense(talk.state)


async def test_the_prompt_for_notes_fits_the_window_too() -> None:
    llm, talk = model("notes", window=4_000), Conversation()
    for number in range(200):
        talk.step(f"echo {number} {'y' * 600}", output="z" * 3_000)
    assert await Condenser(llm).condense(talk.state) is not None
    assert len(asked(llm)) < 4_000 * 3
    assert "echo 0 " in asked(llm)
    assert "left out" in asked(llm)


@dataclass
class Narrow:
    """A model whose window is smaller than it says."""

    longest: int
    capabilities: Capabilities = field(default=Capabilities(window=WINDOW))
    refused: list[int] = field(default_factory=list[int])

    async def open(self) -> None:
        pass

    async def complete(self, messages: list[Message], **_: Any) -> Completion:
        length = len(messages[0].content[0].text or "")
        if length > self.longest:
            self.refused.append(length)
            raise ContextWindowError("too long")
        return Completion("short notes")


async def test_a_prompt_for_notes_that_is_refused_is_cut_further() -> None:
    llm = Narrow(longest=8_000)
    event = await Condenser(llm).condense(long_commands().state)
    assert event is not None
    assert "short notes" in event.summary
    assert llm.refused
    with pytest.raises(CannotCondenseError, match="too long to be summed up"):
        await Condenser(Narrow(longest=10)).condense(long_commands().state)


async def test_a_small_model_writes_bound_notes_after_a_short_prompt() -> None:
    schemas: list[Any] = []

    class Small(ScriptedLLM):
        async def complete(self, *args: Any, **rest: Any) -> Completion:
            schemas.append(rest["form"])
            return await super().complete(*args, **rest)

    llm = Small(['{"notes": "it adds"}'], capabilities=Capabilities(tools=False, window=4_096))
    event = await Condenser(llm).condense(long_commands(20).state)
    assert event is not None
    assert event.summary.endswith("\nit adds")
    assert schemas[0]["properties"]["notes"]["maxLength"] <= 2_000


async def test_between_condensations_every_request_extends_the_one_before_to_the_byte(bench: Bench) -> None:
    """So that what a provider has cached of the prompt is good for the next one."""
    steps = 24
    (bench.workspace / "data").write_text("x" * 50_000)
    async with serving(StandIn()) as server:
        server.pages["/v1/models"] = {"data": [{"id": "standin-1", "max_model_len": 20_000}]}
        server.planned.extend(answer(bash(f"seq {n} 1000"), n) for n in range(steps))
        server.planned.append(answer(finish(), steps))
        llm, sandbox = create("standin-1", server.base_url), HostSandbox(bench.workspace, bench.store.blobs.put)
        log = await bench.log()
        session = Session(log, bench.store, bench.config(), CodeActAgent, llm, sandbox, bench.watched.append)
        state = await session.run("count")
        await session.close()
    assert state.agent_state == "finished"
    kinds = [kind for kind in bench.kinds() if kind in ("CompletionEvent", "CondensationEvent")]
    breaks = {kinds[:place].count("CompletionEvent") for place, kind in enumerate(kinds) if kind == "CondensationEvent"}
    assert 2 <= len(breaks) <= steps / 4
    sent = [[json.dumps(message) for message in request["messages"]] for request in server.requests]
    for number, (before, after) in enumerate(pairwise(sent), 1):
        assert (after[: len(before)] == before) == (number not in breaks)
    events = await log.read()
    outputs = [event.content for event in events if isinstance(event, CmdOutputObservation)]
    assert outputs == ["".join(f"{line}\n" for line in range(n, 1001)) for n in range(steps)], "the log keeps it all"
    again = State()
    for event in events:
        again.apply(event)
    assert again == state


steps = st.tuples(st.integers(1, 3), st.integers(0, 1_500), st.integers(0, 6_000), st.booleans())


@given(st.lists(steps, max_size=25), st.integers(2_000, 40_000), st.booleans())
def test_condensing_shrinks_and_keeps_the_task_and_whole_replies(
    sizes: list[tuple[int, int, int, bool]], window: int, overflow: bool
) -> None:
    talk = Conversation()
    for number, (calls, command, output, spoken) in enumerate(sizes):
        talk.step(*(f"{number} {'c' * command}" for _ in range(calls)), output="o" * output)
        if spoken:
            talk.say(f"wish {number}.")
    before, newest = estimate(talk.state.history), talk.state.history[-1]
    try:
        event = asyncio.run(Condenser(model("notes", window=window)).condense(talk.state, overflow=overflow))
    except CannotCondenseError:
        return
    if event is None:
        assert not overflow
        return
    everything, replies = text_of(talk.state.history), Counter(action.completion for action, _ in talk.state.history)
    talk.put(event)
    history = talk.state.history
    assert estimate(history) < before
    assert history[0][0].content == "Repair area()."
    assert history[-1][0] is newest[0]
    ids = [action.id for action, _ in history]
    assert ids == sorted(set(ids))
    assert all(f"wish {n}." in text_of(history) for n in range(25) if f"wish {n}." in everything)
    kept = Counter(action.completion for action, _ in history if action.completion is not None)
    assert all(replies[reply] == calls for reply, calls in kept.items())
    assert set(talk.state.completions) >= set(kept)


async def test_an_output_counts_as_long_as_a_small_window_shows_it() -> None:
    """The prompts for a small window have 4,000 characters of an output: three of them do not fill it."""
    talk = Conversation()
    for number in range(3):
        talk.step(f"cat big{number}", output="x" * 15_000)
    assert await Condenser(model(window=16_384)).condense(talk.state) is None
    for number in range(4):
        talk.step(f"cat more{number}", output="x" * 15_000)
    assert await Condenser(model("notes", window=16_384)).condense(talk.state) is not None

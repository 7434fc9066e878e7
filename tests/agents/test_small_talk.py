"""Small talk: one call answers it, whatever the workspace has."""

from __future__ import annotations

import pytest

from handiwork.agents.codeact.turn import is_small_talk
from handiwork.events.action import AgentFinishAction, MessageAction
from handiwork.events.observation import ErrorObservation
from handiwork.events.overview import WorkspaceOverviewAction, WorkspaceOverviewObservation
from tests.agents.small_model import RUN, Small, began, step
from tests.agents.states import reply, state_of, task

PATHS = ("Makefile", "shop/billing/rule01.py", "shop/orders.py", "tests/test_orders.py")
HELLO = "I greet.\n\n```finish\nHello! What shall I do?\n```"

TALK = (
    *("Say hello.", "hi", "Hello, who are you?", "What can you do?", "Thanks, that is great.", "ok thanks"),
    *("Good morning. How are you?", "It works now, thank you!", "Are you there?"),
)
OF_THE_FILES = (
    *("ok", "yes please", "the tests", "why?", "and the other one?", "Hello, fix the tests please", "hi, what is it?"),
    *("Write hello world", "Say hello in greet.sh.", "hello.py: what does it print?", "What is tested?", "Bitte!"),
    *("How do I run the tests?", "What is a rule?", "How are orders sorted?", "how can I call billing_3?"),
    *("What's the difference between main.py and app.py?", "Which Python version is installed?", "Explain the cache."),
    *("How do I undo a git commit?", "Explain what a decorator is in Python.", "difference of list and tuple"),
    *("How do I get a list of orders?", "Which port does the server use?", "Where is the timeout set?", "how to build"),
)


@pytest.mark.parametrize("message", [*TALK, *OF_THE_FILES])
def test_small_talk_is_told_by_its_words(message: str) -> None:
    state = state_of(*began(*PATHS, message=message, shown=False))
    assert is_small_talk(state) == (message in TALK)


async def test_a_greeting_is_answered_in_one_call_without_a_look_at_the_workspace() -> None:
    llm = Small(HELLO)
    assert isinstance(await step(llm, task("Say hello.")), AgentFinishAction)
    assert [f'"```{name}"' in llm.asked[0][0] for name in ("finish", "bash", "ask", "write")] == [
        *(True, False, False, False)
    ]


async def test_thanks_after_the_work_is_no_task() -> None:
    end = [reply("Done.\n\n```finish\nIt works.\n```"), AgentFinishAction(outputs={"message": "It works."})]
    thanks = MessageAction(content="thanks!", source="user")
    assert isinstance(await step(Small(HELLO), *began(*PATHS), *end, thanks), AgentFinishAction)


async def test_an_answer_to_a_question_of_the_agent_is_no_small_talk() -> None:
    asked = MessageAction(content="Shall the program say hello or bye?", wait_for_response=True)
    state = state_of(*began("a.py"), reply("..."), asked, MessageAction(content="hello", source="user"))
    assert not is_small_talk(state)


@pytest.mark.parametrize(("error", "is_made"), [("interrupted", True), ("crashed", True), ("sandbox_lost", False)])
async def test_a_look_at_the_workspace_that_was_interrupted_is_made_again(error: str, is_made: bool) -> None:
    cut = ErrorObservation(content="Not executed.", error_id=error)
    events = [task("Which port does a.py use?"), WorkspaceOverviewAction(budget=9), cut]
    assert isinstance(await step(Small(RUN), *events), WorkspaceOverviewAction) is is_made


async def test_after_a_greeting_the_overview_is_about_the_task_and_stands_before_it() -> None:
    end = [reply(HELLO), AgentFinishAction(outputs={"message": "Hello!"})]
    events = [task("hi"), *end, task("Which port does a.py use?")]
    look = await step(Small(), *events)
    assert isinstance(look, WorkspaceOverviewAction)
    assert "Which port does a.py use?" in look.text
    seen = WorkspaceOverviewObservation(content="Files: ...", paths=("a.py",), files=1, shown=("a.py",))
    llm = Small("change", RUN)
    await step(llm, *events, look, seen)
    assert llm.prompts[0].endswith("Files: ...\nWhich port does a.py use?")

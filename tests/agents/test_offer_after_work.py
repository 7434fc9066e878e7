"""What a guided model is offered after its work: neither what repeats it or the task, nor what denies it."""

from __future__ import annotations

from typing import Literal

import pytest

from handiwork.agents.base import MalformedReplyError
from handiwork.agents.codeact import CodeActAgent
from handiwork.agents.codeact.finish import NOT_DONE, UNCHANGED
from handiwork.agents.codeact.offer import COMMANDERS, next_offered, repeated
from handiwork.agents.codeact.toolbox import TOOLS
from handiwork.events.action import (
    AgentDelegateAction,
    AgentFinishAction,
    AgentThinkAction,
    CmdRunAction,
    FileWriteAction,
    MessageAction,
)
from handiwork.events.base import Event
from handiwork.events.observation import AgentDelegateObservation, ErrorObservation, FileWriteObservation
from handiwork.events.overview import WorkspaceOverviewAction, WorkspaceOverviewObservation
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.types import Capabilities
from tests.agents.small_model import END, RUN, Small, began, step
from tests.agents.states import file_read, ran, reply, state_of, task

TEXT = Capabilities(tools=False, schema=False, window=16_384)


@pytest.mark.parametrize("outcome", ["finished", "rejected"])
async def test_after_a_repair_the_model_is_told_to_finish_and_does_not_reject(
    outcome: Literal["finished", "rejected"],
) -> None:
    """Small models go on to commit, and reject the task if there is no repository."""
    state = state_of(
        task("The tests fail. Repair the code."),
        WorkspaceOverviewAction(budget=9),
        WorkspaceOverviewObservation(),
        AgentDelegateAction(agent="RepairAgent"),
        AgentDelegateObservation(agent="RepairAgent", outcome=outcome, content=f"RepairAgent {outcome}."),
    )
    offered = {tool.name for tool in next_offered(state, TOOLS)}
    assert ("reject" in offered) is (outcome == "rejected")
    llm = ScriptedLLM(["new", "```bash\nls\n```"], capabilities=TEXT)
    await CodeActAgent(llm).step(state)
    told = "RepairAgent finished.\nIf the task asks for nothing more, `finish` now."
    assert (told in llm.requests[1][-1].content[0].text) is (outcome == "finished")


def test_a_write_that_is_repeated_inside_a_block_of_bash_takes_commands_away_too() -> None:
    write = FileWriteAction(path="a.py", content="1\n")
    state = state_of(task("Make a.py."), reply("```write a.py\n1\n```"), write, FileWriteObservation(path="a.py"))
    assert repeated(state, [write], TOOLS, TOOLS) == {"write"}
    without = [tool for tool in TOOLS if tool.name != "write"]
    assert repeated(state, [write], TOOLS, without) == {"write", *COMMANDERS}


@pytest.mark.parametrize(
    ("question", "echoes"),
    [("Which lamps are on?", True), ("What lamps are on?", True), ("Which of them?", False), ("Is it on?", False)],
)
def test_a_question_of_the_user_is_not_asked_back(question: str, echoes: bool) -> None:
    state = state_of(task("Tell me: which lamps are on? Write it down."))
    ask = MessageAction(content=question, wait_for_response=True)
    assert ("ask" in repeated(state, [ask], TOOLS, TOOLS)) is echoes


def wrote(path: str, *, unchanged: bool = False) -> list[Event]:
    write = FileWriteAction(thought="I write.", path=path, content="1\n")
    observation = FileWriteObservation(path=path, unchanged=unchanged)
    return [reply(f"I write.\n\n```write {path}\n1\n```"), write, observation]


async def test_files_that_are_written_in_turn_with_the_same_texts_are_not_written_again() -> None:
    llm = Small("I write.\n\n```write a.py\n1\n```", END)
    assert isinstance(await step(llm, *began("a.py", "b.py"), *wrote("a.py"), *wrote("b.py")), AgentFinishAction)
    assert '"```write"' not in llm.asked[1][0]


async def test_a_write_that_changes_nothing_is_no_work() -> None:
    llm = Small(RUN, END)
    events = [*began("a.py"), reply(RUN), *ran("python3 a.py", "hello\n", 0), *wrote("a.py", unchanged=True)]
    assert isinstance(await step(llm, *events), AgentFinishAction)  # the command would tell the same again
    assert '"```reject"' in llm.asked[0][0]


async def test_lost_lines_are_told_again_where_another_write_loses_them_again() -> None:
    def lost(content: str, gone: str) -> list[Event]:
        write = FileWriteAction(path="names.py", content=content)
        return [reply("..."), write, FileWriteObservation(path="names.py", lines=9, deleted=2, deleted_text=gone)]

    first, last = "def first(name):\n    return name[0]\n", "def last(name):\n    return name[-1]\n"
    events: list[Event] = began("names.py", message="Add initials() to names.py.")
    for content, gone in ((first, last), (last, first), (first, last)):
        events += lost(content, gone)
        told = await step(Small("add", RUN), *events)
        assert isinstance(told, MessageAction)
        assert told.content.endswith(f"which are gone:\n```\n{gone}```")
        events.append(told)
    assert isinstance(await step(Small(RUN), *events, *lost(last, first)), CmdRunAction)


MESSAGES = pytest.mark.parametrize(
    ("message", "is_copy"), [("Make a.py work.", True), ("Make a.py work and commit it.", False)]
)


@MESSAGES
async def test_a_task_without_a_commit_does_not_end_as_the_example_does(message: str, is_copy: bool) -> None:
    copy = "It is committed, the notes are not.\n\n```finish\na.py is committed.\n```"
    llm = Small(copy, "It works now.\n\n```finish\na.py works.\n```", "change")
    end = await step(llm, *began("a.py", message=message), *wrote("a.py"))
    assert isinstance(end, AgentFinishAction)
    assert ("committed" in end.outputs["message"]) is not is_copy


@MESSAGES
async def test_the_commit_of_the_example_is_no_step_of_a_task_that_asks_for_none(message: str, is_copy: bool) -> None:
    llm = Small("I commit that file alone.\n\n```bash\ngit add a.py\ngit commit -m 'Let a.py work'\n```", RUN)
    action = await step(llm, *began("a.py", message=message), *wrote("a.py"))
    assert isinstance(action, CmdRunAction)
    assert ("commit" in action.command) is not is_copy


ANSWERED = [reply("...\n\n```finish\n3\n```"), AgentFinishAction(outputs={"message": "3"})]


@pytest.mark.parametrize(
    ("before", "message", "want", "told"),
    [
        (ANSWERED, "no, I meant the second", "", UNCHANGED),
        (ANSWERED, "Write the second function anew, please.", "new", NOT_DONE),
        (ANSWERED, "Please give me the number alone, without a sentence.", "answer", UNCHANGED),
        (ANSWERED, "Empty b.py.", "change", NOT_DONE),
        ([*wrote("a.py"), *ANSWERED], "the same for both", "", NOT_DONE),
    ],
)
async def test_what_follows_an_answer_may_be_a_question(
    before: list[Event], message: str, want: str, told: str
) -> None:
    events = [*began("a.py", "b.py", message="What does a.py return?"), *before, task(message)]
    end = await step(Small("change", END, want), *events)
    assert isinstance(end, MessageAction)
    assert end.content == told


async def test_a_follow_up_is_not_asked_for_the_way_to_its_answer() -> None:
    llm = Small("question", "I look.\n\n```bash\nwc -l b.py\n```")
    await step(llm, *began("a.py", "b.py", message="How long is a.py?"), *ANSWERED, task("and the other one?"))
    offers = [f'"```{name}' in llm.asked[0][0] for name in ("finish", "bash", "write")]
    assert offers == [True, True, False]


BOOKS = ("books.csv", "data/old.txt")


@pytest.mark.parametrize(
    ("message", "may_ask"),
    [
        ("Which book is the oldest? Write its title to oldest.txt.", True),
        ("How many are there by year? out/by-year.json", True),
        ("Which is the oldest of books.csv?", False),
        ("What does old.txt say, e.g. of ann@mail.py or of os.path, see http://a.example/x.html?", False),
    ],
)
async def test_what_names_a_file_that_is_not_there_may_ask_for_it(message: str, may_ask: bool) -> None:
    ways = () if may_ask else ('{"answer": "answer"}', '{"answer": "reading"}')
    llm = Small("question", *ways, "I look.\n\n```read b.txt\n```")
    await step(llm, *began(*BOOKS, message=message))
    assert ('"```write"' in llm.asked[-1][0]) is may_ask


@pytest.mark.parametrize(("message", "is_asked"), [("The oldest? Into oldest.txt.", True), ("The oldest?", False)])
async def test_an_end_without_a_file_that_the_message_names_is_questioned(message: str, is_asked: bool) -> None:
    end = "I know it.\n\n```finish\nIt is Emma.\n```"
    ways = () if is_asked else ('{"answer": "answer"}', '{"answer": "reading"}')
    action = await step(Small("question", *ways, end, "question"), *began(*BOOKS, message=message))
    assert isinstance(action, MessageAction if is_asked else AgentFinishAction)


WRITES = "I write it.\n\n```write out/oldest.txt\nEmma\n```"


@pytest.mark.parametrize(
    ("message", "looks"),
    [("Put the oldest into out/oldest.txt.", "ls out/oldest.txt"), ("Put the oldest into notes.txt.", "")],
)
async def test_the_end_of_a_task_that_names_a_file_looks_whether_it_is_there(message: str, looks: str) -> None:
    events = [*began(*BOOKS, message=message), *wrote("notes.txt")]
    end = await step(Small(END), *events)
    if not looks:
        assert isinstance(end, AgentFinishAction)
        return
    assert isinstance(end, CmdRunAction)
    assert end.command == looks
    absent = "ls: cannot access 'out/oldest.txt': No such file or directory\n"
    assert isinstance(await step(Small(WRITES), *events, reply(END), *ran(looks, absent, 2)), FileWriteAction)
    assert isinstance(await step(Small(), *events, reply(END), *ran(looks, "out/oldest.txt\n", 0)), AgentFinishAction)


def short_write(lines: int, deleted: int, gone: str) -> list[Event]:
    write = FileWriteAction(path="long.py", content="x = 1\n")
    return [reply("..."), write, FileWriteObservation(path="long.py", lines=lines, deleted=deleted, deleted_text=gone)]


async def test_a_file_too_long_to_write_again_is_brought_back_and_edited() -> None:
    events = [*began("long.py", message="Rename y in long.py."), *short_write(900, 899, "y = 2\n" * 100)]
    told = await step(Small("part"), *events)
    assert isinstance(told, MessageAction)
    assert "git checkout long.py" in told.content
    assert "y = 2" not in told.content
    llm = Small(RUN)
    await step(llm, *events, told)
    assert '"```write"' not in llm.asked[0][0]


async def test_a_second_short_text_has_lost_the_same_lines() -> None:
    events: list[Event] = [*began("long.py", message="Rename y in long.py."), *short_write(9, 8, "y = 2\n" * 8)]
    told = await step(Small("part"), *events)
    assert isinstance(told, MessageAction)
    again = await step(Small("part"), *events, told, *short_write(1, 1, "x = 0\n"))
    assert isinstance(again, MessageAction)
    assert again.content == told.content


async def test_a_check_that_lacks_a_module_does_not_say_that_the_task_is_not_done() -> None:
    absent = "E   ModuleNotFoundError: No module named '{}'"
    older = "E   ImportError: cannot import name 'quote' from '{}.urls' (/usr/lib/python3/site-packages/{}/urls.py)"
    for error, module, ends in ((absent, "astroid", True), (older, "werkzeug", True), (absent, "a", False)):
        events = began("a.py", "tests/test_a.py", message="Make a.py work, as `pytest -q` tells.")
        output = f"tests/conftest.py:1: in <module>\n    import {module}\n{error.format(module, module)}\n"
        events += [*wrote("a.py"), reply(END), *ran("pytest -q", output, 4)]
        end = await step(Small(END, "change"), *events)
        assert isinstance(end, AgentFinishAction) is ends


WRITE_LONG = "I write it.\n\n```write long.py\nx = 2\n```"


async def test_a_file_that_the_model_has_not_seen_is_not_replaced() -> None:
    events = began("long.py", "other.py", shown=False, message="Let x be 2 in long.py.")
    with pytest.raises(MalformedReplyError, match=r"long\.py has lines that you have not seen"):
        await step(Small(WRITE_LONG), *events)
    for seen in (file_read("long.py", "x = 1\n"), ran("cat long.py", "x = 1\n", 0)):
        write = await step(Small(WRITE_LONG), *events, reply("I look."), *seen)
        assert isinstance(write, FileWriteAction)
    new = await step(Small(WRITE_LONG.replace("long.py", "new.py")), *events)
    assert isinstance(new, FileWriteAction)


async def test_a_few_lines_do_not_replace_a_long_file_and_the_next_reply_cannot_write() -> None:
    events = began("long.py", "other.py", shown=False, message="Let x be 2 in long.py.")
    events += [reply("I look."), *file_read("long.py", "x = 1\n" * 200)]
    with pytest.raises(MalformedReplyError, match=r"has 200 lines, and `write` would replace all of them") as refused:
        await step(Small(WRITE_LONG), *events)
    llm = Small(RUN)
    told = ErrorObservation(content=str(refused.value), error_id="malformed")
    await step(llm, *events, reply(WRITE_LONG), told)
    assert '"```write"' not in llm.asked[0][0]
    assert '"```edit"' in llm.asked[0][0]
    again = await step(Small(WRITE_LONG), *events, reply(WRITE_LONG), AgentThinkAction(thought=""), told, reply("..."))
    assert isinstance(again, FileWriteAction)


async def test_the_prompt_of_a_larger_workspace_stays_as_it_is_after_a_cut_output() -> None:
    events = began("a.py", shown=False)
    llm = Small(RUN)
    await step(llm, *events)
    assert "```read_output" in llm.prompts[0]
    assert '"```read_output"' not in llm.asked[0][0]


async def test_the_kind_of_a_message_is_asked_for_once() -> None:
    agent = CodeActAgent(llm := Small("new", END))
    actions = await agent.step(state_of(*began("a.py")))
    assert isinstance(actions, list)
    assert [action.content for action in actions if isinstance(action, MessageAction)] == [NOT_DONE]
    assert len(llm.prompts) == 1  # beside the choice, which is bound to a schema

"""Which tools a guided model is offered: those with something to act on, and none that would only repeat."""

from __future__ import annotations

import pytest

from handiwork.agents.base import MalformedReplyError
from handiwork.agents.codeact import CodeActAgent
from handiwork.agents.codeact.finish import LOST, UNCHANGED
from handiwork.events.action import (
    AddTaskAction,
    AgentFinishAction,
    CmdRunAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    IPythonRunCellAction,
    MessageAction,
)
from handiwork.events.base import Event
from handiwork.events.observation import (
    CmdOutputObservation,
    ErrorObservation,
    FileWriteObservation,
    IPythonRunCellObservation,
    PlanObservation,
)
from handiwork.events.overview import LONGEST, WorkspaceOverviewAction, WorkspaceOverviewObservation
from tests.agents.small_model import END, RUN, Small, began, step
from tests.agents.states import reply, state_of, task

READ = "I look.\n\n```read a.py\n```"
COMPUTE = "I compute it.\n\n```ipython\nprint(2001 - 30)\n```"
EDIT = "I mend it.\n\n```edit a.py\n<<<<<<< SEARCH\n1\n=======\n2\n>>>>>>> REPLACE\n```"


def ran(exit_code: int = 0) -> list[Event]:
    output = CmdOutputObservation(command="python3 a.py", content="hello\n", exit_code=exit_code)
    return [reply(RUN), CmdRunAction(thought="I run it.", command="python3 a.py"), output]


def written() -> list[Event]:
    write = FileWriteAction(thought="I write.", path="a.py", content="1\n")
    return [reply("I write.\n\n```write a.py\n1\n```"), write, FileWriteObservation(path="a.py")]


async def test_a_repeated_command_is_asked_for_again_warmer_and_without_its_tool() -> None:
    llm = Small(RUN, END)
    assert isinstance(await step(llm, *began("a.py"), *written(), *ran()), AgentFinishAction)
    (first, usual), (second, warm) = llm.asked
    for name in ("bash", "plan_task"):
        assert f'"```{name}"' in first
        assert f'"```{name}"' not in second
    assert usual is None
    assert warm is not None


async def test_a_program_that_is_missing_is_not_run_again_in_any_way() -> None:
    run = CmdRunAction(command="pytest -q")
    missing = CmdOutputObservation(command="pytest -q", content="bash: pytest: command not found", exit_code=127)
    llm = Small("I try.\n\n```bash\npytest tests\n```", END)
    events = [*began("a.py"), reply("I test.\n\n```bash\npytest -q\n```"), run, missing, *written()]
    assert isinstance(await step(llm, *events), AgentFinishAction)
    assert [f'"```{name}"' in llm.asked[1][0] for name in ("bash", "ipython", "finish")] == [False, False, True]
    again = Small("I try.\n\n```bash\npytest tests\n```")
    assert isinstance(await step(again, *events, *ran()), CmdRunAction)  # the command may have installed it


async def test_the_path_of_the_workspaces_package_is_no_repetition_of_the_command_without_it() -> None:
    run = CmdRunAction(command="python3 -m todo")
    missing = CmdOutputObservation(command=run.command, content="python3: No module named todo", exit_code=1)
    events = [*began("src/todo/__main__.py"), reply("I run it.\n\n```bash\npython3 -m todo\n```"), run, missing]
    action = await step(Small("I try.\n\n```bash\nPYTHONPATH=src python3 -m todo\n```"), *events)
    assert isinstance(action, CmdRunAction)


async def test_a_missing_program_is_not_installed_without_network() -> None:
    run = CmdRunAction(command="pytest -q")
    missing = CmdOutputObservation(command="pytest -q", content="bash: pytest: command not found", exit_code=127)
    install = "I install it.\n\n```bash\npip install pytest\n```"
    events = [*began("a.py"), reply("I test.\n\n```bash\npytest -q\n```"), run, missing, *written()]
    llm = Small(install, END)
    assert isinstance(await step(llm, *events), AgentFinishAction)
    assert '"```bash"' not in llm.asked[1][0]
    assert isinstance(await step(Small(install), *events, *ran()), CmdRunAction)


@pytest.mark.parametrize(("text", "ends"), [(UNCHANGED, True), ("The last command failed.", False)])
async def test_after_a_challenge_only_a_message_that_may_be_a_question_is_answered_at_once(
    text: str, ends: bool
) -> None:
    llm = Small(RUN)
    end = reply("It is a.py.\n\n```finish\na.py\n```")
    await step(llm, *began("a.py"), end, MessageAction(content=text, source="environment"))
    assert ('"```finish"' in llm.asked[0][0]) is ends


async def test_a_turn_that_has_changed_a_file_is_not_rejected() -> None:
    llm, unchanged = Small(RUN), Small("change", RUN)
    await step(llm, *began("a.py"), *written())
    await step(unchanged, *began("a.py"))
    assert ['"```reject"' in model.asked[0][0] for model in (llm, unchanged)] == [False, True]


async def test_a_command_may_run_again_after_a_change() -> None:
    llm = Small(RUN)
    assert isinstance(await step(llm, *began("a.py"), *ran(1), *written()), CmdRunAction)


async def test_an_edit_that_failed_is_no_change() -> None:
    failed = [
        reply("I write.\n\n```write b/a.py\n1\n```"),
        FileWriteAction(thought="I write.", path="b/a.py", content="1\n"),
        ErrorObservation(content="b/a.py cannot be written", error_id="file"),
    ]
    llm = Small(RUN, END)
    assert isinstance(await step(llm, *began("a.py"), *written(), *ran(), *failed), AgentFinishAction)


async def test_a_file_that_the_overview_shows_is_not_read_again_until_something_changes() -> None:
    llm = Small("change", READ, RUN)
    assert isinstance(await step(llm, *began("a.py")), CmdRunAction)
    assert '"```read"' not in llm.asked[1][0]
    llm = Small(READ)
    assert isinstance(await step(llm, *began("a.py"), *written()), FileReadAction)


async def test_small_files_are_written_whole_and_large_ones_edited() -> None:
    small, large = Small("change", RUN), Small(RUN)
    await step(small, *began("a.py"))
    await step(large, *began("a.py", shown=False))
    assert ('"```edit"' in small.asked[0][0], "```edit PATH" in small.prompts[0]) == (False, False)
    assert ('"```edit"' in large.asked[0][0], "```edit PATH" in large.prompts[0]) == (True, True)


@pytest.mark.parametrize(("length", "is_edited"), [(LONGEST, False), (LONGEST + 1, True)])
async def test_a_long_file_that_the_agent_has_made_is_edited(length: int, is_edited: bool) -> None:
    write = FileWriteAction(path="a.py", content="#" * length)
    llm = Small(RUN)
    await step(llm, *began(), reply("I write.\n\n```write a.py\n...\n```"), write, FileWriteObservation(path="a.py"))
    assert ('"```edit"' in llm.asked[0][0]) is is_edited


@pytest.mark.parametrize("end", ["finish", "reject"])
async def test_the_answer_before_a_challenge_stands_if_the_next_one_only_repeats_the_challenge(end: str) -> None:
    answer, parrot = "It says so.\n\n```finish\nThe port is 8080.\n```", f"I end.\n\n```{end}\n{UNCHANGED}\n```"
    asked = MessageAction(content=UNCHANGED, source="environment")
    events = [*began("a.py", message="Which port does it use? " + "More of the log. " * 40), reply(answer), asked]
    first = await step(Small(parrot), *events)
    assert isinstance(first, AgentFinishAction)
    assert first.outputs["message"] == "The port is 8080."
    other = await step(Small("It is another.\n\n```finish\nThe port is 80.\n```"), *events)
    assert isinstance(other, AgentFinishAction)
    assert other.outputs["message"] == "The port is 80."


async def test_a_model_that_has_seen_some_of_the_files_looks_before_it_ends() -> None:
    unseen, seen = Small(RUN), Small("change", RUN)
    await step(unseen, *began("a.py", "b.py", shown=False))
    await step(seen, *began("a.py"))
    assert ['"```finish"' in llm.asked[0][0] for llm in (unseen, seen)] == [False, True]
    assert '"```read"' in unseen.asked[0][0]
    looked = Small(END)
    assert isinstance(await step(looked, *began("a.py", "b.py", shown=False), *ran()), AgentFinishAction)


@pytest.mark.parametrize(
    ("text", "way", "may_end"),
    [
        ("\n\nshop/tax.py:\n```\nRATE = 20\n```", "reading", True),
        ("\n\nshop/tax.py:\n```\nRATE = 20\n```", "counting", False),
        ("\n\nMakefile:\n```\ntest:\n```", "reading", False),
    ],
)
async def test_a_question_may_be_answered_from_the_file_that_it_is_about(text: str, way: str, may_end: bool) -> None:
    paths = ("Makefile", "shop/tax.py", *(f"shop/rule{number}.py" for number in range(99)))
    message, shown = "What is RATE in tax.py?", ("Makefile", "shop/tax.py") if "tax.py" in text else ("Makefile",)
    look = WorkspaceOverviewAction(budget=9, text=message)
    overview = WorkspaceOverviewObservation(content=f"Files: ...{text}", paths=paths, files=len(paths), shown=shown)
    llm = Small("question", "answer", way, RUN if way == "counting" else "I look.\n\n```read b.py\n```")
    await step(llm, task(message), look, overview)
    assert ('"```finish"' in llm.asked[0][0]) is may_end


async def test_an_agent_that_cannot_write_files_edits_small_ones() -> None:
    class EditingAgent(CodeActAgent):
        toolbox = tuple(tool for tool in CodeActAgent.toolbox if tool.name in ("bash", "edit", "finish"))

    llm = Small(EDIT)
    action = await EditingAgent(llm).step(state_of(*began("a.py")))
    assert isinstance(action, list)
    assert isinstance(action[0], FileEditAction)
    assert '"```edit"' in llm.asked[0][0]


async def test_tools_without_anything_to_act_on_are_not_offered() -> None:
    llm = Small("change", RUN)
    await step(llm, *began("a.py"))
    assert not [name for name in ("jobs", "read_output", "modify_task") if f'"```{name}"' in llm.asked[0][0]]
    llm = Small("change", RUN)
    await step(llm, *began("a.py"), AddTaskAction(parent="", goal="first"), PlanObservation())
    assert '"```modify_task"' in llm.asked[0][0]


async def test_the_task_is_the_last_that_a_model_reads_before_it_acts() -> None:
    llm = Small("change", RUN)
    await step(llm, *began("a.py"))
    assert llm.prompts[0].endswith("Files: ...\nMake a.py work.")


async def test_the_end_is_not_offered_right_after_it_was_challenged() -> None:
    challenge = MessageAction(content="The task is not done: ...", source="environment")
    llm = Small(RUN)
    await step(llm, *began("a.py"), reply(END), challenge)
    assert '"```finish"' not in llm.asked[0][0]
    assert '"```reject"' in llm.asked[0][0]


async def test_a_file_is_not_written_with_the_same_text_again() -> None:
    llm = Small("I write.\n\n```write a.py\n1\n```", END)
    assert isinstance(await step(llm, *began("a.py"), *written(), *ran()), AgentFinishAction)
    assert '"```write"' not in llm.asked[1][0]


async def test_code_is_searched_only_where_the_overview_does_not_show_all_of_it() -> None:
    for shown in (True, False):
        llm = Small(*["change"] * shown, RUN)
        await step(llm, *began("a.py", shown=shown))
        assert ('"```search_code' in llm.asked[0][0]) is not shown
        assert ("search_code" in llm.prompts[0]) is not shown


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (("answer", "reading"), [True, False, False]),
        (("answer", "counting"), [False, True, False]),
        (("answer", "running"), [True, True, False]),  # there are no tests to run
        (("new",), [True, True, True]),
        (('{"answer": "new"}',), [True, True, True]),
        (('{"answer": "answer"}', '{"answer": "reading"}'), [True, False, False]),
    ],
)
async def test_a_question_that_reading_answers_takes_no_command_and_others_take_one(
    answers: tuple[str, ...], expected: list[bool]
) -> None:
    llm = Small("question", *answers, "I look.\n\n```read b.py\n```")
    await step(llm, *began("a.py"))
    assert [f'"```{name}"' in llm.asked[0][0] for name in ("finish", "bash", "write")] == expected


@pytest.mark.parametrize(
    ("message", "answers", "expected"),
    [
        ("Who made the first clock?", ("question", "answer", "knowing"), ["finish", "bash", "ipython"]),
        ("Which year was 30 years before 2001?", ("question", "repair", "calculating"), ["ipython"]),
        ("Ann is 3, Bo 9. Who is older, and by how much?", ("change", "answer", "calculating"), ["ipython"]),
        ("Tell me which user I am.", ("question", "answer", "command"), ["bash", "ipython"]),
        ("Would you write a clock?", ("question", "new"), ["finish", "bash", "ipython", "write"]),
        ("Change the clock, would you?", ("change", "change"), ["finish", "bash", "ipython", "write"]),
        ("Write a clock.", ("new",), ["finish", "bash", "ipython", "write"]),
    ],
)
async def test_a_question_in_a_folder_without_files_makes_none(
    message: str, answers: tuple[str, ...], expected: list[str]
) -> None:
    llm = Small(*answers, COMPUTE)
    assert isinstance(await step(llm, *began(message=message)), IPythonRunCellAction)
    assert [name for name in ("finish", "bash", "ipython", "write") if f'"```{name}"' in llm.asked[0][0]] == expected


async def test_such_a_question_is_asked_without_the_empty_list_of_files_and_no_later_reply_makes_one() -> None:
    events, who = began(message="Which user am I?"), "I ask.\n\n```bash\nwhoami\n```"
    answer = CmdOutputObservation(command="whoami", content="agent\n", exit_code=0)
    llm = Small("question", "answer", "command", who, END)
    agent = CodeActAgent(llm)
    await agent.step(state_of(*events))
    await agent.step(state_of(*events, reply(who), CmdRunAction(command="whoami"), answer))
    assert ['"```write"' in grammar for grammar, _ in llm.asked] == [False, False]
    assert not any("Files: ..." in prompt for prompt in llm.prompts)


async def test_code_that_ran_in_python_does_not_run_in_bash_too() -> None:
    ran = IPythonRunCellAction(code="print(2001 - 30)")
    events = [
        *began(message="Which year?"),
        reply(COMPUTE),
        ran,
        IPythonRunCellObservation(code=ran.code, content="1971\n"),
    ]
    llm = Small(COMPUTE.replace("ipython", "bash"), END, "question")
    assert isinstance(await step(llm, *events), AgentFinishAction)
    assert ['"```bash"' in grammar for grammar, _ in llm.asked] == [True, False]


@pytest.mark.parametrize(
    ("command", "output", "told"),
    [
        ("years = 30\nprint(2001 - years)", "bash: years: command not found\n", True),
        ("import math\nmath.pi", "bash: line 1: import: command not found\n", True),
        ("print(2001 - 30)", "bash: syntax error near unexpected token `2001'\n", True),
        ("years=30; run", "bash: run: command not found\n", False),
        ("echo $(run", "bash: syntax error near unexpected token `('\n", False),
    ],
)
async def test_python_code_in_bash_comes_with_the_tool_for_it(command: str, output: str, told: bool) -> None:
    ran = CmdRunAction(command=command)
    failed = CmdOutputObservation(command=command, content=output, exit_code=127)
    llm = Small(RUN)
    await step(llm, *began(), reply(f"I compute it.\n\n```bash\n{command}\n```"), ran, failed)
    assert ("This is Python code, which `bash` does not run" in llm.prompts[0]) is told


async def test_a_command_that_illustrates_the_answer_to_a_question_does_not_run() -> None:
    llm = Small("question", "answer", "reading", "You can do that with:\n\n```bash\nrm old.txt\n```")
    with pytest.raises(MalformedReplyError, match="the user has only asked something"):
        await step(llm, *began("a.py"))


DART = "def best(values):\n    return max(values)\n"


@pytest.mark.parametrize(
    ("message", "aim", "is_lost"),
    [
        ("Add mean() to scores.py.", "add", True),
        ("Change scores.py: it should only have mean().", "part", False),
        ("Add mean() to scores.py, in place of best().", "", False),
    ],
)
async def test_a_write_that_loses_a_function_instead_of_adding_one_is_to_be_made_again(
    message: str, aim: str, is_lost: bool
) -> None:
    write = FileWriteAction(path="scores.py", content="def mean(values):\n    return sum(values) / len(values)\n")
    overwritten = FileWriteObservation(path="scores.py", lines=2, deleted=2, deleted_text=DART)
    events = [*began("scores.py", message=message), reply("```write scores.py\n...\n```"), write, overwritten]
    action = await step(Small(*[aim] * bool(aim), RUN), *events)
    assert isinstance(action, MessageAction if is_lost else CmdRunAction)


@pytest.mark.parametrize(("lines", "aim"), [(3, "part"), (3, "whole"), (2, "")])
async def test_a_write_that_loses_most_of_a_file_unasked_is_to_be_made_again(lines: int, aim: str) -> None:
    write = FileWriteAction(path="a.py", content="1\n")
    overwritten = FileWriteObservation(path="a.py", lines=lines, deleted_text="2\n3\n")
    events = [*began("a.py"), reply("```write a.py\n1\n```"), write, overwritten]
    llm = Small(*[aim] * bool(aim), RUN)
    action = await step(llm, *events)
    if aim == "part":
        assert isinstance(action, MessageAction)
        assert "The task is:\nMake a.py work.\n\nWrite the whole file again" in action.content
        assert action.content.endswith("these lines, which are gone:\n```\n2\n3\n```")
        assert isinstance(await step(Small(RUN), *events, action), CmdRunAction)
    else:
        assert isinstance(action, CmdRunAction)


@pytest.mark.parametrize(
    ("message", "undefined", "is_lost"),
    [
        ("Delete the unused function best.", (), False),
        ("Move def best to another file.", (), False),
        ("Correct the sum.", (), True),
        ("Let mean do what best does.", ("line 2: undefined name 'best'",), True),
    ],
)
async def test_a_short_write_may_lose_the_functions_that_the_task_names(
    message: str, undefined: tuple[str, ...], is_lost: bool
) -> None:
    body = "best(values)" if undefined else "sum(values) / len(values)"
    write = FileWriteAction(path="scores.py", content=f"def mean(values):\n    return {body}\n")
    overwritten = FileWriteObservation(path="scores.py", lines=9, deleted_text=DART, undefined_names=undefined)
    events = [*began("scores.py", message=message), reply("```write scores.py\n...\n```"), write, overwritten]
    assert isinstance(await step(Small("part", RUN), *events), MessageAction if is_lost else CmdRunAction)


@pytest.mark.parametrize("line", ["# best stays as it is", "print(best([1]))"])
async def test_a_short_write_that_only_mentions_a_function_loses_it(line: str) -> None:
    write = FileWriteAction(path="scores.py", content=f"def mean(values):\n    return sum(values)\n{line}\n")
    overwritten = FileWriteObservation(path="scores.py", lines=9, deleted_text=DART)
    events = [*began("scores.py", message="Correct the sum."), reply("```write scores.py\n...\n```")]
    assert isinstance(await step(Small("part", RUN), *events, write, overwritten), MessageAction)


async def test_a_write_that_is_asked_for_again_may_be_written_again() -> None:
    llm = Small("I write.\n\n```write a.py\n1\n```", "I write all of it.\n\n```write a.py\n1\n2\n3\n```")
    lost = MessageAction(content=f"{LOST}a.py, and these lines are gone: ...", source="environment")
    action = await step(llm, *began("a.py"), *written(), reply("..."), lost)
    assert isinstance(action, FileWriteAction)
    assert action.content == "1\n2\n3\n"
    assert '"```write"' in llm.asked[1][0]


@pytest.mark.parametrize(
    ("asked", "is_echo"),
    [("which books are\noverdue?", True), ("Which books of last year?", False), ("overdue?", False)],
)
async def test_a_question_that_the_user_has_asked_is_not_asked_back(asked: str, is_echo: bool) -> None:
    llm = Small("change", f"I ask.\n\n```ask\n{asked}\n```", RUN)
    action = await step(llm, *began("a.py", message="Which books are overdue? Write their titles to a.txt."))
    assert isinstance(action, CmdRunAction if is_echo else MessageAction)
    assert not is_echo or '"```ask"' not in llm.asked[1][0]


COPY = "I run it.\n\n```bash\nsh greet.sh Ann\n```"


async def test_a_reply_that_copies_the_example_is_asked_for_again_without_the_example() -> None:
    llm = Small(COPY, RUN)
    assert isinstance(await step(llm, *began("a.py"), *written()), CmdRunAction)
    assert llm.asked[0] == (llm.asked[1][0], None)
    assert ["greet.sh" in prompt for prompt in llm.prompts] == [True, False]
    repeats = Small(COPY, "I write.\n\n```write a.py\n1\n```", RUN)
    await step(repeats, *began("a.py"), *written())
    assert ["greet.sh" in prompt for prompt in repeats.prompts] == [True, False, False]
    with pytest.raises(MalformedReplyError, match="Go on with the user's task"):
        await step(Small(COPY, COPY, COPY), *began("a.py"), *written())


async def test_an_end_that_speaks_of_the_example_is_an_end() -> None:
    end = "Done.\n\n```finish\ngreet.sh greets.\n```"
    assert isinstance(await step(Small(end, END), *began("a.py"), *written()), AgentFinishAction)
    assert isinstance(await step(Small(end, end, end), *began("a.py"), *written()), AgentFinishAction)


async def test_a_task_may_have_a_file_of_the_same_name_as_one_of_the_example() -> None:
    greet = "I write.\n\n```write greet.sh\necho\n```"
    listed = CmdOutputObservation(command="ls", content="greet.sh\n", exit_code=0)
    ls = [reply("I look.\n\n```bash\nls\n```"), CmdRunAction(command="ls"), listed]
    assert isinstance(await step(Small("new", greet), *began("a.py", message="Write greet.sh.")), FileWriteAction)
    assert isinstance(await step(Small(greet), *began("a.py"), *ls), FileWriteAction)


async def test_a_program_may_mention_a_file_of_the_example() -> None:
    write = "I write.\n\n```write b.py\nprint(open('notes.txt').read())\n```"
    llm = Small(write)
    assert isinstance(await step(llm, *began("a.py"), *written()), FileWriteAction)


async def test_a_file_that_is_written_without_the_example_is_no_copy_and_may_be_run() -> None:
    greet = "I write.\n\n```write greet.sh\necho Hello\n```"
    write = await step(Small(*[greet] * 3), *began("a.py"), *written())
    assert isinstance(write, FileWriteAction)
    made = [reply(greet), write, FileWriteObservation(path="greet.sh", created=True)]
    assert isinstance(await step(Small(COPY), *began("a.py"), *made), CmdRunAction)

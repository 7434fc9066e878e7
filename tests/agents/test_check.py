"""The check of a task: told to the model, run after changes, and known as long as the overview is."""

from __future__ import annotations

import pytest

from handiwork.agents.codeact import CodeActAgent
from handiwork.agents.codeact.check import check_of
from handiwork.agents.state import State
from handiwork.events.action import AgentFinishAction, CmdRunAction, FileWriteAction
from handiwork.events.base import Event, Observation
from handiwork.events.observation import CmdOutputObservation, FileWriteObservation
from handiwork.events.overview import WorkspaceOverviewAction, WorkspaceOverviewObservation
from handiwork.events.record import CondensationEvent
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.types import Capabilities
from tests.agents.small_model import RUN, Small, step
from tests.agents.states import ran, reply, state_of, task

TEXT = Capabilities(tools=False, schema=False, window=16_384)
END = "```finish\ndone\n```"
WRITE = ""
"""A script begins at the reply that the conversation has reached: the write is the first."""
NOTES = "notes.txt:\n```\n" + "words\n" * 200 + "```"


def project(
    makefile: str,
    message: str = "Make it work.",
    programs: tuple[str, ...] = ("make", "sh"),
    paths: tuple[str, ...] = ("Makefile", "notes.txt"),
) -> State:
    """Return a session in which the model has written a file, in a sandbox with these programs."""
    content = f"Files:\nMakefile (20 bytes)\n\nMakefile:\n```\n{makefile}\n```\n\n{NOTES}"
    overview = WorkspaceOverviewObservation(
        content=content, paths=paths, files=len(paths), shown=("Makefile",), programs=programs
    )
    return state_of(
        task(message),
        WorkspaceOverviewAction(budget=9),
        overview,
        reply("```write a.py\n1\n```"),
        FileWriteAction(path="a.py", content="1\n"),
        FileWriteObservation(path="a.py"),
    )


@pytest.mark.parametrize(
    ("makefile", "told"), [("test:\n\ttrue", "\n\nThe tests are run with `make test`."), ("all:\n\ttrue", "")]
)
async def test_the_model_is_told_the_projects_check(makefile: str, told: str) -> None:
    llm = ScriptedLLM([WRITE, "```bash\nls\n```"], capabilities=TEXT)
    await CodeActAgent(llm).step(project(makefile))
    (overview,) = [part.text for message in llm.requests[0] for part in message.content if "Makefile" in part.text]
    assert overview.endswith(f"```{told}")


async def test_it_runs_before_the_end_also_after_older_outputs_were_left_out() -> None:
    state = project("test:\n\ttrue")
    collapse = CondensationEvent(first=1, last=state.last_id, how="collapse")
    state.apply(collapse.with_fields(id=state.last_id + 1))
    assert check_of(state) == "make test"
    actions = await CodeActAgent(ScriptedLLM([WRITE, END], capabilities=TEXT)).step(state)
    assert isinstance(actions, list)
    assert [action.command for action in actions if isinstance(action, CmdRunAction)] == ["make test"]


async def test_one_in_a_part_of_the_project_leaves_the_shell_where_it_is() -> None:
    state = project("test:\n\ttrue", "See that `cd web && make test` passes.")
    actions = await CodeActAgent(ScriptedLLM([WRITE, END], capabilities=TEXT)).step(state)
    assert isinstance(actions, list)
    (command,) = [action.command for action in actions if isinstance(action, CmdRunAction)]
    assert command == f"(cd {state.workspace} && cd web && make test\n)"


@pytest.mark.parametrize(("exit_code", "ends"), [(0, True), (None, False)])
async def test_the_task_does_not_end_by_a_check_that_still_runs(exit_code: int | None, ends: bool) -> None:
    state = project("test:\n\ttrue")
    output = CmdOutputObservation(command="make test", exit_code=exit_code, status="done" if ends else "running")
    finish, run = reply(END), CmdRunAction(command="make test", completion=state.last_id + 1)
    for event in (finish, run, output.with_fields(cause=state.last_id + 2)):
        state.apply(event.with_fields(id=state.last_id + 1))
    llm = ScriptedLLM([WRITE, END, "```bash\nmake wait\n```"], capabilities=TEXT)
    action = await CodeActAgent(llm).step(state)
    assert isinstance(action, AgentFinishAction) is ends
    assert len(llm.requests) == (not ends)


async def test_a_long_check_that_was_waited_for_is_not_run_again() -> None:
    state = project("test:\n\ttrue")
    for command, exit_code in (("make test", None), ("", 0)):
        output = CmdOutputObservation(command=command, exit_code=exit_code, status="running" if command else "done")
        state.apply(CmdRunAction(command=command).with_fields(id=state.last_id + 1))
        state.apply(output.with_fields(id=state.last_id + 1, cause=state.last_id))
    actions = await CodeActAgent(ScriptedLLM([WRITE, END], capabilities=TEXT)).step(state)
    assert isinstance(actions, list)
    assert [type(action) for action in actions] == [AgentFinishAction]


@pytest.mark.parametrize(
    ("message", "check"),
    [
        ("Run `make check`, please.", "make check"),
        ("It is used as `python3 solve.py FILE`.", "make test"),
        ("Say `hello`.", "make test"),
    ],
)
def test_the_one_that_the_user_names_comes_first_if_it_says_that_it_checks(message: str, check: str) -> None:
    assert check_of(project("test:\n\ttrue", message)) == check


async def test_one_whose_program_is_not_installed_is_none_and_the_model_is_told() -> None:
    state = project("test:\n\ttrue", programs=("sh",))
    assert check_of(state) == ""
    llm = ScriptedLLM([WRITE, "```bash\nls\n```"], capabilities=TEXT)
    await CodeActAgent(llm).step(state)
    assert "The tests cannot run here: make is not installed." in str(llm.requests[0])


@pytest.mark.parametrize(("program", "check"), [("pytest", "python3 -m pytest -q"), ("node", "")])
def test_pytest_is_a_program_too(program: str, check: str) -> None:
    overview = WorkspaceOverviewObservation(paths=("test_a.py",), files=1, programs=("python3", program))
    assert check_of(state_of(task("Make it work."), WorkspaceOverviewAction(budget=9), overview)) == check


@pytest.mark.parametrize(("text", "told"), [("", False), ("\n\ntest_a.py:\n```\ndef test_a(): ...\n```", True)])
async def test_without_pytest_tests_cannot_run_if_their_text_says_so(text: str, told: bool) -> None:
    overview = WorkspaceOverviewObservation(
        content=f"Files:\ntest_a.py{text}", paths=("test_a.py",), files=1, programs=("python3",)
    )
    state = state_of(task("Make it work."), WorkspaceOverviewAction(budget=9), overview)
    llm = ScriptedLLM(["```bash\nls\n```"], capabilities=TEXT)
    await CodeActAgent(llm).step(state)
    assert check_of(state) == ""
    assert ("The tests cannot run here: pytest is not installed." in str(llm.requests[0])) is told


@pytest.mark.parametrize(
    ("path", "created", "check"),
    [
        ("check_names.py", True, ""),
        ("check_names.py", False, "python3 check_names.py books.csv"),
        ("test_names.py", True, "python3 test_names.py books.csv"),
    ],
)
def test_a_program_that_the_agent_has_made_is_no_check_unless_it_is_a_test(
    path: str, created: bool, check: str
) -> None:
    state = state_of(
        task(f"Make {path}: `python3 {path} books.csv` tells which books have no author, and then fails."),
        reply(f"```write {path}\n1\n```"),
        FileWriteAction(path=path, content="1\n"),
        FileWriteObservation(path=path, created=created),
    )
    assert check_of(state) == check


async def test_the_task_ends_where_the_check_that_the_user_named_is_not_installed() -> None:
    state = project("all:\n\ttrue", "Write a.py. `pytest -q` must pass.")
    run, output = ran("pytest -q", "bash: pytest: command not found", 127)
    state.apply(run.with_fields(id=state.last_id + 1))
    state.apply(output.with_fields(id=state.last_id + 1, cause=state.last_id))
    actions = await CodeActAgent(ScriptedLLM([WRITE, END], capabilities=TEXT)).step(state)
    assert isinstance(actions, list)
    assert [type(action) for action in actions] == [AgentFinishAction]


@pytest.mark.parametrize(
    ("output", "exit_code", "told"),
    [
        ("bash: pytest: command not found", 127, True),
        ("/usr/bin/python3: No module named pytest", 1, True),
        ("bash: node_modules/.bin/jest: No such file or directory", 127, True),
        ("bash: run_tests.sh: No such file or directory", 127, False),
        ("ModuleNotFoundError: No module named 'shop'", 1, False),
    ],
)
async def test_without_network_a_missing_program_comes_with_the_advice_to_go_on_without_it(
    output: str, exit_code: int, told: bool
) -> None:
    state = project("all:\n\ttrue")
    run, failed = ran("pytest -q", output, exit_code)
    state.apply(run.with_fields(id=state.last_id + 1))
    state.apply(failed.with_fields(id=state.last_id + 1, cause=state.last_id))
    llm = ScriptedLLM([WRITE, END], capabilities=TEXT)
    await CodeActAgent(llm).step(state)
    assert ("It is not installed: go by the files" in llm.requests[0][-1].content[0].text) is told


async def test_a_text_instead_of_a_command_comes_with_the_advice_to_finish() -> None:
    state = project("all:\n\ttrue")
    run, failed = ran("shop.py: has the prices", "bash: shop.py:: command not found", 127)
    state.apply(run.with_fields(id=state.last_id + 1))
    state.apply(failed.with_fields(id=state.last_id + 1, cause=state.last_id))
    llm = ScriptedLLM([WRITE, END], capabilities=TEXT)
    await CodeActAgent(llm).step(state)
    (said,) = [part.text for part in llm.requests[0][-1].content if "command not found" in part.text]
    assert "These lines are no commands" in said
    assert "not installed" not in said


@pytest.mark.parametrize(
    ("cwd", "module", "told"),
    [
        ("/home/me/project", "shop", "shop is a module of the workspace: write PYTHONPATH=. before the command."),
        ("/home/me/project", "prices", "prices is a module of the workspace: write PYTHONPATH=shop before"),
        ("/home/me/project/shop", "shop.prices", "write PYTHONPATH=/home/me/project before"),
        ("/home/me/project", "requests", ""),
    ],
)
async def test_after_a_failed_import_the_model_is_told_where_the_module_is(cwd: str, module: str, told: str) -> None:
    state = project("all:\n\ttrue", paths=("Makefile", "notes.txt", "shop/prices.py", "shop/till.py"))
    output = f"Traceback (most recent call last):\nModuleNotFoundError: No module named '{module}'"
    run, failed = ran("python3 shop/till.py", output, 1)
    state.apply(run.with_fields(id=state.last_id + 1))
    state.apply(failed.with_fields(id=state.last_id + 1, cause=state.last_id, cwd=cwd))
    llm = ScriptedLLM([WRITE, END], capabilities=TEXT)
    await CodeActAgent(llm).step(state)
    (said,) = [part.text for part in llm.requests[0][-1].content if "ModuleNotFoundError" in part.text]
    assert told in said
    assert ("PYTHONPATH" in said) is bool(told)


async def test_the_workspaces_own_package_is_not_said_to_lack_installation() -> None:
    state = project("all:\n\ttrue", paths=("Makefile", "notes.txt", "src/todo/__init__.py", "src/todo/__main__.py"))
    run, failed = ran("python3 -m todo", "/usr/bin/python3: No module named todo", 1)
    state.apply(run.with_fields(id=state.last_id + 1))
    state.apply(failed.with_fields(id=state.last_id + 1, cause=state.last_id, cwd="/home/me/project"))
    llm = ScriptedLLM([WRITE, END], capabilities=TEXT)
    await CodeActAgent(llm).step(state)
    said = llm.requests[0][-1].content[0].text or ""
    assert "todo is a module of the workspace: write PYTHONPATH=src before the command." in said
    assert "not installed" not in said


async def test_no_path_helps_where_a_package_cannot_be_executed() -> None:
    state = project("all:\n\ttrue", paths=("Makefile", "notes.txt", "todo/__init__.py"))
    output = "/usr/bin/python3: No module named todo.__main__; 'todo' is a package and cannot be directly executed"
    run, failed = ran("python3 -m todo", output, 1)
    state.apply(run.with_fields(id=state.last_id + 1))
    state.apply(failed.with_fields(id=state.last_id + 1, cause=state.last_id, cwd="/home/me/project"))
    llm = ScriptedLLM([WRITE, END], capabilities=TEXT)
    await CodeActAgent(llm).step(state)
    said = llm.requests[0][-1].content[0].text or ""
    assert "cannot be directly executed" in said
    assert "PYTHONPATH" not in said


async def told_after(state: State, *events: Event) -> str:
    """The end of the model's prompt after these events of the session."""
    for event in events:
        cause = state.last_id if isinstance(event, Observation) else None
        state.apply(event.with_fields(id=state.last_id + 1, cause=cause))
    llm = ScriptedLLM([WRITE, END], capabilities=TEXT)
    await CodeActAgent(llm).step(state)
    return llm.requests[0][-1].content[-1].text or ""


SALES = "day,item,price\nmonday,apple,3\nmonday,pear,4\ntuesday,apple,3\nfriday,quince,7\n"


@pytest.mark.parametrize(
    ("path", "content", "is_told"),
    [
        ("monday.csv", "day,item,price\nmonday,apple,3\nmonday,pear,4\n", True),
        ("totals.json", '{"apple": 6, "pear": 4, "quince": 7, "days": 3}', True),
        ("settings.json", '{"name": "shop", "debug": false, "language": "en"}', False),
        ("sale.py", SALES, False),
    ],
)
async def test_data_that_come_from_another_file_should_be_computed(path: str, content: str, is_told: bool) -> None:
    overview = WorkspaceOverviewObservation(
        content=f"Files:\nsales.csv (5 lines)\n\nsales.csv:\n```\n{SALES}```",
        paths=("sales.csv",),
        files=1,
        shown=("sales.csv",),
    )
    events: list[Event] = [task("Make it from sales.csv."), WorkspaceOverviewAction(budget=9), overview, reply("So.")]
    llm = Small(RUN)
    await step(llm, *events, FileWriteAction(path=path, content=content), FileWriteObservation(path=path, created=True))
    assert (f"let a command make {path} from sales.csv" in llm.prompts[0]) is is_told


@pytest.mark.parametrize(
    ("command", "output", "exit_code", "told"),
    [
        (
            "git add a.py",
            "fatal: not a git repository (or any of the parent directories): .git",
            128,
            "go on without git",
        ),
        ("sh tidy.sh", "tidy.sh: 6: ./tidy.conf: KEEP: not found", 127, ""),
        (
            "python3 list.py in.csv",
            "FileNotFoundError: [Errno 2] No such file or directory: 'in.csv'",
            1,
            "no file in.csv.",
        ),
        ("python3 list.py in.csv", "FileNotFoundError: [Errno 2] No such file or directory: 'out/x'", 1, ""),
        ("gcc -o a a.c", "a.c:1:10: fatal error: foo.h: No such file or directory", 1, ""),
        ("node list.js in.json", "Error: ENOENT: no such file or directory, open 'in.json'", 1, "no file in.json."),
        ("cat in.csv", "cat: in.csv: No such file or directory", 1, "no file in.csv."),
        ("make", "fatal: not a git repository (or any of the parent directories): .git\nmake: *** Error 1", 2, ""),
        ("python3 a.py", "", 0, "It printed nothing."),
        ("python3 b.py", "", 0, ""),
    ],
)
async def test_the_model_is_told_what_an_outcome_means(command: str, output: str, exit_code: int, told: str) -> None:
    state = project("all:\n\ttrue")
    said = await told_after(state, *ran(command, output, exit_code))
    assert told in said
    facts = ("go on without git", "There is no file", "It printed nothing", "It is not installed")
    assert any(fact in said for fact in facts) is bool(told)


async def test_after_a_silent_run_of_a_module_a_command_that_prints_is_shown() -> None:
    state = project("all:\n\ttrue")
    write = FileWriteAction(path="shop/tax.py", content="def gross(net):\n    return net * 1.2\n")
    said = await told_after(state, write, FileWriteObservation(path="shop/tax.py"), *ran("python3 shop/tax.py", "", 0))
    assert "values of the task: python3 -c 'from shop.tax import *; print(gross(...))'" in said


async def test_a_silent_run_of_assertions_is_a_success() -> None:
    state = project("all:\n\ttrue")
    write = FileWriteAction(path="test_a.py", content="from a import one\n\nassert one() == 1\n")
    said = await told_after(state, write, FileWriteObservation(path="test_a.py"), *ran("python3 test_a.py", "", 0))
    assert "It printed nothing" not in said


async def test_the_task_may_end_after_a_commit_outside_of_a_repository() -> None:
    state = project("all:\n\ttrue", "Write a.py.")
    run, output = ran("git commit -m a", "fatal: not a git repository (or any of the parent directories): .git", 128)
    state.apply(run.with_fields(id=state.last_id + 1))
    state.apply(output.with_fields(id=state.last_id + 1, cause=state.last_id))
    actions = await CodeActAgent(ScriptedLLM([WRITE, END], capabilities=TEXT)).step(state)
    assert isinstance(actions, list)
    assert [type(action) for action in actions] == [AgentFinishAction]


async def test_a_model_that_is_not_guided_gets_no_advice() -> None:
    llm = ScriptedLLM(["Hm."])
    await CodeActAgent(llm).step(state_of(task(), *ran("pytest -q", "bash: pytest: command not found", 127)))
    assert "It is not installed" not in str(llm.requests[0])

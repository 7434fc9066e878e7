"""SwarmAgent in sessions: one operation in a step or a few, within the limits, resumed in the middle of its graph."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import handiwork
from handiwork.agents.base import Agent, Step
from handiwork.agents.registry import find
from handiwork.agents.state import State
from handiwork.agents.swarm import SwarmAgent, SwarmNotes
from handiwork.agents.swarm.graph import (
    DECISION,
    NodeExample,
    OperationName,
    Strategy,
    Swarm,
    SwarmNode,
    build,
    save,
)
from handiwork.agents.swarm.operations import LIST
from handiwork.events.action import (
    AgentDelegateAction,
    AgentFinishAction,
    AgentThinkAction,
    ChangeAgentStateAction,
    CmdRunAction,
    FileReadAction,
    IPythonRunCellAction,
)
from handiwork.events.base import Action, Event
from handiwork.events.observation import CmdOutputObservation, ErrorObservation
from handiwork.events.record import SettingsChanged
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.scripted.script import Reply
from handiwork.llm.types import Message
from handiwork.session.user_events import PLAN_ACCEPTED, accepted_plan
from tests.agents.states import check_golden, file_read, ran, shown, state_of, task
from tests.session.bench import Bench, calls, finish

pytestmark = pytest.mark.slow

Node = tuple[str, OperationName, Sequence[str]]


def chain(*nodes: Node, strategy: Strategy = "random_choice", **fields: Any) -> Swarm:
    """A graph of nodes, each with its operation and inputs; the last node alone reaches the decision."""
    links = [(source, name) for name, _, inputs in nodes for source in inputs]
    return Swarm(
        nodes=(
            *(SwarmNode(name=name, operation=operation, **fields) for name, operation, _ in nodes),
            SwarmNode(name=DECISION, operation=DECISION),
        ),
        links=(*links, (nodes[-1][0], DECISION)),
        strategy=strategy,
    )


def agent_of(swarm: Swarm, folder: Path) -> type[Agent]:
    """The agent as --agent finds it."""
    save(swarm, folder / "swarm.json")
    return find(str(folder / "swarm.json"))


def thoughts(state: State) -> list[str]:
    return [action.thought for action, _ in state.history if isinstance(action, AgentThinkAction)]


def prompt(messages: Sequence[Message]) -> str:
    return "\n".join(part.text or "" for part in messages[-1].content)


async def test_each_node_gets_its_inputs_and_the_decision_ends_the_task(bench: Bench, tmp_path: Path) -> None:
    agent = agent_of(build(["cot", "reflection"], "references"), tmp_path)
    replies = ["6 sevens", "42 so far", "It is\n42", "41", "No, it is\n42", "42"]
    session = await bench.session(replies, agent=agent)
    state = await session.run("What is 6 * 7?")
    assert (state.agent_state, state.outputs, state.iteration) == ("finished", {"message": "42"}, 6)
    assert thoughts(state) == [
        "cot 1/step 1: 6 sevens",
        "cot 1/step 2: 42 so far",
        "cot 1/answer: It is\n42",
        "reflection 2/answer: 41",
        "reflection 2/reflect: No, it is\n42",
    ]
    first, second, _, fourth, fifth, last = map(prompt, bench.llm.requests)
    assert first == fourth == "The task:\n\nWhat is 6 * 7?"
    assert "(cot 1/step 1):\n\n6 sevens\n" in second
    assert "(reflection 2/answer):\n\n41\n" in fifth
    assert "Answer 1:\n\nIt is\n42\n\nAnswer 2:\n\nNo, it is\n42\n" in last
    assert all(len(messages) == 2 for messages in bench.llm.requests)


async def test_many_equal_answers_are_no_repetition(bench: Bench, tmp_path: Path) -> None:
    session = await bench.session(["4"] * 9, agent=agent_of(build(["io"] * 9, "majority_vote"), tmp_path))
    state = await session.run("What is 2 + 2?")
    assert (state.agent_state, state.outputs) == ("finished", {"message": "4"})
    assert "LoopEvent" not in bench.kinds()


async def test_a_limit_pauses_it_and_another_process_resumes_in_the_middle_of_the_graph(
    bench: Bench, tmp_path: Path
) -> None:
    agent = agent_of(build(["io", "io", "io"], "majority_vote"), tmp_path)
    session = await bench.session(["first\n4", "second\n5", "never"], agent=agent, iterations=2)
    state = await session.run("What is 2 + 2?")
    assert (state.agent_state, state.change.reason if state.change else "") == ("paused", "limit")
    await session.close()
    save(build(["cot"], "references"), tmp_path / "swarm.json")  # the session goes on with the graph it began with
    resumed = await bench.session(["third\n5"], log=session.log, agent=find(str(tmp_path / "swarm.json")))
    state = await resumed.run()
    assert (state.agent_state, state.outputs) == ("finished", {"message": "second\n5"})
    assert thoughts(state) == ["io 1/answer: first\n4", "io 2/answer: second\n5", "io 3/answer: third\n5"]
    assert len(bench.llm.requests) == 1


async def test_it_resumes_in_the_middle_of_a_node(bench: Bench, tmp_path: Path) -> None:
    (bench.workspace / "a.txt").write_text("price: 12\n")
    agent = agent_of(chain(("t/query", "query", ()), ("t/files", "files", ("t/query",))), tmp_path)
    session = await bench.session(["What does it cost?", "a.txt", "never"], agent=agent, iterations=3)
    state = await session.run("What is the price?")
    assert [action.kind for action, _ in state.history if action.runnable] == ["CmdRunAction", "FileReadAction"]
    await session.close()
    resumed = await bench.session(["It costs 12."], log=session.log, agent=agent)
    state = await resumed.run()
    assert state.outputs == {"message": "It costs 12."}
    assert [action.kind for action, _ in state.history if action.runnable] == ["CmdRunAction", "FileReadAction"]
    assert "The file a.txt:\n\nprice: 12\n" in prompt(bench.llm.requests[0])


async def test_a_later_message_runs_the_graph_again_on_all_that_was_said(bench: Bench, tmp_path: Path) -> None:
    session = await bench.session(["5", "4"], agent=agent_of(build(["io"], "majority_vote"), tmp_path))
    assert (await session.run("What is 2 + 2?")).outputs == {"message": "5"}
    assert (await session.run("That is wrong.")).outputs == {"message": "4"}
    assert prompt(bench.llm.requests[1]).endswith("What is 2 + 2?\n\nYou answered:\n\n5\n\nThat is wrong.")


async def test_a_plan_that_is_accepted_is_told_to_those_that_carry_it_out(bench: Bench, tmp_path: Path) -> None:
    agent = agent_of(build(["io"], "majority_vote"), tmp_path)
    session = await bench.session(["1. Add them.", "4"], agent=agent)
    await session.log.append(SettingsChanged(plan_mode=True, source="user"))
    state = await session.run("What is 2 + 2?")
    assert state.agent_state == "awaiting_user_input"
    await session.log.append(*accepted_plan(state))
    assert (await session.run()).outputs == {"message": "4"}
    assert prompt(bench.llm.requests[1]).endswith(f"You answered:\n\n1. Add them.\n\n{PLAN_ACCEPTED}")


async def test_files_are_chosen_read_and_analysed(bench: Bench, tmp_path: Path) -> None:
    for name, text in {"a.txt": "price: 12\n", "b.txt": "no\n", "c d.md": "x\n"}.items():
        (bench.workspace / name).write_text(text)
    agent = agent_of(chain(("t/query", "query", ()), ("t/files", "files", ("t/query",))), tmp_path)
    replies = ["What does it cost?", "1. ./a.txt: the price\n- 'c d.md'\n/etc/passwd\na.txt", "It costs 12."]
    state = await (await bench.session(replies, agent=agent)).run("What is the price?")
    assert state.outputs == {"message": "It costs 12."}
    actions = [action for action, _ in state.history if action.runnable]
    assert [action.command for action in actions if isinstance(action, CmdRunAction)] == [LIST]
    assert [action.path for action in actions if isinstance(action, FileReadAction)] == ["a.txt", "c d.md"]
    asked = prompt(bench.llm.requests[-1])
    assert "The file a.txt:\n\nprice: 12\n" in asked
    check_golden("swarm_files", "\n".join(shown(messages) for messages in bench.llm.requests[:2]))


async def test_files_that_git_ignores_do_not_crowd_out_the_others(bench: Bench, tmp_path: Path) -> None:
    for name in ("src/main.py", *(f"build/{number}.o" for number in range(600))):
        (bench.workspace / name).parent.mkdir(exist_ok=True)
        (bench.workspace / name).touch()
    (bench.workspace / ".gitignore").write_text("build/\n")
    subprocess.run(["git", "init", "--quiet", bench.workspace], check=True)
    session = await bench.session(["none", "?"], agent=agent_of(chain(("t/files", "files", ())), tmp_path))
    await session.run("What is the price?")
    listed = prompt(bench.llm.requests[0])
    assert "src/main.py" in listed
    assert "build/" not in listed


async def test_nothing_is_asked_about_files_that_are_not_there(bench: Bench, tmp_path: Path) -> None:
    session = await bench.session([], agent=agent_of(chain(("t/files", "files", ())), tmp_path))
    assert (await session.run("What is the price?")).outputs == {"message": "Nothing: no files are listed."}


ADD = "def add(a, b):\n    return a {} b\n"


@pytest.mark.parametrize(
    ("operators", "answer", "calls_"),
    [
        pytest.param("+", "+", 2, id="right"),
        pytest.param("-+", "+", 3, id="corrected"),
        pytest.param("--", "-", 3, id="wrong"),
    ],
)
async def test_code_runs_on_the_tests_and_is_corrected_once(
    operators: str, answer: str, calls_: int, bench: Bench, tmp_path: Path
) -> None:
    graph = chain(("c/tests", "tests", ()), ("c/code", "code", ("c/tests",)))
    versions = [f"Like this:\n```python\n{ADD.format(one)}```" for one in operators]
    session = await bench.session(
        ["```python\nassert add(2, 3) == 5, 'it\\'s wrong'\n```", *versions], agent=agent_of(graph, tmp_path)
    )
    state = await session.run("Write add(a, b).")
    assert state.outputs == {"message": f"Like this:\n```python\n{ADD.format(answer)}```"}
    assert len(bench.llm.requests) == calls_
    if calls_ == 3:
        asked = prompt(bench.llm.requests[-1])
        assert "AssertionError: it's wrong" in asked
        assert "return a - b" in asked


async def test_a_test_that_the_user_interrupts_runs_again_after_it(bench: Bench, tmp_path: Path) -> None:
    graph = chain(("c/tests", "tests", ()), ("c/code", "code", ("c/tests",)))
    once = "import os, time\nif not os.path.exists('seen'):\n    os.mkdir('seen')\n    time.sleep(60)\n"
    replies = [f"```python\n{once}assert add(2, 3) == 5\n```", f"```python\n{ADD.format('+')}```"]
    log = await bench.log()
    session = await bench.session(replies, log, agent_of(graph, tmp_path))
    running = asyncio.create_task(session.run("Write add(a, b)."))
    async with asyncio.timeout(20):
        while not (bench.workspace / "seen").exists():
            await asyncio.sleep(0.01)
    await log.append(ChangeAgentStateAction(agent_state="paused", source="user"))
    assert (await running).agent_state == "paused"
    assert (await session.run()).outputs == {"message": replies[1]}
    assert len(bench.llm.requests) == 2


async def test_a_file_that_a_crash_kept_from_being_read_is_read_again() -> None:
    graph = chain(("t/files", "files", ())).most_probable()
    cut = [FileReadAction(path="b.txt"), ErrorObservation(content="The platform stopped.", error_id="crashed")]
    events = [task("What is the price?"), *ran(LIST, "a.txt\nb.txt\n", 0), *file_read("a.txt", "1\n"), *cut]

    async def step(*more: Event) -> tuple[Step, ScriptedLLM]:
        llm, state = ScriptedLLM(["It costs 12."]), state_of(*events, *more)
        state.data = SwarmNotes(graph=graph, message=2, node="t/files", began=2)
        return await SwarmAgent(llm).step(state), llm

    again, _ = await step()
    assert not isinstance(again, Action)
    assert [action.path for action in again if isinstance(action, FileReadAction)] == ["b.txt"]
    _, llm = await step(*file_read("b.txt", "12\n"))
    assert "The file a.txt:\n\n1\n\n\nThe file b.txt:\n\n12\n" in prompt(llm.requests[0])


async def test_commands_of_a_devcontainer_at_a_resume_are_no_results_of_a_node(bench: Bench, tmp_path: Path) -> None:
    agent = agent_of(chain(("c/tests", "tests", ()), ("c/code", "code", ("c/tests",))), tmp_path)
    code = f"```python\n{ADD.format('+')}```"
    session = await bench.session(["```python\nassert add(2, 3) == 5\n```", code], agent=agent, iterations=2)
    assert (await session.run("Write add(a, b).")).agent_state == "paused"
    await session.close()
    async with session.log.lease():
        (export,) = await session.log.append(CmdRunAction(command="export DEBUG=1", source="environment"))
        await session.log.append(CmdOutputObservation(command="export DEBUG=1", exit_code=0, cause=export.id))
    state = await (await bench.session([], log=session.log, agent=agent)).run()
    assert state.outputs == {"message": code}


async def test_the_web_is_browsings_and_costs_nothing_without_a_network(bench: Bench, tmp_path: Path) -> None:
    session = await bench.session([], agent=agent_of(chain(("w/web", "web", ())), tmp_path))
    state = await session.run("What is the newest release?")
    assert str(state.outputs["message"]).startswith("Nothing: the sandbox reaches no host")
    assert not any(isinstance(action, AgentDelegateAction) for action, _ in state.history)


async def test_a_node_hands_its_task_to_an_agent_of_the_hub(bench: Bench, tmp_path: Path) -> None:
    swarm = build(["MathAgent"], "random_choice")
    session = await bench.session([calls(("finish", {"answer": "42"}))], agent=agent_of(swarm, tmp_path))
    state = await session.run("6 * 7")
    assert state.outputs == {"message": "answer: 42"}
    (delegated,) = [action for action, _ in state.history if isinstance(action, AgentDelegateAction)]
    assert (delegated.agent, delegated.inputs) == ("MathAgent", {"task": "The task:\n\n6 * 7"})
    failed = await bench.session([calls(("reject", {"reason": "too hard"})), finish()], agent=agent_of(swarm, tmp_path))
    assert "too hard" in str((await failed.run("6 * 7")).outputs["message"])


async def test_the_default_swarm_changes_files_and_ends_with_the_decision(bench: Bench) -> None:
    (bench.workspace / "price.txt").write_text("A chair costs 12.\n")
    edit = calls(("edit", {"path": "price.txt", "old": "12", "new": "24"}))
    thoughts_ = ["Twice 12", "Twice", "24", "It is\n24", "What does a chair cost?", "none", "Nothing to add"]
    session = await bench.session([*thoughts_, edit, finish("It costs 24."), "The price is 24 now."], agent=SwarmAgent)
    state = await session.run("Double the price.")
    assert (state.agent_state, state.outputs) == ("finished", {"message": "The price is 24 now."})
    assert (bench.workspace / "price.txt").read_text() == "A chair costs 24.\n"
    assert thoughts(state)[-1] == "CodeActAgent 4/work: It costs 24."
    told = "Answer 4, by CodeActAgent, which worked on the task with its own tools:\n\nIt costs 24."
    assert told in prompt(bench.llm.requests[-1])


async def test_a_delegation_gives_the_graph_as_an_input(bench: Bench) -> None:
    graph = chain(
        ("a/answer", "direct", ()), instruction="Say it in French.", examples=(NodeExample(task="One", output="Un"),)
    )

    class Boss(Agent):
        async def step(self, state: State) -> Any:
            if len(state.history) == 1:
                inputs = {"task": "Two", "graph": graph.model_dump(mode="json")}
                wrong = {"task": "Two", "graph": {"nodes": []}}
                return [AgentDelegateAction(agent="SwarmAgent", inputs=one) for one in (wrong, inputs)]
            return AgentFinishAction(outputs={"said": [o.text for _, o in state.history if o is not None]})

    state = await (await bench.session(["Deux"], agent=Boss)).run("Delegate.")
    wrong, right = state.outputs["said"]  # type: ignore[misc, str-unpack]
    assert "do not fit SwarmInputs: graph: Value error, a swarm has one node of the operation 'decision'" in str(wrong)
    assert "Deux" in str(right)
    system, user = bench.llm.requests[0]
    assert system.content[0].text == "Say it in French."
    assert prompt([user]) == "An example of a task:\n\nOne\n\nWhat you replied:\n\nUn\n\nThe task:\n\nTwo"


@pytest.mark.usefixtures("new_user")
def test_a_whole_swarm_in_a_real_sandbox(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "price.txt").write_text("A chair costs 12 crowns.\n")
    (project / "bill.pdf").write_bytes(b"no PDF")
    swarm = build(["io", "tools", "code", "CoderAgent"], "select_best")
    save(swarm, tmp_path / "swarm.json")
    edit = {"path": "price.txt", "old": "12", "new": "24"}
    model = handiwork.ScriptedLLM(
        [
            "I guess\n20",
            *("What does a chair cost?", "price.txt\nbill.pdf", "A chair costs 12.", "Two cost\n24"),
            *("```python\nassert cost(2) == 24\n```", "```python\ndef cost(n):\n    return 12 * n\n```"),
            *(calls(("edit", edit)), calls(("finish", {"message": "price.txt has the price of two."}))),
            "4",
        ]
    )
    result = handiwork.run("Write the price of two chairs.", workspace=project, agent=str(tmp_path / "swarm.json"),
                           model=model)  # fmt: skip
    assert (result.outcome, result.state.outputs) == ("finished", {"message": "price.txt has the price of two."})
    assert "+A chair costs 24 crowns." in result.diff
    (cell,) = [a.code for a, _ in result.state.history if isinstance(a, IPythonRunCellAction)]
    assert cell == "parse_pdf('bill.pdf')"
    assert "The file price.txt:\n\nA chair costs 12 crowns." in prompt(model.requests[3])
    assert "parse_pdf('bill.pdf'):\n\nERROR:" in prompt(model.requests[3])
    assert [text.partition(":")[0] for text in thoughts(result.state)] == swarm.most_probable().order()[:-1]


async def test_a_killed_process_leaves_a_session_that_goes_on_in_the_middle_of_the_graph(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    save(build(["io", "cot", "io"], "majority_vote"), tmp_path / "swarm.json")
    replies = [Reply(content="I add.\n4", delay=0.3)] * 5
    (tmp_path / "script.jsonl").write_text("".join(f"{reply.model_dump_json()}\n" for reply in replies))
    environment = {**os.environ, "HANDIWORK_DATA": str(tmp_path / "data"), "XDG_CONFIG_HOME": str(tmp_path)}

    def start(*arguments: str) -> subprocess.Popen[str]:
        command = [str(Path(sys.executable).with_name("handiwork")), *arguments, "--json"]
        return subprocess.Popen(command, env=environment, cwd=tmp_path / "project", stdout=subprocess.PIPE, text=True)

    model = f"scripted:{tmp_path / 'script.jsonl'}"
    process = start("run", "2 + 2", "--agent", str(tmp_path / "swarm.json"), "--model", model)
    assert process.stdout is not None
    seen: list[str] = []
    while seen.count("AgentThinkAction") < 2:
        seen.append(json.loads(await asyncio.to_thread(process.stdout.readline))["type"])
    process.send_signal(signal.SIGKILL)
    process.communicate()
    output, _ = await asyncio.to_thread(start("resume").communicate)
    events = [json.loads(line) for line in output.splitlines()]
    assert events[-1]["type"] == "AgentFinishAction"
    shown_ = await asyncio.to_thread(start("show").communicate)
    names = [e["thought"].partition(":")[0] for e in map(json.loads, shown_[0].splitlines())
             if e["type"] == "AgentThinkAction"]  # fmt: skip
    assert names == ["io 1/answer", "cot 2/step 1", "cot 2/step 2", "cot 2/answer", "io 3/answer"]

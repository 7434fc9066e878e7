"""AgentBench OS: machines that are made, changed and checked in real sandboxes.

Most tasks here are written for the test, in upstream's form; of the real ones test-slow runs some, test-benchmarks all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.evals.benchmark import DataError, Instance, UnfitError
from handiwork.evals.benchmarks.agentbench.benchmark import FILES, ROUNDS, AgentBenchOS
from handiwork.evals.benchmarks.agentbench.scripts import COMPARISONS, run, task_of
from handiwork.evals.scoring.data import get
from handiwork.events.action import AgentFinishAction, CmdRunAction, MessageAction
from handiwork.events.observation import AgentStateChangedObservation
from handiwork.sandbox import create as sandboxes
from handiwork.sandbox.base import Sandbox
from handiwork.workspace.layers import SandboxPaths
from tests.agents.states import state_of
from tests.evals.rollouts import instances, no_blobs, prepared, rollout, sample, serving, some_or_all

pytestmark = pytest.mark.slow

AGENTBENCH = AgentBenchOS()
INTEGERS = [None, {"language": "python", "file": "check/integer-match.py"}]

COUNT = {
    "description": "How many files are there in box?",
    "create": {"local": "default", "init": {"code": "mkdir box && touch box/{1,2,3}"}},
    "evaluation": {"check": INTEGERS, "example": {"code": "ls box | wc -l"}},
}
TOOL = {
    "description": "Add ~/tools, with the program greet, to PATH for good, and move the file list here.",
    "create": {
        "init": [
            "mkdir -p ~/tools && printf '#!/bin/sh\\necho hello' > ~/tools/greet && chmod +x ~/tools/greet",
            "touch ~/tools/list && echo > ~/.bashrc",
        ]
    },
    "evaluation": {
        "check": ["source ~/.bashrc && [ $(greet) = hello ]", {"code": "test -e list && ! test -e ~/tools/list"}],
        "example": "echo 'export PATH=$PATH:~/tools' > ~/.bashrc; mv ~/tools/list .",
    },
}
VARIABLE = {"description": "What is $var?", "start": "var=7", "evaluation": {"match": "7"}}
SYSTEM = {
    "description": "How many files are there in /usr?",
    "create": {"init": "touch /usr/one; touch here"},
    "evaluation": {"check": INTEGERS, "example": "ls /usr | wc -l"},
}
WRITER = {"description": "Which file grows?", "start": "(touch /usr/log) &", "evaluation": {"match": "log"}}
UNSOLVABLE = {**COUNT, "evaluation": {"check": {"code": "test -e /usr/done"}, "example": "touch /usr/done"}}
LOST = {**COUNT, "create": {"init": {"file": "init/words.sh"}}}


def loaded(place: Path, *records: Mapping[str, Any]) -> list[Instance]:
    """Tasks as they are read from a data folder."""
    (place / "data/4").mkdir(parents=True, exist_ok=True)
    (place / "data/4/N4.json").write_text(json.dumps(records))
    return AGENTBENCH.load(place, "std")


async def scored(instance: Instance, answer: str, sandbox: Sandbox | None = None) -> float:
    return (await AGENTBENCH.score(rollout(instance, answer, sandbox))).value


def from_address(address: str) -> AgentBenchOS:
    class Elsewhere(AgentBenchOS):
        upstream = address

    return Elsewhere()


async def do(sandbox: Sandbox, command: str) -> None:
    await sandbox.execute(CmdRunAction(command=command, timeout=30))


async def test_an_answer_is_compared_with_what_the_example_finds_on_the_same_machine(tmp_path: Path) -> None:
    (instance,) = loaded(tmp_path, COUNT)
    async with prepared(AGENTBENCH, instance, tmp_path) as sandbox:
        assert await scored(instance, "I counted them.\n<answer> 3 </answer>", sandbox) == 1
        for wrong in ("4", "", "<answer></answer>", "three", "3 files"):
            assert await scored(instance, wrong, sandbox) == 0, wrong
        await do(sandbox, "touch box/4")
        assert await scored(instance, "4", sandbox) == 1


async def test_what_a_task_asks_to_change_is_checked_on_the_machine_whatever_is_said(tmp_path: Path) -> None:
    (instance,) = loaded(tmp_path, TOOL)
    async with prepared(AGENTBENCH, instance, tmp_path) as sandbox:
        assert await scored(instance, "Done.", sandbox) == 0
        await do(sandbox, "export PATH=$PATH:~/tools; mv ~/tools/list .")
        assert await scored(instance, "Done.", sandbox) == 0, "a variable of the agent's shell is not for good"
        await do(sandbox, "echo 'export PATH=$PATH:~/tools' >> ~/.bashrc; cd /; bash() { true; }")
        assert await scored(instance, "", sandbox) == 1


async def test_a_program_that_the_agent_left_running_does_not_keep_it_from_being_checked(tmp_path: Path) -> None:
    (instance,) = loaded(tmp_path, COUNT)
    async with prepared(AGENTBENCH, instance, tmp_path) as sandbox:
        await do(sandbox, "cat")
        assert await scored(instance, "3", sandbox) == 1


async def test_programs_that_end_in_the_agents_shell_meanwhile_do_not_spoil_the_reference(tmp_path: Path) -> None:
    (instance,) = loaded(tmp_path, {**COUNT, "evaluation": {"check": INTEGERS, "example": "sleep 0.4; ls box | wc -l"}})
    async with prepared(AGENTBENCH, instance, tmp_path) as sandbox:
        await do(sandbox, "(sleep 0.2; echo the end) &")
        assert await scored(instance, "3", sandbox) == 1


async def test_a_reference_is_what_the_example_prints_without_a_terminal(tmp_path: Path) -> None:
    lines = [None, {"language": "python", "file": "check/string-match.py"}]
    (instance,) = loaded(tmp_path, {**COUNT, "evaluation": {"check": lines, "example": "ls box; (sleep 50) &"}})
    async with prepared(AGENTBENCH, instance, tmp_path) as sandbox:
        assert await scored(instance, "1\n2\n3", sandbox) == 1
        await do(sandbox, "PATH=/nowhere")
        assert await scored(instance, "1\n2\n3", sandbox) == 1
        assert await scored(instance, "1  2  3", sandbox) == 0


async def test_a_check_sees_no_process_but_its_script_and_the_agents(tmp_path: Path) -> None:
    lines = [None, {"language": "python", "file": "check/string-match.py"}]
    (instance,) = loaded(tmp_path, {**COUNT, "evaluation": {"check": lines, "example": "ps -eo comm="}})
    async with prepared(AGENTBENCH, instance, tmp_path) as sandbox:
        await do(sandbox, "ps -eo comm= > seen")
        assert await scored(instance, (Path(sandbox.workspace) / "seen").read_text(), sandbox) == 1


async def test_what_starts_a_task_is_typed_into_the_agents_shell(tmp_path: Path) -> None:
    (instance,) = loaded(tmp_path, VARIABLE)
    async with prepared(AGENTBENCH, instance, tmp_path) as sandbox:
        await do(sandbox, "echo $var > seen")
        assert (Path(sandbox.workspace) / "seen").read_text() == "7\n"
    for answer, score in {"7": 1, " <answer>7</answer>\n": 1, "8": 0, "": 0, "It is 7": 0}.items():
        assert await scored(instance, answer) == score, answer


async def test_a_regular_expression_is_searched_for(tmp_path: Path) -> None:
    (instance,) = loaded(tmp_path, {**VARIABLE, "evaluation": {"match": {"regex": "^7|seven$"}}})
    assert [await scored(instance, answer) for answer in ("It is seven", "seven it is", "")] == [1, 0, 0]


async def test_what_was_done_counts_only_if_the_agent_says_so_in_its_rounds(tmp_path: Path) -> None:
    (instance,) = loaded(tmp_path, VARIABLE)
    assert AGENTBENCH.limits.iterations == ROUNDS
    said = MessageAction(content="7", source="agent")
    paused = AgentStateChangedObservation(agent_state="paused", reason="limit")
    at_the_limit = state_of(MessageAction(content="Go.", source="user"), said, paused)
    asking = state_of(MessageAction(content="Go.", source="user"), said.model_copy(update={"wait_for_response": True}))
    for state, score in ((at_the_limit, 0), (asking, 1)):
        assert (await AGENTBENCH.score(replace(rollout(instance), state=state))).value == score


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (SYSTEM, "the script that makes it failed .*Read-only file system"),
        (WRITER, "what starts the task failed .*Read-only file system"),
        (UNSOLVABLE, "the example that solves it failed .*Read-only file system"),
    ],
)
async def test_a_task_whose_machine_cannot_be_had_here_is_not_put_to_an_agent(
    record: Mapping[str, Any], reason: str, tmp_path: Path
) -> None:
    (instance,) = loaded(tmp_path, record)
    assert not AGENTBENCH.skipped(instance)
    with pytest.raises(UnfitError, match=reason):
        async with prepared(AGENTBENCH, instance, tmp_path):
            pass


async def test_without_a_sandbox_nothing_is_run(tmp_path: Path) -> None:
    (instance,) = loaded(tmp_path, {**COUNT, "create": {"init": f"touch {tmp_path}/made"}})
    host = sandboxes.create("none", SandboxPaths(tmp_path, tmp_path), no_blobs)
    await host.start()
    try:
        with pytest.raises(UnfitError, match="never without a sandbox"):
            await AGENTBENCH.set_up(instance, host)
    finally:
        await host.close()
    assert not (tmp_path / "made").exists()


async def test_scripts_are_taken_from_the_data_folder_and_tasks_without_theirs_are_skipped(tmp_path: Path) -> None:
    (instance,) = loaded(tmp_path, LOST)
    assert AGENTBENCH.skipped(instance) == "the data folder has no scripts/4/init/words.sh"
    for path, text in {
        "init/words.sh": "mkdir box; touch box/word",
        "check/integer-match.py": "from sys import argv\nassert argv[1] == 'many'",
    }.items():
        (tmp_path / "scripts/4" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "scripts/4" / path).write_text(text)
    (instance,) = loaded(tmp_path, LOST)
    assert not AGENTBENCH.skipped(instance)
    with pytest.raises(UnfitError, match="the check of the example"):  # the script's word holds, not the known rule
        async with prepared(AGENTBENCH, instance, tmp_path):
            pass


async def test_the_scripts_that_tasks_name_are_fetched_with_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream, cache = tmp_path / "upstream", tmp_path / "cache"
    monkeypatch.setenv("HANDIWORK_CACHE", str(cache))
    monkeypatch.delenv("HANDIWORK_BENCHDATA", raising=False)
    loaded(upstream, LOST, {**COUNT, "create": {"init": {"file": "init/gone.sh"}}})
    for name in FILES["std"]:
        (upstream / f"data/{name}.json").parent.mkdir(parents=True, exist_ok=True)
        (upstream / f"data/{name}.json").touch()
        (upstream / f"data/{name}.json").write_text((upstream / f"data/{name}.json").read_text() or "[]")
    (upstream / "scripts/4/init").mkdir(parents=True)
    (upstream / "scripts/4/init/words.sh").write_text("mkdir box; touch box/word")
    with serving(upstream) as address:
        benchmark = from_address(address)
        said: list[str] = []
        found = await get(benchmark, "std", None, said.append)
    assert found == cache / "benchmarks/agentbench_os"
    with_script, without = benchmark.load(found, "std")
    assert benchmark.skipped(with_script) == ""
    assert benchmark.skipped(without) == "the data folder has no scripts/4/init/gone.sh"
    assert said[-1].startswith(f"no scripts/4/init/gone.sh: {address}/scripts/4/init/gone.sh answered 404")
    async with prepared(benchmark, with_script, tmp_path) as sandbox:
        assert await scored(with_script, "1", sandbox) == 1
    # Later runs look again for what could not be had, and do without it where there is no network.
    assert await get(benchmark, "std", None, said.append) == found
    assert "cannot be reached" in said[-1]


def test_scripts_outside_their_folder_are_refused(tmp_path: Path) -> None:
    for file in ("../../../words.sh", "/etc/words.sh"):
        with pytest.raises(DataError, match="a script is outside the folder of scripts"):
            loaded(tmp_path, {**COUNT, "create": {"init": {"file": file}}})


def test_tasks_have_upstreams_names_and_broken_ones_are_told(tmp_path: Path) -> None:
    assert [one.id for one in loaded(tmp_path, COUNT, TOOL)] == ["std-004-N4-00000", "std-004-N4-00001"]
    with pytest.raises(DataError, match=r"data/dev\.json"):
        AGENTBENCH.load(tmp_path, "dev")
    with pytest.raises(DataError, match="task 0 cannot be read: its check needs the output of an example"):
        loaded(tmp_path, {**COUNT, "evaluation": {"check": INTEGERS}})


@pytest.mark.parametrize(
    ("name", "answer", "reference", "same"),
    [
        ("integer-match.py", " 5\n", "5", True),
        ("integer-match.py", "5.0", "5", False),
        ("integer-match.py", "5", "", False),
        ("string-match.py", "a\r\nb\n", "a\nb", True),
        ("string-match.py", "A", "a", False),
        ("size-match.py", "4096", "4.0K", True),
        ("size-match.py", "1.5 GB", "1.5G", True),
        ("size-match.py", "large", "large", False),
        ("containing.py", "it is in /a/b", "/a/b\n", True),
        ("in.py", "b", "a b c", True),
        ("in.py", "d", "a b c", False),
    ],
)
def test_the_known_comparisons(name: str, answer: str, reference: str, same: bool) -> None:
    assert COMPARISONS[name](answer, reference) is same


@given(st.integers(), st.integers(0, 2**60), st.text())
def test_every_answer_is_the_same_as_itself(number: int, size: int, text: str) -> None:
    assert COMPARISONS["integer-match.py"](str(number), f"{number}\n")
    assert COMPARISONS["size-match.py"](f"{size}B", f"{size / 1024:.20f}K")
    for name in ("string-match.py", "containing.py", "in.py"):
        assert COMPARISONS[name](text, f"\n{text}\r\n")


@pytest.mark.timeout(900)
@some_or_all
@pytest.mark.parametrize("split", AGENTBENCH.splits)
async def test_every_real_task_is_scored_by_its_own_solution_or_has_no_score(
    split: str, at_most: int, tmp_path: Path
) -> None:
    outcomes: dict[str, list[str]] = {"full": [], "none": [], "no machine": [], "no script": []}
    for instance in sample(instances(AGENTBENCH, split), at_most):
        if AGENTBENCH.skipped(instance):
            outcomes["no script"].append(instance.id)
            continue
        place = tmp_path / instance.id
        place.mkdir()
        try:
            async with prepared(AGENTBENCH, instance, place) as sandbox:
                outcomes["full" if await solved(instance, sandbox) else "none"].append(instance.id)
        except UnfitError:
            outcomes["no machine"].append(instance.id)
    assert outcomes["full"]
    assert not outcomes["none"], outcomes


async def solved(instance: Instance, sandbox: Sandbox) -> bool:
    """Whether the task scores nothing before, and 1 with what its example makes and says.

    What moves by itself, as the memory in use, is looked at again.
    """
    task = task_of(instance.row, instance.row["scripts"])
    if task.example is None:
        assert task.match is not None
        assert await scored(instance, "", sandbox) == await scored(instance, "Nothing.", sandbox) == 0
        return await scored(instance, task.match["answer"], sandbox) == 1
    assert await scored(instance, "", sandbox) == 0, instance.id
    for _ in range(3):
        _, answer = await run(sandbox, task.example)
        state = state_of(MessageAction(content="Go.", source="user"), AgentFinishAction(outputs={"message": answer}))
        if (await AGENTBENCH.score(replace(rollout(instance, "", sandbox), state=state))).value == 1:
            return True
    return False

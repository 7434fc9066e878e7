"""The benchmark of everyday tasks: its rule, on tasks of the tests, and the reference solutions of its own tasks."""

from __future__ import annotations

import shlex
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from handiwork.agents.registry import find as find_agent
from handiwork.evals.benchmark import DataError, Instance, Rollout, Score, UnfitError
from handiwork.evals.benchmarks.everyday.benchmark import (
    FOLDER,
    SPECIALISTS,
    Everyday,
    EverydayTask,
    Submission,
    split_of,
)
from handiwork.evals.registry import find
from handiwork.evals.running import plan
from handiwork.evals.running.conditions import Conditions
from handiwork.evals.running.plan import InstanceSelection
from handiwork.evals.running.results import Result
from handiwork.evals.scoring.data import folder_of, missing
from handiwork.evals.scoring.execution import new_sandbox
from handiwork.events.action import AgentFinishAction, AgentRejectAction, CmdRunAction, MessageAction
from handiwork.events.codec import from_json
from handiwork.sandbox.base import Sandbox
from tests.agents.states import state_of
from tests.evals.rollouts import SAMPLE, rollout
from tests.evals.runs import by_id, finished, script

HERE = Path(__file__).with_name("everyday")
TASKS = sorted([*(FOLDER / "tasks").glob("*.toml"), *(FOLDER / "specialists").glob("*/*.toml")])

OWN = "follow-up-budget", "git-commit-notes", "impossible-password", "missing-function-spread"
BUDGET, COMMIT, PASSWORD, SPREAD = OWN
SPLITS = {"dev": [BUDGET, PASSWORD], "test": [COMMIT, SPREAD]}


def instance_of(name: str, data: Path = HERE, split: str = "") -> Instance:
    return next(one for one in Everyday().load(data, split or split_of(name)) if one.id == name)


def instance_in(file: Path) -> Instance:
    """The instance of a file, in the folder of all tasks or in an agent's."""
    if file.parent.name == "tasks":
        return instance_of(file.stem, file.parents[1])
    return instance_of(file.stem, file.parents[2], file.parent.name)


def task_of(instance: Instance) -> EverydayTask:
    return EverydayTask.model_validate(instance.row)


class Trial:
    """A workspace in a sandbox, where submissions are made and scored."""

    def __init__(self, benchmark: Everyday, instance: Instance, sandbox: Sandbox) -> None:
        self.benchmark, self.instance, self.sandbox = benchmark, instance, sandbox

    async def do(self, command: str) -> str:
        return (await self.sandbox.execute(CmdRunAction(command=command, timeout=60))).content

    async def score(self, submission: Submission) -> Score:
        """The score after a submission, with its script and its last message."""
        await self.do(f"bash -c {shlex.quote(submission.script)} < /dev/null > /dev/null")
        return await self.benchmark.score(self._rollout(submission))

    def _rollout(self, submission: Submission) -> Rollout:
        done = rollout(self.instance, submission.answer, self.sandbox)
        if submission.outcome == "finished":
            finish = AgentFinishAction(outputs={"message": submission.answer, **submission.outputs})
            return replace(done, state=state_of(MessageAction(content="The task.", source="user"), finish))
        rejection = AgentRejectAction(outputs={"reason": submission.answer})
        return replace(done, state=state_of(MessageAction(content="The task.", source="user"), rejection))


@asynccontextmanager
async def trial(instance: Instance, place: Path) -> AsyncGenerator[Trial]:
    """A workspace as a session has it: a copy, at the path of the user's folder."""
    place.mkdir(exist_ok=True)
    benchmark = Everyday()
    async with new_sandbox("bubblewrap", place) as (sandbox, workspace):
        benchmark.prepare(instance, workspace)
        await sandbox.start()
        await benchmark.set_up(instance, sandbox)
        yield Trial(benchmark, instance, sandbox)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "file",
    [
        *(pytest.param(HERE / f"tasks/{name}.toml", id=name, marks=pytest.mark.slow) for name in OWN),
        *(
            pytest.param(file, id=f"{file.stem}, of a sample", marks=pytest.mark.slow)
            for file in TASKS[:: max(1, len(TASKS) // SAMPLE)]
        ),
        *(pytest.param(file, id=f"{file.parent.name}/{file.stem}", marks=pytest.mark.campaign) for file in TASKS),
    ],
)
async def test_the_solution_scores_1_and_nothing_and_the_wrong_one_0(file: Path, tmp_path: Path) -> None:
    instance = instance_in(file)
    if why := Everyday().skipped(instance):
        pytest.skip(why)
    task = task_of(instance)
    async with trial(instance, tmp_path / "one") as one, trial(instance, tmp_path / "other") as other:
        submissions = [(one, Submission()), (one, task.solution), (other, task.wrong)]
        assert [(await place.score(submission)).value for place, submission in submissions] == [0, 1, 0]


@pytest.mark.slow
async def test_the_details_have_the_kind_and_the_visible_check(tmp_path: Path) -> None:
    instance = instance_of(SPREAD)
    task = task_of(instance)
    async with trial(instance, tmp_path) as one:
        before, wrong = await one.score(Submission()), await one.score(task.wrong)
    assert before.details["kind"] == "missing-function"
    assert (before.details["check"], wrong.details["check"], wrong.value) == (False, True, 0)
    assert "ValueError" in wrong.details["output"]


@pytest.mark.slow
async def test_a_file_that_must_not_change_may_neither_be_written_nor_removed_nor_added(tmp_path: Path) -> None:
    instance = instance_of(SPREAD)
    async with trial(instance, tmp_path) as one:
        assert (await one.score(task_of(instance).solution)).value == 1
        await one.do("cp -r tests kept; python3 -m unittest -q")
        assert (await one.score(Submission())).value == 1, "Python's own cache is no change"
        for change in ("echo >> tests/test_numbers.py", "rm tests/__init__.py", "touch tests/more"):
            await one.do(f"rm -r tests; cp -r kept tests; {change}")
            score = await one.score(Submission())
            assert (score.value, score.details["output"]) == (0, f"changed: {change.split()[-1]}")


@pytest.mark.slow
@pytest.mark.parametrize("end", ["import os\nos._exit(0)\n", "import os, sys\nos.execv('/bin/true', ['true'])\n"])
async def test_a_program_that_ends_the_verifier_early_does_not_pass(end: str, tmp_path: Path) -> None:
    async with trial(instance_of(SPREAD), tmp_path) as one:
        await one.do(f"cat >> weather/numbers.py <<'END'\n{end}\nEND")
        assert (await one.score(Submission())).value == 0


@pytest.mark.slow
async def test_a_module_of_the_workspace_cannot_read_the_nonce_in_the_verifier(tmp_path: Path) -> None:
    module = "import os, re, sys\nprint(re.search(r'nonce\": \"(\\w+)', sys.stdin.read())[1], flush=True)\nos._exit(0)"
    async with trial(instance_of(SPREAD), tmp_path) as one:
        await one.do(f"cat > json.py <<'END'\n{module}\nEND")
        assert (await one.score(Submission())).value == 0


@pytest.mark.slow
async def test_programs_functions_and_paths_that_the_agent_leaves_do_not_disturb(tmp_path: Path) -> None:
    """The verified workspace is at the same path: programs of the agent may name it."""
    instance = instance_of(SPREAD)
    async with trial(instance, tmp_path) as one:
        await one.do("echo \"open('$PWD/weather/numbers.py').read()\" >> weather/__init__.py")
        assert (await one.score(task_of(instance).solution)).value == 1
        assert await one.do("cat") == ""
        assert (await one.benchmark.score(rollout(instance, "", one.sandbox))).value == 1
        await one.do("tar() { false; }; PATH=/nowhere; cd /; alias python3=false")
        assert (await one.benchmark.score(rollout(instance, "", one.sandbox))).value == 1


@pytest.mark.slow
async def test_a_workspace_that_is_too_large_to_be_copied_scores_0(tmp_path: Path) -> None:
    async with trial(instance_of(BUDGET), tmp_path) as one:
        await one.do("head -c 101000000 /dev/zero > zeros")
        score = await one.score(task_of(one.instance).solution)
        assert (score.value, score.details["output"]) == (0, "the workspace is too large to be copied")
        assert await one.do("ls /tmp | grep -cxE '[0-9a-f]{32}'") == "0\n"


@pytest.mark.slow
async def test_the_visible_check_sees_the_workspace_as_the_agent_left_it(tmp_path: Path) -> None:
    instance = instance_of(BUDGET)
    verify = {"script": "import os\nos.remove('budget.csv')"}
    spoiled = replace(instance, row={**instance.row, "verify": verify, "check": "test -e budget.csv"})
    async with trial(spoiled, tmp_path) as one:
        score = await one.score(Submission())
        assert (score.value, score.details["check"]) == (1, True)


@pytest.mark.slow
async def test_an_answer_of_any_length_and_any_characters_reaches_the_verifier(tmp_path: Path) -> None:
    async with trial(instance_of(BUDGET), tmp_path) as one:
        solution = task_of(one.instance).solution
        for answer in ("1075" + "\0é\ud800" * 100_000, "It is '1075'; `rm -r .` $(false)"):
            assert (await one.score(solution.model_copy(update={"answer": answer}))).value == 1


@pytest.mark.slow
async def test_a_set_up_that_fails_is_not_put_to_an_agent(tmp_path: Path) -> None:
    instance = instance_of(COMMIT)
    broken = replace(instance, row={**instance.row, "set_up": {"script": "echo no such luck; exit 3"}})
    with pytest.raises(UnfitError, match="the set-up of git-commit-notes failed: no such luck"):
        async with trial(broken, tmp_path):
            pass


@pytest.mark.parametrize("split", SPLITS)
def test_a_coin_puts_each_task_into_a_split(split: str) -> None:
    found = Everyday().load(HERE, split)
    assert [one.id for one in found] == SPLITS[split]
    assert all(one.id.startswith(one.group) for one in found)


def test_the_tasks_come_with_the_package() -> None:
    assert folder_of(find("everyday"), None) == FOLDER
    assert folder_of(find("everyday"), HERE) == HERE
    assert missing(Everyday(), "dev", HERE) == []
    names = [one.id for split in Everyday.splits for one in Everyday().load(FOLDER, split)]
    assert sorted(names) == sorted(file.stem for file in TASKS)


@pytest.mark.parametrize("agent", SPECIALISTS)
def test_each_specialist_of_the_hub_has_tasks_of_its_own(agent: str) -> None:
    assert len(Everyday().load(FOLDER, agent)) >= 3
    assert missing(Everyday(), agent, FOLDER) == []
    assert find_agent(agent).__name__ == agent


def written(data: Path, name: str, more: str = "", **values: str) -> Path:
    """A data folder with one task."""
    (data / "tasks").mkdir(exist_ok=True)
    task = (HERE / f"tasks/{PASSWORD}.toml").read_text()
    (data / f"tasks/{name}.toml").write_text(more + task)
    return data


def test_a_task_is_skipped_where_a_program_is_missing(tmp_path: Path) -> None:
    data = written(tmp_path, "any", 'needs = ["bash", "no-such-program", "nor-this"]\n')
    assert Everyday().skipped(instance_of("any", data)) == "no-such-program and nor-this not installed"
    assert Everyday().skipped(instance_of(PASSWORD)) == ""


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("needed = []\n", "any.toml is no task: .*needed"),
        ("[", "any.toml is no task: "),
        (f"follow_ups = {['Again.'] * 6}\n", "any.toml has 6 follow-up messages, more than 5"),
    ],
)
def test_a_file_that_is_no_task_is_told(more: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"(?s){said}"):
        instance_of("any", written(tmp_path, "any", more))


async def results(place: Path, name: str, *replies: str, trials: int = 1) -> list[Result]:
    """The results of DirectAgent on a task of the tests, with a model that gives these replies in every trial."""
    model = script(place / "script", *({"content": reply} for reply in replies))
    conditions = Conditions(
        benchmark="everyday", split=split_of(name), data=str(HERE), agent="DirectAgent", model=model, user_model=model
    )
    planned = await plan.new(Everyday(), conditions, InstanceSelection(ids=[name]), trials, lambda _: None)
    return list((await finished(place / "out", planned)).values())


@pytest.mark.slow
async def test_the_user_sends_the_next_message_when_the_agent_has_ended_its_turn(tmp_path: Path) -> None:
    script = "```bash\nsed -i s/rent,700/rent,750/ budget.csv\n```"
    (result,) = await results(tmp_path, BUDGET, "1025.", f"Changed.\n{script}", "1075 now.")
    assert (result.outcome, result.score, result.answer, result.calls) == ("submitted", 1, "1075 now.", 3)
    events = [from_json(line) for line in (tmp_path / "out" / result.trajectory).read_text().splitlines()]
    said = [event.content for event in events if isinstance(event, MessageAction) and event.source == "user"]
    task = task_of(instance_of(BUDGET))
    assert said == [task.task, *task.follow_ups]


@pytest.mark.slow
async def test_an_agent_that_refuses_is_scored_too(tmp_path: Path) -> None:
    (result,) = await results(tmp_path, PASSWORD, "I cannot tell: the file names a safe only.")
    assert (result.outcome, result.score, result.group) == ("gave up", 1, "impossible")
    assert by_id([result])[PASSWORD].details["kind"] == "impossible"


@pytest.mark.slow
async def test_the_agent_works_in_the_workspace_as_the_set_up_left_it(tmp_path: Path) -> None:
    reply = "I commit it.\n```bash\ngit commit -qm 'Note the call' notes.md && git log --format=%s -1\n```"
    (result,) = await results(tmp_path, COMMIT, reply)
    assert (result.score, result.answer) == (1, "I commit it.\n\nNote the call")


@pytest.mark.slow
async def test_the_outputs_of_a_specialist_reach_its_verifier(tmp_path: Path) -> None:
    answers = {"digit-sum": "597", "two-aces": "1/2"}
    calls = [{"name": "finish", "arguments": {"answer": answer}} for answer in answers.values()]
    model = script(tmp_path / "script", *({"tool_calls": [call]} for call in calls))
    conditions = Conditions(
        benchmark="everyday", split="MathAgent", data=str(FOLDER), agent="MathAgent", model=model, user_model=model
    )
    scores: dict[str, float | None] = {}
    for name in answers:
        planned = await plan.new(Everyday(), conditions, InstanceSelection(ids=[name]), 1, lambda _: None)
        (result,) = (await finished(tmp_path / name, planned)).values()
        scores[name] = result.score
    assert scores == {"digit-sum": 1, "two-aces": 0}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "name", "answer"),
    [
        ("BrowsingAgent", "lost-property", "Yes, 4219 is a red umbrella. So the number is 4219."),
        ("CodeNavAgent", "parcel-price", "It costs 304 crowns to send 7.5 kg as an express parcel to zone 3."),
        ("CodeNavAgent", "spring-fair", "39 days lie between the fair (26 April) and the open doors (4 June)."),
        ("MathAgent", "digit-sum", "There are 597 four-digit numbers with the digit sum 20."),
        ("RepoStudyAgent", "misleading-readme", "pytest runs the tests of spec/, and it needs Python 3.11."),
    ],
)
async def test_a_message_answers_a_specialists_task_wherever_in_it_the_answer_stands(
    agent: str, name: str, answer: str, tmp_path: Path
) -> None:
    async with trial(instance_of(name, FOLDER, agent), tmp_path) as one:
        assert (await one.score(Submission(answer=answer))).value == 1

"""API-Bank: the recorded calls score through our APIs, wrong ones do not, and the agent's calls are those it made."""

from __future__ import annotations

import ast
import inspect
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from handiwork.evals.benchmark import Instance
from handiwork.evals.benchmarks.apibank import apis, check
from handiwork.evals.benchmarks.apibank.apis.api import Databases
from handiwork.evals.benchmarks.apibank.benchmark import DIALOGUES, APIBank, grade, made_calls
from handiwork.evals.benchmarks.apibank.check import MemoryDatabases, RecordedCall
from handiwork.evals.scoring import jsonlines
from handiwork.evals.scoring.execution import run_limited, write_file
from tests.evals.rollouts import folder, instances, prepared, rollout

BENCHMARK = APIBank()


def accepted(row: dict[str, Any], *made: RecordedCall) -> tuple[float, int]:
    score = grade(row, made)
    return score.value, int(str(score.details["accepted"]))


def changed(call: RecordedCall) -> RecordedCall:
    """The call with another value of each argument."""
    other = {str: "something else entirely", int: 77, bool: None, list: [{"name": "other", "value": "0"}]}
    return replace(call, input={name: other[type(value)] for name, value in call.input.items()})


def test_the_remaining_calls_of_each_dialogue_score_and_others_do_not() -> None:
    dialogues = instances(BENCHMARK)
    assert len(dialogues) > 100
    for one in dialogues:
        row, gold = dict(one.row), list(one.row["calls"])
        assert accepted(row, *gold) == (1.0, len(gold)), one.id
        assert accepted(row) == (0.0, 0)
        assert accepted(row, RecordedCall("DeleteEverything"), RecordedCall("")) == (0.0, 0)
        value, right = accepted(row, *map(changed, gold))
        no_input = sum(not call.input for call in gold)
        assert (value, right) == (1.0, no_input), one.id  # the names are right: only the original check sees it
        assert accepted(row, *gold, gold[0])[0] < 1
        if len(gold) > 1:
            assert accepted(row, *gold[1:])[0] < 1


def test_every_recorded_call_of_the_data_returns_what_was_recorded() -> None:
    """Also of the dialogues that are no instances, and the calls before the last message of the user."""
    one, seen = instances(BENCHMARK)[0], set[str]()
    for file in sorted((folder(BENCHMARK) / DIALOGUES).glob("*.jsonl")):
        state = MemoryDatabases(Path(one.row["databases"]), one.row["recorded"])
        for call in check.calls_in(jsonlines.read(file)):
            assert check.accepts(check.run(call, state.copy()), call), (file.name, call)
            check.replay(call, state)
            seen.add(call.name)
    assert len(seen) > 40


def test_the_databases_are_those_before_the_last_message_and_have_no_call_that_follows(tmp_path: Path) -> None:
    """A user who registered keeps the token of the dialogue; nothing else that was not recorded is there."""
    for number, one in enumerate(instances(BENCHMARK)[::40]):
        workspace = tmp_path / str(number)
        workspace.mkdir()
        BENCHMARK.prepare(one, workspace)
        assert not (workspace / "apis/calls.jsonl").exists()
        state = Databases(workspace / "apis/databases", None)
        first = one.row["calls"][0]
        assert check.accepts(check.run(first, state), first), one.id
    files = {path.name for path in workspace.rglob("*.py")}
    assert files == {path.name for path in Path(apis.__file__).parent.glob("*.py")}
    assert "check.py" not in files


def test_the_state_keeps_what_the_dialogue_recorded(tmp_path: Path) -> None:
    row = {"databases": str(tmp_path)}
    (tmp_path / "Account.json").write_text(json.dumps({"ann": {"password": "a", "token": "t", "email": "a@b.c"}}))
    state = MemoryDatabases(Path(row["databases"]))
    new = {"username": "bob", "password": "b", "email": "b@b.c"}
    check.replay(RecordedCall("RegisterUser", new, {"token": "recorded"}), state)
    check.replay(
        RecordedCall("AppointmentRegistration", {"patient_name": "Bob", "date": "2023-1-2", "doctor_name": "D"}, "42"),
        state,
    )
    balance = check.run(RecordedCall("CheckToken", {"token": "recorded"}), state)
    assert balance.output == "bob"
    assert state.read("Appointments") == {"42": {"patient_name": "Bob", "date": "2023-01-02", "doctor_name": "D"}}
    assert json.loads((tmp_path / "Account.json").read_text()).keys() == {"ann"}


@pytest.mark.parametrize(
    ("made", "value"),
    [
        (["GetUserToken", "AddAlarm"], 1.0),
        (["AddAlarm", "GetUserToken"], 1.0),
        (["GetUserToken"], 2 / 3),
        (["GetUserToken", "GetUserToken", "AddAlarm"], 0.8),
        (["GetUserToken", "GetUserToken"], 0.5),
        (["AddAgenda"], 0.0),
        ([], 0.0),
    ],
)
def test_names_count_with_multiplicity(made: list[str], value: float) -> None:
    row = {
        "turns": [],
        "databases": ".",
        "recorded": {},
        "calls": [RecordedCall("GetUserToken"), RecordedCall("AddAlarm")],
    }
    assert grade(row, [RecordedCall(name) for name in made]).value == pytest.approx(value)


@pytest.mark.parametrize(
    ("name", "made", "gold", "right"),
    [
        ("AddAgenda", {"content": "a meeting with John", "time": "1", "location": "x"}, {}, True),
        ("AddAgenda", {"content": "lunch with John", "time": "1", "location": "x"}, {}, False),
        ("AddAgenda", {"content": "meeting with John", "time": "2", "location": "x"}, {}, False),
        ("DeleteAgenda", {"content": "anything", "time": "1", "location": "y"}, {}, True),
        ("QueryStock", {"stock_code": "aapl", "date": "2023-3-1"}, {"stock_code": "AAPL", "date": "2023-03-01"}, True),
        (
            "QueryStock",
            {"stock_code": "AAPL", "date": "2023-03-02"},
            {"stock_code": "AAPL", "date": "2023-03-01"},
            False,
        ),
        ("OpenBankAccount", {"name": "john"}, {"name": "John"}, False),
        ("Wiki", {"keyword": "AI"}, {"keyword": "artificial intelligence"}, True),
    ],
)
def test_the_original_check_compares_each_api_in_its_own_way(
    name: str, made: dict[str, str], gold: dict[str, str], right: bool
) -> None:
    gold = gold or {"content": "meeting with John", "time": "1", "location": "x"}
    assert check.accepts(RecordedCall(name, made, "success"), RecordedCall(name, gold, "success")) is right
    assert not check.accepts(RecordedCall(name, gold, None, "failed"), RecordedCall(name, gold, "success"))


def test_a_record_that_the_agent_has_written_itself_cannot_break_the_scorer() -> None:
    lines = ["", "{", "[]", "3", '{"api_name": "Wiki"}', '{"api_name": "Wiki", "input": 3}', "[" * 5_000]
    good = '{"api_name": "Wiki", "input": {"keyword": "x\u2028y"}}'
    assert made_calls("\n".join([*lines, good])) == [RecordedCall("Wiki", {"keyword": "x\u2028y"})]
    one = instances(BENCHMARK)[0]
    odd = [
        RecordedCall("__builtins__", {"x": 1}),
        RecordedCall("AddAgenda", {"token": [], "time": 3}),
        RecordedCall("Api"),
    ]
    assert grade(one.row, odd).details["accepted"] == 0


async def test_the_calls_in_the_sandbox_are_scored(tmp_path: Path) -> None:
    """The APIs run in the agent's sandbox; the scorer finds the calls there, and wrong ones lower the score."""
    one = next(one for one in instances(BENCHMARK) if len(one.row["calls"]) == 2)
    calls = "\n".join(f"print(apis.{call.name}().call(**{dict(call.input)!r}))" for call in one.row["calls"])
    async with prepared(BENCHMARK, one, tmp_path) as sandbox:
        assert (await BENCHMARK.score(rollout(one, "Done.", sandbox))).value == 0
        await write_file(sandbox, "work.py", f"import apis\n{calls}\n".encode())
        done = await run_limited(sandbox, "python3 work.py", 30)
        assert "'exception': None" in done.content
        score = await BENCHMARK.score(rollout(one, "Done.", sandbox))
        assert (score.value, score.details["accepted"]) == (1.0, 2)
        await run_limited(sandbox, "python3 -c 'import apis; apis.GetToday().call()'", 30)
        assert (await BENCHMARK.score(rollout(one, "Done.", sandbox))).value == pytest.approx(0.8)


def test_the_splits_tell_more_or_less_of_the_apis() -> None:
    code_use, tool_use = (BENCHMARK.instruction(instances(BENCHMARK, split)[0]) for split in BENCHMARK.splits)
    for text in (code_use, tool_use):
        assert all(name in text for name in apis.__all__)
        assert "User: " in text
    assert len(apis.__all__) == 53
    assert "AddAlarm().call(token: str, time: str)" in tool_use
    assert "AddAlarm().call" not in code_use


def test_the_apis_follow_their_specifications() -> None:
    """Each has the specified parameters; those with a default are optional there."""
    specified = json.loads((folder(BENCHMARK) / "api_specs.json").read_text())
    assert specified.keys() == set(apis.__all__)
    for name, spec in specified.items():
        assert list(spec["input_parameters"]) == parameters(name), name


def parameters(name: str) -> list[str]:
    return [one for one in inspect.signature(getattr(apis, name).call).parameters if one != "self"]


def test_the_apis_run_in_old_pythons() -> None:
    for file in Path(apis.__file__).parent.glob("*.py"):
        ast.parse(file.read_text(), feature_version=(3, 9))


def test_apis_that_no_dialogue_calls() -> None:
    one: Instance = instances(BENCHMARK)[0]
    state = MemoryDatabases(Path(one.row["databases"]))

    def call(api: str, **arguments: Any) -> RecordedCall:
        return check.run(RecordedCall(api, arguments), state)

    devices = [{"name": "lamp", "description": "Lamp"}]
    assert call("AddScene", name="Reading", devices=devices).output == "success"
    assert call("AddScene", name="reading", devices=devices).exception == "Scene name already exists."
    assert call("ModifyScene", name="reading", devices=devices * 2).exception == "Device ID cannot be duplicated."
    assert call("QueryScene", name="READING").output == devices
    token = call("GetUserToken", username="JohnDoe", password="pass123").output["token"]
    assert call("CheckToken", token=token).output == "JohnDoe"
    agenda = {"token": token, "content": "x y", "time": "2023-03-21 15:00:00", "location": "z"}
    assert call("AddAgenda", **agenda).output == "success"
    assert call("QueryAgenda", **agenda).output["location"] == "z"
    assert call("QueryAgenda", **agenda | {"content": "", "time": "2023-03-22 15:00:00"}).exception
    tools = call("ToolSearcher", keywords="delete alarm").output
    assert [tool["name"] for tool in tools] == ["GetUserToken", "DeleteAlarm"]

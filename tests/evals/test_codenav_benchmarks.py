"""CodeNav's three benchmarks as `handiwork eval run` runs them: an agent uses the code base, and scores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from handiwork.evals import registry
from handiwork.evals.benchmark import Instance
from handiwork.evals.benchmarks.mnms.benchmark import FILE
from handiwork.evals.reporting.codenav_paper import tables_of
from handiwork.evals.running import plan
from handiwork.evals.running.conditions import Conditions
from handiwork.evals.running.plan import InstanceSelection
from tests.cli.program import bash, finish
from tests.evals.rollouts import BENCHDATA, needs_benchdata
from tests.evals.runs import finished, no_status, script

pytestmark = pytest.mark.slow

ROW = (
    '{"id": 1, "user_request": "Caption 1.jpg.", "alt_plans_str": "[]", '
    "\"plan_str\": \"[{'id': 0, 'name': 'image captioning', 'args': {}}]\"}\n"
)


def decode(_: Instance) -> tuple[dict[str, object], ...]:
    program = "from m3eval.message_decoder import *; print(caesar_decode(convert_hex_to_ascii('4d4f5252'), 2))"
    return bash(f'python3 -c "{program}"'), finish("<answer>KMPP</answer>")


def call(one: Instance) -> tuple[dict[str, object], ...]:
    calls = "; ".join(f"print(apis.{call.name}().call(**{dict(call.input)!r}))" for call in one.row["calls"])
    return bash(f"python3 - <<'END'\nimport apis; {calls}\nEND"), finish("It is done.")


def caption(_: Instance) -> tuple[dict[str, object], ...]:
    line = "a = image_captioning(image='1.jpg')"
    return (
        bash(f'python3 -c "from mnm.tool_api import *; {line}; print(a)"'),
        finish(f"```python\n{line}\n```"),
    )


@needs_benchdata
@pytest.mark.parametrize(
    ("name", "chosen", "solve"),
    [
        ("m3tooleval", "message_decoder/hex_caesar_combined_decoding", decode),
        ("apibank", "", call),
        ("mnms", "1", caption),
    ],
)
async def test_an_agent_that_uses_the_code_base_scores(
    name: str, chosen: str, solve: Callable[[Instance], tuple[dict[str, object], ...]], tmp_path: Path
) -> None:
    data = Path(BENCHDATA) / (registry.find(name).data_folder or name)
    if name == "mnms":
        data = tmp_path / "data"
        data.mkdir()
        (data / FILE).write_text(ROW)
    one = next(one for one in registry.find(name).load(data, "code-use") if one.id == chosen or not chosen)
    model = script(tmp_path / "replies.jsonl", *solve(one))
    conditions = Conditions(
        benchmark=name, split="code-use", data=str(data), agent="CodeActAgent", model=model, user_model=model
    )
    planned = await plan.new(registry.find(name), conditions, InstanceSelection(ids=[one.id]), 2, no_status)
    results = await finished(tmp_path / "out", planned)
    assert [(result.outcome, result.score) for result in results.values()] == [("submitted", 1.0)] * 2
    (row,) = tables_of([(planned.manifest, list(results.values()))])[0].rows
    assert "100.0 ± 0.0" in row
    assert row[-1] == "2.0 ± 0.0"

"""m&m's: reference plans score, wrong ones do not, and the figures over all requests are the published ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from handiwork.evals.benchmark import DataError, Instance, Rollout
from handiwork.evals.benchmarks.mnms.benchmark import FILE, TOOLS, MnMs, calls_in, grade
from handiwork.evals.scoring.execution import run_limited, write_file
from handiwork.events.action import AgentFinishAction, MessageAction
from tests.agents.states import state_of
from tests.evals.rollouts import folder, instances, prepared, rollout

BENCHMARK = MnMs()


def nodes(*names: str) -> list[dict[str, Any]]:
    return [{"id": number, "name": name, "args": {"text": "x"}} for number, name in enumerate(names)]


def code(*names: str) -> str:
    return "\n".join(f"output{number} = {name}(text='x')" for number, name in enumerate(names))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Requests of our own, in the upstream layout."""
    rows = [
        {
            "id": 1,
            "user_request": "Caption the image 1.jpg and say whether the caption is friendly.",
            "plan_str": repr(nodes("image captioning", "text classification")),
            "code_str": "",
            "alt_plans_str": repr([nodes("visual question answering")]),
        },
        {"id": 2, "user_request": "A fact on 7.", "plan_str": repr(nodes("get math fact")), "alt_plans_str": None},
    ]
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / FILE).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_a_file_of_lines_and_a_file_of_a_list_are_read(data: Path) -> None:
    lines = BENCHMARK.load(data, "code-use")
    assert [(one.id, one.group) for one in lines] == [("1", "2 calls"), ("2", "1 call")]
    rows = [json.loads(line) for line in (data / FILE).read_text().splitlines()]
    (data / FILE).write_text(json.dumps(rows))
    assert BENCHMARK.load(data, "code-use") == lines
    (data / FILE).write_text(json.dumps([rows[0] | {"plan_str": "import os"}]))
    with pytest.raises(DataError, match="no plan"):
        BENCHMARK.load(data, "code-use")


def finished(instance: Instance, **outputs: str) -> Rollout:
    """A rollout whose agent finished with these outputs."""
    state = state_of(MessageAction(content="The task.", source="user"), AgentFinishAction(outputs=dict(outputs)))
    return Rollout(instance, state, rollout(instance).sandbox, rollout(instance).ask)


@pytest.mark.parametrize(
    ("plan", "f1"),
    [
        (code("image_captioning", "text_classification"), 1.0),
        (code("text_classification", "image_captioning", "image_captioning"), 1.0),  # each tool counts once
        (code("visual_question_answering"), 1.0),  # the alternative
        (code("image_captioning"), 2 / 3),
        (code("image_captioning", "get_math_fact"), 0.5),
        (code("get_math_fact"), 0.0),
        (code("my_own_captioning"), 0.0),
        ("", 0.0),
        ("I cannot do that.", 0.0),
    ],
)
async def test_a_plan_is_scored_against_the_reference_it_matches_best(data: Path, plan: str, f1: float) -> None:
    one = BENCHMARK.load(data, "code-use")[0]
    for done in (
        finished(one, message="Done.", code_summary=plan) if plan else finished(one, message=""),
        rollout(one, f"This is it:\n```python\n{plan}\n```"),
        rollout(one, plan),
    ):
        assert (await BENCHMARK.score(done)).value == pytest.approx(f1)


def test_an_alternative_plan_that_is_made_exactly_is_exact() -> None:
    plans = [["image_captioning", "text_summarization"], ["text_summarization", "image_captioning"]]
    assert grade(plans, code("text_summarization", "image_captioning")).details["exact"]


def test_the_figures_are_means_over_the_tools(data: Path) -> None:
    first, second = BENCHMARK.load(data, "code-use")
    scores = [
        grade(first.row["plans"], code("image_captioning", "text_classification")),
        grade(second.row["plans"], code("get_math_fact", "image_captioning")),
    ]
    # image_captioning is right once of two times; text_classification and get_math_fact always.
    assert BENCHMARK.more(scores) == {
        "tool precision": pytest.approx((1 + 1 + 0.5) / 3),
        "tool recall": pytest.approx(1.0),
        "tool f1": pytest.approx((1 + 1 + 2 / 3) / 3),
        "exact plans": 0.5,
    }
    assert BENCHMARK.more([grade(second.row["plans"], "")])["tool f1"] == 0


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        (
            "a = tool_api.count(objects=mnm.tool_api.object_detection(image=i)['objects'])",
            ["object_detection", "count"],
        ),
        ("for i in x:\n    tag(i, [])\nprint(count([]))", ["tag", "count"]),
        ("this is no Python\na = tag(i, [])\nb = (", ["tag"]),
        ("from mnm.tool_api import tag", []),
        ("'tag(1)'  # count(1)", []),
        ("(" * 2_000, []),
    ],
)
def test_the_calls_of_a_plan(text: str, calls: list[str]) -> None:
    assert calls_in(text) == calls


@pytest.mark.slow
async def test_the_tools_run_in_the_workspace_and_no_plan_is_there(data: Path, tmp_path: Path) -> None:
    one = BENCHMARK.load(data, "code-use")[0]
    async with prepared(BENCHMARK, one, tmp_path) as sandbox:
        program = (
            "from mnm.tool_api import *\n"
            "found = object_detection(image='1.jpg')\n"
            "one = select_object(objects=found['objects'], object_name='cat')\n"
            "print(color_pop(image=found['image'], object=one['object']))\n"
        )
        await write_file(sandbox, "plan.py", program.encode())
        assert "<image of color_pop>" in (await run_limited(sandbox, "python3 plan.py", 30)).content
        files = (await run_limited(sandbox, "find . -type f ! -name '*.pyc'; grep -r plan_str . && echo", 30)).content
        assert sorted(files.split()) == ["./mnm/__init__.py", "./mnm/tool_api.py", "./plan.py"]


def test_the_splits_tell_more_or_less_of_the_tools(data: Path) -> None:
    texts = {split: BENCHMARK.instruction(BENCHMARK.load(data, split)[0]) for split in BENCHMARK.splits}
    lengths = [len(texts[split]) for split in ("no-description", "tool-names", "tool-descriptions", "tool-prototypes")]
    assert lengths == sorted(set(lengths))
    assert len(TOOLS) == 33
    for split in ("tool-use", "tool-names", "tool-descriptions", "tool-prototypes"):
        assert all(tool in texts[split] for tool in TOOLS)
    assert "love_calculator" not in texts["code-use"] + texts["no-description"]
    assert "how well two names go together" in texts["code-use"]


async def test_the_reference_plans_score() -> None:
    if not (folder(BENCHMARK) / FILE).exists():
        pytest.skip(f"the benchmark data have no {FILE}")
    for one in instances(BENCHMARK):
        for plan in one.row["plans"]:
            assert set(plan) <= TOOLS
            assert (await BENCHMARK.score(rollout(one, code(*plan)))).value == 1
        assert (await BENCHMARK.score(rollout(one, code("no_tool")))).value == 0

"""ToolQA: the official exact match, by data set, where the corpus that a question is about is there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.evals.benchmark import DataError, Instance
from handiwork.evals.benchmarks.toolqa import ToolQA, normalise
from tests.evals.rollouts import folder, instances, rollout

pytestmark = pytest.mark.slow

BENCHMARK = ToolQA()


def asked(data: Path, split: str, name: str, *answers: object) -> None:
    """Questions of our own, in the upstream layout."""
    rows = [
        {"qid": f"{split}-{name}-{number:04}", "question": f"What is {number}?", "answer": answer}
        for number, answer in enumerate(answers)
    ]
    (data / split).mkdir(exist_ok=True)
    (data / split / f"{name}-{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    asked(tmp_path, "easy", "gsm8k", 147.0, 0.75)
    asked(tmp_path, "easy", "flight", "21:43")
    asked(tmp_path, "hard", "genda", "8:00 PM", 12)
    asked(tmp_path, "hard", "flight", "5 USD")
    return tmp_path


def test_the_split_and_the_data_set_decide_what_is_asked(data: Path) -> None:
    """The paper-era harness had arguments for both, and asked the same questions whatever they were."""
    assert [(one.id, one.group) for one in BENCHMARK.load(data, "easy")] == [
        ("easy-flight-0000", "flight"),
        ("easy-gsm8k-0000", "gsm8k"),
        ("easy-gsm8k-0001", "gsm8k"),
    ]
    assert [(one.id, one.group) for one in BENCHMARK.load(data, "hard")] == [
        ("hard-genda-0000", "agenda"),
        ("hard-genda-0001", "agenda"),
        ("hard-flight-0000", "flight"),
    ]
    with pytest.raises(DataError, match="no questions of the split easy"):
        BENCHMARK.load(data / "hard", "easy")


def real(split: str) -> list[Instance]:
    """The questions of upstream; skips the test where the split is not there."""
    if not any((folder(BENCHMARK) / path).exists() for path in BENCHMARK.files(split)):
        pytest.skip(f"the benchmark data have no questions of the split {split}")
    return instances(BENCHMARK, split)


@pytest.mark.parametrize("split", BENCHMARK.splits)
async def test_the_reference_answers_score(split: str) -> None:
    for one in real(split):
        truth = str(one.row["answer"])
        for said in (truth, f"I looked it up. <answer>{truth}</answer>", f"Finish[{truth}]"):
            assert (await BENCHMARK.score(rollout(one, said))).value == 1.0


@pytest.mark.parametrize("split", BENCHMARK.splits)
@pytest.mark.parametrize("said", ["", "<answer></answer>", "Finish[]", "<answer>The quick brown fox.</answer>"])
async def test_wrong_and_empty_answers_do_not(split: str, said: str) -> None:
    for one in real(split):
        assert (await BENCHMARK.score(rollout(one, said))).value == 0.0


def question(answer: object) -> Instance:
    return Instance("1", {"qid": "1", "question": "?", "answer": answer, "corpus": ""}, "gsm8k")


@pytest.mark.parametrize(
    ("said", "truth", "value", "same_number"),
    [
        ("8:00 pm", "8:00 PM", 1, True),
        ("An  hour, the USD", "hour", 1, True),
        ("than", "n", 0, False),  # only whole words are removed
        ("an", "the", 1, True),
        ("", "the", 0, False),  # nothing is no answer, even where nothing is left of the truth
        ("147", 147.0, 0, True),  # the official match knows no numbers
        ("$1,470", "1470.00", 0, True),
        ("148", 147.0, 0, False),
    ],
)
async def test_the_official_match_and_numbers_beside_it(
    said: str, truth: object, value: int, same_number: bool
) -> None:
    one = question(truth)
    score = await BENCHMARK.score(rollout(one, f"<answer>{said}</answer>"))
    assert (score.value, score.details["same_number"]) == (value, same_number)
    assert BENCHMARK.more([score]) == {"exact match or same number": float(same_number)}


@given(st.text())
def test_normalising_leaves_nothing_to_normalise(text: str) -> None:
    assert normalise(f"  the {text}! ") == normalise(text)


def test_a_question_is_skipped_without_its_corpus(data: Path) -> None:
    flight, sum_, _ = BENCHMARK.load(data, "easy")
    assert "corpus external_corpus/flights is not there" in BENCHMARK.skipped(flight)
    assert not BENCHMARK.skipped(sum_)
    (data / "external_corpus/flights").mkdir(parents=True)
    assert BENCHMARK.skipped(flight)
    (data / "external_corpus/flights/Combined_Flights_2022.csv").write_text("FlightDate\n")
    assert not BENCHMARK.skipped(flight)


def test_the_corpus_is_in_the_workspace(data: Path, tmp_path: Path) -> None:
    (data / "external_corpus/agenda").mkdir(parents=True)
    (data / "external_corpus/agenda/events.jsonl").write_text("{}\n")
    agenda = BENCHMARK.load(data, "hard")[0]
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    BENCHMARK.prepare(agenda, workspace)
    assert (workspace / "agenda/events.jsonl").read_text() == "{}\n"
    assert "folder agenda in your working directory" in BENCHMARK.instruction(agenda)


def test_a_sum_needs_no_files_and_says_how_a_number_is_written(data: Path, tmp_path: Path) -> None:
    sum_ = BENCHMARK.load(data, "easy")[1]
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    BENCHMARK.prepare(sum_, workspace)
    assert not list(workspace.iterdir())
    assert "with a decimal point" in BENCHMARK.instruction(sum_)

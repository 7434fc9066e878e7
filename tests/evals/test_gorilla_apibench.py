"""Gorilla APIBench: a call is right where the API it names is good for the question, made up where there is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.evals.benchmark import DataError, Instance, Score
from handiwork.evals.benchmarks.gorilla_apibench import GorillaAPIBench, calls, find_entry
from tests.evals.rollouts import folder, rollout

BENCHMARK = GorillaAPIBench()


def written(data: Path, hub: str, answers: str, apis: list[tuple[str, str]], asked: list[tuple[int, str]]) -> Path:
    """Data in the upstream layout: APIs as (call, domain), questions as (id, domain of the answer in that line)."""
    for name in ("api", "apibench", "questions"):
        (data / name).mkdir()
    domains = dict(asked)
    files = {
        f"api/{hub}_api.jsonl": [{"api_call": call, "domain": domain} for call, domain in apis],
        f"apibench/{answers}_eval.json": [
            {"api_data": {"domain": domains.get(number, "")}} for number in range(1, max(domains) + 1)
        ],
        f"questions/questions_{hub}_0_shot.jsonl": [
            {"question_id": number, "text": f" Question {number}?\\n"} for number in domains
        ],
    }
    for path, rows in files.items():
        (data / path).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return data


@pytest.fixture
def torch(tmp_path: Path) -> list[Instance]:
    """Questions on hearing (id 1) and seeing (id 3), and a database that ends with an API for hearing."""
    apis = [
        ("torch.hub.load(repo_or_dir='eyes/look', model='see', pretrained=True)", "seeing"),
        ("torch.hub.load(repo_or_dir='ears/lend', model='hear', pretrained=True)", "hearing"),
    ]
    return BENCHMARK.load(written(tmp_path, "torchhub", "torchhub", apis, [(1, "hearing"), (3, "seeing")]), "torchhub")


async def scored(instance: Instance, said: str) -> Score:
    return await BENCHMARK.score(rollout(instance, said))


def references(hub: str) -> list[tuple[Instance, str]]:
    """Each question with the call that upstream gives as its answer."""
    data = folder(BENCHMARK)
    if not all((data / path).exists() for path in BENCHMARK.files(hub)):
        pytest.skip(f"the benchmark data have not all files of {hub}")
    instances = BENCHMARK.load(data, hub)
    file = next(data / path for path in BENCHMARK.files(hub) if path.startswith("apibench/"))
    answers = [json.loads(line) for line in file.read_text().splitlines()]
    return [(one, answers[one.row["question_id"] - 1]["api_data"]["api_call"]) for one in instances]


@pytest.mark.parametrize("hub", BENCHMARK.splits)
async def test_the_reference_calls_score(hub: str) -> None:
    found = references(hub)
    lines = Path(found[0][0].row["database"]).read_text().splitlines()
    apis = [(row["api_call"], row["domain"]) for row in map(json.loads, lines)]
    scores = [(one, call, await scored(one, f"<answer>{call}</answer>")) for one, call in found]
    for one, call, score in scores:
        # Upstream's database lacks some of the calls, some are no calls, and some match an earlier one as well.
        taken, own = (score.details["api"], score.details["api_domain"]), (call, one.row["domain"])
        lost = score.details["hallucination"] or own not in apis or apis.index(taken) < apis.index(own)
        assert score.value == 1.0 or lost
    assert sum(score.value for *_, score in scores) / len(scores) > 0.95


@pytest.mark.parametrize("hub", BENCHMARK.splits)
@pytest.mark.parametrize(
    "said", ["", "<answer></answer>", "I do not know.", "<answer>made.up('no/such-model')</answer>"]
)
async def test_what_is_no_api_is_wrong_and_a_hallucination(hub: str, said: str) -> None:
    for instance, _ in references(hub)[:20]:
        score = await scored(instance, said)
        assert (score.value, score.details["hallucination"]) == (0.0, True)


async def test_an_api_of_another_domain_is_wrong_but_exists(torch: list[Instance]) -> None:
    hearing, seeing = torch
    call = "torch.hub.load(repo_or_dir='eyes/look', model='see')"
    assert ((await scored(seeing, call)).value, (await scored(hearing, call)).value) == (1.0, 0.0)
    assert not (await scored(hearing, call)).details["hallucination"]


async def test_a_call_of_no_api_is_not_compared_with_the_last_api(torch: list[Instance]) -> None:
    """The paper-era harness took the index -1 of a miss for that of the last API, which here is right by chance."""
    hearing = torch[0]
    score = await scored(hearing, "torch.hub.load(repo_or_dir='nobody/nothing', model='none')")
    assert (score.value, score.details["hallucination"], score.details["api"]) == (0.0, True, "")


async def test_the_rate_of_hallucinations_is_reported_beside_the_accuracy(torch: list[Instance]) -> None:
    hearing, seeing = torch
    right = await scored(hearing, "torch.hub.load('ears/lend', 'hear')")
    made_up = await scored(seeing, "torch.hub.load('nobody/nothing', 'none')")
    assert right.value == 1.0
    assert BENCHMARK.more([right, made_up]) == {"hallucination rate": 0.5}


def test_question_ids_count_the_lines_of_the_answers_from_one_with_gaps(torch: list[Instance]) -> None:
    assert [(one.id, one.row["domain"]) for one in torch] == [("torchhub-1", "hearing"), ("torchhub-3", "seeing")]
    shown = BENCHMARK.instruction(torch[0])
    assert "PyTorch Hub" in shown
    assert "Question 1?\n" in shown


@pytest.mark.parametrize(
    "said",
    [
        "<answer>model = torch.hub.load('ears/lend', 'hear', pretrained=True)</answer>",
        "<<<domain>>>: x\n<<<api_call>>>: torch.hub.load('ears/lend', 'hear')\n<<<api_provider>>>: PyTorch\nsee('a')",
        "{'api_call': 'model = torch.hub.load('ears/lend', 'hear', pretrained=True)', 'api_provider': 'PyTorch'}",
        "Use this:\n```python\ntorch.hub.load('ears/lend', model='hear').eval()\n```",
        "torch.hub.load('eyes/look', 'see') is wrong, torch.hub.load('ears/lend', 'hear') right",
        "torch.hub.load(repo_or_dir='ears/lend', model='hear'",
    ],
)
async def test_forms_of_an_answer(torch: list[Instance], said: str) -> None:
    assert (await scored(torch[0], said)).value == 1.0


async def test_the_name_must_be_the_same(torch: list[Instance]) -> None:
    for call in (
        "my.torch.hub.load('ears/lend', 'hear')",
        "hub.load('ears/lend', 'hear')",
        "load('ears/lend', 'hear')",
    ):
        assert (await scored(torch[0], call)).details["hallucination"]


@pytest.mark.parametrize(
    ("hub", "entry", "call", "exists"),
    [
        # Torch Hub wants the repository and the model, of whatever else there is nothing.
        ("torchhub", "f(repo_or_dir='a', 'b', model='c', k=1)", "f('a', 'c')", True),
        ("torchhub", "f(repo_or_dir='a', model='c')", "f('a')", False),
        # Hugging Face wants every value, TensorFlow Hub every argument with its name but for model's.
        ("huggingface", "f('a', model='b', k=True)", "f(x='a', model=\"b\", z=True)", True),
        ("huggingface", "f('a', model='b', k=True)", "f('a', model='b')", False),
        ("huggingface", "f('a', g('b', k='c')).", "x = f('a', g('b', k='c'))", True),
        ("huggingface", "f('unclosed)", "f('unclosed')", True),
        ("tensorflowhub", "f('a', model='b', k=True)", "f('a', 'b', k=True)", True),
        ("tensorflowhub", "f('a', model='b', k=True)", "f('a', 'b', z=True)", False),
        # What is no call at its beginning, or has no arguments, is never an entry.
        ("huggingface", "./run.sh f('a')", "f('a')", False),
        ("huggingface", "f()", "f()", False),
    ],
)
async def test_what_of_a_databases_call_must_occur(
    tmp_path: Path, hub: str, entry: str, call: str, exists: bool
) -> None:
    answers = "tensorflow" if hub == "tensorflowhub" else hub
    [instance] = BENCHMARK.load(written(tmp_path, hub, answers, [(entry, "d")], [(1, "d")]), hub)
    score = await scored(instance, call)
    assert (score.value, score.details["hallucination"]) == (float(exists), not exists)


NAMES = st.from_regex(r"[a-z]{1,3}(\.[a-z]{1,3})?", fullmatch=True)
VALUES = st.one_of(st.text("ab/-., ()[]=", max_size=6).map(repr), st.integers().map(str), NAMES)


@given(NAMES, st.lists(st.tuples(st.sampled_from(["", "k=", "model="]), VALUES), max_size=4), st.text())
def test_a_call_is_found_whole_whatever_stands_around_it(
    name: str, arguments: list[tuple[str, str]], around: str
) -> None:
    listed = [keyword + value for keyword, value in arguments]
    call = f"{name}({', '.join(listed)})"
    found = next(calls(f"{call}\n{around}"))
    assert (found.name, found.text, list(found.arguments)) == (name, call, listed)


@given(st.text("f.('\")[],= \n"))
def test_no_text_is_too_broken(text: str) -> None:
    assert all(call.text in text for call in calls(text))
    assert find_entry(text, []) is None


def test_missing_files_are_named(tmp_path: Path) -> None:
    data = written(tmp_path, "huggingface", "huggingface", [("f('a')", "d")], [(1, "d")])
    assert len(BENCHMARK.load(data, "huggingface")) == 1
    with pytest.raises(
        DataError, match=r"questions_tensorflowhub_0_shot.jsonl, .*tensorflow_eval.json, .*cannot be run"
    ):
        BENCHMARK.load(data, "tensorflowhub")
    (data / "apibench/huggingface_eval.json").write_text("")
    with pytest.raises(DataError, match="has no line 1"):
        BENCHMARK.load(data, "huggingface")

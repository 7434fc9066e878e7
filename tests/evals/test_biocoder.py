"""BioCoder: rows of our own in the form of the data set, whose runnable fields are on Hugging Face alone."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from handiwork.evals import registry
from handiwork.evals.benchmark import DataError, Instance, UnfitError
from handiwork.evals.benchmarks.biocoder import runner
from handiwork.evals.benchmarks.biocoder.benchmark import FILE, BioCoder, cases_of, difference
from handiwork.evals.benchmarks.biocoder.programs import draw, program
from handiwork.evals.running import plan
from handiwork.evals.running.arms import EMPTY, ORACLE
from handiwork.evals.running.conditions import Conditions
from handiwork.evals.running.plan import InstanceSelection
from handiwork.evals.running.results import Result
from tests.evals.rollouts import rollout
from tests.evals.runs import finished, no_status

BIOCODER = BioCoder()

PYTHON: Mapping[str, Any] = {
    "test_case_id": "5f1d0c",
    "language": "Python",
    "repository": "lab/sequences",
    "filePath": "sequences/gc.py",
    "numLines": 4,
    "lineStart": 10,
    "lineEnd": 13,
    "comment": "",
    "content": "",
    "promptSummaryOnly": "This is in python\nwrite a function gc_content that returns the share of G and C, rounded.",
    "signature": "def gc_content(sequence)",
    "contextCode": """import os
import random
BASES = "ACGT"
<<insert solution here>>
def main():
    random.seed(<|int;range=0,15|>)
    print(gc_content("".join(random.choice(BASES) for _ in range(12))))
if __name__ == "__main__":
    main()
""",
    "goldenCode": """def gc_content(sequence):
    found = sum(base in "GC" for base in sequence)
    return round(found / len(sequence), 2)
""",
}
JAVA: Mapping[str, Any] = {
    **PYTHON,
    "test_case_id": "77ab12",
    "language": "Java",
    "repository": "lab/alignments",
    "promptSummaryOnly": "This is in java\nwrite a method that returns the larger of two scores.",
    "signature": "static int larger(int a, int b)",
    "contextCode": """public class Main {
    <<insert solution here>>

    public static void main(String[] args) {
        System.out.println(<|bool|> ? larger(<|int;range=1,2|>, 2) : larger(3, 1));
    }
}
""",
    "goldenCode": "static int larger(int a, int b) {\n    return Math.max(a, b);\n}\n",
}
RIGHT = "def gc_content(sequence):\n    return round(1 - sum(map(sequence.count, 'AT')) / len(sequence), 2)\n"

needs_java = pytest.mark.skipif(shutil.which("javac") is None, reason="there is no JDK")


def loaded(place: Path, *rows: Mapping[str, Any], split: str = "python") -> list[Instance]:
    (place / FILE).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return BIOCODER.load(place, split)


def test_a_split_has_the_rows_of_its_language(tmp_path: Path) -> None:
    (python,) = loaded(tmp_path, PYTHON, JAVA)
    (java,) = loaded(tmp_path, PYTHON, JAVA, split="java")
    assert (python.id, python.group, java.id) == ("5f1d0c", "lab/sequences", "77ab12")


def test_the_workspace_and_the_instruction_have_neither_the_function_nor_its_test(tmp_path: Path) -> None:
    (instance,) = loaded(tmp_path, PYTHON)
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    BIOCODER.prepare(instance, workspace)
    (file,) = workspace.iterdir()
    assert file.read_text() == 'import os\nimport random\nBASES = "ACGT"\n'
    text = BIOCODER.instruction(instance)
    assert "the share of G and C" in text
    assert "def gc_content(sequence)" in text
    assert "found" not in text


def test_slots_are_filled_as_their_grammar_says() -> None:
    context = (
        "<|int|> <|int;range=5,7|> <|float;range=0,1|> <|string|> <|string;length=3,4;type=alpha;quotes=single|> "
        "<|string;length=2;custom=ab,c|> <|bool|> <|bool;type=upper|> <|bool;type=int|>"
    )
    source = random.Random(1)
    for _ in range(200):
        whole, small, share, text, short, custom, lower, upper, number = draw(context, source).values()
        assert -100_000 <= int(whole) <= 100_000
        assert int(small) in (5, 6, 7)
        assert 0 <= float(share) <= 1
        assert len(text) == 10
        assert text.isascii()
        assert text.isalpha()
        assert 3 <= len(short) <= 4
        assert short.islower()
        assert custom in ("abab", "abc", "cab", "cc")
        assert lower in ("true", "false")
        assert upper in ("True", "False")
        assert number in "01"
    with pytest.raises(DataError, match="unknown type 'char'"):
        draw("<|char|>", source)


def test_a_function_in_a_class_is_indented_and_slots_read_the_environment() -> None:
    code = program(JAVA["contextCode"], JAVA["goldenCode"], "java")
    assert "    static int larger(int a, int b) {\n        return Math.max(a, b);\n    }\n" in code
    assert 'Boolean.parseBoolean(System.getenv("SLOT0")) ? larger(Integer.parseInt(System.getenv("SLOT1")), 2)' in code
    assert "def f(): pass\nprint(f(" in program(
        "<<insert solution here>>print(f(<|string|>))", "def f(): pass\n", "python"
    )
    with pytest.raises(DataError, match="has no <<insert solution here>>"):
        program("print()", "", "python")


def test_equal_cases_run_once_and_every_run_has_the_same(tmp_path: Path) -> None:
    python, java = loaded(tmp_path, PYTHON) + loaded(tmp_path, JAVA, split="java")
    assert len(cases_of(python, 1000)) == 16
    assert len(cases_of(java, 1000)) == 4
    assert cases_of(python, 3) == cases_of(python, 3)


@pytest.mark.slow
async def test_a_function_is_right_only_if_it_prints_the_same_in_all_cases(tmp_path: Path) -> None:
    (instance,) = loaded(tmp_path, PYTHON)
    assert await difference(instance, RIGHT) == ""
    assert "it prints '0." in await difference(instance, RIGHT.replace("'AT'", "'AA'"))
    assert "ZeroDivisionError" in await difference(instance, "def gc_content(sequence):\n    return 1 / 0\n")
    assert "SyntaxError" in await difference(instance, "def gc_content(sequence)\n")
    # Wrong for one seed only, which is not among the first cases.
    last = cases_of(instance, 1000)[-1]["SLOT0"]
    rare = RIGHT.replace("    return", f"    if os.environ['SLOT0'] == '{last}': return -1\n    return")
    assert f'for {{"SLOT0": "{last}"}} it prints \'-1\'' in await difference(instance, rare)


@pytest.mark.slow
async def test_a_function_that_ends_the_runner_forges_its_output_or_looks_for_the_original_is_wrong(
    tmp_path: Path,
) -> None:
    (instance,) = loaded(tmp_path, PYTHON)
    killing = "def gc_content(sequence):\n    os.kill(os.getppid(), 9)\n"
    assert "it fails for" in await difference(instance, killing)
    for written in ("", "[]\\n", '[0, "", "", ""]\\n' * 20):
        forging = f"def gc_content(sequence):\n    open('/tmp/output.log', 'w').write({written!r})\n"
        assert await difference(instance, forging) != ""
    looking = (
        "def gc_content(sequence):\n    import subprocess\n"
        "    return subprocess.run(['grep', '-rl', 'foun[d] /', '..', '/tmp'], capture_output=True).stdout\n"
    )
    assert "it prints \"b''\"" in await difference(instance, looking)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("late", "why"),
    [
        ("raise ValueError('a late case')", "ValueError: a late case"),
        ("gc_content = lambda _: os.urandom(9)", "prints something else each time"),
    ],
    ids=["fails", "unsteady"],
)
async def test_an_original_that_is_no_measure_in_a_late_case_is_unfit_before_an_agent_begins(
    late: str, why: str, tmp_path: Path
) -> None:
    (instance,) = loaded(tmp_path, PYTHON)
    last = cases_of(instance, 1000)[-1]["SLOT0"]
    original = f"{PYTHON['goldenCode']}if os.environ['SLOT0'] == '{last}': {late}\n"
    bad = replace(instance, row={**instance.row, "goldenCode": original})
    with pytest.raises(UnfitError, match=why):
        await BIOCODER.set_up(bad, rollout(bad).sandbox)


@pytest.mark.parametrize(
    ("body", "patience", "code", "errors"),
    [("while True: pass", "120", -24, ""), ("import time; time.sleep(60)", "5", -1, "the time is up")],
)
def test_a_program_that_takes_too_long_is_ended_and_no_case_follows(
    body: str, patience: str, code: int, errors: str, tmp_path: Path
) -> None:
    (tmp_path / "main.py").write_text(body)
    (tmp_path / "cases.json").write_text('[{"A": "1"}, {"A": "2"}]')
    command = [sys.executable, "-I", runner.__file__, "cases.json", "1", patience, sys.executable, "main.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    (line,) = done.stdout.splitlines()
    assert json.loads(line)[0] == code
    assert errors in json.loads(line)[3]


@pytest.mark.slow
@needs_java
async def test_a_method_in_java_is_compiled_and_compared(tmp_path: Path) -> None:
    (instance,) = loaded(tmp_path, JAVA, split="java")
    assert await difference(instance, "static int larger(int a, int b) { return a > b ? a : b; }") == ""
    assert "the original '2'" in await difference(instance, "static int larger(int a, int b) { return a; }")
    assert "error: ';' expected" in await difference(instance, "static int larger(int a, int b) { return a }")


async def arm(
    place: Path, data: Path, name: str, split: str, choice: InstanceSelection = InstanceSelection()
) -> list[Result]:
    conditions = Conditions(benchmark="biocoder", split=split, data=str(data), agent=name, model="", user_model="")
    planned = await plan.new(registry.find("biocoder"), conditions, choice, 1, no_status)
    return list((await finished(place / f"{name}-{split}", planned)).values())


@pytest.mark.slow
@pytest.mark.parametrize("split", ["python", pytest.param("java", marks=needs_java)])
async def test_the_arms_score_1_and_0_and_originals_that_do_not_run_are_unfit(split: str, tmp_path: Path) -> None:
    row = PYTHON if split == "python" else JAVA
    first = "import no_such_package\n" if split == "python" else "import htsjdk.samtools.SAMFileHeader;\n"
    lacking = {**row, "test_case_id": "lacking", "contextCode": first + row["contextCode"]}
    unsteady = {
        **row,
        "test_case_id": "unsteady",
        "goldenCode": "def gc_content(sequence):\n    return os.urandom(9)\n",
    }
    loaded(tmp_path, row, lacking, *([unsteady] if split == "python" else []))
    results = {one.id: one for one in await arm(tmp_path, tmp_path, ORACLE, split)}
    right = results.pop(row["test_case_id"])
    assert (right.outcome, right.score) == ("submitted", 1.0), (right.why, right.details)
    assert {one.outcome for one in results.values()} == {"unfit"}
    assert "the original function does not run here" in results["lacking"].why
    # What is unfit has no agent, so that the other arm would only try it again.
    (wrong,) = await arm(tmp_path, tmp_path, EMPTY, split, InstanceSelection(ids=[row["test_case_id"]]))
    assert (wrong.outcome, wrong.score) == ("submitted", 0.0), (wrong.why, wrong.details)


def test_without_a_jdk_java_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (instance,) = loaded(tmp_path, JAVA, split="java")
    monkeypatch.setenv("PATH", "/nowhere")
    assert BIOCODER.skipped(instance) == "javac and java not installed (Debian: python3, default-jdk-headless)"

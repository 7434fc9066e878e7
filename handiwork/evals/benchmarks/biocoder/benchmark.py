"""BioCoder: functions of bioinformatics repositories, in Python and Java, compared with the originals on random input.

The rule is upstream's (https://github.com/gersteinlab/BioCoder, evaluation, FuzzerTester): the agent's function and the
original are put into the same context, whose slots are filled at random. Both programs must exit with 0 within 30 s and
print the same, but for white space at the ends, in every one of 1,000 cases. That is the number of the paper;
upstream's own program runs 10 cases, because it ignores the field in which the number is given to it.

It differs from upstream in this. Equal cases run once, so that a context with few values takes little time. The cases
are drawn from the instance's id, so every run has the same. The two functions run in sandboxes of their own, so neither
sees the other's. The 30 s are CPU time, the same on a busy machine. Slots of the type bool have the value they name in
Python; upstream's are always true. The original of an instance must run here in every case and print the same
twice, or else the instance is unfit; this is tried once and kept in the cache. Contexts import packages such as numpy,
pysam and scikit-learn, which this machine's Python must have, and Java's contexts need upstream's jars, as files of the
data folder's ``jars``.

The agent reads upstream's summary of the function and the code of the context that comes before it; upstream's later
variant for agents has the whole repository, which is not part of the data.
"""

from __future__ import annotations

import hashlib
import json
import random
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pydantic import TypeAdapter, ValidationError

from handiwork.evals.benchmark import Benchmark, Instance, Rollout, Score, UnfitError
from handiwork.evals.benchmarks.biocoder.programs import MARK, draw, program
from handiwork.evals.scoring import jsonlines
from handiwork.evals.scoring.answers import read_answer
from handiwork.evals.scoring.execution import GRACE, PATIENCE, new_sandbox, run_script, write_file
from handiwork.events.action import AgentFinishAction
from handiwork.events.base import Action
from handiwork.paths import cache_dir
from handiwork.sandbox.base import Sandbox

FILE = "biocoder_public.jsonl"
FIELDS = ("test_case_id", "language", "repository", "promptSummaryOnly", "signature", "contextCode", "goldenCode")
JARS = "jars"

CASES = 1000
"""The cases of an instance, before equal ones are left out."""

SECONDS = 30
"""The CPU time of a program in one case."""

FIRST = 10
"""The cases that run before all others: a wrong function mostly shows in them."""

_COMPILE_SECONDS = 120
_LINE = TypeAdapter(tuple[int, str, str, str])


@dataclass(frozen=True, slots=True)
class _Language:
    programs: tuple[str, ...]
    source: str
    solution: str
    context: str
    compiler: str
    command: str


_LANGUAGES = {
    "python": _Language(("python3",), "main.py", "solution.py", "context.py", "", "python3 main.py"),
    "java": _Language(
        ("javac", "java"),
        "Main.java",
        "solution.java",
        "context.java",
        "javac -nowarn -cp {jars} Main.java",
        "java -cp {jars} Main",
    ),
}


class BioCoder(Benchmark):
    """Functions to write, in Python or Java; the share of those that print the same as the originals."""

    name = "biocoder"
    title = "BioCoder"
    size = "python 157, java 50"
    source = "https://huggingface.co/datasets/lilbillbiscuit/biocoder_public"
    licence = "CC BY 4.0; functions under their repositories' licences"
    citation = "Tang et al. 2024, BioCoder: A Benchmark for Bioinformatics Code Generation, arXiv:2308.16458"
    metric = "pass@1"
    scoring_seconds = 4.0 * CASES * SECONDS  # the original twice to check it, the original and the function
    splits: ClassVar[tuple[str, ...]] = tuple(_LANGUAGES)

    def files(self, split: str) -> Mapping[str, str]:
        """Return the rows of both languages; upstream has them in another format."""
        return {FILE: ""}

    def further_files(self, split: str) -> Sequence[str]:
        """Return the folder with the libraries of Java's contexts."""
        return (JARS,)

    def load(self, data: Path, split: str) -> list[Instance]:
        """Return the functions in a language, those of a repository as one group. Raises DataError, OSError."""
        rows = [row for row in jsonlines.read(data / FILE, FIELDS) if row["language"].lower() == split]
        jars = sorted(map(str, (data / JARS).glob("*.jar")))
        return [Instance(row["test_case_id"], {**row, "jars": jars}, row["repository"]) for row in rows]

    def skipped(self, instance: Instance) -> str:
        """Return the programs that this machine lacks."""
        missing = [name for name in _language(instance).programs if shutil.which(name) is None]
        if not missing:
            return ""
        return f"{' and '.join(missing)} not installed (Debian: python3, default-jdk-headless)"

    def prepare(self, instance: Instance, workspace: Path) -> None:
        """Write the code that comes before the function."""
        before = instance.row["contextCode"].partition(MARK)[0]
        (workspace / _language(instance).context).write_text(f"{before.rstrip()}\n")

    async def set_up(self, instance: Instance, sandbox: Sandbox) -> None:
        """Check that the original runs here in every case, and prints the same twice.

        The scorer may see only the first cases of a wrong function: an original that fails in a later one would leave
        right functions without a score, and wrong ones with 0. If it prints something else each time in a later one,
        right functions would have 0 too. Raises UnfitError, DataError, SandboxError.
        """
        row, cases = instance.row, cases_of(instance, CASES)
        checked = json.dumps([row["contextCode"], row["goldenCode"], row["jars"], cases])
        mark = cache_dir() / "biocoder" / hashlib.sha256(checked.encode()).hexdigest()[:20]
        if mark.exists():
            return
        printed = await run(instance, row["goldenCode"], [*cases, *cases])
        if (last := printed[-1]).failed:
            raise UnfitError(f"the original function does not run here: {last.errors.strip() or last.output}")
        digests = [one.digest for one in printed]
        if digests[: len(cases)] != digests[len(cases) :]:
            raise UnfitError("the original function prints something else each time")
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()

    def instruction(self, instance: Instance) -> str:
        """Return upstream's summary of the function, and the file to write it to."""
        language, row = _language(instance), instance.row
        return (
            f"{row['promptSummaryOnly'].strip()}\n\nThe signature is `{row['signature'].strip()}`. Write the function "
            f"into {language.solution}, and nothing else there: no imports, no class around it, no main program. The "
            f"file {language.context} has the code before it, whose imports and definitions it may use."
        )

    async def solve(self, instance: Instance, sandbox: Sandbox) -> Action:
        """Return the end with an empty answer, after writing the original function."""
        await write_file(sandbox, _language(instance).solution, instance.row["goldenCode"].encode())
        return AgentFinishAction(outputs={"message": ""})

    async def score(self, rollout: Rollout) -> Score:
        """Score 1 if the function in the workspace prints the same as the original in all cases."""
        name = _language(rollout.instance).solution
        function = await read_answer(rollout.sandbox, name)
        if not function.strip():
            return Score(0.0, details={"why": f"there is no {name}"})
        why = await difference(rollout.instance, function)
        return Score(float(not why), function, {"why": why})


@dataclass(frozen=True, slots=True)
class Printed:
    """The result of a program in one case: ``digest`` is the hash of its output, whose end is ``output``."""

    exit_code: int
    digest: str
    output: str
    errors: str

    @property
    def failed(self) -> bool:
        """Whether the program failed, or was ended at its time limit."""
        return self.exit_code != 0


async def difference(instance: Instance, function: str) -> str:
    """Return the first difference between a function and the original, "" if there is none.

    Raises DataError, SandboxError, and UnfitError if the original fails.
    """
    cases = cases_of(instance, CASES)
    for some in (cases[:FIRST], cases[FIRST:]):
        if not some:
            continue
        originals = await run(instance, instance.row["goldenCode"], some)
        if failed := next((one for one in originals if one.failed), None):
            raise UnfitError(f"the original function fails in a case: {failed.errors.strip() or failed.output}")
        # A function that fails has printed nothing for the cases after that.
        for case, one, original in zip(some, await run(instance, function, some), originals, strict=False):
            if one.failed:
                return f"it fails for {json.dumps(case)}: {one.errors.strip() or one.output}"
            if one.digest != original.digest:
                return f"for {json.dumps(case)} it prints {one.output!r}, and the original {original.output!r}"
    return ""


def cases_of(instance: Instance, number: int) -> list[dict[str, str]]:
    """Return the different ones of so many random cases, which the instance's id decides. Raises DataError."""
    source = random.Random(instance.id)
    drawn = (draw(instance.row["contextCode"], source) for _ in range(number))
    return list({json.dumps(case): case for case in drawn}.values())


async def run(instance: Instance, function: str, cases: Sequence[Mapping[str, str]]) -> list[Printed]:
    """Run a function in its context in a new sandbox, once for each case until one fails.

    Raises DataError, SandboxError.
    """
    language = _language(instance)
    jars = [Path(jar) for jar in instance.row["jars"]]
    path = shlex.quote(":".join([".", *map(str, jars)]))
    async with new_sandbox("bubblewrap", read_only=jars) as (sandbox, workspace):
        code = program(instance.row["contextCode"], function, instance.row["language"].lower())
        (workspace / language.source).write_text(code)
        (workspace / "cases.json").write_text(json.dumps(cases))
        shutil.copyfile(Path(__file__).with_name("runner.py"), workspace / "runner.py")
        await sandbox.start()
        if language.compiler:
            compiled = await run_script(sandbox, language.compiler.format(jars=path), _COMPILE_SECONDS)
            if compiled.exit_code:
                return [Printed(compiled.exit_code, "", "", compiled.output[-2000:])]
        command = f"python3 -I runner.py cases.json {SECONDS} {PATIENCE * SECONDS} {language.command.format(jars=path)}"
        done = await run_script(sandbox, command, PATIENCE * SECONDS * len(cases) + GRACE)
    try:
        printed = [Printed(*_LINE.validate_json(line)) for line in done.output.splitlines()]
    except ValidationError:
        printed = []
    if (
        done.exit_code
        or len(printed) > len(cases)
        or not (len(printed) == len(cases) or (printed and printed[-1].failed))
    ):
        # The program has ended the runner, or written into its output: it is a process of the same user.
        return [Printed(done.exit_code or 1, "", "", done.output[-2000:])]
    return printed


def _language(instance: Instance) -> _Language:
    return _LANGUAGES[instance.row["language"].lower()]

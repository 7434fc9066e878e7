"""HumanEvalFix: a function with a bug and its tests, without further hints."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from handiwork.evals.benchmark import Benchmark, DataError, Instance, Rollout, Score
from handiwork.evals.harness import FOLDER
from handiwork.evals.scoring import jsonlines
from handiwork.evals.scoring.answers import read_answer
from handiwork.evals.scoring.execution import write_file
from handiwork.evals.scoring.programs import Tested, new_nonce, run_program, run_tests
from handiwork.events.action import AgentFinishAction
from handiwork.events.base import Action
from handiwork.sandbox.base import Sandbox

_RAW = "https://raw.githubusercontent.com/bigcode-project/octopack/e17a8f6470264286bc6a52eb8263582083bf3bf6/"
FIELDS = ("task_id", "declaration", "buggy_solution", "canonical_solution", "bug_type", "entry_point", "test")
_GOPATH = "/usr/share/gocode"
_TESTIFY = f"{_GOPATH}/src/github.com/stretchr/testify/assert"
_CPP = "$(command -v g++ c++ | head -n 1) -std=c++11"
_RUST = "rustc --edition 2021 -A warnings --test"
_CRATES = re.compile(r"^use (rand::Rng|regex::Regex|md5);\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Language:
    """The settings of one language.

    The agent runs ``command`` on the files ``solution`` and ``tests``; ``programs`` are its requirements, "a|b" meaning
    either. ``seconds`` limits compiling, if any, and running together in the scorer, which runs ``scoring`` with
    ``last_statement`` at the end of the tests.
    """

    folder: str
    solution: str
    tests: str
    programs: tuple[str, ...]
    command: str
    seconds: float
    scoring: str = ""
    last_statement: str = ""


# The official limits are 10 s (Python, JavaScript), 20 s (Go), 60 s for compiling and again for running (C++), 5 times
# 5 s for compiling and 10 s for running (Java), 300 s (Rust).
LANGUAGES = {
    "Python": Language("python", "solution.py", "test_solution.py", ("python3",), "python3 test_solution.py", 10),
    "JavaScript": Language("js", "solution.js", "test_solution.js", ("node",), "node test_solution.js", 10),
    "Java": Language(
        "java",
        "Solution.java",
        "Main.java",
        ("javac", "java"),
        "javac Main.java && java Main",
        35,
        "javac Main.java && rm *.java && java Main",
        'System.out.println("{nonce}");',
    ),
    "Go": Language(
        *("go", "solution.go", "solution_test.go", ("go",)),
        f"GO111MODULE=off GOPATH={_GOPATH} go test solution.go solution_test.go",
        120,
        f"export GO111MODULE=off GOPATH={_GOPATH}; go test -c -o tests solution.go {{tests}} && rm *.go && "
        "./tests -test.v",
        'println("{nonce}")',
    ),
    "CPP": Language(
        *("cpp", "solution.cpp", "test_solution.cpp", ("g++|c++",)),
        f"{_CPP} test_solution.cpp -o tests && ./tests",
        120,
        f"{_CPP} -x c++ - -o tests < {{tests}} && rm *.cpp && ./tests",
        'puts("{nonce}");',
    ),
    "Rust": Language(
        *("rust", "solution.rs", "test_solution.rs", ("rustc",)),
        f"{_RUST} test_solution.rs -o tests && ./tests",
        300,
        f"{_RUST} --crate-name tests {{tests}} -o tests && rm *.rs && ./tests --nocapture",
        'println!("\\n{nonce}");',
    ),
}
"""Settings by the first part of an instance's id."""


class HumanEvalFix(Benchmark):
    """A function with a bug and its tests as files; the repaired file is run with the benchmark's own tests.

    The rule is that of the benchmark's scorer (bigcode-evaluation-harness, humanevalpack.py, and the metric
    code_eval_octopack): the program made of solution and test exits with success within the language's time; for
    JavaScript it also prints nothing, because console.assert only prints. As there, the code after ``int main`` in C++
    and an empty class Main in Java are removed. Three things differ. The scorer puts its own imports before an answer
    that is only a function body; here the file is used as the agent left it. Rust and Go have no packages from a
    registry here: see ``skipped``. And an exit code alone is no pass: the tests print a nonce at their end. Tests in
    Python and JavaScript run in a process separate from the solution and get copies of its values; in the other
    languages both are one program, which could find the nonce in itself.

    Upstream's own flaws stay: the bug of JavaScript/10 passes its tests, so the arm "empty" scores 1 on it, and the
    declaration of CPP/38 contains half of the function's body, so that its file does not compile as given.
    """

    name = "humanevalfix"
    title = "HumanEvalFix"
    size = "164 in each of 6 languages"
    source = "https://huggingface.co/datasets/bigcode/humanevalpack"
    licence = "MIT"
    citation = "Muennighoff et al., OctoPack: Instruction Tuning Code Large Language Models, 2023, arXiv:2308.07124"
    metric = "pass@1"
    splits = tuple(language.folder for language in LANGUAGES.values())

    def files(self, split: str) -> Mapping[str, str]:
        """Return the one file of the language."""
        upstream = f"{_RAW}evaluation/create/humaneval-x/data/{split}/data/humanevalpack.jsonl"
        return {f"humanevalpack_{split}.jsonl": upstream}

    def load(self, data: Path, split: str) -> list[Instance]:
        """Return the tasks of a language, in the file's order. Raises DataError, OSError."""
        rows = jsonlines.read(data / f"humanevalpack_{split}.jsonl", FIELDS)
        return [Instance(row["task_id"], row, row["bug_type"]) for row in rows]

    def skipped(self, instance: Instance) -> str:
        """Return the compilers, headers or packages for the instance that this machine lacks."""
        language = _language(instance)
        missing = [program for program in language.programs if not any(map(shutil.which, program.split("|")))]
        if missing:
            return f"{' and '.join(missing).replace('|', ' or ')} not installed"
        return _missing_requirement(instance.row, language)

    def prepare(self, instance: Instance, workspace: Path) -> None:
        """Write the function with its bug, and its tests."""
        language = _language(instance)
        (workspace / language.solution).write_text(solution_of(instance.row, "buggy_solution"))
        (workspace / language.tests).write_text(_tests(instance.row, language))

    def instruction(self, instance: Instance) -> str:
        """Return the task: the failing command, and the function to repair."""
        language, entry = _language(instance), instance.row["entry_point"]
        command = _linked(language.command, instance.row)
        return f"`{command}` fails: there is a bug in {language.solution}. Repair the function {entry}."

    async def solve(self, instance: Instance, sandbox: Sandbox) -> Action:
        """Return the end with an empty answer, after writing the canonical solution."""
        solution = solution_of(instance.row, "canonical_solution")
        await write_file(sandbox, _language(instance).solution, solution.encode())
        return AgentFinishAction(outputs={"message": ""})

    async def score(self, rollout: Rollout) -> Score:
        """Score 1 if the workspace's solution passes the benchmark's own tests."""
        name = _language(rollout.instance).solution
        solution = await read_answer(rollout.sandbox, name)
        if not solution.strip():
            return Score(0.0, details={"output": f"there is no {name}"})
        result = await run(rollout.instance, solution)
        return Score(float(result.passed), solution, {"output": result.output[-2000:]})


async def run(instance: Instance, solution: str) -> Tested:
    """Run the benchmark's tests of a solution in a new sandbox. Raises SandboxError."""
    row, language = instance.row, _language(instance)
    if language.folder == "python":
        return await run_program(solution, row["test"], language.seconds)
    nonce = new_nonce()
    if language.folder == "js":
        case = {"tests": row["test"], "names": _javascript_names(row), "nonce": nonce}
        programs = {name: (FOLDER / name).read_text() for name in ("tester.js", "server.js")}
        files = {**programs, "case.json": json.dumps(case), "solution.js": solution}
        command = "mkfifo questions answers && node tester.js < /dev/null"
        return await run_tests(files, command, nonce, language.seconds, silent=True)
    # The file's name cannot be guessed when the solution is compiled, and the file is gone when it runs.
    tests = language.tests if language.folder == "java" else f"{nonce[:8]}_{language.tests}"
    files = {
        language.solution: without_main(solution, language),
        tests: with_nonce(_tests(row, language), language, nonce),
    }
    return await run_tests(files, _linked(language.scoring, row).format(tests=tests), nonce, language.seconds)


def _linked(command: str, row: Mapping[str, Any]) -> str:
    """Return a command that links OpenSSL too if the row's code includes it; upstream's always does."""
    return command.replace(" -o tests", " -o tests -lcrypto") if "<openssl/" in row["declaration"] else command


def without_main(solution: str, language: Language) -> str:
    """Return a solution without the program's entry point, as upstream does, because the tests bring their own."""
    match language.folder:
        case "cpp":
            return solution.split("int main")[0]
        case "java":
            return solution.replace("public class Main {\n    }", "")
        case _:
            return solution


def with_nonce(tests: str, language: Language, nonce: str) -> str:
    """Return the tests with a last statement in their one function that prints the nonce."""
    closing = re.search(r"\}\s*\}\s*$" if language.folder in ("java", "rust") else r"\}\s*$", tests)
    if closing is None:
        raise DataError(f"the tests of {language.folder} end in no function: get the file again")
    return f"{tests[: closing.start()]}\n{language.last_statement.format(nonce=nonce)}\n{closing[0]}"


def solution_of(row: Mapping[str, Any], field: str) -> str:
    """Return the solution's file with the body in that field of the row: ``buggy_solution``, ``canonical_solution``."""
    language, code = LANGUAGES[row["task_id"].split("/")[0]], row["declaration"] + row[field]
    match language.folder:
        case "js":
            return f"{code.rstrip()}\n\nmodule.exports = {{ {', '.join(_javascript_names(row))} }}\n"
        case "go":
            return f"package main\n{_go_imports(row, code)}{code}"
        case "rust":
            return _CRATES.sub("", code)
        case _:
            return code


def _javascript_names(row: Mapping[str, Any]) -> list[str]:
    """Return the names defined by the row's own code, which its tests use."""
    code = row["declaration"] + row["buggy_solution"]
    return re.findall(r"^(?:const|let|var|function)\s+(\w+)", code, re.MULTILINE)


def _language(instance: Instance) -> Language:
    name = instance.id.split("/")[0]
    if name not in LANGUAGES:
        raise DataError(f"{instance.id} names no language of HumanEvalFix: it must begin with {', '.join(LANGUAGES)}")
    return LANGUAGES[name]


def _tests(row: Mapping[str, Any], language: Language) -> str:
    """Return the file with the benchmark's tests, which imports the solution's file."""
    tests = row["test"].strip()
    match language.folder:
        case "python":
            head = "from solution import *\n"
        case "js":
            head = f'const {{ {", ".join(_javascript_names(row))} }} = require("./solution")\n'
        case "java":
            head = "\n".join(re.findall(r"^import .*;", row["declaration"], re.MULTILINE)) + "\n"
        case "cpp":
            head = f'#include "{language.solution}"\n#include <stdio.h>\n'
        case "rust":
            head = f'include!("{language.solution}");\n'
        case _:
            head = f"package main\n{_go_imports(row, tests, 'testing', 'github.com/stretchr/testify/assert')}"
    return f"{head}\n{tests}\n"


def _go_imports(row: Mapping[str, Any], code: str, *more: str) -> str:
    """Return the row's imports that the code uses: Go rejects unused ones."""
    packages: list[str] = re.findall(r'"([^"\s]+)"', f"{row['import']}\n{row['test_setup']}")
    used = {name for name in packages if re.search(rf"\b{name.rsplit('/')[-1]}\.", code)} | set(more)
    return "".join(f'import "{name}"\n' for name in sorted(used)) + "\n"


def _missing_requirement(row: Mapping[str, Any], language: Language) -> str:
    """Return a task's missing requirements besides the compiler; those visible in the sandbox are below /usr."""
    code = row["declaration"] + row["canonical_solution"] + row["test"]
    match language.folder:
        case "cpp":
            headers: list[str] = re.findall(r"#include\s*<((?:boost|openssl)/[^>]+)>", code)
            missing = [name for name in headers if not Path("/usr/include", name).exists()]
            return f"the headers {', '.join(missing)} are not installed" if missing else ""
        case "rust":
            used = sorted(set(re.findall(r"\b(rand(?=::)|Regex(?=::)|md5(?=::))", _CRATES.sub("", code))))
            return f"it needs a crate for {', '.join(used)}, and rustc alone has none" if used else ""
        case "js":
            used = sorted(set(re.findall(r"""require\(['"](js-md5)['"]\)""", code)))
            return f"it needs the npm package {', '.join(used)}" if used else ""
        case "go":
            installed = Path(_TESTIFY).is_dir()
            return "" if installed else f"{_TESTIFY} is not there (Debian: golang-github-stretchr-testify-dev)"
        case _:
            return ""

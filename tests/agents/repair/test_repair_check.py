"""Where the check comes from, what belongs to it, and how its outcomes compare."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from handiwork.agents.repair.check import is_missing, is_protected, named_check, named_test, runner, runner_files
from handiwork.agents.repair.outcome import Outcome, outcome_of
from handiwork.events.observation import CmdOutputObservation


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("`make test` fails", "make test"),
        ("`python3 app.py` is fine, `python3 -m pytest -q` is not", "python3 -m pytest -q"),
        ("`GO111MODULE=off go test ./...` fails", "GO111MODULE=off go test ./..."),
        ("`sh check.sh` fails", "sh check.sh"),
        ("`./run_tests.sh` fails", "./run_tests.sh"),
        ("`npm run test:unit` fails", "npm run test:unit"),
        ("`cd web && npm test` fails", "cd web && npm test"),
        ("`cd web && rm -rf build` fails", None),
        ("`npm run deploy` fails, and `git push`, and `rm -rf build`, and `make clean`", None),
        ("`area` is wrong: it has `return a + b`", None),
        ("make test fails", None),
    ],
)
def test_the_check_that_a_task_names(text: str, expected: str | None) -> None:
    assert named_check(text) == expected


@pytest.mark.parametrize("command", ["python3 check_links.py FILE", "./verify.sh <dir>", "sh test.sh [name]"])
def test_the_form_of_a_command_is_no_check(command: str) -> None:
    assert named_test(f"Write a program that is called as `{command}`.") is None
    assert named_test(f"It is called as `{command}`, and `make test` passes.") == "make test"


def test_all_packages_of_go_are_no_placeholder() -> None:
    assert named_test("Fix the parser so that `go test ./...` passes.") == "go test ./..."
    assert named_test("Run it as `pytest ...`.") is None


@pytest.mark.parametrize(
    "command", ["ctest", "tox", "vendor/bin/phpunit", ".venv/bin/pytest -q", ".venv/bin/python -m pytest"]
)
def test_a_named_test_program_is_the_test_without_the_word_and_from_any_folder(command: str) -> None:
    assert named_test(f"See that `{command}` passes.") == command


@pytest.mark.parametrize("command", ["./test.sh ci", "make install check", "pytest ci", "jest add"])
def test_a_check_may_have_the_argument_of_an_installation(command: str) -> None:
    assert named_check(f"See that `{command}` passes.") == command


@pytest.mark.parametrize("folder", ["test/bats", "tests/behave", "tests/jest"])
def test_a_folder_with_the_name_of_a_test_program_is_no_check(folder: str) -> None:
    assert named_test(f"Add the helper to `{folder}`.") is None


@pytest.mark.parametrize(
    "command",
    [
        *("npm install --save-dev jest", "npm i vitest", "python3 -m pip install pytest", "uv add --dev pytest"),
        *("poetry install --with test", "composer require --dev phpunit/phpunit"),
    ],
)
def test_an_installation_of_test_programs_is_no_check(command: str) -> None:
    assert named_check(f"Begin with `{command}`.") is None
    assert named_test(f"Begin with `{command}`, then `make test`.") == "make test"
    assert named_test(f"Run `{command} && make test`.") == f"{command} && make test"


UNITTEST = "import unittest\n\n\nclass TestA(unittest.TestCase):\n    def test_a(self): pass\n"
DJANGO = "from django.test import TestCase\n\n\nclass ShopTest(TestCase):\n    def test_a(self): pass\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"Makefile": "all:\n\ttrue\ncheck: all\n\ttrue\n", "go.mod": ""}, "make check"),
        ({"Makefile": "all:\n\ttrue\n", "Cargo.toml": ""}, "cargo test --no-fail-fast"),
        ({"package.json": '{"scripts": {"test": "node --test"}}'}, "npm test --silent"),
        ({"package.json": '{"scripts": {"test": "vitest"}}'}, "CI=true npm test --silent"),
        ({"package.json": '{"scripts": {"test": "vitest run"}}'}, "npm test --silent"),
        ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\""}}'}, None),
        (
            {"package.json": '{"scripts": {"test": "jest"}}', "shop/a.py": "", "shop/a.js": "", "test_a.py": UNITTEST},
            "python3 -m unittest",
        ),
        (
            {"package.json": '{"scripts": {"test": "jest"}}', "a.js": "", "b.ts": "", "test_a.py": UNITTEST},
            "npm test --silent",
        ),
        ({"go.mod": ""}, "go test ./..."),
        ({"pom.xml": ""}, "mvn -q -fae test"),
        ({"build.gradle": ""}, "gradle test --continue"),
        ({"build.gradle.kts": ""}, "gradle test --continue"),
        ({"test_a.py": UNITTEST}, "python3 -m unittest"),
        ({"tests/test_a.py": UNITTEST}, "python3 -m unittest discover -s tests"),
        ({"tests/test_a.py": UNITTEST, "tests/__init__.py": ""}, "python3 -m unittest discover -s tests -t ."),
        ({"tests/test_a.py": "def test_a():\n    assert True\n"}, "python3 -m pytest -q"),
        ({"test_a.py": "from a import b\nassert b() == 1\n"}, "python3 test_a.py"),
        ({"test_a.py": "from unittest.mock import Mock\n\n\ndef test_a(): ...\n"}, "python3 -m pytest -q"),
        ({"test_a.py": UNITTEST, "test_b.py": "def test_b(): ...\n"}, "python3 -m pytest -q"),
        ({"tests/constants.py": "A = 1\n", "tests/test_a.py": "def test_a(): ...\n"}, "python3 -m pytest -q"),
        ({"tests/constants.py": "A = 1\n"}, "python3 -m pytest -q"),
        ({"tests/helpers.py": "def f(): ...\n", "tests/test_a.py": UNITTEST}, "python3 -m unittest discover -s tests"),
        ({"tox.ini": "[flake8]\n", "test_a.py": UNITTEST}, "python3 -m unittest"),
        ({"manage.py": "", "shop/tests.py": DJANGO}, "python3 manage.py test"),
        ({"manage.py": "", "shop/tests.py": f"import pytest\n{DJANGO}"}, "python3 -m pytest -q"),
        ({"manage.py": "", "test_a.py": UNITTEST}, "python3 -m unittest"),
        ({"src/a/__init__.py": "", "test_a.py": "def test_a(): ...\n"}, "PYTHONPATH=src python3 -m pytest -q"),
        ({"src/types.py": "", "src/a.py": "", "test_a.py": UNITTEST}, "python3 -m unittest"),
        ({"src/__init__.py": "", "src/a.py": "", "test_a.py": UNITTEST}, "python3 -m unittest"),
        ({"src/a.py": "", "src/b/c.pyx": "", "test_a.py": UNITTEST}, "python3 -m unittest"),
        ({"src/a.js": "", "test_a.py": UNITTEST}, "python3 -m unittest"),
        ({"tox.ini": "[tox]\n", "a.py": ""}, "tox -q"),
        ({"tests/run.sh": "exit 1\n"}, "sh tests/run.sh"),
        ({"tests/test_a.sh": "#!/usr/bin/env bash\nexit 1\n"}, "bash tests/test_a.sh"),
        ({"tests/clean.sh": "rm data.db\n", "tests/fixtures/fill.sh": "exit 1\n"}, None),
        ({"a.test.js": ""}, "node --test"),
        ({"packages/a/a.test.js": "", "packages/a/package.json": '{"scripts": {"test": "jest"}}'}, None),
        ({"a.py": "", "README.md": ""}, None),
    ],
)
def test_the_runner_that_a_project_has(files: dict[str, str], expected: str | None) -> None:
    listed = sorted(files)
    assert runner(listed, {path: files[path] for path in runner_files(listed)}) == expected


@pytest.mark.parametrize(
    ("tests", "packages", "commands"),
    [
        (["test_a.py", "tests/test_b.py"], ["tests"], 1),
        (["test_a.py", "tests/test_b.py"], [], 2),
        (["tests/api/test_a.py", "tests/core/test_b.py"], [], 2),
        (["tests/api/test_a.py", "tests/core/test_b.py"], ["tests/api", "tests/core"], 1),
        (["tests/api/test_a.py", "tests/core/test_b.py"], ["tests", "tests/api"], 2),
        (["src/a/tests/test_a.py", "src/a/tests/more/test_b.py"], ["src/a", "src/a/tests", "src/a/tests/more"], 1),
        (["a_test.py", "tests/test_b.py", "tests/TestC.py"], ["tests"], 1),
        (["tests/a.py", "tests/b.py"], [], 1),
    ],
)
def test_unittest_runs_the_tests_of_all_folders(
    tmp_path: Path, tests: list[str], packages: list[str], commands: int
) -> None:
    files = {**dict.fromkeys(tests, UNITTEST), **{f"{package}/__init__.py": "" for package in packages}}
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    listed = sorted(files)
    check = runner(listed, {path: files[path] for path in runner_files(listed)})
    assert check is not None
    ended = subprocess.run(check, shell=True, cwd=tmp_path, capture_output=True, text=True, check=True)
    ran = re.findall(r"Ran (\d+) test", ended.stderr)
    assert (len(ran), sum(map(int, ran))) == (commands, len(tests))


@pytest.mark.parametrize(
    ("path", "check", "files", "expected"),
    [
        ("test_a.py", "pytest", {}, True),
        ("tests/helpers.py", "pytest", {}, True),
        ("a.test.js", "npm test", {}, True),
        ("Makefile", "make test", {}, True),
        ("package.json", "npm test", {}, True),
        ("web/jest.config.js", "npm test", {}, True),
        (".mocharc.cjs", "npm test", {}, True),
        ("web/jester.js", "npm test", {}, False),
        ("verify_me.sh", "sh verify_me.sh", {"verify_me.sh": "[ 1 = 2 ] || exit 1\n"}, True),
        ("Main.java", "java Main.java", {"Main.java": "throw new AssertionError();"}, True),
        ("app.py", "python3 app.py", {"app.py": "print(1 / 0)\n"}, False),
        ("a.go", "go test a.go a_test.go", {"a.go": "// assert nothing\n"}, False),
        ("latest.py", "pytest", {}, False),
    ],
)
def test_what_belongs_to_the_check_is_not_repaired(
    path: str, check: str, files: dict[str, str], expected: bool
) -> None:
    assert is_protected(path, check, [path, "a_test.go"], files) == expected


def test_a_check_whose_program_is_not_installed_or_that_has_no_tests() -> None:
    assert is_missing("cargo test", "bash: line 1: cargo: command not found\n")
    assert is_missing("python3 -m pytest -q", "/usr/bin/python3: No module named pytest\n")
    assert is_missing("npm test --silent", "sh: 1: jest: not found\n")
    assert is_missing("make test", "make: bats: No such file or directory\nmake: *** [Makefile:2: test] Error 127\n")
    assert is_missing("python3 -m pytest -q", "\nno tests ran in 0.01s\n")
    assert is_missing("python3 -m pytest", "collected 0 items\n\n===== no tests ran in 0.00s =====\n")
    assert is_missing(
        "make test", "ImportError: Start directory is not importable: 'tests'\nmake: *** [Makefile:2] Error 1\n"
    )
    assert is_missing("make test", "error: unrecognized arguments: --cov\n  inifile: /a/pytest.ini\n  rootdir: /a\n")
    assert not is_missing("npm test", "sh: 1: husky: not found\n\n1) adds\n2) subtracts\n\n2 passing\n1 failing\n")
    assert not is_missing("sh test.sh", "test.sh: 2: shout: not found\n")
    assert not is_missing("python3 -m pytest -q", "E   ModuleNotFoundError: No module named 'shop'\n")


def test_tests_in_several_folders_find_the_modules_in_src(tmp_path: Path) -> None:
    test = UNITTEST.replace("import unittest", "import shop\nimport unittest", 1)
    files = {"src/shop.py": "", "test_a.py": test, "tests/test_b.py": test}
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    check = runner(list(files), files)
    assert check is not None
    ended = subprocess.run(check, shell=True, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ended.stderr.count("Ran 1 test") == 2


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["addopts = --not-installed", "required_plugins = not-installed"])
def test_settings_of_pytest_that_need_a_plugin_that_is_not_installed(tmp_path: Path, setting: str) -> None:
    (tmp_path / "pytest.ini").write_text(f"[pytest]\n{setting}\n")
    (tmp_path / "test_a.py").write_text("def test_a(): ...\n")
    command = [sys.executable, "-m", "pytest", "-q"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert is_missing("python3 -m pytest -q", ended.stdout + ended.stderr)


TWO = "===== 2 failed, 3 passed in 0.1s ====="


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("1 failed, 4 passed", TWO),
        (TWO, "1 error"),
        ("Ran 5 tests in 0.1s\n\nFAILED (failures=1)", "Ran 5 tests in 0.1s\n\nFAILED (failures=1, errors=1)"),
        ("# pass 4\n# fail 1", "# pass 3\n# fail 2"),
        ("ℹ pass 4\nℹ fail 1", "ℹ pass 3\nℹ fail 2"),
        ("test result: FAILED. 4 passed; 1 failed", "error: could not compile `x` due to 2 previous errors"),
        ("--- FAIL: TestA", "--- FAIL: TestA\n--- FAIL: TestB"),
        ("ok 1\nnot ok 2", "not ok 1\nnot ok 2"),
        ("1 failed", "no summary"),
        ("2 errors", "ERROR collecting test_a.py\n1 error"),
        ("--- FAIL: TestA\n--- FAIL: TestB", "--- FAIL: TestA\npanic: nil map"),
        ("--- FAIL: TestA\n--- FAIL: TestB", "FAIL\ta [build failed]"),
        ("FAIL\ta [build failed]", "FAIL\ta [setup failed]\nFAIL\tb [build failed]"),
    ],
)
def test_an_outcome_with_fewer_failures_is_better(better: str, worse: str) -> None:
    assert Outcome(1, better).is_better_than(Outcome(1, worse))
    assert not Outcome(1, worse).is_better_than(Outcome(1, better))


@pytest.mark.parametrize(
    ("output", "other"),
    [
        (TWO, TWO),
        ("a crash", "another crash"),
        ("# pass 0\n# fail 1", "# pass 3\n# fail 2"),
        ("# pass 0\n# fail 1", "# pass 0\n# fail 2"),
        ("1 failed", TWO),
        ("ERROR: a (unittest.loader._FailedTest.a)\nRan 1 test\nFAILED (errors=1)", "Ran 3 tests\nFAILED (errors=3)"),
        ("1 error", "Tests run: 3, Failures: 0, Errors: 3"),
        ("Test suite failed to run\nTest Suites: 1 failed\nTests:       0 total", "Tests:       3 failed, 3 total"),
        ("Test Files  1 failed (1)\n     Tests  no tests", "Test Files  1 failed (1)\n     Tests  3 failed (3)"),
        ("--- FAIL: TestA\nFAIL\tb [build failed]", "--- FAIL: TestA\n--- FAIL: TestB"),
        ("panic: nil map", "a crash"),
        ("Ran 5 tests\nFAILED (failures=1)", "Ran 5 tests\nOK\nRan 3 tests\nFAILED (failures=2)"),
    ],
    ids=[
        *("the same", "no summary", "fewer pass", "fewer tests run", "no passes", "unittest", "java", "jest", "vitest"),
        *("go", "nothing loads", "two runs"),
    ],
)
def test_an_outcome_that_fails_no_less_is_not_better(output: str, other: str) -> None:
    assert not Outcome(1, output).is_better_than(Outcome(1, other))


@pytest.mark.parametrize(
    ("output", "summary"),
    [
        ("\x1b[31m===== \x1b[31m\x1b[1m2 failed\x1b[0m, \x1b[32m3 passed\x1b[0m =====\x1b[0m", "exit code 1, 2 failed"),
        ("5 examples, \x1b[31m2 failures\x1b[0m", "exit code 1, 2 failed"),
    ],
    ids=["pytest", "rspec"],
)
def test_failures_are_counted_in_colours_too(output: str, summary: str) -> None:
    observation = CmdOutputObservation(command="check", content="", exit_code=1)
    assert outcome_of(observation, output, 1.0).summary == summary


@pytest.mark.parametrize(
    "output",
    ["\n".join(["--- FAIL: TestA (0.01s)", "x" * 90] * 99), "x\n" * 9000 + "ℹ pass 1\nℹ fail 99\n" + "x\n" * 9000],
)
def test_failures_are_counted_in_all_of_a_long_output(output: str) -> None:
    outcome = outcome_of(CmdOutputObservation(command="check", content="", exit_code=1), output, 1.0)
    assert outcome.summary == "exit code 1, 99 failed"
    assert len(outcome.output) < 8_000


def test_nothing_is_better_than_to_pass() -> None:
    assert Outcome(0, "").is_better_than(Outcome(1, "1 failed"))
    assert not Outcome(1, "1 failed").is_better_than(Outcome(0, ""))
    assert not Outcome(0, "").is_better_than(Outcome(0, ""))

"""The check that a repair must pass: its source, and the files that belong to it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

CHECKERS = {"pytest", "tox", "nox", "ctest", "rspec", "jest", "vitest", "mocha", "phpunit", "bats", "prove", "behave"}
"""Programs that only check."""

INTERPRETERS = {"python", "python3", "node", "sh", "bash", "zsh", "ruby", "perl", "php", "lua", "Rscript", "julia"}
"""Programs that run a file or module."""

COMPILERS = {"gcc", "g++", "cc", "c++", "clang", "clang++", "javac", "rustc"}
"""Programs whose output is run in the same command."""

TOOLS = {
    *("make", "npm", "npx", "pnpm", "yarn", "bun", "deno", "cargo", "go", "mvn", "./mvnw", "gradle", "./gradlew"),
    *("dotnet", "mix", "rake", "bundle", "composer", "uv", "poetry", "pdm", "hatch", "just", "task", "swift", "zig"),
}
"""Programs with many uses; in a check, one of their arguments names a test or a check."""

RUNNERS = (
    ("Makefile", r"^(test|check)\s*:", "make {0}"),
    ("justfile", r"^(test|check)\s*:", "just {0}"),
    ("package.json", r'"test"\s*:\s*"(?!echo \\"Error: no test)', "npm test --silent"),
    ("Cargo.toml", "", "cargo test"),
    ("go.mod", "", "go test ./..."),
    ("pom.xml", "", "mvn -q test"),
    ("build.gradle", "", "gradle test"),
    ("build.gradle.kts", "", "gradle test"),
    ("mix.exs", "", "mix test"),
    ("Package.swift", "", "swift test"),
    ("tox.ini", "", "tox -q"),
    ("noxfile.py", "", "nox"),
)
"""Test runners: a file of the project, a pattern in it, and the command."""

_QUOTED = re.compile(r"`([^`\n]+)`")
_ASSIGNMENTS = re.compile(r"^(?:[A-Za-z_]\w*=\S* +)+")
_CHECKS = re.compile(
    r"(?<![a-z])(?:tests?|pytest|unittest|jest|vitest|mocha|rspec|check|spec|verify|typecheck|vet|lint)(?![a-z])",
    re.IGNORECASE,
)
_TEST_NAME = re.compile(r"(?:^|[_.-])(?:tests?|specs?|conftest)(?:[_.-]|$)|^Test[A-Z]|Tests?$|^(?:checks?|verify)$")
_TEST_FOLDERS = {"test", "tests", "spec", "specs", "__tests__", "testing", "testdata"}
_ASSERTIONS = re.compile(r"\bassert|\bexpect\(|\bexit\s*\(?\s*1|Assert", re.MULTILINE)
_SETTINGS = {".toml", ".cfg", ".ini", ".lock", ".mod", ".sum", ".yml", ".yaml", ".mk", ".gradle", ".xml"}
_SETTINGS_FILES = {"Makefile", "GNUmakefile", "justfile", "package.json", "package-lock.json", "CMakeLists.txt"}


def named_check(text: str) -> str | None:
    """Return the check that the text names in backticks: one that mentions a test or check, else the first."""
    commands = _named_commands(text)
    return next(filter(_CHECKS.search, commands), commands[0] if commands else None)


def named_test(text: str) -> str | None:
    """Return the command in backticks that itself has a word for testing or checking."""
    return next(filter(_CHECKS.search, _named_commands(text)), None)


def _named_commands(text: str) -> list[str]:
    return [command for command in map(str.strip, _QUOTED.findall(text)) if _is_check(command)]


def runner_files(listed: Sequence[str]) -> list[str]:
    """Return the files to read before ``runner`` can tell the project's check."""
    names = [name for name, pattern, _ in RUNNERS if pattern and name in listed]
    return names + _python_tests(listed)[:1]


def runner(listed: Sequence[str], files: Mapping[str, str]) -> str | None:
    """Return the command of the project's test runner; None if the files listed, some of them read, show none."""
    for name, pattern, command in RUNNERS:
        if name in listed and (match := re.search(pattern, files.get(name, ""), re.MULTILINE)):
            return command.format(*match.groups())
    tests = [path for path in listed if is_test(path)]
    if python := _python_tests(listed):
        return _python_runner(python, listed, files)
    for suffix, command in ((".bats", "bats {0}"), (".sh", "sh {0}"), (".js", "node --test"), (".mjs", "node --test")):
        if chosen := [path for path in tests if path.endswith(suffix)]:
            return command.format(shlex.quote(chosen[0]))
    return "bundle exec rspec" if any(path.endswith("_spec.rb") for path in tests) else None


def programs(check: str) -> list[str]:
    """Return the program of the check, and the module that Python runs for it."""
    words = _ASSIGNMENTS.sub("", check).split()
    return words[:1] + words[2:3] if words[1:2] == ["-m"] else words[:1]


def is_missing(check: str, output: str) -> bool:
    """True if the check failed because its own program is not installed, as its output says."""
    program = "|".join(map(re.escape, programs(check)))
    return bool(
        re.search(rf"(?:^|[\s:])(?:{program}): (?:command )?not found|No module named '?(?:{program})\b", output)
    )


def is_test(path: str) -> bool:
    """True if the path is named like a test."""
    name = PurePosixPath(path)
    return bool(_TEST_NAME.search(name.stem)) or bool(_TEST_FOLDERS & set(name.parts[:-1]))


def named_files(check: str, listed: Sequence[str]) -> list[str]:
    """Return the files that the check's command names."""
    words = _words(check)
    return [path for path in listed if path in words]


def is_protected(path: str, check: str, listed: Sequence[str], files: Mapping[str, str]) -> bool:
    """True if the file belongs to the check: a test, a setting of a runner, or a program of the check itself.

    A file that the command names is such a program if it asserts something, and no test is named beside it.
    """
    name = PurePosixPath(path)
    if is_test(path) or name.name in _SETTINGS_FILES or name.suffix in _SETTINGS:
        return True
    if path not in _words(check) or any(map(is_test, named_files(check, listed))):
        return False
    return bool(_ASSERTIONS.search(files.get(path, "")))


def _words(check: str) -> set[str]:
    """Return the paths that the command may name, also those of modules in Python's notation."""
    words = {word.removeprefix("./") for word in re.split(r"[\s;&|()<>'\"=]+", check)}
    return words | {word.replace(".", "/") + ".py" for word in words}


def _python_tests(listed: Sequence[str]) -> list[str]:
    names = ((path, PurePosixPath(path)) for path in listed if is_test(path))
    return [path for path, name in names if name.suffix == ".py" and name.stem not in ("__init__", "conftest")]


def _is_check(command: str) -> bool:
    words = _ASSIGNMENTS.sub("", command).split()
    program = words[0] if words else ""
    if program in TOOLS:
        return bool(_CHECKS.search(" ".join(words[1:]))) or words == ["make"]
    if program in INTERPRETERS or program in COMPILERS or program.startswith("$(command"):
        return len(words) > 1
    return program in CHECKERS or (program.startswith("./") and bool(_CHECKS.search(program)))


def _python_runner(tests: Sequence[str], listed: Sequence[str], files: Mapping[str, str]) -> str:
    text = files.get(tests[0], "")
    if "unittest" not in text or "pytest" in text:
        if re.search(r"^(?:def|class|async def) ", text, re.MULTILINE) or not text:
            return "python3 -m pytest -q"
        return f"python3 {shlex.quote(tests[0])}"  # a program of bare assertions
    folder = PurePosixPath(tests[0]).parent.as_posix()
    if folder == ".":
        return "python3 -m unittest"
    top = " -t ." if f"{folder}/__init__.py" in listed else ""
    return f"python3 -m unittest discover -s {shlex.quote(folder)}{top}"

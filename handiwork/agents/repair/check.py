"""The check that a repair must pass: its source, and the files that belong to it."""

from __future__ import annotations

import posixpath
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
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
    ("package.json", r'"test"\s*:\s*"[^"]*(?:react-scripts|craco|vitest(?! run)|ng test)', "CI=true npm test --silent"),
    ("package.json", r'"test"\s*:\s*"(?!echo \\"Error: no test)', "npm test --silent"),
    ("Cargo.toml", "", "cargo test --no-fail-fast"),
    ("go.mod", "", "go test ./..."),
    ("pom.xml", "", "mvn -q -fae test"),
    ("build.gradle", "", "gradle test --continue"),
    ("build.gradle.kts", "", "gradle test --continue"),
    ("mix.exs", "", "mix test"),
    ("Package.swift", "", "swift test"),
    ("tox.ini", "", "tox -q"),
    ("noxfile.py", "", "nox"),
)
"""Test runners: a file of the project, a pattern in it, and the command.

Without CI, some runners of JavaScript watch the files for ever; with it, others write no new snapshots.
"""

PYTHON_TESTS = 3
"""Maximum number of Python's tests whose text decides by which program all of them run."""

_QUOTED = re.compile(r"`([^`\n]+)`")
_MOVE = re.compile(r"cd +([^\s;&|]+) *&& *")
_BEFORE = re.compile(rf"^(?:{_MOVE.pattern}|[A-Za-z_]\w*=\S* +)+")
"""Stands before a program: a change of directory, as into a part of a larger project, and variables."""
_INSTALLATION = re.compile(r"(?!make )\S+ (?:(?:-m )?pip3? )?(?:install|add|require|i|ci)(?:\s|$)(?!.*(?:&&|;))")
"""A command that only installs: its arguments may be test programs."""
_CHECKS = re.compile(
    rf"(?<![a-z])(?:{'|'.join(sorted(CHECKERS))}|tests?|unittest|check|spec|verify|typecheck|vet|lint)(?![a-z])",
    re.IGNORECASE,
)
_TEST_NAME = re.compile(r"(?:^|[_.-])(?:tests?|specs?|conftest)(?:[_.-]|$)|^Test[A-Z]|Tests?$|^(?:checks?|verify)$")
_TEST_FOLDERS = {"test", "tests", "spec", "specs", "__tests__", "testing", "testdata"}
_ASSERTIONS = re.compile(r"\bassert|\bexpect\(|\bexit\s*\(?\s*1|Assert", re.MULTILINE)
_ALL = {"all", "run", "run_all", "run-all", "main"}
_BASH = re.compile(r"#!.*\bbash\b")
_SAYS_NOTHING = re.compile(
    r"^(?:/\S*/)?(?:ba|da)?sh: (?:line )?(?:\d+: )?[\w.+-]+: (?:command )?not found$"
    r"|^make(?:\[\d+\])?: [\w.+-]+: No such file or directory$|^\S*python[\d.]*: No module named "
    r"|^(?:=+ )?no tests ran in |^NO TESTS RAN$|^ImportError: Start directory is not importable: "
    r"|^  inifile: |^ERROR: Missing required plugins: ",
    re.MULTILINE,
)
"""The last lines of a runner without its own program, without a plugin that pytest's settings need, or without tests.

A script's message has its own name.
"""
_END = 4
"""Lines at the end of an output."""
_PLACEHOLDER = re.compile(r"(?<!\S)(?:[A-Z][A-Z_]+|<[^>]*>|\[[^\]]*\])(?!\S)|(?<!/)\.\.\.")
_TEST_CASE = re.compile(r"^[ \t]*class \w+\([^)]*TestCase\b", re.MULTILINE)
_PYTEST = re.compile(r"^[ \t]*(?:import|from) pytest\b|^(?:async )?def test|^class Test\w*:", re.MULTILINE)
_BARE, _DEFINED = re.compile(r"^[ \t]*assert\b", re.MULTILINE), re.compile(r"^(?:def|class|async def) ", re.MULTILINE)
_SRC_MODULE = re.compile(r"src/(\w+)(?:/__init__)?\.py$")
_COMPILED = re.compile(r"src/.*\.(?:pyx|c|cc|cpp|rs|f90)$")
_SCRIPTS = {".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".tsx", ".vue", ".svelte"}
_SETTINGS = {".toml", ".cfg", ".ini", ".lock", ".mod", ".sum", ".yml", ".yaml", ".mk", ".gradle", ".xml"}
_SETTINGS_FILES = {"Makefile", "GNUmakefile", "justfile", "package.json", "package-lock.json", "CMakeLists.txt"}
_SETTINGS_PROGRAM = re.compile(
    r"(?:jest|vitest|karma|playwright|cypress)\.conf(?:ig)?\.[cm]?[jt]s|\.mocharc\.[cm]?js|noxfile\.py|build\.gradle\.kts"
)
"""Names of files whose code sets up a test runner."""


def named_check(text: str) -> str | None:
    """Return the check that the text names in backticks: one that mentions a test or check, else the first."""
    commands = _named_commands(text)
    return next(filter(_CHECKS.search, commands), commands[0] if commands else None)


def named_test(text: str) -> str | None:
    """Return the command in backticks that itself has a word for testing or checking."""
    commands = (command for command in _named_commands(text) if not _PLACEHOLDER.search(command))
    return next(filter(_CHECKS.search, commands), None)


def _named_commands(text: str) -> list[str]:
    return [command for command in map(str.strip, _QUOTED.findall(text)) if _is_check(command)]


def runner_files(listed: Sequence[str]) -> list[str]:
    """Return the files to read before ``runner`` can tell the project's check."""
    names = list(dict.fromkeys(name for name, pattern, _ in RUNNERS if pattern and name in listed))
    return names + _python_tests(listed)[:PYTHON_TESTS] + _shell_tests(listed)[:1]


def runner(listed: Sequence[str], files: Mapping[str, str]) -> str | None:
    """Return the command of the project's test runner; None if the files listed, some of them read, show none."""
    for name, pattern, command in RUNNERS:
        # tox and nox install packages from the network first.
        if command in ("tox -q", "nox") and _python_tests(listed):
            continue
        if name == "package.json" and _is_mostly_python(listed):
            continue
        if name in listed and (match := re.search(pattern, files.get(name, ""), re.MULTILINE)):
            return command.format(*match.groups())
    tests = [path for path in listed if is_test(path)]
    if python := _python_tests(listed):
        command = _python_runner(python, listed, files)
        return command.replace("python3 ", "PYTHONPATH=src python3 ") if _is_src_layout(listed) else command
    if bats := [path for path in tests if path.endswith(".bats")]:
        return f"bats {shlex.quote(bats[0])}"
    if scripts := _shell_tests(listed):
        shell = "bash" if _BASH.match(files.get(scripts[0], "")) else "sh"
        return f"{shell} {shlex.quote(scripts[0])}"
    if any(path.endswith((".js", ".mjs")) for path in tests) and not any(
        path.endswith("/package.json") for path in listed
    ):
        return "node --test"
    return "bundle exec rspec" if any(path.endswith("_spec.rb") for path in tests) else None


def programs(check: str) -> list[str]:
    """Return the program of the check, and the module that Python runs for it."""
    words = _BEFORE.sub("", check).split()
    return words[:1] + words[2:3] if words[1:2] == ["-m"] else words[:1]


def moves(check: str) -> bool:
    """True if the check changes the directory, in which it would leave a shell that other commands share."""
    return check.startswith("cd ")


def is_missing(check: str, output: str) -> bool:
    """True if the check failed because a program is not installed or there are no tests, as its output says."""
    program = "|".join(map(re.escape, programs(check)))
    own = rf"(?:^|[\s:])(?:{program}): (?:command )?not found|No module named '?(?:{program})\b"
    return bool(re.search(own, output) or _SAYS_NOTHING.search("\n".join(output.rstrip().splitlines()[-_END:])))


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
    if _SETTINGS_PROGRAM.fullmatch(name.name):
        return True
    if path not in _words(check) or any(map(is_test, named_files(check, listed))):
        return False
    return bool(_ASSERTIONS.search(files.get(path, "")))


def _words(check: str) -> set[str]:
    """Return the paths that the command may name, also those of modules in Python's notation."""
    words = {word.removeprefix("./") for word in re.split(r"[\s;&|()<>'\"=]+", check)}
    if move := _MOVE.match(check):
        words |= {posixpath.normpath(posixpath.join(move[1], word)) for word in words}
    return words | {word.replace(".", "/") + ".py" for word in words}


def _python_tests(listed: Sequence[str]) -> list[str]:
    """Return the Python files that are named like tests; without any, all others in the folders of tests."""
    names = (PurePosixPath(path) for path in listed if is_test(path))
    tests = [name for name in names if name.suffix == ".py" and name.stem not in ("__init__", "conftest")]
    named = [name for name in tests if _TEST_NAME.search(name.stem) or name.stem.startswith("test")]
    return [str(name) for name in named or tests]


def _is_mostly_python(listed: Sequence[str]) -> bool:
    """Return whether a project has tests of Python, and more of its programs than those that npm would test."""
    suffixes = [PurePosixPath(path).suffix for path in listed]
    return bool(_python_tests(listed)) and suffixes.count(".py") > sum(map(_SCRIPTS.__contains__, suffixes))


def _shell_tests(listed: Sequence[str]) -> list[str]:
    """Return the shell scripts named like tests, or that run all of a folder of tests: others there may delete data."""
    scripts = [PurePosixPath(path) for path in listed if path.endswith(".sh") and is_test(path)]
    return [str(path) for path in scripts if _TEST_NAME.search(path.stem) or path.stem in _ALL]


def _is_check(command: str) -> bool:
    command = _BEFORE.sub("", command)
    words = command.split()
    program = words[0] if words else ""
    name = PurePosixPath(program).name
    if (program in TOOLS or words[1:2] == ["-m"]) and _INSTALLATION.match(command):
        return False
    if program in TOOLS:
        return bool(_CHECKS.search(" ".join(words[1:]))) or words == ["make"]
    if name in INTERPRETERS or program in COMPILERS or program.startswith("$(command"):
        return len(words) > 1
    is_program = PurePosixPath(program).parent.name in ("", "bin", ".bin")  # else a folder may have its name
    return (name in CHECKERS and is_program) or (program.startswith("./") and bool(_CHECKS.search(program)))


def _is_src_layout(listed: Sequence[str]) -> bool:
    """Return whether modules lie below src, which is no package and holds none to be compiled: those are installed.

    One with the name of a module of Python's own would hide that.
    """
    if "src/__init__.py" in listed or any(map(_COMPILED.match, listed)):
        return False
    modules = {match[1] for match in map(_SRC_MODULE.match, listed) if match}
    return bool(modules) and modules.isdisjoint(sys.stdlib_module_names)


def _python_runner(tests: Sequence[str], listed: Sequence[str], files: Mapping[str, str]) -> str:
    texts = {path: text for path in tests[:PYTHON_TESTS] if (text := files.get(path, ""))}
    is_pytest = any(map(_PYTEST.search, texts.values()))
    if "manage.py" in listed and any("django" in text for text in texts.values()) and not is_pytest:
        return "python3 manage.py test"
    if any(map(_TEST_CASE.search, texts.values())) and not is_pytest:
        return _unittest(tests, listed)
    if texts and all(_BARE.search(text) and not _DEFINED.search(text) for text in texts.values()):
        return " && ".join(f"python3 {shlex.quote(path)}" for path in texts)
    return "python3 -m pytest -q"


def _unittest(tests: Sequence[str], listed: Sequence[str]) -> str:
    """Return the command that runs all tests: unittest finds those below a folder only if they are in packages."""
    names = [PurePosixPath(path) for path in tests]
    shared = PurePosixPath(posixpath.commonpath([name.parent for name in names]))
    starts: dict[PurePosixPath, None] = {}
    for start in dict.fromkeys(name.parent for name in names):
        while start != shared and _is_package(start, listed):
            start = start.parent
        starts[start] = None
    patterns = ("test*.py", "*[Tt]est*.py", "*.py")
    pattern = next(one for one in patterns if all(fnmatchcase(name.name, one) for name in names))
    return " && ".join(_discover(start, pattern, listed) for start in starts)


def _discover(start: PurePosixPath, pattern: str, listed: Sequence[str]) -> str:
    top = start
    while top.name and _is_package(top, listed):
        top = top.parent
    options = f" -s {shlex.quote(str(start))}" if start.name else ""
    options += f" -t {shlex.quote(str(top))}" if top != start else ""
    options += f" -p {shlex.quote(pattern)}" if pattern != "test*.py" else ""
    return f"python3 -m unittest discover{options}" if options else "python3 -m unittest"


def _is_package(folder: PurePosixPath, listed: Sequence[str]) -> bool:
    return str(folder / "__init__.py") in listed

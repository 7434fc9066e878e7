"""Finds the syntax errors of a source file: Python with its compiler, bash with bash, most others with tree-sitter.

It runs in the action server, and in the project's own interpreter: it needs only the standard library of any Python
from 3.9 on. tree-sitter and its grammars are imported for the first file that needs them; a Python that cannot import
them finds no errors in languages other than Python, JSON and, from Python 3.11 on, TOML.
"""

# The grammars are found at run time, not when this is checked.
# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
from __future__ import annotations

import ast
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

LIMIT = 512 * 1024
"""Bytes of the largest file that is checked."""

Pythons = Callable[[], "tuple[tuple[str, ...], ...]"]

_GRAMMARS = {
    "python": ("tree_sitter_python", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "java": ("tree_sitter_java", "language"),
    "go": ("tree_sitter_go", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
    "ruby": ("tree_sitter_ruby", "language"),
    "php": ("tree_sitter_php", "language_php"),
    "csharp": ("tree_sitter_c_sharp", "language"),
    "bash": ("tree_sitter_bash", "language"),
    "json": ("tree_sitter_json", "language"),
}
"""The module and the function of each language's grammar."""

_SUFFIXES = {
    ".py": "python",
    ".pyi": "python",
    ".pyw": "python",
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".jsx": "javascript",
    ".ts": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".tsx": "tsx",
    ".java": "java",
    ".go": "go",
    ".rs": "rust",
    ".c": "c",
    ".h": "cpp",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".cxx": "cpp",
    ".hh": "cpp",
    ".hpp": "cpp",
    ".hxx": "cpp",
    ".rb": "ruby",
    ".php": "php",
    ".cs": "csharp",
    ".sh": "bash",
    ".bash": "bash",
    ".json": "json",
    ".toml": "toml",
}
_WITH_COMMENTS = re.compile(r"/(?:(?:tsconfig|jsconfig|devcontainer|\.eslintrc)[^/]*|\.vscode/[^/]*)\.json$")
"""JSON files that may have comments and trailing commas."""

_SHEBANG = re.compile(rb"#!\S*(?:/env\s+(?:-S\s+)?|/)(?:(bash|sh)|(python)[0-9.]*)\s*$", re.MULTILINE)
LIBRARIES = "HANDIWORK_INSIDE_LIBRARIES"
"""The variable with the path of the bundle's libraries, if a server runs in another Python than the bundle's."""

_MAX_PROBLEMS = 20
_MAX_VISITED = 20_000  # nodes of a tree
_SHOWN = 60  # characters of a line in a message
_PYTHON_TIMEOUT, _BASH_TIMEOUT = 3.0, 2.0

_SINCE_ALWAYS = re.compile(
    r"IndentationError|TabError|Python cannot|Missing parentheses|cannot (?:assign|delete)|expected an indented"
    r"|expected 'except' or 'finally'|cannot have both 'except'|positional (?:argument|patterns) follow"
    r"|non-default argument|parameter without a default|iterable argument unpacking|arguments cannot follow"
    r"|(?:Function|Lambda expression) parameters cannot|named arguments must|(?:\*|/) (?:argument )?may appear"
    r"|/ must be ahead|Generator expression must|trailing comma not|f-string: invalid conversion|'tuple' is an illegal"
)
"""The beginnings of messages that no newer Python withdraws; the grammar knows few of these rules."""

_LITERAL = re.compile(
    r"\((?:unicode|value) error\)|bytes can only|cannot mix bytes|leading zeros|invalid non-printable"
    r"|invalid (?:decimal|hexadecimal|octal|binary) literal|unterminated string literal|EOL while scanning"
)
"""The beginnings of messages about literals, which count since always outside of f-strings."""

_FORMATTED = re.compile(rb"\b(?:[ft]r?|r[ft])['\"]", re.IGNORECASE)
_OLDEST = re.compile(
    rb"\s*(?:raise\s+[\w.]+(?:\([^()]*\))?\s*,"
    rb"|except\s+[\w.]+(?:\s*,\s*[\w.]+)+\s+as\s|except\s*\([^()]*\)\s*,)"
)
"""A line with syntax of Python 2 that the grammar accepts."""

_CAUGHT = re.compile(rb"\s*except\s+[\w.]+\s*,\s*([a-z_]\w*)\s*:")
"""Python 2's name of an exception, or since Python 3.14 a second exception."""

_NEWEST = re.compile(rb"\s*(?:(?:class|(?:async\s+)?def|type)\s+\w+\s*\[|lazy\s+(?:import|from)\s)")
"""A line with syntax of Python 3.12 to 3.15 that the grammar may not know yet."""

_ACCEPTS = """
import sys, warnings
warnings.simplefilter("ignore")
if sys.version_info[:2] > (int(sys.argv[1]), int(sys.argv[2])):
    try:
        compile(sys.stdin.buffer.read(), "file", "exec", dont_inherit=True)
        print("right")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        print("wrong")
"""
"""A program that prints whether its Python, if newer than the given version, compiles its input.

The exit codes of programs do not count: the action server reaps its children before anything here can wait for them.
"""


class SyntaxProblem(NamedTuple):
    """One error: its line, counted from 1 (0 if it has none), and its description."""

    line: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}" if self.line else self.message


def no_pythons() -> tuple[tuple[str, ...], ...]:
    """Return no interpreter."""
    return ()


def language_of(path: str, source: bytes) -> str:
    """Return the language of a file by its name, or by the first line of a file without a suffix; "" if unknown."""
    suffix = os.path.splitext(path)[1].lower()
    if "{{" in path:
        return ""  # a template of a file
    if suffix or not source.startswith(b"#!"):
        language = _SUFFIXES.get(suffix, "")
        return "" if language == "json" and _WITH_COMMENTS.search(f"/{path}") else language
    shebang = _SHEBANG.match(source)
    return "" if shebang is None else "bash" if shebang[1] else "python"


def syntax_problems(path: str, source: bytes, pythons: Pythons = no_pythons) -> list[SyntaxProblem]:
    """Return the syntax errors of a file, none if it is in no known language or larger than LIMIT.

    ``pythons`` returns the commands of interpreters that may be newer than this one: a file that the first newer one
    compiles is right.
    """
    language = language_of(path, source)
    if not language or len(source) > LIMIT or not source.strip() or b"\0" in source:
        return []
    if language == "python":
        problem = python_problem(source)
        return [] if problem is None or is_newer_python(problem, source, pythons) else [problem]
    if language == "json":
        return _json_problems(source)
    if language == "toml":
        return _toml_problems(source)
    if language == "bash":
        return _bash_problems(source)
    problems = tree_problems(language, source)
    if problems and path.endswith(".h"):
        as_c = tree_problems("c", source)
        return min(problems, as_c, key=len)
    return problems


def first_new_problem(path: str, before: bytes | None, after: bytes, pythons: Pythons = no_pythons) -> str:
    """Return the first syntax error of a changed file, "" if it has none.

    A grammar, or Python's reader of TOML, may lag behind its language: errors that it finds count only if the file had
    fewer ``before``.
    """
    problems = syntax_problems(path, after, pythons)
    exact = language_of(path, after) in ("python", "json", "bash")
    if not problems or (before is not None and not exact and len(syntax_problems(path, before)) >= len(problems)):
        return ""
    return str(problems[0])


def python_problem(source: bytes) -> SyntaxProblem | None:
    """Return the first syntax error that this Python's compiler finds."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, "file", "exec", dont_inherit=True)
    except SyntaxError as error:
        kind = "" if type(error) is SyntaxError else f"{type(error).__name__}: "
        return SyntaxProblem(error.lineno or 0, f"{kind}{error.msg}")
    except (ValueError, RecursionError, MemoryError) as error:
        return SyntaxProblem(0, f"Python cannot compile the file: {error}")
    return None


def is_newer_python(problem: SyntaxProblem, source: bytes, pythons: Pythons = no_pythons) -> bool:
    """Return whether the error is that of an older compiler which reads a newer Python's syntax.

    The grammar decides, as it knows the newest syntax but not every rule; without it the first newer interpreter does.
    """
    lines = source.split(b"\n")
    line = lines[problem.line - 1] if 1 <= problem.line <= len(lines) else b""
    if _SINCE_ALWAYS.match(problem.message) or _is_old_python(line, source) or _parses(source):
        return False
    if _LITERAL.match(problem.message) and not _FORMATTED.search(line):
        return False
    if _NEWEST.match(line):
        return True
    has_grammar = parser_of("python") is not None or LIBRARIES in os.environ
    if has_grammar and not tree_problems("python", source):
        return True
    version = [str(part) for part in sys.version_info[:2]]
    for command in pythons():
        try:
            program = [*command, "-I", "-S", "-c", _ACCEPTS, *version]
            verdict = subprocess.run(program, input=source, capture_output=True, timeout=_PYTHON_TIMEOUT, check=False)
        except (OSError, subprocess.SubprocessError):
            continue
        if verdict.stdout:
            return verdict.stdout.startswith(b"right")
    return False


def _is_old_python(line: bytes, source: bytes) -> bool:
    """Return whether a wrong line is Python 2's; a second exception after a comma is a name that the file binds."""
    caught = _CAUGHT.match(line)
    if caught is None:
        return _OLDEST.match(line) is not None
    name = re.escape(caught[1])
    bound = rb"\b(?:import|class|def|as|for)\b[^\n]*\b" + name + rb"\b|^\s*" + name + rb"\s*[=,:]"
    return re.search(bound, source, re.MULTILINE) is None


def _parses(source: bytes) -> bool:
    """Return whether the file has the right grammar, so that its error is about the meaning, like a stray return."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, "file", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def tree_problems(language: str, source: bytes) -> list[SyntaxProblem]:
    """Return the errors that the language's grammar finds, none if there is no grammar."""
    parser = parser_of(language)
    if parser is None:
        return _problems_elsewhere(language, source)
    root = parser.parse(source).root_node
    problems: list[SyntaxProblem] = []
    waiting, visited = [root] if root.has_error else [], 0
    while waiting and len(problems) < _MAX_PROBLEMS and visited < _MAX_VISITED:
        node = waiting.pop()
        visited += 1
        if node.is_missing:
            problems.append(SyntaxProblem(node.start_point[0] + 1, f"{node.type!r} is missing"))
        elif node.is_error and not any(child.has_error for child in node.children):
            problems.append(
                SyntaxProblem(node.start_point[0] + 1, f"unexpected {_first_line(source, node.start_byte)}")
            )
        elif node.has_error:
            waiting += reversed(node.children)
    return problems


@lru_cache(maxsize=None)  # noqa: UP033 - also runs on Pythons that have it so
def parser_of(language: str) -> Any:
    """Return the parser of a language, None if this Python cannot load it."""
    module, function = _GRAMMARS[language]
    try:
        tree_sitter: Any = importlib.import_module("tree_sitter")
        grammar: Any = importlib.import_module(module)
        return tree_sitter.Parser(tree_sitter.Language(getattr(grammar, function)()))
    except (ImportError, AttributeError, TypeError, ValueError):
        return None


def _problems_elsewhere(language: str, source: bytes) -> list[SyntaxProblem]:
    """Ask the bundle's Python, if this one cannot load the grammars and knows its path."""
    libraries = os.environ.get(LIBRARIES)
    if libraries is None:
        return []
    code = "import sys; sys.path[:0] = sys.argv[1:]; from inside.syntax.check import print_problems; print_problems()"
    root = os.path.dirname(os.path.dirname(os.path.dirname(libraries)))
    loader = [f"{root}/lib/ld-linux-x86-64.so.2", "--inhibit-rpath", "", "--library-path", f"{root}/lib"]
    app = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    command = [*loader, f"{root}/bin/python3", "-I", "-S", "-c", code, app, libraries, language]
    try:
        ended = subprocess.run(command, input=source, capture_output=True, timeout=_PYTHON_TIMEOUT, check=False)
        return [SyntaxProblem(line, message) for line, message in json.loads(ended.stdout)]
    except (OSError, ValueError, subprocess.SubprocessError):
        return []


def print_problems() -> None:
    """Print the problems of the source on stdin, in the language that is the last argument."""
    json.dump(tree_problems(sys.argv[-1], sys.stdin.buffer.read()), sys.stdout)


def _first_line(source: bytes, start: int) -> str:
    line = source[start : start + 4 * _SHOWN].split(b"\n")[0].decode("utf-8", "replace").strip()
    return repr(line if len(line) <= _SHOWN else f"{line[:_SHOWN]}...")


def _json_problems(source: bytes) -> list[SyntaxProblem]:
    try:
        json.loads(source.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return []
    except RecursionError:
        return []
    except ValueError as error:
        # The grammar allows comments, which files of some tools have.
        if parser_of("json") is not None and not tree_problems("json", source):
            return []
        if not isinstance(error, json.JSONDecodeError):
            return [SyntaxProblem(0, str(error))]
        found = error.doc[error.pos :].partition("\n")[0].strip()[:_SHOWN]
        return [SyntaxProblem(error.lineno, f"{error.msg}, not {found!r}" if found else error.msg)]
    return []


def _toml_problems(source: bytes) -> list[SyntaxProblem]:
    """Return the first error that Python's reader finds; none before Python 3.11, which has no reader."""
    try:
        tomllib: Any = importlib.import_module("tomllib")
        tomllib.loads(source.decode())
    except (ImportError, UnicodeDecodeError, RecursionError):
        return []
    except ValueError as error:
        message, _, place = str(error).partition(" (at ")
        line = re.match(r"line ([0-9]+)", place)
        return [SyntaxProblem(int(line[1]) if line else source.rstrip().count(b"\n") + 1, message)]
    return []


def _bash_problems(source: bytes) -> list[SyntaxProblem]:
    """Return bash's own first error, or the grammar's without a bash."""
    bash = shutil.which("bash")
    if bash is None:
        return tree_problems("bash", source)
    options = ["-O", "extglob"] if b"extglob" in source else []
    command = [bash, "--norc", "--noprofile", *options, "-n", "/dev/stdin"]
    try:
        ended = subprocess.run(
            command, input=source, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=_BASH_TIMEOUT, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return tree_problems("bash", source)
    error = re.search(r"line ([0-9]+): (.*)", ended.stderr.decode("utf-8", "replace"))
    return [] if error is None else [SyntaxProblem(int(error[1]), error[2])]

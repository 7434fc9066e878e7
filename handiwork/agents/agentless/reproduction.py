"""Reproduction tests: programs by the model that print whether they see the issue, and the vote among them."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from handiwork.agents.agentless.rank import normalised

REPRODUCED, RESOLVED, OTHER = "Issue reproduced", "Issue resolved", "Other issues"
"""The verdicts that a reproduction test prints."""

_BLOCK = re.compile(r"```[^\n]*\n(.*?)(?:```|\Z)", re.DOTALL)


class ScriptLanguage(NamedTuple):
    """A language for reproduction tests: its name, the suffix of a program, and the command that runs one.

    The command finds the project's modules also in the folder that is usual for them.
    """

    name: str
    suffix: str
    command: str


SHELL = ScriptLanguage("bash", ".sh", "bash")
"""Builds and runs programs that need a compiler."""

LANGUAGES = (
    ScriptLanguage("Python", ".py", 'PYTHONPATH="$PWD/src${PYTHONPATH:+:$PYTHONPATH}" python3'),
    ScriptLanguage("JavaScript", ".js", "node"),
    ScriptLanguage("Ruby", ".rb", "ruby -I lib"),
    ScriptLanguage("PHP", ".php", "php"),
    ScriptLanguage("Perl", ".pl", "perl -I lib"),
    ScriptLanguage("Lua", ".lua", "lua"),
    SHELL,
)


def language_of(paths: Sequence[str]) -> ScriptLanguage:
    """Return the language of the first path; SHELL for one whose programs must be built."""
    suffix = PurePosixPath(paths[0]).suffix if paths else ""
    return next((language for language in LANGUAGES if language.suffix == suffix), SHELL)


def script_of(reply: str) -> str:
    """Return the program of a reply, its longest block of code that prints a verdict; "" without one."""
    blocks = [block for block in _BLOCK.findall(reply) if REPRODUCED in block and RESOLVED in block]
    return max(blocks, key=len, default="")


def phrases_in(output: str) -> tuple[str, ...]:
    """Return which of the three phrases begin a line of the output; a verdict has exactly one.

    A traceback quotes lines of the program, which contain them too.
    """
    lines = [line.strip() for line in output.splitlines()]
    return tuple(phrase for phrase in (REPRODUCED, RESOLVED, OTHER) if any(line.startswith(phrase) for line in lines))


def elected(scripts: Mapping[str, str], suffix: str) -> tuple[str, int] | None:
    """Return the label of the most frequent of the scripts, and its votes; of equally frequent ones the first."""
    if not scripts:
        return None
    keys = {label: normalised_script(script, suffix) for label, script in scripts.items()}
    key, votes = Counter(keys.values()).most_common(1)[0]
    return next(label for label in scripts if keys[label] == key), votes


def normalised_script(script: str, suffix: str) -> str:
    """Return the script without comments and layout; in Python the function called last is named ``test_func``."""
    lines = normalised(f"script{suffix}", script)
    text = "\n".join(lines)
    match = re.match(r"(\w+)\(", lines[-1].strip()) if suffix == ".py" and lines else None
    if match is None or not _defines(text, match[1]):
        return text
    return re.sub(rf"\b{match[1]}\b", "test_func", text)


def _defines(text: str, name: str) -> bool:
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return False
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in body)

"""The scripts of AgentBench's OS tasks, which set a machine up and check it afterwards.

They are read and run as upstream does it (https://github.com/THUDM/AgentBench,
src/server/tasks/os_interaction/task.py): each in a process of its own, independent of the agent's shell, except the
one that starts a task, which is typed into that shell. The comparisons that upstream has as Python files, the same for
all tasks, are functions here, for data folders without those files.
"""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, cast

from handiwork.evals.benchmark import DataError, UnfitError
from handiwork.evals.scoring.execution import command_in
from handiwork.sandbox.base import Sandbox

SECONDS = 60.0
"""The time limit of a script; upstream has none."""

STARTED = 1.0
"""Seconds after which a program started in the background counts as running if it has not failed."""

NO_ANSWER = "None"
"""Upstream's argument of a check if the agent ended without an answer."""

REFUSED = re.compile(
    r"Permission denied|Operation not permitted|Read-only file system|No such file or directory|(?:command|:) not found"
)
"""The messages of a script that the machine refuses, or that lacks its requirements."""

_APART = """{{
/usr/bin/env -i PATH=/usr/bin:/bin bash -c {script} bash $$
/usr/bin/env -i PATH=/usr/bin:/bin bash -c {show} bash $?
}} 3<>{output}"""
"""Runs ``script`` and then ``show``, without the agent's functions and PATH.

Only the shell waits while the script runs: a task may ask for the number of processes.
"""

_SCRIPT = """
rm {output} && cd {workspace} || exit 1
while IFS= read -r -d '' variable; do environment+=("$variable"); done < /proc/$1/environ
exec env -i "${{environment[@]}}" {command} </dev/null >&3 2>&1 3>&-
"""
"""Becomes the command, with the environment with which the shell started.

The output is a file: a terminal changes programs' output, and background programs keep a pipe open. The file has no
name by then: a task may ask for the number of files.
"""

_SHOW = """
echo {mark}
cat /proc/self/fd/3
echo {mark}
exit $1
"""
"""Prints the output between marks, as the agent's shell reports its own background programs outside them."""

INTERPRETERS = {"bash": ("bash", "-c"), "python": ("python3", "-c")}


@dataclass(frozen=True, slots=True)
class Script:
    """A script: ``code`` in the language, or None if its ``file`` is missing in the data folder."""

    language: str
    code: str | None
    file: str = ""

    @property
    def comparison(self) -> Callable[[str, str], bool] | None:
        """The comparison of an answer with a reference that the file makes, if it is known."""
        return COMPARISONS.get(PurePosixPath(self.file).name) if self.code is None else None


@dataclass(frozen=True, slots=True)
class AgentBenchTask:
    """A task's record: ``match`` describes the answer, or is None if the ``check`` scripts check it.

    The ``example`` solves the task; if it is itself in ``check``, its output there is the reference.
    """

    init: Sequence[Script]
    start: Script | None
    match: Mapping[str, Any] | None
    check: Sequence[Script]
    example: Script | None

    @property
    def missing_files(self) -> list[str]:
        """The task's files that are missing in the data folder."""
        scripts = [script for script in (*self.init, self.start, *self.check, self.example) if script is not None]
        return sorted({script.file for script in scripts if script.code is None and script.comparison is None})


def task_of(record: Mapping[str, Any], files: Mapping[str, str]) -> AgentBenchTask:
    """Return the task of a record; ``files`` are the scripts of the data folder, by the path that records use.

    Raises DataError, or KeyError for a record that lacks a required field.
    """

    def script(value: Any) -> Script | None:
        if value is None:
            return None
        if isinstance(value, str):
            return Script("bash", value)
        language, file = value.get("language", "bash"), value.get("file", "")
        if language not in INTERPRETERS:
            raise DataError(f"a script is in {language}; known are {', '.join(INTERPRETERS)}")
        if PurePosixPath(file).is_absolute() or ".." in PurePosixPath(file).parts:
            raise DataError(f"a script is outside the folder of scripts: {file}")
        return Script(language, files.get(file) if file else value["code"], file)

    create: Any = record.get("create")
    init = as_list(cast("dict[str, Any]", create).get("init")) if isinstance(create, dict) else []
    evaluation: Mapping[str, Any] = record["evaluation"]
    match = evaluation.get("match")
    example = script(evaluation.get("example")) if match is None else None
    check = [script(item) or example for item in as_list(evaluation["check"])] if match is None else []
    if None in check:
        raise DataError("its check needs the output of an example, and it has none")
    return AgentBenchTask(
        [item for item in map(script, init) if item is not None],
        script(record.get("start")),
        {"answer": match} if isinstance(match, str) else match,
        [item for item in check if item is not None],
        example,
    )


async def make(sandbox: Sandbox, task: AgentBenchTask) -> None:
    """Set the machine up for the task. Raises UnfitError if it refuses."""
    for script in task.init:
        code, output = await run(sandbox, script)
        if code or REFUSED.search(output):
            raise _unfit(sandbox, "the script that makes it", output)
    if task.start is not None:
        result = await command_in(sandbox, _code(task.start), SECONDS)
        jobs = await command_in(sandbox, f"sleep {STARTED:g}; jobs", SECONDS) if result.exit_code == 0 else result
        if jobs.exit_code or REFUSED.search(result.content + jobs.content):
            raise _unfit(sandbox, "what starts the task", result.content + jobs.content)


async def try_out(sandbox: Sandbox, task: AgentBenchTask) -> None:
    """Check that the example of a task that is set up here passes its own check; raises UnfitError if not."""
    if task.example is None:
        return
    code, output = await run(sandbox, task.example)
    if code or REFUSED.search(output):
        raise _unfit(sandbox, "the example that solves it", output)
    passed, check_output = await run_checks(sandbox, task, output, output)
    if not passed:
        raise _unfit(sandbox, "the check of the example that solves it", check_output)


async def run_checks(
    sandbox: Sandbox, task: AgentBenchTask, answer: str, reference: str | None = None
) -> tuple[bool, str]:
    """Run the chain of checks and return whether all passed, with the last output.

    Each gets the answer and the outputs of the checks before it. ``reference`` is the example's output if known. Raises
    SandboxError.
    """
    arguments = [answer]
    for script in task.check:
        if script is task.example and reference is not None:
            arguments.append(reference)
        elif compare := script.comparison:
            if not compare(*arguments[:2]):
                return False, arguments[-1]
        else:
            code, output = await run(sandbox, script, *arguments)
            if code:
                return False, output
            arguments.append(output)
    return True, arguments[-1]


async def run(sandbox: Sandbox, script: Script, *arguments: str) -> tuple[int, str]:
    """Run a script in the workspace with the environment the sandbox started with; return its exit code and output.

    Raises SandboxError.
    """
    marks = ["--"] if script.language == "bash" else []
    command = shlex.join([*INTERPRETERS[script.language], _code(script), *marks, *arguments])
    mark = secrets.token_hex(8)
    output = f"/tmp/{secrets.token_hex(16)}"
    script_text = _SCRIPT.format(workspace=shlex.quote(sandbox.workspace), command=command, output=output)
    quoted = {"script": shlex.quote(script_text), "show": shlex.quote(_SHOW.format(mark=mark))}
    result = await command_in(sandbox, _APART.format(output=output, **quoted), SECONDS)
    match = re.search(rf"{mark}\n(.*){mark}\n", result.content.replace("\r\n", "\n"), re.DOTALL)
    return (1 if result.exit_code is None else result.exit_code), match[1] if match else result.content


def _code(script: Script) -> str:
    if script.code is None:
        raise DataError(f"the data folder has no {script.file}")
    return script.code


def matches(match: Mapping[str, Any], answer: str) -> bool:
    """Return whether an answer is right: it equals the text, or contains a match of the regular expression."""
    if "answer" in match:
        return answer == match["answer"]
    return re.search(match["regex"], answer) is not None


def _unfit(sandbox: Sandbox, step: str, output: str) -> UnfitError:
    reason = next((line for line in output.splitlines() if REFUSED.search(line)), output.strip()[:200] or "no output")
    return UnfitError(
        f"this {sandbox.name} sandbox cannot be the machine of the task: {step} failed ({reason.strip()}). Such a task "
        "needs an image with its programs, whose system the agent may change: --image."
    )


def as_list(value: Any) -> list[Any]:
    """Return a record's optional value, which may be missing, one or a list, as a list."""
    if value is None:
        return []
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _integers(answer: str, reference: str) -> bool:
    """Return whether both are the same integer."""
    try:
        return int(answer) == int(reference)
    except ValueError:
        return False


def _strings(answer: str, reference: str) -> bool:
    """Return whether both are the same text except for surrounding white space."""
    return _text(answer) == _text(reference)


def _sizes(answer: str, reference: str) -> bool:
    """Return whether both are the same number of bytes, in units of 1,024; upstream reads no fractions from ``du``."""
    sizes = [_bytes(answer), _bytes(reference)]
    return sizes[0] is not None and sizes[0] == sizes[1]


def _bytes(text: str) -> float | None:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGTP]?)(?:B|Byte)?", text.strip())
    return float(match[1]) * 1024 ** " KMGTP".index(match[2] or " ") if match else None


def _text(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


COMPARISONS: dict[str, Callable[[str, str], bool]] = {
    "integer-match.py": _integers,
    "string-match.py": _strings,
    "size-match.py": _sizes,
    "containing.py": lambda answer, reference: _text(reference) in _text(answer),
    "in.py": lambda answer, reference: _text(answer) in _text(reference),
}
"""The comparisons of an answer with a reference, by the names of upstream's files."""

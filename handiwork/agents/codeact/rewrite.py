"""Rewrites of a function, each in a short and plain conversation of its own: small models do these best."""

from __future__ import annotations

import re

from handiwork.agents.base import AgentLLM
from handiwork.agents.codeact.lines import LineChoice, functions, replacement
from handiwork.agents.codeact.progress import failing, is_test, read_files
from handiwork.agents.prompts import render
from handiwork.agents.rendering import shorten
from handiwork.agents.state import State
from handiwork.events.action import FileEditAction
from handiwork.llm.types import Message

SUSPECTS = 3
"""Maximum number of functions that are rewritten in turn."""

LONGEST = 60
"""Maximum lines of a function that a small model can rewrite without losing any."""

_WHOLE_FILE = 120
_TESTS, _OUTPUT = 3_000, 1_500
_OUTLINE = re.compile(r"""(?:.*\n)*?.*[:{]\s*(?:\n|\Z)(?:\s*(\"{3}|'{3})(?:.|\n)*?\1\s*\n)?""")
_BLOCK = re.compile(r"```[^\n]*\n(.*?)(?:```|\Z)", re.DOTALL)


def suspects(state: State) -> list[tuple[str, str]]:
    """Return the functions that may make the check fail, as (path, name), the likeliest first.

    First come functions that the check's output names, the last named first, then functions that the tests name, then
    the rest of the files read.
    """
    failure = failing(state)
    files = read_files(state)
    if failure is None:
        return []
    output = failure[1].text
    tests = "\n".join(text for path, text in files.items() if is_test(path))
    ranked: list[tuple[tuple[int, int], str, str]] = []
    for path, text in files.items():
        if not is_test(path):
            for name, choice in functions(text).items():
                if choice.last - choice.first < LONGEST:
                    ranked.append((_rank(name, output, tests), path, name))
    return [(path, name) for _, path, name in sorted(ranked, key=lambda entry: entry[0])][:SUSPECTS]


def _rank(name: str, output: str, tests: str) -> tuple[int, int]:
    word = re.compile(rf"\b{re.escape(name)}\b")
    if mentions := list(word.finditer(output)):
        return (0, -mentions[-1].start())
    return (1, 0) if word.search(tests) else (2, 0)


async def rewrite(
    llm: AgentLLM, state: State, path: str, name: str, retry_temperature: float, *, anew: bool = False
) -> FileEditAction | None:
    """Return the edit that replaces a function by the model's new one; None if the reply does not contain it.

    ``anew`` hides the function's present body: a model that sees it tends to write the same again.
    """
    text = read_files(state)[path]
    choice = functions(text)[name]
    completion = await llm.complete([_question(state, path, choice, name, anew)], temperature=retry_temperature)
    block = _BLOCK.search(completion.content)
    function = functions(block[1] if block else completion.content).get(name)
    if function is None:
        return None
    old, new = replacement(text, choice, function.text)
    return FileEditAction(path=path, old=old, new=new).with_fields(completion=completion.event)


def _question(state: State, path: str, choice: LineChoice, name: str, anew: bool) -> Message:
    failure, files = failing(state), read_files(state)
    assert failure is not None
    lines = files[path].splitlines()
    code = outline(choice.text) if anew else choice.text
    if len(lines) <= _WHOLE_FILE:
        code = "\n".join([*lines[: choice.first], code, *lines[choice.last + 1 :]])
    return Message.text(
        "user",
        render(
            "codeact/rewrite",
            path=path,
            code=code,
            tests={other: shorten(content, _TESTS) for other, content in files.items() if is_test(other)},
            command=failure[0],
            output=shorten(failure[1].text, _OUTPUT),
            function=name,
            anew=anew,
        ),
    )


def outline(function: str) -> str:
    """Return a function without its body: its signature and docstring."""
    header = _OUTLINE.match(function)
    head = header[0] if header else function.splitlines()[0]
    indent = len(head) - len(head.lstrip()) + 4
    return f"{head.rstrip()}\n{' ' * indent}..."

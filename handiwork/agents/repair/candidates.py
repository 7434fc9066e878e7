"""The candidates of a round: short, plain prompts for the model, and the edits in its replies."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from handiwork.agents.base import AgentLLM
from handiwork.agents.prompts import render
from handiwork.agents.protocols.ask import ask_in_form
from handiwork.agents.rendering import shorten
from handiwork.agents.repair.edits import Texts, code_lines, edits_between
from handiwork.agents.repair.functions import (
    Lines,
    bare,
    choices,
    constants,
    definitions,
    functions,
    inline_tests,
    outline,
    replaced,
)
from handiwork.agents.repair.localise import OUTPUT, excerpts
from handiwork.agents.repair.places import Place, Project
from handiwork.agents.repair.progress import Candidate
from handiwork.llm.errors import ContextWindowError, EmptyAnswerError, OutputLimitError
from handiwork.llm.strict_json import parse
from handiwork.llm.types import JsonSchema, Message

LONGEST, SMALL_FILE = 60, 120
"""Maximum lines of a function and of a file that a small model can write whole without losing any."""

PLACES = 4
"""Maximum number of functions that are repaired in turn."""

TOGETHER = 3
"""Maximum number of files repaired in one candidate."""

RETRIES = 2
"""Retries after a reply without a usable or without a new candidate."""

_BLOCK = re.compile(r"```[^\n]*\n(.*?)(?:```|\Z)", re.DOTALL)
_ENDS = re.compile(r"^(?:module\.exports\b|export\s*\{|if __name__|exports\.|main\b.*\"\$@\")", re.MULTILINE)
_IMPORT = re.compile(r"^(?:import\b|from (?!__future__)\S+ import\b|use \w|#include\b|const .*=\s*require\()")
_HEAD = re.compile(
    r"""(?:\s*(?:(?:\#|//)[^\n]*|/\*(?s:.*?)\*/|[rR]?(\"{3}|'{3})(?s:.*?)\1|["']use\ [\w ]+["'];?
    |<\?php\b|package\b[^\n]*|namespace\b[^\n{;]*;|declare\b[^\n;]*;
    |from\ __future__\ import\ (?:\([^)]*\)|[^\n]*)))*""",
    re.VERBOSE,
)
"""The head of a file, which imports must follow: comments, docstring, package and the like."""

How = Literal["rewrite", "anew", "line", "add", "delete", "file", "together"]


@dataclass(frozen=True, slots=True)
class Ask:
    """One kind of candidate: a place, and how it is repaired; "together" repairs the functions of several ``places``.

    "anew" hides the function's current body, which a model that sees it tends to repeat.
    """

    how: How
    places: tuple[Place, ...]

    @property
    def place(self) -> Place:
        """The first place."""
        return self.places[0]

    @property
    def target(self) -> str:
        """The description of the candidate."""
        match self.how:
            case "file":
                return f"rewrite {self.place.path}"
            case "together":
                return f"repair {', '.join(dict.fromkeys(place.path for place in self.places))} together"
            case "anew":
                return f"write {self.place.name} in {self.place.path} anew"
            case "line":
                return f"replace a line of {self.place.name} in {self.place.path}"
            case how:
                return f"{how} {self.place.name} in {self.place.path}"


def menu(places: Sequence[Place], files: Mapping[str, str]) -> list[Ask]:
    """Return the kinds of candidates to ask for, in order: the likeliest places first, in several ways each."""
    chosen = list(dict.fromkeys(places))[:PLACES]
    ranked = [
        (rank + way, rank, ask) for rank, place in enumerate(chosen) for way, ask in enumerate(_ways(place, files))
    ]
    asks = [ask for _, _, ask in sorted(ranked, key=lambda item: item[:2])]
    paths = list(dict.fromkeys(place.path for place in chosen)) or list(files)
    if len(paths) > 1 and chosen:
        asks.insert(min(len(chosen), len(asks)), Ask("together", tuple(chosen)))
    small = [path for path in paths if files[path].count("\n") <= SMALL_FILE][:TOGETHER]
    return [*asks, *(Ask("file", (Place(path, ""),)) for path in small)]


async def propose(
    llm: AgentLLM, project: Project, task: str, ask: Ask, temperatures: Sequence[float], known: Sequence[Candidate]
) -> Candidate | None:
    """Return a candidate that is not ``known``; None if none of the replies, one at each temperature, gives one."""
    if ask.how == "delete":
        return _new(ask.target, project, _without(project, ask.place), known)
    tried = Counter(candidate.target for candidate in known)
    lines = _lines(project, ask.place, tried) if ask.how == "line" else {}
    if ask.how == "line" and not lines:
        return None
    for temperature in temperatures:
        try:
            completion = await ask_in_form(llm, _question(project, task, ask), _schema(lines), temperature)
        except ContextWindowError:
            return None
        except (EmptyAnswerError, OutputLimitError):
            continue
        target, changed = _changed(project, ask, completion.content, lines)
        if candidate := _new(target, project, changed, known):
            return candidate
    return None


def _ways(place: Place, files: Mapping[str, str]) -> list[Ask]:
    if place.act != "rewrite":
        return [Ask(place.act, (place,))]
    text = files[place.path]
    lines = definitions(text)[place.name]
    whole: list[How] = ["rewrite", "line"] if place.name in constants(text) else ["rewrite", "anew", "line"]
    ways: list[How] = whole if lines.last - lines.first < LONGEST else ["line"]
    return [Ask(how, (place,)) for how in ways]


def _question(project: Project, task: str, ask: Ask) -> Message:
    code = _code(project, ask)
    return Message.text(
        "user",
        render(
            "repair/candidate",
            code=code,
            tests={path: text for path, text in excerpts(project).items() if text not in code.get(path, "")},
            check=project.check,
            output=shorten(project.output, OUTPUT),
            task=task,
            how=ask.how,
            definition=ask.place.name if ask.how == "add" else bare(ask.place.name),
            kind="constant" if ask.place.name in constants(project.files[ask.place.path]) else "function",
            path=ask.place.path,
        ),
    )


def _code(project: Project, ask: Ask) -> Texts:
    """Return the code that a question shows: the whole file if it is small, else the function alone."""
    shown: Texts = {}
    for path in dict.fromkeys(place.path for place in ask.places):
        text = project.files[path]
        found, lines = definitions(text), text.splitlines()
        places = [found[place.name] for place in ask.places if place.path == path and place.name in found]
        if ask.how == "anew":
            (place,) = places
            code = outline(place.text)
            text = "\n".join([*lines[: place.first], code, *lines[place.last + 1 :]])
        else:
            code = "\n\n".join(place.text for place in places) or text
        shown[path] = text if len(lines) <= SMALL_FILE else code
    return {**_callers(project, ask, shown), **shown}


def _callers(project: Project, ask: Ask, shown: Texts) -> Texts:
    """Return the functions of other files that call the place, so that the model sees how it is used."""
    callers: Texts = {}
    word = re.compile(rf"\b{re.escape(bare(ask.place.name))}\b")
    for path, text in project.editable.items():
        calling = [lines.text for lines in functions(text).values() if word.search(lines.text)]
        if path not in shown and ask.place.name and calling:
            callers[path] = shorten("\n\n".join(calling), OUTPUT)
    return callers


def _lines(project: Project, place: Place, tried: Mapping[str, int]) -> dict[str, Lines]:
    """Return the function's lines to offer for replacement: those that were replaced least often."""
    text = project.files[place.path]
    body = definitions(text)[place.name]
    first = body.first + (place.name in functions(text) or body.last > body.first)
    inside = {key: line for key, line in choices(text).items() if first <= line.first <= body.last}
    times = {key: tried.get(_line_target(place, key), 0) for key in inside}
    return {key: inside[key] for key, count in times.items() if count == min(times.values())}


def _line_target(place: Place, line: str) -> str:
    return f"replace a line of {place.name} in {place.path}: {line}"


def _schema(lines: Mapping[str, Lines]) -> JsonSchema | None:
    if not lines:
        return None
    properties = {"line": {"enum": list(lines)}, "new": {"type": "string", "maxLength": 2000}}
    return {"type": "object", "properties": properties, "required": ["line", "new"], "additionalProperties": False}


def _changed(project: Project, ask: Ask, reply: str, lines: Mapping[str, Lines]) -> tuple[str, Texts]:
    """Return the candidate's target and its files, changed as the reply says; none if the reply is of no use."""
    path, text = ask.place.path, project.files[ask.place.path]
    match ask.how:
        case "line":
            return _changed_line(ask.place, text, reply, lines)
        case "file":
            blocks = _BLOCK.findall(reply)
            return ask.target, {path: max(blocks, key=len)} if blocks else {}
        case "together":
            return ask.target, _changed_together(project, reply)
        case _:
            block, name = _first_block(reply), ask.place.name
            written = _written(block, name)
            if written is None:
                return ask.target, {}
            whole_name, lines_of = written
            if "." not in name and name not in definitions(text):
                name = whole_name
            imports = [line for line in block.splitlines()[: lines_of.first] if _IMPORT.match(line)]
            return ask.target, {path: _with_imports(_with_function(text, name, lines_of.text), imports)}


def _written(block: str, name: str) -> tuple[str, Lines] | None:
    """Return the definition of the name in a block, and its name there, which may have the class around it.

    At the margin a method of JavaScript looks like a call.
    """
    for text in (block, textwrap.indent(block, "  ")):
        found = definitions(text)
        same = [other for other in found if bare(other) == bare(name)]
        if same:
            whole = name if name in same else same[0]
            return whole, found[whole]
    return None


def _changed_line(place: Place, text: str, reply: str, lines: Mapping[str, Lines]) -> tuple[str, Texts]:
    try:
        value = cast("dict[str, Any]", parse(reply[reply.find("{") : reply.rfind("}") + 1]))
        line, new = "\n".join(map(str.strip, str(value["line"]).splitlines())), str(value["new"])
        return _line_target(place, line), {place.path: replaced(text, lines[line], new)}
    except (ValueError, KeyError, TypeError):
        return _line_target(place, ""), {}


def _changed_together(project: Project, reply: str) -> Texts:
    """Return the files with the functions of the reply's blocks; the line before a block names its file."""
    changed: Texts = {}
    for block in _BLOCK.finditer(reply):
        heading = reply[: block.start()].rstrip().rsplit("\n", 1)[-1]
        path = max((path for path in project.editable if path in heading), key=len, default=None)
        if path is None:
            continue
        text = changed.get(path, project.files[path])
        for name, lines in functions(block[1]).items():
            if not _is_nested(lines, functions(block[1])):
                text = _with_function(text, name, lines.text)
        changed[path] = text
    return changed


def _is_nested(lines: Lines, all_lines: Mapping[str, Lines]) -> bool:
    return any(other.first < lines.first <= other.last for other in all_lines.values())


def _with_function(text: str, name: str, written: str) -> str:
    """Return the text with the function replaced, or added after the others, before the file's closing lines.

    A new method follows the last one of its class.
    """
    found, owner = definitions(text), name.rpartition(".")[0]
    siblings = [lines for other, lines in found.items() if owner and other.rpartition(".")[0] == owner]
    place = found.get(name)
    if place is None and siblings:
        last = max(siblings, key=lambda lines: lines.last)
        indent = re.match(r"[ \t]*", last.text)
        method = textwrap.indent(textwrap.dedent(written.strip("\n")), indent[0] if indent else "")
        return replaced(text, last, f"{last.text}\n\n{method}")
    place = place or next((lines for other, lines in found.items() if bare(other) == bare(name)), None)
    if place is not None:
        return replaced(text, place, written)
    end = next((match.start() for match in _ENDS.finditer(text)), len(text))
    before, after = text[:end].rstrip("\n"), text[end:]
    return f"{before}\n\n\n{written.strip()}\n" + (f"\n\n{after}" if after else "")


def _with_imports(text: str, imports: Sequence[str]) -> str:
    """Return the text with the missing imports of one line added, before its own or after its head."""
    lines = text.splitlines()
    missing = [line for line in imports if line not in lines and not line.rstrip().endswith(("(", "{", ",", "\\"))]
    first = next((number for number, line in enumerate(lines) if _IMPORT.match(line)), None)
    if first is None:
        head = _HEAD.match(text)
        first = len(head[0].splitlines()) if head else 0
    if not missing:
        return text
    before, after = lines[:first], text.splitlines(keepends=True)[first:]
    return "".join([*(f"{line}\n" for line in (*before, *missing)), *after])


def _without(project: Project, place: Place) -> Texts:
    """Return the file without the function and its decorators."""
    text = project.files[place.path]
    lines = definitions(text)[place.name]
    before = text.splitlines()
    first = lines.first
    while first and before[first - 1].lstrip().startswith("@"):
        first -= 1
    return {place.path: replaced(text, Lines("", first, lines.last), "")}


def _first_block(reply: str) -> str:
    block = _BLOCK.search(reply)
    return block[1] if block else reply


def _new(target: str, project: Project, changed: Texts, known: Sequence[Candidate]) -> Candidate | None:
    """Return the candidate with these texts; None if it changes no code, or a test, or was known."""
    texts = {path: _with_line_ends(text, project.files[path]) for path, text in changed.items() if text.strip()}
    different = {path: text for path, text in texts.items() if code_lines(text) != code_lines(project.files[path])}
    if any(_tests(text) != _tests(project.files[path]) for path, text in different.items()):
        return None
    edits = edits_between(project.files, different)
    if not edits:
        return None
    candidate = Candidate(target=target, edits=tuple(edits))
    return None if any(candidate.is_same_as(one) for one in known) else candidate


def _tests(text: str) -> list[str]:
    return [test.text for test in inline_tests(text)]


def _with_line_ends(text: str, before: str) -> str:
    """Return the text with the line ends of the file before: a model writes no carriage returns."""
    if "\r\n" not in before or before.count("\r\n") != before.count("\n"):
        return text
    return text.replace("\r\n", "\n").replace("\n", "\r\n")

"""Localisation by the model: it chooses files from the tree, and functions and constants from their outlines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any, cast

from handiwork.agents.base import AgentLLM
from handiwork.agents.prompts import render
from handiwork.agents.protocols.ask import ask_in_form
from handiwork.agents.rendering import shorten
from handiwork.agents.repair.functions import bare, constants, definitions, functions, outline
from handiwork.agents.repair.places import Place, Project, suspects
from handiwork.events.action import AgentThinkAction
from handiwork.llm.errors import EmptyAnswerError, OutputLimitError
from handiwork.llm.strict_json import parse
from handiwork.llm.types import JsonSchema, Message

MOST = 4
"""Maximum number of files, and of places in them, that the model chooses at once."""

WHICH_FILES, WHICH_PLACES = "Which files have the mistake?", "Which functions or constants are wrong?"
"""The thoughts by which the history tells the model's replies apart."""

TEMPERATURES = (0.0, 1.0)
"""The temperatures of a choice, and of the same question after an empty answer."""

FEW = 3
"""Number of suspects that are tried without asking the model."""

PATHS, OUTLINES = 300, 12_000
"""Maximum number of paths, and characters of outlines, that the model is shown."""

TESTS, OUTPUT = 3_000, 1_500
"""Maximum characters of a test file, and of the check's output, that the model is shown."""

VALUE = 300
"""Maximum characters of a constant that the model is shown in an outline."""

TEST_FILES = 2
"""Maximum number of test files that the model is shown."""


async def choose_files(llm: AgentLLM, project: Project, task: str, paths: Sequence[str]) -> AgentThinkAction:
    """Ask the model which files to read; ``chosen_files`` reads its reply."""
    output = shorten(project.output, OUTPUT)
    clues = f"{task}\n{project.output}\n" + "\n".join(project.tests.values())
    offered = sorted(paths, key=lambda path: PurePosixPath(path).stem not in clues)[:PATHS]
    prompt = render("repair/files", check=project.check, output=output, task=task, paths=offered, most=MOST)
    items = {"type": "array", "items": {"enum": offered}, "minItems": 1, "maxItems": MOST}
    return await _choose(llm, WHICH_FILES, prompt, _object(files=items))


def chosen_files(reply: str, listed: Sequence[str]) -> list[str]:
    """Return the listed files that the model chose."""
    return [path for path in _list(reply, "files") if path in listed][:MOST]


async def choose_places(llm: AgentLLM, project: Project, task: str) -> AgentThinkAction:
    """Ask the model which functions or constants to repair; ``chosen_places`` reads its reply."""
    places = [place for place in suspects(project) if place.act != "add"]
    prompt = render(
        "repair/places",
        outlines=_outlines(project, places),
        tests=excerpts(project),
        check=project.check,
        output=shorten(project.output, OUTPUT),
        task=task,
        most=MOST,
    )
    paths = list(project.editable)
    names = list(dict.fromkeys(place.name for place in places))
    known = _object(act={"enum": ["rewrite", "delete"]}, path={"enum": paths}, name={"enum": names})
    added = _object(act={"const": "add"}, path={"enum": paths}, name={"type": "string", "maxLength": 60})
    items = {"type": "array", "items": {"anyOf": [known, added]}, "minItems": 1, "maxItems": MOST}
    return await _choose(llm, WHICH_PLACES, prompt, _object(places=items))


async def _choose(llm: AgentLLM, thought: str, prompt: str, form: JsonSchema) -> AgentThinkAction:
    """Return the thought with the model's reply; without one if the model gives no answer."""
    for temperature in TEMPERATURES:
        with suppress(EmptyAnswerError, OutputLimitError):
            completion = await ask_in_form(llm, Message.text("user", prompt), form, temperature)
            return AgentThinkAction(thought=thought, completion=completion.event)
    return AgentThinkAction(thought=thought)


def chosen_places(reply: str, project: Project) -> list[Place]:
    """Return the places that the model chose, without those that do not exist.

    The outlines show methods without their classes, so a bare name stands for each of that name.
    """
    found = {path: definitions(text) for path, text in project.editable.items()}
    places: list[Place] = []
    for value in _list(reply, "places"):
        if not isinstance(value, dict):
            continue
        choice = cast("dict[str, Any]", value)
        path, name, act = str(choice.get("path")), str(choice.get("name")), choice.get("act")
        known = found.get(path, {})
        is_new = act == "add" and path in found and name not in known and re.fullmatch(r"[\w.-]+", name)
        if act in ("rewrite", "delete"):
            names = [name] if name in known else [other for other in known if bare(other) == name]
            places += [Place(path, each, act) for each in names]
        elif is_new:
            places.append(Place(path, name, "add"))
    return places[:MOST]


def excerpts(project: Project) -> dict[str, str]:
    """Return the first test files; of a long one its head, and the tests that the output names."""
    return {path: _excerpt(text, project.output) for path, text in list(project.tests.items())[:TEST_FILES]}


def _excerpt(text: str, output: str) -> str:
    found = functions(text)
    named = [lines for name, lines in found.items() if re.search(rf"\b{re.escape(bare(name))}\b", output)]
    if len(text) <= TESTS or not named:
        return shorten(text, TESTS)
    head = "\n".join(text.splitlines()[: min(lines.first for lines in found.values())])
    return shorten("\n\n".join([shorten(head, TESTS // 3), *(lines.text for lines in named)]), TESTS)


def _outlines(project: Project, places: Sequence[Place]) -> dict[str, str]:
    """Return outlines of the likeliest functions and constants by file, OUTLINES characters at most."""
    found = {path: functions(text) for path, text in project.editable.items()}
    values = {path: constants(text) for path, text in project.editable.items()}
    texts: dict[str, str] = {}
    for place in places:
        value = values[place.path].get(place.name)
        text = shorten(value.text, VALUE) if value else outline(found[place.path][place.name].text)
        if sum(map(len, texts.values())) + len(text) > OUTLINES:
            break
        texts[place.path] = f"{texts[place.path]}\n\n{text}" if place.path in texts else text
    return texts


def _list(reply: str, key: str) -> list[Any]:
    """Return the list of a reply, which may be JSON in a text, an empty one if there is none."""
    start, end = reply.find("{"), reply.rfind("}")
    try:
        value = parse(reply[start : end + 1])
    except ValueError:
        return []
    values = cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None
    return cast("list[Any]", values) if isinstance(values, list) else []


def _object(**properties: JsonSchema) -> JsonSchema:
    required = list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

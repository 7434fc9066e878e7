"""CodeAct for small models: replies bound to a JSON schema, and no model call for a step that the history implies."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import cast

from handiwork.agents.base import AgentLLM
from handiwork.agents.codeact import examples
from handiwork.agents.codeact.lines import choices, functions, replacement
from handiwork.agents.codeact.message_cache import MessageCache
from handiwork.agents.codeact.progress import (
    OVERVIEW,
    READ_UNASKED,
    attempts,
    failing,
    has_run_something,
    is_blank,
    is_test,
    just_edited,
    lacks_overview,
    listed_files,
    may_finish,
    next_to_read,
    patience,
    read_files,
    tried_already,
    undo,
    useless_edit,
    visible,
)
from handiwork.agents.codeact.replies import THOUGHT, parse, string, variant
from handiwork.agents.codeact.rewrite import rewrite, suspects
from handiwork.agents.prompts import render
from handiwork.agents.rendering import observation_text
from handiwork.agents.state import State
from handiwork.events.action import (
    AgentFinishAction,
    AgentRejectAction,
    CmdRunAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    IPythonRunCellAction,
    MessageAction,
)
from handiwork.events.base import Action, Part
from handiwork.events.observation import CmdOutputObservation
from handiwork.llm.types import JsonSchema, Message

OBSERVATION_LIMIT = 4_000
"""Maximum characters of an observation for a small model."""

GRACE = 60.0
"""Further seconds for a command that is still running after its timeout."""

LONG_THOUGHT = 1_000
"""Maximum characters of a thought in a workspace without files."""

RETRIES = 3
"""Maximum model calls for one new reply."""

ATTEMPTS = 28
"""Failed repairs after which the agent rejects the task."""

NAMED_COMMAND = re.compile(
    r"`((?:python3?|pytest|make|tox|nox|uv|npm|npx|pnpm|yarn|node|deno|bun|go|cargo|mvn|gradle|ctest|ruby|rake|bundle|php|dotnet"
    r"|sh|bash|\./\S+)\b[^`\n]*)`"
)
"""A command in backticks in the task's text."""

FIRST_REWRITES, LINES_BETWEEN = 2, 3
"""Repairs start with ``FIRST_REWRITES`` function rewrites; then one follows every ``LINES_BETWEEN`` line edits."""


async def step(llm: AgentLLM, state: State, cache: MessageCache) -> Action:
    """Return the next action: the one that follows from the history, else the model's choice."""
    if (implied := following(state)) is not None:
        return implied
    failure = failing(state)
    if failure is not None:
        if attempts(state) >= ATTEMPTS:
            return AgentRejectAction(outputs={"reason": f"`{failure[0]}` still fails after {ATTEMPTS} repairs"})
        if (edit := await _next_rewrite(llm, state)) is not None:
            return edit
    tries, allowed = attempts(state), schema(state)
    action = await _ask(llm, state, cache, allowed, temperature(tries))
    for retry in range(1, RETRIES):
        if not tried_already(state, action):
            break
        if isinstance(action, CmdRunAction | IPythonRunCellAction | FileWriteAction):
            allowed = _without_commands(allowed)
        action = await _ask(llm, state, cache, allowed, temperature(tries + 2 * retry))
    if isinstance(action, AgentFinishAction) and failure is not None:
        message = action.outputs["message"]
        return AgentRejectAction(
            outputs={"reason": f"`{failure[0]}` still fails", "message": message}, thought=action.thought
        )
    return action


async def _next_rewrite(llm: AgentLLM, state: State) -> Action | None:
    """Return an edit that rewrites a function; None if no rewrite is due or all were tried already.

    A small model rewrites as many functions from their calls and tests as it repairs, but different ones.
    """
    turn, candidates = rewrites(attempts(state)), suspects(state)
    if turn is None or not candidates:
        return None
    path, name = candidates[turn // 2 % len(candidates)]
    for retry in range(RETRIES):
        action = await rewrite(llm, state, path, name, temperature(turn // 2 + retry), anew=(turn + retry) % 2 == 1)
        if action is not None and not tried_already(state, action):
            return action
    return None


def rewrites(tries: int) -> int | None:
    """Return the number of earlier rewrites if the next repair is a rewrite, None if it is a line edit."""
    if tries < FIRST_REWRITES:
        return tries
    turn, offset = divmod(tries - FIRST_REWRITES, LINES_BETWEEN + 1)
    return FIRST_REWRITES + turn if offset == LINES_BETWEEN else None


async def _ask(
    llm: AgentLLM, state: State, cache: MessageCache, allowed: JsonSchema, retry_temperature: float
) -> Action:
    completion = await llm.complete(messages(state, cache), schema=allowed, temperature=retry_temperature)
    return parse(completion.content, read_files(state)).with_fields(completion=completion.event)


def temperature(tries: int) -> float:
    """Return 0 for the first try, and higher temperatures after more failed tries."""
    return 0.0 if tries == 0 else min(1.0, 0.4 + 0.1 * tries)


def following(state: State) -> Action | None:
    """Return the obvious next action, if any: list the files, rerun the check, read a file that the check names."""
    if lacks_overview(state):
        return CmdRunAction(command=OVERVIEW, thought="What is here?")
    match state.history[-1][1]:
        case CmdOutputObservation(status="input"):
            return CmdRunAction(command="", timeout=1, thought="It waits for input, which I cannot give.")
        case CmdOutputObservation(status="running"):
            return CmdRunAction(command="", timeout=GRACE, thought="Does it come to an end?")
        case _:
            pass
    if not has_run_something(state) and (mention := NAMED_COMMAND.search(state.task)):
        return CmdRunAction(command=mention[1], thought="What does it say now?")
    failure = failing(state)
    if failure is not None and just_edited(state):
        return CmdRunAction(command=failure[0], timeout=patience(state, failure[0]), thought="Does it work now?")
    if (edit := useless_edit(state)) is not None:
        return undo(edit)
    path = next_to_read(state)
    return None if path is None else FileReadAction(path=path, thought=f"What does {path} say?")


def schema(state: State) -> JsonSchema:
    """Return the schema of replies allowed now: run a command, read a file, replace lines, or in the end finish.

    The first reply runs a command; files are read once. While a check fails in files that were read, the model may
    only edit them, and now and then read another file. After failed rewrites, replies omit the thought: it would only
    repeat itself.
    """
    if is_blank(state):
        return _blank()
    bash = variant("bash", command=string(1000))
    if not has_run_something(state):
        return bash
    files = read_files(state)
    checking = failing(state) is not None
    edits: list[JsonSchema] = []
    tries = attempts(state)
    thought = THOUGHT if tries <= FIRST_REWRITES else 0
    for path, text in list(files.items())[-READ_UNASKED:]:
        if not (checking and is_test(path)) and (lines := _least_edited_lines(state, path, text)):
            edit: dict[str, JsonSchema] = {"path": {"const": path}, "old": {"enum": lines}, "new": string(2000)}
            edits.append(variant("edit", thought=thought, **edit))
    if checking and edits and tries % 8 != 7:
        return {"anyOf": edits}
    variants = [*edits] if checking and edits else [bash, *edits]
    if paths := [path for path in listed_files(state) if path not in files][:60]:
        variants.append(variant("read", path={"enum": paths}))
    if may_finish(state):
        variants.append(variant("finish", message=string(500)))
    return {"anyOf": variants}


def _blank() -> JsonSchema:
    """Return the schema of replies in a workspace without files; this work needs longer thoughts."""
    return {
        "anyOf": [
            variant("python", thought=LONG_THOUGHT, code=string(2000)),
            variant("bash", thought=LONG_THOUGHT, command=string(1000)),
            variant("write", thought=LONG_THOUGHT, path=string(100), content=string(4000)),
            variant("finish", thought=LONG_THOUGHT, message=string(500)),
        ]
    }


def _least_edited_lines(state: State, path: str, text: str) -> list[str]:
    """Return the lines to offer for editing: those that the model has edited least often.

    If the check may fail because of functions in the file, only lines of their bodies are offered.
    """
    tried = Counter((a.path, a.old) for a, _ in state.history if isinstance(a, FileEditAction) and a.completion)
    by_name, lines = functions(text), choices(text)
    bodies = [by_name[name] for suspect, name in suspects(state) if suspect == path]
    inside = {key: line for key, line in lines.items() if any(b.first < line.first <= b.last for b in bodies)}
    times = {key: tried[path, replacement(text, line, "")[0]] for key, line in (inside or lines).items()}
    minimum = min(times.values(), default=0)
    return [key for key, count in times.items() if count == minimum]


def _without_commands(allowed: JsonSchema) -> JsonSchema:
    """Return the schema without commands, if variants remain: a model that repeats a command knows no better one."""
    commands = ("bash", "python", "write")
    variants = [
        option for option in allowed.get("anyOf", []) if option["properties"]["action"]["const"] not in commands
    ]
    return {"anyOf": variants} if variants else allowed


def messages(state: State, cache: MessageCache) -> list[Message]:
    """Return the conversation so far: the model's replies, and between them all messages and observations."""
    cache.begin()
    blank = is_blank(state)
    conversation = [*cache.get_or_build(0, (blank,), _system), *(examples.BLANK if blank else examples.REPAIR)]
    parts: list[Part] = []
    for action, observation in visible(state):
        completion = state.completions.get(action.completion or 0)
        if completion is not None:
            reply = cast("str", completion.response.get("content") or "")
            conversation += cache.get_or_build(completion.id, (tuple(parts), reply), _exchange)
            parts = []
        if isinstance(action, MessageAction) and action.source != "agent":
            parts += [Part(text=action.content), *action.images]
        elif observation is not None and not (blank and completion is None):
            text = observation_text(action, observation, OBSERVATION_LIMIT)
            parts.append(Part(text=text if completion is not None else f"\n{_heading(action)}{text}"))
    return [*conversation, Message("user", tuple(parts))]


def _system(blank: bool) -> Iterator[Message]:
    yield Message.text("system", render("codeact/blank" if blank else "codeact/constrained"))


def _exchange(parts: tuple[Part, ...], reply: str) -> Iterator[Message]:
    yield Message("user", parts)
    yield Message.text("assistant", reply)


def _heading(action: Action) -> str:
    match action:
        case CmdRunAction(command=command):
            return "Files:\n" if command == OVERVIEW else f"$ {command}\n"
        case FileReadAction(path=path):
            return f"{path}:\n"
        case _:
            return ""

"""DirectAgent, the baseline of comparisons: one model call, and one run of the script in its reply."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import cast

from handiwork.agents.base import Agent, Step
from handiwork.agents.history import History
from handiwork.agents.prompts import render
from handiwork.agents.protocols.ask import UNKNOWN_WINDOW, is_cut
from handiwork.agents.protocols.text_reply import inside_documents
from handiwork.agents.rendering import observation_text, shorten
from handiwork.agents.state import State
from handiwork.events.action import AgentFinishAction, AgentRejectAction, CmdRunAction, FileReadAction, MessageAction
from handiwork.events.base import Action, Observation, Part
from handiwork.events.observation import CmdOutputObservation
from handiwork.events.overview import ADVICE
from handiwork.llm.types import Completion, Message

LIST = (
    r"find . \( -name .git -o -name node_modules -o -name __pycache__ -o -name .venv \) -prune "
    r"-o -type f -printf '%s %P\n' | LC_ALL=C sort -k 2 | head -n 500"
)
"""Lists the files of the workspace, each with its size in bytes."""

HISTORY = (
    "git --no-optional-locks status --short --branch 2>/dev/null && "
    "git --no-pager log --oneline --graph --decorate --all -n 20 2>/dev/null || true"
)
"""Shows the state of the workspace's repository, if it is one."""

REMINDER = "(Answer in words. If something is to be done, do it in one ```bash block: no other block runs.)"
"""Ends every prompt: a small model follows the last sentence best."""

SHARE = 1.5
"""Characters of files in the prompt for each token of the model's window, about half of it."""

LONGEST_FILE = 100_000
"""Characters of one file."""

SECONDS = 120.0
"""The time limit of the script."""

LONGEST_OUTPUT = 8_000
"""Characters of the script's output."""

CUT = "The script of the reply was not run: the reply reached its length limit and was cut."
"""The reason for the end after a reply whose script has no end."""

_REFUSAL = re.compile(r"[*#\s]*I (?:cannot|can.t)\b", re.IGNORECASE)
_OPENING = re.compile(r"([ \t]*)(`{3,})[ \t]*(?:bash|sh|shell)[ \t]*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DirectReply:
    """A reply's ``script``, "" without one, the ``text`` outside of it, and whether it refuses the task.

    A refusal begins with "I cannot" and has no script. The prompt does not mention refusals, which small models would
    then prefer to tasks they can do.
    """

    text: str
    script: str
    refused: bool


class DirectAgent(Agent):
    """Shows the model the task and the workspace's files in one prompt, and runs the bash script of its reply.

    It first reads the files, small ones before large ones, up to a budget of characters. It finishes after the script,
    with the reply's text and the script's output as its message. A later message of the user starts one more prompt.
    """

    description = "A baseline for comparisons: asks the model once, with all files, and runs its one script."

    async def step(self, state: State) -> Step:
        """Read the workspace, ask the model, or finish with the script's output."""
        commands = {action.command for action, _ in state.history if isinstance(action, CmdRunAction)}
        if LIST not in commands:
            return [CmdRunAction(command=LIST), CmdRunAction(command=HISTORY)]
        budget = int(SHARE * (self.llm.capabilities.window or UNKNOWN_WINDOW))
        is_read = any(isinstance(action, FileReadAction) for action, _ in state.history)
        if not is_read and (paths := _paths_to_read(state.history, budget)):
            return [FileReadAction(path=path) for path in paths]
        action, observation = state.history[-1]
        if _is_script(action) and observation is not None:
            return AgentFinishAction(outputs={"message": f"{action.thought}\n\n{_output(observation)}".strip()})
        completion = await self.llm.complete(messages(state))
        return _action(parse(completion.content), completion)


def parse(content: str) -> DirectReply:
    """Return the parts of a reply; the script consists of all blocks marked as bash, in their order."""
    lines = content.replace("\r\n", "\n").split("\n")
    words: list[str] = []
    script: list[str] = []
    while lines:
        line = lines.pop(0)
        if opening := _OPENING.match(line):
            end = _end(lines, opening[2])
            script += [line.removeprefix(opening[1]) for line in lines[:end]]
            del lines[: end + 1]
        else:
            words.append(line)
    text = "\n".join(words).strip()
    return DirectReply(text, "\n".join(script).strip(), not script and _REFUSAL.match(text) is not None)


def _end(lines: Sequence[str], fence: str) -> int:
    """Return the index of the line that closes a block; a fence in a here-document belongs to the document.

    If a here-document has no end, the first fence closes the block; without a fence it extends to the reply's end.
    """
    closing = [number for number, line in enumerate(lines) if line.strip() == fence]
    inside = set(inside_documents(lines))
    return next((number for number in closing if number not in inside), closing[0] if closing else len(lines))


def _action(reply: DirectReply, completion: Completion) -> Action:
    """Return the action of a reply: its script, its refusal, or its answer. Half a script does not run."""
    if reply.script:
        if is_cut(completion, blocks=True):
            return AgentRejectAction(outputs={"reason": CUT, "message": f"{reply.text}\n\n{CUT}".strip()})
        command = f"bash -c {shlex.quote(reply.script)} < /dev/null"
        return CmdRunAction(command=command, thought=reply.text, timeout=SECONDS)
    if reply.refused:
        return AgentRejectAction(outputs={"reason": reply.text, "message": reply.text})
    return AgentFinishAction(outputs={"message": reply.text})


def messages(state: State) -> list[Message]:
    """Return the conversation so far; the files stand before the first message of the user."""
    conversation = [Message.text("system", render("direct/system"))]
    parts: list[Part] = [Part(text=_workspace(state.history))]
    for action, observation in state.history:
        completion = state.completions.get(action.completion or 0)
        if completion is not None:
            reply = cast("str", completion.response.get("content") or "")
            conversation += [Message("user", tuple(parts)), Message.text("assistant", reply)]
            parts = []
        if _is_script(action) and observation is not None:
            parts.append(Part(text=f"The script's output:\n{_output(observation)}\n\n"))
        elif isinstance(action, MessageAction) and action.source != "agent":
            parts += [Part(text=f"{action.content}\n\n"), *action.images]
    return [*conversation, Message("user", (*parts, Part(text=REMINDER)))]


def _is_script(action: Action) -> bool:
    return isinstance(action, CmdRunAction) and action.completion is not None


def _output(observation: Observation) -> str:
    """Return a script's output, with a note on a failure."""
    text = shorten(observation.text.strip(), LONGEST_OUTPUT)
    match observation:
        case CmdOutputObservation(status="timeout"):
            return f"{text}\n[stopped after {SECONDS:g} seconds]".lstrip()
        case CmdOutputObservation() if observation.error:
            return f"{text}\n[exit code {observation.exit_code}]".lstrip()
        case _:
            return text


def _paths_to_read(history: History, budget: int) -> list[str]:
    """Return the files to read: the smallest ones, ``budget`` bytes together, in the order of their names."""
    sizes = {path: size for path, size in _listed(history) if path.rpartition("/")[2] not in ADVICE}
    smallest = sorted(sizes, key=lambda path: sizes[path])
    totals = accumulate(sizes[path] for path in smallest)
    chosen = {path for path, total in zip(smallest, totals, strict=True) if total <= budget}
    return [path for path in sizes if path in chosen]


def _listed(history: History) -> Iterator[tuple[str, int]]:
    """Yield the path and the size in bytes of every listed file."""
    for line in _output_of(LIST, history).splitlines():
        size, _, path = line.partition(" ")
        if size.isdecimal() and path:
            yield path, int(size)


def _output_of(command: str, history: History) -> str:
    """Return the output of one of the agent's own commands, "" if it has none yet."""
    pairs = ((a, o) for a, o in history if isinstance(a, CmdRunAction) and a.command == command)
    return next((observation.text for _, observation in pairs if observation is not None), "")


def _workspace(history: History) -> str:
    """Return the prompt's part about the workspace."""
    contents = {
        action.path: observation_text(observation, LONGEST_FILE)
        for action, observation in history
        if isinstance(action, FileReadAction) and observation is not None
    }
    unread = [(path, size) for path, size in _listed(history) if path not in contents]
    git = _output_of(HISTORY, history).strip()
    return render("direct/workspace", contents=contents, unread=unread, git=git) + "\n\n"

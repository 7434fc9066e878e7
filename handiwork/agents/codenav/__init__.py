"""CodeNavAgent, the agent of the CodeNav paper: it searches a codebase, then imports and runs the code it found."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from handiwork.agents.base import Agent, MalformedReplyError, Step
from handiwork.agents.codenav.codebase import DescribeCodebaseAction, DescribeCodebaseObservation
from handiwork.agents.codenav.execution import RunCodeAction, RunCodeObservation, printed_by
from handiwork.agents.codenav.retrieval import (
    QUERIES,
    ROOM,
    RetrieveAction,
    RetrieveObservation,
    block_id,
    prototype_of,
    response,
    seen_blocks,
)
from handiwork.agents.codenav.settings import CodeNavInputs, load_inputs
from handiwork.agents.codenav.xml_reply import CONTENT, choose_protocol
from handiwork.agents.prompts import render
from handiwork.agents.protocols import NATIVE, ReplyProtocol
from handiwork.agents.protocols.action_tools import ActionTool, parameters
from handiwork.agents.protocols.ask import RETRY_TEMPERATURES, ask, is_small
from handiwork.agents.protocols.message_cache import MessageCache
from handiwork.agents.protocols.transcript import SMALL_LIMIT
from handiwork.agents.state import State
from handiwork.events.action import AgentFinishAction, AgentRejectAction, MessageAction
from handiwork.events.base import Action, Observation
from handiwork.events.code_memory import (
    LONGEST_DOCSTRING,
    CodeEpisode,
    CodeMemoryObservation,
    RecallCodeAction,
    RecallDocstringsAction,
    RememberCodeAction,
    RememberDocstringsAction,
    SummarizeCodeAction,
    UsefulBlock,
)
from handiwork.events.observation import CodeBlock
from handiwork.llm.types import Completion, Message, Tool

INVALID = "RESPONSE (Invalid Action):\n{}"

NO_RESULT = "The thought of done is your answer to the user, and it does not say the result. Write it there."
"""The response of a small model's first end without what its code has printed."""

FIRST = (RecallCodeAction, DescribeCodebaseAction)
"""The actions of the agent itself before the model's first one."""

OWN = (*FIRST, RememberCodeAction, RecallDocstringsAction, RememberDocstringsAction)
"""The actions of the agent itself, which the model does not see."""

PRINTED = "The code printed:"
"""Begins what is added to the answer of a small model that does not say the result when it is asked for it, too."""

SOLUTION, REMEMBERED, BLOCKS = 2_000, 500, 20
"""Characters of a task and of its solution, and of a path, and number of blocks that are remembered."""

_NAME = re.compile(r"\w+")

SHORT = 600
"""Characters of code that a generated docstring would hardly be shorter than."""


class CodeNavOutputs(BaseModel):
    """The outputs: the agent's ``message`` about the task, and the code of its solution, "" without a summary."""

    message: str
    code_summary: str = ""


class CodeNavNotes(BaseModel):
    """The agent's data: the description of the ``library``, the last summary, and the generated docstrings.

    ``recalled`` holds earlier tasks with the codebase.
    """

    library: str | None = None
    recalled: tuple[CodeEpisode, ...] = ()
    code_summary: str = ""
    docstrings: dict[str, str] = Field(default_factory=dict)


class CodeNavAgent(Agent[CodeNavNotes]):
    """Takes one action in each reply: search, code, code_summary or done.

    A subclass changes the settings by other defaults of ``inputs``; a TOML file of settings defines a subclass.
    """

    description = "CodeNav's way: searches a codebase, then imports and runs what it has found."
    inputs, outputs = CodeNavInputs, CodeNavOutputs

    def reset(self) -> None:
        """Clear the message cache."""
        self._cache = MessageCache()

    async def step(self, state: State[CodeNavNotes]) -> Step:
        """Describe the codebase first, then ask the model for the next action."""
        inputs, notes = state.inputs_as(self.inputs), state.data
        assert isinstance(inputs, CodeNavInputs)
        if notes.library is None and (first := self._describe(state, inputs)) is not None:
            return first
        if inputs.retrieval == "code_or_docstring" and (first := await self._write_docstrings(state)) is not None:
            return first
        action = await self._ask(state, inputs)
        for temperature in RETRY_TEMPERATURES if is_small(self.llm.capabilities) else ():
            if not (repeated := _repeated(state, action)):
                break
            action = await self._ask(state, inputs, temperature, without=repeated)
        if is_small(self.llm.capabilities) and (result := _missing_result(state, action)):
            if not any(observation and NO_RESULT in observation.content for _, observation in state.history):
                raise MalformedReplyError(INVALID.format(NO_RESULT))
            action = action.with_fields(thought=f"{action.thought}\n\n{PRINTED}\n{result}".strip())
        action = self._completed(action, state, inputs)
        if isinstance(action, AgentFinishAction) and inputs.mode == "code-use":
            return [RememberCodeAction(episode=_episode(inputs.task, state)), action]
        return action

    def _describe(self, state: State[CodeNavNotes], inputs: CodeNavInputs) -> Step | None:
        """Return the actions that describe the codebase and recall tasks; None once the notes have their results."""
        actions: list[Action] = [RecallCodeAction(task=inputs.task)] if inputs.mode == "code-use" else []
        readme, tools = not inputs.description.strip(), inputs.tool_description
        if readme or tools != "none":
            actions.append(
                DescribeCodebaseAction(root=state.workspace, folders=inputs.codebase, tools=tools, readme=readme)
            )
        if actions and not any(isinstance(action, FIRST) for action, _ in state.history):
            return actions
        library = [inputs.description.strip()]
        for action, observation in state.history:
            if isinstance(observation, DescribeCodebaseObservation):
                library.append(observation.text)
            elif isinstance(action, RecallCodeAction) and isinstance(observation, CodeMemoryObservation):
                state.data.recalled = observation.episodes
        state.data.library = "\n\n".join(filter(None, library))
        return None

    async def _write_docstrings(self, state: State[CodeNavNotes]) -> Action | None:
        """Complete the docstrings of the last search's long blocks; return None once they all have one.

        The first action recalls what earlier sessions remember; the model writes the others, which are remembered.
        """
        (last, observation), docstrings = state.history[-1], state.data.docstrings
        if not isinstance(last, (RetrieveAction, RecallDocstringsAction)):
            return None
        if isinstance(observation, CodeMemoryObservation):
            docstrings.update(observation.docstrings)
        retrieved = next((o for _, o in reversed(state.history) if isinstance(o, RetrieveObservation)), None)
        if retrieved is None:
            return None
        blocks = {block_id(block): block for result in retrieved.results for block in result.best}
        missing = {key: one for key, one in blocks.items() if len(one.code) > SHORT and key not in docstrings}
        if not missing:
            return None
        if isinstance(last, RetrieveAction):
            return RecallDocstringsAction(blocks=tuple(missing))
        for key, block in missing.items():
            prompt = render("codenav/docstring", type=block.type, code=block.code[: retrieved.room])
            completion: Completion = await self.llm.complete([Message.text("user", prompt)])
            docstrings[key] = _docstring(block, completion.content)
        written = {key: docstrings[key] for key in missing if 0 < len(docstrings[key]) <= LONGEST_DOCSTRING}
        return RememberDocstringsAction(docstrings=written)

    async def _ask(
        self, state: State[CodeNavNotes], inputs: CodeNavInputs, temperature: float | None = None, *, without: str = ""
    ) -> Action:
        """Return the model's action. Raises MalformedReplyError with the rule that the reply breaks.

        A server that binds replies offers no action of the type ``without``.
        """
        tools = TOOLS if inputs.mode == "code-use" else tuple(tool for tool in TOOLS if tool.name != "search")
        offered = [tool for tool in tools if tool.name != without]
        notes, network = state.data, tuple(state.totals.network)

        def prompt(protocol: ReplyProtocol, small: bool) -> Sequence[Message]:
            source = (protocol, small, notes.library, notes.recalled, network)
            return self._cache.get_or_build(0, source, build)

        def build(protocol: ReplyProtocol, small: bool, *_: object) -> Iterator[Message]:
            text = render(
                "codenav/system",
                form=protocol.instructions(tools, compact=small),
                native=protocol is NATIVE,
                types=[tool.name for tool in tools],
                queries=QUERIES,
                inputs=inputs,
                library=notes.library,
                recalled=notes.recalled,
                workspace=state.workspace,
                network=network,
            )
            yield Message.text("system", text)

        try:
            view = _view(state)
            actions = await ask(
                self.llm, view, self._cache, prompt, tools, temperature, offered=offered, choose=choose_protocol
            )
            if len(actions) != 1:
                raise MalformedReplyError(f"A reply has exactly one action, and yours has {len(actions)}.")
            if isinstance(actions[0], MessageAction):
                raise MalformedReplyError(f"Your reply has no action: take one of {', '.join(t.name for t in tools)}.")
        except MalformedReplyError as error:
            raise MalformedReplyError(INVALID.format(error)) from None
        return actions[0]

    def _completed(self, action: Action, state: State[CodeNavNotes], inputs: CodeNavInputs) -> Action:
        """Return the model's action, completed with the agent's settings, memory and summary."""
        match action:
            case RetrieveAction():
                is_short = inputs.retrieval == "prototypes"
                return action.with_fields(
                    folders=inputs.codebase,
                    seen=seen_blocks((o for _, o in state.history), inputs.retrieval),
                    expanded=0 if is_short else inputs.expanded,
                    prototypes=inputs.prototypes + (inputs.expanded if is_short else 0),
                    room=SMALL_LIMIT if is_small(self.llm.capabilities) else ROOM,
                )
            case RunCodeAction():
                folders = (f"{state.workspace}/{folder}" for folder in inputs.codebase)
                return action.with_fields(folders=(*folders, state.workspace), timeout=inputs.timeout)
            case SummarizeCodeAction(code=code):
                state.data.code_summary = code
                return action
            case AgentFinishAction() | AgentRejectAction():
                message = _answer(action) or state.data.code_summary or "The task is over."
                outputs = {"message": message, "code_summary": state.data.code_summary}
                reason = {"reason": message} if isinstance(action, AgentRejectAction) else {}
                return action.with_fields(outputs={**reason, **outputs})
            case _:
                return action


def _repeated(state: State[CodeNavNotes], action: Action) -> str:
    """Return the type of an action that repeats the last one, and could only have the same response; "" otherwise."""
    last, observation = state.history[-1]
    # The same query again shows the next best blocks.
    found = isinstance(observation, RetrieveObservation) and any(one.best or one.further for one in observation.results)
    match action, last:
        case (RunCodeAction(code=code), RunCodeAction(code=before)) if code == before:
            return "code"
        case (SummarizeCodeAction(code=code), SummarizeCodeAction(code=before)) if code == before:
            return "code_summary"
        case (RetrieveAction(query=query), RetrieveAction(query=before)) if query == before and not found:
            return "search"
        case _:
            return ""


def _missing_result(state: State[CodeNavNotes], action: Action) -> str:
    """Return what the last code has printed, if an end does not name its last line; "" otherwise."""
    runs = [o for _, o in state.history if isinstance(o, RunCodeObservation) and o.error is None]
    if not runs or not isinstance(action, AgentFinishAction):
        return ""
    printed = printed_by(runs[-1])
    return printed if printed and printed.splitlines()[-1].strip() not in _answer(action) else ""


def _answer(action: Action) -> str:
    """Return what an end says to the user: its thought, and the answer in its content if that is one."""
    content = str(action.outputs.get("message", "")) if isinstance(action, AgentFinishAction) else ""
    return "\n\n".join(filter(None, (action.thought, content)))


def _filled(arguments: dict[str, Any], what: str) -> str:
    """Return the content. Raises ValueError if there is none."""
    content = arguments[CONTENT]
    if not isinstance(content, str) or not content.strip():
        raise ValueError(f"the content is empty: it is {what}")
    return content


def _end(arguments: dict[str, Any]) -> Action:
    """Return the end; a content that is neither True nor False is the answer, which models write there."""
    content = _filled(arguments, "True or False").strip()
    if (verdict := content.rstrip(".").lower()) in ("true", "false"):
        return AgentFinishAction() if verdict == "true" else AgentRejectAction()
    return AgentFinishAction(outputs={"message": content})


def _tool(name: str, about: str, content: str, make: Callable[[dict[str, Any]], Action]) -> ActionTool:
    return ActionTool(Tool(name, about, parameters([CONTENT], **{CONTENT: ("string", content)})), make)


TOOLS: Sequence[ActionTool] = (
    _tool(
        "search",
        "Find functions, classes and other blocks of the codebase.",
        f"A query in Lucene's syntax, or up to {QUERIES}, one a line.",
        lambda a: RetrieveAction(query=_filled(a, "a query")),
    ),
    _tool(
        "code",
        "Run Python in a notebook that keeps its variables.",
        "The code, without fences.",
        lambda a: RunCodeAction(code=_filled(a, "Python code")),
    ),
    _tool(
        "code_summary",
        "Keep a cleaned-up version of all the code that solves the task.",
        "The code, without fences.",
        lambda a: SummarizeCodeAction(code=_filled(a, "Python code")),
    ),
    _tool("done", "End the task.", "True if it is solved, False if it cannot be.", _end),
)
"""The actions: their names are the types of a reply."""


def _docstring(block: CodeBlock, text: str) -> str:
    """Return a block's prototype with the model's docstring as its body."""
    text = text.strip().removeprefix("```").removesuffix("```").strip().strip('"').strip()
    return f'{block.prototype}\n    """{text}"""\n    ...' if text else ""


def _view(state: State[CodeNavNotes]) -> State[CodeNavNotes]:
    """Return the model's view of the state: responses in CodeNav's form, without actions that the prompt covers."""
    history = [
        (action, _response(observation, state.data))
        for action, observation in state.history
        if not isinstance(action, OWN)
    ]
    return replace(state, history=history)


def _response(observation: Observation | None, notes: CodeNavNotes) -> Observation | None:
    if isinstance(observation, RetrieveObservation):
        text = "\n\n".join(response(observation.results, observation.room, observation.unsearched, notes.docstrings))
        return Observation(
            content=f"RESPONSE (Retrieval Result):\n{text}",
            id=observation.id,
            cause=observation.cause,
            timestamp=observation.timestamp,  # with a new one, each step would convert the message anew
        )
    if isinstance(observation, RunCodeObservation):
        return observation.with_fields(content=f"RESPONSE (Execution Result):\n{observation.content}")
    if isinstance(observation, CodeMemoryObservation):
        return observation.with_fields(content=f"RESPONSE (Code Summary):\n{observation.content}")
    return observation


def _episode(task: str, state: State[CodeNavNotes]) -> CodeEpisode:
    """Return the episode to remember: the shown blocks whose names occur in code that ran, and the solution."""
    observations = [observation for _, observation in state.history]
    runs = [o.code for o in observations if isinstance(o, RunCodeObservation) and o.error is None]
    summary = state.data.code_summary
    names = {name for code in (*runs, summary) for name in _NAME.findall(code)}
    results = [one for o in observations if isinstance(o, RetrieveObservation) for one in o.results]
    best = [prototype_of(block) for result in results for block in result.best]
    further = [one for result in results for one in result.further]
    used = {
        (one.file_path, one.name): UsefulBlock(file_path=one.file_path[-REMEMBERED:], type=one.type, prototype=one.text)
        for one in (*best, *further)
        if one.name.rpartition(".")[2] in names
    }
    solution = summary if len(summary) <= SOLUTION else ""
    return CodeEpisode(task=task[:SOLUTION], blocks=tuple(used.values())[:BLOCKS], solution=solution)


def load_agent(path: Path) -> type[CodeNavAgent]:
    """Return the agent with a file's settings. Raises CodeNavSettingsError."""
    fields = {"inputs": load_inputs(path), "__doc__": f"CodeNavAgent by {path}."}
    return type(CodeNavAgent.__name__, (CodeNavAgent,), fields)

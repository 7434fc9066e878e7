"""The operations of a swarm's nodes: each is a reply of the model, or an action first and a reply about its result.

"direct" answers the task; "step" reasons on without an answer; "reflect" finds the faults of the inputs and answers;
"combine" answers from the inputs; "query" states the question to research; "files" chooses files of the workspace and
reports their content; "web" lets BrowsingAgent research it; "delegate" hands the task to any agent of the hub; "tests"
writes tests; "code" writes Python, runs it on those tests, and corrects it once; "decision" decides.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from handiwork.agents.agentless.retrieval import named_files
from handiwork.agents.history import History
from handiwork.agents.rendering import observation_text, shorten
from handiwork.agents.swarm.decision import CHOICES, chosen, majority
from handiwork.agents.swarm.graph import OperationName, Strategy, SwarmNode
from handiwork.events.action import AgentDelegateAction, CmdRunAction, FileReadAction, IPythonRunCellAction
from handiwork.events.base import Action
from handiwork.events.observation import AgentDelegateObservation, CmdOutputObservation

ANSWER = "Give the answer alone on the last line, in the form that the task asks for."

INSTRUCTIONS: Mapping[OperationName, str] = {
    "direct": f"Solve the task. Use what others of your team say only if it is right. {ANSWER}",
    "query": "Do not solve the task. List what must be found out to solve it: at most five questions, one a line.",
    "files": "You get files of a project. Tell all that is in them and helps with the task, exact, with their names.",
    "web": "Find this out on the web, and tell the facts with the addresses of their pages.",
    "delegate": "",
    "combine": f"Solve the task with what the others of your team found out. Say what is still unknown. {ANSWER}",
    "step": "Do not give a final answer yet. Take the next step of the reasoning: say what follows from what is known.",
    "reflect": f"Check step by step what the others of your team say, name each mistake, then solve the task. {ANSWER}",
    "code": "Write the Python code that the task asks for, complete, in one ```python block at the end of your reply.",
    "tests": (
        "Do not solve the task. Write tests for the Python code that it asks for: at most six `assert` statements, "
        "without imports of that code, in one ```python block."
    ),
    "decision": f"Solve the task. The others of your team may err: compare their answers, and check them. {ANSWER}",
}
"""The operations' own instructions; a node may have another one."""

SELECTION = (
    "You get the list of a project's files. Name the files that have to be read for the task, at most five, each path "
    'alone on a line, as in the list. If none helps, reply "none".'
)
"""The instruction by which "files" chooses the files to read."""

LIST = (
    r"{ git -c core.fsmonitor=false -c core.quotePath=off ls-files -co --exclude-standard 2>/dev/null | grep . || "
    r"find . \( -name .git -o -name node_modules -o -name __pycache__ -o -name .venv \) -prune "
    r"-o -type f -printf '%P\n'; } | LC_ALL=C sort | head -n 500"
)
"""Lists the files of the workspace."""

SKILLS = {".pdf": "parse_pdf", ".docx": "parse_docx", ".pptx": "parse_pptx", ".xlsx": "parse_xlsx"}
"""The skills of the notebook that read documents, by the ending of the file."""

FILES, SECONDS = 5, 30.0
"""Files that one node reads, and the time limit of tests and of reading a document."""

LONGEST = 16_000
"""Characters of a file or a result; the prompt of a small window gets less."""

Ask = Callable[["NodeRun", str, Sequence[tuple[str, str]]], Awaitable[str]]
"""Asks the model with the node's task, an instruction and findings, each with a title; returns the reply."""

_PYTHON = re.compile(r"^[ \t]*```(?:python|py)?[ \t]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class NodeRun:
    """One node at work: ``inputs`` are (name, output) of the nodes before it, ``results`` its own actions so far.

    ``agents`` are the agents of the hub that gave these outputs, by the node's name, "" for the model's own.
    ``tests`` are the outputs of the inputs that are tests. ``network`` tells whether the sandbox reaches any host.
    """

    node: SwarmNode
    strategy: Strategy
    task: str
    inputs: Sequence[tuple[str, str]]
    agents: Mapping[str, str]
    tests: Sequence[str]
    results: History
    network: bool
    random: Random

    @property
    def instruction(self) -> str:
        """The node's instruction."""
        return instruction_of(self.node, self.strategy)


def instruction_of(node: SwarmNode, strategy: Strategy) -> str:
    """Return a node's instruction: its own, or else that of its operation, or of the decision's strategy."""
    own = CHOICES.get(strategy) if node.operation == "decision" else None
    return node.instruction or own or INSTRUCTIONS[node.operation]


async def perform(run: NodeRun, ask: Ask) -> str | list[Action]:
    """Return the node's output, or the actions whose results it needs first."""
    match run.node.operation:
        case "files":
            return await _files(run, ask)
        case "web" if not run.network:
            return "Nothing: the sandbox reaches no host, so nothing can be looked up on the web."
        case "web" | "delegate":
            return _delegate(run)
        case "code":
            return await _code(run, ask)
        case "decision" if run.inputs:
            return await _decide(run, ask)
        case "decision":
            return await ask(run, run.node.instruction or INSTRUCTIONS["direct"], ())
        case _:
            return await ask(run, run.instruction, ())


async def _decide(run: NodeRun, ask: Ask) -> str:
    answers = [text for _, text in run.inputs]
    match run.strategy:
        case "majority_vote":
            return majority(answers, run.random)
        case "random_choice":
            return run.random.choice(list(filter(None, answers)) or answers)
        case "self_consistency" | "select_best":
            reply = await ask(run, run.instruction, ())
            return chosen(reply, answers, run.random)
        case "references":
            return await ask(run, run.instruction, ())


async def _files(run: NodeRun, ask: Ask) -> str | list[Action]:
    """List the files, let the model choose some, read them, and ask it about their content."""
    if not run.results:
        return [CmdRunAction(command=LIST)]
    listing = run.results[0][1]
    listed = listing.text.splitlines() if isinstance(listing, CmdOutputObservation) else []
    if not listed:
        return "Nothing: no files are listed."
    if len(run.results) == 1:
        chooser = replace(run, node=run.node.model_copy(update={"examples": ()}))  # those are of the report
        reply = await ask(chooser, SELECTION, [("The files", "\n".join(listed))])
        paths = named_files(reply, listed, FILES)
        return [_read(path) for path in paths] or "Nothing: no file was chosen."
    contents = [(_title(action), observation_text(o, LONGEST)) for action, o in run.results[1:]]
    return await ask(run, run.instruction, contents)


def _read(path: str) -> Action:
    skill = next((skill for ending, skill in SKILLS.items() if path.lower().endswith(ending)), None)
    if skill is None:
        return FileReadAction(path=path)
    return IPythonRunCellAction(code=f"{skill}({path!r})", timeout=SECONDS)


def _title(action: Action) -> str:
    return f"The file {action.path}" if isinstance(action, FileReadAction) else getattr(action, "code", "A document")


def _delegate(run: NodeRun) -> str | list[Action]:
    """Hand the task over together with the inputs; the output is the agent's."""
    if not run.results:
        parts = [run.instruction, *(f"{text}\n" for _, text in run.inputs), f"The task:\n\n{run.task}"]
        agent = run.node.delegate or "BrowsingAgent"
        return [AgentDelegateAction(agent=agent, inputs={"task": "\n\n".join(filter(None, parts))})]
    _, observation = run.results[-1]
    if isinstance(observation, AgentDelegateObservation) and observation.outcome == "finished":
        outputs = observation.outputs
        lines = (str(outputs[name]) if name == "message" else f"{name}: {outputs[name]}" for name in outputs)
        return "\n".join(lines) or "Done."
    return f"Nothing: {observation_text(observation, LONGEST)}"


async def _code(run: NodeRun, ask: Ask) -> str | list[Action]:
    """Write code; with tests among the inputs run it on them, and if they fail correct it once."""
    if not run.results:
        reply = await ask(run, run.instruction, ())
        code, tests = _python(reply), "\n".join(map(_python, run.tests))
        if not code or not tests.strip():
            return reply
        script = f"{code}\n\n{tests}\n"
        return [CmdRunAction(command=f"python3 -c {shlex.quote(script)} < /dev/null", thought=reply, timeout=SECONDS)]
    action, observation = run.results[-1]
    if isinstance(observation, CmdOutputObservation) and observation.exit_code == 0:
        return action.thought
    result = shorten(observation_text(observation, LONGEST), LONGEST)
    findings = [("The code so far", action.thought), ("The result of its tests, which may be wrong", result)]
    return await ask(run, run.instruction, findings) or action.thought


def _python(reply: str) -> str:
    """Return the Python blocks of a reply."""
    return "\n".join(_PYTHON.findall(reply))

"""CodeAct's prompt, with a worked example for small windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from handiwork.agents.prompts import render
from handiwork.agents.protocols import NATIVE, ReplyProtocol
from handiwork.agents.protocols.action_tools import ActionTool
from handiwork.agents.protocols.example import COMMIT, COMMITTED, ExampleReply, example_messages
from handiwork.agents.state import State
from handiwork.llm.types import Capabilities, Message
from handiwork.skills import HEARING, SEEING
from handiwork.skills.documentation import documentation

_TASK = """Files:
greet.sh (3 lines, 44 bytes)
notes.txt (1 line, 20 bytes)

greet.sh:
```
echo "Hello"
echo "How are you?"
echo "Bye"
```

notes.txt:
```
Buy milk, call Ann.
```

What does greet.sh print?"""

_SCRIPT = 'echo "Hello, $1"\necho "How are you?"\necho "Bye"\n'
_REPLIES = (
    (
        "The files above answer that: it has three echo lines.",
        "finish",
        {"message": 'It prints "Hello", "How are you?" and "Bye".'},
    ),
    (COMMIT, "bash", {"command": 'git add greet.sh\ngit commit -m "Add a greeting"'}),
    (COMMITTED, "finish", {"message": "greet.sh is committed."}),
    (
        "greet.sh ignores its argument. I write the whole file anew, with $1 in its first line.",
        "write",
        {"path": "greet.sh", "content": _SCRIPT},
    ),
    ("I run it to check.", "bash", {"command": "sh greet.sh Ann"}),
    (
        "It prints the name, and the rest is as before.",
        "finish",
        {"message": "greet.sh greets by the name it is given."},
    ),
)
_SAID = (
    _TASK,
    "Commit greet.sh, but not the notes.",
    "[main (root-commit) 3f2a1bc] Add a greeting\n 1 file changed, 3 insertions(+)\n[exit code 0]",
    '`sh greet.sh Ann` prints "Hello". It should greet by name.',
    "greet.sh is written.",
    "Hello, Ann\nHow are you?\nBye\n[exit code 0]",
)

_TEXT = """notes.txt:
```
Buy milk, call Anne.
Mow the lawn.
```"""
_NOTES = f"Files:\nnotes.txt (2 lines, 34 bytes)\n\n{_TEXT}"
_GREET = f"""Files:
greet.sh (1 line, 13 bytes)
notes.txt (2 lines, 34 bytes)

greet.sh:
```
echo "Hello"
```

{_TEXT}"""
_SUMMARY = (
    "Write a sentence about what is in notes.txt.",
    "notes.txt has two things to do: buy milk and call Anne, and mow the lawn.",
)
_COUNT = {
    "bash": {"command": "wc -w notes.txt"},
    "ipython": {"code": 'print(len(open("notes.txt").read().split()))'},
}
_RUN = {
    "bash": {"command": "sh greet.sh Ann"},
    "ipython": {"code": 'import subprocess\nsubprocess.run(["sh", "greet.sh", "Ann"])'},
}
_EDIT = {"path": "notes.txt", "old": "call Anne.", "new": "call Ann."}


def prompt_messages(
    protocol: ReplyProtocol,
    small: bool,
    state: State,
    tools: Sequence[ActionTool],
    capabilities: Capabilities,
    *,
    example: bool = True,
) -> Iterator[Message]:
    """Yield the messages before the conversation; those for a small window are compact, without skills.

    The compact ones are the same for all folders, so that a local model reads them once. They have a worked example,
    unless ``example`` is False or the model calls tools. Skills of the platform that need a sense that the model's
    ``capabilities`` lack are left out.
    """
    instructions = protocol.instructions(tools, compact=small)
    native = protocol is NATIVE
    values = {"instructions": instructions, "native": native, "sandbox": state.sandbox}
    names = {tool.name for tool in tools}
    if small:
        prompt = render("codeact/compact", **values, tools=names, network=state.totals.network)
    else:
        useless = (*(() if capabilities.vision else SEEING), *(() if capabilities.hearing else HEARING))
        lines = [*(skill.line for skill in documentation() if skill.name not in useless), *state.skills]
        # A host allowed once comes and goes with a notice: the provider would read all of a changed prompt again.
        network = [host for host in state.totals.network if host not in state.totals.once]
        prompt = render(
            "codeact/system", **values, tools=names, network=network, skills=lines, workspace=state.workspace
        )
    yield Message.text("system", prompt)
    if small and not native and example:
        yield from worked_example(protocol, tools)


def worked_example(protocol: ReplyProtocol, tools: Sequence[ActionTool]) -> Iterator[Message]:
    """Yield a conversation with replies that call some of these tools; none without tools that it could show."""
    shown = zip(_SAID, _REPLIES, strict=True) if has_example(tools) else _micro_example(tools)
    yield from example_messages(protocol, tools, shown)


def has_example(tools: Sequence[ActionTool]) -> bool:
    """Return whether these tools include those of the worked example; a micro agent may have fewer, or others."""
    arguments = {tool.name: set(tool.tool.parameters["properties"]) for tool in tools}
    return {"bash", "write"} <= set(arguments) and arguments.get("finish") == {"message"}


def _micro_example(tools: Sequence[ActionTool]) -> Iterator[tuple[str, ExampleReply]]:
    """Yield what is said and replied: an edit; or verdicts on what runs; or a text, and an answer by a command.

    Small models do first what the example does first: they answer instead of editing, or do not look before a verdict.
    """
    names = {tool.name for tool in tools}
    finish = next((tool for tool in tools if tool.name == "finish"), None)
    code = next((name for name in _COUNT if name in names), None)
    if finish is None or (code is None and "edit" not in names):
        return
    if "edit" in names:
        yield f"{_NOTES}\n\nIt is Ann, not Anne.", ("I replace the name and leave the rest.", "edit", _EDIT)
        yield "notes.txt is changed.", ("That was all.", "finish", _outputs(finish, "Anne is Ann now.", is_true=True))
        return
    assert code is not None
    counts = ("I let a command count them.", code, _COUNT[code])
    if any(spec.get("type") == "boolean" for spec in finish.tool.parameters["properties"].values()):
        yield f"{_GREET}\n\ngreet.sh should greet Ann: Hello, Ann.", ("I run it with the name.", code, _RUN[code])
        wrong = _outputs(finish, "greet.sh prints Hello, without the name.", is_true=False)
        yield "Hello\n[exit code 0]", ("The name is missing in what it prints.", "finish", wrong)
        yield "notes.txt should have seven words.", counts
        right = _outputs(finish, "notes.txt has seven words.", is_true=True)
        yield "7\n[exit code 0]", ("It has seven.", "finish", right)
        return
    task, text = _SUMMARY
    yield f"{_NOTES}\n\n{task}", ("The file above says it.", "finish", _outputs(finish, text, is_true=True))
    yield "How many words does it have?", counts
    answer = _outputs(finish, "notes.txt has seven words.", is_true=True)
    yield "7\n[exit code 0]", ("It counted seven.", "finish", answer)


def _outputs(finish: ActionTool, text: str, *, is_true: bool) -> dict[str, Any]:
    """Return a value for each required output, by its type; a text is this one."""
    schema = finish.tool.parameters
    values: dict[str, Any] = {"boolean": is_true, "integer": 7, "number": 7, "array": [], "object": {}}
    outputs = ((name, schema["properties"][name]) for name in schema.get("required", ()))
    return {
        name: spec["enum"][0] if "enum" in spec else spec.get("const", values.get(spec.get("type"), text))
        for name, spec in outputs
    }

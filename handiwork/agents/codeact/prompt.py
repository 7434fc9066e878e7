"""CodeAct's prompt, with a worked example for small windows: small models follow those better than instructions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from handiwork.agents.prompts import render
from handiwork.agents.protocols import JSON, NATIVE, ReplyProtocol
from handiwork.agents.protocols.action_tools import ActionTool
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

_SCRIPT = 'echo "Hello, $1"\necho "How are you?"\necho "Bye"'
_COMMIT = 'git add greet.sh\ngit commit -m "Add a greeting"'
_PRINTS = 'It prints "Hello", "How are you?" and "Bye".'
_REPLIES = (
    ("The files above answer that: it has three echo lines.", "finish", {"message": _PRINTS}, _PRINTS),
    ("I commit that file alone.", "bash", {"command": _COMMIT}, _COMMIT),
    ("It is committed, the notes are not.", "finish", {"message": "greet.sh is committed."}, "greet.sh is committed."),
    (
        "greet.sh ignores its argument. I write the whole file anew, with $1 in its first line.",
        "write greet.sh",
        {"path": "greet.sh", "content": f"{_SCRIPT}\n"},
        _SCRIPT,
    ),
    ("I run it to check.", "bash", {"command": "sh greet.sh Ann"}, "sh greet.sh Ann"),
    (
        "It prints the name, and the rest is as before.",
        "finish",
        {"message": "greet.sh greets by the name it is given."},
        "greet.sh greets by the name it is given.",
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


def prompt_messages(
    protocol: ReplyProtocol,
    small: bool,
    state: State,
    tools: Sequence[ActionTool],
    capabilities: Capabilities,
) -> Iterator[Message]:
    """Yield the messages before the conversation; those for a small window are compact and without skills.

    Skills of the platform that need a sense that the model's ``capabilities`` lack are left out.
    """
    instructions = protocol.instructions(tools, compact=small)
    native = protocol is NATIVE
    values = {"workspace": state.workspace, "instructions": instructions, "native": native}
    names = {tool.name for tool in tools}
    if small:
        sandbox, network = state.sandbox, state.totals.network
        prompt = render("codeact/compact", **values, tools=names, sandbox=sandbox, network=network)
    else:
        useless = (*(() if capabilities.vision else SEEING), *(() if capabilities.hearing else HEARING))
        lines = [*(skill.line for skill in documentation() if skill.name not in useless), *state.skills]
        prompt = render("codeact/system", **values, tools=names, skills=lines)
    yield Message.text("system", prompt)
    if small and not native and has_example(tools):
        yield from _example(protocol)


def has_example(tools: Sequence[ActionTool]) -> bool:
    """Return whether these tools include those of the worked example; a micro agent may have fewer, or others."""
    arguments = {tool.name: set(tool.tool.parameters["properties"]) for tool in tools}
    return {"bash", "write"} <= set(arguments) and arguments.get("finish") == {"message"}


def _example(protocol: ReplyProtocol) -> Iterator[Message]:
    """Yield the conversation of a question and two small tasks, as the protocol writes it."""
    for text, (thought, head, arguments, body) in zip(_SAID, _REPLIES, strict=True):
        yield Message.text("user", text)
        if protocol is JSON:
            reply = json.dumps({"thought": thought, "action": head.split()[0], **arguments})
        else:
            reply = f"{thought}\n\n```{head}\n{body}\n```"
        yield Message.text("assistant", reply)

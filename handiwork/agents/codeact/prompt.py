"""CodeAct's prompt, with a worked example for small windows: small models follow those better than instructions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from handiwork.agents.prompts import render
from handiwork.agents.protocols import JSON, NATIVE, ReplyProtocol
from handiwork.agents.protocols.action_tools import ActionTool
from handiwork.llm.types import Message

_TASK = """`sh greet.sh Ann` prints "Hello". It should greet by name.

Files:
greet.sh (13 bytes)
notes.txt (22 bytes)

greet.sh:
```
echo "Hello"
```

notes.txt:
```
Buy milk, call Ann.
```"""

_REPLIES = (
    (
        "greet.sh ignores its argument. I write the whole file anew.",
        "write greet.sh",
        {"path": "greet.sh", "content": 'echo "Hello, $1"\n'},
        'echo "Hello, $1"',
    ),
    ("I run it to check.", "bash", {"command": "sh greet.sh Ann"}, "sh greet.sh Ann"),
    (
        "It prints the name.",
        "finish",
        {"message": "greet.sh greets by the name it is given."},
        "greet.sh greets by the name it is given.",
    ),
)
_OUTCOMES = ("greet.sh is written.", "Hello, Ann\n[exit code 0]")


def prompt_messages(
    protocol: ReplyProtocol, small: bool, workspace: str, tools: Sequence[ActionTool]
) -> Iterator[Message]:
    """Yield the messages before the conversation; those for a small window are compact."""
    instructions = protocol.instructions(tools, compact=small)
    template = "codeact/compact" if small else "codeact/system"
    native = protocol is NATIVE
    yield Message.text("system", render(template, workspace=workspace, instructions=instructions, native=native))
    if small and not native:
        yield from _example(protocol)


def _example(protocol: ReplyProtocol) -> Iterator[Message]:
    """Yield the conversation of a small task, as the protocol writes it."""
    said = [_TASK, *_OUTCOMES]
    for text, (thought, head, arguments, body) in zip(said, _REPLIES, strict=True):
        yield Message.text("user", text)
        if protocol is JSON:
            reply = json.dumps({"thought": thought, "action": head.split()[0], **arguments})
        else:
            reply = f"{thought}\n\n```{head}\n{body}\n```"
        yield Message.text("assistant", reply)

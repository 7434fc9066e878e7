"""Extracts the answer from an agent's text, or from a file that it wrote."""

from __future__ import annotations

import re

from handiwork.events.action import AgentFinishAction
from handiwork.sandbox.base import Sandbox

LARGEST = 1_000_000
"""The most bytes of an answer file; the rest is not read."""


def finish_with(answer: str) -> AgentFinishAction:
    """Return the end of a task whose answer ``tagged`` reads."""
    return AgentFinishAction(outputs={"message": f"<answer>{answer}</answer>"})


def tagged(text: str, tag: str = "answer") -> str:
    """Return the content of the last ``<tag>...</tag>``, stripped; without one, the whole text, stripped."""
    end = text.rfind(f"</{tag}>")
    start = text.rfind(f"<{tag}>", 0, end) if end >= 0 else -1
    return (text[start + len(tag) + 2 : end] if start >= 0 else text).strip()


def fenced(text: str, *languages: str) -> str:
    """Return the last block between ``` lines in one of the languages, "" if there is none.

    The language "" means a block that names none. A block that is never closed extends to the end of the text.
    """
    answer = block = fence = ""
    is_match = False
    for line in text.splitlines(keepends=True):
        mark = re.match(r"[ \t]*(`{3,})[ \t]*([\w+#.-]*)[ \t]*$", line)
        if mark and not fence:
            fence, block, is_match = mark[1], "", mark[2].lower() in languages
        elif mark and mark[1] == fence and not mark[2]:
            fence, answer = "", block if is_match else answer
        elif fence:
            block += line
    return block if fence and is_match else answer


async def read_answer(sandbox: Sandbox, path: str) -> str:
    """Return the text of a file that the agent wrote, "" if it cannot be read; invalid UTF-8 is replaced."""
    content = b""
    try:
        async for piece in sandbox.download(path):
            content += piece
            if len(content) > LARGEST:
                break
    except OSError:
        return ""
    return content[:LARGEST].decode(errors="replace")

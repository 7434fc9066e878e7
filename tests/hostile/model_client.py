"""A process that asks models one after the other and says how much memory each answer took: see model_server.ask."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

from handiwork.llm.create import create
from handiwork.llm.errors import LLMError
from handiwork.llm.retry import Patience
from handiwork.llm.types import Message

ASK = [Message.text("user", "go")]
PATIENCE = Patience(attempts=2, silence=20.0, deadline=60.0, pause=0.01)


def megabytes(field: str) -> float:
    found = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


async def question(model: str, base_url: str) -> dict[str, object]:
    llm = create(model, base_url=base_url, patience=PATIENCE)
    # From now on the peak is counted anew.
    Path("/proc/self/clear_refs").write_text("5")
    before = megabytes("VmRSS")
    outcome: dict[str, object]
    try:
        outcome = {"content": (await llm.complete(ASK)).content}
    except LLMError as error:
        outcome = {"error": type(error).__name__, "words": str(error)}
    outcome["growth"] = megabytes("VmHWM") - before
    await llm.close()
    return outcome


async def main(arguments: list[str]) -> None:
    for model, base_url in zip(arguments[::2], arguments[1::2], strict=True):
        sys.stdout.write(json.dumps(await question(model, base_url)) + "\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))

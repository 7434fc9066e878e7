"""A model that often answers nothing."""

from __future__ import annotations

from typing import Any

from handiwork.llm.errors import EmptyAnswerError
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.types import Completion


class OftenSilent(ScriptedLLM):
    """Fails as a client does whose server sends an answer without content, for each empty reply of its script."""

    async def complete(self, *args: Any, **rest: Any) -> Completion:
        completion = await super().complete(*args, **rest)
        if not (completion.content or completion.tool_calls):
            raise EmptyAnswerError("the server sent an empty answer")
        return completion

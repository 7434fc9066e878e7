"""A local model as guided agents meet it: without native tool calls, with a small window, bound to a grammar."""

from __future__ import annotations

from collections.abc import Sequence

from handiwork.llm.types import Capabilities, Completion, Grammar, Message, OnDelta, ReplyForm, Tool


class Small:
    """A local model bound to a grammar: gives these replies in turn, and keeps how it was asked."""

    name = "small"
    capabilities = Capabilities(tools=False, grammar=True, protocol="text", window=16_384)

    def __init__(self, *replies: str) -> None:
        self._replies = list(replies)
        self.asked: list[tuple[str, float | None]] = []
        """The grammar and the temperature of each call."""
        self.prompts: list[str] = []

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        form: ReplyForm | None = None,
        on_delta: OnDelta | None = None,
        temperature: float | None = None,
    ) -> Completion:
        if isinstance(form, Grammar):
            self.asked.append((form, temperature))
            self.prompts.append("\n".join(part.text for message in messages for part in message.content))
        return Completion(self._replies.pop(0))

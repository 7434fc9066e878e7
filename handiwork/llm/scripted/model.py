"""A model that answers from a script, for tests and demonstrations."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence

from handiwork.llm.errors import LLMError, ProviderError
from handiwork.llm.scripted.script import Reply, position_after
from handiwork.llm.types import Capabilities, Completion, Embeddings, Message, OnDelta, ReplyForm, Tool, ToolCall

MAX_REQUESTS = 1_000
"""The number of requests kept for inspection."""


class ScriptedLLM:
    """A model that returns the replies of a script in order, each once, regardless of the messages.

    The first call starts at the reply whose index is the number of assistant messages in its conversation (those of
    examples do not count), so a session resumed in a new process continues with the next reply; from there on every
    call takes the next line, including those of delegates and condensers. A reply with ``error`` is a line of its own:
    it raises ProviderError, and the next call takes the line after it. A cancelled call returns its reply to the
    script.
    A reply may also be its text alone, or a mapping like a line of a script's file; an invalid mapping raises
    pydantic.ValidationError.
    """

    def __init__(
        self,
        replies: Iterable[Reply | str | Mapping[str, object]],
        name: str = "scripted",
        capabilities: Capabilities = Capabilities(vision=True),  # noqa: B008 - frozen, so sharing it is safe
    ) -> None:
        self._replies = [
            Reply(content=reply) if isinstance(reply, str) else Reply.model_validate(reply) for reply in replies
        ]
        self._name = name
        self._capabilities = capabilities
        self._next: int | None = None
        self.requests: list[tuple[Message, ...]] = []

    @property
    def name(self) -> str:
        """The model string it was created from."""
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities passed to the constructor."""
        return self._capabilities

    async def open(self) -> None:
        """No-op: capabilities came with the constructor."""

    async def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        form: ReplyForm | None = None,
        on_delta: OnDelta | None = None,
        temperature: float | None = None,
    ) -> Completion:
        """Return the next reply; ``requests`` keeps this conversation and the earlier ones, MAX_REQUESTS in all.

        Raises ProviderError for a reply that is an error, and LLMError after the script's last reply.
        """
        started = time.monotonic()
        position = self._take(messages)
        reply = self._replies[position]
        first_token: float | None = None
        try:
            pieces = reply.pieces or [""]
            for piece in pieces:
                await asyncio.sleep(reply.delay / len(pieces))
                if reply.error is None and piece and on_delta is not None:
                    on_delta(piece)
                first_token = first_token or time.monotonic() - started
        except asyncio.CancelledError:
            if self._next == position + 1:
                self._next = position
            raise
        if reply.error is not None:
            raise ProviderError(reply.error)
        return Completion(
            content=reply.content,
            tool_calls=tuple(
                ToolCall(f"call_{position}_{number}", call.name, call.text)
                for number, call in enumerate(reply.tool_calls)
            ),
            usage=reply.usage,
            cost=reply.cost,
            cost_source="scripted",
            model=self._name,
            finish_reason="tool_calls" if reply.tool_calls else "stop",
            latency=time.monotonic() - started,
            first_token=first_token,
        )

    async def embed(self, texts: Sequence[str], model: str = "") -> Embeddings:
        """Raise LLMError: a script has no embeddings."""
        raise LLMError(f"{model or self._name} gives no embeddings: scripts have only answers")

    def _take(self, messages: Sequence[Message]) -> int:
        self.requests.append(tuple(messages))
        del self.requests[:-MAX_REQUESTS]
        if self._next is None:
            answered = sum(message.role == "assistant" and not message.example for message in messages)
            self._next = position_after(self._replies, answered)
        if self._next >= len(self._replies):
            raise LLMError(f"the script has {len(self._replies)} replies, and all are used; add more lines to it")
        self._next += 1
        return self._next - 1

    async def close(self) -> None:
        """No-op: a script holds no resources."""

"""The model as an agent gets it: calls are bounded, recorded, streamed and can be interrupted."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from typing import Any

from handiwork.agents.base import InterruptedCallError
from handiwork.events.base import Event
from handiwork.events.record import CompletionEvent
from handiwork.llm.types import LLM, Capabilities, Completion, JsonSchema, Message, OnDelta, Tool


class LimitReachedError(Exception):
    """A limit forbids another model call; the text says which."""


class RecordedLLM:
    """Awaits the model, and appends a CompletionEvent for every answer."""

    def __init__(
        self,
        llm: LLM,
        append: Callable[..., Awaitable[list[Event]]],
        forbidden: Callable[[], str | None],
        on_delta: OnDelta,
    ) -> None:
        self._llm, self._append, self._forbidden, self._on_delta = llm, append, forbidden, on_delta
        self.last_event: int | None = None

    @property
    def capabilities(self) -> Capabilities:
        """What the model can do."""
        return self._llm.capabilities

    async def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        schema: JsonSchema | None = None,
        temperature: float | None = None,
    ) -> Completion:
        """Return the model's answer. Raises LLMError, LimitReachedError."""
        if why := self._forbidden():
            raise LimitReachedError(why)
        completion = await self._llm.complete(messages, tools, schema, self._on_delta, temperature)
        (stored,) = await self._append(_record(completion))
        self.last_event = stored.id
        return replace(completion, event=stored.id)


class BlockingLLM:
    """The same for an agent whose ``step`` is a plain function in a thread: ``complete`` blocks that thread."""

    def __init__(self, llm: RecordedLLM, loop: asyncio.AbstractEventLoop) -> None:
        self._llm, self._loop = llm, loop
        self._thread: int | None = None
        self._call: Future[Completion] | None = None

    @property
    def capabilities(self) -> Capabilities:
        """What the model can do."""
        return self._llm.capabilities

    def enter(self) -> None:
        """Let the thread that calls this make calls, and no other."""
        self._thread = threading.get_ident()

    def interrupt(self) -> None:
        """Cancel the call under way; it, and any later one of that thread, raises InterruptedCallError."""
        self._thread = None
        if self._call is not None:
            self._call.cancel()

    def complete(self, *args: Any, **kwargs: Any) -> Completion:
        """Return the model's answer. Raises LLMError, LimitReachedError, InterruptedCallError."""
        if threading.get_ident() != self._thread:
            raise InterruptedCallError
        self._call = asyncio.run_coroutine_threadsafe(self._llm.complete(*args, **kwargs), self._loop)
        try:
            return self._call.result()
        except CancelledError:
            raise InterruptedCallError from None


def _record(completion: Completion) -> CompletionEvent:
    response: dict[str, Any] = {
        "content": completion.content,
        "tool_calls": [
            {"id": call.id, "name": call.name, "arguments": call.arguments} for call in completion.tool_calls
        ],
        "thinking": list(completion.thinking),
    }
    return CompletionEvent(
        model=completion.model,
        response=response,
        usage=completion.usage,
        cost=completion.cost,
        cost_source=completion.cost_source,
        latency=completion.latency,
        first_token=completion.first_token,
        finish_reason=completion.finish_reason,
        failed_attempts=completion.failed_attempts,
    )

"""The model as an agent gets it: calls are bounded, recorded, streamed and can be interrupted."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any, TypeVar

from handiwork.agents.base import InterruptedCallError
from handiwork.events.base import Event, Part
from handiwork.events.record import CompletionEvent
from handiwork.llm.errors import AuthenticationError, LLMError, UnsupportedError
from handiwork.llm.retry import discarded_of
from handiwork.llm.types import LLM, Capabilities, Completion, EmbeddingLLM, Message, ReplyForm, Tool, is_sound
from handiwork.sandbox.questions import QuestionError
from handiwork.session.policies.budget import LimitReachedError, check_model_budget
from handiwork.session.policies.rate_limit import Call, throttled, window_of
from handiwork.session.steps.journal import Journal
from handiwork.session.steps.live import TextDelta
from handiwork.session.steps.model_switch import Models

T = TypeVar("T")


class RecordedLLM:
    """Calls the model for one task or subtask, and appends a CompletionEvent for every answer.

    ``retry_temperature`` is for calls without a temperature; ``last_event`` is the id of the last CompletionEvent.
    ``model`` is the name of the agent's own model; None is the session's.
    """

    def __init__(self, journal: Journal, models: Models, subtask: int, model: str | None = None) -> None:
        self._journal, self._models, self._subtask, self._model = journal, models, subtask, model
        self.retry_temperature: float | None = None
        self.last_event: int | None = None

    @property
    def capabilities(self) -> Capabilities:
        """The model's capabilities."""
        return self._models.capabilities(self._journal.state.totals, self._model)

    async def open(self) -> None:
        """Find out the model's capabilities. Errors are ignored: the next call meets and reports them."""
        with suppress(LLMError):
            await self._models.current(self._journal.state.totals, self._model).open()

    async def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        form: ReplyForm | None = None,
        temperature: float | None = None,
    ) -> Completion:
        """Return the model's answer. Raises LLMError, LimitReachedError."""
        effective_temperature = self._models.temperature(self.retry_temperature if temperature is None else temperature)

        async def call(llm: LLM) -> Completion:
            with self._journal.stream_redacted(lambda text: TextDelta(text, self._subtask)) as on_delta:
                return await llm.complete(messages, tools, form, on_delta, effective_temperature)

        completion = await self._record(self._model, call)
        self.last_event = completion.event
        return completion

    async def embed(self, texts: Sequence[str], model: str) -> list[tuple[float, ...]]:
        """Return the embeddings of texts by the model of that name. Raises LLMError, LimitReachedError."""
        vectors: list[tuple[float, ...]] = []

        async def call(llm: LLM) -> Completion:
            if not isinstance(llm, EmbeddingLLM):
                raise UnsupportedError(f"{llm.name} gives no embeddings: name a model of an OpenAI-compatible server")
            embeddings = await llm.embed(texts)
            vectors.extend(embeddings.vectors)
            return embeddings.completion

        # OpenAI's own names are those of its Responses protocol, which has no embeddings.
        await self._record(re.sub(r"^openai:", "openai-chat:", model), call)
        return vectors

    async def ask_about(self, prompt: str, media: Part) -> str:
        """Return the model's answer to a skill's question about a picture or sound. Raises QuestionError."""
        last_event = self.last_event
        try:
            takes = self.capabilities.hearing if is_sound(media) else self.capabilities.vision
            if not takes:
                kind = "sounds" if is_sound(media) else "pictures"
                raise QuestionError(f"the model {self._journal.state.model} takes no {kind}")
            return (await self.complete([Message("user", (Part(text=prompt), media))])).content
        except (LLMError, LimitReachedError) as error:
            raise QuestionError(f"the model did not answer: {error}") from error
        finally:
            self.last_event = last_event  # of the agent's step, to which this call does not belong

    async def _record(self, model: str | None, call: Callable[[LLM], Awaitable[Completion]]) -> Completion:
        """Call the model of that name within the limits, and return the completion as recorded."""
        root = self._journal.state
        # The cost of a call is known once one has been priced: until then calls of parallel children run one by one.
        unpriced = root.limits.cost is not None and not root.totals.cost_sources
        async with self._models.first_call_lock if unpriced else nullcontext():
            return await self._record_one(model, call)

    async def _record_one(self, model: str | None, call: Callable[[LLM], Awaitable[Completion]]) -> Completion:
        models = self._models
        llm = models.current(self._journal.state.totals, model)
        counted = await self._turn(llm.name)
        async with models.budget_lock:
            check_model_budget(self._journal.state, len(models.in_flight))
            models.in_flight.add(call)
        try:
            completion = await call(llm)
            async with models.budget_lock:
                *_, stored = await self._append(*completion.discarded, completion)
                models.in_flight.discard(call)
            counted.tokens = completion.usage.total
        except LLMError as error:
            if isinstance(error, AuthenticationError):
                models.renew()
            await self._append(*error.discarded)
            raise
        except asyncio.CancelledError as error:
            await self._append(*discarded_of(error))
            raise
        finally:
            models.in_flight.discard(call)
        return replace(completion, event=stored.id)

    async def _append(self, *completions: Completion) -> list[Event]:
        """Record answers, also those that were discarded: they cost tokens."""
        if not completions:
            return []
        records = [_record(completion).with_fields(subtask=self._subtask) for completion in completions]
        return await self._journal.append(*records)

    async def _turn(self, name: str) -> Call:
        """Wait until the model's rate limit allows another call, tell the user if that takes time, and count the call.

        The user's interrupt, and the time limit, cancel the wait with the step.
        """
        window, told = window_of(name), False
        while True:
            seconds, reason = window.wait(self._models.rate_limit)
            if not seconds:
                return window.begin()
            if not told:
                await self._journal.append(throttled(name, seconds, reason).with_fields(subtask=self._subtask))
                told = True
            await asyncio.sleep(seconds)


class BlockingLLM:
    """The same for an agent whose ``step`` is a plain function in a thread: ``complete`` blocks that thread."""

    def __init__(self, llm: RecordedLLM, loop: asyncio.AbstractEventLoop) -> None:
        self._llm, self._loop = llm, loop
        self._thread = threading.local()
        self._call: asyncio.Task[Any] | None = None
        self.turn = 0

    @property
    def capabilities(self) -> Capabilities:
        """The model's capabilities."""
        return self._llm.capabilities

    def enter(self, turn: int) -> None:
        """Allow calls only from the calling thread until this ``turn`` ends."""
        self._thread.turn = turn

    def interrupt(self) -> None:
        """End the turn: the call under way, and any later one of its thread, raises InterruptedCallError."""
        self.turn += 1
        if self._call is not None:
            self._call.cancel()

    def complete(self, *args: Any, **kwargs: Any) -> Completion:
        """Return the model's answer. Raises LLMError, LimitReachedError, InterruptedCallError."""
        return self._wait(lambda: self._llm.complete(*args, **kwargs))

    def embed(self, *args: Any, **kwargs: Any) -> list[tuple[float, ...]]:
        """Return the embeddings of texts. Raises LLMError, LimitReachedError, InterruptedCallError."""
        return self._wait(lambda: self._llm.embed(*args, **kwargs))

    def _wait(self, start: Callable[[], Awaitable[T]]) -> T:
        turn: int | None = getattr(self._thread, "turn", None)

        async def call() -> T:
            if turn != self.turn:  # again, on the event loop: no other code can run in between
                raise InterruptedCallError
            self._call = asyncio.current_task()
            return await start()

        if turn != self.turn:
            raise InterruptedCallError
        try:
            return asyncio.run_coroutine_threadsafe(call(), self._loop).result()
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

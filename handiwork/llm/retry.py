"""Retries of model calls and the pauses between them."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, cast

from handiwork.llm.errors import EmptyAnswerError, LLMError, OverloadedError, ProviderError, RateLimitError
from handiwork.llm.types import Completion

LONGEST_PAUSE = 60.0
"""The longest pause between two attempts in seconds, even if the provider asks for a longer one."""

SILENCE = 300.0
"""Seconds without data after which an attempt fails: reasoning models are silent for minutes, and are billed for it."""


RATE_FACTOR = 20
"""How much longer a pause is after a rate limit without Retry-After, which counts by the minute, or an overload."""


EMPTY_ATTEMPTS = 2
"""The most attempts of a call whose answer is empty: each costs the whole prompt, and mostly ends like the first."""


@dataclass(frozen=True, slots=True)
class Patience:
    """The limits of a call's retries; times are in seconds.

    An attempt fails after ``silence`` seconds without data; None means SILENCE, and 600 for a server on this machine or
    its network, which is silent while it reads a long prompt. ``deadline`` limits a whole call with all its attempts.
    ``pause`` is the wait before the second attempt, doubled for each further one, and RATE_FACTOR times as long after a
    rate limit or an overload.
    """

    attempts: int = 4
    silence: float | None = None
    deadline: float = 1800.0
    pause: float = 1.0


def pause_before(attempt: int, patience: Patience, retry_after: float | None) -> float:
    """Return the seconds to wait before ``attempt`` (2 is the first retry): the provider's wish, else backoff."""
    if retry_after is not None:
        return min(retry_after, LONGEST_PAUSE)
    backoff = min(patience.pause * 2 ** (attempt - 2), LONGEST_PAUSE)
    # Jitter, so that many sessions that failed together do not retry together.
    return backoff * random.uniform(0.5, 1.0)


def retry_after_seconds(value: str | None) -> float | None:
    """Return the seconds of a Retry-After header, given as seconds or as a date; None if it is missing or invalid."""
    if not value:
        return None
    with suppress(ValueError):
        seconds = float(value)
        return max(seconds, 0.0) if math.isfinite(seconds) else None
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max((date - datetime.now(UTC)).total_seconds(), 0.0)


def discard(error: LLMError | asyncio.CancelledError, *answers: Completion) -> None:
    """Keep with the error those of the answers, of no use, that cost tokens."""
    cast("Any", error).discarded = tuple(answer for answer in answers if answer.usage.total)


def discarded_of(error: asyncio.CancelledError) -> tuple[Completion, ...]:
    """Return the answers that a cancelled call has paid for, as far as the provider told their tokens before."""
    return getattr(error, "discarded", ())


async def with_retries(patience: Patience, attempt: Callable[[], Awaitable[Completion]]) -> Completion:
    """Return the result of ``attempt``, retrying on RateLimitError and ProviderError.

    The completion, or the final LLMError, lists the errors of the failed attempts in ``failed_attempts``, and their
    answers in ``discarded``; a cancelled call has its answers for ``discarded_of``.
    """
    failed: list[str] = []
    discarded: list[Completion] = []
    deadline = asyncio.timeout(patience.deadline)
    try:
        async with deadline:
            while True:
                try:
                    return replace(await attempt(), failed_attempts=tuple(failed), discarded=tuple(discarded))
                except (RateLimitError, ProviderError) as error:
                    failed.append(str(error))
                    discarded += error.discarded
                    most = EMPTY_ATTEMPTS if isinstance(error, EmptyAnswerError) else patience.attempts
                    if len(failed) >= min(most, patience.attempts):
                        error.failed_attempts, error.discarded = tuple(failed[:-1]), tuple(discarded)
                        raise
                    factor = RATE_FACTOR if isinstance(error, RateLimitError | OverloadedError) else 1
                    patient = replace(patience, pause=factor * patience.pause)
                    pause = pause_before(len(failed) + 1, patient, error.retry_after)
                except asyncio.CancelledError as error:
                    discarded += discarded_of(error)
                    raise
                except LLMError as error:
                    error.failed_attempts, error.discarded = tuple(failed), (*discarded, *error.discarded)
                    raise
                await asyncio.sleep(pause)
    except asyncio.CancelledError as error:
        discard(error, *discarded)
        raise
    except TimeoutError:
        if not deadline.expired():
            raise
        message = f"the model did not answer in full within {patience.deadline:g} s"
        late = ProviderError(message, tuple(failed))
        late.discarded = tuple(discarded)
        raise late from None

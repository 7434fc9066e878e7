"""The errors of models.

LLMError
├── AuthenticationError      the key is missing or refused
├── ModelNotFoundError       no such model at this address
├── ContextWindowError       the conversation is too long for the model
├── RequestRejectedError     the provider refuses the request for another reason
│   ├── OutputLimitError     the answer reached its length limit before it began: all of it was reasoning
│   ├── UnsupportedError     the model or its server has no tools, or no schemas
│   └── TemplateError        its chat template refuses the form of the conversation
├── RedirectError            the server redirects the conversation to another address
├── AnswerTooLargeError      the server's answer is over a limit
├── RateLimitError           still limited after the retries
└── ProviderError            5xx, cut stream, silence, garbage, no connection: after the retries
    ├── OverloadedError      it has no room for requests for a while
    └── EmptyAnswerError     the answer has no text and no call
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from handiwork.errors import HandiworkError

if TYPE_CHECKING:
    from handiwork.llm.types import Completion

TemplateRule = Literal["alternating", "single calls", "no system"]
"""A rule of a chat template: user and assistant alternate even if tools answer in between, an answer has one call of a
tool at most, or no message is the system's.
"""


class LLMError(HandiworkError):
    """A model did not answer; the message gives the reason and the remedy.

    ``failed_attempts`` are the errors of earlier attempts; ``retry_after`` is the wait in seconds the provider asks
    for. ``discarded`` are the answers of all attempts that cost tokens and had nothing to use.
    """

    discarded: tuple[Completion, ...] = ()

    def __init__(self, message: str, failed_attempts: tuple[str, ...] = (), retry_after: float | None = None) -> None:
        super().__init__(message)
        self.failed_attempts = failed_attempts
        self.retry_after = retry_after


class AuthenticationError(LLMError):
    """The key is missing or refused."""


class ModelNotFoundError(LLMError):
    """There is no such model at this address."""


class ContextWindowError(LLMError):
    """The conversation is longer than the model's window."""


class RequestRejectedError(LLMError):
    """The provider refuses the request, and would refuse it again."""


class OutputLimitError(RequestRejectedError):
    """The model used up its output limit for reasoning; to a shorter one there may be an answer."""


class UnsupportedError(RequestRejectedError):
    """The model or its server lacks a capability that the request needs; the model's capabilities lack it from now."""


class TemplateError(RequestRejectedError):
    """The model's chat template refuses the form of the conversation, and would take one that obeys ``rule``."""

    def __init__(self, message: str, rule: TemplateRule) -> None:
        super().__init__(message)
        self.rule: TemplateRule = rule


class RedirectError(LLMError):
    """The server redirects to another address, to which a conversation is never sent."""


class AnswerTooLargeError(LLMError):
    """The server's answer is over a limit; none of it is kept."""


class RateLimitError(LLMError):
    """The provider still limits the rate after the retries."""


class ProviderError(LLMError):
    """The provider or the connection to it failed, after the retries."""


class OverloadedError(ProviderError):
    """The provider has no room for requests, as Anthropic's 529 and Google's 503 say: that lasts for a minute or so."""


class EmptyAnswerError(ProviderError):
    """The answer has no text and no call; a model that takes its turn for ended gives no other one to the same."""

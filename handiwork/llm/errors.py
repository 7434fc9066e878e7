"""What can go wrong with a model.

LLMError
├── AuthenticationError      the key is missing or refused
├── ModelNotFoundError       no such model at this address
├── ContextWindowError       the conversation is too long for the model
├── RequestRejectedError     the provider refuses the request for another reason
│   └── RoleOrderError       its template takes no user message after a tool's answer
├── RedirectError            the server wants the conversation sent to another address
├── AnswerTooLargeError      the server sends more than an answer may have
├── RateLimitError           still limited after the retries
└── ProviderError            5xx, cut stream, silence, garbage, no connection: after the retries
"""

from __future__ import annotations

from handiwork.errors import HandiworkError


class LLMError(HandiworkError):
    """A model did not answer; the text says why and what to do.

    ``failed_attempts`` are the tries before; ``retry_after`` is the seconds the provider asks to wait.
    """

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
    """The provider refuses the request, and would again."""


class RoleOrderError(RequestRejectedError):
    """The model's template wants user and assistant to alternate, whatever tools answer in between."""


class RedirectError(LLMError):
    """The server redirects to another address, which is never followed with a conversation."""


class AnswerTooLargeError(LLMError):
    """The server sends more than an answer may have; nothing of it is kept."""


class RateLimitError(LLMError):
    """The provider still limits the rate after the retries."""


class ProviderError(LLMError):
    """The provider or the way to it failed, after the retries."""

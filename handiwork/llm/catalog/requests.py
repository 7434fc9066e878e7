"""Requests to providers and servers with a key, and the test of a key: a request that fails without the right one."""

from __future__ import annotations

import asyncio
from enum import StrEnum

import httpx2

from handiwork.llm.bounded_client import BoundedClient
from handiwork.llm.errors import LLMError
from handiwork.llm.failure import GOOGLES_REFUSAL

SECONDS = 10.0
"""Seconds to wait for an answer."""

LISTS = {
    "anthropic": "https://api.anthropic.com/v1/models?limit=1000",
    "openai": "https://api.openai.com/v1/models",
    "google": "https://generativelanguage.googleapis.com/v1beta/models?pageSize=1000",
    "openrouter": "https://openrouter.ai/api/v1/models",
    "deepseek": "https://api.deepseek.com/models",
    "together": "https://api.together.xyz/v1/models",
    "fireworks": "https://api.fireworks.ai/inference/v1/models",
    "moonshotai": "https://api.moonshot.ai/v1/models",
}
"""The address of each provider's list of models."""

CHECKS = {**LISTS, "openrouter": "https://openrouter.ai/api/v1/key"}
"""The address that tests each provider's key: its list, unless everybody may read that."""

_REFUSED = frozenset({401, 403})


class KeyState(StrEnum):
    """The result of the test of a key."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNTESTED = "untested"


async def check_key(provider: str, key: str, address: str | None = None) -> tuple[KeyState, str]:
    """Test a key of one of the providers of CHECKS, or of a server with a list of models at ``address``.

    The text says why a key could not be tested.
    """
    url = address or CHECKS[provider]
    try:
        async with asyncio.timeout(2 * SECONDS), BoundedClient(timeout=None) as client:
            answer = await client.get(url, headers=key_header(provider, key))
            if refuses_key(answer):
                return KeyState.REFUSED, ""
            if not answer.is_success:
                return KeyState.UNTESTED, f"{url} answers with {answer.status_code}"
            without = await client.get(url)
    except (httpx2.HTTPError, httpx2.InvalidURL, LLMError, TimeoutError) as error:
        return KeyState.UNTESTED, f"{url} cannot be reached: {str(error) or type(error).__name__}"
    if without.is_success:
        return KeyState.UNTESTED, f"{url} answers without a key too"
    return KeyState.ACCEPTED, ""


def refuses_key(answer: httpx2.Response) -> bool:
    """Return whether an answer says that the key of its request is wrong."""
    return answer.status_code in _REFUSED or (answer.status_code == 400 and GOOGLES_REFUSAL in answer.text)


def key_header(provider: str, key: str) -> dict[str, str]:
    """Return the headers of a request with a key."""
    if provider == "anthropic":
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}
    return {"x-goog-api-key": key} if provider == "google" else {"authorization": f"Bearer {key}"}

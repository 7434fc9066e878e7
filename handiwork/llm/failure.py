"""Maps a provider's answer to an error."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any, cast

from handiwork.llm.errors import (
    AuthenticationError,
    ContextWindowError,
    LLMError,
    ModelNotFoundError,
    OverloadedError,
    ProviderError,
    RateLimitError,
    RequestRejectedError,
    TemplateError,
    TemplateRule,
)
from handiwork.llm.strict_json import parse
from handiwork.llm.types import Capabilities, Grammar, ReplyForm

_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|context (window|size|length)|prompt is too long"
    r"|input (is )?too long|too many (input )?tokens|input token count|maximum prompt length"
    r"|model token limit|exceeds? (context limit|max length)|maximum model length|range of input length"
    r"|must (be <=|have less than) \d+( tokens|\. given: \d+ `inputs`)|body too large\b.{0,60}\btokens"
    # Anthropic refuses a large picture once a conversation has more than 20.
    r"|many-images? requests",
    re.IGNORECASE,
)
_OVER_RATE = re.compile(r"request too large for\b.{0,200}\btokens per min", re.IGNORECASE)
"""One request has more tokens than a minute may have, so no wait helps."""

_NO_MODEL = re.compile(
    r"model_not_found|not a valid model|invalid model|model\b.{0,80}(not found|does not exist)", re.IGNORECASE
)
GOOGLES_REFUSAL = "API_KEY_INVALID"
"""Google answers a wrong or expired key with 400 and this reason."""

_OVERLOADED = re.compile(r"overloaded", re.IGNORECASE)
_NO_CREDIT = re.compile(r"insufficient_quota|insufficient (credits|balance)|credit balance", re.IGNORECASE)
_TOOLS = r"(?:tools?\b|tool[_ ](?:use|call(?:s|ing)?|choice)|function[_ ]call(?:s|ing)?)"
_SCHEMA = r"(?:response_format|json[_ ](?:schema|mode)|structured output|grammar)"
_NOT = r"(?:\bnot|n't|\bun)\s?(?:support|enabled|available|allow|implement)"
_NO_TOOLS = re.compile(
    rf"{_TOOLS}.{{0,60}}{_NOT}|{_NOT}.{{0,40}}\b{_TOOLS}|no endpoints found that support tool"
    r"|requires --(?:jinja|enable-auto-tool-choice)",
    re.IGNORECASE,
)
_NO_SCHEMA = re.compile(
    rf"{_SCHEMA}.{{0,60}}{_NOT}|{_NOT}.{{0,40}}{_SCHEMA}|invalid_json_schema|invalid schema for response_format",
    re.IGNORECASE,
)
_NO_IMAGES = re.compile(
    rf"unknown variant .?image_url|not a multimodal model|at most 0 image|(?:images?|vision)\b.{{0,60}}{_NOT}"
    rf"|{_NOT}.{{0,40}}\b(?:images?|image_url|vision)\b|image_url is only supported|missing data required for image"
    r"|no endpoints found that support image|\bcontent\W.{0,20}must be a string",
    re.IGNORECASE,
)
_BAD_IMAGE = re.compile(r"following formats|image[ _](?:format|type)|\bmime\b", re.IGNORECASE)
"""The refusal of one picture, by a model that takes others."""

_TEMPLATE_RULES: dict[TemplateRule, re.Pattern[str]] = {
    "alternating": re.compile(r"roles must alternate|unexpected role\b.{0,40}\bafter role", re.IGNORECASE),
    "single calls": re.compile(r"only supports? single tool[- ]calls?", re.IGNORECASE),
    "no system": re.compile(
        rf"\b(?:system (?:role|message|prompt)|developer instruction)s?\b.{{0,20}}{_NOT}", re.IGNORECASE
    ),
}


def words_of(body: object) -> str:
    """Return the provider's own message in an error's body (text, JSON or an object), at most 500 characters."""
    if isinstance(body, str):
        try:
            body = parse(body)
        except ValueError:
            return " ".join(str(body).split())[:500]
    inner = cast("Any", body)
    if isinstance(inner, list) and inner:
        inner = cast("list[Any]", inner)[0]
    if isinstance(inner, dict):
        fields = cast("dict[str, Any]", inner)
        if isinstance(fields.get("error"), dict):
            fields = cast("dict[str, Any]", fields["error"])
        kind = next((v for key in ("type", "code") if isinstance(v := fields.get(key), str)), "")
        words = str(fields.get("message") or fields.get("detail") or json.dumps(fields))
        inner = f"{words} ({kind})" if kind else words
    return " ".join(str(cast("object", inner)).split())[:500]


def refusal(
    status: int | None, body: object, model: str, server: str, key_name: str, retry_after: float | None = None
) -> LLMError:
    """Return the error for an answer with HTTP ``status`` (None if the error arrived inside the stream).

    ``server`` is the server's name or address, ``key_name`` the variable or the file that holds the key.
    """
    words = words_of(body)
    code = "" if status is None else f" (HTTP {status})"
    evidence = f"{words} {body}"
    if status in (401, 403) or (status == 400 and GOOGLES_REFUSAL in evidence):
        return AuthenticationError(f"{server} refused the key{code}: {words}; check {key_name}")
    if status == 402 or _NO_CREDIT.search(evidence):
        return RequestRejectedError(f"{server} wants to be paid first{code}: {words}")
    over_rate = _OVER_RATE.search(evidence)
    if status == 429 and not over_rate:
        return RateLimitError(f"{server} limits the rate{code}: {words}", retry_after=retry_after)
    # 413 counts bytes, most of them of pictures: a shorter conversation has fewer.
    if status == 413 or over_rate or _TOO_LONG.search(evidence):
        return ContextWindowError(f"the conversation is too long for {model}{code}: {words}")
    for rule, pattern in _TEMPLATE_RULES.items():
        if pattern.search(evidence):
            return TemplateError(f"{server} rejects the request{code}: {words}", rule)
    if status == 404 or (status in (None, 400, 422) and _NO_MODEL.search(evidence)):
        return ModelNotFoundError(
            f"{server} has no model {model}{code}: {words}; check the model's name and the base URL"
        )
    if status is None or status >= 500 or status in (408, 409, 425):
        kind = OverloadedError if status in (503, 529) or _OVERLOADED.search(evidence) else ProviderError
        return kind(f"{server} failed{code}: {words}", retry_after=retry_after)
    return RequestRejectedError(f"{server} rejects the request{code}: {words}")


def lacking(
    error: LLMError, capabilities: Capabilities, *, tools: bool, form: ReplyForm | None, images: bool
) -> Capabilities | None:
    """Return the capabilities that a refusal shows, None if it has another reason.

    ``tools`` and ``images`` tell whether the refused request had some, ``form`` is the form to which it bound the
    reply.
    """
    if not isinstance(error, RequestRejectedError | ModelNotFoundError | ProviderError):
        return None
    words = str(error)
    if images and capabilities.vision and _NO_IMAGES.search(words) and not _BAD_IMAGE.search(words):
        return replace(capabilities, vision=False)
    if tools and _NO_TOOLS.search(words):
        return replace(capabilities, tools=False)
    if form is not None and _NO_SCHEMA.search(words):
        return (
            replace(capabilities, grammar=False) if isinstance(form, Grammar) else replace(capabilities, schema=False)
        )
    return None

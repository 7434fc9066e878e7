"""Embeddings of an OpenAI-compatible server: their order, their cost, and answers that are none."""

from __future__ import annotations

import json

import pytest

from handiwork.llm.errors import AuthenticationError, LLMError, ProviderError
from handiwork.llm.openai_compatible.model import ChatLLM, ServerAddress
from tests.llm.standin import QUICK, Refusal, StandIn


@pytest.fixture
async def model(server: StandIn) -> ChatLLM:
    async def connect() -> ServerAddress:
        return ServerAddress(server.base_url)

    return ChatLLM("standin-1", "standin-1", connect, patience=QUICK)


async def test_the_vectors_come_in_the_order_of_the_texts_with_their_tokens(server: StandIn, model: ChatLLM) -> None:
    embeddings = await model.embed(["one", "seven"])
    assert embeddings.vectors == ((3.0, 1.0), (5.0, 1.0))
    completion = embeddings.completion
    assert (completion.content, completion.model, completion.usage.input) == ("", "standin-1", 7)
    assert (completion.cost, completion.cost_source) == (None, "unknown")
    assert server.requests == [{"model": "standin-1", "input": ["one", "seven"]}]
    await model.close()


async def test_a_failed_call_is_made_again(server: StandIn, model: ChatLLM) -> None:
    server.planned.append(Refusal(503, "busy"))
    embeddings = await model.embed(["one"])
    assert embeddings.vectors == ((3.0, 1.0),)
    assert len(embeddings.completion.failed_attempts) == 1
    await model.close()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("<html>", "sent no embeddings: <html>"),
        (json.dumps({"data": []}), "other embeddings than one for each of 2 texts"),
        (json.dumps({"data": [{"index": 0, "embedding": [1.0]}] * 2}), "other embeddings than one for each of 2 texts"),
        (
            json.dumps({"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0, 2.0]}]}),
            "other embeddings than one for each of 2 texts",
        ),
    ],
)
async def test_another_answer_is_an_error_of_the_server(
    server: StandIn, model: ChatLLM, answer: str, words: str
) -> None:
    server.planned.extend(Refusal(200, answer) for _ in range(QUICK.attempts))
    with pytest.raises(ProviderError, match=words):
        await model.embed(["one", "two"])
    await model.close()


@pytest.mark.parametrize(("status", "kind"), [(401, AuthenticationError), (404, LLMError)])
async def test_a_refusal_is_not_repeated(server: StandIn, model: ChatLLM, status: int, kind: type[LLMError]) -> None:
    server.planned.append(Refusal(status, json.dumps({"error": {"message": "no such model or key"}})))
    with pytest.raises(kind):
        await model.embed(["one"])
    assert len(server.requests) == 1
    await model.close()

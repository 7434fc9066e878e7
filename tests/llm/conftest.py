from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

import pytest

from handiwork.llm.create import create
from handiwork.llm.retry import Patience
from handiwork.llm.types import LLM
from tests.llm.standin import QUICK, StandIn, serving


@pytest.fixture
async def server() -> AsyncGenerator[StandIn]:
    async with serving(StandIn()) as standin:
        yield standin


@pytest.fixture
async def chat(server: StandIn) -> AsyncGenerator[Callable[..., LLM]]:
    """Makes models behind the stand-in, quick to retry, closed at the end."""
    made: list[LLM] = []

    def make(model: str = "standin-1", patience: Patience = QUICK, **rest: object) -> LLM:
        base_url = (
            server.base_url.removesuffix("/v1") if model.startswith(("anthropic:", "google:")) else server.base_url
        )
        llm = create(model, base_url=base_url, patience=patience, **rest)  # type: ignore[arg-type]
        made.append(llm)
        return llm

    yield make
    for llm in made:
        await llm.close()

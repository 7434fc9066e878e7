"""The model that plays the user of a benchmark, or judges an agent's answer."""

from __future__ import annotations

from handiwork.llm import create as llms
from handiwork.llm.types import LLM, Message


class User:
    """The simulated user; its model is created at the first call. ``cost`` is USD of all but the ``unpriced`` calls."""

    def __init__(self, model: str, base_url: str | None) -> None:
        self._model, self._base_url = model, base_url
        self._llm: LLM | None = None
        self.cost = 0.0
        self.unpriced = 0

    async def ask(self, prompt: str) -> str:
        """Return the model's answer to the prompt, at temperature 0. Raises LLMError."""
        if self._llm is None:
            self._llm = llms.create(self._model, self._base_url)
        answer = await self._llm.complete([Message.text("user", prompt)], temperature=0.0)
        self.cost += answer.cost or 0.0
        self.unpriced += answer.cost is None
        return answer.content

    async def close(self) -> None:
        """Close the model's connections."""
        if self._llm is not None:
            await self._llm.close()

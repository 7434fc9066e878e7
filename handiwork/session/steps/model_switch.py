"""The model in use, which the user may change while the session runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from handiwork.agents.totals import Totals
from handiwork.events.record import ProtocolName
from handiwork.llm.types import LLM, Capabilities, with_protocol

MakeLLM = Callable[[str, str | None], LLM]
"""Creates the model for a model string and a base URL. Raises LLMError."""


class Models:
    """The session's model; ``in_flight`` holds the calls that are not priced yet.

    ``first_call_lock`` serialises calls until one has been priced; ``budget_lock`` guards the totals and ``in_flight``.
    ``temperature``, if given, is the minimum for every call; ``protocol`` is the user's choice.
    """

    def __init__(
        self,
        llm: LLM,
        make: MakeLLM | None = None,
        temperature: float | None = None,
        protocol: ProtocolName = "auto",
    ) -> None:
        self._llm, self._make = llm, make
        self._temperature = temperature
        self._protocol: ProtocolName = protocol
        self._used: list[LLM] = []
        self.in_flight: set[object] = set()
        self.first_call_lock, self.budget_lock = asyncio.Lock(), asyncio.Lock()

    def temperature(self, requested: float | None) -> float | None:
        """Return the temperature of a call that requests this one, or none."""
        minimum = self._temperature
        return requested if minimum is None else max(minimum, requested or 0.0)

    def capabilities(self, totals: Totals) -> Capabilities:
        """Return the capabilities of the model that the totals name, in the chosen protocol. Raises LLMError."""
        return with_protocol(self.current(totals).capabilities, self._protocol)

    def current(self, totals: Totals) -> LLM:
        """Return the model that the totals name. Raises LLMError if no model has that name."""
        if totals.model not in ("", self._llm.name) and self._make is not None:
            llm = self._make(totals.model, totals.base_url)
            self._used.append(self._llm)
            self._llm = llm
        return self._llm

    async def close(self) -> None:
        """Close the models."""
        for llm in [*self._used, self._llm]:
            await llm.close()

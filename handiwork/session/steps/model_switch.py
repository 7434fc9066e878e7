"""The model in use, which the user may change while the session runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from handiwork.agents.totals import Totals
from handiwork.events.record import ProtocolName
from handiwork.llm.errors import LLMError
from handiwork.llm.types import LLM, Capabilities, with_protocol
from handiwork.session.policies.rate_limit import RateLimit

MakeLLM = Callable[[str, str | None], LLM]
"""Creates the model for a model string and a base URL. Raises LLMError."""


class Models:
    """The session's model; ``in_flight`` holds the calls that are not priced yet.

    ``first_call_lock`` serialises calls until one has been priced; ``budget_lock`` guards the totals and ``in_flight``.
    ``temperature``, if given, is the minimum for every call; ``protocol`` is the user's choice,
    ``rate_limit`` holds for each model, ``base_url`` is that of ``llm``.
    """

    def __init__(
        self,
        llm: LLM,
        make: MakeLLM | None = None,
        temperature: float | None = None,
        protocol: ProtocolName = "auto",
        rate_limit: RateLimit = RateLimit(),  # noqa: B008 - frozen
        base_url: str | None = None,
    ) -> None:
        self._llm, self._make, self.rate_limit = llm, make, rate_limit
        self._base_url = base_url
        self._by_name: dict[tuple[str, str | None], LLM] = {}
        self._temperature = temperature
        self._protocol: ProtocolName = protocol
        self._used: list[LLM] = []
        self._refused = False
        self.in_flight: set[object] = set()
        self.first_call_lock, self.budget_lock = asyncio.Lock(), asyncio.Lock()

    def temperature(self, requested: float | None) -> float | None:
        """Return the temperature of a call that requests this one, or none."""
        minimum = self._temperature
        return requested if minimum is None else max(minimum, requested or 0.0)

    def capabilities(self, totals: Totals, name: str | None = None) -> Capabilities:
        """Return the capabilities of the model ``name``, or of the one that the totals name. Raises LLMError."""
        return with_protocol(self.current(totals, name).capabilities, self._protocol)

    def current(self, totals: Totals, name: str | None = None) -> LLM:
        """Return the model ``name``, or the one that the totals name. Raises LLMError if no model has that name.

        A ``name`` without a provider is a model of the session's server.
        """
        if name is not None and name not in (totals.model, self._llm.name) and self._make is not None:
            key = name, None if ":" in name else totals.base_url
            if key not in self._by_name:
                self._by_name[key] = self._make(*key)
            return self._by_name[key]
        is_other = (totals.model, totals.base_url) != (self._llm.name, self._base_url)
        if totals.model and (is_other or self._refused) and self._make is not None:
            self._refused = False
            try:
                llm = self._make(totals.model, totals.base_url)
            except LLMError:
                if is_other:
                    raise
                return self._llm  # a program's own model cannot be created by its name
            self._used.append(self._llm)
            self._llm, self._base_url = llm, totals.base_url
        return self._llm

    def renew(self) -> None:
        """Create the models again for the next call: a key was refused, and the user may give another one."""
        self._used += self._by_name.values()
        self._by_name.clear()
        self._refused = True

    async def close(self) -> None:
        """Close the models."""
        for llm in [*self._used, *self._by_name.values(), self._llm]:
            await llm.close()

"""The cost of a completion and the source of the figure."""

from __future__ import annotations

from handiwork.events.record import CostSource, Usage


def price(usage: Usage, model: str, base_url: str, reported: float | None = None) -> tuple[float | None, CostSource]:
    """Return the cost of a completion in USD and the source of the figure.

    The provider's own figure comes first; then the price list, but only if ``base_url`` is a listed provider's and
    tokens were counted; otherwise the cost is unknown, never 0.
    """
    if reported is not None:
        return reported, "provider"
    if usage.total == 0:
        return None, "unknown"
    # Imported late: the price list takes a third of a second to load.
    import genai_prices
    from genai_prices.types import Usage as ListUsage

    counted = ListUsage(
        input_tokens=usage.input + usage.cache_read + usage.cache_write,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
        output_tokens=usage.output,
    )
    try:
        calculation = genai_prices.calc_price(counted, model, provider_api_url=base_url)
    except LookupError:
        return None, "unknown"
    return float(calculation.total_price), "price_list"

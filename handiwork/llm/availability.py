"""The models available on this machine: the known local ones, and providers with a key."""

from __future__ import annotations

import importlib.util
import os

from handiwork.llm.catalog.keys import load_keys, place_of
from handiwork.llm.local.weights import KNOWN, is_complete
from handiwork.paths import cache_dir
from handiwork.providers import KEYS


def provider_keys() -> dict[str, str | None]:
    """Return for each provider the name of the variable that holds its key, None if there is none."""
    load_keys()
    return {provider: next((name for name in names if os.environ.get(name)), None) for provider, names in KEYS.items()}


def local_model_state(name: str) -> tuple[bool, str]:
    """Return whether a local model can be used now, and a short explanation."""
    weights = KNOWN[name]
    size = f"{weights.size / 1e9:.1f} GB, {weights.about}" if weights.about else f"{weights.size / 1e9:.1f} GB"
    if importlib.util.find_spec("xllamacpp") is None:
        return False, "needs the extra `local`: pip install 'handiwork[local]'"
    if is_complete(cache_dir() / "models" / weights.file, weights):
        return True, f"fetched, {size}"
    return False, f"not fetched yet: its first use fetches {size}"


def models() -> list[tuple[str, bool, str]]:
    """Return the local models and each provider's: the name, whether it can be used now, and a short explanation."""
    local = [(f"local:{name}", *local_model_state(name)) for name in KNOWN]
    keys = provider_keys().items()
    return local + [
        (f"{provider}:NAME", key is not None, f"key in {place_of(key)}" if key else f"no key: set {KEYS[provider][0]}")
        for provider, key in keys
    ]

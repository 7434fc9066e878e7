"""The capabilities that servers have refused, cached by address and model, so that only one request fails."""

from __future__ import annotations

import json
import os
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from handiwork.llm.strict_json import parse
from handiwork.llm.types import Capabilities
from handiwork.llm.usage import object_of
from handiwork.paths import cache_dir, locked

LIFETIME = 7 * 24 * 3600.0
"""Seconds for which a refusal is believed: servers are upgraded."""

_KEPT = ("tools", "schema", "vision")
"""The capabilities whose refusal is kept."""


def recall(server: str, model: str, capabilities: Capabilities) -> Capabilities:
    """Return the capabilities without those that the server has refused for the model."""
    fields = object_of(_read(_file()).get(_key(server, model)))
    if not isinstance(fields.get("time"), float | int) or time.time() - fields["time"] > LIFETIME:
        return capabilities
    kept = {name: getattr(capabilities, name) and fields.get(name) is not False for name in _KEPT}
    return replace(capabilities, **kept)


def remember(server: str, model: str, before: Capabilities, after: Capabilities) -> None:
    """Remember what ``after`` lacks and ``before`` had; a cache that cannot be written is left alone."""
    file = _file()
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with locked(file.with_suffix(".lock"), flags=os.O_RDWR | os.O_CREAT):
            entries = _read(file)
            known = recall(server, model, Capabilities(vision=True))
            fields = {name: getattr(known, name) and getattr(after, name) >= getattr(before, name) for name in _KEPT}
            with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False) as new:
                json.dump({**entries, _key(server, model): {**fields, "time": time.time()}}, new)
            Path(new.name).replace(file)


def _file() -> Path:
    return cache_dir() / "capabilities.json"


def _key(server: str, model: str) -> str:
    return f"{server} {model}"


def _read(file: Path) -> dict[str, Any]:
    try:
        return object_of(parse(file.read_text()))
    except (OSError, ValueError):
        return {}

"""The templates of reports, every value escaped: what they show comes from agents, and is hostile."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jinja2

FOLDER = Path(__file__).parent


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
    )


def render(name: str, **values: Any) -> str:
    """Return a template with its values filled in."""
    return _environment().get_template(name).render(values)


def write(name: str, file: Path, **values: Any) -> None:
    """Write a template with its values filled in, piece by piece, whole or not at all."""
    part = file.with_name(f"{file.name}.part")
    _environment().get_template(name).stream(values).dump(str(part), encoding="utf-8", errors="replace")
    part.rename(file)

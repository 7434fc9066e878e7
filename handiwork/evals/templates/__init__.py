"""The templates of reports, with every value escaped: the values come from agents, and are hostile."""

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
    """Return a template rendered with these values."""
    return _environment().get_template(name).render(values)


def write(name: str, file: Path, **values: Any) -> None:
    """Write a template rendered with these values piece by piece, but atomically."""
    part = file.with_name(f"{file.name}.part")
    _environment().get_template(name).stream(values).dump(str(part), encoding="utf-8", errors="replace")
    part.rename(file)

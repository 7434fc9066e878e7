"""Prompts are Jinja templates beside the agents; their rendered text is pinned by golden files in the tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jinja2


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )


def render(name: str, **values: Any) -> str:
    """Return the prompt ``AGENT/NAME`` of ``AGENT/prompts/NAME.j2`` with its values filled in."""
    agent, _, prompt = name.partition("/")
    return _environment().get_template(f"{agent}/prompts/{prompt}.j2").render(values).strip()

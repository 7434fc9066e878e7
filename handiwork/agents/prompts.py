"""Prompts: Jinja templates beside the agents; golden files in the tests pin their rendered text."""

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
    """Return the prompt ``AGENT/NAME``: the template ``AGENT/prompts/NAME.j2`` rendered with the values."""
    agent, _, prompt = name.partition("/")
    return _environment().get_template(f"{agent}/prompts/{prompt}.j2").render(values).strip()

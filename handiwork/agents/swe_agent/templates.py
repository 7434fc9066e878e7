"""The Jinja templates of configurations and tool bundles, which may come from a repository.

They are rendered on this machine, outside the sandbox: so they read the values they are given, and nothing else.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from handiwork.errors import HandiworkError

_ENVIRONMENT = ImmutableSandboxedEnvironment()


class SWEConfigError(HandiworkError):
    """A configuration of SWEAgent or a tool bundle is invalid; the text names the file and the fault."""


def render(template: str, /, **values: Any) -> str:
    """Return the template's text. Raises SWEConfigError for a template that fails or reaches for more than values."""
    try:
        return _compile(template).render(values)
    except jinja2.TemplateError as error:
        raise SWEConfigError(f"the template {template!r} fails: {error}") from None


@cache
def _compile(template: str) -> jinja2.Template:
    return _ENVIRONMENT.from_string(template)

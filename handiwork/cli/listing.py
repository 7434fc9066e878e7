"""``handiwork models`` and ``handiwork agents``."""

from __future__ import annotations

import importlib.util
import os

from rich.text import Text

from handiwork.agents.registry import AgentNotFoundError, find, installed
from handiwork.cli.exits import Exit
from handiwork.cli.plain import plain
from handiwork.cli.view import terminal_console
from handiwork.llm.weights import KNOWN
from handiwork.paths import cache_dir

KEYS = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "openrouter": ("OPENROUTER_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "together": ("TOGETHER_API_KEY",),
    "fireworks": ("FIREWORKS_API_KEY",),
    "moonshotai": ("MOONSHOTAI_API_KEY",),
}
"""The environment variables in which the providers' keys are looked for."""

NAMING = """
name a model with --model, or in HANDIWORK_MODEL, or as model = "..." in the settings file:
  anthropic:NAME, openai:NAME, ...      a provider's, with the key in the variable above
  NAME --base-url http://HOST:PORT/v1   of any OpenAI-compatible server (its key, if any, in HANDIWORK_API_KEY)
  local:NAME, local:/path/to/file.gguf  on this machine
  scripted:FILE                         replies from a file, for trying things out
"""


def provider_keys() -> dict[str, str | None]:
    """Return for each provider the name of the variable that holds its key, None where there is none."""
    return {provider: next((name for name in names if os.environ.get(name)), None) for provider, names in KEYS.items()}


def local_model_state(name: str) -> tuple[bool, str]:
    """Return whether a local model can be used as it is, and a word on that."""
    weights = KNOWN[name]
    size = f"{weights.size / 1e9:.1f} GB"
    if importlib.util.find_spec("xllamacpp") is None:
        return False, "needs the extra `local`: pip install 'handiwork[local]'"
    path = cache_dir() / "models" / weights.file
    if path.is_file() and path.stat().st_size == weights.size:
        return True, f"fetched, {size}"
    return False, f"not fetched yet: its first use fetches {size}"


def models() -> Exit:
    """List the local models and the providers, with what they need."""
    console = terminal_console()
    for name in KNOWN:
        ready, state = local_model_state(name)
        console.print(_row(f"local:{name}", state, ready), soft_wrap=True)
    for provider, key in provider_keys().items():
        state = f"key in {key}" if key else f"no key: set {KEYS[provider][0]}"
        console.print(_row(f"{provider}:NAME", state, key is not None), soft_wrap=True)
    console.print(Text(NAMING.rstrip("\n")), soft_wrap=True)
    return Exit.FINISHED


def agents() -> Exit:
    """List the installed agents with their description and the package they come from."""
    console = terminal_console()
    for name, point in installed().items():
        try:
            about = find(name).description or "(no description)"
        except (AgentNotFoundError, ImportError, AttributeError) as error:
            about = f"cannot be loaded: {error}"
        source = point.dist.name if point.dist is not None else "?"
        row = Text.assemble((f"{name:24}", "bold"), plain(about), (f"  ({source}, {point.value})", "dim"))
        console.print(row, soft_wrap=True)
    console.print(Text("\nyour own: --agent file.py:Class or --agent module:Class"), soft_wrap=True)
    return Exit.FINISHED


def _row(name: str, state: str, ready: bool) -> Text:
    return Text.assemble((f"{name:28}", "bold"), (state, "green" if ready else "dim"))

"""``handiwork models`` and ``handiwork agents``."""

from __future__ import annotations

from rich.text import Text

from handiwork.agents.registry import describe, installed
from handiwork.cli.terminal.sanitize import plain
from handiwork.cli.terminal.view import terminal_console
from handiwork.errors import Exit
from handiwork.llm import offered

NAMING = """
name a model with --model, in HANDIWORK_MODEL, or as model = "..." in the settings file:
  anthropic:NAME, openai:NAME, ...      a provider's model, with the key in the variable above
  NAME --base-url http://HOST:PORT/v1   a model on any OpenAI-compatible server (its key, if any, in HANDIWORK_API_KEY)
  local:NAME, local:/path/to/file.gguf  a model on this machine
  scripted:FILE                         replies from a file, to try things out
"""


def models() -> Exit:
    """List the local models and the providers, each with its state or missing key."""
    console = terminal_console()
    for name, ready, state in offered.models():
        row = Text.assemble((f"{name:28}", "bold"), (state, "green" if ready else "dim"))
        console.print(row, soft_wrap=True)
    console.print(Text(NAMING.rstrip("\n")), soft_wrap=True)
    return Exit.FINISHED


def agents() -> Exit:
    """List the installed agents with their description and the package they come from."""
    console = terminal_console()
    for name, point in installed().items():
        about = describe(name) or "(no description)"
        source = point.dist.name if point.dist is not None else "?"
        row = Text.assemble((f"{name:24}", "bold"), plain(about), (f"  ({source}, {point.value})", "dim"))
        console.print(row, soft_wrap=True)
    console.print(Text("\nuse your own with --agent file.py:Class or --agent module:Class"), soft_wrap=True)
    return Exit.FINISHED

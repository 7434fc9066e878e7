"""``handiwork models`` and ``handiwork agents``."""

from __future__ import annotations

import json
from dataclasses import asdict

from rich.text import Text

from handiwork.agents.registry import descriptions
from handiwork.cli.terminal.jsonlines import write_json
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


def agents(as_json: bool) -> Exit:
    """List the installed agents with their package, and the fields of their inputs and outputs."""
    if as_json:
        for agent in descriptions():
            write_json(json.dumps(asdict(agent), ensure_ascii=False))
        return Exit.FINISHED
    console = terminal_console()
    for agent in descriptions():
        source = f"  ({agent.package or '?'}, {agent.source})"
        row = Text.assemble((f"{agent.name:24}", "bold"), plain(agent.about or "(no description)"), (source, "dim"))
        console.print(row, soft_wrap=True)
        if agent.takes:
            models = f"takes {agent.takes}; gives {agent.gives}"
            console.print(Text(f"{'':24}{plain(models)}", "dim"), soft_wrap=True)
    console.print(Text("\nuse your own with --agent file.py:Class or --agent module:Class"), soft_wrap=True)
    return Exit.FINISHED

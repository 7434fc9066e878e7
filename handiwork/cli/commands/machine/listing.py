"""``handiwork models`` and ``handiwork agents``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.text import Text

from handiwork.agents.micro.catalog import MicroCatalog, read_catalog
from handiwork.agents.registry import OWN_AGENT, AgentNotFoundError, InstalledAgent, descriptions, find, names_a_file
from handiwork.cli.terminal.jsonlines import write_json
from handiwork.cli.terminal.sanitize import plain
from handiwork.cli.terminal.view import terminal_console
from handiwork.context.characters import one_line
from handiwork.context.discovery import accepted_agents, of_repository
from handiwork.context.trust import Trust
from handiwork.errors import Exit
from handiwork.llm import availability
from handiwork.paths import data_dir

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
    for name, ready, state in availability.models():
        row = Text.assemble((f"{name:28}", "bold"), (state, "green" if ready else "dim"))
        console.print(row, soft_wrap=True)
    console.print(Text(NAMING.rstrip("\n")), soft_wrap=True)
    return Exit.FINISHED


def agents(names: list[str] | None, check: bool, as_json: bool, flags: Mapping[str, Any]) -> Exit:
    """List the agents with their package and fields, and the knowledge; fail if a micro agent's file is broken.

    The accepted agents of the current folder's repository are among them. With ``check`` run a task for each installed
    agent instead, with the settings in ``flags``. Raises AgentNotFoundError, TrustError, WorkspaceError.
    """
    folder = Path.cwd()
    repository = [] if check else of_repository(folder, Trust(data_dir()))
    accepted = accepted_agents(repository, folder)
    catalog = read_catalog(accepted)
    listed = descriptions(catalog)
    if names:
        chosen = {_listed_name(name, listed, catalog) for name in names}
        listed = [agent for agent in listed if agent.name in chosen]
    if check:
        return _check(listed, as_json, {name: value for name, value in flags.items() if value is not None})
    if as_json:
        for agent in listed:
            write_json(json.dumps(asdict(agent), ensure_ascii=False))
        return Exit.FINISHED
    console = terminal_console()
    for agent in listed:
        package = agent.package or ("accepted by you" if Path(agent.source) in accepted else "yours")
        source = f"  ({package}, {agent.source})"
        row = Text.assemble((f"{agent.name:24}", "bold"), plain(agent.about or "(no description)"), (source, "dim"))
        console.print(row, soft_wrap=True)
        if agent.takes:
            models = f"takes {agent.takes}; gives {agent.gives}"
            console.print(Text(f"{'':24}{plain(models)}", "dim"), soft_wrap=True)
    if names:
        return Exit.FINISHED
    for piece in catalog.knowledge.values():
        words = f"knowledge for the words {', '.join(piece.keys.triggers)}  ({piece.path})"
        console.print(Text.assemble((f"{piece.name:24}", "bold"), plain(words)), soft_wrap=True)
    for problem in catalog.problems:
        console.print(Text(f"not loaded: {plain(str(problem))}", "yellow"), soft_wrap=True)
    for finding in repository:
        if finding.state != "on request":
            line = f"not loaded: {one_line(finding.convention.path)}: {one_line(finding.why)}"
            console.print(Text(line, "yellow"), soft_wrap=True)
    console.print(Text(f"\n{OWN_AGENT}, with --agent"), soft_wrap=True)
    return Exit.FAILED if catalog.problems else Exit.FINISHED


def _listed_name(name: str, listed: Sequence[InstalledAgent], catalog: MicroCatalog) -> str:
    """Return the name of a listed agent in full. Raises AgentNotFoundError for one that is not in the list."""
    known = {agent.name for agent in listed}
    full = name if name in known or names_a_file(name) else find(name, catalog).__name__
    if full not in known:
        problem = f"{name!r} is not in the list, which has no agents of files: try yours with `handiwork run --agent`"
        raise AgentNotFoundError(problem)
    return full


def _check(agents: Sequence[InstalledAgent], as_json: bool, settings: Mapping[str, Any]) -> Exit:
    """Run each agent's task and print a row as it ends; fail unless every agent completed its task."""
    from handiwork.evals.agent_check import check

    console = terminal_console()
    if not as_json:
        console.print(Text(f"{'agent':24}{'done':6}{'steps':>6}{'tokens':>9}{'seconds':>9}  session"), soft_wrap=True)
    failed = False
    for agent in agents:
        verdict = check(agent.name, agent.package, settings)
        failed |= bool(verdict.problem)
        if as_json:
            write_json(json.dumps(asdict(verdict), ensure_ascii=False))
            continue
        figures = f"{verdict.steps:6}{verdict.tokens:9,}{verdict.seconds:9.1f}  {verdict.session}"
        done = ("no    ", "red") if verdict.problem else ("yes   ", "green")
        console.print(Text.assemble((f"{agent.name:24}", "bold"), done, figures), soft_wrap=True)
        if verdict.problem:
            console.print(Text(f"{'':24}{plain(verdict.problem)}", "dim"), soft_wrap=True)
    return Exit.FAILED if failed else Exit.FINISHED

"""Who is measured, and how each is started: as its own documentation says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perf.endpoint import MODEL, Json
from perf.environments import DRIVERS, UnavailableError, environment

TASK = "say hi"
OURS, MINI, OPENHANDS = "Handiwork", "mini-swe-agent", "openhands-sdk"


@dataclass(frozen=True)
class Contender:
    """One of those that are measured.

    ``parts`` is an import statement for all that a session with an OpenAI-compatible model needs. ``shown_help`` is a
    command, or empty where there is none. The run's command has {url}, {steps} and {folder} in it; {folder} has the
    directories project, to work in, and data, for what is kept.
    """

    name: str
    python: Path
    parts: str
    shown_help: tuple[str, ...]
    driver: tuple[str, ...]
    run: tuple[str, ...]
    tool: str
    finish: tuple[str, Json]
    resumes: bool
    variables: dict[str, str] = field(default_factory=dict[str, str])

    def command(self, url: str, steps: int, folder: Path) -> list[str]:
        """Return the command that runs ``steps`` steps against the endpoint."""
        return [part.format(url=url, steps=steps, folder=folder) for part in self.run]

    def environment(self, folder: Path) -> dict[str, str]:
        """Return the variables to run it with: no settings of the user's, nothing written outside ``folder``."""
        dropped = ("HANDIWORK_", "MSWEA_", "OPENHANDS_", "OPENAI_", "LITELLM_", "LMNR_", "OTEL_", "PYTHON")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        if "HANDIWORK_CACHE" in os.environ:
            kept["HANDIWORK_CACHE"] = os.environ["HANDIWORK_CACHE"]
        ours = {name: value.format(folder=folder) for name, value in self.variables.items()}
        return {**kept, "XDG_CONFIG_HOME": f"{folder}/config", "TMUX_TMPDIR": str(folder), **ours}

    def answer(self, number: int, steps: int) -> tuple[str, Json]:
        """Return the tool call that answers a request: a command of its own for every step, then the end."""
        return (self.tool, {"command": f"echo hi {number}"}) if number <= steps else self.finish

    def run_driver(self, folder: Path, *arguments: str | int, limit: float = 300) -> dict[str, Any]:
        """Run its driver and return what it prints. Raises TimeoutExpired and CalledProcessError."""
        done = subprocess.run(
            [self.python, *self.driver, *map(str, arguments)],
            env=self.environment(folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=limit,
            check=True,
        )
        return json.loads(done.stdout.splitlines()[-1])


def handiwork() -> Contender:
    programs = Path(sys.executable).parent
    return Contender(
        name=OURS,
        python=Path(sys.executable),
        parts="import handiwork.cli.commands.run, handiwork.agents.codeact, "
        "handiwork.llm.openai_compatible.model, httpx2, genai_prices",
        shown_help=(f"{programs}/handiwork", "--help"),
        driver=("-m", "perf.drivers.handiwork"),
        run=(
            *(f"{programs}/handiwork", "run", TASK, "--model", f"openai:{MODEL}", "--base-url", "{url}"),
            *("--workspace", "{folder}/project", "--max-iterations", "100000"),
        ),
        tool="bash",
        finish=("finish", {"message": "done"}),
        resumes=True,
        variables={"HANDIWORK_DATA": "{folder}/data", "PYTHONPATH": str(DRIVERS.parent.parent)},
    )


def mini_swe_agent() -> Contender:
    """mini-swe-agent's command ``mini`` with its own settings: tool calls, local shell, nobody is asked."""
    programs = environment("mini_swe_agent", (3, 10))
    return Contender(
        name=MINI,
        python=programs / "python",
        parts="import minisweagent.run.mini, minisweagent.agents.interactive, minisweagent.models.litellm_model, "
        "minisweagent.environments.local",
        shown_help=(f"{programs}/mini", "--help"),
        driver=(str(DRIVERS / "mini_swe_agent.py"),),
        run=(
            *(f"{programs}/mini", "-t", TASK, "-m", f"openai/{MODEL}", "-o", "{folder}/data/trajectory.json"),
            *("-y", "-l", "0", "--exit-immediately", "-c", "mini.yaml", "-c", "model.model_kwargs.api_base={url}"),
        ),
        tool="bash",
        finish=("bash", {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}),
        resumes=False,
        variables={
            "MSWEA_GLOBAL_CONFIG_DIR": "{folder}/config",
            "MSWEA_CONFIGURED": "true",
            "MSWEA_COST_TRACKING": "ignore_errors",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "OPENAI_API_KEY": "none",
        },
    )


def openhands_sdk() -> Contender:
    """openhands-sdk as in its first example: terminal, file editor, task tracker, kept on disk."""
    programs = environment("openhands_sdk", (3, 12))
    driver = str(DRIVERS / "openhands_sdk.py")
    return Contender(
        name=OPENHANDS,
        python=programs / "python",
        parts="import openhands.sdk, openhands.tools.terminal, openhands.tools.file_editor, "
        "openhands.tools.task_tracker",
        shown_help=(),
        driver=(driver,),
        run=(f"{programs}/python", driver, "run", "{folder}", "{url}", "{steps}"),
        tool="terminal",
        finish=("finish", {"message": "done"}),
        resumes=True,
        variables={
            "HOME": "{folder}",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "OPENHANDS_SUPPRESS_BANNER": "1",
        },
    )


def contenders() -> tuple[list[Contender], list[str]]:
    """Return those that can run here, ours first, and a line for each that cannot."""
    found, missing = [handiwork()], list[str]()
    for name, make in ((MINI, mini_swe_agent), (OPENHANDS, openhands_sdk)):
        try:
            found.append(make())
        except UnavailableError as error:
            missing.append(f"{name} is skipped: {error}")
    return found, missing


def python_versions(found: Sequence[Contender]) -> str:
    """Return each one's Python, for the description of what was measured."""
    versions = [
        subprocess.run([one.python, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
        for one in found
    ]
    return ", ".join(f"{one.name} on Python {version}" for one, version in zip(found, versions, strict=True))

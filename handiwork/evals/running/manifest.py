"""The manifest of a run: the facts needed to trust it, and to repeat it."""

from __future__ import annotations

import inspect
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

import handiwork
from handiwork.agents.registry import CONFIGURED
from handiwork.agents.registry import find as find_agent
from handiwork.evals.benchmark import Benchmark
from handiwork.evals.running import arms
from handiwork.evals.running.conditions import Conditions
from handiwork.evals.running.results import ResultsError
from handiwork.evals.scoring.data import files_hash
from handiwork.events.base import Model, utc_now

FILE = "manifest.json"
PACKAGE = Path(handiwork.__file__).parent


class Host(Model):
    """The machine: ``memory`` is in bytes."""

    system: str
    python: str
    cpus: int
    memory: int


class Manifest(Model):
    """The facts of a run, written before the first rollout. Hashes are SHA-256 in hex.

    ``commit`` is the project's, with "+" if files have changed since, "" if it was installed without its history;
    ``code`` hashes the whole package, ``agent_code`` the agent's own files, including its prompts, and
    ``benchmark_code`` the file of a benchmark that is not installed, "" for an installed one. ``image`` is the id of
    the content of a container's image, "" for a sandbox on the machine's own system. ``skipped`` gives the
    reasons for instances that cannot run here; ``instances`` are those that can. ``changed`` are the differences with
    which the run was resumed between its rollouts.
    """

    conditions: Conditions
    metric: str
    instances: tuple[str, ...]
    skipped: dict[str, str] = Field(default_factory=dict)
    trials: int = 1
    data_hash: str
    version: str
    commit: str
    code: str
    agent_code: str
    benchmark_code: str = ""
    sampling: str
    image: str = ""
    host: Host
    began: str
    changed: tuple[str, ...] = ()

    @property
    def rollouts(self) -> int:
        """The number of rollouts."""
        return len(self.instances) * self.trials

    @property
    def facts(self) -> dict[str, Any]:
        """The facts of a report, conditions included; "instances" is their number, "image" the image's name."""
        fields = self.model_dump(mode="json", exclude={"conditions", "instances", "image"})
        conditions = self.conditions.model_dump(mode="json")
        return {**conditions, "image id": self.image, "instances": len(self.instances), **fields}


def make(
    conditions: Conditions,
    benchmark: Benchmark,
    instances: list[str],
    skipped: dict[str, str],
    trials: int,
    data: str,
    image: str,
) -> Manifest:
    """Return the manifest of a run that starts now. Raises AgentNotFoundError."""
    least = conditions.temperature
    temperature = "no temperature is set by the run" if least is None else f"at a temperature of {least:g} or more"
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Manifest(
        conditions=conditions,
        metric=benchmark.metric,
        instances=tuple(instances),
        skipped=skipped,
        trials=trials,
        data_hash=data,
        version=version("handiwork"),
        commit=_commit(),
        code=_code_hash(PACKAGE),
        agent_code=_code_hash(_files_of(arms.agent_of(conditions.agent))),
        benchmark_code=_code_hash(Path(conditions.benchmark)) if conditions.benchmark.endswith(".py") else "",
        image=image,
        sampling=f"as the agent asks: {temperature}",
        host=Host(
            system=platform.platform(), python=platform.python_version(), cpus=os.cpu_count() or 0, memory=memory
        ),
        began=utc_now().isoformat(timespec="seconds"),
    )


def repeated(then: Manifest, benchmark: Benchmark) -> Manifest:
    """Return the manifest that the run would have if it began now. Raises AgentNotFoundError."""
    instances = list(then.instances)
    return make(then.conditions, benchmark, instances, then.skipped, then.trials, then.data_hash, then.image)


def read(out: Path) -> Manifest:
    """Return the manifest of the run in a folder. Raises ResultsError if there is none."""
    try:
        return Manifest.model_validate_json((out / FILE).read_bytes())
    except FileNotFoundError:
        inside = sorted({*out.glob(f"*/{FILE}"), *out.glob(f"*/*/{FILE}")})  # a matrix has its cells there
        runs = f"; name one of the runs in it: {', '.join(str(file.parent) for file in inside)}" if inside else ""
        raise ResultsError(f"{out} has no {FILE}: it is no run's folder{runs}") from None
    except ValidationError as error:
        raise ResultsError(f"{out / FILE} is no manifest of this version: {error}") from error


def write(out: Path, manifest: Manifest) -> None:
    """Write the manifest atomically."""
    part = out / f"{FILE}.part"
    part.write_text(manifest.model_dump_json(indent=1) + "\n")
    part.rename(out / FILE)


def differences(then: Manifest, now: Manifest) -> list[str]:
    """Return descriptions of the changes that can affect a run's results."""
    names = {
        "data_hash": "the data",
        "code": "Handiwork's code",
        "agent_code": "the agent's code",
        "benchmark_code": "the benchmark's code",
        "image": "the image",
        "host": "the machine",
    }
    if not then.benchmark_code:
        del names["benchmark_code"]  # the manifest of a version that did not have it, or an installed benchmark
    return [description for name, description in names.items() if getattr(then, name) != getattr(now, name)]


def _files_of(agent: str) -> Path:
    """Return the folder of an agent that is a package, the file of any other. Raises AgentNotFoundError."""
    found = find_agent(agent)
    if agent.endswith(CONFIGURED):
        return Path(agent)
    file = found.micro_file or Path(inspect.getfile(found))
    return file.parent if file.name == "__init__.py" else file


def _code_hash(path: Path) -> str:
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    return files_hash([file for file in files if file.suffix != ".pyc"], path.parent)


def _commit() -> str:
    """Return the commit of the project's checkout, "" outside one."""
    if not (PACKAGE.parent / ".git").exists():
        return ""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(PACKAGE.parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")

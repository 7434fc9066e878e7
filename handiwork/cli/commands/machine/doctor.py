"""``handiwork doctor``: checks whether this machine can run tasks, and suggests a fix for each problem."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.text import Text

from handiwork.cli.terminal.jsonlines import write_json
from handiwork.cli.terminal.sanitize import plain
from handiwork.cli.terminal.view import terminal_console
from handiwork.errors import Exit, HandiworkError, SandboxError
from handiwork.events.action import CmdRunAction
from handiwork.llm import create as llms
from handiwork.llm.availability import local_model_state, provider_keys
from handiwork.log.errors import LogError
from handiwork.log.store import Store
from handiwork.paths import cache_dir, data_dir
from handiwork.sandbox import create as sandboxes
from handiwork.sandbox.bundle import browser_root, bundle_root
from handiwork.sandbox.docker import cli as docker_cli
from handiwork.sandbox.endpoint import sweep_stale
from handiwork.sandbox.limits.cgroups import level
from handiwork.sandbox.limits.limits import ResourceLimits, size_text
from handiwork.settings import Settings, SettingsError, load, load_hooks, settings_file
from handiwork.workspace.layers import SandboxPaths
from handiwork.workspace.session_files import GIGABYTE, snapshot_store

ROOM = 2_000_000_000
"""Bytes that should be free for copies of workspaces and for the local model."""

USERNS = {
    "kernel/apparmor_restrict_unprivileged_userns": ("1", "0"),
    "kernel/unprivileged_userns_clone": ("0", "1"),
    "user/max_user_namespaces": ("0", "15000"),
}
"""Kernel settings below /proc/sys, each with the value that forbids user namespaces and one that allows them."""


Attempt = Callable[[], Coroutine[Any, Any, tuple[str, float]]]
"""Runs a command that should print "works"; returns its output and its start time (monotonic seconds)."""


@dataclass(frozen=True)
class Finding:
    """The result of one check; the level "fail" means that no task can run."""

    check: str
    level: Literal["ok", "warn", "fail"]
    text: str


def doctor(as_json: bool) -> Exit:
    """Run all checks and print a line for each finding."""
    console = terminal_console()
    failed = False
    for check in CHECKS:
        for finding in check():
            failed = failed or finding.level == "fail"
            if as_json:
                write_json(json.dumps(dataclasses.asdict(finding)))
            else:
                console.print(_row(finding), soft_wrap=True)
    if not as_json:
        ending = "fix the failed checks before running a task" if failed else "this machine can run tasks"
        console.print(Text(f"\n{ending}", "bold red" if failed else "bold green"))
    return Exit.INFRASTRUCTURE if failed else Exit.FINISHED


def _row(finding: Finding) -> Text:
    style = {"ok": "green", "warn": "yellow", "fail": "bold red"}[finding.level]
    return (
        Text(f"{finding.level:5}", style).append(f"{finding.check:17}", "bold").append(plain(finding.text), "default")
    )


def _python() -> Iterator[Finding]:
    machine = f"{platform.system()} {platform.machine()}"
    fits = sys.platform == "linux" and platform.machine() == "x86_64"
    text = f"{platform.python_version()} on {machine}"
    yield Finding("python", "ok" if fits else "warn", text if fits else f"{text}; only Linux x86_64 is tested")


def _settings() -> Iterator[Finding]:
    file = settings_file()
    try:
        settings, hooks = load({}), load_hooks()
    except SettingsError as error:
        yield Finding("settings", "fail", str(error))
        return
    source = f"{file}" if file.is_file() else f"defaults ({file} does not exist)"
    counted = f"; {len(hooks)} hook{'s' * (len(hooks) > 1)} (handiwork hooks lists them)" if hooks else ""
    yield Finding("settings", "ok", f"{source}; model {settings.model}{counted}")


def _git() -> Iterator[Finding]:
    if git := shutil.which("git"):
        process = subprocess.run([git, "--version"], capture_output=True, text=True, check=False)
        yield Finding("git", "ok", process.stdout.strip())
    else:
        yield Finding("git", "fail", "not on PATH: install it (apt install git)")


def _bundle() -> Iterator[Finding]:
    try:
        yield Finding("bundle", "ok", str(bundle_root()))
    except SandboxError as error:
        yield Finding("bundle", "fail", str(error))
    if (browser := browser_root()) is None:
        yield Finding(
            "browser", "warn", "missing, agents cannot browse: run `make bundle` or `pip install handiwork-browser`"
        )
    else:
        yield Finding("browser", "ok", str(browser))


def _namespaces() -> Iterator[Finding]:
    fixes: list[str] = []
    for name, (forbids, allows) in USERNS.items():
        file = Path("/proc/sys", name)
        if file.is_file() and file.read_text().strip() == forbids:
            fixes.append(f"sudo sysctl -w {name.replace('/', '.')}={allows}")
    if fixes:
        text = f"the kernel forbids them; if the sandbox check below fails, run: {' && '.join(fixes)}"
        yield Finding("user namespaces", "warn", text)
    else:
        yield Finding("user namespaces", "ok", "no kernel setting forbids them")


def _sandbox() -> Iterator[Finding]:
    yield _probe("bubblewrap", lambda: _try_sandbox("bubblewrap"))


def _docker() -> Iterator[Finding]:
    if shutil.which("docker") is None:
        if _failure_level("docker") == "fail":
            yield Finding("docker", "fail", "not on PATH, and your settings choose it: install it, or change them")
        else:
            yield Finding("docker", "ok", "not installed; only --image needs it")
        return

    async def in_an_empty_image() -> tuple[str, float]:
        async with docker_cli.empty_image(name := f"handiwork-doctor-{os.getpid()}"):
            return await _try_sandbox("docker", name)

    yield _probe("docker", in_an_empty_image)


def _failure_level(kind: str) -> Literal["warn", "fail"]:
    """Return "fail" for the sandbox of the user's settings, without which no task can run."""
    try:
        return "fail" if kind == load({}).sandbox else "warn"
    except SettingsError:
        return "warn"  # _settings reports it


def _probe(kind: str, attempt: Attempt) -> Finding:
    began = time.monotonic()
    try:
        output, started = asyncio.run(attempt())
    except SandboxError as error:
        return Finding(kind, _failure_level(kind), str(error))
    timing = f"started in {started - began:.2f} s, ended after {time.monotonic() - began:.2f} s"
    if output.strip() == "works":
        return Finding(kind, "ok", timing)
    return Finding(kind, _failure_level(kind), f"a test command printed {output!r} instead of 'works'")


async def _try_sandbox(kind: str, image: str | None = None) -> tuple[str, float]:
    async def no_blobs(_: AsyncIterator[bytes]) -> str:
        raise SandboxError("the output of a test command that prints a few bytes was too large")

    with tempfile.TemporaryDirectory(prefix="handiwork-doctor-") as folder:
        session, base = Path(folder, "session"), Path(folder, "session/base")
        workspace = Path(folder, "workspace")
        for directory in (session, base, workspace):
            directory.mkdir(mode=0o755)
        session.chmod(0o700)
        sandbox = sandboxes.create(kind, SandboxPaths(session, workspace, base), no_blobs, image=image)
        try:
            await sandbox.start()
            started = time.monotonic()
            observation = await sandbox.execute(CmdRunAction(command="echo works"))
        finally:
            await sandbox.close()
        return observation.text, started


def _limits() -> Iterator[Finding]:
    limits = ResourceLimits()
    text = f"{level()}; memory {size_text(limits.memory)}, {limits.processes} processes, disk {size_text(limits.disk)}"
    yield Finding("resource limits", "ok", f"{text}, one file {size_text(limits.file_size)}")


def _room() -> Iterator[Finding]:
    for name, folder in (("data folder", data_dir()), ("cache folder", cache_dir())):
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        free = shutil.disk_usage(existing).free
        text = f"{folder}, {free / 1e9:.1f} GB free"
        if free < ROOM:
            yield Finding(
                name, "warn", f"{text}: make room, or set HANDIWORK_{name.split()[0].upper()} to another disk"
            )
        else:
            yield Finding(name, "ok", text)


def _snapshots() -> Iterator[Finding]:
    try:
        limit = load({}).snapshots * GIGABYTE
    except SettingsError:
        return  # _settings reports it
    used = snapshot_store(data_dir()).used()
    text = f"take {size_text(used)} of {size_text(limit)}"
    yield Finding("snapshots", "ok" if used <= limit else "warn", text if used <= limit else f"{text}: `handiwork gc`")


def _log() -> Iterator[Finding]:
    async def newest() -> int:
        async with Store.open(data_dir()) as store:
            return len(await store.sessions(limit=1))

    try:
        yield Finding("log", "ok", "opens" if asyncio.run(newest()) else "opens; no session yet")
    except LogError as error:
        yield Finding("log", "fail", str(error))


def _leftovers() -> Iterator[Finding]:
    try:
        removed = sweep_stale()
    except SandboxError as error:
        yield Finding("leftovers", "fail", str(error))
        return
    yield Finding("leftovers", "ok", f"removed the files of {len(removed)} dead sandboxes" if removed else "none")


def _model() -> Iterator[Finding]:
    """Check the model of the user's settings, without a request to it; weights are fetched at their first use."""
    try:
        settings = load({})
    except SettingsError:
        return  # _settings reports it
    try:
        asyncio.run(llms.create(settings.model, settings.base_url).close())
    except HandiworkError as error:
        yield Finding("model", "fail", str(error))


def _models() -> Iterator[Finding]:
    default = str(Settings.model_fields["model"].default).removeprefix("local:")
    ready, state = local_model_state(default)
    yield Finding("local model", "ok" if ready else "warn", f"{default}: {state}")
    keys = [key for key in provider_keys().values() if key]
    yield Finding("provider keys", "ok", ", ".join(keys) if keys else "none in the environment; local models need none")


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    *(_python, _settings, _git, _bundle, _namespaces, _sandbox, _docker),
    *(_limits, _room, _snapshots, _log, _leftovers, _model, _models),
)

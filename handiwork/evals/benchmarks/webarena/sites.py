"""The sites of WebArena's tasks: their addresses, logging in, and resetting them.

The names of the environment variables and the protocol of WA_FULL_RESET are BrowserGym's
(https://github.com/ServiceNow/BrowserGym, browsergym/webarena/instance.py); the accounts are upstream's
(browser_env/env_config.py of https://github.com/web-arena-x/webarena).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2

from handiwork.errors import BrowserError, SandboxError
from handiwork.evals.benchmark import DataError
from handiwork.events.action import BrowseInteractiveAction
from handiwork.events.observation import BrowserOutputObservation
from handiwork.llm.local.locks import locked
from handiwork.paths import cache_dir
from handiwork.sandbox.base import Sandbox

SITES = ("shopping", "shopping_admin", "reddit", "gitlab", "wikipedia", "map", "homepage")

ACCOUNTS = {
    "reddit": ("MarvelsGrantMan136", "test1234", "/login"),
    "gitlab": ("byteblaze", "hello1234", "/users/sign_in"),
    "shopping": ("emma.lopez@gmail.com", "Password.123", "/customer/account/login/"),
    "shopping_admin": ("admin", "admin1234", ""),
}
"""Name, password and the path of the login page, of the sites with accounts."""

READY = "Ready for duty!"
"""The sites' status after a reset."""

WAIT, RESET_TIME = 5.0, 1200.0
"""Seconds between two checks of a reset, and its time limit."""

_LOG_IN = """async ([name, password]) => {
  const secret = [...document.querySelectorAll('input[type=password]')].find((one) => one.offsetParent !== null);
  if (!secret || !secret.form) return 'there is no form for it';
  const form = secret.form;
  const user = [...form.querySelectorAll('input')].find(
    (one) => ['text', 'email'].includes(one.type) && one.offsetParent !== null);
  if (!user) return 'the form has no field for a name';
  user.value = name;
  secret.value = password;
  const target = new URL(form.getAttribute('action') || '', location.href);
  const answer = await fetch(target, {method: 'POST', body: new URLSearchParams(new FormData(form))});
  const after = new DOMParser().parseFromString(await answer.text(), 'text/html');
  if (!answer.ok) return 'it answered ' + answer.status;
  return after.querySelector('input[type=password]') ? 'it asks for the password again' : '';
}"""
"""Sends the login form with all its hidden fields, and returns the error, "" on success."""


def urls() -> dict[str, str]:
    """Return the addresses of the sites named in the environment, WA_SHOPPING and the like, without a trailing /.

    Raises DataError for an invalid address.
    """
    found = {site: os.environ.get(f"WA_{site.upper()}", "").strip().rstrip("/") for site in SITES}
    for site, url in found.items():
        if url and (urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname):
            raise DataError(f"WA_{site.upper()} is {url}: it must be the site's address, as http://10.0.0.5:7770")
    return {site: url for site, url in found.items() if url}


def hosts(known: Mapping[str, str]) -> tuple[str, ...]:
    """Return the sites' hosts and ports, in the form of a sandbox's allowed hosts."""
    return tuple(sorted({_host(url) for url in known.values()}))


def _host(url: str) -> str:
    parts = urlsplit(url)
    name = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{name}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def filled(text: str, known: Mapping[str, str]) -> str:
    """Return a text with the sites' addresses in place of upstream's __SHOPPING__ and the like."""
    for site, url in known.items():
        text = text.replace(f"__{site.upper()}__", url)
    return text


async def enter(sandbox: Sandbox, task: Mapping[str, Any], viewport: Sequence[int], **more: Any) -> None:
    """Open the browser on the task's pages, logged in if the task says so. Raises SandboxError.

    If WA_AUTH names a folder, the browser states that upstream's auto_login.py left there are used instead of the
    forms. ``more`` are further arguments for opening the browser.
    """
    try:
        state = await _logged_in(sandbox, task)
        first, *others = task["start_url"].split(" |AND| ")
        await sandbox.browser("open", url=first, viewport=list(viewport), storage_state=state, **more)
        if others:
            calls = "\n".join(f"new_tab()\ngoto({url!r})" for url in others)
            shown = await sandbox.execute(BrowseInteractiveAction(browser_actions=f"{calls}\ntab_focus(0)"))
            if not isinstance(shown, BrowserOutputObservation) or shown.last_action_error:
                raise SandboxError(f"The tabs of task {task['task_id']} cannot be opened: {shown.content}")
    except BrowserError as error:
        raise SandboxError(f"The sites of task {task['task_id']} cannot be opened: {error}") from error


async def _logged_in(sandbox: Sandbox, task: Mapping[str, Any]) -> Any:
    """Return the state of a browser that is logged in to the task's sites."""
    kept = task.get("storage_state")
    if kept and (folder := os.environ.get("WA_AUTH")):
        file = Path(folder, Path(kept).name)
        try:
            return json.loads(await asyncio.to_thread(file.read_text))
        except (OSError, ValueError) as error:
            raise SandboxError(f"{file}, below WA_AUTH, is no state of a browser: {error}") from error
    known = urls()
    await sandbox.browser("open")
    for site in task["sites"]:
        if site in ACCOUNTS:
            name, password, path = ACCOUNTS[site]
            url = f"{known[site]}{path}"
            expression = f"() => ({_LOG_IN})({json.dumps([name, password])})"
            answer = await sandbox.browser("visit", url=url, expression=expression)
            if not isinstance(answer, dict) or answer.get("value"):
                why = answer.get("value") if isinstance(answer, dict) else answer
                raise SandboxError(f"Logging in to {url} as {name} failed: {why}")
    return await sandbox.browser("storage")


@asynccontextmanager
async def turn(writes: bool) -> AsyncGenerator[None]:
    """Separate rollouts that would disturb each other, and reset the sites for each if needed.

    This applies if WA_RESET is set, a shell command, or WA_FULL_RESET, the address of BrowserGym's reset service: the
    sites are reset before a rollout that follows one that ``writes``; a writing one runs alone. Raises SandboxError.
    """
    command, service = os.environ.get("WA_RESET", ""), os.environ.get("WA_FULL_RESET", "").rstrip("/")
    if not command and not service:
        yield
        return
    these = hashlib.sha256(json.dumps(sorted(urls().values())).encode()).hexdigest()[:12]
    folder = cache_dir() / "webarena" / these
    folder.mkdir(parents=True, exist_ok=True)
    written = folder / "written"
    while True:
        async with locked(folder / "lock", exclusive=writes or written.exists()):
            if not written.exists():
                if writes:
                    written.touch()
                yield
                return
            await (_run(command) if command else _ask(service))
            written.unlink()


async def _run(command: str) -> None:
    process = await asyncio.create_subprocess_shell(
        command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(RESET_TIME):
            said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        text = said.decode(errors="replace").strip()[-500:]
        raise SandboxError(f"WA_RESET, {command}, ended with {process.returncode}: {text}")


async def _ask(service: str) -> None:
    """Let BrowserGym's service reset the sites, and wait until it reports them ready."""
    begun, running = 200, 418
    try:
        async with httpx2.AsyncClient(timeout=60) as client:
            answer = await client.get(f"{service}/reset")
            if answer.status_code not in (begun, running):
                raise SandboxError(f"WA_FULL_RESET, {service}/reset, answered {answer.status_code}: {answer.text}")
            end = time.monotonic() + RESET_TIME
            while time.monotonic() < end:
                with suppress(httpx2.TransportError):  # the service itself may be restarting
                    if (await client.get(f"{service}/status")).text == READY:
                        return
                await asyncio.sleep(WAIT)
    except httpx2.HTTPError as error:
        raise SandboxError(f"WA_FULL_RESET, {service}, cannot be reached: {error}") from error
    raise SandboxError(f"The sites were not reset within {RESET_TIME:.0f} s, says {service}/status")

"""``handiwork hooks``: lists the user's hooks, and tries them out."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from rich.text import Text

from handiwork.cli.errors import say
from handiwork.cli.terminal.jsonlines import write_json
from handiwork.cli.terminal.sanitize import exact, plain
from handiwork.cli.terminal.transcript import Transcript
from handiwork.cli.terminal.view import terminal_console
from handiwork.errors import Exit
from handiwork.events.action import (
    AgentDelegateAction,
    AgentFinishAction,
    BrowseURLAction,
    CmdRunAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    IPythonRunCellAction,
)
from handiwork.events.base import Action, Observation
from handiwork.events.observation import (
    AgentDelegateObservation,
    BrowserOutputObservation,
    CmdOutputObservation,
    FileEditObservation,
    FileReadObservation,
    FileWriteObservation,
    IPythonRunCellObservation,
)
from handiwork.events.record import HookEvent, HookPoint
from handiwork.hooks import TOOLS, Hook
from handiwork.log.store import Store
from handiwork.session.config import SessionConfig
from handiwork.session.hooks.command import run_hook
from handiwork.session.hooks.runner import hook_event, payload
from handiwork.session.open import sandbox_of
from handiwork.session.steps.executor import Executor
from handiwork.session.steps.interrupt import Interrupt
from handiwork.settings import SettingsError, load, load_hooks, settings_file
from handiwork.workspace.snapshots.object_store import remove_tree

NONE = "no hooks: {} has no [[hooks]] table; docs/hooks.md explains them"
UNKNOWN = (
    "no installed action, and no tool of CodeActAgent, is called {}: the name fits a tool of another agent, or nothing"
)

SAMPLES: tuple[tuple[Action, Observation], ...] = (
    (CmdRunAction(command="echo hello"), CmdOutputObservation(command="echo hello", exit_code=0, content="hello\n")),
    (FileWriteAction(path="hello.txt", content="hello\n"), FileWriteObservation(path="hello.txt", created=True)),
    (
        FileEditAction(path="hello.txt", old="hello", new="hi"),
        FileEditObservation(path="hello.txt", content="-hello\n+hi\n"),
    ),
    (FileReadAction(path="hello.txt"), FileReadObservation(path="hello.txt", content="hello\n", end=1, lines=1)),
    (IPythonRunCellAction(code="print('hello')"), IPythonRunCellObservation(code="print('hello')", content="hello\n")),
    (
        BrowseURLAction(url="https://example.org/"),
        BrowserOutputObservation(url="https://example.org/", content="hello"),
    ),
    (AgentDelegateAction(agent="RepairAgent"), AgentDelegateObservation(agent="RepairAgent")),
)
"""The sample events of --try; a hook gets the first that its matcher names, else the first of all."""


async def hooks(point: HookPoint | None, as_json: bool) -> Exit:
    """List the hooks, or run those at ``point`` with a sample event. Raises SettingsError, SandboxError."""
    known = load_hooks()
    if point is not None:
        return await _try(point, [hook for hook in known if hook.event == point], as_json)
    if as_json:
        for hook in known:
            write_json(hook.model_dump_json())
        return Exit.FINISHED
    console = terminal_console()
    for hook in known:
        console.print(Text.assemble((plain(hook.title), "bold"), f"  {_moment(hook)}"), soft_wrap=True)
        place = "in the sandbox" if hook.where == "sandbox" else "on your machine, as you"
        console.print(Text(f"    runs {place}, for at most {hook.timeout:g} s:", "dim"), soft_wrap=True)
        for line in hook.command.strip().splitlines():
            console.print(Text(f"    $ {exact(line)}"), soft_wrap=True)
        if names := hook.unknown_names():
            console.print(Text(f"    {UNKNOWN.format(plain(', '.join(names)))}", "yellow"), soft_wrap=True)
    if not known:
        say(NONE.format(settings_file()))
    return Exit.FINISHED


def _moment(hook: Hook) -> str:
    """Return the point at which the hook runs, and its matcher, in words."""
    if hook.event in ("session_start", "session_end"):
        return f"at the session's {'begin' if hook.event == 'session_start' else 'end'}"
    every = hook.matcher == "" or "*" in hook.names
    if hook.event == "before_finish":
        agents = "the session's agent" if not hook.matcher else "any agent" if every else " or ".join(hook.names)
        return f"before {agents} finishes; may send it back {hook.max_refusals} times in a row"
    actions = "every action" if every else ", ".join(f"{name}{_stands_for(name)}" for name in hook.names)
    fitting = f", if its command, path, code or address is like {plain(hook.pattern)}" if hook.pattern else ""
    return f"{hook.event.removesuffix('_action')} {actions}{fitting}"


def _stands_for(name: str) -> str:
    return f" ({TOOLS[name]})" if name in TOOLS else ""


async def _try(point: HookPoint, hooks_there: list[Hook], as_json: bool) -> Exit:
    if not hooks_there:
        raise SettingsError(f"{settings_file()} has no {point} hook to try: `handiwork hooks` lists those it has")
    config = SessionConfig.of(load({}), Path.cwd())
    codes: list[int | None] = []
    facts = {"state": "finished", "error": ""} if point == "session_end" else {}
    async with _executor(config, needed=any(hook.where == "sandbox" for hook in hooks_there)) as executor:
        for hook in hooks_there:
            action, observation = next(_samples(hook), (None, None))
            inside = executor if hook.where == "sandbox" else None
            workspace = config.workspace if inside is None else inside.sandbox.workspace
            text = payload(hook, "sample", workspace, config.agent, 0, action, observation, **facts, sample=True)
            event = hook_event(hook, await run_hook(hook, text, inside, Interrupt()))
            _show(event, as_json)
            codes.append(event.exit_code)
    return Exit.FAILED if any(code != 0 for code in codes) else Exit.FINISHED


@asynccontextmanager
async def _executor(config: SessionConfig, *, needed: bool) -> AsyncGenerator[Executor | None]:
    """Yield an executor in a sandbox on a copy of the workspace, which is removed afterwards; None if not needed."""
    if not needed:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="handiwork-hooks-") as data:
        async with Store.open(Path(data)) as store:
            folder = Path(data, "session")
            folder.mkdir(mode=0o700)
            say("copying the workspace, to try them in a sandbox")
            files = config.files(folder)
            await asyncio.to_thread(files.create)
            executor = Executor(sandbox_of(store, files, config, snapshots=False), Interrupt())
            try:
                yield executor
            finally:
                await executor.close()
                await asyncio.to_thread(remove_tree, folder)


def _samples(hook: Hook) -> Iterator[tuple[Action, Observation | None]]:
    """Yield the samples for the hook, best first."""
    if hook.event == "before_finish":
        yield AgentFinishAction(outputs={"message": "Done."}), None
    elif hook.event in ("before_action", "after_action"):
        any_subject = hook.model_copy(update={"matcher": "|".join(hook.names)})
        fitting = [pair for pair in SAMPLES if hook.matches(pair[0])] + [
            pair for pair in SAMPLES if any_subject.matches(pair[0])
        ]
        for action, observation in (*fitting, *SAMPLES):
            yield action, observation if hook.event == "after_action" else None


def _show(event: HookEvent, as_json: bool) -> None:
    if as_json:
        write_json(json.dumps(event.model_dump(mode="json"), ensure_ascii=False))
        return
    console = terminal_console()
    for line in Transcript().lines(event):
        console.print(line, soft_wrap=True)

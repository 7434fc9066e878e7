"""``handiwork.run``: carries out a task in one call."""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from handiwork.agents.base import Agent
from handiwork.agents.state import State
from handiwork.events.action import AgentState, MessageAction
from handiwork.events.base import Event
from handiwork.llm.types import LLM
from handiwork.log.store import Store
from handiwork.paths import data_dir
from handiwork.session.config import SessionConfig, title_of
from handiwork.session.open import changes, create
from handiwork.settings import Settings, SettingsError, load
from handiwork.workspace.patch import unified_diff


@dataclass(frozen=True)
class RunResult:
    """The end of a session: its id, which `handiwork apply` and `show` take, its State, and its changes as a patch."""

    session: str
    state: State
    diff: str

    @property
    def outcome(self) -> AgentState:
        """The state in which the session ended or stopped, like "finished", "error" or "awaiting_user_input"."""
        return self.state.agent_state


@dataclass(frozen=True)
class StoredSession:
    """A session of the past, or one that runs elsewhere: its ``state`` after its event ``last``, and its events."""

    id: str
    state: State
    events: list[Event]

    @property
    def last(self) -> int:
        """The id of the last event that the state knows."""
        return self.state.last_id


def load_session(
    session: str, *, first: int = 1, last: int | None = None, data: str | Path | None = None
) -> StoredSession:
    """Return a session by its id or a prefix of it, without running it.

    ``events`` are those with the ids ``first`` to ``last``, and the state is the one after event ``last``; None is the
    newest. ``data`` is the folder of the sessions; None is the user's own. Raises LogError if there is no such session,
    and RuntimeError inside a running event loop, like ``run``.
    """
    folder = data_dir() if data is None else Path(data).expanduser().absolute()
    with closing(_load(session, first, last, folder)) as loading:
        return asyncio.run(loading)


async def _load(session: str, first: int, last: int | None, data: Path) -> StoredSession:
    async with Store.open(data) as store:
        log = await store.log(session)
        events = await log.read(limit=last)
    state = State()
    for event in events:
        state.apply(event)
    return StoredSession(log.id, state, events[max(first, 1) - 1 :])


def run(
    task: str,
    *,
    workspace: str | Path = ".",
    agent: str | type[Agent] | None = None,
    model: str | LLM | None = None,
    sandbox: str | None = None,
    data: str | Path | None = None,
    **settings: Any,
) -> RunResult:
    """Let an agent carry out a task on a copy of ``workspace``, in a sandbox, and return when it ends or waits.

    ``agent`` is a name, as `--agent` takes it, or a class of a module's top level; ``model`` is a name, as `--model`
    takes it, or an object like ScriptedLLM; ``sandbox`` is "bubblewrap", "docker" (with ``image``) or "none".
    ``settings`` are other keys of the settings file, like ``max_cost=1.0`` or ``allow_net=("pypi",)``; others
    come from that file and the environment. ``data`` is the folder of the sessions; None is the user's own.
    The files in ``workspace`` stay as they are: `handiwork apply` with the result's session applies the changes.
    Ctrl-C raises KeyboardInterrupt and leaves a session that `handiwork resume` continues, if that process can import
    the agent's class and receives a model name that it can create.

    If the model or the sandbox fails, the outcome is "error" and ``state.last_error`` the reason. Raises TypeError for
    an unknown setting; SettingsError, SecretError, AgentNotFoundError, LLMError or WorkspaceError, all of them
    HandiworkError, if the session cannot begin; and RuntimeError inside a running event loop: await
    ``asyncio.to_thread(handiwork.run, ...)`` there.
    """
    if unknown := settings.keys() - Settings.model_fields:
        names = ", ".join(sorted(Settings.model_fields))
        raise TypeError(f"run() has no setting {', '.join(sorted(unknown))}; known: {names}")
    if not task.strip():
        raise SettingsError("the task is empty: describe it in your own words")
    agent_name = f"{agent.__module__}:{agent.__qualname__}" if isinstance(agent, type) else agent
    model_name = model if isinstance(model, str | None) else model.name
    loaded = load({**settings, "agent": agent_name, "model": model_name, "sandbox": sandbox})
    config = SessionConfig.of(loaded, Path(workspace).expanduser())
    llm = None if isinstance(model, str | None) else model
    if llm is not None:
        config = config.model_copy(update={"base_url": None})
    folder = data_dir() if data is None else Path(data).expanduser().absolute()
    with closing(_run(task, config, llm, folder)) as running:  # which asyncio.run refuses inside a running loop
        return asyncio.run(running)


async def _run(task: str, config: SessionConfig, llm: LLM | None, data: Path) -> RunResult:
    async with Store.open(data) as store:
        session = await create(store, data, config, _unobserved, title_of(task), MessageAction(content=task), llm=llm)
        async with session.hold_lease():
            state = await session.run()
        diff = await asyncio.to_thread(unified_diff, await changes(data, session.log))
        return RunResult(session.id, state, diff)


def _unobserved(_: object) -> None:
    pass

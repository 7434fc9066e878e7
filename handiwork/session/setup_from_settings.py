"""Build the setup of a new session from the user's settings."""

from __future__ import annotations

from pathlib import Path

from handiwork.session.open import Setup
from handiwork.session.secrets import given
from handiwork.settings import Settings, model_name

TITLE = 100
"""Maximum length of a session's title, in characters."""


def title_of(task: str) -> str:
    """Return the title of a session for the task: the start of its first line."""
    return task.strip().split("\n")[0][:TITLE]


def setup_from(settings: Settings, workspace: Path, in_place: bool = False) -> Setup:
    """Return the setup of a new session. Raises SecretError."""
    return Setup(
        agent=agent_name(settings.agent),
        model=model_name(settings.model),
        base_url=settings.base_url,
        sandbox=settings.sandbox,
        image=settings.image,
        workspace=str(workspace.resolve()),
        in_place=in_place,
        allow_net=settings.allow_net,
        mount_ro=tuple(str(Path(path).expanduser().absolute()) for path in settings.mount_ro),
        limits=settings.limits,
        confirmation=settings.confirmation,
        secrets=tuple(map(given, settings.secrets)),
        snapshots=settings.snapshots,
    )


def agent_name(name: str) -> str:
    """Return the agent's name, with a file's path made absolute so that it works from any directory."""
    file, colon, attribute = name.rpartition(":")
    return f"{Path(file).expanduser().absolute()}{colon}{attribute}" if file.endswith(".py") else name

"""The configuration of a session: made from the user's settings, kept in the log, changed by later events."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from handiwork.agents.registry import CONFIGURED
from handiwork.context import devcontainer
from handiwork.context.conventions import opened
from handiwork.context.discovery import accept_command
from handiwork.context.trust import Trust
from handiwork.errors import HandiworkError, WorkspaceError
from handiwork.events.base import Event
from handiwork.events.record import Limits, NetworkAllowed, PermissionsRevoked, SessionStarted, SettingsChanged
from handiwork.hooks import Hook
from handiwork.log.eventlog import EventLog
from handiwork.paths import data_dir
from handiwork.sandbox.create import is_isolated
from handiwork.session import skills
from handiwork.session.approval.project import ProjectPermissions
from handiwork.session.secrets import specification
from handiwork.settings import SessionSettings, Settings, load_hooks, model_name
from handiwork.workspace.files.names import quoted
from handiwork.workspace.session_files import InPlaceFiles, OverlayFiles, PlainCopyFiles, SessionFiles

TITLE = 100
"""Maximum length of a session's title, in characters."""


class SessionError(HandiworkError):
    """The session cannot be created, resumed or forked as requested; the text names the remedy."""

    status = 409


class SessionConfig(SessionSettings):
    """The configuration of a session: its settings with absolute paths, and the user's directory ``workspace``."""

    agent: str
    model: str
    workspace: str
    in_place: bool = False
    limits: Limits = Limits()
    rules: tuple[str, ...] = ()
    """The rules that the user has kept for the project."""
    temperature: float | None = None
    """The minimum sampling temperature of model calls; None leaves it to the agent."""
    writable_root: bool = False
    """Whether the agent may change the system of its container, as root; only evaluations set it."""
    hooks: tuple[Hook, ...] = Field(default=(), exclude=True)
    """The user's hooks, read from the settings file whenever the session is opened; no log has or gives them."""

    @classmethod
    def of(cls, settings: Settings, workspace: Path, *, in_place: bool = False) -> SessionConfig:
        """Return the configuration of a new session, with absolute paths.

        The image "devcontainer" stands for that of the workspace's devcontainer.json, once the user has accepted the
        file. The rules and hosts that the user keeps for the workspace are among the session's. Raises
        PermissionsError, SecretError, SessionError, SettingsError, TrustError, WorkspaceError.
        """
        image, folder = settings.image, str(workspace.resolve())
        if folder.encode(errors="replace").decode() != folder:
            raise WorkspaceError(f"the path {quoted(folder)} is not UTF-8: rename the directory")
        kept = ProjectPermissions(data_dir(), folder).read()
        return cls.model_validate(
            {
                **settings.model_dump(include=set(SessionSettings.model_fields)),
                "agent": agent_name(settings.agent),
                "model": model_name(settings.model),
                "mount_ro": [str(Path(path).expanduser().absolute()) for path in settings.mount_ro],
                "secrets": list(map(specification, settings.secrets)),
                "skills": list(map(skills.absolute, settings.skills)),
                "workspace": folder,
                "allow_net": list(dict.fromkeys([*settings.allow_net, *kept.hosts])),
                "rules": kept.rules,
                "image": _accepted_image(workspace.resolve()) if image == devcontainer.REQUEST else image,
                "in_place": in_place,
                "limits": settings.limits,
                "hooks": load_hooks(),
            }
        )

    def files(self, session_dir: Path) -> SessionFiles:
        """Return the files of a session with this configuration, whose folder is ``session_dir``."""
        kind = InPlaceFiles if self.in_place else OverlayFiles if is_isolated(self.sandbox) else PlainCopyFiles
        return kind(session_dir, Path(self.workspace))

    def started(self, agent: str, model: str, workspace: str, *, resumed: bool = False) -> SessionStarted:
        """Return the event that begins a run, with the agent's and the model's own names.

        ``workspace`` is the path that the agent's commands see. Raises OwnSkillsError.
        """
        return SessionStarted(
            agent=agent,
            model=model,
            sandbox=self.sandbox,
            workspace=workspace,
            limits=self.limits,
            confirmation=self.confirmation,
            skills=tuple(line.line for file in skills.load(self.skills) for line in file.lines),
            settings=self.model_dump(mode="json"),
            resumed=resumed,
        )


async def config_of(log: EventLog) -> SessionConfig:
    """Return the configuration of the session's last run, with later changes.

    Raises SessionError if the session never ran, or if its log is damaged.
    """
    before: int | None = None
    later: list[Event] = []
    while page := await log.read_back(before):
        for event in page:
            if isinstance(event, SessionStarted):
                try:
                    return with_changes(SessionConfig.model_validate({**event.settings, "hooks": ()}), later[::-1])
                except ValidationError as error:
                    problem = "; ".join(
                        f"{detail['loc'][0]}: {detail['msg']}" for detail in error.errors() if detail["loc"]
                    )
                    raise SessionError(
                        f"event {event.id} of session {log.id} has invalid settings ({problem}): "
                        "restore the log from a backup, or delete the session"
                    ) from None
            if isinstance(event, SettingsChanged | NetworkAllowed | PermissionsRevoked):
                later.append(event)
        before = page[-1].id
    raise SessionError(f"session {log.id} never began: run the task again")


def with_changes(config: SessionConfig, events: Sequence[Event]) -> SessionConfig:
    """Return the configuration with the user's later changes, which are among the ``events``."""
    changed: dict[str, Any] = {}
    hosts: dict[str, bool] = {}
    for event in events:
        if isinstance(event, SettingsChanged):
            changed |= _changed_fields(event)
        elif isinstance(event, NetworkAllowed | PermissionsRevoked):
            hosts |= dict.fromkeys(event.hosts, isinstance(event, NetworkAllowed) and not event.once)
    allowed = tuple(host for host in config.allow_net if hosts.get(host, True))
    return config.model_copy(update={**changed, "allow_net": allowed})


def title_of(task: str) -> str:
    """Return the title of a session for the task: the start of its first line, without marks of Markdown."""
    line = task.strip().split("\n")[0]
    line = line.replace("**", "").lstrip("# ") or line
    return line if len(line) <= TITLE else f"{line[: TITLE - 1].rstrip()}…"


def agent_name(name: str) -> str:
    """Return the agent's name, with a file's path made absolute so that it works from any directory."""
    if name.endswith(CONFIGURED):
        return str(Path(name).expanduser().absolute())
    file, colon, attribute = name.rpartition(":")
    return f"{Path(file).expanduser().absolute()}{colon}{attribute}" if file.endswith(".py") else name


def _accepted_image(workspace: Path) -> str:
    """Return the image that the workspace's devcontainer.json names, if the user has accepted the file."""
    with opened(workspace) as root:
        found = devcontainer.find(root, workspace)
    if found is None or found[1] is None or found[1].image is None:
        reason = found[0].problem if found is not None and found[0].problem else "there is none that names an image"
        raise SessionError(f"--image devcontainer takes the image of {workspace}'s devcontainer.json: {reason}")
    convention = found[0]
    if not Trust(data_dir()).accepts(workspace, convention.path, convention.sha256):
        raise SessionError(f"you have not accepted {convention.path}: `{accept_command(workspace)}` shows it and asks")
    return found[1].image


def _changed_fields(event: SettingsChanged) -> dict[str, Any]:
    names = ("limits", "confirmation", "plan_mode", *(("model", "base_url") if event.model is not None else ()))
    return {name: value for name in names if (value := getattr(event, name)) is not None or name == "base_url"}

"""What goes over the wire: the requests and answers of the API, from which its OpenAPI document is made."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, field_validator

from handiwork.events.action import AgentState, TaskState
from handiwork.events.base import Part
from handiwork.events.record import Confirmation, Limits, Usage
from handiwork.log.session import SessionInfo

LARGEST = 2**53 - 1


class Shape(BaseModel):
    """A request or an answer; unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, from_attributes=True)


def _plain(text: str) -> str:
    if "\0" in text:
        raise ValueError("it has a NUL character")
    return text


def _below(path: str) -> str:
    if path and (path.startswith("/") or any(part in ("", ".", "..") for part in path.split("/"))):
        raise ValueError("it must be a path below the workspace, like src/main.py")
    return path


Text = Annotated[str, Field(max_length=1_000_000), AfterValidator(_plain)]
Line = Annotated[str, Field(max_length=4_000), AfterValidator(_plain)]
FilePath = Annotated[
    str, Field(max_length=4_000, description="below the workspace, like src/main.py"), AfterValidator(_plain)
]
BelowPath = Annotated[FilePath, AfterValidator(_below)]
EventId = Annotated[int, Field(ge=0, le=LARGEST)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
ImageType = Literal["image/png", "image/jpeg"]


class Problem(Shape):
    """Why a request was refused, and what to do."""

    error: str


class Success(Shape):
    """The request was carried out; there is nothing to say."""

    ok: Literal[True] = True


class UploadedImage(Shape):
    """A picture that was uploaded as a blob."""

    blob: Digest
    media_type: ImageType

    def part(self) -> Part:
        """Return it as a part of a message."""
        return Part(blob=self.blob, media_type=self.media_type)


class NewSession(Shape):
    """A task to be carried out; what is left out is as the user's settings say."""

    task: Annotated[Text, Field(min_length=1)]
    workspace: Line = Field(description="the absolute path of the directory to work on a copy of")
    images: Annotated[tuple[UploadedImage, ...], Field(max_length=16)] = ()
    title: Line | None = None
    agent: Line | None = None
    model: Line | None = None
    base_url: Line | None = None
    limits: Limits | None = None
    confirmation: Confirmation | None = None
    image: Line | None = Field(default=None, description="the Docker image to work in, instead of bubblewrap")
    allow_net: Annotated[tuple[Line, ...], Field(max_length=100)] = ()

    @field_validator("task")
    @classmethod
    def _said(cls, task: str) -> str:
        if not task.strip():
            raise ValueError("the task is empty: say what the agent is to do")
        return task

    @field_validator("workspace")
    @classmethod
    def _absolute(cls, path: str) -> str:
        if not path.startswith("/"):
            raise ValueError("the workspace must be an absolute path")
        return path


class SessionRow(Shape):
    """A session as lists show it. ``parent_event`` is the last event it shares with its ``parent``."""

    id: str
    title: str
    agent: str
    model: str
    workspace: str
    state: AgentState
    created: datetime
    updated: datetime
    parent: str | None
    parent_event: int
    head: int = Field(description="the id of the last event")

    @classmethod
    def of(cls, info: SessionInfo) -> Self:
        """Return the row of a session."""
        return cls.model_validate(info, extra="ignore")


class SessionPage(Shape):
    """Some sessions, newest first; ``next`` is the ``before`` of the next page, null on the last one."""

    sessions: list[SessionRow]
    next: str | None


class ListQuery(Shape):
    """Which sessions are listed."""

    q: Line = Field(default="", description="in the title, workspace, model or agent, or where the id begins")
    state: AgentState | None = None
    before: Line | None = Field(default=None, description="the last id of the page before")
    limit: int = Field(default=50, ge=1, le=500)


class Rename(Shape):
    """A session's new title."""

    title: Annotated[Line, Field(min_length=1)]


class PlanTask(Shape):
    """A task of the agent's plan with those below it."""

    id: str
    goal: str
    state: TaskState
    subtasks: list[PlanTask]


class Subtask(Shape):
    """A delegate that is at work. ``cost`` is USD."""

    id: int
    parent: int
    agent: str
    state: AgentState
    iterations: int
    cost: float
    usage: Usage
    plan: list[PlanTask]


class PendingQuestion(Shape):
    """An action that waits for the user's yes. ``rule`` is what a remembered yes allows from then on."""

    action: dict[str, JsonValue] = Field(description="the event")
    why: str
    rule: str


class Cost(Shape):
    """What a session cost. ``usd`` is what is known; ``unpriced`` counts the calls whose price is not."""

    usd: float
    unpriced: int
    sources: list[str] = Field(description="provider, price_list, local, scripted, unknown")


class RunBy(Shape):
    """The process that runs a session; ``here`` is true for this server."""

    here: bool
    host: str
    pid: int


class SessionView(SessionRow):
    """All about a session but its events. ``time`` is seconds of running, ``reason`` why it stands still."""

    reason: str | None
    why: str
    sandbox: str
    base_url: str | None
    limits: Limits
    confirmation: Confirmation
    iterations: int
    usage: Usage
    cost: Cost
    time: float
    plan: list[PlanTask]
    subtasks: list[Subtask]
    asked: list[PendingQuestion]
    rules: list[str]
    network: list[str]
    outputs: dict[str, JsonValue]
    run_by: RunBy | None


class EventsQuery(Shape):
    """Which events: those after an id, or the newest, or the newest before an id; always ascending."""

    after: EventId | None = None
    before: EventId | None = None
    limit: int = Field(default=100, ge=1, le=1000)


class EventPage(Shape):
    """Some events, ascending, and the id of the session's last one."""

    events: list[dict[str, JsonValue]]
    head: int


class UserMessage(Shape):
    """What the user says to the agent."""

    content: Annotated[Text, Field(min_length=1)]
    images: Annotated[tuple[UploadedImage, ...], Field(max_length=16)] = ()


class Posted(Shape):
    """The id of the event that was appended."""

    event: int


class Answer(Shape):
    """Yes or no to an action; with ``remember`` the rule that was shown allows its like from now on."""

    action: EventId
    allowed: bool
    comment: Text = ""
    remember: bool = False


class SettingsChange(Shape):
    """What is to be otherwise from now on; null is unchanged. A model comes with its base URL, or none."""

    model: Annotated[Line, Field(min_length=1)] | None = None
    base_url: Line | None = None
    limits: Limits | None = None
    confirmation: Confirmation | None = None


class Hosts(Shape):
    """Hosts that the sandbox may reach too: names, wildcards or presets.

    ``confirmed``: also if commands run that could then use them without a question.
    """

    hosts: Annotated[tuple[Line, ...], Field(min_length=1, max_length=100)]
    confirmed: bool = False


class NewFork(Shape):
    """A session that goes on from event ``at``, with the files, the conversation or both as they were then."""

    at: Annotated[int, Field(ge=1, le=LARGEST)]
    restore: Literal["both", "files", "conversation"] = "both"
    agent: Line | None = None
    model: Line | None = None
    base_url: Line | None = None
    message: Annotated[Text, Field(min_length=1)] | None = Field(default=None, description="it then goes on at once")


class Tree(Shape):
    """A session with all that it was forked from and that was forked from those, parents first."""

    sessions: list[SessionRow]


class ModelInfo(Shape):
    """A model, or a provider's models (``NAME`` stands for theirs), and whether it can be used as it is."""

    name: str
    ready: bool
    about: str


class ModelList(Shape):
    """The models there are; ``default`` is what the settings say."""

    default: str
    models: list[ModelInfo]


class AgentInfo(Shape):
    """An installed agent."""

    name: str
    about: str
    package: str


class AgentList(Shape):
    """The installed agents; ``default`` is what the settings say."""

    default: str
    agents: list[AgentInfo]


class SettingsView(Shape):
    """What a session uses unless its request says otherwise. Secrets are named, never shown."""

    file: str
    version: str
    model: str
    base_url: str | None
    agent: str
    sandbox: str
    image: str | None
    allow_net: list[str]
    confirmation: Confirmation
    limits: Limits
    secrets: list[str]

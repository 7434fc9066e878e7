"""Requests and responses about sessions; the OpenAPI document is generated from these models."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, field_validator

from handiwork.events.action import AgentState, TaskState
from handiwork.events.base import Part
from handiwork.events.record import Confirmation, CostSource, Limits, Usage
from handiwork.log.lists.pages import Cursor
from handiwork.log.session import SessionInfo

LARGEST = 2**53 - 1


class Shape(BaseModel):
    """The base of all requests and responses; unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, from_attributes=True)


def _check_text(text: str) -> str:
    if "\0" in text:
        raise ValueError("it contains a NUL character")
    return text


def _check_below(path: str) -> str:
    if path and (path.startswith("/") or any(part in ("", ".", "..") for part in path.split("/"))):
        raise ValueError("it must be a path below the workspace, like src/main.py")
    return path


def _check_cursor(text: str) -> str:
    try:
        Cursor.parse(text)
    except ValueError:
        raise ValueError("it must be the `next` of a page") from None
    return text


def _check_title(title: str) -> str:
    if not title.strip():
        raise ValueError("the title is empty")
    return title


Text = Annotated[str, Field(max_length=1_000_000), AfterValidator(_check_text)]
Line = Annotated[str, Field(max_length=4_000), AfterValidator(_check_text)]
FilePath = Annotated[
    str, Field(max_length=4_000, description="below the workspace, like src/main.py"), AfterValidator(_check_text)
]
Title = Annotated[Line, Field(min_length=1), AfterValidator(_check_title)]
BelowPath = Annotated[FilePath, AfterValidator(_check_below)]
EventId = Annotated[int, Field(ge=0, le=LARGEST)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
ImageType = Literal["image/png", "image/jpeg"]


class Problem(Shape):
    """The reason why a request was refused, and a remedy."""

    error: str


class Success(Shape):
    """The request succeeded; the response has no content."""

    ok: Literal[True] = True


class UploadedImage(Shape):
    """A picture that was uploaded as a blob."""

    blob: Digest
    media_type: ImageType

    def part(self) -> Part:
        """Return the picture as a part of a message."""
        return Part(blob=self.blob, media_type=self.media_type)


class NewSession(Shape):
    """A task to run; fields left out take the user's settings."""

    task: Annotated[Text, Field(min_length=1)]
    workspace: Line = Field(description="the absolute path of the directory; the agent works on a copy")
    images: Annotated[tuple[UploadedImage, ...], Field(max_length=16)] = ()
    title: Line | None = None
    agent: Line | None = None
    model: Line | None = None
    base_url: Line | None = None
    limits: Limits | None = None
    confirmation: Confirmation | None = None
    plan_mode: bool | None = None
    image: Line | None = Field(default=None, description="the Docker image to work in, instead of bubblewrap")
    allow_net: Annotated[tuple[Line, ...], Field(max_length=100)] = ()
    secrets: Annotated[tuple[Line, ...], Field(max_length=100)] = Field(
        default=(), description='names of variables of the server\'s environment, or "NAME=@FILE"'
    )

    @field_validator("task")
    @classmethod
    def _check_task(cls, task: str) -> str:
        if not task.strip():
            raise ValueError("the task is empty: describe it in your own words")
        return task

    @field_validator("workspace")
    @classmethod
    def _check_workspace(cls, path: str) -> str:
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
    archived: bool
    read_only: bool = Field(description="it is a rollout of an evaluation")
    interrupted: bool = Field(description="its process ended while it was running; resume runs it again")
    spent: float | None = Field(description="USD at the end of the last run; null is unknown")
    added: int | None = Field(description="lines of the changes at the end of the last run; null is unknown")
    deleted: int | None

    @classmethod
    def of(cls, info: SessionInfo, interrupted: bool) -> Self:
        """Return the row of a session."""
        fields = {name: getattr(info, name) for name in SessionRow.model_fields if name != "interrupted"}
        return cls(**fields, interrupted=interrupted)


class SessionPage(Shape):
    """Some sessions, those that need the user before the others, both newest first."""

    sessions: list[SessionRow]
    next: str | None = Field(description="the `before` of the next page, null on the last one")
    waiting: int = Field(description="the number of sessions of all pages that need the user")


class ListQuery(Shape):
    """A search for sessions."""

    q: Line = Field(
        default="",
        description="in the title, workspace, model, agent, messages, commands or results, or where the id begins",
    )
    state: AgentState | None = None
    archived: bool = Field(default=False, description="archived sessions instead of the others")
    before: Annotated[Line, AfterValidator(_check_cursor)] | None = Field(
        default=None, description="the `next` of the page before"
    )
    limit: int = Field(default=50, ge=1, le=500)


class SessionChange(Shape):
    """A change of a session in lists; fields left out stay as they are."""

    title: Title | None = None
    archived: bool | None = None


class PlanTask(Shape):
    """A task of the agent's plan with its subtasks."""

    id: str
    goal: str
    state: TaskState
    subtasks: list[PlanTask]


class Subtask(Shape):
    """A delegate at work. ``cost`` is in USD."""

    id: int
    parent: int
    agent: str
    state: AgentState
    iterations: int
    cost: float
    usage: Usage
    plan: list[PlanTask]


class PendingQuestion(Shape):
    """An action that needs the user's approval. ``rule`` is what an approval with ``remember`` allows from then on."""

    action: dict[str, JsonValue] = Field(description="the event")
    why: str
    rule: str


class Cost(Shape):
    """The cost of a session. ``usd`` is the known part; ``unpriced`` counts the calls of unknown price."""

    usd: float
    unpriced: int
    sources: list[CostSource]


class RunBy(Shape):
    """The process that runs a session; ``here`` is true for this server."""

    here: bool
    host: str
    pid: int


class RefusedHost(Shape):
    """A host that the sandbox could not reach; allowing ``pattern`` would let it."""

    pattern: str
    host: str
    port: int
    subtask: int


class SessionView(SessionRow):
    """A session without its events. ``time`` is its running time in seconds, ``reason`` why it does not run."""

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
    refused: list[RefusedHost]
    plan_mode: bool
    outputs: dict[str, JsonValue]
    run_by: RunBy | None


class EventsQuery(Shape):
    """A range of events: those after an id, the newest, or the newest before an id; always ascending."""

    after: EventId | None = None
    before: EventId | None = None
    limit: int = Field(default=100, ge=1, le=1000)


class EventPage(Shape):
    """Some events, ascending, and the id of the session's last one."""

    events: list[dict[str, JsonValue]]
    head: int


class OutlineQuery(Shape):
    """The outline of events after an id."""

    after: EventId = 0


class Outline(Shape):
    """Up to 10,000 events in columns, ascending without gaps: item ``n`` is of event ``first + n``.

    ``types`` are positions in ``names``; ``causes`` are the events' causes, null for none; ``failed`` are the ids of
    errors and of actions' results that are failures; ``head`` is the id of the session's last event.
    """

    first: int
    names: list[str]
    types: list[int]
    causes: list[int | None]
    failed: list[int]
    head: int


class UserMessage(Shape):
    """A message from the user to the agent; it waits for the end of the current actions, or interrupts them."""

    content: Annotated[Text, Field(min_length=1)]
    images: Annotated[tuple[UploadedImage, ...], Field(max_length=16)] = ()
    interrupt: bool = False


class Posted(Shape):
    """The id of the event that was appended."""

    event: int


class Answer(Shape):
    """The approval or refusal of an action; with ``remember`` the rule that was shown allows similar actions too."""

    action: EventId
    allowed: bool
    comment: Text = ""
    remember: bool = False


class SettingsChange(Shape):
    """New settings; null means unchanged. A new model replaces the base URL too, also with null."""

    model: Annotated[Line, Field(min_length=1)] | None = None
    base_url: Line | None = None
    limits: Limits | None = None
    confirmation: Confirmation | None = None
    plan_mode: bool | None = None


class PlanAcceptance(Shape):
    """The user accepts the agent's plan; ``comment`` adds to it."""

    comment: Text = ""


class Hosts(Shape):
    """More hosts that the sandbox may reach: names, wildcards or presets.

    ``scope`` "once" ends with the action that first reaches one of them, "project" also holds for new sessions on the
    folder. ``confirmed`` allows them even if running commands could use them without asking.
    """

    hosts: Annotated[tuple[Line, ...], Field(min_length=1, max_length=100)]
    scope: Literal["once", "session", "project"] = "session"
    confirmed: bool = False


class Permission(Shape):
    """A rule or a host in force in the session, or kept for new sessions on its folder, or both."""

    text: str
    in_force: bool
    kept: bool


class PermissionList(Shape):
    """The rules and hosts of a session and of its folder."""

    rules: list[Permission]
    hosts: list[Permission]


class PermissionChange(Shape):
    """Rules and hosts to keep for the folder or to take back."""

    rules: Annotated[tuple[Text, ...], Field(max_length=100)] = ()
    hosts: Annotated[tuple[Line, ...], Field(max_length=100)] = ()


class NewFork(Shape):
    """A session that continues from event ``at``, with the files, the conversation or both of that moment."""

    at: Annotated[int, Field(ge=1, le=LARGEST)]
    restore: Literal["both", "files", "conversation"] = "both"
    agent: Line | None = None
    model: Line | None = None
    base_url: Line | None = None
    message: Annotated[Text, Field(min_length=1)] | None = Field(
        default=None, description="the fork starts at once with this message"
    )


class Tree(Shape):
    """A session with its ancestors and all their forks, parents first."""

    sessions: list[SessionRow]

"""The records: facts that make State a fold over the log."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from handiwork.events.base import Model, Record

CostSource = Literal["provider", "price_list", "local", "scripted", "unknown"]
ProtocolName = Literal["auto", "native", "json", "text"]
"""How a model writes its actions: as native tool calls, as JSON bound to a schema, or as plain text with blocks."""
Confirmation = Literal["never", "risky", "always"]
CondensationKind = Literal["collapse", "summary", "rewind"]
SUMMARY = 120
"""Characters of a tool's line in the prompt, at most."""

LoopRule = Literal["repeat", "error", "monologue", "cycle", "mix", "waiting"]
HookPoint = Literal["session_start", "before_action", "after_action", "before_finish", "session_end"]
"""The moments of a session at which hooks run."""
HookPlace = Literal["sandbox", "host"]
HookProblem = Literal["", "timeout", "not_started", "interrupted"]
HookEffect = Literal["", "refused", "sent_back", "let_through"]
ContextKind = Literal["instructions", "skill", "devcontainer", "agent"]
"""AGENTS.md or CLAUDE.md, the head of a SKILL.md, or the part of a devcontainer.json that a session uses."""
ContextOrigin = Literal["workspace", "user", "package"]


class Usage(Model):
    """Tokens of one completion in four classes that do not overlap.

    ``input`` is neither read from nor written to a cache; the prompt has ``input + cache_read + cache_write``.
    """

    input: int = Field(default=0, ge=0)
    output: int = Field(default=0, ge=0)
    cache_read: int = Field(default=0, ge=0)
    cache_write: int = Field(default=0, ge=0)

    @property
    def total(self) -> int:
        """All tokens, in and out."""
        return self.input + self.output + self.cache_read + self.cache_write

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
        )


class Limits(Model):
    """The budget of a session with its delegates; None means no limit. ``time`` is seconds of running, ``cost`` USD."""

    iterations: int | None = Field(default=100, ge=1)
    cost: float | None = Field(default=None, gt=0)
    tokens: int | None = Field(default=None, ge=1)
    time: float | None = Field(default=None, gt=0)


class SessionStarted(Record):
    """A session starts, or resumes in a new process, with these settings.

    ``skills`` are the lines that document the user's own skills for the model.
    """

    agent: str
    model: str
    sandbox: str
    workspace: str = ""
    limits: Limits = Limits()
    confirmation: Confirmation = "never"
    skills: tuple[str, ...] = ()
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    resumed: bool = False


class StepStarted(Record):
    """An agent's step begins. Iterations are counted by it, so that a step that crashed counts too.

    The step of a ``WorkspaceOverviewAction`` that no model has asked for does not count.
    """


class CompletionEvent(Record):
    """One answer of a model.

    ``response`` is provider-neutral: {"content": str, "tool_calls": [{"id", "name", "arguments"}], "thinking":
    [{"content", "signature", ...}]}. ``cost`` is in USD, None if unknown; ``latency`` and ``first_token`` are in
    seconds; ``failed_attempts`` are the errors of earlier attempts.
    """

    model: str
    response: dict[str, JsonValue]
    usage: Usage = Usage()
    cost: float | None = None
    cost_source: CostSource = "unknown"
    latency: float = 0.0
    first_token: float | None = None
    finish_reason: str = ""
    failed_attempts: tuple[str, ...] = ()


class CondensationEvent(Record):
    """The agent's view of the actions ``first`` to ``last`` becomes shorter; the log keeps all of them.

    "collapse": long observations are cut to their first line. "summary": ``summary`` replaces the actions. "rewind":
    the actions are dropped from the view, and ``summary`` is a note about it. The user's first message, and actions
    that wait for an observation, stay.
    """

    first: int
    last: int
    summary: str = ""
    how: CondensationKind = "summary"


class LoopEvent(Record):
    """The agent has repeated itself since action ``first``; ``content`` tells the agent and the user."""

    first: int
    rule: LoopRule
    times: int
    content: str


class SnapshotEvent(Record):
    """A snapshot of the sandbox's files and its shell's state: the tree ``tree`` of the snapshot store.

    ``size`` is the growth of the store in bytes, ``changed`` the number of paths changed since the snapshot before. If
    the snapshot failed, ``tree`` is "" and ``problem`` the reason.
    """

    tree: str
    size: int = 0
    changed: int = 0
    problem: str = ""


class ApprovalEvent(Record):
    """The user's answer about action ``action``, and the rule that it adds, if any."""

    action: int
    allowed: bool
    comment: str = ""
    rule: str | None = None


class SettingsChanged(Record):
    """New model with its base URL, limits, confirmation or plan mode from this event on; None means unchanged.

    In plan mode the agent may only read, and proposes a plan instead of finishing.
    """

    model: str | None = None
    base_url: str | None = None
    limits: Limits | None = None
    confirmation: Confirmation | None = None
    plan_mode: bool | None = None


class NetworkAllowed(Record):
    """The sandbox may reach these hosts from this event on: names, wildcards or presets, as in ``--allow-net``.

    With ``once``, until the end of the action during which it first reaches one of them.
    """

    hosts: tuple[str, ...]
    once: bool = False


class PermissionsRevoked(Record):
    """The user takes back ``rules`` and ``hosts``, each as it was given."""

    rules: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


class SessionWanted(Record):
    """Another process asks the holder of the session's lease to release it, if the session only waits for the user."""


class EgressEvent(Record):
    """The proxy allowed or refused a connection of the sandbox to ``host``:``port``, for this ``reason``.

    ``pattern`` is the user's host that allows it or, after a refusal, the one that would, "" if none can.
    """

    host: str
    port: int
    allowed: bool
    reason: str = ""
    pattern: str = ""


class MCPTool(Model):
    """A tool of an MCP server as the server describes it; ``arguments`` is the JSON text of their schema."""

    name: str
    description: str = ""
    arguments: str = "{}"

    @property
    def summary(self) -> str:
        """The first sentence of the description, on one line and at most 120 characters long."""
        sentence = " ".join(self.description.split()).split(". ")[0].rstrip(".")
        return sentence if len(sentence) <= SUMMARY else f"{sentence[: SUMMARY - 3]}..."


class MCPServerEvent(Record):
    """An MCP server of the session changed its state.

    "starting": the first step did not wait for it; "ready" with its ``tools``; "failed" to start; "ended", to start
    again with its next call. ``content`` says why, ``errors`` is the end of its stderr.
    """

    server: str
    state: Literal["starting", "ready", "failed", "ended"]
    tools: tuple[MCPTool, ...] = ()
    content: str = ""
    errors: str = ""


class KnowledgeEvent(Record):
    """A piece of knowledge joins a task's conversation: ``content``, of the file ``place``.

    A user's message has its ``trigger`` as a whole word.
    """

    name: str
    trigger: str
    place: str
    content: str


class ThrottledEvent(Record):
    """A call of ``model`` waits about ``seconds`` for its rate limit; ``content`` tells the user which limit."""

    model: str
    seconds: float
    content: str


class ContextLoaded(Record):
    """A convention of the project, the user or a package joins every prompt from here on, word for word.

    ``path`` is relative to the workspace, or absolute as the sandbox sees it. ``text`` is the text for the model: of a
    skill its name and description, of a devcontainer.json the settings in use, which no prompt has. ``sha256`` is the
    accepted hash: that of the file, or of a skill's list of files. ``tokens`` is estimated; ``note`` lists cut and
    omitted parts.
    """

    category: ContextKind
    origin: ContextOrigin
    path: str
    text: str
    sha256: str
    tokens: int = 0
    note: str = ""


class ContextWithheld(Record):
    """Conventions at ``paths`` do not join the prompt, or leave it; ``content`` tells the user why, and the remedy."""

    paths: tuple[str, ...]
    content: str


class AgentDataEvent(Record):
    """The agent's own extra data; it replaces the data of the event before."""

    data: dict[str, JsonValue]


class HookEvent(Record):
    """The user's hook ``hook`` ran at ``point``; ``cause`` is the action before or after which it ran.

    ``exit_code`` is None if the command did not end by itself: ``problem`` then gives the reason, and ``output`` is the
    output until then. ``duration`` is in seconds. ``effect`` is the outcome of a hook that did not exit with 0:
    "refused" (the action does not run), "sent_back" (the agent must go on), "let_through" (the agent was sent back too
    often already, and may finish); it is "" at other points, and for an interrupted hook.
    """

    hook: str
    point: HookPoint
    where: HookPlace = "sandbox"
    exit_code: int | None = None
    problem: HookProblem = ""
    duration: float = 0.0
    effect: HookEffect = ""
    output: str = ""

    @property
    def outcome(self) -> str:
        """The end of the command in words, like "exit code 1"."""
        words = {"timeout": "it took too long", "not_started": "it could not start", "interrupted": "interrupted"}
        return words[self.problem] if self.problem else f"exit code {self.exit_code}"


class UnusedHooks(Record):
    """The session has ended, and these hooks never ran: no action matched, or the agent did not finish."""

    hooks: tuple[str, ...]

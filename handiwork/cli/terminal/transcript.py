"""Renders events as lines for a person to read, the same in a live run and in ``handiwork show``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import singledispatchmethod

from rich.console import Console
from rich.text import Text

from handiwork.cli.terminal.layout import markdown_lines, speech_lines
from handiwork.cli.terminal.output_lines import READ_LINES, STATUS, OutputLines, coloured_diff_line, prefix_lines
from handiwork.cli.terminal.sanitize import exact, plain
from handiwork.cli.terminal.subtasks import Subtasks, short_name
from handiwork.events.action import (
    AgentDelegateAction,
    AgentFinishAction,
    AgentRejectAction,
    AgentThinkAction,
    BrowseInteractiveAction,
    ChangeAgentStateAction,
    CmdRunAction,
    FileWriteAction,
    ForkAction,
    IPythonRunCellAction,
    MessageAction,
)
from handiwork.events.base import Action, Event, Observation, UnknownEvent
from handiwork.events.describe import change_text, describe, task_text
from handiwork.events.observation import (
    AgentDelegateObservation,
    AgentStateChangedObservation,
    BrowserOutputObservation,
    CmdOutputObservation,
    ErrorObservation,
    FileEditObservation,
    FileReadObservation,
    FileWriteObservation,
    ForkObservation,
    HookRejectObservation,
    IPythonRunCellObservation,
    JobObservation,
    MCPCallObservation,
    OutputReadObservation,
    UserRejectObservation,
)
from handiwork.events.overview import WorkspaceOverviewObservation
from handiwork.events.record import (
    ApprovalEvent,
    CompletionEvent,
    CondensationEvent,
    ContextLoaded,
    ContextWithheld,
    EgressEvent,
    HookEvent,
    KnowledgeEvent,
    LoopEvent,
    MCPServerEvent,
    NetworkAllowed,
    PermissionsRevoked,
    SessionStarted,
    SettingsChanged,
    StepStarted,
    ThrottledEvent,
    UnusedHooks,
)
from handiwork.sandbox.create import is_isolated

UNPROTECTED = "No sandbox: the agent's commands run on this machine, as you, with nothing between."

_EFFECT = {
    "refused": "the action is refused",
    "sent_back": "the agent must go on",
    "let_through": "the agent was sent back often enough, so it may finish",
}


class Transcript:
    """Turns events into lines, in order. ``full`` shows outputs whole; ``session`` is the id named in hints.

    With ``console``, a terminal, the agent's messages are laid out for it, and outputs keep their colours.
    """

    def __init__(self, session: str = "", full: bool = False, console: Console | None = None) -> None:
        self.steps = 0
        self.subtasks = Subtasks()
        self._header, self._console = "", console
        self.outputs = OutputLines(session, full, coloured=console is not None)
        self._targets: set[tuple[str, int, bool]] = set()

    def lines(self, event: Event) -> list[Text]:
        """Return the lines that show the event, none for most records; all are safe to print.

        The steps of subtasks side by side, and the files that a subtask reads, are shown only in full.
        """
        self.outputs.limit = READ_LINES if event.subtask else self.outputs.most
        self.outputs.event = event.id
        lines = list(self._event_lines(event))
        is_step = isinstance(event, Action | Observation | StepStarted)
        is_message = isinstance(event, MessageAction | AgentStateChangedObservation)
        if not self.outputs.full and is_step and not is_message and self.subtasks.is_parallel(event.subtask):
            return []
        return self.subtasks.indent(event, lines)

    @singledispatchmethod
    def _event_lines(self, event: Event) -> Iterator[Text]:
        return iter(())

    @_event_lines.register
    def _(self, event: SessionStarted) -> Iterator[Text]:
        isolated = is_isolated(event.sandbox)
        sandbox = event.sandbox if isolated else "no sandbox"
        if image := event.settings.get("image"):
            sandbox = f"{sandbox} {image}"
        parts = [event.agent, event.model, sandbox, f"session {self.outputs.session}"]
        if event.settings.get("in_place"):
            parts.insert(3, "in place")
        header = plain(" · ".join(parts))
        if header != self._header:
            self._header = header
            yield Text(header, "dim")
            if not isolated:
                yield Text(UNPROTECTED, "bold red")

    @_event_lines.register
    def _(self, event: StepStarted) -> Iterator[Text]:
        self.steps += 1
        yield Text.assemble((f"\nstep {self.steps}", "cyan dim"), (f"  event {event.id}", "dim"))

    @_event_lines.register
    def _(self, event: CompletionEvent) -> Iterator[Text]:
        for attempt in event.failed_attempts:
            yield Text(f"  retried after: {plain(attempt)}", "yellow")

    @_event_lines.register
    def _(self, event: CondensationEvent) -> Iterator[Text]:
        description = {"collapse": "shortened", "summary": "summarised", "rewind": "removed"}[event.how]
        yield Text(f"  in the model's context, events {event.first} to {event.last} are {description}", "dim")

    @_event_lines.register
    def _(self, event: LoopEvent) -> Iterator[Text]:
        yield Text(f"  the agent repeats itself: {plain(event.content)}", "yellow")

    @_event_lines.register
    def _(self, event: KnowledgeEvent) -> Iterator[Text]:
        yield Text(f"  knowledge: {plain(f'{event.name}, for the word {event.trigger} ({event.place})')}", "dim")

    @_event_lines.register
    def _(self, event: ThrottledEvent) -> Iterator[Text]:
        yield Text(f"  {plain(event.content)}", "yellow")

    @_event_lines.register
    def _(self, event: ApprovalEvent) -> Iterator[Text]:
        if not event.allowed:
            yield Text(f"  you: no{plain(f', {event.comment}' if event.comment else '')}", "bold green")
        else:
            always = f", for this session: {exact(event.rule)}" if event.rule is not None else ""
            yield Text(f"  you: yes{always}", "bold green")

    @_event_lines.register
    def _(self, event: SettingsChanged | NetworkAllowed | PermissionsRevoked) -> Iterator[Text]:
        yield Text(f"  {plain(change_text(event))}", "dim")

    @_event_lines.register
    def _(self, event: ContextLoaded) -> Iterator[Text]:
        name = f"the skill {event.text.partition(':')[0]}" if event.category == "skill" else exact(event.path)
        tokens = f", {event.tokens} tokens in every prompt" if event.tokens else ""
        yield Text(f"  loaded {name}{tokens}{exact(f' ({event.note})') if event.note else ''}", "dim")

    @_event_lines.register
    def _(self, event: ContextWithheld) -> Iterator[Text]:
        yield Text(f"  {exact(event.content)}", "yellow")

    @_event_lines.register
    def _(self, event: EgressEvent) -> Iterator[Text]:
        target = (event.host, event.port, event.allowed)
        if target not in self._targets:  # a program makes many connections, or retries
            self._targets.add(target)
            verb, style = ("reached", "dim") if event.allowed else ("refused", "yellow")
            yield Text(f"  network: {plain(f'{event.host}:{event.port} {verb}: {event.reason}')}", style)

    @_event_lines.register
    def _(self, event: HookEvent) -> Iterator[Text]:
        effect = f"; {_EFFECT[event.effect]}" if event.effect else ""
        seconds = f", {event.duration:.1f} s"
        line = f"  hook {plain(event.hook)} ({event.point}): {event.outcome}{seconds}{effect}"
        yield Text(line, "dim" if event.exit_code == 0 else "yellow")
        yield from self.outputs.lines(event.output, "dim", "    ", READ_LINES)

    @_event_lines.register
    def _(self, event: UnusedHooks) -> Iterator[Text]:
        yield Text(f"  hooks that never ran in this session: {plain(', '.join(event.hooks))}", "yellow")

    @_event_lines.register
    def _(self, event: MCPServerEvent) -> Iterator[Text]:
        if event.state in ("ready", "starting"):
            progress = f"ready, {len(event.tools)} tools" if event.state == "ready" else "still starting"
            yield Text(f"  mcp: {plain(event.server)} is {progress}", "dim")
            return
        yield from prefix_lines(plain(event.content), f"  mcp: {plain(event.server)} {event.state}: ", "yellow", "  ")
        yield from self.outputs.lines(event.errors, "dim", limit=READ_LINES)

    @_event_lines.register
    def _(self, event: UnknownEvent) -> Iterator[Text]:
        if problem := event.unknown.get("problem"):
            yield Text(f"  {plain(str(problem))}", "bold red")
            return
        common = {"type", *Action.model_fields, *Observation.model_fields}
        fields = {name: value for name, value in event.unknown.items() if name not in common}
        yield Text(f"  {plain(str(event.unknown.get('type')))} {exact(json.dumps(fields, ensure_ascii=False))}", "dim")
        if isinstance(content := event.unknown.get("content"), str):
            yield from self.outputs.lines(content)

    @_event_lines.register
    def _(self, event: Action) -> Iterator[Text]:
        if event.thought.strip():
            if self._console is not None:
                yield from markdown_lines(event.thought, self._console, style="dim")
            else:
                yield from prefix_lines(plain(event.thought.strip()), "  ", "dim")
        yield from self._action_lines(event)

    @singledispatchmethod
    def _action_lines(self, event: Action) -> Iterator[Text]:
        verb, object_, body = describe(event)
        yield from prefix_lines(exact(object_), f"  {verb}{' ' * bool(object_)}", "bold", "    ")
        if isinstance(event, FileWriteAction):
            yield from self.outputs.lines(body, "green", "  +")

    @_action_lines.register
    def _(self, event: CmdRunAction) -> Iterator[Text]:
        if event.is_input:
            yield from prefix_lines(exact(event.command), "  < ", "bold")
        elif event.background:
            yield from prefix_lines(exact(event.command), "  & ", "bold", "  > ")
        elif event.command:
            yield from prefix_lines(exact(event.command), "  $ ", "bold", "  > ")
        else:
            yield Text("  (waiting for more output)", "dim")

    @_action_lines.register
    def _(self, event: IPythonRunCellAction) -> Iterator[Text]:
        yield from prefix_lines(exact(event.code), "  >>> ", "bold", "  ... ")

    @_action_lines.register
    def _(self, event: BrowseInteractiveAction) -> Iterator[Text]:
        yield from prefix_lines(exact(event.browser_actions), "  browser: ", "bold", "           ")

    @_action_lines.register
    def _(self, event: MessageAction) -> Iterator[Text]:
        yield from speech_lines(event, self._console)

    @_action_lines.register
    def _(self, event: AgentThinkAction) -> Iterator[Text]:
        return iter(())

    @_action_lines.register
    def _(self, event: AgentDelegateAction) -> Iterator[Text]:
        heading = self.subtasks.open(event)
        task = event.inputs.get("task")
        is_brief = self.subtasks.is_parallel(event.id) and isinstance(task, str) and not self.outputs.full
        yield from self.outputs.subtask(
            f"  {heading}: ", str(task) if is_brief else task_text(event.inputs), "bold cyan"
        )

    @_action_lines.register
    def _(self, event: ForkAction) -> Iterator[Text]:
        count = len(event.children)
        yield Text(f"  {count} subtasks side by side" if count > 1 else "  1 subtask", "bold cyan")

    @_action_lines.register
    def _(self, event: AgentFinishAction) -> Iterator[Text]:
        yield Text("  finish", "bold green")

    @_action_lines.register
    def _(self, event: AgentRejectAction) -> Iterator[Text]:
        yield Text(f"  reject: {plain(str(event.outputs.get('reason', '')))}", "bold red")

    @_action_lines.register
    def _(self, event: ChangeAgentStateAction) -> Iterator[Text]:
        if event.agent_state != "running":
            yield Text(f"  {event.agent_state} by {'you' if event.source == 'user' else 'the agent'}", "yellow")

    @_event_lines.register
    def _(self, event: Observation) -> Iterator[Text]:
        yield from self.outputs.observation(event)

    @_event_lines.register
    def _(self, event: CmdOutputObservation) -> Iterator[Text]:
        yield from self.outputs.observation(event)
        if event.status != "done":
            job = f" as {plain(event.job)}" if event.job else ""
            yield Text(f"  {STATUS[event.status]}{job}", "yellow")
        if event.error:
            yield Text(f"  exit {event.exit_code}", "bold red")

    @_event_lines.register
    def _(self, event: JobObservation) -> Iterator[Text]:
        yield from self.outputs.observation(event)
        if event.status:
            code = "" if event.exit_code is None else f", exit {event.exit_code}"
            yield Text(f"  {plain(event.job)} is {event.status}{code}", "dim")

    @_event_lines.register
    def _(self, event: IPythonRunCellObservation) -> Iterator[Text]:
        yield from self.outputs.observation(event)
        for image in event.images:
            yield Text(f"  (a picture, {image.media_type})", "dim")
        if event.error:
            yield Text(f"  {plain(event.error)}", "bold red")

    @_event_lines.register
    def _(self, event: MCPCallObservation) -> Iterator[Text]:
        yield from self.outputs.observation(event, "red" if event.error else "")

    @_event_lines.register
    def _(self, event: FileReadObservation | OutputReadObservation) -> Iterator[Text]:
        lines = f"lines {event.start} to {event.end} of {event.lines}"
        if isinstance(event, FileReadObservation) and event.subtask and not self.outputs.full:
            lines = f"{plain(event.path)}: {lines}"
        else:
            yield from self.outputs.observation(event, limit=READ_LINES)
        yield Text(f"  {lines}", "dim")

    @_event_lines.register
    def _(self, event: WorkspaceOverviewObservation) -> Iterator[Text]:
        yield from self.outputs.lines(event.text if self.outputs.full else "")
        yield Text(f"  {len(event.shown)} of {event.files} files read", "dim")

    @_event_lines.register
    def _(self, event: BrowserOutputObservation) -> Iterator[Text]:
        page = f"{plain(event.title)}  {plain(event.url)}" if event.title.strip() else plain(event.url)
        yield Text(f"  {self.outputs.cut(' '.join(page.split()))}", "dim")
        if event.last_action_error:
            yield from self.outputs.lines(event.last_action_error, "bold red", limit=READ_LINES)
        if event.dialog:
            yield from self.outputs.lines(f"dialog: {event.dialog}", "yellow", limit=READ_LINES)
        yield from (Text(f"  downloaded {plain(path)}", "dim") for path in event.downloads)
        if self.outputs.full:
            yield from self.outputs.observation(event, "dim")

    @_event_lines.register
    def _(self, event: FileWriteObservation) -> Iterator[Text]:
        deleted = f", {event.deleted} of {event.lines} lines deleted" if event.deleted else ""
        yield Text(f"  {'created' if event.created else 'written'}{deleted}", "dim")
        yield from self._fault(event)

    @_event_lines.register
    def _(self, event: FileEditObservation) -> Iterator[Text]:
        hunks = re.sub(r"\A--- .*\n\+\+\+ .*\n", "", event.text)
        for line in self.outputs.lines(hunks):
            yield coloured_diff_line(line)
        yield from self._fault(event)

    def _fault(self, event: FileWriteObservation | FileEditObservation) -> Iterator[Text]:
        faults = [f"syntax error: {event.syntax_error}"] if event.syntax_error else event.undefined_names
        if faults:
            yield from self.outputs.lines("\n".join(faults), "yellow", limit=READ_LINES)

    @_event_lines.register
    def _(self, event: ErrorObservation) -> Iterator[Text]:
        yield from self.outputs.observation(event, "red")

    @_event_lines.register
    def _(self, event: UserRejectObservation | HookRejectObservation) -> Iterator[Text]:
        yield Text("  refused", "yellow")  # the approval event, or the hook's, gives the reason

    @_event_lines.register
    def _(self, event: AgentDelegateObservation) -> Iterator[Text]:
        yield from self.outputs.subtask("  <- ", event.text, "cyan")

    @_event_lines.register
    def _(self, event: ForkObservation) -> Iterator[Text]:
        for number, child in enumerate(event.outcomes, 1):
            marks = [line[0] for line in child.diff.splitlines() if re.match(r"[+-](?!\+\+ |-- )", line)]
            changed = f"{child.outcome.replace('_', ' ')}, +{marks.count('+')} -{marks.count('-')} lines"
            words = " ".join(str(child.outputs.get("message") or child.outputs.get("reason") or "").split())
            told = self.outputs.cut(f"; {plain(words)}") if words else ""
            yield Text(f"  <- {number} {plain(short_name(child.agent))}: {changed}{told}", "cyan")

    @_event_lines.register
    def _(self, event: AgentStateChangedObservation) -> Iterator[Text]:
        if event.agent_state == "running":
            return
        if event.agent_state == "awaiting_user_confirmation":
            yield from prefix_lines(plain(event.content), "  needs your approval: ", "yellow")
            return
        style = "bold red" if event.agent_state == "error" else "yellow"
        yield from prefix_lines(plain(event.content), f"  {event.agent_state}: ", style, "  ")

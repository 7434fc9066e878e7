"""The summary of a session in a few lines: its outcome, its cost and the next commands."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rich.text import Text

from handiwork.agents.state import State
from handiwork.cli.terminal.sanitize import plain
from handiwork.errors import Exit
from handiwork.events.describe import state_text
from handiwork.session.user_events import proposes_plan, raised_limit, reached_limit
from handiwork.workspace.changes import Change
from handiwork.workspace.files.names import quoted
from handiwork.workspace.patch import diffstat

_SOURCES = {"price_list": "from the price list", "provider": "from the provider", "scripted": "from the script"}
PATHS = 10
"""The number of changed files named when the agent of a conversation stops."""
_STYLES = {"finished": "bold green", "rejected": "bold red", "error": "bold red"}


def exit_code(state: State) -> Exit:
    """Return the exit code of a run that ended in this state."""
    reason = state.change.reason if state.change else None
    match state.agent_state, reason:
        case "finished", _:
            return Exit.FINISHED
        case _, "limit":
            return Exit.LIMIT
        case _, "model" | "sandbox":
            return Exit.INFRASTRUCTURE
        case "paused", "stuck" | "context":
            return Exit.FAILED
        case (("paused" | "stopped" | "running" | "loading"), _):
            return Exit.INTERRUPTED
        case _:
            return Exit.FAILED


def summary(state: State, session: str, changed: bool, *, interrupted: bool = False) -> list[Text]:
    """Return the lines; ``changed`` means that there are changes to apply.

    ``interrupted`` means that no process runs the session any more, whatever its log says.
    """
    lines = [_line("outcome", *(("interrupted", "bold yellow") if interrupted else _outcome(state)))]
    if message := _message(state):
        lines += [_line("message" if not number else "", line) for number, line in enumerate(message.split("\n"))]
    lines += [
        *cost_lines(state),
        _line("session", session),
        *(_line("next" if not number else "", text) for number, text in enumerate(_next(state, session, changed))),
    ]
    return lines


def cost_lines(state: State) -> list[Text]:
    """Return the lines with the session's steps, tokens, cost and time."""
    return [
        _line("steps", str(state.iteration)),
        _line("tokens", _tokens(state)),
        _line("cost", cost(state)),
        _line("time", duration(state.time)),
    ]


def end_lines(state: State, file_changes: list[Change]) -> list[Text]:
    """Return the lines of a conversation for the moment at which the agent stops, with new changes of files."""
    outcome, style = _outcome(state)
    if state.agent_state == "paused" and state.change is None:
        outcome = "interrupted"
    if state.agent_state == "awaiting_user_confirmation":
        return []  # the question says it
    steps = f"{state.iteration} step{'s' * (state.iteration != 1)}"
    lines = [Text.assemble("\n  ", (outcome, style), (f" · {steps} · {duration(state.time)} · {cost(state)}", "dim"))]
    stats = diffstat(file_changes)
    for path, added, deleted in stats[:PATHS]:
        lines.append(Text.assemble((f"{f'+{added}':>6}", "green"), (f"{f'-{deleted}':>6}  ", "red"), quoted(path)))
    if len(stats) > PATHS:
        lines.append(Text(f"  ... {len(stats) - PATHS} more files", "dim italic"))
    if stats:
        lines.append(Text("  /diff shows the changes, /apply brings them into your folder", "dim"))
    return lines


def cost(state: State) -> str:
    """Return the session's cost and the source of the figure; an unknown cost is never called free."""
    sources = state.totals.cost_sources
    if not sources:
        return "none, no model was called"
    if state.unpriced:
        return f"at least ${state.cost:.4f}, {state.unpriced} calls of unknown price" if state.cost else "unknown"
    if sources == {"local"}:
        return "free (local)"
    return f"${state.cost:.4f} " + " and ".join(sorted(_SOURCES[source] for source in sources if source in _SOURCES))


def duration(seconds: float) -> str:
    """Return a duration as text."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _line(label: str, text: str, style: str = "") -> Text:
    return Text.assemble((f"{label:9}", "dim"), (text, style))


def _outcome(state: State) -> tuple[str, str]:
    why = plain(state.change.content) if state.change else ""
    outcome = state_text(state.agent_state)
    return f"{outcome}: {why}" if why else outcome, _STYLES.get(state.agent_state, "bold yellow")


def _message(state: State) -> str:
    """Return the agent's last words: its message or reason, else its outputs, one a line."""
    if state.agent_state not in ("finished", "rejected"):
        return ""
    others = ((name, value if isinstance(value, str) else json.dumps(value)) for name, value in state.outputs.items())
    text = state.outputs.get("message") or state.outputs.get("reason")
    return plain(str(text or "\n".join(f"{name}: {value}" for name, value in others))).strip()


def _tokens(state: State) -> str:
    used = state.usage
    cached = f"{used.cache_read:,} read from cache, {used.cache_write:,} written to it"
    return f"{used.input:,} in, {used.output:,} out, {cached}"


def _next(state: State, session: str, changed: bool) -> Iterator[str]:
    if changed:
        yield f"handiwork diff {session}"
        yield f"handiwork apply {session}"
    reason = state.change.reason if state.change is not None else None
    if proposes_plan(state):
        yield f"handiwork approve {session}, which accepts the plan"
    if state.agent_state in ("finished", "rejected", "awaiting_user_input"):
        yield f'handiwork resume {session} --message "..."'
    elif state.agent_state == "awaiting_user_confirmation":
        yield f"handiwork approve {session}"
        yield f'handiwork approve {session} --reject --comment "..."'
    elif reason == "limit":
        yield f"handiwork resume {session}, {_higher_limit(state)}"
    elif reason == "stuck":
        yield f"handiwork resume {session} --rewind"
        yield f'handiwork resume {session} --message "a hint"'
    elif reason == "context":
        yield f"handiwork resume {session} --model NAME, with a larger context window"
    else:
        yield f"handiwork resume {session}"


def _higher_limit(state: State) -> str:
    """Return how to go on after the limit that the session has reached."""
    name = reached_limit(state)
    if getattr(state.limits, name) is None or (name == "cost" and state.unpriced):
        return "at a terminal, and answer none to its question for the limit"
    raised = state.iteration + 50 if name == "iterations" else raised_limit(state, name, state.limits)
    return f"with a higher limit like --max-{name} {raised:.10g}"

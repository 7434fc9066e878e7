"""The workspace's files as an agent knows them from its history: the list, the texts read, its own edits."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import ClassVar, TypeVar

from handiwork.agents.history import History, is_from_user
from handiwork.agents.repair.edits import Texts, edits_between
from handiwork.agents.state import State
from handiwork.events.action import (
    AgentFinishAction,
    AgentRejectAction,
    AgentThinkAction,
    CmdRunAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    OutputReadAction,
)
from handiwork.events.base import Action, Observation
from handiwork.events.observation import (
    CmdOutputObservation,
    ErrorObservation,
    FileEditObservation,
    FileReadObservation,
    FileWriteObservation,
    HookRejectObservation,
    IPythonRunCellObservation,
    OutputReadObservation,
    UserRejectObservation,
)

CODE = {
    *(".py", ".pyx", ".pyi", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".tsx", ".vue", ".svelte", ".java", ".kt"),
    *(".kts", ".scala", ".groovy", ".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".m", ".mm", ".cs", ".go", ".rs"),
    *(".rb", ".php", ".pl", ".pm", ".lua", ".sh", ".bash", ".swift", ".dart", ".ex", ".exs", ".erl", ".hs", ".ml"),
    *(".clj", ".r", ".jl", ".nim", ".zig", ".sql", ".f90"),
}
"""Suffixes of programs."""

_PROGRAM = f"\\.({'|'.join(sorted(suffix[1:] for suffix in CODE))})$"

_SKIPPED = (".git", "node_modules", "site-packages", "dist-packages", "__pycache__")
_FIND = rf"\( -name {' -o -name '.join(_SKIPPED)} \) -prune -o -type f -print 2>/dev/null"

MOST_LISTED = 5_000
"""Files that are listed."""

LIST = (
    "{ git -c core.quotePath=off ls-files -co --exclude-standard 2>/dev/null | grep . || "
    f"find * {_FIND}; git -c core.quotePath=off ls-files -s 2>/dev/null | "
    f"awk -F '\\t' '/^160000 / {{ print $2 }}' | while IFS= read -r one; do find \"$one\" {_FIND}; done; }} | "
    f"awk '!/\\// || /{_PROGRAM}/ {{ print; next }} {{ others[++n] = $0 }} "
    "END { for (i = 1; i <= n; i++) print others[i] }' | "
    f"head -n {MOST_LISTED}"
)
"""Lists the files of the workspace, one per line: first programs and the files at its top, then the others.

Those of git's submodules belong to them. Without git, installed packages, which have tests of their own, do not.
"""

REMOVE = "rm -f -- "
"""Removes a file that a candidate made."""

LONGEST_FILE = 4_000
"""Lines of the longest file that is read, unless an agent's progress has another limit."""

PIECE, SMALL_PIECE = 100, 10
"""Lines read at once of a file that is too long for one observation, and of a piece of it that is too long itself."""

_MAY_REPEAT = {"crashed", "interrupted", "sandbox_lost"}
"""Errors after which an action may have run or not."""


def may_repeat(observation: Observation | None) -> bool:
    """Return whether the action ran in part or not at all: the user, the sandbox or the platform ended it."""
    if isinstance(observation, CmdOutputObservation | IPythonRunCellObservation):
        return observation.status in ("interrupted", "time_limit")
    return isinstance(observation, ErrorObservation) and observation.error_id in _MAY_REPEAT


@dataclass
class FileProgress:
    """The files since the user's last task, folded from the history.

    ``listed`` are the paths of the workspace, None until they are known; of a list too long for one observation
    ``listing`` is the output and ``page`` its first lines. ``prefix`` is the way from the shell's directory to the
    workspace. ``originals`` are the files as they were read first, ``actual`` as they are now; ``stale`` files must be
    read again, ``blocked`` ones cannot be edited. ``pieces`` are the first lines of files too long for one observation,
    ``ends`` the numbers of those lines, ``lengths`` the numbers of all lines, and ``dense`` the first lines of pieces
    that are too long themselves. ``replies`` are the model's replies by the thought of their actions, "" for no reply.
    """

    longest: ClassVar[int] = LONGEST_FILE

    task: str
    listed: list[str] | None = None
    listing: str = ""
    page: list[str] = field(default_factory=list[str])
    prefix: str = ""
    originals: Texts = field(default_factory=dict[str, str])
    actual: Texts = field(default_factory=dict[str, str])
    pieces: Texts = field(default_factory=dict[str, str])
    ends: dict[str, int] = field(default_factory=dict[str, int])
    lengths: dict[str, int] = field(default_factory=dict[str, int])
    dense: dict[str, set[int]] = field(default_factory=dict[str, set[int]])
    unreadable: set[str] = field(default_factory=set[str])
    stale: set[str] = field(default_factory=set[str])
    blocked: set[str] = field(default_factory=set[str])
    replies: dict[str, str] = field(default_factory=dict[str, str])
    is_refused: bool = False

    def apply(self, action: Action, observation: Observation | None, reply: str) -> None:
        """Apply the next entry of the history; ``reply`` is the model's, if its action is a thought."""
        match action, observation:
            case _, UserRejectObservation() | HookRejectObservation():
                self.is_refused = True
            case AgentThinkAction(), None:
                self.replies[action.thought] = reply
            case CmdRunAction(), CmdOutputObservation() if not may_repeat(observation):
                self._run(action, observation)
            case OutputReadAction(), OutputReadObservation():
                self.page += observation.content.splitlines()
                self.listed = self.page if observation.end >= observation.lines else None
            case OutputReadAction(), ErrorObservation() if not may_repeat(observation):
                self.listed = self.page
            case FileReadAction(), _:
                self._read(self._inside(action.path), action, observation)
            case FileEditAction() | FileWriteAction(), _:
                self._edit(self._inside(action.path), action, observation)
            case _:
                pass

    @property
    def unlisted(self) -> str:
        """The sentence that not all programs may be listed, "" if they are."""
        last = PurePosixPath(self.listed[-1]) if self.listed else PurePosixPath()
        if len(self.listed or []) < MOST_LISTED or (len(last.parts) > 1 and last.suffix not in CODE):
            return ""
        return f"Only the first {MOST_LISTED:,} files of the workspace were looked at."

    @classmethod
    def reading_limits(cls) -> str:
        """Return which files are not read, for a message that names some."""
        return f"Files of more than {cls.longest:,} lines are not read, and none that are not UTF-8 text."

    def list_files(self, workspace: str) -> Action | None:
        """Return the action that lists the files, or reads on in a long list; None once they are known."""
        if self.listed is None and self.listing:
            return OutputReadAction(output=self.listing, start=len(self.page) + 1)
        return CmdRunAction(command=in_workspace(workspace, LIST)) if self.listed is None else None

    def reads(self, paths: Sequence[str]) -> list[Action]:
        """Return the actions that read those of the files that are not known, or are stale; a long one in pieces."""
        actions: list[Action] = []
        for path in paths:
            if (path in self.actual and path not in self.stale) or path in self.unreadable:
                continue
            if length := self.lengths.get(path, 0):
                pieces = self._piece_lines(path, length)
                actions += [FileReadAction(path=self.prefix + path, start=start, end=end) for start, end in pieces]
            else:
                actions.append(FileReadAction(path=self.prefix + path))
        return actions

    def changes_to(self, wanted: Mapping[str, str]) -> list[Action]:
        """Return the actions that bring the files of the workspace to the ``wanted`` texts."""
        edits = [edit.action(self.prefix) for edit in edits_between(self.actual, wanted)]
        extra = (path for path in self.actual if path not in wanted)
        return [*edits, *(CmdRunAction(command=REMOVE + shlex.quote(self.prefix + path)) for path in extra)]

    def _piece_lines(self, path: str, length: int) -> Iterator[tuple[int, int]]:
        """Yield the first and the last line of each piece of a long file."""
        for start in range(1, length + 1, PIECE):
            size = SMALL_PIECE if start in self.dense.get(path, ()) else PIECE
            yield from ((first, first + size - 1) for first in range(start, min(start + PIECE, length + 1), size))

    def _inside(self, path: str) -> str:
        return path.removeprefix(self.prefix)

    def _run(self, action: CmdRunAction, observation: CmdOutputObservation) -> None:
        if LIST in action.command:
            self.listing = observation.blob or ""
            self.listed = None if observation.blob else observation.content.splitlines()
        elif action.command.startswith(REMOVE):
            self.actual.pop(self._inside(shlex.split(action.command)[-1]), None)

    def _read(self, path: str, action: FileReadAction, observation: Observation | None) -> None:
        match observation:
            case FileReadObservation(blob=None, start=start, content=content):
                if start not in (1, self.ends.get(path, 0) + 1):
                    return  # a piece before it was not read
                text = content if start == 1 else self.pieces.get(path, "") + content
                self.ends[path] = observation.end
                if observation.end >= observation.lines:
                    self.originals.setdefault(path, text)
                    self.actual[path] = text
                    self.stale.discard(path)
                else:
                    self.pieces[path] = text
            case FileReadObservation() if action.end is None:
                self.lengths[path] = observation.lines
                if observation.lines > self.longest:
                    self.unreadable.add(path)
            case FileReadObservation() if (action.end or 0) - observation.start + 1 == PIECE:
                self.dense.setdefault(path, set()).add(observation.start)
            case ErrorObservation(error_id="not_found") if path not in self.originals:
                self.unreadable.add(path)
                self.actual.pop(path, None)
                self.stale.discard(path)
            case _ if may_repeat(observation):
                pass
            case _:
                self.unreadable.add(path)
                self.stale.discard(path)

    def _edit(self, path: str, action: FileEditAction | FileWriteAction, observation: Observation | None) -> None:
        match action, observation:
            case FileEditAction(), FileEditObservation():
                self.actual[path] = self.actual.get(path, "").replace(action.old, action.new, 1)
            case FileWriteAction(), FileWriteObservation():
                self.actual[path] = action.content
            case _:
                self.stale.add(path)
                if not may_repeat(observation):
                    self.blocked.add(path)


P = TypeVar("P", bound=FileProgress)


def fold(kind: type[P], state: State) -> P:
    """Return the progress since the user's last task: the first message, or one after the end of the task before."""
    task, pairs = _last_task(state)
    result = kind(task=task)
    cwd = next((o.cwd for _, o in pairs if isinstance(o, CmdOutputObservation) and o.cwd), state.workspace)
    if cwd.rstrip("/") != state.workspace.rstrip("/"):
        result.prefix = f"{state.workspace.rstrip('/')}/"
    for action, observation in pairs:
        completion = state.completions.get(action.completion or 0)
        result.apply(action, observation, str(completion.response.get("content") or "") if completion else "")
    return result


def _last_task(state: State) -> tuple[str, History]:
    """Return the words of the user's last task, and the history since it."""
    start, is_over = 0, True
    words: list[str] = []
    for number, (action, _) in enumerate(state.history):
        if is_from_user(action):
            if is_over:
                start, words, is_over = number, [], False
            words.append(action.content)
        is_over = is_over or isinstance(action, AgentFinishAction | AgentRejectAction)
    task = state.inputs.get("task")
    return str(task) if task and start == 0 else "\n".join(words), state.history[start:]


def in_workspace(workspace: str, command: str) -> str:
    """Return the command as it runs in the workspace; a delegator's shell may be in another directory."""
    return f"(cd {shlex.quote(workspace)} && {command}\n)" if workspace else command

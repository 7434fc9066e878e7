"""Decide which actions need the user's approval, and match them against the rules that the user has accepted.

A rule is a line of text that the user can read. It stands in the session's log and applies to that session only:

- ``command git push *``: this program and subcommand with any arguments except an option that runs a program
- ``exactly make test``: this command and no other; ``input TEXT`` and ``python CODE`` likewise
- ``edit src/**``: files below a folder, except hidden ones; ``edit setup.py``: this file
- ``browse https://HOST/**``: navigation to any page of the origin; ``browse URL``: this page
- ``browser CALLS``: exactly these browser calls, on any open page, unless they are irreversible there (browser_acts.py)
- ``mcp SERVER TOOL``: this tool of this MCP server, with any arguments

A rule allows names and does not check their meaning: if ``git`` is redefined in the shell, or the shell is in another
directory, an action that the user allowed did that.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from handiwork.events.action import (
    BrowseInteractiveAction,
    BrowseURLAction,
    CmdRunAction,
    CodeSearchAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    IPythonRunCellAction,
    JobAction,
    MCPCallAction,
)
from handiwork.events.base import Action
from handiwork.events.overview import WorkspaceOverviewAction
from handiwork.events.record import Confirmation
from handiwork.session.approval.browser_acts import HARMLESS, OPENING
from handiwork.session.approval.shell_commands import Command, parse, reads_only, takes_any_arguments
from handiwork.session.secrets import names_in

# A short, closed list: the arguments of other programs, such as python or curl, can be dangerous.
_ANY_ARGUMENTS = frozenset({"mkdir", "mypy", "pyright", "pytest", "touch"})
_SUBCOMMANDS: dict[str, frozenset[str]] = {
    "git": frozenset(
        {"add", "branch", "checkout", "commit", "diff", "fetch", "log", "merge", "pull", "push", "show", "stash"}
        | {"status", "switch", "tag"}
    ),
    "cargo": frozenset({"build", "check", "clippy", "fmt", "test"}),
    "go": frozenset({"build", "fmt", "test", "vet"}),
    "npm": frozenset({"test"}),
    "ruff": frozenset({"check", "format"}),
}
_DANGEROUS_OPTIONS = (
    *("config", "exec", "ext-diff", "install-types", "ldflags", "node-options", "open-files-in-pager", "output"),
    *("override-ini", "pdbcls", "prefix", "python", "receive-pack", "rootdir", "script-shell", "strategy"),
    *("toolexec", "upload-pack", "vettool"),
)
_DANGEROUS_LETTERS = {("git", "merge"): "s", ("git", "pull"): "s", ("pytest",): "cop"}
"""Short options, alone or combined behind one dash, that name a program, a plugin or another configuration."""

# A model that reads untrusted pages may write browser calls, so these reject any text that a browser or the
# sandbox's parser of calls could read differently.
_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>[a-z0-9][a-z0-9.-]*)(?::(?P<port>\d{1,5}))?(?:[/?#][!-\[\]-~]*)?", re.IGNORECASE
)
_TEXT = r"""(?:'[^'"\\()#\n]*'|"[^'"\\()#\n]*")"""
_VALUE = rf"(?:{_TEXT}|-?\d+(?:\.\d+)?)"
_CALL = re.compile(rf"(?P<name>[a-z_]+)\((?P<given>(?:{_VALUE}(?:, ?{_VALUE})*)?)\)")
_PORTS = {"http": "80", "https": "443"}
_STILL = frozenset({"noop", "send_msg_to_user", "report_infeasible"})
_LOOKS = _STILL | {"scroll", "tab_focus"}


@dataclass(frozen=True, slots=True)
class ExecutionContext:
    """The environment of actions. ``isolated``: in a sandbox; ``in_place``: on the user's own files, not on a copy.

    ``secrets`` are the names of the secrets that actions can use, ``network`` the hosts that the sandbox may reach,
    ``workspace`` the workspace's path as actions name it. ``unasked``: actions ran without approval, so a command's
    name may now mean another program. ``shadowed`` are the names of reading programs that the workspace's own
    programs share.
    """

    isolated: bool
    in_place: bool
    secrets: frozenset[str] = frozenset()
    network: tuple[str, ...] = ()
    workspace: str = ""
    unasked: bool = False
    shadowed: frozenset[str] = frozenset()


def needs_approval(action: Action, mode: Confirmation, context: ExecutionContext, rules: Collection[str]) -> str | None:
    """Return the reason why the action needs the user's approval; None if it may run.

    "never" asks about nothing. "risky" asks about uses of a secret; without a sandbox, or on the user's own files,
    about every action that is not known to only read; and with network access, about every action that runs programs,
    or writes a file that may decide which programs run; and about every call of an MCP server's tool. "always" asks
    about every action that is not known to only read. No mode asks about actions that ``rules`` allow.
    """
    reason = _approval_reason(action, mode, context)
    if names_in(action, context.secrets) and _exact(action) not in rules:
        return reason  # a wider rule does not cover the use of a secret
    return None if reason is None or _allowed(action, rules) else reason


def only_reads(action: Action, context: ExecutionContext) -> bool:
    """Return whether the action is known to change nothing, which is all that an agent may do in plan mode.

    Opening a page counts as reading, also over the network.
    """
    match action:
        case CmdRunAction(is_input=False, background=False):
            commands = [] if not action.command.strip() else parse(action.command)
            return commands is not None and all(
                reads_only(part) and part.words[0] not in context.shadowed for part in commands
            )
        case JobAction(operation=operation):
            return operation != "stop"
        case BrowseInteractiveAction():
            return only_browses(action)
        case _:
            return isinstance(action, BrowseURLAction) or not _has_effect(action)


def rule_for(action: Action) -> str:
    """Return the rule that "yes, and do not ask again" adds: the widest safe rule, else one for this exact action."""
    exact = _exact(action)
    match action:
        case CmdRunAction(is_input=False):
            commands = parse(action.command) or []
            relevant = [command for command in commands if not reads_only(command)] or commands
            rules = {_rule_for_command(command) for command in relevant}
            return rules.pop() if len(rules) == 1 else exact
        case FileEditAction() | FileWriteAction():
            folder = action.path.rpartition("/")[0]
            return f"edit {folder}/**" if folder and _is_ordinary(action.path) else exact
        case BrowseURLAction() | BrowseInteractiveAction():
            targets = _origins(action) or ()
            return f"browse {next(iter(targets))}/**" if len(targets) == 1 else exact
        case MCPCallAction(server=server, tool=tool):
            return f"mcp {server} {tool}"
        case _:
            return exact


def matches(rule: str, action: Action) -> bool:
    """Return whether the rule alone allows the action; in a compound command, each part that does not only read."""
    return _allowed(action, (rule,))


def only_browses(action: BrowseInteractiveAction) -> bool:
    """Return whether the calls only look, fill in fields, or open pages."""
    calls = _calls(action.browser_actions)
    return calls is not None and all(name in HARMLESS | OPENING for name, _ in calls)


def _approval_reason(action: Action, mode: Confirmation, context: ExecutionContext) -> str | None:
    if mode == "never" or not _has_effect(action):
        return None
    if used := names_in(action, sorted(context.secrets)):
        return f"It uses {'the secret' if len(used) == 1 else 'the secrets'} {', '.join(used)}."
    if isinstance(action, CmdRunAction) and not action.is_input:
        renamed = mode == "always" and context.unasked  # a command that ran unasked may have given names other meanings
        if not renamed and _only_reads(action.command, context):
            return None
    if mode == "always":
        return "You are asked about every action that does more than read."
    if isinstance(action, MCPCallAction):
        return f"It calls {action.tool} of the MCP server {action.server}, which may reach further than the sandbox."
    if not context.isolated:
        return "There is no sandbox: it runs on your machine, as you."
    if context.in_place and not isinstance(action, BrowseURLAction | BrowseInteractiveAction):
        return "It can change your own files: the agent does not work on a copy."
    return _network_reason(action, context) if context.network else None


def _network_reason(action: Action, context: ExecutionContext) -> str | None:
    hosts = ", ".join(context.network)
    if isinstance(action, FileEditAction | FileWriteAction):
        if _is_ordinary(action.path, context.workspace):
            return None
        return (
            f"A hidden file, or one outside the workspace, can decide which programs run, and these may reach {hosts}."
        )
    changed = " Earlier commands, which ran unasked, may have changed what this one does." if context.unasked else ""
    return f"It can send data to the network: the sandbox may reach {hosts}.{changed}"


def _has_effect(action: Action) -> bool:
    """Return whether the action does more than think, send a message or read."""
    if isinstance(action, CodeSearchAction | FileReadAction | WorkspaceOverviewAction):
        return False
    if isinstance(action, CmdRunAction) and not action.is_input and not action.command.strip():
        return False  # waits for more output
    if isinstance(action, BrowseInteractiveAction) and _only_looks(action):
        return False
    return action.runnable


def _only_reads(command: str, context: ExecutionContext) -> bool:
    """Return whether the command only reads, and its programs are known to be the ones that their names say."""
    commands = parse(command)
    if commands is None or (context.network and context.unasked):
        return False
    return all(reads_only(part) and part.words[0] not in context.shadowed for part in commands)


def _allowed(action: Action, rules: Collection[str]) -> bool:
    if _exact(action) in rules:
        return True
    match action:
        case CmdRunAction(is_input=False):
            commands = parse(action.command) or []
            matched = {c for c in commands if any(_matches_command(rule, c) for rule in rules)}
            return bool(matched) and all(c in matched or reads_only(c) for c in commands)
        case FileEditAction() | FileWriteAction():
            return _is_ordinary(action.path) and any(_covers(rule, action.path) for rule in rules)
        case BrowseURLAction() | BrowseInteractiveAction():
            targets = _origins(action)
            return targets is not None and all(f"browse {origin}/**" in rules for origin in targets)
        case MCPCallAction(server=server, tool=tool):
            return f"mcp {server} {tool}" in rules
        case _:
            return False


def _exact(action: Action) -> str:
    """Return the narrowest rule that allows this action."""
    match action:
        case CmdRunAction():
            return f"{'input' if action.is_input else 'exactly'} {action.command}"
        case IPythonRunCellAction():
            return f"python {action.code}"
        case FileEditAction() | FileWriteAction():
            return f"edit {action.path}"
        case BrowseURLAction():
            return f"browse {action.url}"
        case BrowseInteractiveAction():
            return f"browser {action.browser_actions}"
        case _:
            return f"{action.kind} {action.model_dump_json(exclude=set(Action.model_fields))}"


def _rule_for_command(command: Command) -> str:
    program, subcommand, *_ = *command.words, ""
    if program in _ANY_ARGUMENTS or takes_any_arguments(program):
        rule = f"command {program} *"
    else:
        rule = f"command {program} {subcommand} *" if subcommand in _SUBCOMMANDS.get(program, ()) else ""
    return rule if _matches_command(rule, command) else f"exactly {command.text}"


def _matches_command(rule: str, command: Command) -> bool:
    kind, _, rest = rule.partition(" ")
    if kind == "exactly":
        return rest == command.text
    *prefix, last = rest.split(" ")
    if kind != "command" or not prefix or last != "*" or command.words[: len(prefix)] != tuple(prefix):
        return False
    free = command.words[len(prefix) :]
    letters = next(
        (options for words, options in _DANGEROUS_LETTERS.items() if command.words[: len(words)] == words), ""
    )
    return reads_only(command) or not (command.loose or any(_is_dangerous(word, letters) for word in free))


def _is_dangerous(word: str, letters: str) -> bool:
    """Return whether the word is an option that names a program, a file to run or a file to overwrite.

    ``letters`` are such short options of the program.
    """
    name = word.lstrip("-").partition("=")[0]
    if not name or not word.startswith("-"):
        return False
    if not word.startswith("--") and any(letter in name for letter in letters):
        return True
    shortened = word.startswith("--") and any(option.startswith(name) for option in _DANGEROUS_OPTIONS)
    return shortened or name.startswith(_DANGEROUS_OPTIONS)


def _covers(rule: str, path: str) -> bool:
    kind, _, pattern = rule.partition(" ")
    folder = pattern.removesuffix("/**")
    return kind == "edit" and folder not in ("", pattern) and path.startswith(f"{folder}/")


def _is_ordinary(path: str, workspace: str = "") -> bool:
    """Return whether a path has no hidden part (.git, .ssh, .env) and stays below its start, or the ``workspace``."""
    if workspace:
        path = path.removeprefix(f"{workspace}/")
        if path.startswith("/"):
            return False
    return not any(part.startswith((".", "~")) for part in path.split("/"))


def _origin(url: str) -> str | None:
    """Return the URL's scheme, host and port as ``https://host`` or ``http://host:8080``; None for any other URL."""
    match = _URL.fullmatch(url)
    if match is None:
        return None
    scheme, port = match["scheme"].lower(), match["port"]
    suffix = "" if port is None or port == _PORTS[scheme] else f":{port}"
    return f"{scheme}://{match['host'].lower()}{suffix}"


def _origins(action: BrowseURLAction | BrowseInteractiveAction) -> frozenset[str] | None:
    """Return the origins that the action visits; None if it may do more than visit them, or may visit others."""
    if isinstance(action, BrowseURLAction):
        urls = [action.url]
    else:
        calls = _calls(action.browser_actions)
        if calls is None or any(name not in _LOOKS and name != "goto" for name, _ in calls):
            return None
        urls = [arguments[1:-1] for name, arguments in calls if name == "goto"]
    origins = [_origin(url) for url in urls]
    return None if not origins or None in origins else frozenset(origin for origin in origins if origin is not None)


def _only_looks(action: BrowseInteractiveAction) -> bool:
    """Return whether the calls only wait or send a message, and leave the page and its view unchanged."""
    calls = _calls(action.browser_actions)
    return calls is not None and all(name in _STILL for name, _ in calls)


def _calls(text: str) -> list[tuple[str, str]] | None:
    """Return the calls' names and arguments; None if the text is anything but plain calls, one per line."""
    matches = [_CALL.fullmatch(line.strip(" \t")) for line in text.split("\n") if line.strip(" \t")]
    return [(call["name"], call["given"]) for call in matches if call is not None] if matches and all(matches) else None

"""Commands that are not run because they wait for keys or never end."""

from __future__ import annotations

import re
import shlex

from pydantic import BaseModel, ConfigDict, Field

from handiwork.agents.swe_agent.templates import render

_OPERATORS = {"&&", "||", ";", "|", "&", "|&", ";;"}
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


class ToolFilterConfig(BaseModel):
    """The blocked commands: those that begin with the words of a list's entry, and those that equal an entry.

    Only whole words count: ``vi`` does not block ``view``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    blocklist: tuple[str, ...] = (
        *("vim", "vi", "emacs", "nano", "nohup", "gdb", "less", "more", "tail -f", "python -m venv"),
        *("python3 -m venv", "ssh", "top", "htop", "man", "tmux", "screen"),
    )
    blocklist_standalone: tuple[str, ...] = (
        *("python", "python3", "ipython", "bash", "sh", "/bin/bash", "/bin/sh", "zsh", "node", "su", "irb", "sqlite3"),
    )
    block_unless_regex: dict[str, str] = Field(default_factory=dict)
    blocklist_error_template: str = (
        "`{{name}}` waits for keys or never ends, so it cannot be run here. Show and change files with the commands "
        "above, cat or sed; write a script and run it, as in `python script.py`."
    )


def why_blocked(command: str, rules: ToolFilterConfig) -> str:
    """Return the message to the model about a blocked command; "" for an allowed one.

    Each part of the first line is checked by its whole words; here-documents and later lines are not checked.
    """
    for words, is_fed in _parts(command):
        text = " ".join(words)
        blocked = next((entry for entry in rules.blocklist if _begins(words, entry)), None)
        if blocked is None and text in rules.blocklist_standalone and not is_fed:
            blocked = text
        pattern = rules.block_unless_regex.get(words[0])
        if blocked is None and pattern is not None and not re.search(pattern, command):
            blocked = words[0]
        if blocked is not None:
            return render(rules.blocklist_error_template, name=blocked, action=command, command=command)
    return ""


def _parts(command: str) -> list[tuple[list[str], bool]]:
    """Return the words of each part of the first line, and whether the part's input is a pipe or a file."""
    line = next((line for line in command.splitlines() if line.strip()), "")
    try:
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        tokens = list(lexer)
    except ValueError:
        tokens = line.split()
    parts: list[tuple[list[str], bool]] = [([], False)]
    for token in tokens:
        words = parts[-1][0]
        if token in _OPERATORS:
            parts.append(([], token in ("|", "|&")))
        elif token.startswith("<"):
            parts[-1] = (words, True)
        elif words or not _ASSIGNMENT.match(token):
            words.append(token)
    return [part for part in parts if part[0]]


def _begins(words: list[str], entry: str) -> bool:
    begin = entry.split()
    return bool(begin) and words[: len(begin)] == begin

"""Parse shell commands strictly: reject any text that bash might parse differently."""

from __future__ import annotations

import re
from dataclasses import dataclass

# bashlex is GPL and unmaintained, shlex loses the quotes, and a full parser repairs syntax errors. This parser knows
# words that bash takes literally and rejects expansions, redirections, comments, escapes, assignments, keywords,
# background jobs and everything else.
_TOKEN = re.compile(
    r"""(?P<blank> [ \t]+)
      | (?P<operator> (?: && | \|\| | \|(?!&) | ; | \n ) [ \t\n]* )
      | (?P<plain> [A-Za-z0-9_./:=,+@%^~\#-]+ )
      | (?P<glob> [*?\[\]]+ )
      | '(?P<single> [^'\0]* )'
      | "(?P<double> [^"$`\\!\0]* )"
    """,
    re.VERBOSE,
)
_PROGRAM = re.compile(r"[A-Za-z0-9_./+-]+")
_KEYWORDS = frozenset(
    {"if", "then", "elif", "else", "fi", "for", "in", "do", "done", "while", "until", "case", "esac", "function"}
    | {"select", "time", "coproc"}
)

# A program may stand here if no argument of it, and no file or variable that configures it, runs a program or writes
# a file. So git is no reader: the repository, not the arguments, names the programs that git runs to read (fsmonitor,
# filters, textconv, hooks, pagers, signatures, missing objects of a partial clone).
_READERS = frozenset(
    {"basename", "cat", "cmp", "cut", "dirname", "du", "echo", "false", "grep", "head", "id", "ls", "nl", "pwd"}
    | {"readlink", "realpath", "stat", "tail", "tr", "true", "uname", "wc", "which", "whoami"}
)
# Of diff all but -l, --paginate, which starts `pr`.
_DIFF_OPTIONS = re.compile(
    r"""-- | -[abBdeEinNpqrstTuwyZ]+ | -[cCuU]\d+
      | --(?:brief | context | ignore-all-space | ignore-blank-lines | ignore-case | ignore-space-change | minimal
            | new-file | no-dereference | recursive | report-identical-files | side-by-side | text | unified
            | (?:context | unified)=\d+ )""",
    re.VERBOSE,
)
_FIND_OPTIONS = re.compile(
    r"""-(?:\d+ | a | o | not | name | iname | path | ipath | type | maxdepth | mindepth | size | mtime | mmin | newer
           | empty | print | print0)""",
    re.VERBOSE,
)
_SED_LINES = re.compile(r"\d+(?:,(?:\d+|\$))?p")
_NO_OPTIONS = re.compile(r"(?!)")


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command: its ``text``, and the program and arguments that bash parses, with unexpanded patterns.

    ``loose``: a pattern like ``*.py``, with no plain text before it, may expand to any words, also to options.
    """

    text: str
    words: tuple[str, ...]
    loose: bool


def parse(text: str) -> list[Command] | None:
    """Return the simple commands that ``;``, ``&&``, ``||``, ``|`` and newlines join; None if not understood."""
    text = text.strip(" \t\n") + "\n"
    if text.endswith(("&\n", "|\n")):
        return None
    commands: list[Command] = []
    words: list[str] = []
    word: str | None = None
    loose, start, position = False, 0, 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            return None
        kind = str(token.lastgroup)
        piece = str(token[kind])
        if kind in ("blank", "operator"):
            words += [] if word is None else [word]
            word = None
        elif word is None and kind == "plain" and piece[0] in "~#":
            return None
        else:
            word = (word or "") + piece
            loose = loose or (kind == "glob" and word[0] in "-*?[]")
        if kind == "operator":
            commands.append(Command(text[start:position].rstrip(" \t"), tuple(words), loose))
            words, loose, start = [], False, token.end()
        position = token.end()
    return commands if all(map(_names_a_program, commands)) else None


def _names_a_program(command: Command) -> bool:
    program = command.words[0] if command.words else ""
    return _PROGRAM.fullmatch(program) is not None and program not in _KEYWORDS


def reads_only(command: Command) -> bool:
    """Return whether the command is known to write nothing and to start no other program."""
    match command.words:
        case (program, *_) if takes_any_arguments(program):
            return True
        case ("diff", *rest):
            allowed = _DIFF_OPTIONS
        case ("find", *rest):
            allowed = _FIND_OPTIONS
        case ("sed", "-n", script, *rest) if _SED_LINES.fullmatch(script):
            allowed = _NO_OPTIONS
        case _:
            return False
    return not command.loose and all(allowed.fullmatch(word) for word in rest if word.startswith("-"))


def takes_any_arguments(program: str) -> bool:
    """Return whether the program, named without a path, neither writes nor starts programs, with any arguments."""
    return program in _READERS


def reader_names() -> frozenset[str]:
    """Return the names of all programs that have reading commands."""
    return _READERS | {"diff", "find", "sed"}

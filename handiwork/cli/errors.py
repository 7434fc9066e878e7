"""The outermost boundary: turns every exception of a command into one clear message and an exit code."""

from __future__ import annotations

import io
import logging
import os
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

from handiwork.errors import Exit, HandiworkError


def guarded(command: Callable[[], Exit]) -> NoReturn:
    """Run a command and exit with its code; print a traceback only if HANDIWORK_DEBUG is set."""
    # Python has None for a stream that the caller closed.
    sys.stdin, sys.stdout = sys.stdin or open(os.devnull), sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    for stream, errors in ((sys.stdin, "replace"), (sys.stdout, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)
    if not os.environ.get("HANDIWORK_DEBUG"):
        # Without a handler, Python writes the warnings of libraries to stderr, between the lines of the view.
        logging.getLogger().addHandler(logging.NullHandler())
    try:
        code = command()
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = Exit.INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe; without this, Python would complain when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = Exit.BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 - the outermost boundary
        code, text = explain(error)
        if os.environ.get("HANDIWORK_DEBUG"):
            traceback.print_exc()
        say(text)
    sys.exit(int(code))


def say(text: str) -> None:
    """Print a message to the user on stderr, apart from the command's output."""
    from handiwork.cli.terminal.sanitize import plain

    print(f"handiwork: {plain(text)}", file=sys.stderr, flush=True)  # noqa: T201


def explain(error: Exception) -> tuple[Exit, str]:
    """Return the exit code and the message for an exception of a command."""
    if isinstance(error, HandiworkError):
        return error.exit_code, str(error)
    if isinstance(error, OSError):
        return Exit.INFRASTRUCTURE, f"{error.filename or 'the system'}: {error.strerror or error}"
    from handiwork.paths import data_dir

    hint = f"the log is in {data_dir()}; set HANDIWORK_DEBUG=1 to get a traceback"
    return Exit.FAILED, f"internal error: {type(error).__name__}: {error} ({hint})"

"""Reads the blocks of files in a process of its own, which can neither open a file nor reach a network.

Source files may be hostile, and the grammars are C. Once the process has its grammars it gives up everything but to
read its standard input and to write its standard output, as frames: a length in 4 bytes, then JSON. A request is
[language, text], an answer a list of [type, first, last, name, prototype, docstring, words, names] for each block.
``words`` are the sub-words of its text in order, ``names`` the identifiers and sub-words in it. For a file whose
reader fails the answer is the name of the error.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import resource
import struct
import sys

from handiwork.codeindex.blocks import Vocabulary
from handiwork.codeindex.source import read_blocks
from handiwork.codeindex.tree_source import LANGUAGES, tree_blocks

ADDRESS_SPACE = 1 << 30
"""Bytes of memory that a worker may have."""

_FRAME = struct.Struct(">I")
_WARM_UP = "class A(B, c=1):\n    'Text.'\n    def f(self, a: int = 1) -> str: ...\nä = '\\N{BULLET}'\n"

# read, write, close, fstat, lseek, mmap, mprotect, munmap, brk, rt_sigaction, rt_sigprocmask, rt_sigreturn, madvise,
# mremap, sched_yield, getpid, exit, gettimeofday, futex, clock_gettime, exit_group, getrandom: their numbers on x86_64
_ALLOWED = (0, 1, 3, 5, 8, 9, 10, 11, 12, 13, 14, 15, 28, 25, 24, 39, 60, 96, 202, 228, 231, 318)
_X86_64, _EPERM, _ALLOW, _KILL = 0xC000003E, 0x00050001, 0x7FFF0000, 0x80000000
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER, _DIE_WITH_PARENT = 38, 22, 2, 1


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def main() -> None:
    """Answer requests until the input ends; the arguments are the languages whose grammars are needed."""
    vocabulary = Vocabulary()
    for language in (name for name in sys.argv[1:] if name in LANGUAGES):
        tree_blocks(language, "")
    for broken in ("", "("):  # by Python and by its grammar, which import the modules that they need later
        read_blocks("python", _WARM_UP + broken, vocabulary)
    confine()
    while (header := _read(_FRAME.size)) is not None:
        language, text = json.loads(_read(_FRAME.unpack(header)[0]) or b"[]")
        try:
            answer = json.dumps(read_blocks(language, text, vocabulary)).encode()
        except Exception as error:  # noqa: BLE001 - the host names the file, and goes on with the next one
            answer = json.dumps(type(error).__name__).encode()
        _write(_FRAME.pack(len(answer)) + answer)


def confine() -> None:
    """Give up memory without limit, files and processes, and on x86_64 all system calls that are not needed."""
    for limit, most in (
        (resource.RLIMIT_AS, ADDRESS_SPACE),
        (resource.RLIMIT_NOFILE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (most, most))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_DIE_WITH_PARENT, 9, 0, 0, 0)
    if platform.machine() != "x86_64":
        return
    code = [_op(0x20, 4), _op(0x15, _X86_64, if_true=1), _op(0x06, _KILL), _op(0x20, 0)]
    for number in _ALLOWED:
        code += [_op(0x15, number, if_false=1), _op(0x06, _ALLOW)]
    code.append(_op(0x06, _EPERM))
    program = _Program(len(code), b"".join(code))
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(_SECCOMP, _FILTER, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "the process cannot be confined")


def _op(code: int, value: int, *, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def _read(size: int) -> bytes | None:
    """Return exactly ``size`` bytes of the input, None at its end."""
    parts: list[bytes] = []
    while size:
        part = os.read(0, size)
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


if __name__ == "__main__":
    main()

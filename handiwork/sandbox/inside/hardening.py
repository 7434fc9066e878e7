"""Protects this process from the agent's programs, and the kernel from the programs that it starts."""

from __future__ import annotations

import ctypes
import os

_PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 4, 22, 38
_SECCOMP_MODE_FILTER = 2
_INSTRUCTION = 8  # bytes

_libc = ctypes.CDLL(None, use_errno=True)


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def refuse_inspection() -> None:
    """Deny other processes this process's memory, environment and descriptors in /proc, and refuse to be traced.

    The agent's programs have the same uid, and could otherwise modify this process. A child is protected too until it
    executes another program.
    """
    _prctl(_PR_SET_DUMPABLE, 0)


def filter_calls(program: bytes) -> None:
    """Apply a seccomp filter to this process and all its future children. Raises OSError."""
    filters = _FilterProgram(len(program) // _INSTRUCTION, program)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(filters))


def _prctl(option: int, value: int, argument: object = None) -> None:
    # Some options require the remaining arguments to be 0, as wide as a pointer.
    if _libc.prctl(option, ctypes.c_ulong(value), argument, None, None):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))

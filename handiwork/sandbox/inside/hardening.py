"""Protects this process from the agent's programs, and the kernel from those that it starts."""

from __future__ import annotations

import ctypes
import os

_PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 4, 22, 38
_SECCOMP_MODE_FILTER = 2
_INSTRUCTION = 8  # bytes

_libc = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def refuse_inspection() -> None:
    """Close this process's memory, environment and descriptors in /proc to other processes, and refuse to be traced.

    The agent's programs have the same uid, and could rewrite this one otherwise. A child is protected too until it
    runs a program of its own.
    """
    _prctl(_PR_SET_DUMPABLE, 0)


def filter_calls(program: bytes) -> None:
    """Have the kernel hold this process, and all that it starts, to a seccomp filter. Raises OSError."""
    filters = _Program(len(program) // _INSTRUCTION, program)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(filters))


def _prctl(option: int, value: int, argument: object = None) -> None:
    # Some options demand that the rest be 0, as wide as a pointer is.
    if _libc.prctl(option, ctypes.c_ulong(value), argument, None, None):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))

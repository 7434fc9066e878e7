"""The system calls a sandbox may not make, as a classic BPF program for bubblewrap's ``--seccomp``."""

from __future__ import annotations

import base64
import struct

from handiwork.errors import SandboxError

_AUDIT_ARCH_X86_64 = 0xC000003E
_X32_BIT = 0x40000000
_LOAD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL_PROCESS = 0x7FFF0000, 0x80000000
_EPERM, _ENOSYS, _EAFNOSUPPORT = 0x00050001, 0x00050026, 0x00050061
_OFFSET_NUMBER, _OFFSET_ARCH, _OFFSET_ARGUMENT_0, _OFFSET_ARGUMENT_1 = 0, 4, 16, 24

_CLONE, _CLONE3, _IOCTL, _SOCKET, _SOCKETPAIR = 56, 435, 16, 41, 53
_CLONE_NEWUSER = 0x10000000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C

FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
"""The allowed socket families; all others are refused with EAFNOSUPPORT.

A network namespace does not confine all of them: an AF_VSOCK socket reaches a virtual machine's host from every one.
"""

DENIED = {
    "acct": 163,
    "add_key": 248,
    "bpf": 321,
    "clock_adjtime": 305,
    "clock_settime": 227,
    "delete_module": 176,
    "fanotify_init": 300,
    "finit_module": 313,
    "fsconfig": 431,
    "fsmount": 432,
    "fsopen": 430,
    "fspick": 433,
    "init_module": 175,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "io_uring_setup": 425,
    "ioperm": 173,
    "iopl": 172,
    "kcmp": 312,
    "kexec_file_load": 320,
    "kexec_load": 246,
    "keyctl": 250,
    "lookup_dcookie": 212,
    "mount": 165,
    "mount_setattr": 442,
    "move_mount": 429,
    "name_to_handle_at": 303,
    "nfsservctl": 180,
    "open_by_handle_at": 304,
    "open_tree": 428,
    "open_tree_attr": 467,
    "perf_event_open": 298,
    "pidfd_getfd": 438,
    "pivot_root": 155,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "ptrace": 101,
    "quotactl": 179,
    "quotactl_fd": 443,
    "reboot": 169,
    "request_key": 249,
    "setns": 308,
    "settimeofday": 164,
    "swapoff": 168,
    "swapon": 167,
    "syslog": 103,
    "umount2": 166,
    "unshare": 272,
    "userfaultfd": 323,
    "vhangup": 153,
}
"""Refused with EPERM, by their x86_64 numbers."""


def program(machine: str) -> bytes:
    """Return the filter for a machine as uname names it.

    It refuses ``DENIED``, user namespaces, terminal injection and sockets of families outside ``FAMILIES``. Raises
    SandboxError for all but x86_64, whose numbers these are.
    """
    if machine != "x86_64":
        raise SandboxError(
            f"the bubblewrap sandbox runs on x86_64 machines only, and this is {machine}: use Docker with --image."
        )
    code = [
        _op(_LOAD, _OFFSET_ARCH),
        _op(_JUMP_EQUAL, _AUDIT_ARCH_X86_64, if_true=1),
        _op(_RETURN, _KILL_PROCESS),
        _op(_LOAD, _OFFSET_NUMBER),
        _op(_JUMP_GREATER_EQUAL, _X32_BIT, if_false=1),
        _op(_RETURN, _EPERM),
        # The flags of clone3 are behind a pointer. It is reported as missing, so that libc uses clone.
        _op(_JUMP_EQUAL, _CLONE3, if_false=1),
        _op(_RETURN, _ENOSYS),
    ]
    for number in DENIED.values():
        code += [_op(_JUMP_EQUAL, number, if_false=1), _op(_RETURN, _EPERM)]
    code += [
        _op(_JUMP_EQUAL, _CLONE, if_false=4),
        _op(_LOAD, _OFFSET_ARGUMENT_0),
        _op(_JUMP_SET, _CLONE_NEWUSER, if_false=1),
        _op(_RETURN, _EPERM),
        _op(_RETURN, _ALLOW),
        _op(_JUMP_EQUAL, _IOCTL, if_false=5),
        _op(_LOAD, _OFFSET_ARGUMENT_1),
        _op(_JUMP_EQUAL, _TIOCSTI, if_true=1),
        _op(_JUMP_EQUAL, _TIOCLINUX, if_false=1),
        _op(_RETURN, _EPERM),
        _op(_RETURN, _ALLOW),
    ]
    for number in (_SOCKET, _SOCKETPAIR):
        code += [_op(_JUMP_EQUAL, number, if_false=len(FAMILIES) + 3), _op(_LOAD, _OFFSET_ARGUMENT_0)]
        code += [_op(_JUMP_EQUAL, family, if_true=len(FAMILIES) - n) for n, family in enumerate(FAMILIES.values())]
        code += [_op(_RETURN, _EAFNOSUPPORT), _op(_RETURN, _ALLOW)]
    code.append(_op(_RETURN, _ALLOW))
    return b"".join(code)


def _op(code: int, value: int, *, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def server_arguments(machine: str) -> list[str]:
    """Return the arguments that make the server inside a container filter system calls, besides Docker's own filter.

    On another machine, emulated programs make that machine's calls, which the filter's numbers do not fit: then none.
    """
    if machine != "x86_64":
        return []
    return ["--seccomp", base64.b64encode(program(machine)).decode()]

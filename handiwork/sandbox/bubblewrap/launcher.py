"""The step between the platform and bubblewrap: makes the mounts, drops root, becomes bubblewrap.

Runs as a program of its own (standard library only); its argument is the descriptor of its marshalled plan.

All steps happen in one process: as root, first a mount namespace, in which the sources are staged before root is
dropped; then, for every user, a user namespace that owns the overlays; finally bubblewrap, nested in that namespace.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import resource
import stat
import struct
import sys

# Modules that are slow to import, such as typing, json and signal, are avoided: every start waits for them.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STAGE = "/tmp"
"""Covered by the launcher's own file system, in its mount namespace only; sources appear in it by name."""

_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_MS_NOSUID, _MS_NODEV, _MS_REC, _MS_SLAVE = 2, 4, 0x4000, 1 << 19
_SYS_OPEN_TREE, _SYS_MOVE_MOUNT, _SYS_MOUNT_SETATTR = 428, 429, 442
_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_OPEN_TREE_CLONE, _MOVE_MOUNT_F_EMPTY_PATH, _MOUNT_ATTR_IDMAP = 1, 4, 0x00100000
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4
_SIGKILL = 9

_libc = ctypes.CDLL(None, use_errno=True)


class LaunchError(Exception):
    """A step failed; the text is shown to the user."""


def main() -> None:
    """Execute the plan; does not return."""
    with open(int(sys.argv[1]), "rb") as file:
        plan: dict[str, Any] = marshal.load(file)
    try:
        _launch(plan)
    except (LaunchError, OSError) as error:
        sys.exit(f"{error}")


def _launch(plan: dict[str, Any]) -> None:
    uid, gid = plan["uid"], plan["gid"]
    for processes in plan["cgroups"]:
        _write(processes, str(os.getpid()))
    if os.geteuid() == 0:
        _unshare(_CLONE_NEWNS)
        _stage(plan, uid, gid)
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
        # A change of uid hides /proc/self from the process itself, and the maps are written there.
        _call("prctl", _PR_SET_DUMPABLE, 1, 0, 0, 0)
        _enter_user_namespace(uid, gid)
    else:
        _enter_user_namespace(uid, gid)
        _stage(plan, uid, gid)
    for overlay in plan["overlays"]:
        _mount("overlay", overlay["target"], "overlay", 0, overlay["options"])
    for limit, value in plan["rlimits"].items():
        resource.setrlimit(limit, (value, value))
    os.nice(plan["nice"])
    # Both the change of uid and the user namespace clear it, so it is set only now.
    _call("prctl", _PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
    if os.getppid() != plan["parent"]:
        raise LaunchError("the platform's process ended")
    os.chdir("/")
    os.execve(plan["command"][0], plan["command"], {})


def _enter_user_namespace(uid: int, gid: int) -> None:
    _unshare(_CLONE_NEWUSER | _CLONE_NEWNS)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{uid} {uid} 1")
    _write("/proc/self/gid_map", f"{gid} {gid} 1")


def _stage(plan: dict[str, Any], uid: int, gid: int) -> None:
    """Bring every source to ``STAGE`` under its name; cloned first, because the stage may cover them."""
    _mount("none", "/", "", _MS_REC | _MS_SLAVE, "")
    trees = [(name, _clone_tree(source, uid, gid)) for name, source in plan["sources"].items()]
    _mount("tmpfs", STAGE, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=755")
    os.chdir(STAGE)
    for name, tree in trees:
        if stat.S_ISDIR(os.fstat(tree).st_mode):
            os.mkdir(name)
        else:
            _write(name, "")
        _syscall(_SYS_MOVE_MOUNT, tree, b"", _AT_FDCWD, name.encode(), _MOVE_MOUNT_F_EMPTY_PATH)
        os.close(tree)
    for directory in plan["directories"]:
        os.makedirs(directory)
    for name, text in plan["files"].items():
        _write(name, text)


def _clone_tree(source: dict[str, Any], uid: int, gid: int) -> int:
    path: str = source["path"]
    try:
        if not source["owned"] and not source["below"]:
            return _syscall(_SYS_OPEN_TREE, _AT_FDCWD, path.encode(), _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_RECURSIVE)
        handle = _handle(path, source["below"])
        tree = _syscall(_SYS_OPEN_TREE, handle, b"", _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_EMPTY_PATH)
        os.close(handle)
        if not source["owned"]:
            return tree
        owner = os.fstat(tree)
        if owner.st_uid != uid:
            _map_owner(tree, (owner.st_uid, uid), (owner.st_gid, gid))
    except OSError as error:
        raise LaunchError(f"cannot mount {path} in the sandbox: {error.strerror}") from error
    return tree


def _handle(path: str, below: str) -> int:
    """Open the path, following no link ``below`` a directory that an agent may write to."""
    if not below:
        return os.open(path, os.O_PATH | os.O_CLOEXEC)
    handle = os.open(below, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in os.path.relpath(path, below).split("/"):
        parent = handle
        handle = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        os.close(parent)
    return handle


def _map_owner(tree: int, uids: tuple[int, int], gids: tuple[int, int]) -> None:
    """Swap the first and the second uid and gid in this mount: the files of each appear as the other's."""
    ready_read, ready_write = os.pipe()
    end_read, end_write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(end_write)
        failed = _libc.unshare(_CLONE_NEWUSER)
        os.write(ready_write, b"x" if failed else b".")
        os.read(end_read, 1)
        os._exit(0)
    os.close(end_read)
    os.close(ready_write)
    try:
        if os.read(ready_read, 1) != b".":
            raise LaunchError("the kernel gave no user namespace for an idmapped mount")
        _write(f"/proc/{child}/uid_map", f"{uids[0]} {uids[1]} 1")
        _write(f"/proc/{child}/gid_map", f"{gids[0]} {gids[1]} 1")
        namespace = os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
        attributes = struct.pack("QQQQ", _MOUNT_ATTR_IDMAP, 0, 0, namespace)
        _syscall(_SYS_MOUNT_SETATTR, tree, b"", _AT_EMPTY_PATH, attributes, len(attributes))
        os.close(namespace)
    finally:
        os.close(end_write)
        os.close(ready_read)
        os.waitpid(child, 0)


def _unshare(flags: int) -> None:
    try:
        _call("unshare", flags)
    except OSError as error:
        raise LaunchError(
            f"this machine does not allow unprivileged user namespaces ({error.strerror}): change the kernel setting "
            "that `handiwork doctor` names; in a container, start it with `--security-opt seccomp=unconfined "
            "--security-opt apparmor=unconfined`; or use Docker with --image"
        ) from error


def _mount(source: str, target: str, kind: str, flags: int, options: str) -> None:
    try:
        _call("mount", source.encode(), os.fsencode(target), kind.encode(), flags, options.encode())
    except OSError as error:
        raise LaunchError(f"cannot mount {kind or 'the root'} at {target}: {error.strerror}") from error


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _call(function: str, *arguments: object) -> int:
    return _check(_libc[function](*arguments))


def _syscall(number: int, *arguments: object) -> int:
    return _check(_libc.syscall(number, *arguments))


def _check(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


if __name__ == "__main__":
    main()

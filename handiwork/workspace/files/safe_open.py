"""Opening files in a tree that another program may be changing, without following a symbolic link in any component.

All code on the host that copies, snapshots, compares or applies a workspace opens its files here. ``open_beneath`` is
the one function that turns a path into a descriptor; the others build on it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import threading
import unicodedata
from collections.abc import Collection, Generator, Iterator
from contextlib import ExitStack, contextmanager
from io import BufferedReader
from pathlib import Path

from handiwork.errors import WorkspaceError

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
LONGEST_PATH = 4000

_HANDLE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_OPENAT2 = 437
_RESOLVE_NO_MAGICLINKS, _RESOLVE_NO_SYMLINKS, _RESOLVE_BENEATH = 0x02, 0x04, 0x08
_UNUSABLE = frozenset({errno.ENOSYS, errno.EPERM, errno.EAGAIN, errno.ENAMETOOLONG})
_libc = ctypes.CDLL(None, use_errno=True)
_unlock_lock = threading.RLock()


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def is_git_name(name: str) -> bool:
    """Return whether a file system may treat ``name`` as ``.git``, ignoring case and invisible characters.

    Windows also ignores dots and blanks at the end, takes the part behind a colon for a stream, and has a short name.
    """
    if not name.isascii():
        name = "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
    return name.lower().partition(":")[0].rstrip(" .") in (".git", "git~1")


def parts_of(path: str) -> list[str]:
    """Return the components of a relative path. Raises WorkspaceError if one is "", "." or "..", or has a NUL."""
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\0" in path:
        raise WorkspaceError(f"{path!r} is not a path below the workspace")
    return parts


def join(folder: str, name: str) -> str:
    """Return the relative path of a name in a folder; "" is the top."""
    return f"{folder}/{name}" if folder else name


def open_beneath(directory: int, path: str, flags: int) -> int:
    """Return a descriptor of ``path`` below an open directory.

    Uses openat2 if the kernel has it, else opens the path component by component. Raises NotADirectoryError if a
    component is a link (with O_PATH the last one may be), OSError, and WorkspaceError as ``parts_of`` does.
    """
    parts = parts_of(path)
    if len(parts) > 1:
        resolve = _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS
        how = _OpenHow(flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0, resolve)
        arguments = (directory, os.fsencode(path), ctypes.byref(how), ctypes.c_size_t(ctypes.sizeof(how)))
        descriptor = _libc.syscall(_OPENAT2, *arguments)
        if descriptor >= 0:
            return descriptor
        code = ctypes.get_errno()
        if code not in _UNUSABLE:
            code = errno.ENOTDIR if code == errno.ELOOP else code
            raise OSError(code, os.strerror(code), path)
    return open_by_parts(directory, parts, flags)


def open_by_parts(directory: int, parts: list[str], flags: int) -> int:
    """Open a path like ``open_beneath``, component by component, on any kernel."""
    current = directory
    try:
        for number, part in enumerate(parts, 1):
            part_flags = flags if number == len(parts) else _HANDLE | os.O_DIRECTORY
            child = os.open(part, part_flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=current)
            if current != directory:
                os.close(current)
            current = child
    except OSError as error:
        if current != directory:
            os.close(current)
        if error.errno == errno.ELOOP:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), "/".join(parts)) from error
        raise
    return current


def open_folder(directory: int, path: str) -> int:
    """Return a descriptor of the directory ``path`` like ``open_beneath``; "" means the open directory itself."""
    return open_beneath(directory, path, DIRECTORY) if path else os.open(".", DIRECTORY, dir_fd=directory)


@contextmanager
def parent_beneath(directory: int, path: str) -> Generator[tuple[int, str]]:
    """Yield a descriptor of the parent of ``path`` like ``open_folder``, and the last name."""
    folder, _, name = path.rpartition("/")
    parent = open_folder(directory, folder)
    try:
        yield parent, name
    finally:
        os.close(parent)


def open_resolved(directory: Path) -> int:
    """Return a descriptor of a directory; fail if its absolute path has, or has since gained, a symbolic link."""
    top = os.open("/", DIRECTORY)
    relative = str(directory).lstrip("/")
    if not relative:
        return top
    try:
        return open_beneath(top, relative, DIRECTORY)
    finally:
        os.close(top)


@contextmanager
def open_dir(root: Path, path: str = "") -> Generator[int]:
    """Yield a descriptor of the directory ``path`` below ``root``, even if its mode forbids it to us, its owner.

    Raises FileNotFoundError, NotADirectoryError.
    """
    top = os.open(root, _HANDLE | os.O_DIRECTORY)
    try:
        with open_dir_at(top, path) as descriptor:
            yield descriptor
    finally:
        os.close(top)


@contextmanager
def open_dir_at(directory: int, path: str) -> Generator[int]:
    """Yield a descriptor like ``open_dir``, below an open directory; "" and "." mean the directory itself."""
    path = "" if path == "." else path
    try:
        descriptor = open_folder(directory, path)
    except PermissionError:
        with _open_unlocked(directory, path) as descriptor:
            yield descriptor
        return
    try:
        if not _is_closed(os.fstat(descriptor)):
            yield descriptor
            return
        with _open_unlocked(directory, path) as unlocked:
            yield unlocked
    finally:
        os.close(descriptor)


@contextmanager
def open_parent(root: Path, path: str) -> Generator[tuple[int, str]]:
    """Yield a descriptor of the parent of ``path``, and the last name. Raises as ``open_dir`` does."""
    parent, _, name = path.rpartition("/")
    parts_of(path)
    with open_dir(root, parent) as descriptor:
        yield descriptor, name


def look(root: Path, path: str) -> os.stat_result | None:
    """Return the status of ``path`` itself; None if it does not exist or a parent is not a real directory."""
    top = -1
    try:
        top = os.open(root, _HANDLE | os.O_DIRECTORY)
        return look_at(top, path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    finally:
        if top >= 0:
            os.close(top)


def look_at(directory: int, path: str) -> os.stat_result | None:
    """Return the status like ``look``, below an open directory."""
    try:
        handle = open_beneath(directory, path, _HANDLE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError:
        parent, _, name = path.rpartition("/")
        with open_dir_at(directory, parent) as descriptor:  # unlocks directories that we own
            return dict(entries_of(descriptor)).get(name)
    try:
        return os.fstat(handle)
    finally:
        os.close(handle)


def open_regular(parent: int, name: str) -> int:
    """Return a descriptor for reading a regular file of an open directory; the mode of an own file does not matter.

    Raises OSError, including for any other type of file.
    """
    try:
        descriptor = open_beneath(parent, name, FILE)
    except PermissionError:
        with _open_unlocked(parent, name, 0o400) as unlocked:
            descriptor = os.dup(unlocked)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no longer a regular file", name)
    return descriptor


def open_file(root: Path, path: str) -> BufferedReader:
    """Open a regular file for reading. Raises WorkspaceError if it is of another type or cannot be read."""
    try:
        with open_parent(root, path) as (parent, name):
            return os.fdopen(open_regular(parent, name), "rb")
    except OSError as error:
        raise WorkspaceError(f"{path!r} cannot be read: {error.strerror}; look at the changes again") from error


def read_link(root: Path, path: str) -> str:
    """Return the target of a symbolic link. Raises WorkspaceError if ``path`` is not a link."""
    try:
        with open_parent(root, path) as (parent, name):
            return os.readlink(name, dir_fd=parent)
    except OSError as error:
        raise WorkspaceError(f"{path!r} is no longer a symbolic link; look at the changes again") from error


def walk(root: Path, path: str = "", prune: Collection[str] = ()) -> Iterator[tuple[str, os.stat_result]]:
    """Yield path and status of everything below ``path``, parents first, without ``.git`` and the ``prune`` paths.

    Raises WorkspaceError for a directory that cannot be read.
    """
    pending = [path]
    while pending:
        folder = pending.pop()
        prefix = f"{folder}/" if folder else ""
        for name, status in entries(root, folder):
            if is_git_name(name) or (below := prefix + name) in prune:
                continue
            yield below, status
            if stat.S_ISDIR(status.st_mode):
                pending.append(below)


def entries(root: Path, path: str) -> list[tuple[str, os.stat_result]]:
    """Return name and status of each entry; an empty list if ``path`` is missing or no longer a directory.

    Raises WorkspaceError if it cannot be read.
    """
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise WorkspaceError(f"directories are nested too deeply at {path[:100]!r}...; remove them")
    try:
        with open_dir(root, path) as descriptor:
            return entries_of(descriptor)
    except (FileNotFoundError, NotADirectoryError):
        return []  # it has been removed in the meantime
    except OSError as error:
        raise WorkspaceError(f"directory {path!r} cannot be read: {error.strerror}") from error


def entries_of(descriptor: int) -> list[tuple[str, os.stat_result]]:
    """Return name and status of each entry of an open directory. Raises OSError."""
    results: list[tuple[str, os.stat_result]] = []
    with os.scandir(descriptor) as listing:
        for entry in listing:
            try:
                results.append((entry.name, entry.stat(follow_symlinks=False)))
            except FileNotFoundError:
                continue  # it has been removed in the meantime
    return results


def entries_beneath(directory: int, path: str) -> list[tuple[str, os.stat_result]]:
    """Return name and status of each entry of a directory like ``open_folder``. Raises OSError."""
    descriptor = open_folder(directory, path)
    try:
        return entries_of(descriptor)
    finally:
        os.close(descriptor)


def _is_closed(status: os.stat_result) -> bool:
    """Return whether the mode of a directory that we own keeps us from listing it or searching it."""
    return os.geteuid() != 0 and status.st_uid == os.geteuid() and status.st_mode & 0o500 != 0o500


@contextmanager
def _open_unlocked(directory: int, path: str, last: int = 0o500) -> Generator[int]:
    """Yield a descriptor for reading ``path`` below an open directory, making every component that we own readable.

    Restores the modes at the end. Runs in one thread at a time, so that no thread takes another's temporary mode for
    the agent's.
    """
    with _unlock_lock, ExitStack() as stack:
        current = os.dup(directory)  # opening "." would need search permission
        stack.callback(os.close, current)
        parts = parts_of(path) if path else []
        if last & 0o100:
            _unlock(stack, current, last)
        for number, part in enumerate(parts, 1):
            current = os.open(part, _HANDLE, dir_fd=current)
            stack.callback(os.close, current)
            _unlock(stack, current, last if number == len(parts) else 0o500)
        descriptor = os.open(f"/proc/self/fd/{current}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        stack.callback(os.close, descriptor)
        yield descriptor


def _unlock(stack: ExitStack, handle: int, needed: int) -> None:
    status = os.fstat(handle)
    mode = stat.S_IMODE(status.st_mode)
    if not (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if mode & needed != needed and status.st_uid == os.geteuid():
        os.chmod(f"/proc/self/fd/{handle}", mode | needed)
        stack.callback(os.chmod, f"/proc/self/fd/{handle}", mode)

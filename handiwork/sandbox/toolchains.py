"""The user's compilers, interpreters and package managers that the sandbox may see, read-only."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from handiwork.errors import SandboxError
from handiwork.paths import home_dir

SYSTEM = tuple(Path(f"/{name}") for name in ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "nix"))
"""Directories of the operating system, visible in every sandbox if they exist."""

CREDENTIALS = (
    ".aws",
    ".azure",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config",
    ".docker",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pypirc",
    ".ssh",
)
"""Never visible, even inside mounted directories."""

DAEMONS = ("docker.sock", "podman/podman.sock", "containerd/containerd.sock", "crio/crio.sock")
"""Sockets of container daemons, relative to the runtime directory."""

_DESKTOP = ("run", "desktop")

_NO_PYTHON = ("usr", "home", "root", "proc", "run", ".ssh")
"""Names in a directory that is a system's root or somebody's home, even if a Python is installed there."""


@dataclass
class Toolchains:
    """``roots`` are mounted at their own paths; ``path`` and ``variables`` make programs find them."""

    roots: list[Path] = field(default_factory=list[Path])
    path: list[str] = field(default_factory=list[str])
    variables: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, *roots: Path) -> None:
        """Add roots that are not yet covered by the system's directories or earlier roots."""
        for root in roots:
            if not any(root.is_relative_to(seen) for seen in (*SYSTEM, *self.roots)):
                self.roots.append(root)


def find_toolchains(workspace: Path, environment: Mapping[str, str]) -> Toolchains:
    """Return the toolchains of the project's virtual environment, else the active one, and known kinds on PATH."""
    home = Path(environment.get("HOME") or "/nonexistent")
    toolchains = Toolchains()
    active = [Path(environment["VIRTUAL_ENV"]).absolute()] if environment.get("VIRTUAL_ENV") else []
    for virtual in (*_environments(workspace), *filter(_may_be_shown, active)):
        if (virtual / "pyvenv.cfg").is_file():
            toolchains.path.append(str(virtual / "bin"))
            toolchains.variables["VIRTUAL_ENV"] = str(virtual)
            outside = [] if virtual.is_relative_to(workspace) else [virtual]
            toolchains.add(*outside, *_interpreter_roots(virtual))
            break
    for entry in map(Path, filter(None, environment.get("PATH", "").split(":"))):
        if entry.is_dir() and (any(map(entry.is_relative_to, SYSTEM)) or _add_known(toolchains, entry, home)):
            toolchains.path.append(str(entry))
    toolchains.path = list(dict.fromkeys([*toolchains.path, "/usr/local/bin", "/usr/bin", "/bin"]))
    return toolchains


def programs_of(workspace: Path, names: Collection[str]) -> frozenset[str]:
    """Return the names for which a virtual environment of the workspace has programs, which come first on the PATH."""
    folders = [virtual / "bin" for virtual in _environments(workspace)]
    return frozenset(name for name in names if any(os.path.lexists(folder / name) for folder in folders))


def _environments(workspace: Path) -> list[Path]:
    return [workspace / name for name in (".venv", "venv")]


def _add_known(toolchains: Toolchains, entry: Path, home: Path) -> bool:
    """Add the toolchain that a directory of PATH belongs to; return whether its kind is known."""
    if entry.is_relative_to(home / ".pyenv"):
        toolchains.add(home / ".pyenv")
        toolchains.variables["PYENV_ROOT"] = str(home / ".pyenv")
    elif entry.is_relative_to(home / ".nvm"):
        toolchains.add(home / ".nvm")
    elif entry == home / ".cargo/bin":
        # Not all of .cargo: cargo downloads into the sandbox's own home.
        toolchains.add(entry, *filter(Path.is_dir, [home / ".rustup"]))
        toolchains.variables["RUSTUP_HOME"] = str(home / ".rustup")
    elif entry.is_relative_to(home / ".local/share/uv/python"):
        toolchains.add(home / ".local/share/uv/python")
    elif (entry.parent / "conda-meta").is_dir():
        toolchains.add(entry.parent)
    elif entry.is_relative_to("/opt") and len(entry.parts) > 2:
        toolchains.add(Path(*entry.parts[:3]))
    else:
        return False
    return True


def _interpreter_roots(virtual: Path) -> Iterable[Path]:
    """Yield the installations that a virtual environment's interpreter leads to, by name and with links resolved.

    The environment is part of the project, which may be hostile: only directories that look like a Python are returned.
    """
    lines = (virtual / "pyvenv.cfg").read_text(errors="replace").splitlines()
    settings = {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in lines)}
    folders = [Path(settings["home"])] if settings.get("home", "").startswith("/") else []
    link = virtual / "bin/python"
    for _ in range(8):
        if not link.is_symlink():
            break
        link = link.parent / link.readlink()
        folders.append(link.parent)
    for folder in folders:
        for root in (folder.parent, folder.resolve().parent):
            if _is_python(root):
                yield root


def _is_python(root: Path) -> bool:
    return _may_be_shown(root) and any(root.glob("lib/python3*/os.py")) and any(root.glob("bin/python3*"))


def _may_be_shown(root: Path) -> bool:
    """Return whether a directory is no system's root and nobody's home, and has none below it."""
    real, home = root.resolve(), home_dir()
    has_home = home is not None and home.resolve().is_relative_to(real)
    return not has_home and not any((real / name).exists() for name in _NO_PYTHON)


def check_mounts(paths: Iterable[Path]) -> None:
    """Raise SandboxError if a path does not exist, contains a container daemon's socket, or holds credentials."""
    paths = tuple(paths)
    check_no_daemon(paths)
    for path in paths:
        if not path.exists():
            raise SandboxError(f"cannot mount {path} in the sandbox: it does not exist.")
        for part in (path, path.resolve()):
            if any(f"/{name}/" in f"{part}/" for name in CREDENTIALS):
                raise SandboxError(f"will not mount {path} in the sandbox: credentials are kept there.")


def check_no_daemon(paths: Iterable[Path]) -> None:
    """Raise SandboxError if a path contains a container daemon's socket: access to it means root on this machine."""
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR") or "/nonexistent")
    host = os.environ.get("DOCKER_HOST", "")
    candidates = [Path(f"/run/{name}") for name in DAEMONS]
    candidates += [runtime / name for name in DAEMONS]
    if home := home_dir():
        candidates += [home / f".docker/{name}/docker.sock" for name in _DESKTOP]
    candidates += [Path(host.removeprefix("unix://"))] if host.startswith("unix://") else []
    # Sockets the user may not look up are out of the sandbox's reach too.
    sockets = [candidate.resolve() for candidate in candidates if os.path.exists(candidate)]
    for path in paths:
        for socket in sockets:
            if socket.is_relative_to(path.resolve()):
                raise SandboxError(
                    f"will not show {path} in the sandbox: it contains {socket}, which makes anyone root."
                )


def credentials_in(roots: Iterable[Path]) -> list[Path]:
    """Return the existing credential paths directly below the roots, which must be covered."""
    return [root / name for root in roots for name in CREDENTIALS if (root / name).exists()]

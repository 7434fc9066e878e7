"""The view of the machine in a bubblewrap sandbox: its mounts, its environment, its identity."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from handiwork.sandbox.bubblewrap.launcher import STAGE
from handiwork.sandbox.bundle import BROWSER, PREFIX
from handiwork.sandbox.egress.inside import CERTIFICATES, SOCKET, variables
from handiwork.sandbox.toolchains import SYSTEM, Toolchains, credentials_in
from handiwork.workspace import in_place
from handiwork.workspace.layers import (
    HOME_LAYER,
    WORKSPACE_LAYER,
    SandboxPaths,
    git_layers,
    home_layers,
    layers_of,
    mount_layer,
)

HOME = "/home/agent"
UID = 1000

_FILES = {
    "passwd": f"root:x:0:0::/:/usr/sbin/nologin\nagent:x:{UID}:{UID}::{HOME}:/bin/bash\n"
    "nobody:x:65534:65534::/:/usr/sbin/nologin\n",
    "group": f"root:x:0:\nagent:x:{UID}:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "hostname": "sandbox\n",
}


@dataclass
class MountPlan:
    """Collects the launcher's plan: ``sources`` to stage by name, ``overlays``, and bubblewrap's ``arguments``."""

    sources: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    overlays: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    directories: list[str] = field(default_factory=list[str])
    files: dict[str, str] = field(default_factory=lambda: {**_FILES, "empty-file": ""})
    arguments: list[str] = field(default_factory=list[str])

    def stage(self, name: str, path: Path, *, owned: bool = False, below: Path | None = None) -> str:
        """Let the launcher bring ``path`` to the stage, and return its path there.

        With ``owned``, the directory's owner is mapped to the sandbox's uid if they differ. No link is followed
        ``below`` a directory that an agent may have written to.
        """
        directory = "" if below is None else str(below)
        self.sources[name] = {"path": str(path), "owned": owned and os.geteuid() == 0, "below": directory}
        return f"{STAGE}/{name}"

    def plan(self) -> dict[str, Any]:
        """Return the launcher's part of the plan."""
        names = ("sources", "overlays", "directories", "files")
        return {name: getattr(self, name) for name in names}

    def add(self, *arguments: str | Path) -> None:
        """Add arguments for bubblewrap."""
        self.arguments += map(str, arguments)

    def add_system(self) -> None:
        """Show the operating system read-only, with the sandbox's own devices, processes and accounts."""
        for path in SYSTEM:
            if path.is_symlink():
                self.add("--symlink", path.readlink(), path)
            elif path.is_dir():
                self.add("--ro-bind", path, path)
        for name in _FILES:
            if Path("/etc", name).is_file():
                self.add("--ro-bind", f"{STAGE}/{name}", f"/etc/{name}")
        self.add("--dev", "/dev", "--proc", "/proc", "--dir", "/run", "--dir", "/var")
        self.add("--symlink", "/run", "/var/run", "--symlink", "/tmp", "/var/tmp")

    def add_private(self, paths: SandboxPaths, shared_memory: int) -> None:
        """Mount the session's own home, /tmp, and ``shared_memory`` bytes, which outlive the processes that use them.

        With a snapshot's layer, the session's home is laid over the snapshot's.
        """
        if paths.layer:
            self.stage("layer", paths.layer, owned=True)
            self.stage("overlay", paths.session_dir / "overlay")
            self.directories.append("home")
            self.overlays.append(_overlay("home", f"layer/{HOME_LAYER}", str(home_layers(Path()))))
        self.add("--size", str(shared_memory), "--perms", "1777", "--tmpfs", "/dev/shm")
        self.add("--bind", self.stage("tmp", paths.session_dir / "tmp"), "/tmp")
        self.add("--bind", f"{STAGE}/home" if paths.layer else self.stage("home", paths.session_dir / "home"), HOME)

    def add_bundle(self, bundle: Path, inside: Path, browser: Path | None) -> None:
        """Show the platform's own programs, the server's code, and the browser if it is installed."""
        self.add("--ro-bind", self.stage("bundle", bundle), PREFIX)
        self.add("--ro-bind", self.stage("inside", inside), f"{PREFIX}/app")
        if browser is not None:
            self.add("--ro-bind", self.stage("browser", browser), BROWSER)

    def add_read_only(self, paths: Sequence[Path]) -> None:
        """Show paths of the machine at their own paths, read-only, with credentials in them covered."""
        for number, path in enumerate(sorted(paths)):
            self.add("--ro-bind", self.stage(f"root-{number}", path), path)
        for path in credentials_in(paths):
            self.add(*(("--tmpfs", path) if path.is_dir() else ("--ro-bind", f"{STAGE}/empty-file", path)))

    def add_copy(self, paths: SandboxPaths, base: Path) -> None:
        """Mount the session's copy over ``base`` at the workspace, with the real workspace's mounts below it.

        The agent can change those too: each has its own upper layer. A snapshot's layer of each, if any, comes in
        between.
        """
        snapshot_layer = "layer/{}:".format if paths.layer else "".format
        self.stage("base", base, owned=True)
        self.stage("overlay", paths.session_dir / "overlay")
        self.directories += ["workspace", "removed", "points", *(f"points/{name}" for name in paths.mounts)]
        self.overlays.append(_overlay("workspace", snapshot_layer(WORKSPACE_LAYER) + "base:points", "overlay"))
        for number, name in enumerate(paths.mounts):
            directory = "removed"
            if paths.has(name):
                directory = f"mount-{number}"
                self.stage(directory, paths.workspace / name, owned=True, below=paths.workspace)
            layers = layers_of(Path(), name)
            lower = snapshot_layer(mount_layer(name)) + directory
            self.overlays.append(_overlay(f"workspace/{name}", lower, str(layers)))
        self.add("--bind", f"{STAGE}/workspace", paths.workspace)

    def add_in_place(self, workspace: Path, protected: Sequence[str], session_dir: Path) -> None:
        """Mount the real directory, except the parts through which the agent could make the user's git run programs."""
        stage = self.stage("workspace", workspace, owned=True)
        for path, access in in_place.mounts(workspace, protected):
            source = Path(stage, path)
            if access == "layered":
                self.stage("original-git", workspace / path, owned=True, below=workspace)
                self.stage("overlay", session_dir / "overlay")
                self.directories.append("git")
                self.overlays.append(_overlay("git", "original-git", str(git_layers(Path()))))
                source = Path(STAGE, "git")
            self.add("--ro-bind" if access == "read-only" else "--bind", source, workspace / path)

    def add_egress(self, proxy: Path, certificates: Path | None) -> None:
        """Show the proxy's socket and the machine's trusted certificates, and make programs use both."""
        self.add("--ro-bind", self.stage("proxy", proxy), SOCKET)
        if certificates is not None:
            self.add("--ro-bind", self.stage("certificates", certificates.resolve()), CERTIFICATES)
        for name, value in variables(certificates is not None).items():
            self.add("--setenv", name, value)

    def add_environment(self, tools: Toolchains) -> None:
        """Set the environment, which is otherwise empty."""
        path = ":".join([*tools.path, f"{PREFIX}/bin"])
        environment = {**agent_environment("/bin/bash", path), "LANG": "C.UTF-8", **tools.variables}
        for name, value in environment.items():
            self.add("--setenv", name, value)


def agent_environment(shell: str, path: str) -> dict[str, str]:
    """Return the variables of the user that the agent's programs run as."""
    names = {"HOME": HOME, "USER": "agent", "LOGNAME": "agent", "SHELL": shell, "TMPDIR": "/tmp", "PATH": path}
    # The search for leaks takes ptrace, which is refused: every program with an address sanitizer would fail.
    return {**names, "LSAN_OPTIONS": "detect_leaks=0", **git_environment()}


def git_environment() -> dict[str, str]:
    """Return the variables that let git commit, and work on files owned by another uid."""
    names = {f"GIT_{role}_NAME": "Handiwork" for role in ("AUTHOR", "COMMITTER")}
    addresses = {f"GIT_{role}_EMAIL": "handiwork@localhost" for role in ("AUTHOR", "COMMITTER")}
    trust = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    return {**names, **addresses, **trust}


def _overlay(target: str, lower: str, layers: str) -> dict[str, str]:
    options = f"lowerdir={lower},upperdir={layers}/upper,workdir={layers}/work,userxattr"
    return {"target": target, "options": options}

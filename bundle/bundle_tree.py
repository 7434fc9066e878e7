"""The tree that is mounted at /opt/handiwork in every sandbox.

It holds CPython with its libraries, a shell and the tools that make the sandbox, all taken from Debian packages,
and the Python libraries of bundle.lock.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from elf import LOADER, Elf, is_dynamic
from steps import PREFIX, PYTHON, compile_bytecode, copy_licences, install

PROGRAMS = {
    "python3": f"usr/bin/{PYTHON}",
    "bash": "bin/bash",
    "busybox": "bin/busybox",
    "bwrap": "usr/bin/bwrap",
    "setpriv": "usr/bin/setpriv",
    "unshare": "usr/bin/unshare",
    "rg": "usr/bin/rg",
}
PACKAGES = (
    f"{PYTHON}-minimal lib{PYTHON}-minimal lib{PYTHON}-stdlib bash busybox-static bubblewrap ripgrep util-linux "
    "libc6 libgcc-s1 libstdc++6 zlib1g libbz2-1.0 liblzma5 libexpat1 libffi8 libssl3 libsqlite3-0 libuuid1 "
    "libreadline8 libtinfo6 libncursesw6 libcrypt1 libdb5.3 libselinux1 libpcre2-8-0 libcap2 libcap-ng0"
).split()
# Wanted by wheels that an agent installs on top; nothing in the bundle itself links to all of them.
EXTRA_LIBRARIES = [
    "libstdc++.so.6",
    "libgcc_s.so.1",
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
    "libutil.so.1",
    "libresolv.so.2",
    "libnss_files.so.2",
    "libnss_dns.so.2",
]
# nis is long gone from networks and would bring Kerberos along.
DROPPED = ("idlelib", "turtledemo", "tkinter", "lib2to3", "pydoc_data", "test", "lib-dynload/nis.*.so")
MOUNT_POINTS = ("app", "browser")
"""For the code of the action server and for the browser's tree."""


def assemble(stage: Path, root: Path, elf: Elf) -> None:
    """Lay out the tree, from packages unpacked in ``stage``."""
    (root / "bin").mkdir(parents=True)
    (root / "lib").mkdir()
    for name, source in PROGRAMS.items():
        shutil.copy(stage / source, root / "bin" / name)
    alias = root / "bin/python"
    alias.write_text(f'#!{PREFIX}/bin/bash\nexec {PREFIX}/bin/python3 "$@"\n')
    alias.chmod(0o755)
    copy_standard_library(stage / "usr/lib" / PYTHON, root / "lib" / PYTHON)
    libraries = root / "lib/python3/dist-packages"
    install("bundle.lock", libraries)
    shutil.rmtree(libraries / "bin")  # scripts that start with the path of this machine's Python
    (libraries / "app.pth").write_text(f"{PREFIX}/app\n")
    programs = [path for name in PROGRAMS if is_dynamic(path := root / "bin" / name)]
    linked = elf.needed([*programs, *root.glob("lib/python3*/**/*.so*")])
    brought = {path.name for path in libraries.glob("*.libs/*.so*")}  # by a wheel, whose modules find them
    elf.copy_libraries(stage, (linked | set(EXTRA_LIBRARIES)) - brought, root / "lib")
    copy_licences(stage, root)
    # A wheel holds no empty directory.
    for name in MOUNT_POINTS:
        (root / name).mkdir()
        (root / name / ".mount-point").touch()
    python = [root / "lib" / LOADER, "--library-path", root / "lib", root / "bin/python3"]
    compile_bytecode(python, root / "lib", root, PREFIX)
    for program in programs:
        elf.relocate(program, f"{PREFIX}/lib")


def copy_standard_library(source: Path, target: Path) -> None:
    """Copy with links followed, except those out of the package, which point to files of the machine."""

    def outside(folder: str, names: list[str]) -> set[str]:
        return {
            name for name in names if Path(folder, name).is_symlink() and Path(folder, name).readlink().is_absolute()
        }

    shutil.copytree(source, target, ignore=outside)
    for pattern in DROPPED:
        for path in target.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()

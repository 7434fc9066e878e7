"""Build the wheel handiwork-bundle: ``build.py OUT_DIR`` prints the path of the wheel it made or found there.

The wheel holds one directory tree that is mounted at /opt/handiwork in every sandbox: CPython with its
libraries, a shell and the tools that make the sandbox, all taken from Debian packages, and the Python
libraries of requirements.lock. Needs Debian's apt and dpkg, and uv; not root.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from pack import write_wheel

PREFIX = "/opt/handiwork"
PYTHON = "python3.11"
HERE = Path(__file__).resolve().parent

PROGRAMS = {
    "python3": f"usr/bin/{PYTHON}",
    "bash": "bin/bash",
    "busybox": "bin/busybox",
    "bwrap": "usr/bin/bwrap",
    "setpriv": "usr/bin/setpriv",
    "unshare": "usr/bin/unshare",
}
PACKAGES = (
    f"{PYTHON}-minimal lib{PYTHON}-minimal lib{PYTHON}-stdlib bash busybox-static bubblewrap util-linux "
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


class BuildError(Exception):
    """The bundle cannot be built here; the text says what to do."""


class PackagesError(BuildError):
    """apt-get does not give the packages."""


def run(command: Sequence[str | Path], cwd: Path | None = None) -> str:
    """Run a command and return its output. Raises BuildError with what it said."""
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise BuildError(f"the bundle's build needs the program {command[0]}: install it") from error
    if done.returncode:
        raise BuildError(f"{command[0]} failed while building the bundle:\n{done.stderr.strip()}")
    return done.stdout


def apt_download(lists: Sequence[str], *options: str, cwd: Path) -> str:
    """Run ``apt-get download`` for all packages, without its own user, who could not write to ``cwd``."""
    try:
        return run(["apt-get", "-qq", "-o", "APT::Sandbox::User=root", *lists, *options, "download", *PACKAGES], cwd)
    except BuildError as error:
        raise PackagesError(f"{error}\nIt is made from Debian 12 packages, which apt-get must offer.") from error


def private_lists(folder: Path) -> list[str]:
    """Fetch package lists of our own, which takes no rights, and return the options that make apt-get use them."""
    for part in ("lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    options = ["-o", f"Dir::State::lists={folder}/lists", "-o", f"Dir::Cache={folder}/cache"]
    run(["apt-get", "-qq", "-o", "APT::Sandbox::User=root", *options, "update"])
    return options


def fingerprint(lists: Sequence[str]) -> str:
    """Name everything the wheel is made from: this code, the locks, and the packages' versions and checksums."""
    listing = apt_download(lists, "--print-uris", cwd=HERE)
    digest = hashlib.sha256()
    # The first field is the mirror's address, which does not change what is in the package.
    for package in sorted(line.split(" ", 1)[1] for line in listing.splitlines() if line):
        digest.update(package.encode())
    for source in sorted(HERE.iterdir()):
        if source.suffix in {".py", ".lock"}:
            digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


def fetch(work: Path, lists: Sequence[str]) -> tuple[Path, Path]:
    """Download and unpack; return the folder of the Debian packages and the program patchelf."""
    packages, stage, tools = work / "packages", work / "stage", work / "tools"
    packages.mkdir()
    apt_download(lists, cwd=packages)
    for package in sorted(packages.iterdir()):
        run(["dpkg-deb", "-x", package, stage])
    install(HERE / "tools.lock", tools)
    return stage, tools / "bin/patchelf"


def install(lock: Path, target: Path) -> None:
    """Install exactly what ``lock`` says, checked by its hashes, into the directory ``target``."""
    platform = ["--python-version", "3.11", "--python-platform", "x86_64-manylinux_2_28"]
    checks = ["--require-hashes", "--only-binary", ":all:", "--no-deps", "--link-mode", "copy"]
    run(["uv", "-q", "pip", "install", "--python", sys.executable, *platform, *checks, "-r", lock, "--target", target])


def assemble(stage: Path, root: Path, patchelf: Path) -> None:
    """Lay out the tree that is mounted at the prefix."""
    (root / "bin").mkdir(parents=True)
    (root / "lib").mkdir()
    for name, source in PROGRAMS.items():
        shutil.copy(stage / source, root / "bin" / name)
    alias = root / "bin/python"
    alias.write_text(f'#!{PREFIX}/bin/bash\nexec {PREFIX}/bin/python3 "$@"\n')
    alias.chmod(0o755)
    copy_standard_library(stage / "usr/lib" / PYTHON, root / "lib" / PYTHON)
    libraries = root / "lib/python3/dist-packages"
    install(HERE / "requirements.lock", libraries)
    shutil.rmtree(libraries / "bin")  # scripts that start with the path of this machine's Python
    (libraries / "app.pth").write_text(f"{PREFIX}/app\n")
    (libraries / ".lock").unlink(missing_ok=True)
    copy_shared_libraries(stage, root, patchelf)
    copy_licences(stage / "usr/share/doc", root / "share/doc")
    # A wheel holds no empty directory; the code of the action server is mounted over this one.
    (root / "app").mkdir()
    (root / "app/.mount-point").touch()


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


def copy_shared_libraries(stage: Path, root: Path, patchelf: Path) -> None:
    """Copy every library that a program or extension module links to, under its soname."""

    def needed(files: Iterable[Path]) -> set[str]:
        return {name for file in files for name in run([patchelf, "--print-needed", file]).split()}

    programs = [path for name in PROGRAMS if is_dynamic(path := root / "bin" / name)]
    wanted = needed([*programs, *root.glob("lib/python3*/**/*.so")]) | set(EXTRA_LIBRARIES)
    folders = [stage / "lib/x86_64-linux-gnu", stage / "usr/lib/x86_64-linux-gnu", stage / "lib64"]
    while wanted:
        name = wanted.pop()
        source = next((folder / name for folder in folders if (folder / name).is_file()), None)
        if source is None:
            raise BuildError(f"no package in PACKAGES has {name}, which something in the bundle links to")
        shutil.copy(source, root / "lib" / name)
        wanted |= {other for other in needed([source]) if not (root / "lib" / other).exists()}


def is_dynamic(program: Path) -> bool:
    """Whether a program asks for a loader, as static ones do not."""
    return b"/ld-linux-x86-64.so.2\0" in program.read_bytes()[:4096]


def relocate(root: Path, patchelf: Path) -> None:
    """Make the programs run from the prefix with the bundle's own loader and libraries.

    The old DT_RPATH is chosen since it wins over LD_LIBRARY_PATH and holds for modules loaded later.
    """
    interpreter = ["--set-interpreter", f"{PREFIX}/lib/ld-linux-x86-64.so.2"]
    for name in PROGRAMS:
        if is_dynamic(program := root / "bin" / name):
            run([patchelf, *interpreter, "--force-rpath", "--set-rpath", f"{PREFIX}/lib", "--no-default-lib", program])


def compile_bytecode(root: Path) -> None:
    """Compile with the bundle's own Python; unchecked, since installing a wheel changes the sources' times."""
    python = [root / "lib/ld-linux-x86-64.so.2", "--library-path", root / "lib", root / "bin/python3", "-I", "-S", "-B"]
    places = ["-s", root, "-p", PREFIX, "--invalidation-mode", "unchecked-hash", root / "lib"]
    run([*python, "-m", "compileall", "-q", "-f", "-j", "0", *places])


def copy_licences(source: Path, target: Path) -> None:
    """Copy the packages' copyright files."""
    for file in source.glob("*/copyright"):
        (target / file.parent.name).mkdir(parents=True)
        shutil.copy(file, target / file.parent.name)


def build(out: Path) -> Path:
    """Return the wheel in ``out`` that is made from today's packages, building it if it is not there."""
    if os.uname().machine != "x86_64":
        raise BuildError(f"the bundle is built on x86_64 only, not on {os.uname().machine}")
    try:
        return build_with(out, [])
    except PackagesError:
        # The machine's package lists are missing or old.
        with tempfile.TemporaryDirectory(prefix="handiwork-apt-") as folder:
            return build_with(out, private_lists(Path(folder)))


def build_with(out: Path, lists: Sequence[str]) -> Path:
    """Return the wheel as ``build`` does, by apt-get's ``lists``."""
    version = f"0.1.0+k{fingerprint(lists)}"
    wheel = out / f"handiwork_bundle-{version}-py3-none-manylinux_2_17_x86_64.whl"
    if wheel.exists():
        return wheel
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix=".build-") as work:
        stage, patchelf = fetch(Path(work), lists)
        root = Path(work, "handiwork_bundle/root")
        assemble(stage, root, patchelf)
        compile_bytecode(root)
        relocate(root, patchelf)
        (root.parent / "__init__.py").write_text('"""Holds the tree ``root``, see handiwork.sandbox.bundle."""\n')
        write_wheel(root.parent, Path(work, wheel.name))
        Path(work, wheel.name).rename(wheel)
    return wheel


def main() -> None:
    """Run from the command line."""
    if len(sys.argv) != 2:
        sys.exit("usage: build.py OUT_DIR")
    os.umask(0o022)
    try:
        wheel = build(Path(sys.argv[1]).absolute())
    except BuildError as error:
        sys.exit(str(error))
    sys.stdout.write(f"{wheel}\n")


if __name__ == "__main__":
    main()

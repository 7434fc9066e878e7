"""Programs and shared libraries that run from one place, with a loader and libraries of their own."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from steps import BuildError, run

LOADER = "ld-linux-x86-64.so.2"
FOLDERS = ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu/pulseaudio", "lib64")
"""Where Debian's packages have libraries."""


class Elf:
    """Reads and changes ELF files with the program ``patchelf``."""

    def __init__(self, patchelf: Path) -> None:
        self._patchelf = patchelf

    def needed(self, files: Iterable[Path]) -> set[str]:
        """Return the names of the libraries that the files link to."""
        return {name for file in files for name in run([self._patchelf, "--print-needed", file]).split()}

    def copy_libraries(self, stage: Path, wanted: Iterable[str], target: Path) -> None:
        """Copy libraries, and all that they link to, from the packages in ``stage`` to the folder ``target``.

        Raises BuildError for one that is in no package.
        """
        left = set(wanted)
        folders = [stage / folder for folder in FOLDERS]
        while left:
            name = left.pop()
            source = next((folder / name for folder in folders if (folder / name).is_file()), None)
            if source is None:
                raise BuildError(f"no package in PACKAGES has {name}, which something in {target} links to")
            shutil.copy(source, target / name)
            left |= {other for other in self.needed([source]) if not (target / other).exists()}

    def relocate(self, program: Path, libraries: str) -> None:
        """Make a program run with the loader and the libraries that will be in the folder ``libraries``.

        The old DT_RPATH is chosen since it wins over LD_LIBRARY_PATH and holds for modules loaded later.
        """
        interpreter = ["--set-interpreter", f"{libraries}/{LOADER}"]
        paths = ["--force-rpath", "--set-rpath", libraries, "--no-default-lib"]
        run([self._patchelf, *interpreter, *paths, program])

    def forget_paths(self, folder: Path) -> None:
        """Remove the search paths of the libraries in ``folder``, which would come before that of the program."""
        for library in folder.iterdir():
            if run([self._patchelf, "--print-rpath", library]).strip():
                run([self._patchelf, "--remove-rpath", library])


def is_dynamic(program: Path) -> bool:
    """Whether a program asks for a loader, as static ones do not."""
    with program.open("rb") as file:
        return f"/{LOADER}\0".encode() in file.read(4096)

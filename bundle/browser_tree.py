"""The tree that is mounted at /opt/handiwork/browser: Chromium and Playwright.

Chromium without windows, its libraries and fonts come from Debian packages, Playwright and websockets from
browser.lock. The programs have a loader and libraries of their own, as both must be of one version; only the Python is
the bundle's.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from elf import LOADER, Elf
from steps import PREFIX, PYTHON, compile_bytecode, copy_licences, install

HOME = f"{PREFIX}/browser"
LIBRARIES = f"{HOME}/lib"

PACKAGES = (
    "chromium-headless-shell chromium-common fonts-dejavu-core fonts-liberation2 fonts-wqy-microhei "
    "libasound2 libasyncns0 libatk1.0-0 libatomic1 libatspi2.0-0 libblkid1 libbrotli1 libbsd0 libc6 libcap2 libdav1d6 "
    "libdbus-1-3 libdouble-conversion3 libdrm2 libexpat1 libffi8 libflac12 libfontconfig1 libfreetype6 libgbm1 "
    "libgcc-s1 libgcrypt20 libglib2.0-0 libgpg-error0 libgraphite2-3 libharfbuzz-subset0 libharfbuzz0b "
    "libjpeg62-turbo liblcms2-2 liblz4-1 liblzma5 libmd0 libminizip1 libmount1 libmp3lame0 libmpg123-0 libnspr4 "
    "libnss3 libogg0 libopenh264-7 libopenjp2-7 libopus0 libpcre2-8-0 libpng16-16 libpulse0 libselinux1 libsndfile1 "
    "libsqlite3-0 libstdc++6 libsystemd0 libudev1 libvorbis0a libvorbisenc2 libwayland-server0 libx11-6 libx11-xcb1 "
    "libxau6 libxcb1 libxcomposite1 libxdamage1 libxdmcp6 libxext6 libxfixes3 libxi6 libxkbcommon0 libxnvctrl0 "
    "libxrandr2 libxrender1 libzstd1 zlib1g "
    f"{PYTHON}-minimal lib{PYTHON}-minimal lib{PYTHON}-stdlib"  # to compile with, not in the tree
).split()
PROGRAMS = ("chromium-headless-shell", "chrome_crashpad_handler")
GRAPHICS = ("libEGL.so", "libGLESv2.so", "libvk_swiftshader.so", "libvulkan.so.1")
# Chromium loads these by name, for encrypted connections.
LOADED = ("libsoftokn3.so", "libfreebl3.so", "libfreeblpriv3.so", "libnssckbi.so")
# What Playwright's driver shows to people: its recorder, viewer of traces, reports; types, and installers of browsers.
DROPPED = ("lib/vite", "types", "bin")

LAUNCHER = f"""\
#!{PREFIX}/bin/busybox sh
unset LD_PRELOAD LD_LIBRARY_PATH
export FONTCONFIG_FILE={HOME}/fonts.conf
exec {HOME}/chromium/{PROGRAMS[0]} "$@"
"""
DRIVER = f"""\
#!{PREFIX}/bin/busybox sh
unset LD_PRELOAD LD_LIBRARY_PATH NODE_OPTIONS NODE_PATH
exec {HOME}/bin/node "$@"
"""
FAMILIES = {
    ("sans-serif", "system-ui", "Arial", "Helvetica"): "Liberation Sans",
    ("serif", "Times", "Times New Roman"): "Liberation Serif",
    ("monospace", "Courier", "Courier New"): "Liberation Mono",
}


def assemble(stage: Path, root: Path, elf: Elf) -> None:
    """Lay out the tree, from packages unpacked in ``stage``."""
    programs = copy_chromium(stage / "usr/lib/chromium", root)
    modules = root / "python"
    install("browser.lock", modules)
    shutil.rmtree(modules / "bin", ignore_errors=True)  # scripts that start with the path of this machine's Python
    driver = modules / "playwright/driver"
    for name in DROPPED:
        shutil.rmtree(driver / "package" / name)
    (driver / "node").rename(root / "bin/node")
    programs.append(root / "bin/node")
    for path, text in ((root / "bin/chromium", LAUNCHER), (driver / "node", DRIVER)):
        path.write_text(text)
        path.chmod(0o755)
    (root / "lib").mkdir()
    graphics = [root / "chromium" / name for name in GRAPHICS]
    elf.copy_libraries(stage, {LOADER, *LOADED} | elf.needed([*programs, *graphics]), root / "lib")
    elf.forget_paths(root / "lib")
    for program in programs:
        elf.relocate(program, LIBRARIES)
    add_fonts(stage / "usr/share/fonts", root)
    copy_licences(stage, root)
    compile_bytecode(staged_python(stage), modules, root, HOME)


def copy_chromium(source: Path, root: Path) -> list[Path]:
    """Copy Chromium's programs with their own files, and return where the programs are."""
    target = root / "chromium"
    (root / "bin").mkdir(parents=True)
    (target / "locales").mkdir(parents=True)
    data = [*source.glob("*.pak"), *source.glob("*.bin"), *source.glob("*.dat"), *source.glob("*.json")]
    for file in (*data, source / "locales/en-US.pak", *(source / name for name in (*PROGRAMS, *GRAPHICS))):
        shutil.copy(file, target / file.relative_to(source))
    return [target / name for name in PROGRAMS]


def add_fonts(source: Path, root: Path) -> None:
    """Copy all fonts and say which stand for those that pages ask for."""
    (root / "fonts").mkdir()
    for file in (*source.rglob("*.ttf"), *source.rglob("*.ttc")):
        shutil.copy(file, root / "fonts")
    aliases = [
        f'  <alias binding="same"><family>{name}</family><prefer><family>{family}</family></prefer></alias>'
        for names, family in FAMILIES.items()
        for name in names
    ]
    lines = [
        '<?xml version="1.0"?>',
        '<!DOCTYPE fontconfig SYSTEM "fonts.dtd">',
        "<fontconfig>",
        f"  <dir>{HOME}/fonts</dir>",
        "  <cachedir>/tmp/.handiwork-fonts</cachedir>",
        *aliases,
        "</fontconfig>",
    ]
    (root / "fonts.conf").write_text("\n".join(lines) + "\n")


def staged_python(stage: Path) -> list[str | Path]:
    """The command that runs the bundle's version of Python from its packages."""
    libraries = f"{stage}/lib/x86_64-linux-gnu:{stage}/usr/lib/x86_64-linux-gnu"
    return [stage / "lib/x86_64-linux-gnu" / LOADER, "--library-path", libraries, stage / "usr/bin" / PYTHON]

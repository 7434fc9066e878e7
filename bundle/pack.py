"""Write a wheel from a folder, the same bytes for the same files."""

from __future__ import annotations

import base64
import hashlib
import stat
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo


def write_wheel(package: Path, wheel: Path, summary: str, level: int) -> None:
    """Write the folder ``package`` as the wheel ``wheel``, whose file name gives name, version and tag.

    Files that their owner can execute stay so. Raises ValueError on a symbolic link, which no wheel can hold.
    """
    name, version, tag = wheel.name.removesuffix(".whl").split("-", 2)
    info = f"{name}-{version}.dist-info"
    record: list[str] = []
    with ZipFile(wheel, "w", ZIP_DEFLATED) as archive:

        def add(path: str, data: bytes, executable: bool) -> None:
            member = ZipInfo(path)
            member.compress_type = ZIP_DEFLATED
            member.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
            archive.writestr(member, data, compresslevel=level)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f'"{path}",sha256={digest},{len(data)}')

        for file in sorted(package.rglob("*")):
            if file.is_symlink():
                raise ValueError(f"a wheel holds no symbolic links: {file}")
            if file.is_file():
                path = file.relative_to(package.parent).as_posix()
                add(path, file.read_bytes(), bool(file.stat().st_mode & stat.S_IXUSR))
        add(f"{info}/METADATA", metadata(name, version, summary).encode(), executable=False)
        add(f"{info}/WHEEL", wheel_metadata(tag).encode(), executable=False)
        record.append(f'"{info}/RECORD",,')
        archive.writestr(ZipInfo(f"{info}/RECORD"), "\n".join(record) + "\n")


def metadata(name: str, version: str, summary: str) -> str:
    """The package's own metadata."""
    project = name.replace("_", "-")
    return f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\nSummary: {summary}\n"


def wheel_metadata(tag: str) -> str:
    """What kind of wheel it is."""
    return f"Wheel-Version: 1.0\nGenerator: handiwork-bundle\nRoot-Is-Purelib: false\nTag: {tag}\n"

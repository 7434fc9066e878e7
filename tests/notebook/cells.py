"""What is asked of notebooks again and again."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

from tests.inside.inside_client import Client


async def cell(client: Client, code: str, **fields: Any) -> dict[str, Any]:
    """Run a cell and return its observation; there is time, however busy the machine is."""
    return await client.execute("IPythonRunCellAction", code=code, **{"timeout": 60, **fields})


async def text(client: Client, code: str) -> str:
    """Run a cell that must end well and return its output."""
    observation = await cell(client, code)
    assert (observation["status"], observation["error"]) == ("done", None), observation
    return observation["content"]


def png(width: int = 1, height: int = 1) -> bytes:
    """A black picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\0" * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def showing(picture: bytes, times: int = 1) -> str:
    """A cell that shows a picture, as any object can that knows its own."""
    data = base64.b64encode(picture).decode()
    return f"""
import base64
class Picture:
    def __repr__(self): return "a picture"
    def _repr_png_(self): return base64.b64decode({data!r})
display(*[Picture()] * {times})
"""

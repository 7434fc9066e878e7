"""Documents as text. The bundle's Python reads them with libraries that the notebook's Python need not have."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .files import absolute
from .tools import PREFIX, SkillError, ask_model, command_of, libraries, run_program

_TIMEOUT = 300.0  # seconds
_MOST_FRAMES, _FRAME_RATE = 30, 30  # pictures of a video; frames a second that intervals are counted in
_MOST_PARTS, _PART = 40, 90.0  # parts of a sound, and the seconds of each
_SMALL = 3_000_000  # bytes of a sound that is sent as it is
_SOUNDS = (
    *((b"RIFF", "audio/wav"), (b"ID3", "audio/mpeg")),
    *((begin, "audio/mpeg") for begin in (b"\xff\xfb", b"\xff\xf3", b"\xff\xf2", b"\xff\xfa")),
)
_PROGRAM = "import sys; sys.path.append(sys.argv[1]); exec(compile(open(sys.argv[2]).read(), sys.argv[2], 'exec'))"


def parse_pdf(file_path: str) -> None:
    """Print the text of a PDF file, page by page.

    Args:
        file_path: The file, absolute or from the current directory.
    """
    _print("pdf", file_path)


def parse_docx(file_path: str) -> None:
    """Print the paragraphs and tables of a Word document (.docx).

    Args:
        file_path: The file, absolute or from the current directory.
    """
    _print("docx", file_path)


def parse_latex(file_path: str) -> None:
    """Print the text of a LaTeX source, without its commands.

    Args:
        file_path: The file, absolute or from the current directory.
    """
    _print("latex", file_path)


def parse_pptx(file_path: str) -> None:
    """Print the text of a PowerPoint file (.pptx), slide by slide, with tables and notes.

    Args:
        file_path: The file, absolute or from the current directory.
    """
    _print("pptx", file_path)


def parse_xlsx(file_path: str) -> None:
    """Print the cells of an Excel workbook (.xlsx), sheet by sheet, as rows with tabs.

    Args:
        file_path: The file, absolute or from the current directory.
    """
    _print("xlsx", file_path)


def parse_image(file_path: str, task: str = "Describe this picture.") -> None:
    """Print what the model says about a picture.

    Args:
        file_path: The file, absolute or from the current directory: PNG, JPEG, GIF, WebP, BMP, TIFF and others.
        task: What the model is to say about the picture.
    """
    picture = _read("image", file_path)
    media_type = "image/png" if picture.startswith(b"\x89PNG") else "image/jpeg"
    print(ask_model(task, picture, media_type))


def parse_audio(file_path: str, task: str = "Write down what is said.") -> None:
    """Print what the model says about a sound.

    Args:
        file_path: The file, absolute or from the current directory: WAV, MP3, FLAC, Ogg, M4A, MP4, WebM and others.
        task: What the model is to do with the sound.
    """
    path = _file(file_path)
    if (whole := _small_sound(path)) is not None:
        print(ask_model(task, *whole))
        return
    for second, data, _ in _decoded("sound", path, _PART, _MOST_PARTS):
        print(f"[from {_clock(second)}]\n{ask_model(task, data, 'audio/wav')}")


def parse_video(file_path: str, task: str = "Describe this frame.", frame_interval: int = 30) -> None:
    """Print what the model says about at most 30 frames of a video.

    Args:
        file_path: The file, absolute or from the current directory: MP4, WebM, MKV and others.
        task: What the model is to say about each frame.
        frame_interval: The frames from one to the next, counted at 30 a second; a long video has its 30 evenly spread.
    """
    seconds = max(1, frame_interval) / _FRAME_RATE
    for second, data, length in _decoded("frames", _file(file_path), seconds, _MOST_FRAMES):
        print(f"[{_clock(second)} of {_clock(length)}] {ask_model(task, data, 'image/jpeg')}")


def _small_sound(path: str) -> tuple[bytes, str] | None:
    """Return a sound that models take as it is, with its media type; None for any other. Raises SkillError."""
    try:
        with open(path, "rb") as file:
            data = file.read(_SMALL + 1)
    except OSError as error:
        raise SkillError(f"{path}: {error.strerror or error}.") from None
    if len(data) > _SMALL:
        return None
    media_type = next((media_type for begin, media_type in _SOUNDS if data.startswith(begin)), None)
    is_other = data.startswith(b"RIFF") and data[8:12] != b"WAVE"
    return None if media_type is None or is_other else (data, media_type)


def _decoded(kind: str, path: str, seconds: float, most: int) -> Iterator[tuple[float, bytes, float]]:
    """Yield the second, the data, and the length of the whole in seconds, of each part. Raises SkillError."""
    chromium, python = f"{PREFIX}/browser/bin/chromium", command_of("python3")
    if python is None or not os.path.exists(chromium):
        raise SkillError(
            "This is decoded with the sandbox's browser, which is not here. Parts of a sound of less than 3 MB can be "
            "read as WAV or MP3, pictures as PNG or JPEG with parse_image."
        )
    program = str(Path(__file__).with_name("media.py"))
    arguments = ["", program, chromium, kind, path, str(seconds), str(most)]
    *parts, last = run_program(python, _PROGRAM, arguments, b"", _TIMEOUT).splitlines()
    length = json.loads(last)["length"]
    for part in parts:
        fields: dict[str, Any] = json.loads(part)
        yield fields["second"], base64.b64decode(fields["data"]), length
    if kind == "sound" and length > seconds * most:
        print(f"[the rest, up to {_clock(length)}, is left out: cut it off and read it as a file of its own]")


def _clock(seconds: float) -> str:
    """Return a time like "1:05", or "1:05.5"."""
    tenths = round(seconds * 10)
    return f"{tenths // 600}:{tenths // 10 % 60:02}" + (f".{tenths % 10}" if tenths % 10 else "")


def _file(file_path: str) -> str:
    path = absolute(file_path)
    if not os.path.isfile(path):
        raise SkillError(f"{path} is no file.")
    return path


def _print(kind: str, file_path: str) -> None:
    print(f"[{absolute(file_path)}]\n{_read(kind, file_path).decode()}", end="")


def _read(kind: str, file_path: str) -> bytes:
    path = _file(file_path)
    python = command_of("python3")
    if python is None:
        raise SkillError("Documents are read with the sandbox's bundle, which is not here.")
    program = str(Path(__file__).with_name("documents.py"))
    return run_program(python, _PROGRAM, [libraries(), program, kind, path], b"", _TIMEOUT)

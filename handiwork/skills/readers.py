"""Documents as text. The bundle's Python reads them with libraries that the notebook's Python need not have."""

from __future__ import annotations

import os
from pathlib import Path

from .files import absolute
from .tools import SkillError, ask_model, command_of, libraries, run_program

_TIMEOUT = 300.0  # seconds
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


def parse_image(file_path: str, task: str = "Describe this picture in as much detail as you can.") -> None:
    """Ask the session's model about a picture, and print its answer.

    Args:
        file_path: The file, absolute or from the current directory: PNG, JPEG, GIF, WebP, BMP, TIFF and others.
        task: What the model is to say about the picture.
    """
    picture = _read("image", file_path)
    media_type = "image/png" if picture.startswith(b"\x89PNG") else "image/jpeg"
    print(ask_model(task, picture, media_type))


def _print(kind: str, file_path: str) -> None:
    print(f"[{absolute(file_path)}]\n{_read(kind, file_path).decode()}", end="")


def _read(kind: str, file_path: str) -> bytes:
    path = absolute(file_path)
    if not os.path.isfile(path):
        raise SkillError(f"{path} is no file.")
    python = command_of("python3")
    if python is None:
        raise SkillError("Documents are read with the sandbox's bundle, which is not here.")
    program = str(Path(__file__).with_name("documents.py"))
    return run_program(python, _PROGRAM, [libraries(), program, kind, path], b"", _TIMEOUT)

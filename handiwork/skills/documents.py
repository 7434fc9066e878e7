"""A program that prints a document as text, or a picture for a model: its arguments are the kind and the path.

It runs in the bundle's Python, which has the libraries; every line is printed as soon as it is read.
"""

# The libraries are in the bundle, not where this is checked.
# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false, reportUnknownParameterType=false
# pyright: reportMissingModuleSource=false
from __future__ import annotations

import contextlib
import io
import logging
import re
import sys
import warnings
from collections.abc import Iterator
from typing import Any

_MAX_ROWS = 5_000  # of one sheet
_LARGEST_SIDE = 1568  # pixels of a picture; models see no more
_IMAGE_LIMIT = 3_000_000  # bytes of a picture
_NO_COPY = "not(ancestor::*[local-name()='Fallback'])"  # in which Word repeats a text box for older programs


def pdf(path: str) -> Iterator[str]:
    """Yield a heading and the text of every page, then the fields of a form."""
    import pypdf

    try:
        reader = pypdf.PdfReader(path)
        if reader.is_encrypted and not reader.decrypt(""):
            raise ValueError("it is encrypted with a password")
        for number, page in enumerate(reader.pages, 1):
            yield f"== Page {number} =="
            yield _page_text(page)
        yield from _fields(reader)
    except pypdf.errors.DependencyError:
        raise ValueError(
            "it is encrypted with AES, which this skill cannot decrypt: read it in a cell with pypdf, after "
            "%pip install pypdf cryptography"
        ) from None


def _page_text(page: Any) -> str:
    """Return the page's text; a broken page does not keep the other ones from being read."""
    from pypdf.errors import DependencyError

    try:
        text = page.extract_text()
        if text.strip():
            return text
        return f"[this page has no text: it is {'an image' if len(page.images) else 'empty, or drawn'}]"
    except DependencyError:
        raise
    except Exception as error:  # noqa: BLE001 - the library raises anything for a broken page
        return f"[this page cannot be read: {str(error) or type(error).__name__}]"


def _fields(reader: Any) -> Iterator[str]:
    """Yield a form's fields with what they hold; a signature is left out."""
    try:
        fields = (reader.get_fields() or {}).items()
    except Exception as error:  # noqa: BLE001 - the library raises anything for a broken form
        yield f"[the fields of this form cannot be read: {str(error) or type(error).__name__}]"
        return
    shown = [(name, field.get("/V")) for name, field in fields if "/FT" in field or "/V" in field]
    yield from ["== Form fields =="] if shown else []
    for name, value in shown:
        if not isinstance(value, dict):
            values = value if isinstance(value, list) else [] if value is None else [value]
            yield f"{name}: {', '.join(_field_text(each.get_object()) for each in values)}"


def _field_text(value: Any) -> str:
    from pypdf.generic import NameObject

    return value.removeprefix("/") if isinstance(value, NameObject) else str(value)


def docx(path: str) -> Iterator[str]:
    """Yield paragraphs, text boxes and tables in their order; a heading has as many # as its level."""
    import docx as library
    from docx.text.paragraph import Paragraph

    document = library.Document(path)
    # The library's own lists leave out content controls, insertions that nobody has accepted yet, and fields.
    outermost = f"not(ancestor::w:tbl) and {_NO_COPY}"
    for element in document.element.body.xpath(f".//w:p[{outermost}] | .//w:tbl[{outermost}]"):
        if element.tag.endswith("}tbl"):
            yield from _table(element)
        elif (text := _words(element)).strip():
            style = Paragraph(element, document).style
            name = style.name if style is not None else ""
            level = name.removeprefix("Heading ") if name.startswith("Heading ") else ""
            yield f"{'#' * int(level)} {text}" if level.isdigit() else text


def _table(table: Any) -> Iterator[str]:
    for row in table.xpath("./w:tr | ./w:sdt/w:sdtContent/w:tr"):
        cells: list[str] = []
        for cell in row.xpath("./w:tc | ./w:sdt/w:sdtContent/w:tc"):
            words = " ".join(filter(None, map(_words, cell.xpath(f".//w:p[{_NO_COPY}]"))))
            cells += [words.replace("\n", " "), *[""] * (cell.grid_span - 1)]
        yield " | ".join(cells)


def _words(paragraph: Any) -> str:
    """Return a paragraph's text, with the insertions and without the deletions of its tracked changes."""
    own = f"count(ancestor::w:txbxContent)={len(paragraph.xpath('ancestor::w:txbxContent'))}"
    runs = paragraph.xpath(f".//w:r[not(ancestor::w:del or ancestor::w:moveFrom) and {own}]")
    return "".join(run.text for run in runs)


def latex(path: str) -> Iterator[str]:
    """Yield the text without commands."""
    from pylatexenc.latex2text import LatexNodes2Text

    with open(path, "rb") as file:
        encoding = _encoding(file.read())
    with open(path, encoding=encoding) as file:
        yield LatexNodes2Text(math_mode="verbatim").latex_to_text(file.read())


def _encoding(source: bytes) -> str:
    """Return the encoding of a LaTeX source; one that is not UTF-8 may name it."""
    named = re.search(rb"\\usepackage\s*\[([\w-]+)\]\s*\{inputenc\}", source)
    for encoding in ("utf-8", *([named[1].decode()] if named else []), "cp1252"):
        with contextlib.suppress(UnicodeDecodeError, LookupError):
            source.decode(encoding)
            return encoding
    return "latin-1"


def pptx(path: str) -> Iterator[str]:
    """Yield a heading, the texts and tables, and the notes of every slide."""
    import pptx as library

    for number, slide in enumerate(library.Presentation(path).slides, 1):
        yield f"== Slide {number} =="
        yield from _shapes(slide.shapes)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame.text.strip():
            yield f"Notes: {slide.notes_slide.notes_text_frame.text}"


def xlsx(path: str) -> Iterator[str]:
    """Yield a heading and the rows of every sheet, cells parted by tabs.

    A formula is its last value, or the formula itself if the program that wrote it calculates none.
    """
    import openpyxl

    values, formulas = (openpyxl.load_workbook(path, read_only=True, data_only=only) for only in (True, False))
    for sheets in zip(values.worksheets, formulas.worksheets, strict=True):
        yield f"== Sheet {sheets[0].title} =="
        for sheet in sheets:
            sheet.reset_dimensions()  # some programs write too small ones, and cells outside of them would be left out
        rows = zip(*(sheet.iter_rows(values_only=True) for sheet in sheets), strict=True)
        for number, (calculated, written) in enumerate(rows):
            if number == _MAX_ROWS:
                yield f"[only the first {_MAX_ROWS} rows: read the others with a library]"
                break
            yield "\t".join(map(_cell, calculated, written))


def _cell(value: Any, written: Any) -> str:
    """Return a cell's text on one line; a formula that spans cells is an object with its text."""
    shown = getattr(written, "text", written) if value is None else value
    return "" if shown is None else str(shown).replace("\t", " ").replace("\n", " ")


def _shapes(shapes: Any) -> Iterator[str]:
    for shape in shapes:
        if hasattr(shape, "shapes"):
            yield from _shapes(shape.shapes)
        elif shape.has_text_frame and shape.text_frame.text.strip():
            yield shape.text_frame.text
        elif getattr(shape, "has_table", False):
            yield from _rows(shape.table)


def _rows(table: Any) -> Iterator[str]:
    for row in table.rows:
        yield " | ".join(cell.text.replace("\n", " ") for cell in row.cells)


def image(path: str) -> bytes:
    """Return a picture as the PNG or JPEG that a model takes: its first frame, upright, made smaller if it is large."""
    from PIL import Image, ImageOps

    with Image.open(path) as opened:
        picture = ImageOps.exif_transpose(opened)
        if picture.mode.startswith(("I", "F")):
            picture = _greys(picture.convert("F"))
        picture = picture.convert("RGBA" if picture.has_transparency_data else "RGB")
    picture.thumbnail((_LARGEST_SIDE, _LARGEST_SIDE))
    stream = io.BytesIO()
    picture.save(stream, "PNG")
    if stream.tell() > _IMAGE_LIMIT:
        stream = io.BytesIO()
        picture.convert("RGB").save(stream, "JPEG", quality=85)
    return stream.getvalue()


def _greys(picture: Any) -> Any:
    """Return a picture of numbers with its darkest one as black; all above 255 would be white."""
    low, high = picture.getextrema()

    def stretch(value: Any) -> Any:
        return (value - low) * (255 / ((high - low) or 1))

    return picture.point(stretch).convert("L")


KINDS = {"pdf": pdf, "docx": docx, "latex": latex, "pptx": pptx, "xlsx": xlsx}


def main() -> None:
    """Print the document; a file that is none of its kind ends with its library's message."""
    kind, path = sys.argv[-2:]
    warnings.simplefilter("ignore")
    logging.disable()  # remarks about faults that the reader mends
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")  # pyright: ignore[reportAttributeAccessIssue]
    try:
        if kind == "image":
            sys.stdout.buffer.write(image(path))
            return
        for text in KINDS[kind](path):
            sys.stdout.write(f"{text}\n")
    except Exception as error:  # noqa: BLE001 - the libraries raise anything for a broken file
        sys.exit(f"{path} cannot be read as {kind}: {str(error) or type(error).__name__}")


if __name__ == "__main__":
    main()

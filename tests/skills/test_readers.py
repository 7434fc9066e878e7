"""Documents of every kind as text. The bundle's own libraries write those that are read."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from handiwork.sandbox.bundle import bundle_root, host_command
from handiwork.skills import parse_docx, parse_image, parse_latex, parse_pdf, parse_pptx, parse_xlsx, tools
from handiwork.skills.tools import SkillError

pytestmark = pytest.mark.slow

Capture = pytest.CaptureFixture[str]


def write(code: str, path: Path) -> None:
    """Run code that writes a document to ``path``."""
    python = [*host_command("python3"), "-I", "-S", "-c"]
    setup = "import sys; sys.path.append(sys.argv[1]); path = sys.argv[2]\n"
    libraries = str(bundle_root() / "lib/python3/dist-packages")
    subprocess.run([*python, setup + code, libraries, str(path)], check=True)


def pdf(*pages: str) -> bytes:
    """A PDF file with a line of text on each page."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        fonts = f"/Contents {5 + 2 * number} 0 R /Resources << /Font << /F1 3 0 R >> >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] {fonts} >>")
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    body, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n".encode()
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    trailer = f"trailer << /Size {size} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    return body + f"xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}".encode()


def test_a_pdf_page_by_page(folder: Path, capsys: Capture) -> None:
    (folder / "a.pdf").write_bytes(pdf("The first page", "And the second"))
    parse_pdf("a.pdf")
    expected = f"[{folder}/a.pdf]\n== Page 1 ==\nThe first page\n== Page 2 ==\nAnd the second\n"
    assert capsys.readouterr().out == expected


def test_a_pdf_with_a_broken_page_is_read_without_it(folder: Path, capsys: Capture) -> None:
    (folder / "a.pdf").write_bytes(pdf("One", "Two").replace(b"<< /Length", b"<< /Filter /Foo /Length", 1))
    parse_pdf("a.pdf")
    out = capsys.readouterr().out
    assert "== Page 1 ==\n[this page cannot be read: " in out
    assert out.endswith("== Page 2 ==\nTwo\n")


def test_a_page_that_is_an_image_says_so(folder: Path, capsys: Capture) -> None:
    image = pdf("", "Two", "").replace(b"<< /Length", b"<< /Subtype /Image /Length", 1)
    (folder / "a.pdf").write_bytes(image.replace(b"/F1 3 0 R >> >>", b"/F1 3 0 R >> /XObject << /I 5 0 R >> >>", 1))
    parse_pdf("a.pdf")
    first, _, third = capsys.readouterr().out.split("== Page ")[1:]
    assert first == "1 ==\n[this page has no text: it is an image]\n"
    assert third == "3 ==\n[this page has no text: it is empty, or drawn]\n"


def test_the_fields_of_a_form_follow_the_pages(folder: Path, capsys: Capture) -> None:
    code = """
import pypdf
from pypdf.generic import ArrayObject, DictionaryObject, NameObject, TextStringObject
writer = pypdf.PdfWriter(clone_from=PLAIN)
text = TextStringObject
def field(kind, name, *value):
    entries = zip(map(NameObject, ("/FT", "/T", "/V")), (NameObject(kind), text(name), *value))
    return writer._add_object(DictionaryObject(entries))
fields = [field("/Tx", "Name", text("/Ann")), field("/Btn", "News", NameObject("/Yes")), field("/Ch", "Town"),
    field("/Ch", "Sizes", ArrayObject([text("S"), text("L")]))]
form = DictionaryObject({NameObject("/Fields"): ArrayObject(fields)})
writer.root_object[NameObject("/AcroForm")] = form
writer.write(path)
"""
    (folder / "plain.pdf").write_bytes(pdf("Order"))
    write(code.replace("PLAIN", repr(str(folder / "plain.pdf"))), folder / "a.pdf")
    parse_pdf("a.pdf")
    assert capsys.readouterr().out.endswith("Order\n== Form fields ==\nName: /Ann\nNews: Yes\nTown: \nSizes: S, L\n")


def test_a_pdf_encrypted_with_aes_is_refused_with_a_way_to_read_it(folder: Path) -> None:
    keys = " ".join(f"/{name} <{'00' * size}>" for name, size in (("O", 48), ("U", 48), ("OE", 32), ("UE", 32)))
    crypt = "/CF << /StdCF << /CFM /AESV3 >> >> /StmF /StdCF /StrF /StdCF"
    encryption = f"/Encrypt << /Filter /Standard /V 5 /R 6 /Length 256 /P -4 {keys} /Perms <{'00' * 16}> {crypt} >>"
    (folder / "a.pdf").write_bytes(pdf("secret").replace(b"trailer << ", f"trailer << {encryption} ".encode()))
    with pytest.raises(SkillError, match=r"with AES, .*: read it in a cell with pypdf"):
        parse_pdf("a.pdf")


def test_a_word_document_with_headings_and_tables(folder: Path, capsys: Capture) -> None:
    code = """
import docx
document = docx.Document()
document.add_heading("Title", 1)
document.add_paragraph("Caf\\u00e9 text")
table = document.add_table(1, 2)
table.rows[0].cells[0].text, table.rows[0].cells[1].text = "left", "right"
document.add_paragraph("The end")
document.save(path)
"""
    write(code, folder / "a.docx")
    parse_docx("a.docx")
    assert capsys.readouterr().out == f"[{folder}/a.docx]\n# Title\nCaf\u00e9 text\nleft | right\nThe end\n"


def test_a_word_document_with_tracked_changes_content_controls_and_merged_cells(folder: Path, capsys: Capture) -> None:
    code = """
import docx
from docx.oxml import parse_xml
document = docx.Document()
body, w = document.element.body, 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
body.insert(0, parse_xml(f'<w:p {w}><w:r><w:t xml:space="preserve">It costs </w:t></w:r>'
    '<w:del><w:r><w:delText>10</w:delText></w:r></w:del><w:ins><w:r><w:t>20</w:t></w:r></w:ins></w:p>'))
body.insert(1, parse_xml(f'<w:sdt {w}><w:sdtContent><w:p><w:sdt><w:sdtContent><w:r><w:t>Ann Lee</w:t></w:r>'
    '</w:sdtContent></w:sdt></w:p></w:sdtContent></w:sdt>'))
table = document.add_table(2, 3)
table.cell(0, 0).merge(table.cell(0, 1)).text = "wide"
table.cell(0, 2).merge(table.cell(1, 2)).text = "high"
table.cell(1, 0)._tc.addprevious(parse_xml(
    f'<w:sdt {w}><w:sdtContent><w:tc><w:p><w:r><w:t>left</w:t></w:r></w:p></w:tc></w:sdtContent></w:sdt>'))
table.cell(1, 0)._tc.getparent().remove(table._tbl.tr_lst[1].tc_lst[0])
document.save(path)
"""
    write(code, folder / "a.docx")
    parse_docx("a.docx")
    expected = f"[{folder}/a.docx]\nIt costs 20\nAnn Lee\nwide |  | high\nleft |  | \n"
    assert capsys.readouterr().out == expected


def test_a_word_document_with_text_boxes(folder: Path, capsys: Capture) -> None:
    code = """
import docx
from docx.oxml import parse_xml
names = " ".join(f'xmlns:{name}="http://schemas.{address}"' for name, address in (
    ("w", "openxmlformats.org/wordprocessingml/2006/main"), ("mc", "openxmlformats.org/markup-compatibility/2006")))
def box(text):
    content = f"<w:txbxContent><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:txbxContent>"
    return parse_xml(f"<w:r {names}><mc:AlternateContent><mc:Choice>{content}</mc:Choice>"
        f"<mc:Fallback><w:pict>{content}</w:pict></mc:Fallback></mc:AlternateContent></w:r>")
document = docx.Document()
document.add_paragraph("Before")._p.append(box("In the box"))
cell = document.add_table(1, 1).cell(0, 0).paragraphs[0]
cell.text = "left"
cell._p.append(box("note"))
document.save(path)
"""
    write(code, folder / "a.docx")
    parse_docx("a.docx")
    assert capsys.readouterr().out == f"[{folder}/a.docx]\nBefore\nIn the box\nleft note\n"


def test_slides_with_tables_and_notes(folder: Path, capsys: Capture) -> None:
    code = """
import pptx
deck = pptx.Presentation()
slide = deck.slides.add_slide(deck.slide_layouts[5])
slide.shapes.title.text = "Plan"
table = slide.shapes.add_table(1, 2, 0, 0, 9999, 9999).table
table.cell(0, 0).text, table.cell(0, 1).text = "left", "right"
slide.notes_slide.notes_text_frame.text = "say this"
deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = "End"
deck.save(path)
"""
    write(code, folder / "a.pptx")
    parse_pptx("a.pptx")
    assert capsys.readouterr().out == (
        f"[{folder}/a.pptx]\n== Slide 1 ==\nPlan\nleft | right\nNotes: say this\n== Slide 2 ==\nEnd\n"
    )


def test_a_workbook_sheet_by_sheet(folder: Path, capsys: Capture) -> None:
    code = """
import openpyxl
book = openpyxl.Workbook()
book.active.title = "One"
book.active.append(["name", "n"])
book.active.append(["Ann", 1.5])
book.active.append([None, True])
book.create_sheet("Two").append(["x"])
book.save(path)
"""
    write(code, folder / "a.xlsx")
    parse_xlsx("a.xlsx")
    assert capsys.readouterr().out == (
        f"[{folder}/a.xlsx]\n== Sheet One ==\nname\tn\nAnn\t1.5\n\tTrue\n== Sheet Two ==\nx\n"
    )


def test_a_sheet_whose_dimensions_are_wrong_is_read_whole(folder: Path, capsys: Capture) -> None:
    code = """
import openpyxl, zipfile
book = openpyxl.Workbook()
for n in range(3): book.active.append([n, "x"])
book.save(path + ".right")
with zipfile.ZipFile(path + ".right") as right, zipfile.ZipFile(path, "w") as wrong:
    for name in right.namelist():
        wrong.writestr(name, right.read(name).replace(b'ref="A1:B3"', b'ref="A1"'))
"""
    write(code, folder / "a.xlsx")
    parse_xlsx("a.xlsx")
    assert capsys.readouterr().out.endswith("\n0\tx\n1\tx\n2\tx\n")


def test_a_formula_without_a_value_and_a_cell_with_lines(folder: Path, capsys: Capture) -> None:
    code = """
import openpyxl
book = openpyxl.Workbook()
book.active.append(["two\\nlines", 2])
book.active.append([None, "=SUM(B1:B1)"])
book.save(path)
"""
    write(code, folder / "a.xlsx")
    parse_xlsx("a.xlsx")
    assert capsys.readouterr().out.endswith("\ntwo lines\t2\n\t=SUM(B1:B1)\n")


def test_latex_without_commands(folder: Path, capsys: Capture) -> None:
    (folder / "a.tex").write_text("\\section{One}\nSome \\emph{words}, $x^2$. % a remark\n")
    parse_latex("a.tex")
    text = capsys.readouterr().out
    assert "Some words, $x^2$." in text
    assert "emph" not in text
    assert "remark" not in text


@pytest.mark.parametrize(
    ("named", "encoding", "text"),
    [
        ("latin1", "latin1", "Z\u00fcrich"),
        ("latin2", "latin2", "\u0141\u00f3d\u017a"),
        ("ansinew", "cp1252", "5 \u20ac"),
    ],
)
def test_latex_in_another_encoding(folder: Path, capsys: Capture, named: str, encoding: str, text: str) -> None:
    (folder / "a.tex").write_bytes(f"\\usepackage[{named}]{{inputenc}}\n{text}".encode(encoding))
    parse_latex("a.tex")
    assert capsys.readouterr().out.endswith(f"\n{text}\n")


def test_a_picture_of_16_bits_has_the_greys_of_one_of_8(folder: Path) -> None:
    code = """
from PIL import Image
Image.frombytes("L", (3, 1), bytes([0, 128, 255])).save(path + "8.png")
Image.frombytes("I;16", (3, 1), b"".join(n.to_bytes(2, "little") for n in (0, 32900, 65535))).save(path + "16.png")
"""
    write(code, folder / "a")
    sent: list[bytes] = []

    def ask(prompt: str, data: bytes, media_type: str) -> tuple[str, str]:
        sent.append(data)
        return "grey", ""

    tools.use_model(ask)
    parse_image("a8.png")
    parse_image("a16.png")
    assert sent[0] == sent[1]


@pytest.mark.parametrize("read", [parse_pdf, parse_docx, parse_pptx, parse_xlsx])
def test_what_is_no_such_document_is_said_in_a_line(folder: Path, read: object) -> None:
    (folder / "a").write_bytes(b"plain text\n" * 50)
    assert callable(read)
    with pytest.raises(SkillError, match=r"/a cannot be read as \w+: [^\n]+\Z"):
        read("a")
    with pytest.raises(SkillError, match="is no file"):
        read("missing")

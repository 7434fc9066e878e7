"""Which blocks a file has: CodeNav's rules for Python, Markdown, and the grammars of ten other languages."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from handiwork.codeindex.blocks import Block, Vocabulary, decode, is_excluded, sub_words
from handiwork.codeindex.python_source import python_blocks, python_grammar_blocks
from handiwork.codeindex.source import blocks_of, latex_blocks, markdown_blocks
from handiwork.codeindex.tree_source import tree_blocks
from tests.codeindex.sources import LANGUAGES


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("def f(): pass", "FUNCTION"),
        ("async def f(): pass", "OTHER"),
        ("class A: pass", "CLASS"),
        ("x = 1", "ASSIGNMENT"),
        ("x, y = z = 1, 2", "ASSIGNMENT"),
        ("x: int = 1", "OTHER"),
        ("x += 1", "OTHER"),
        ("import a", "IMPORT"),
        ("from a import b", "IMPORT"),
        ("if x: pass", "CONDITIONAL"),
        ("for x in y: pass", "CONDITIONAL"),
        ("while x: pass", "OTHER"),
        ("with x: pass", "OTHER"),
        ("try: pass\nexcept E: pass", "OTHER"),
        ("'text'", "OTHER"),
        ("f()", "OTHER"),
    ],
)
def test_the_class_of_a_python_statement_decides_its_type(source: str, kind: str) -> None:
    blocks = python_blocks(source)
    assert [block.type for block in blocks] == [kind]
    assert (blocks[0].first, blocks[0].last) == (1, source.count("\n") + 1)


def test_only_the_top_of_a_python_module_is_blocks_and_besides_the_methods_of_classes() -> None:
    source = '''\
@dataclass
class Stack(Base, metaclass=Meta):
    """Keeps things."""

    class Inner:
        def deep(self): ...

    @property
    async def top(self, *, deep: bool = False) -> int:
        """Return the top."""
        def local(): ...
        return 1

if x:
    def hidden(): ...
'''
    assert python_blocks(source) == [
        Block("CLASS", 1, 12, "Stack", "class Stack(Base, metaclass=Meta)", "Keeps things."),
        Block("METHOD", 6, 6, "Stack.Inner.deep", "def deep(self)"),
        Block("METHOD", 8, 12, "Stack.top", "async def top(self, *, deep: bool=False) -> int", "Return the top."),
        Block("CONDITIONAL", 14, 15),
    ]


def test_python_with_errors_is_read_by_its_grammar() -> None:
    kinds = [
        (block.type, block.name) for block in blocks_of("python", "import a\nx = 1\ndef f(a):\n    pass\nprint(1\n")
    ]
    assert kinds[:3] == [("IMPORT", ""), ("ASSIGNMENT", "x"), ("FUNCTION", "f")]


EVERYTHING = '''\
"""A module."""
from __future__ import annotations; import a
x, (y, *z) = w[i] = self.v = 1
count: int = 3
self.size: int
async def load(url, *, retry=3) -> bytes:
    """Load it.

        Twice.
    """
@cached
class Stack(Base, metaclass=Meta):
    # Things.
    r"""Keeps \\d."""
    class Inner:
        def deep(self, a, /, b: int=1): "Deep" "er."

    @property
    async def top(
        self,
    ): pass
    if x:
        def hidden(self): ...
for x in y: pass
async for x in y: pass
while x: pass
x += 1
"text"
'''


@pytest.mark.parametrize("source", [EVERYTHING, Path(inspect.__file__).read_text()])
def test_the_grammar_finds_the_blocks_of_the_syntax_tree(source: str) -> None:
    assert python_grammar_blocks(source) == python_blocks(source)


@pytest.mark.parametrize("unread", ["def g[T: int = str, *U = *tuple[()]](a): pass", "print 'Python 2'", "def g("])
def test_python_that_this_python_refuses_has_the_blocks_of_other_python(unread: str) -> None:
    with pytest.raises(SyntaxError):
        python_blocks(unread)
    source = f"count: int = 3\nasync def f(a):\n    'Doc.'\n{unread}\n"
    assert blocks_of("python", source)[:2] == python_blocks("count: int = 3\nasync def f(a):\n    'Doc.'\n")


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_has_its_blocks(language: str) -> None:
    source, expected = LANGUAGES[language]
    blocks = tree_blocks(language, source)
    assert blocks is not None
    assert [(block.type, block.first, block.last, block.name, block.docstring) for block in blocks] == expected
    lines = source.split("\n")
    for block in blocks:
        if block.name:  # the lines of a block define what it names
            last = re.split(r"\W+", block.name)[-1]
            assert last in "\n".join(lines[block.first - 1 : block.last])


@pytest.mark.parametrize(
    ("language", "name", "prototype"),
    [
        ("javascript", "add", "export function add(x, y = 1)"),
        ("typescript", "g", "export const g = async (x: number): Promise<void> =>"),
        ("java", "Stack.push", "@Override public void push(T t) throws E"),
        ("go", "Stack.Push", "func (s *Stack) Push(x int)"),
        ("rust", "Stack.push", "pub fn push(&mut self, x: T) -> usize"),
        ("go", "Reader.Read", "Read(p []byte) (int, error)"),
        ("rust", "twice", "macro_rules! twice"),
        ("cpp", "Outer.operator bool", "explicit operator bool() const"),
        ("ruby", "triple", "triple = lambda"),
        ("csharp", "Money.Cents", "public int Cents"),
        ("c", "add", "static int add(int a, int b)"),
        ("cpp", "Stack", "template <typename T> class Stack : public Base"),
        ("ruby", "top", "def top(a, b = 1)"),
        ("php", "add", "function add(int $a): int"),
        ("csharp", "Stack", "[Serializable] public class Stack<T> : Base"),
    ],
)
def test_a_prototype_is_the_text_before_the_body(language: str, name: str, prototype: str) -> None:
    blocks = tree_blocks(language, LANGUAGES[language][0]) or []
    assert prototype in [block.prototype for block in blocks if block.name == name]


@pytest.mark.parametrize(
    "header",
    [
        "class KIO_EXPORT Job : public KJob",
        "class EXPORT Job : public ALongNameOfABase",
        "class API Job final : Base",
        "class API Job final",
        "struct Q_CORE_EXPORT Job",
        "class DEPRECATED(1) Job : public KJob",
        "template <class T> class API Job : public Base<T>",
    ],
)
def test_a_class_of_cpp_with_a_macro_in_its_header_has_its_own_name(header: str) -> None:
    blocks = tree_blocks("cpp", f"{header} {{\n public:\n  void run();\n}};\n") or []
    assert [(block.type, block.name) for block in blocks] == [("CLASS", "Job"), ("METHOD", "Job.run")]


@pytest.mark.parametrize("header", ["class API Job : KJob", "class API Job : public KJob, private Base<int>"])
def test_a_class_that_looks_like_a_variable_of_cpp_is_a_class(header: str) -> None:
    blocks = tree_blocks("cpp", f"{header} {{\n}};\nstruct point origin{{1}};\n") or []
    assert [(block.type, block.name) for block in blocks] == [("CLASS", "Job"), ("ASSIGNMENT", "origin")]


def test_markdown_is_split_at_headings_once_a_section_is_long_enough() -> None:
    long = " ".join(["word"] * 120)
    source = f"# One\n\nshort\n\n## Two\n{long}\n```sh\n# no heading\n```\n\n# Three\ntext\n"
    sections = markdown_blocks(source)
    assert [(one.first, one.last, one.name, one.prototype) for one in sections] == [
        (1, 9, "One", "One / Two"),
        (11, 12, "Three", "Three"),
    ]
    assert {one.type for one in sections} == {"DOCUMENTATION"}


def test_latex_is_split_at_its_sections_by_the_rules_of_markdown() -> None:
    long = " ".join(["word"] * 120)
    title = "\\subsection*[short]{On \\emph{stems}}\\label{sec:stems}"
    source = f"\\section{{Words}}\n{long}\n% \\section{{none}}\n  {title}\n{long}\n\\paragraph{{End}} It ends.\n"
    sections = latex_blocks(source)
    assert [(block.name, block.first, block.last) for block in sections] == [
        ("Words", 1, 3),
        ("On \\emph{stems}", 4, 5),
        ("End", 6, 6),
    ]
    assert blocks_of("latex", source) == sections
    assert {block.type for block in sections} == {"DOCUMENTATION"}


def test_markdown_without_headings_is_split_by_length() -> None:
    sections = markdown_blocks("\n".join([" ".join(["word"] * 400)] * 6))
    assert [(one.first, one.last) for one in sections] == [(1, 3), (4, 6)]
    assert markdown_blocks("\n\n") == []


@pytest.mark.parametrize(
    ("identifier", "parts"),
    [
        ("ObjectDetection", ["Object", "Detection"]),
        ("load_image_file", ["load", "image", "file"]),
        ("HTTPServer2", ["HTTP", "Server", "2"]),
        ("parseHTML", ["parse", "HTML"]),
        ("_x", ["x"]),
        ("größe_ändern2", ["größe", "ändern", "2"]),
        ("数える", ["数える"]),
    ],
)
def test_identifiers_fall_into_sub_words(identifier: str, parts: list[str]) -> None:
    assert sub_words(identifier) == parts


def test_a_vocabulary_splits_text_as_sub_words_do() -> None:
    vocabulary = Vocabulary()
    assert vocabulary.spaced("self.loadImage(x)") == "self load Image x"
    assert vocabulary.names("loadImage(load)").split() == ["loadImage", "load", "Image"]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\r\nb\rc", "a\nb\nc"),
        ("\ufeffä".encode(), "ä"),
        ("ä".encode("latin-1"), "ä"),
        ("\ufeffä".encode("utf-16"), "\ufeffä"),
        (b"a\0b", None),
    ],
)
def test_files_are_decoded(data: bytes, text: str | None) -> None:
    assert decode(data) == text


@pytest.mark.parametrize(
    ("line", "expected"), [("# index: false", True), ("// index:false", True), ("index = False", False), ("", False)]
)
def test_a_comment_in_the_first_line_keeps_a_file_out(line: str, expected: bool) -> None:
    assert is_excluded(f"{line}\nx = 1") is expected

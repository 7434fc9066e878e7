"""Functions and lines of source files in any language, and their replacement."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.agents.repair.functions import choices, classes, constants, functions, outline, replaced

CODE = "def f(x):\n    if x:\n        return 1\n    return 1\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@cache\nasync def f(\n    x: int,\n) -> int:\n    y = 1\n\n    return y\n\nz = 2\n", {"f": (1, 6)}),
        (
            "class A:\n    def f(self):\n        return 1\n\nclass B:\n    def f(self):\n        return 2\n",
            {"A.f": (1, 2), "B.f": (5, 6)},
        ),
        ("def f(): return 1\nf()\n", {"f": (0, 0)}),
        (
            "export async function f(x) {\n  return 1;\n}\nconst g = (a) => {\n  if (a) {\n    f();\n  }\n};\nf();\n",
            {"f": (0, 2), "g": (3, 7)},
        ),
        ("class K {\n  m(a) {\n    return 1;\n  }\n}\n", {"K.m": (1, 3)}),
        ("func (a *A) f(x int) {\n\tg()\n}\nfunc (B[T]) f() {\n\tg()\n}\n", {"A.f": (0, 2), "B.f": (3, 5)}),
        ("impl P {\n    pub fn f(&self) -> i32 {\n        1\n    }\n}\n", {"P.f": (1, 3)}),
        (
            "impl<T> P<T> {\n    pub(crate) fn f(&self) -> T {\n        1\n    }\n}\npub(crate) fn g() {\n    2\n}\n",
            {"P.f": (1, 3), "g": (5, 7)},
        ),
        (
            "impl a::Z for P {\n    fn f(&self) {\n    }\n}\nimpl<'a> Z for Q<'a> {\n    fn f(&self) {\n    }\n}\n",
            {"P.f": (1, 2), "Q.f": (5, 6)},
        ),
        ("fn f<F>(g: F) -> i32\nwhere\n    F: Fn(),\n{\n    g()\n}\nfn h() {\n}\n", {"f": (0, 5), "h": (6, 7)}),
        ("def f\n  1\nend\nf\n", {"f": (0, 2)}),
        ("static int *f(int a)\n{\n    if (a) {\n        return 0;\n    }\n    return a;\n}\n", {"f": (0, 6)}),
        ("bool f(vector<int> n){\n    for (int i = 0; i < 3; i++)\n        g(i);\n}\n", {"f": (0, 3)}),
        ("class M {\n    static int f(int x) throws E {\n        return x;\n    }\n}\n", {"M.f": (1, 3)}),
        (
            "static int f(int a, // (0)\n             int b) {\n#ifdef A\n    a++;\n#endif\n    return a;\n}\n",
            {"f": (0, 6)},
        ),
        (
            "class M {\n  L<T> f(\n      T a,\n      T b) {\n    if (g(a,\n        b)) {\n    }\n  }\n}\n",
            {"M.f": (1, 7)},
        ),
        (
            "exports.f = (a) => {\n  x.y = (a).map((b) => b);\n};\nx.g = function (a) {\n};\n"
            "const H = ({\n  a,\n}) => {\n};\n",
            {"f": (0, 2), "g": (3, 4), "H": (5, 8)},
        ),
        ("f() {\n    echo\n}\nfunction g {\n  echo\n}\n", {"f": (0, 2), "g": (3, 5)}),
        (
            "int f(int a)\n{\n#ifdef A\n    a++;\n#endif\nout:\n    return a;\n}\n#define B\nint g(void)\n{\n}\n",
            {"f": (0, 7), "g": (9, 11)},
        ),
        (
            'def f():\n    x = """\na\n\nb\n"""\n    return x\n\ny = 1\ndef g():\n    return \'"""\'\n\ny = 1\n',
            {"f": (0, 6), "g": (9, 10)},
        ),
        (
            "def f(a):\n    b = (a + 1)  # => 3\n    c = function\n    a.d = function(b)\n    return g(b,\n    c)\n",
            {"f": (0, 5)},
        ),
        (
            "class S {\n  find(id: string): T | undefined {\n    return 1;\n  }\n"
            "  async load({ page }: O): Promise<void> {\n    f(1,\n      page);\n  }\n"
            "  on = (e: Event) => {\n    f();\n  };\n"
            "  static of(\n    a: string,\n    b: number,\n  ): S {\n    return f(a,\n      b);\n  }\n}\n",
            {"S.find": (1, 3), "S.load": (4, 7), "S.on": (8, 10), "S.of": (11, 17)},
        ),
        (
            "struct node *f(int a);\n\nstatic PyObject *\nf(PyObject *self,\n  int a)\n{\n    g(a,\n      1);\n}\n"
            "int g(int a,\n      int b)\n{\n    if (f(a,\n          b)) {\n        a++;\n    }\n    return a;\n}\n",
            {"f": (3, 8), "g": (9, 17)},
        ),
        (
            "Stack::Stack(int n)\n    : size(n)\n    , most(n)\n{\n}\n\n"
            "void Stack<T>::push(T x) {\n    n++;\n}\nTEST(a, b);\n",
            {"Stack::Stack": (0, 4), "push": (6, 8)},
        ),
    ],
    ids=[
        *("python", "methods", "one line", "javascript", "class", "go", "rust", "rust generic", "rust traits"),
        *("rust where", "ruby", "c", "c++", "java", "c lines", "java lines", "bound functions", "shell"),
        *("directives and labels", "strings", "no arrow and no function", "typescript"),
        *("c with the type before", "c++ constructor"),
    ],
)
def test_where_functions_begin_and_end(text: str, expected: dict[str, tuple[int, int]]) -> None:
    assert {name: (lines.first, lines.last) for name, lines in functions(text).items()} == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("type Server struct {\n\tport int\n}\n", {"Server": (0, 2)}),
        ("type Pair[T any] interface {\n\tFirst() T\n}\n", {"Pair": (0, 2)}),
        ("type Names = map[string]int\n", {}),
        ("pub(crate) struct Point {\n    x: i32,\n}\n", {"Point": (0, 2)}),
        ("impl<T> Stack<T> {\n    pub(crate) fn pop(&self) -> T {\n        1\n    }\n}\n", {"Stack": (0, 4)}),
        ("enum Color {\n    Red,\n}\n", {"Color": (0, 2)}),
        ("enum class Side {\n    left,\n};\n", {"Side": (0, 2)}),
        ("static struct node *f(void);\nstruct node first = {1};\nstruct node {\n    int a;\n};\n", {"node": (2, 4)}),
    ],
    ids=["go", "go generic", "go alias", "rust", "rust generic", "enumeration", "c++", "c"],
)
def test_where_classes_and_the_like_begin_and_end(text: str, expected: dict[str, tuple[int, int]]) -> None:
    assert {name: (lines.first, lines.last) for name, lines in classes(text).items()} == expected


@given(st.lists(st.sampled_from(["def f():", "  def g():", "class A:", "  x = 1", "", "}", ")", "end"]), max_size=12))
def test_a_function_is_a_piece_of_its_file(lines: list[str]) -> None:
    for name, found in functions("\n".join(lines)).items():
        assert found.text.splitlines() == lines[found.first : found.last + 1]
        assert name.rsplit(".", 1)[-1] in lines[found.first]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A: int = 1\nB = {\n    2: 3,\n}\nx.y = 4\nC += 5\nD == 6\n", {"A": (0, 0), "B": (1, 3)}),
        ("P = compile(\n    'a'\n)\n\n\ndef f(a=1):\n    b = 2\n", {"P": (0, 2)}),
        ("export const RATES = [1,\n  2];\nconst f = (x) => x;\nlet n = 3;\n", {"RATES": (0, 1), "n": (3, 3)}),
        ("#define MOST 10\nstatic const int most[] = {1, 2};\n", {"MOST": (0, 0), "most": (1, 1)}),
        ("RATE=15\nadd() {\n  x=1\n}\n", {"RATE": (0, 0)}),
    ],
)
def test_where_constants_begin_and_end(text: str, expected: dict[str, tuple[int, int]]) -> None:
    assert {name: (lines.first, lines.last) for name, lines in constants(text).items()} == expected


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("def f(x):\n    return 1", "def f(x):\n    ..."),
        (
            'def f(x):\n    """One.\n\n    Two.\n    """\n    return 1',
            'def f(x):\n    """One.\n\n    Two.\n    """\n    ...',
        ),
        ("function f(x) {\n  return 1;\n}", "function f(x) {\n    ..."),
    ],
    ids=["python", "docstring", "javascript"],
)
def test_the_outline_of_a_function_is_its_signature_and_docstring(function: str, expected: str) -> None:
    assert outline(function) == expected


@pytest.mark.parametrize(
    "new",
    ["if x > 0:\n    y = 2", "    if x > 0:\n        y = 2", "\nif x > 0:\n    y = 2\n"],
    ids=["at the margin", "as in the file", "with empty lines around"],
)
def test_the_new_lines_take_the_indentation_of_the_old(new: str) -> None:
    after = replaced(CODE, choices(CODE)["if x:"], new)
    assert after.splitlines()[1:3] == ["    if x > 0:", "        y = 2"]


def test_a_method_with_text_at_the_margin_stays_as_it_is_written() -> None:
    text = 'class A:\n    def f(self):\n        return """\na\n"""\n\n    b = 1\n'
    method = functions(text)["A.f"]
    assert replaced(text, method, method.text.replace("a", "c")) == text.replace("\na\n", "\nc\n")


def test_a_line_that_recurs_is_offered_with_the_one_after_it() -> None:
    assert "return 1" not in choices(CODE)
    assert replaced(CODE, choices(CODE)["return 1\nreturn 1"], "pass") == "def f(x):\n    if x:\n        pass\n"


def test_nothing_in_its_place_removes_the_line() -> None:
    assert replaced(CODE, choices(CODE)["if x:"], " ") == "def f(x):\n        return 1\n    return 1\n"


@given(st.lists(st.sampled_from(["a", "  a", "b", "", "    b = 1", "a = b", "}"]), min_size=1, max_size=12), st.data())
def test_any_choice_replaces_its_lines_and_no_others(lines: list[str], data: st.DataObject) -> None:
    text = "\n".join(lines) + "\n"
    offered = choices(text)
    if not offered:
        return
    shown = data.draw(st.sampled_from(sorted(offered)))
    choice = offered[shown]
    after = replaced(text, choice, "NEW").splitlines()
    assert list(after[: choice.first]) == lines[: choice.first]
    assert after[choice.first].strip() == "NEW"
    assert after[choice.first + 1 :] == lines[choice.last + 1 :]

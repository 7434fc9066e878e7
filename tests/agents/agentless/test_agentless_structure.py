"""Skeletons, elements, locations, and the lists of files of replies and of the retrieval."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from handiwork.agents.agentless.regression import nearest, passed_tests, reporting
from handiwork.agents.agentless.reproduction import elected, language_of, normalised_script, phrases_in, script_of
from handiwork.agents.agentless.retrieval import (
    combined,
    named_files,
    named_folders,
    retrieval_command,
    retrieved_files,
)
from handiwork.agents.agentless.structure import (
    Location,
    Span,
    code,
    elements,
    fit,
    parse_locations,
    programs,
    skeleton,
    spans_of,
    tree,
)
from handiwork.agents.repair.files import LIST

PYTHON = '''\
"""Shapes."""

import math

SIDES = {
    "square": 4,
}


class Shape:
    """A shape."""

    name: str = "shape"

    @property
    def area(self):
        """Its area."""
        return 0

    class Corner:
        def angle(self): return 90


async def draw(shape, *, colour="red"):
    for _ in range(3):
        print(shape)
'''
JAVASCRIPT = (
    "const LIMIT = 3;\n\nclass Shape {\n  area(x) {\n    return x;\n  }\n}\n\nfunction draw(s) {\n  return s;\n}\n"
)


class TestSkeleton:
    def test_python_has_no_bodies_docstrings_and_imports(self) -> None:
        assert skeleton("a.py", PYTHON) == (
            'SIDES = {\n    "square": 4,\n}\nclass Shape:\n    name: str = "shape"\n    @property\n'
            "    def area(self):\n        ...\n    class Corner:\n        def angle(self):\n            ...\n"
            "async def draw(shape, *, colour='red'):\n    ..."
        )

    def test_a_long_assignment_is_cut_to_its_ends(self) -> None:
        text = "X = [\n" + "".join(f"    {n},\n" for n in range(40)) + "]\n"
        shown = skeleton("a.py", text).split("\n")
        assert len(shown) == 21
        assert (shown[0], shown[10], shown[-1]) == ("X = [", "...", "]")

    def test_other_languages_have_their_outlines(self) -> None:
        shown = skeleton("a.js", JAVASCRIPT)
        assert all(part in shown for part in ("const LIMIT = 3;", "class Shape {", "area(x) {", "function draw(s) {"))
        assert "return" not in shown

    def test_every_impl_of_a_type_of_rust_is_shown(self) -> None:
        rust = "struct P {\n    x: i32,\n}\nimpl P {\n}\nimpl fmt::Display for P {\n    fn fmt(&self) {\n    }\n}\n"
        shown = skeleton("a.rs", rust)
        assert all(part in shown for part in ("struct P {", "impl P {", "impl fmt::Display for P {", "fn fmt(&self) {"))

    def test_python_with_a_syntax_error_has_an_outline_too(self) -> None:
        assert "def f(x):" in skeleton("a.py", "def f(x):\n    return (\n")

    @example("\r\ra = 1", "a.py")
    @given(st.text("abcdef(): =\n\t'\"#@.,[]{}\r\x0c", max_size=80), st.sampled_from(["a.py", "a.js", "a.rs"]))
    def test_no_text_is_too_odd(self, text: str, path: str) -> None:
        skeleton(path, text)
        last = text.count("\n")
        for name, (span, *_) in elements(path, text).items():
            for first, end in spans_of(path, text, [Location("function", name), Location("line", "1")], 2):
                assert 0 <= first <= end <= last
            assert span.first <= span.last


class TestLocations:
    def test_elements_have_their_lines_with_decorators(self) -> None:
        found = elements("a.py", PYTHON)
        lines = PYTHON.split("\n")
        assert lines[found["Shape.area"][0].first].strip() == "@property"
        assert lines[found["draw"][0].last].strip() == "print(shape)"
        assert {"SIDES", "Shape", "Shape.name", "Shape.Corner.angle"} <= found.keys()
        assert elements("a.js", JAVASCRIPT)["Shape.area"] == [Span(3, 5)]
        assert elements("a.js", JAVASCRIPT)["Shape"] == [Span(2, 6)]

    def test_a_getter_and_its_setter_are_both_meant_and_so_are_overloads(self) -> None:
        getter, setter = "@property\n    def x(self):\n        return 1", "@x.setter\n    def x(self, v):\n        pass"
        python = f"class A:\n    {getter}\n\n    y = 2\n\n    {setter}\n"
        assert spans_of("a.py", python, [Location("function", "A.x")], 0) == [Span(1, 3), Span(7, 9)]
        go = "func (a A) Size() int {\n\treturn 1\n}\n\nvar z = 1\n\nfunc (b B) Size() int {\n\treturn 2\n}\n"
        assert spans_of("a.go", go, [Location("function", "Size")], 0) == [Span(0, 2), Span(6, 8)]

    def test_a_type_of_rust_is_meant_with_its_methods(self) -> None:
        rust = "struct P {\n    x: i32,\n}\n\nimpl P {\n    fn x(&self) -> i32 {\n        1\n    }\n}\n"
        assert spans_of("a.rs", rust, [Location("class", "P")], 0) == [Span(0, 2), Span(4, 8)]

    def test_form_feeds_between_functions_of_c_move_no_element(self) -> None:
        text = "int f(void) {\n}\n\x0c\nint g(void) {\n}\n\x0c\nint h(void) {\n}\n"
        assert elements("a.c", text) == {"f": [Span(0, 1)], "g": [Span(3, 4)], "h": [Span(6, 7)]}

    def test_a_reply_names_them_by_file(self) -> None:
        reply = (
            "They are:\n```\n### lib/a.py\nclass: Shape\nfunction: Shape.area\n"
            "- method: `draw`\nlines: 12-14, 20\nline: x\n"
            "lib/none.py\nfunction: lost\n\nrepo/lib/b.js\nvariable: LIMIT\n```"
        )
        found = parse_locations(reply, ["lib/a.py", "lib/b.js"])
        assert found["lib/b.js"] == [("variable", "LIMIT")]
        names = [("class", "Shape"), ("function", "Shape.area"), ("function", "draw")]
        assert found["lib/a.py"] == [*names, *(("line", number) for number in ("12", "13", "14", "20"))]

    def test_spans_have_context_and_are_merged(self) -> None:
        text = "\n".join(map(str, range(100)))
        lines = [Location("line", number) for number in ("50", "10", "13", "100", "101", "0")]
        assert spans_of("a.py", text, lines, 2) == [Span(7, 14), Span(47, 51), Span(97, 99)]
        assert code(text, [Span(0, 1), Span(98, 99)], numbered=True) == "1|0\n2|1\n...\n99|98\n100|99"

    def test_a_name_without_its_class_stands_for_all_of_that_name(self) -> None:
        assert spans_of("a.py", PYTHON, [Location("function", "area")], 0) == elements("a.py", PYTHON)["Shape.area"]
        assert spans_of("a.py", PYTHON, [Location("function", "lost")], 0) == []


def listed_in(folder: Path) -> list[str]:
    ended = subprocess.run(["bash", "-c", LIST], cwd=folder, capture_output=True, text=True, check=True)
    return ended.stdout.splitlines()


class TestFiles:
    def test_programs_are_no_tests_and_no_data(self) -> None:
        listed = ["a.py", "README.md", "tests/b.py", "test_c.py", "d.go", "d_test.go", "e.png", "f.spec.ts", "g.ts"]
        assert programs(listed) == ["a.py", "d.go", "g.ts"]
        assert programs(["verify.py", "src/checks.go", "tests/test_a.py"]) == ["verify.py", "src/checks.go"]
        assert programs(["testing/client.py", "notes.txt"]) == ["testing/client.py"]

    def test_programs_are_listed_before_others_and_by_their_own_names(self, tmp_path: Path) -> None:
        subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
        for path in ["package.json", "módulos/área.py", *(f"assets/{n}.json" for n in range(5_001))]:
            (tmp_path / path).parent.mkdir(exist_ok=True)
            (tmp_path / path).touch()
        listed = listed_in(tmp_path)
        assert sorted(listed[:2]) == ["módulos/área.py", "package.json"]
        assert len(listed) == 5_000

    def test_without_git_installed_packages_are_not_listed(self, tmp_path: Path) -> None:
        packages = "venv/lib/python3.11/site-packages/other"
        for path in ["shop.py", "tests/test_shop.py", f"{packages}/core.py", f"{packages}/tests/test_core.py"]:
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).touch()
        assert sorted(listed_in(tmp_path)) == ["shop.py", "tests/test_shop.py"]

    def test_the_files_of_a_submodule_are_listed(self, tmp_path: Path) -> None:
        (tmp_path / "libs/core").mkdir(parents=True)
        (tmp_path / "libs/core/area.c").touch()
        (tmp_path / "libs/core/.git").write_text("gitdir: ../../.git/modules/libs/core\n")
        (tmp_path / "main.c").touch()
        link = f"160000,{'1' * 40},libs/core"
        for command in (["init", "-q"], ["update-index", "--add", "--cacheinfo", link], ["add", "main.c"]):
            subprocess.run(["git", *command], cwd=tmp_path, check=True)
        assert programs(listed_in(tmp_path)) == ["main.c", "libs/core/area.c"]

    def test_a_tree_has_each_folder_once_and_ends_where_it_is_too_long(self) -> None:
        paths = ["b.py", "a/c/x.py", "a/y.py", "a/c/z.py"]
        assert tree(paths, 1000) == "a/\n    c/\n        x.py\n        z.py\n    y.py\nb.py"
        assert tree(paths, 30) == "a/\n    c/\n        x.py\n..."

    def test_names_are_those_of_real_files(self) -> None:
        known = ["src/lib/a.py", "src/lib/b.py", "other/b.py"]
        reply = "1. src/lib/a.py: the area\n- `lib/a.py`: the area\nb.py\n'/repo/other/b.py',\nnowhere.py\n"
        assert named_files(reply, known, 5) == ["src/lib/a.py", "other/b.py"]
        assert named_files(reply, known, 1) == ["src/lib/a.py"]

    def test_folders_are_those_with_programs_but_never_all(self) -> None:
        assert named_folders("docs/\nsrc\nlost/", ["docs/a.py", "src/b.py", "c.py"]) == ["docs", "src"]
        assert named_folders("docs/\nsrc", ["docs/a.py", "src/b.py"]) == []

    def test_the_heads_of_both_lists_are_combined_by_votes_and_the_models_first(self) -> None:
        assert combined(["a", "b", "c", "d"], ["c", "e", "a", "d"], 3) == ["a", "c", "b"]
        assert combined(["a"], ["b", "c", "d"], 3) == ["a", "b", "c"]
        assert combined([], [], 3) == []

    def test_the_last_files_are_left_out_until_the_others_fit(self) -> None:
        texts = {"a": "x" * 5, "b": "y" * 5, "c": "z" * 5}
        assert list(fit(texts, 11)) == ["a", "b"]
        assert fit(texts, 3) == {"a": "xxx"}


class TestRetrieval:
    def ranked(self, folder: Path, files: dict[str, str], task: str, *folders: str) -> list[str]:
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        command = retrieval_command(task, folders)
        output = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=True).stdout
        return retrieved_files(output, list(files))

    def test_the_file_with_the_rare_words_comes_first(self, tmp_path: Path) -> None:
        filler = "def helper(value):\n    return value\n" * 40
        files = {
            "a.py": filler + "the the the the issue of the value\n",
            "my code/b.py": filler + "def parse_header(line):\n    return HeaderCard(line)\n",
            "c.py": filler,
            "docs/d.py": "parse header card parse header card\n",
            "tests/test_b.py": "parse header card parse header card\n",
            "notes.txt": "parse header card\n",
        }
        task = "The Header of the card: parse_header's value is 'wrong' (see $HOME; `x` \\ \" )"
        assert self.ranked(tmp_path, files, task, "docs")[0] == "my code/b.py"
        assert self.ranked(tmp_path, files, task, "docs", "my code") == ["a.py", "c.py"]
        assert self.ranked(tmp_path, files, task)[:2] == ["docs/d.py", "my code/b.py"]

    def test_a_suffix_may_have_capital_letters(self, tmp_path: Path) -> None:
        assert self.ranked(tmp_path, {"R/header.R": "header <- 1\n"}, "The header is wrong") == ["R/header.R"]

    def test_without_a_word_in_common_nothing_is_found(self, tmp_path: Path) -> None:
        assert self.ranked(tmp_path, {"a.py": "x = 1\n", "empty.py": ""}, "Quite different") == []


class TestRegression:
    @pytest.mark.parametrize(
        ("output", "names"),
        [
            (
                "PASSED tests/a.py::test[x y]\nFAILED tests/a.py::b - ok\nXFAIL tests/a.py::c\n",
                ["tests/a.py::test[x y]"],
            ),
            ("tests/a.py::test_x PASSED   [ 50%]\ntests/a.py::test_y FAILED [100%]\n", ["tests/a.py::test_x"]),
            ("test_x (a.T.test_x) ... ok\ntest_y (a.T.test_y) ... FAIL\n", ["test_x (a.T.test_x)"]),
            (
                "=== RUN TestX\n--- PASS: TestX (0.00s)\n    --- PASS: TestX/part (0.00s)\n--- FAIL: TestY\n",
                ["TestX", "TestX/part"],
            ),
            ("running 2 tests\ntest shape::area ... ok\ntest shape::side ... FAILED\n", ["shape::area"]),
            ("TAP version 13\nok 1 - adds # time=1ms\nnot ok 2 - divides\n", ["adds"]),
            ("  ✓ adds (3 ms)\n  ✕ divides (1 ms)\n✔ halves (0.5ms)\n", ["adds", "halves"]),
            ("✔ is empty (1ms)\n✔ is empty (2ms)\n", ["is empty", "is empty (2)"]),
            ("tests/a.py::x PASSED [ 50%]\nPASSED tests/a.py::x\n", ["tests/a.py::x"]),
            ("test src/lib.rs - add (line 5) ... ok\n", ["src/lib.rs - add"]),
            ("1/2 Test #1: area .......   Passed    0.01 sec\n2/2 Test #2: side ...***Failed\n", ["area"]),
            ("PASS src/a.test.js\nFAIL src/b.test.js\nPASS c.test.js (5.2 s)\n", ["src/a.test.js", "c.test.js"]),
            ("PASS src/a.test.js\n  ✓ adds (3 ms)\n", ["adds"]),
            ("\x1b[32m    ✓\x1b[0m\x1b[90m adds\x1b[0m\n", ["adds"]),
            (
                "✓ area > adds [0.14ms]\n  ok 1 [chromium] › a.spec.ts:3:5 › opens (1.2s)\n",
                ["area > adds", "[chromium] › a.spec.ts:3:5 › opens"],
            ),
            (
                "    PASS [   0.004s] (1/2) area tests::adds\n    FAIL [   0.005s] (2/2) area tests::b\n",
                ["area tests::adds"],
            ),
        ],
        ids=[
            "pytest -r",
            "pytest -v",
            "unittest",
            "go",
            "cargo",
            "TAP",
            "jest and node",
            "one name",
            "pytest -v -rp",
            "cargo doc",
            "ctest",
            "jest's files",
            "jest's only file",
            "mocha's colours",
            "bun and playwright",
            "cargo nextest",
        ],
    )
    def test_the_tests_that_passed_are_read_from_the_output(self, output: str, names: list[str]) -> None:
        assert passed_tests(output, "check", 1) == names

    def test_without_names_the_command_is_the_test(self) -> None:
        assert passed_tests("All fine.\n", "make check", 0) == ["make check"]
        assert passed_tests("Wrong.\n", "make check", 2) == []
        assert passed_tests("", "make check", None) == []

    def test_runners_are_asked_to_name_the_tests(self) -> None:
        assert "unittest discover -v -s tests" in reporting("python3 -m unittest discover -s tests")
        assert "go test -v ./..." in reporting("go test ./...")
        assert "jest --verbose -c jest-settings/a.js" in reporting("npx jest -c jest-settings/a.js")
        assert "python3 manage.py test -v 2 shop" in reporting("python3 manage.py test shop")
        assert "npx vitest run --reporter=verbose src" in reporting("npx vitest run src")
        assert "node_modules/.bin/jest --verbose" in reporting("node_modules/.bin/jest")
        assert "{ make test\n}" in reporting("make test")

    @pytest.mark.parametrize(
        "command", ["node node_modules/jest/bin/jest.js", "npm run jest:ci", "php vendor/phpunit/phpunit/run.php"]
    )
    def test_paths_and_scripts_with_the_name_of_a_runner_stay(self, command: str) -> None:
        assert f"{{ {command}\n}}" in reporting(command)

    def test_a_test_file_that_cannot_be_imported_hides_no_other_test(self, tmp_path: Path) -> None:
        (tmp_path / "test_broken.py").write_text("import not_there\n")
        (tmp_path / "test_half.py").write_text("def test_half():\n    pass\n")
        command = reporting(f"{sys.executable} -m pytest -q -p no:cacheprovider")
        ran = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert passed_tests(ran.stdout, "check", ran.returncode) == ["test_half.py::test_half"]

    @pytest.mark.slow
    def test_tests_that_pytest_names_in_colours_are_found(self, tmp_path: Path) -> None:
        (tmp_path / "test_half.py").write_text("def test_half():\n    pass\n")
        command = reporting(f"{sys.executable} -m pytest -q -p no:cacheprovider --color=yes")
        ran = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert "\x1b[" in ran.stdout
        assert passed_tests(ran.stdout, "check", 0) == ["test_half.py::test_half"]

    def test_of_too_many_tests_those_named_like_the_files_come_first(self) -> None:
        tests = [f"test_{number}" for number in range(600)] + ["test_area"]
        assert nearest(tests, ["area"])[:2] == ["test_area", "test_0"]
        assert len(nearest(tests, ["area"])) == 500


class TestReproduction:
    def test_the_phrases_of_an_output(self) -> None:
        assert phrases_in("x\nIssue resolved\n") == ("Issue resolved",)
        assert phrases_in("Issue resolved\nIssue reproduced\n") == ("Issue reproduced", "Issue resolved")
        assert phrases_in("issue resolved?") == ()
        assert phrases_in('  File "a.py", line 3\n    if f(): print("Issue resolved")\nNameError: f\n') == ()

    def test_a_program_finds_the_modules_in_src(self, tmp_path: Path) -> None:
        (tmp_path / "src").mkdir()
        (tmp_path / "src/shop.py").write_text("PRICE = 7\n")
        (tmp_path / "script.py").write_text("import shop\nprint(shop.PRICE)\n")
        command = f"{language_of(['src/shop.py']).command} script.py"
        assert subprocess.check_output(["bash", "-c", command], cwd=tmp_path, text=True) == "7\n"

    def test_the_program_is_a_block_that_can_print_both(self) -> None:
        program = "print('Issue reproduced' if f() else 'Issue resolved')\n"
        assert script_of(f"```sh\npip install x  # and much more\n```\n```python\n{program}```") == program
        assert script_of("```python\nprint('Issue reproduced')\n```") == ""

    def test_equal_ones_differ_by_comments_and_the_name_of_the_function(self) -> None:
        one = "def test_a():\n    # See.\n    print('Issue reproduced')\n\ntest_a()\n"
        same = "def check():\n    '''Doc.'''\n    print('Issue reproduced')\n\n\ncheck()\n"
        other = "def check():\n    print('Issue resolved')\n\n\ncheck()\n"
        assert normalised_script(one, ".py") == normalised_script(same, ".py") != normalised_script(other, ".py")
        assert elected({"1": other, "2": one, "3": same}, ".py") == ("2", 2)
        assert elected({"1": other, "2": one}, ".py") == ("1", 1)
        assert elected({}, ".py") is None

    def test_the_language_is_that_of_the_likeliest_file_or_a_shell(self) -> None:
        assert language_of(["a.js", "b.py"]).command == "node"
        assert language_of(["a.c"]).command == "bash"

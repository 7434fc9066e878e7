"""Queries over a small codebase find what Lucene's syntax says; broken ones say what is wrong."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.codeindex.files import SourceTree
from handiwork.codeindex.index import CodeIndex
from handiwork.codeindex.query import LONGEST, QueryError

FILES = {
    "models/detection.py": '''\
import torch


class ObjectDetectionPipeline(Pipeline):
    """Finds objects in images."""

    def load_image(self, path):
        return open(path)


def detect_objects(image):
    """Return the boxes of all objects in an image."""
    return ObjectDetectionPipeline()(image)
''',
    "models/pooling.py": '''\
MAX_POOL = 3


def max_pool2d(values, size=MAX_POOL):
    """Pool by the maximum."""
    return [max(values[i : i + size]) for i in range(len(values))]


def pool_max(values):
    return max(values)
''',
    "web/app.ts": "export function loadImage(url: string): Image { return fetch(url) }\n",
    "README.md": "# Vision\n\nDetects objects: call `detect_objects`.\n",
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> CodeIndex:
    root = tmp_path_factory.mktemp("vision")
    for path, text in FILES.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text)
    codes = CodeIndex(str(root), tmp_path_factory.mktemp("cache"))
    codes.refresh(SourceTree.of_directory(root))
    return codes


def places(index: CodeIndex, query: str) -> set[str]:
    return {f"{hit.file_path.rpartition('/')[2]}:{hit.block.first}" for hit in index.search(query, 100).hits}


CLASS, LOAD, DETECT, POOL, POOL_MAX = (
    "detection.py:4",
    "detection.py:7",
    "detection.py:11",
    "pooling.py:4",
    "pooling.py:9",
)
CONSTANT, TORCH, APP, README = "pooling.py:1", "detection.py:1", "app.ts:1", "README.md:1"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("type: CLASS AND text: ObjectDetection", {CLASS}),
        ("(type: CLASS) AND (text: ObjectDetection)", {CLASS}),
        ("type:class", {CLASS}),
        ("type: CL*", {CLASS}),
        ("type: *PORT AND torch", {TORCH}),
        ("type: (CLASS OR METHOD)", {CLASS, LOAD}),
        ("type: IMPORT", {TORCH}),
        ("type: DOCUMENTATION", {README}),
        ("ObjectDetectionPipeline", {CLASS, DETECT}),
        ("object_detection", {CLASS, DETECT}),
        ('text: "object detection"', {CLASS, DETECT}),
        ("text: maximum", {POOL}),
        ("detecting", {CLASS, DETECT, README}),  # by its stem
        ("detection", {CLASS, DETECT, README, TORCH, LOAD}),  # and by the words of the path
        ("text: detecting", {CLASS, DETECT, README}),
        ('text: "max pool"', {CONSTANT, POOL}),
        ('text: "pool max"', {POOL_MAX}),
        ('text: "pool values"~2', {POOL, POOL_MAX}),
        ("maxpool2d", set()),
        ("max_pool2d", {POOL}),
        ("name: loadImage", {LOAD, APP}),
        ("name: load*", {LOAD, APP}),
        ("name: LOAD_*", {LOAD}),
        ("text: ObjectDet*", {CLASS, DETECT}),
        ("text: *pipeline", {CLASS, DETECT}),
        ("text: m?x_pool AND type: ASSIGNMENT", {CONSTANT}),
        ("name: /max_.*/", {CONSTANT, POOL}),
        ("name: detct~1", {DETECT}),
        ("docstring: objects", {CLASS, DETECT}),
        ('docstring: "boxes of all"', {DETECT}),
        ('prototype: "values size"', {POOL}),
        ("prototype: url", {APP}),
        ("file_path: models/pooling.py", {CONSTANT, POOL, POOL_MAX}),
        ("file_path: pooling.py", {CONSTANT, POOL, POOL_MAX}),
        ("file_path: models AND type: CLASS", {CLASS}),
        ("file_path: *.ts", {APP}),
        ("name: ObjectDetectionPipeline.load_image", {LOAD}),
        ("file_path: *", {CLASS, LOAD, DETECT, POOL, POOL_MAX, CONSTANT, TORCH, APP, README}),
        ("file_path: mod*/p*", {CONSTANT, POOL, POOL_MAX}),
        ('file_path: "web/app.ts"', {APP}),
        ("lines: 5 AND file_path: pooling.py", {POOL}),
        ("lines:[1 TO 4] AND file_path: pooling.py", {CONSTANT, POOL}),
        ("lines:[7 TO *] AND file_path: pooling.py", {POOL_MAX}),
        ("lines:{1 TO 4} AND file_path: pooling.py", set()),
        ("lines:>6 AND file_path: pooling.py", {POOL_MAX}),
        ("lines: >= 6 AND file_path: pooling.py", {POOL, POOL_MAX}),
        ("lines:<4 AND file_path: pooling.py", {CONSTANT}),
        ("lines:<=4 AND file_path: pooling.py", {CONSTANT, POOL}),
        ("file_path: ./web/app.ts", {APP}),
        ("file_path: ./web/*", {APP}),
        ("file_path: /somewhere/else/web/app.ts", {APP}),
        ("file_path: /somewhere/else/web", set()),
        ("type: FUNCTION AND NOT file_path: models", {APP}),
        ("type: FUNCTION -values", {DETECT, APP}),
        ("+type: FUNCTION +values -size", {POOL_MAX}),
        ("torch OR url", {TORCH, APP}),
        ("torch || url", {TORCH, APP}),
        ("type: FUNCTION && image && !fetch", {DETECT}),
        ("NOT file_path: models", {APP, README}),
        (r"text: load\_image AND type: METHOD", {LOAD}),
        (r"text: \*", set()),
        ("text: (maximum OR boxes)", {POOL, DETECT}),
        ("type: FUNCTION AND (text: maximum OR text: boxes)", {POOL, DETECT}),
        ("maximum^2 boxes", {POOL, DETECT}),
        ("unheard_of", set()),
        ("text:\n  maximum", {POOL}),
        ("max-pool", {CONSTANT, POOL}),
        ("ANDROID ORANGE", set()),
    ],
)
def test_a_query_finds(index: CodeIndex, query: str, expected: set[str]) -> None:
    assert places(index, query) == expected


@pytest.mark.parametrize("path", ["web/app.ts", "web", "web/", "web/*.ts", "w*"])
def test_a_path_may_be_absolute(index: CodeIndex, path: str) -> None:
    assert places(index, f"file_path: {index.name}/{path}") == {APP}


def test_the_block_that_defines_a_name_comes_first(index: CodeIndex) -> None:
    for query, first in (("detect_objects", DETECT), ("ObjectDetectionPipeline", CLASS)):
        hit = index.search(query).hits[0]
        assert f"{hit.file_path.rpartition('/')[2]}:{hit.block.first}" == first


def test_a_hit_has_the_code_of_its_lines(index: CodeIndex) -> None:
    (hit,) = index.search("type: METHOD").hits
    assert hit.code == "    def load_image(self, path):\n        return open(path)"
    assert (hit.block.name, hit.block.prototype) == ("ObjectDetectionPipeline.load_image", "def load_image(self, path)")


def test_a_weight_moves_a_block_up(index: CodeIndex) -> None:
    assert index.search("boxes^9 torch").hits[0].block.name == "detect_objects"
    assert index.search("boxes torch^9").hits[0].block.type == "IMPORT"


def test_words_without_a_match_are_tried_as_beginnings(index: CodeIndex) -> None:
    hits = index.search("text: ObjectDetectionPipe")
    assert hits.extended
    assert {hit.block.first for hit in hits.hits} == {4, 11}
    assert not index.search("text: ObjectDetectionPipeline").extended


@pytest.mark.parametrize(
    "query",
    [
        "type: FUNCTION AND name: find_objects",
        "objects_found AND type: FUNCTION",
        "draw AND detect",
        "type: FUNCTION AND name: *find_objects*",
        "type: CONDITIONAL AND name: find_objects",
        "find_objects AND file_path: nowhere.py",
    ],
)
def test_without_any_match_blocks_with_some_of_the_words_are_found(index: CodeIndex, query: str) -> None:
    hits = index.search(query)
    assert hits.extended
    assert hits.hits[0].block.name == "detect_objects"


def test_the_nearest_blocks_keep_the_other_conditions_of_a_query(index: CodeIndex) -> None:
    assert not index.search("find_objects AND type: FUNCTION AND NOT detect").hits
    assert {hit.block.type for hit in index.search("find_objects AND (type: FUNCTION OR type: CLASS)").hits} <= {
        "FUNCTION",
        "CLASS",
    }


def test_total_counts_what_is_not_shown(index: CodeIndex) -> None:
    hits = index.search("type: FUNCTION", 2)
    assert (hits.total, len(hits.hits)) == (4, 2)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("(max AND pool", "character 1: the parenthesis is not closed"),
        ("max)", "character 4: ')' closes nothing"),
        ('text: "max pool', "character 7: the quotation mark is not closed"),
        ("/max", "the regular expression is not closed"),
        ("/ma(x/", "regular expression"),
        ("std::vector", "there is no field 'std': the fields are text, type"),
        ("kind: CLASS", "there is no field 'kind'"),
        ("type: THING", "There is no type 'THING': the types are FUNCTION, CLASS"),
        ("type: KLASS*", "There is no type that fits: the types are FUNCTION, CLASS"),
        ("type: /CLASS/", "type: takes one of the types"),
        ("type=CLASS", "character 1: a field is written with a colon: type: CLASS"),
        ('name: ""', "character 7: there is nothing between the quotation marks"),
        ("lines: [3 TO 1]", "The range of lines has no line"),
        ("lines:<1", "The range of lines has no line"),
        ("lines:>x", "lines are compared with a number"),
        ("AND pool", "AND has nothing on its left"),
        ("max AND", "has nothing after it"),
        ("max OR", "nothing"),
        ("text:", "the field text has nothing after it"),
        ("()", "there is nothing to look for"),
        ("lines: x", "lines: takes a number or a range"),
        ("lines:[1 TO x]", "the bounds of a range"),
        ("lines:[1", "a range is written"),
        ("text:[a TO b]", "only the field lines has ranges"),
        ("max~5", "at most 2 letters off"),
        ("max^x", "a weight is a number"),
        ("max^^2", "a weight"),
        ("max\\", "ends with a backslash"),
        ("~max", "'~' stands where a word is expected"),
        ("(" * 50 + "x" + ")" * 50, "nested more than"),
        ("x " * 200, "more than 100 terms"),
        ("x" * (LONGEST + 1), "characters"),
    ],
)
def test_a_broken_query_is_told_what_is_wrong(index: CodeIndex, query: str, message: str) -> None:
    with pytest.raises(QueryError, match=re.escape(message)):
        index.search(query)


@given(st.text(st.characters(codec="utf-8"), max_size=60) | st.text('ab :"()[]{}^~*?\\/+-!&|ANDORTO12', max_size=30))
def test_any_text_is_a_query_or_a_query_error(index: CodeIndex, query: str) -> None:
    with suppress(QueryError):
        assert index.search(query, 100).total <= 9


def test_one_word_of_a_description_that_is_a_name_does_not_outweigh_the_others(tmp_path: Path) -> None:
    (tmp_path / "letters.py").write_text("def a():\n    pass\n\n\ndef on(a):\n    pass\n\n\ndef state():\n    pass\n")
    (tmp_path / "tax.py").write_text(
        'def levy(net, rate=0.19):\n    """Compute the tax owed to a state on the price of an article."""\n'
    )
    codes = CodeIndex(str(tmp_path), tmp_path / "cache")
    codes.refresh(SourceTree.of_directory(tmp_path))
    assert codes.search("the tax owed on an article to a state").hits[0].block.name == "levy"
    assert codes.search("state").hits[0].block.name == "state"


def test_words_in_docstrings_weigh_more_than_in_code(tmp_path: Path) -> None:
    (tmp_path / "first.py").write_text('def first():\n    "Reads nothing."\n    return frobnicate(gadget, gadget)\n')
    (tmp_path / "second.py").write_text('def second():\n    "Turns a gadget."\n    return frobnicate(other, another)\n')
    codes = CodeIndex(str(tmp_path), tmp_path / "cache")
    codes.refresh(SourceTree.of_directory(tmp_path))
    assert codes.search("gadget").hits[0].block.name == "second"

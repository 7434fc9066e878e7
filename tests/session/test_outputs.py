"""Outputs that were too large for their observations are paged through, out of real blobs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handiwork.events.action import OutputReadAction
from handiwork.events.observation import ErrorObservation, OutputReadObservation
from handiwork.log.blobs import Blobs
from handiwork.log.redaction.redactor import Redactor
from handiwork.session.steps import read_output as outputs
from handiwork.session.steps.read_output import read_output

LOG = "".join(f"line {number}: {'FAILED' if number % 100 == 0 else 'ok'}\n" for number in range(1, 5001)).encode()


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(tmp_path / "blobs", Redactor())


async def page(blobs: Blobs, data: bytes | AsyncIterator[bytes], **asked: Any) -> OutputReadObservation:
    blob = await blobs.put(data)
    found = await read_output(blobs, OutputReadAction(output=blob[:12], **asked), [blob])
    assert isinstance(found, OutputReadObservation), found.content
    assert found.output == blob
    return found


async def refused(blobs: Blobs, known: Collection[str], **asked: Any) -> ErrorObservation:
    found = await read_output(blobs, OutputReadAction(**asked), known)
    assert isinstance(found, ErrorObservation)
    return found


async def test_lines_are_read_by_their_numbers(blobs: Blobs) -> None:
    found = await page(blobs, LOG, start=299, end=301)
    assert found.content == "line 299: ok\nline 300: FAILED\nline 301: ok\n"
    assert (found.start, found.end, found.lines) == (299, 301, 5000)


async def test_a_full_page_says_where_to_go_on_until_all_was_read(blobs: Blobs) -> None:
    read, pages, start = "", 0, 1
    while start <= 5000:
        found = await page(blobs, LOG, start=start)
        assert len(found.content) <= outputs.MOST
        read, pages, start = read + found.content, pages + 1, found.end + 1
    assert read.encode() == LOG
    assert pages == 5


async def test_a_pattern_finds_lines_with_their_numbers(blobs: Blobs) -> None:
    found = await page(blobs, LOG, start=200, end=400, pattern="FAILED|no such")
    assert found.content == "200: line 200: FAILED\n300: line 300: FAILED\n400: line 400: FAILED\n"
    assert (found.start, found.end, found.lines) == (200, 400, 5000)
    assert (await page(blobs, LOG, pattern="^line 4.*FAILED$")).content.startswith("400: line 400")
    assert (await page(blobs, LOG, pattern=r"nothing \[like\] this")).content == ""


async def test_a_line_without_end_is_cut_and_said_to_be(blobs: Blobs) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"first\n"
        for _ in range(64):
            yield b"x" * (1 << 20)
        yield b"needle\nlast"

    found = await page(blobs, pieces())
    first, cut, last = found.content.split("\n")
    assert (first, last, found.lines) == ("first", "last", 3)
    left_out = f" [... only the first {outputs.LINE} characters of {(64 << 20) + 7} bytes in this line ...]"
    assert cut == "x" * outputs.LINE + left_out
    assert (await page(blobs, b"a" * 3000 + b"needle", pattern="needle|only the first")).content == ""


async def test_what_is_no_text_is_shown_as_escapes(blobs: Blobs) -> None:
    assert (await page(blobs, b"\xff\x00caf\xc3\xa9\r\n")).content == "\\xff\0caf\u00e9\r\n"


async def test_only_outputs_of_the_session_are_read(blobs: Blobs) -> None:
    mine, other = await blobs.put(b"mine"), await blobs.put(b"other")
    found = await refused(blobs, [mine], output=other)
    assert found.error_id == "no_output"
    assert f"There are: {mine[:12]}." in found.content
    assert other[:12] not in found.content.split("There are")[1]
    for handle in (mine[:7], "", "../" + mine):
        assert (await refused(blobs, [mine], output=handle)).error_id == "no_output"
    assert "shown whole" in (await refused(blobs, [], output=mine)).content


async def test_a_blob_that_was_deleted_is_an_error(blobs: Blobs) -> None:
    blob = await blobs.put(b"gone")
    blobs.path(blob).unlink()
    assert (await refused(blobs, [blob], output=blob)).error_id == "no_output"


async def test_lines_that_there_are_not_are_an_error(blobs: Blobs) -> None:
    blob = await blobs.put(b"one\ntwo\n")
    for start, end in ((3, None), (2, 1)):
        found = await refused(blobs, [blob], output=blob, start=start, end=end)
        assert found.error_id == "bad_range"
        assert "lines 1 to 2" in found.content


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "a*a*b", "(a|a)*b", "[[:space:]]", "[", "*", "(?:a)", "x" * 201, "a??b?", r"[\]*]*a+"]
)
async def test_a_pattern_that_may_take_for_ever_or_is_none_is_an_error(blobs: Blobs, pattern: str) -> None:
    blob = await blobs.put(b"a" * 2000 + b"\n")
    found = await refused(blobs, [blob], output=blob, pattern=pattern)
    assert found.error_id == "bad_pattern"


async def test_a_search_that_takes_long_says_how_far_it_came(blobs: Blobs) -> None:
    blob = await blobs.put((b"a" * 1999 + b"\n") * 5000)
    found = await read_output(blobs, OutputReadAction(output=blob, pattern=".*b"), [blob], seconds=0.1)
    assert isinstance(found, OutputReadObservation)
    assert 1 <= found.end < found.lines == 5000


@settings(max_examples=60, deadline=None)
@given(
    lines=st.lists(st.binary(max_size=12).filter(lambda line: b"\n" not in line), min_size=1, max_size=8),
    newline=st.booleans(),
    start=st.integers(1, 9),
    end=st.integers(1, 9),
)
async def test_any_range_of_lines_is_what_splitting_gives(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], newline: bool, start: int, end: int
) -> None:
    blobs = Blobs(tmp_path_factory.getbasetemp() / "ranges", Redactor())
    data = b"\n".join(lines) + b"\n" * newline
    split = data.split(b"\n")
    there = split[:-1] if split[-1] == b"" else split
    blob = await blobs.put(data)
    found = await read_output(blobs, OutputReadAction(output=blob, start=start, end=end), {blob})
    if end < start or start > max(1, len(there)):
        assert isinstance(found, ErrorObservation)
        return
    assert isinstance(found, OutputReadObservation)
    wanted = [line + b"\n" for line in there]
    if there and not data.endswith(b"\n"):
        wanted[-1] = wanted[-1][:-1]
    assert found.content == b"".join(wanted[start - 1 : end]).decode("utf-8", "backslashreplace")
    assert found.lines == len(there)
    assert found.end == min(end, len(there))

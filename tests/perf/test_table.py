"""The table that compares: ratios to ours, targets, and what could not be measured."""

from __future__ import annotations

import pytest

from perf.table import Row, Target, as_json, markdown, shown, under


def test_values_stand_side_by_side_with_ratios_to_ours() -> None:
    rows = [Row("start", "`--help`", "ms", {"ours": 80.0, "theirs": 320.0}, under("ours", 200))]
    assert markdown(rows, ["ours", "theirs"]).splitlines() == [
        "| measured with |              | ours | theirs | theirs / ours | target     |",
        "| ------------- | ------------ | ---: | -----: | ------------: | ---------- |",
        "| start         | `--help`, ms | 80.0 |    320 |         4.00x | < 200: met |",
    ]


def test_who_cannot_do_it_has_a_dash() -> None:
    row = Row("resume", "500 events", "ms", {"ours": 15.0})
    assert "| 15.0 |      - |             - |" in markdown([row], ["ours", "theirs"])
    assert as_json(row, ["ours", "theirs"])["ratios"] == {"theirs": None}


def test_a_target_that_is_missed_is_said_loudly() -> None:
    missed = Row("shell", "`echo`", "ms", {"ours": 2.0}, under("ours", 2))
    assert "< 2: **missed**" in markdown([missed], ["ours"])
    assert as_json(missed, ["ours"])["met"] is False


def test_a_target_against_a_peer_that_is_not_there_is_neither_met_nor_missed() -> None:
    below = Target("< theirs", lambda values: values["ours"] < values["theirs"])
    row = Row("steps", "step 50", "ms", {"ours": 2.0}, below)
    assert "< theirs: not measured" in markdown([row], ["ours", "theirs"])
    assert as_json(row, ["ours", "theirs"])["met"] is None


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1234, "0.12"), (1.234, "1.23"), (12.34, "12.3"), (123.4, "123"), (12345.6, "12,346"), (None, "-")],
)
def test_numbers_have_three_digits(value: float | None, text: str) -> None:
    assert shown(value) == text

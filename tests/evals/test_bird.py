"""BIRD: queries are compared by what they find in the original database, which they cannot change."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from pathlib import Path

import pytest

from handiwork.evals.benchmark import DataError, Instance, Score
from handiwork.evals.benchmarks.bird import Bird, compare, query_in
from tests.evals.rollouts import bird_excerpt, instances, needs_benchdata, prepared, rollout

BIRD = Bird()


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    return bird_excerpt(tmp_path / "data")


async def scored(instance: Instance, said: str) -> Score:
    return await BIRD.score(rollout(instance, said))


@needs_benchdata
async def test_every_gold_query_is_right(upstream: Path) -> None:
    for instance in BIRD.load(upstream, "mini_dev"):
        score = await scored(instance, f"Here it is.\n<answer>\n{instance.row['SQL']};\n</answer>")
        assert (score.value, score.details["error"]) == (1, "")


@needs_benchdata
@pytest.mark.parametrize("said", ["", "<answer></answer>", "<answer>SELECT</answer>", "<answer>SELECT 'no'</answer>"])
async def test_what_finds_something_else_or_nothing_is_wrong(upstream: Path, said: str) -> None:
    assert (await scored(BIRD.load(upstream, "mini_dev")[0], said)).value == 0


@needs_benchdata
async def test_names_in_double_quotes_are_kept(upstream: Path) -> None:
    """OpenHands looked for sql = "..." and so cut a query at its first double quote."""
    first = BIRD.load(upstream, "mini_dev")[0]
    gold = """SELECT "County Name", `School Name` FROM frpm WHERE "County Name" = 'Alameda' ORDER BY 2"""
    instance = Instance("1", {**first.row, "SQL": gold})
    assert (await scored(instance, f"<answer>{gold}</answer>")).value == 1
    unordered = gold.removesuffix("ORDER BY 2") + "UNION ALL " + gold
    assert (await scored(instance, f"```sql\n{unordered}\n```")).value == 1, "rows are compared as a set"
    assert (await scored(instance, """<answer>SELECT "County Name" FROM frpm</answer>""")).value == 0


@pytest.mark.parametrize(
    "said",
    [
        "<answer>SELECT 1</answer>",
        "<answer>\n```sql\nSELECT 1\n```\n</answer>",
        "Not this:\n```sql\nSELECT 0\n```\nbut this:\n```sql\nSELECT 1\n```\nas I think.",
        "SELECT 1\n",
    ],
)
def test_the_query_is_found_in_a_tag_or_a_block_or_is_all_that_was_said(said: str) -> None:
    assert query_in(said) == "SELECT 1"


@needs_benchdata
async def test_a_query_can_neither_write_nor_reach_another_file(upstream: Path) -> None:
    instance, other = BIRD.load(upstream, "mini_dev")[0], upstream / "other.sqlite"
    database = Path(instance.row["database"])
    before = hashlib.sha256(database.read_bytes()).digest()
    for query in (
        "DELETE FROM schools",
        "DROP TABLE schools",
        "PRAGMA journal_mode = WAL",
        f"ATTACH DATABASE '{other}' AS other",
        f"VACUUM INTO '{other}'",
        "SELECT load_extension('/lib/x86_64-linux-gnu/libc.so.6')",
    ):
        score = await scored(instance, f"<answer>{query}</answer>")
        assert score.value == 0
        assert score.details["error"].startswith(("not authorized", "authorization denied"))
    assert hashlib.sha256(database.read_bytes()).digest() == before
    assert not other.exists()
    assert [file.name for file in database.parent.iterdir() if file.is_file()] == [database.name]


@needs_benchdata
async def test_a_query_without_end_is_ended_and_holds_nothing_up(upstream: Path) -> None:
    row = BIRD.load(upstream, "mini_dev")[0].row
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"
    running = asyncio.create_task(compare(row["database"], endless, row["SQL"], seconds=0.5))
    turns = 0
    while not running.done():
        await asyncio.sleep(0.02)
        turns += 1
    assert (running.result()["equal"], running.result()["error"]) == (False, "it took more than 0.5 s")
    assert turns > 1


@needs_benchdata
@pytest.mark.slow
async def test_a_query_with_endless_rows_ends_when_it_has_used_up_its_memory(upstream: Path) -> None:
    large = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT hex(zeroblob(40000000)) || i FROM n"
    score = await scored(BIRD.load(upstream, "mini_dev")[0], f"<answer>{large}</answer>")
    assert (score.value, score.details["error"]) == (0, "MemoryError")


@needs_benchdata
async def test_a_gold_query_that_fails_is_the_graders_failure(upstream: Path) -> None:
    first = BIRD.load(upstream, "mini_dev")[0]
    instance = Instance("7", {**first.row, "SQL": "SELECT 1 FROM nowhere"})
    with pytest.raises(DataError, match=r"the gold query of 7 fails on .*no such table: nowhere"):
        await scored(instance, "<answer>SELECT 1</answer>")


@needs_benchdata
async def test_an_agent_finds_a_copy_of_the_database_and_what_its_columns_mean(upstream: Path, tmp_path: Path) -> None:
    instance = BIRD.load(upstream, "mini_dev")[0]
    assert instance.group in ("simple", "moderate", "challenging")
    assert BIRD.skipped(instance) == ""
    async with prepared(BIRD, instance, tmp_path) as sandbox:
        for name in ("california_schools.sqlite", "database_description/schools.csv"):
            assert await anext(aiter(sandbox.download(name)))
    with sqlite3.connect(tmp_path / "workspace/california_schools.sqlite") as copy:
        copy.execute("DELETE FROM schools")
    copy.close()
    score = await scored(instance, f"<answer>{instance.row['SQL']}</answer>")
    assert score.value == 1
    asked = BIRD.instruction(instance)
    assert instance.row["question"] in asked
    assert instance.row["evidence"] in asked


@needs_benchdata
def test_a_question_that_upstream_has_twice_is_two_instances() -> None:
    found = instances(BIRD)
    assert len({one.id for one in found}) == len(found)


@needs_benchdata
def test_a_question_without_its_database_is_skipped_and_the_reason_says_where_it_belongs() -> None:
    instance = instances(BIRD)[0]
    why = BIRD.skipped(instance)
    name = instance.row["db_id"]
    assert f"dev_databases/{name}/{name}.sqlite is missing: get BIRD's dev.zip from https://bird-bench" in why


def test_a_file_that_is_not_birds_is_refused(tmp_path: Path) -> None:
    (tmp_path / "dev.json").write_text('[{"question_id": 1}]')
    with pytest.raises(DataError, match="questions without db_id"):
        BIRD.load(tmp_path, "dev")
    (tmp_path / "dev.json").write_text("<html>")
    with pytest.raises(DataError, match="no JSON list"):
        BIRD.load(tmp_path, "dev")
